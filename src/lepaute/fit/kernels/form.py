"""Members of the family of kernel models: which mean, which noise, and whether each core has its own.

Notation of Cornebize & Legrand (thesis, section 4.2.1). Mean: M-0 a constant, M-1 one product of the parameters and an
intercept, M-2 a polynomial, M' a polynomial in each of several regions. Noise: N-0 none, N-1 a constant standard
deviation, N-2 one that is a polynomial, N' a mixture of modes in units of such a one. The subscript H (a model for each
core) is written -H here: M'-H/N-2.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lepaute.errors import InputError
from lepaute.fit.kernels.terms import default_terms

#: Simplest first.
MEANS = ("M-0", "M-1", "M-2", "M'")
NOISES = ("N-0", "N-1", "N-2", "N'")
#: The kernels that the rest of the model (days, crowding) takes to differ from core to core where nobody selects.
PER_CORE = frozenset({"dgemm", "dgemm_nn"})
AUTO = "auto"

_FORM = re.compile(r"(M-[012]|M')(-H)?/(N-[012]|N')")


@dataclass(frozen=True, slots=True)
class Form:
    """A member of the family; per_core: the coefficients are those of each core that has enough calls."""

    mean: str
    per_core: bool
    noise: str

    def __str__(self) -> str:
        return f"{self.mean}{'-H' if self.per_core else ''}/{self.noise}"


def default_form(kernel: str) -> Form:
    """What a kernel is fitted with where nobody selects: pieces, and a standard deviation that is a polynomial."""
    return Form("M'", kernel in PER_CORE, "N-2")


def form_of(text: str) -> Form:
    """The form that is written M'-H/N-2; raises InputError for one that is none."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(
            f"'{text}' is no kernel model; write a mean ({', '.join(MEANS)}), -H for a model of each core, a slash and "
            f"a noise ({', '.join(NOISES)}), such as M'-H/N-2, or {AUTO}"
        )
    return Form(match[1], match[2] is not None, match[3])


def wanted_forms(texts: Iterable[str]) -> dict[str, Form]:
    """Forms by kernel from what a person writes: `auto`, FORM for all kernels, or KERNEL=FORM; "" stands for all.

    Of two for the same kernels the later one holds; `auto` takes back what was said before.
    Raises InputError for a text that is no form, or a kernel that no platform has.
    """
    from lepaute.fit.observations.calls import MODELLED, PHASES

    wanted: dict[str, Form] = {}
    for text in texts:
        kernel, equals, form = text.rpartition("=")
        if equals and kernel not in MODELLED | set(PHASES.values()):
            raise InputError(f"'{kernel}' is no kernel that a platform has; write KERNEL=FORM such as dgemm=M-2/N-1")
        if form != AUTO:
            wanted[kernel] = form_of(form)
        elif equals:
            wanted.pop(kernel, None)
        else:
            wanted.clear()
    return wanted


def wanted_for(kernel: str, wanted: Mapping[str, Form]) -> Form | None:
    """The form that is asked for a kernel; None where it is to be selected."""
    return wanted.get(kernel, wanted.get(""))


def terms_of(kernel: str, mean: str) -> tuple[str, ...]:
    """Terms of the mean of a kernel: the constant, its most important product and the constant, or all of them."""
    every = default_terms(kernel)
    if mean == "M-0":
        return ("1",)
    if mean == "M-1" and len(every) > 1:
        return (every[0], "1")
    return every


def means_of(kernel: str) -> tuple[str, ...]:
    """The means that differ for a kernel: one whose polynomial is a product and a constant has no M-2, and so on."""
    count = len(default_terms(kernel))
    return tuple(mean for mean in MEANS if count > {"M-1": 1, "M-2": 2}.get(mean, 0))


def plain_mean(kernel: str, mean: str, n_pieces: int) -> str:
    """The simplest name of what was fitted: one piece is none, a polynomial of one term is a constant."""
    if mean == "M'" and n_pieces > 1:
        return mean
    count = len(terms_of(kernel, mean))
    if mean in {"M'", "M-2"}:
        return ("M-0", "M-1")[count - 1] if count <= 2 else "M-2"
    return "M-0" if count == 1 else mean

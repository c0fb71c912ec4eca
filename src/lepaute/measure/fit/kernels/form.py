"""Members of the family of kernel models: which mean, which noise, and whether each core or socket has its own.

A shape of the mean is an entry of SHAPES: which terms it has, how it is fitted, whether in pieces. What is tried for a
kernel, what `--kernel-model` takes and the columns of `--details` follow from it.

Notation of Cornebize & Legrand (thesis, section 4.2.1). Mean: M-0 a constant, M-1 one product of the parameters and an
intercept, M-2 a polynomial, M' a polynomial in each of several regions. Noise: N-0 none, N-1 a constant standard
deviation, N-2 one that is a polynomial, N' a mixture of modes in units of such a one. The subscript H (a model for each
core) is written -H here: M'-H/N-2; -S is a model for each socket (for each node, where nodes have one).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lepaute.errors import InputError
from lepaute.measure.fit.kernels.polynomial import PolynomialFit, default_terms, fit_polynomial
from lepaute.simulate.platform.kernel_model import FORM, MEANS, NOISES

#: The kernels that the rest of the model (days, crowding) takes to differ from core to core where nobody selects.
PER_CORE = frozenset({"dgemm", "dgemm_nn"})
AUTO = "auto"

_FORM = re.compile(FORM)


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of the mean.

    terms        : its terms, from the default terms of a kernel
    fewest_terms : default terms that a kernel needs for this shape to differ from the simpler ones
    in_pieces    : the terms are fitted in each of several regions
    fit          : called as `fit_polynomial`, whose result it returns
    """

    terms: Callable[[tuple[str, ...]], tuple[str, ...]]
    fewest_terms: int = 1
    in_pieces: bool = False
    fit: Callable[..., PolynomialFit] = fit_polynomial


#: By their names in a platform, the simplest first.
SHAPES: Mapping[str, Shape] = {
    "M-0": Shape(lambda _: ("1",)),
    "M-1": Shape(lambda terms: (terms[0], "1") if len(terms) > 1 else terms, fewest_terms=2),
    "M-2": Shape(lambda terms: terms, fewest_terms=3),
    "M'": Shape(lambda terms: terms, in_pieces=True),
}


@dataclass(frozen=True, slots=True)
class Form:
    """A member of the family; per_core, per_socket: coefficients are those of each core or socket with enough calls."""

    mean: str
    per_core: bool
    noise: str
    per_socket: bool = False

    def __str__(self) -> str:
        return f"{self.mean}{'-H' if self.per_core else '-S' if self.per_socket else ''}/{self.noise}"

    @property
    def shared(self) -> bool:
        """Whether all cores have the same coefficients."""
        return not self.per_core and not self.per_socket


def default_form(kernel: str) -> Form:
    """Form of a kernel's fit if nobody selects: pieces, and a standard deviation that is a polynomial."""
    return Form("M'", kernel in PER_CORE, "N-2")


def form_of(text: str) -> Form:
    """The form that is written M'-H/N-2; raises InputError for one that is none."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(
            f"'{text}' is not a kernel model; write a mean ({', '.join(MEANS)}), -H or -S for a model of each core or "
            f"socket, a slash and a noise ({', '.join(NOISES)}), such as M'-H/N-2, or {AUTO}"
        )
    return Form(match[1], match[2] == "-H", match[3], match[2] == "-S")


def requested_forms(texts: Iterable[str]) -> dict[str, Form]:
    """Forms by kernel from what a person writes: `auto`, FORM for all kernels, or KERNEL=FORM; "" stands for all.

    Of two for the same kernels the later one holds; `auto` takes back what was said before.
    Raises InputError for a text that is no form, or a kernel that no platform has.
    """
    from lepaute.measure.fit.observations.calls import FIRST_TOUCH, MODELLED, PHASES

    forms: dict[str, Form] = {}
    for text in texts:
        kernel, equals, form = text.rpartition("=")
        if equals and kernel not in MODELLED | {FIRST_TOUCH, *PHASES.values()}:
            raise InputError(f"'{kernel}' is not a kernel of platforms; write KERNEL=FORM such as dgemm=M-2/N-1")
        if form != AUTO:
            forms[kernel] = form_of(form)
        elif equals:
            forms.pop(kernel, None)
        else:
            forms.clear()
    return forms


def requested_form(kernel: str, forms: Mapping[str, Form]) -> Form | None:
    """The form that is asked for a kernel; None if it is to be selected."""
    return forms.get(kernel, forms.get(""))


def terms_of(kernel: str, mean: str) -> tuple[str, ...]:
    return SHAPES[mean].terms(default_terms(kernel))


def means_of(kernel: str) -> tuple[str, ...]:
    """The means that differ for a kernel: one whose polynomial is a product and a constant has no M-2, and so on."""
    count = len(default_terms(kernel))
    return tuple(mean for mean, shape in SHAPES.items() if count >= shape.fewest_terms)


def plain_mean(kernel: str, mean: str, n_pieces: int) -> str:
    """The simplest name of what was fitted: one piece is none, a polynomial of one term is a constant."""
    fitted = SHAPES[mean]
    if fitted.in_pieces and n_pieces > 1:
        return mean
    terms = terms_of(kernel, mean)
    return next(
        name
        for name, shape in SHAPES.items()
        if shape.fit is fitted.fit and not shape.in_pieces and terms_of(kernel, name) == terms
    )

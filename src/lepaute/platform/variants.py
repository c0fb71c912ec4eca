"""Which model a kernel takes where a platform has none of its own."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.platform.kernel_model import KernelModel

#: Variants of a routine that a platform may model apart; one that does not has them cost what the routine costs.
VARIANTS = {"dgemm_nn": "dgemm", "dtrsm_left": "dtrsm"} | {
    f"dlaswp0{number}N": f"dlaswp0{number}T" for number in (1, 3, 4, 5, 6)
}


def models_of(models: Iterable["KernelModel"], kernels: Iterable[str], threads: int) -> dict[str, "KernelModel"]:
    """The model of each of the kernels, by name, for ranks of `threads` threads; those without any are left out.

    Of several the first: its own, its routine's, and both with the fewest threads that there are, since HPL's own
    loops do not use more.
    """
    of: dict[int, dict[str, KernelModel]] = {}
    for model in models:
        of.setdefault(model.threads, {})[model.kernel] = model
    places = [of.get(threads, {}), of[min(of)] if of else {}]
    found: dict[str, KernelModel] = {}
    for kernel in kernels:
        taken = (own.get(name) for own in places for name in (kernel, VARIANTS.get(kernel, "")))
        if (first := next(filter(None, taken), None)) is not None:
            found[kernel] = first
    return found


def told_of_missing(models: Iterable["KernelModel"], kernels: Iterable[str]) -> list[str]:
    """Sentences about those of the kernels that have no model of their own; none where all have."""
    models, kernels = list(models), list(kernels)
    texts = []
    for threads in sorted({model.threads for model in models}):
        found = models_of(models, kernels, threads)
        several = f" with {threads} threads" if threads > 1 else ""
        others = [
            f"{kernel} ({model.kernel}{_fewer(model, threads)})"
            for kernel, model in found.items()
            if (model.kernel, model.threads) != (kernel, threads)
        ]
        if others:
            texts.append(f"Not measured{several}, and modelled by another kernel: {', '.join(others)}.")
        if missing := [kernel for kernel in kernels if kernel not in found]:
            texts.append(f"Not measured{several}, and taken to cost nothing: {', '.join(missing)}.")
    return texts


def _fewer(model: "KernelModel", threads: int) -> str:
    if model.threads == threads:
        return ""
    return ", one thread" if model.threads == 1 else f", {model.threads} threads"

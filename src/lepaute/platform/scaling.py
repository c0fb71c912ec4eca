"""Kernels that nobody measured on a core, scaled from another core by the speed of dgemm."""

from typing import TYPE_CHECKING

from lepaute.platform.evaluation import mean_s

if TYPE_CHECKING:
    from lepaute.platform.kernel_model import KernelModel, Piece
    from lepaute.platform.schema import Platform

#: The dgemm that speeds of cores are compared by: an update of HPL, C (m x n) += A (m x k) B (k x n).
UPDATE = (4096, 4096, 128)
#: Standard deviation (of the logarithm) of a kernel scaled so. Eleven kernels of Dahu's core, scaled by dgemm to one
#: of a virtual machine, 2.3 times as fast, are off by 0.65 (root mean square over the calls of HPL; -1.9 to 0.2).
SCALED_RELATIVE_SD = 0.65
#: Of a kernel that was not measured there either, and is taken to cost what a kernel like it costs: four kernels of the
#: same two cores.
LIKENED_RELATIVE_SD = 0.88
#: Kernels of HPL, and those that touch memory as they do: an element of a matrix row is a cache line.
ALIKE = {
    "dtrsm_left": "dtrsm",
    "dger": "dgemv",
    "dcopy": "dlaswp01T",
    "dlocswp": "dlaswp01T",
    "dlaswp00N": "dlaswp01T",
    "dlaswp05T": "dlaswp04T",
    "dlaswp06T": "dlaswp01T",
    "dlaswp10N": "dlaswp01T",
}
#: Of these, the elements of a call are n, not m x n.
_OF_ONE_ROW = frozenset({"dcopy", "dlocswp"})


def dgemm_rate(platform: "Platform") -> float | None:
    """Flop/s of one core of `platform` in an update of HPL while all cores compute; None where it has no dgemm."""
    model = platform.kernel("dgemm")
    if model is None or (duration_s := mean_s(model, *UPDATE)) <= 0.0:
        return None
    m, n, k = UPDATE
    return 2.0 * m * n * k / duration_s


def scaled_kernels(like: "Platform", factor: float, source: str) -> "list[KernelModel]":
    """The kernels but dgemm of `like` with one thread, `factor` times as long; those it lacks are likened to others.

    source : where the speeds come from, for `discrepancy_source`
    """
    measured = {
        model.kernel: model
        for model in like.kernels
        if model.threads == 1 and any(value for piece in model.pieces for value in piece.mean.values())
    }
    models = [
        scaled(model, factor, SCALED_RELATIVE_SD, source)
        for name, model in measured.items()
        if name not in ("dgemm", "dgemm_nn")
    ]
    for name, other in ALIKE.items():
        if name not in measured and other in measured:
            model = scaled(measured[other], factor, LIKENED_RELATIVE_SD, f"{source}, which has no {name}: as {other}")
            models.append(_renamed(model, name))
    return models


def scaled(model: "KernelModel", factor: float, relative_sd: float, source: str) -> "KernelModel":
    """`model` with calls `factor` times as long, its error, and nothing that was fitted to calls of single CPUs."""
    return model.model_copy(
        update={
            "pieces": tuple(_scaled(piece, factor) for piece in model.pieces),
            "discrepancy_relative_sd": relative_sd,
            "discrepancy_source": source,
            "form": None,
        }
    )


def _scaled(piece: "Piece", factor: float) -> "Piece":
    sd = {term: _digits(value * factor) for term, value in piece.noise.sd.items()}
    return piece.model_copy(
        update={
            "mean": {term: _digits(value * factor) for term, value in piece.mean.items()},
            "noise": piece.noise.model_copy(update={"sd": sd}),
            **dict.fromkeys(("covariance", "range", "ranges", "goodness", "per_cpu", "discrepancy_relative_sd")),
        }
    )


def _renamed(model: "KernelModel", name: str) -> "KernelModel":
    """`model` as that of another kernel; of one row, an element costs what one of a matrix costs."""
    from lepaute.platform.kernel_model import Noise, Piece

    last = model.pieces[-1]
    if name not in _OF_ONE_ROW or "mn" not in last.mean:
        return model.model_copy(update={"kernel": name})
    piece = Piece(mean={"n": last.mean["mn"]}, noise=Noise())
    return model.model_copy(update={"kernel": name, "pieces": (piece,)})


def _digits(value: float) -> float:
    return float(f"{value:.7g}")

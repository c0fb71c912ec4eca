"""The C of clock models and offsets, called from Python."""

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lepaute.measure.toolchain import C_FLAGS, probe_source

Int64, Double = ctypes.c_int64, ctypes.c_double


class Model(ctypes.Structure):
    """lep_clock_model."""

    _fields_ = (
        ("x0_ns", Int64), ("y0_ns", Int64), ("drift", Double), ("variance_ns2", Double), ("drift_variance", Double),
        ("covariance_ns", Double), ("bound_ns", Double),
    )  # fmt: skip


class Exchange(ctypes.Structure):
    """lep_clock_exchange."""

    _fields_ = (("before_ns", Int64), ("remote_ns", Int64), ("after_ns", Int64))


class Offset(ctypes.Structure):
    """lep_clock_offset."""

    _fields_ = (("x_ns", Int64), ("offset_ns", Double), ("deviation_ns", Double), ("bound_ns", Double))


def clock_library(folder: Path) -> Any:
    """The compiled functions, with their types."""
    path = folder / "clocks.so"
    sources = [str(probe_source() / name) for name in ("clock_model.c", "clock_offset.c")]
    subprocess.run(["cc", *C_FLAGS, "-Werror", "-fPIC", "-shared", *sources, "-lm", "-o", str(path)], check=True)
    library = ctypes.CDLL(str(path))
    model, doubles = ctypes.POINTER(Model), ctypes.POINTER(Double)
    for name, result, arguments in (
        ("at", Int64, (model, Int64)),
        ("deviation_ns", Double, (model, Int64)),
        ("joined", Model, (model, model)),
        ("moved", Model, (model, Int64)),
        ("fitted", Model, (ctypes.POINTER(Int64), doubles, doubles, doubles, ctypes.c_int, Int64, Double)),
        ("shrink", None, (ctypes.POINTER(model), ctypes.c_int, ctypes.c_int)),
    ):
        function = getattr(library, f"lep_clock_{name}")
        function.restype, function.argtypes = result, arguments
    for name in ("bounds", "shortest", "median"):
        function = getattr(library, f"lep_offset_by_{name}")
        function.restype = Offset
        further = (Double,) if name == "bounds" else ()
        function.argtypes = (ctypes.POINTER(Exchange), ctypes.c_int, ctypes.POINTER(Double), Int64, *further)
    return library


def line_through(
    library: Any,
    x_ns: Sequence[int],
    offsets_ns: Sequence[float],
    deviations_ns: Sequence[float],
    bounds_ns: Sequence[float] | None = None,
    *,
    drift_variance_before: float = 1.0,
) -> Model:
    """What lep_clock_fitted makes of points of clocks read to a nanosecond; bounds are alike unless given."""
    points = len(x_ns)

    def doubles(values: Sequence[float]) -> Any:
        return (Double * points)(*values)

    numbers = (
        (Int64 * points)(*x_ns), doubles(offsets_ns), doubles(deviations_ns), doubles(bounds_ns or [0.0] * points),
    )  # fmt: skip
    model: Model = library.lep_clock_fitted(*numbers, points, 1, drift_variance_before)
    return model


def shrink(library: Any, lines: Sequence[Model], freedom: int) -> None:
    """lep_clock_shrink of alike lines, which it changes."""
    pointers = (ctypes.POINTER(Model) * len(lines))(*(ctypes.pointer(line) for line in lines))
    library.lep_clock_shrink(pointers, len(lines), freedom)


def offset_of(library: Any, method: str, exchanges: Any, *, drift: float = 0.0) -> Offset:
    """The offset that lep_offset_by_<method> sees in an array of exchanges of clocks read to a nanosecond."""
    further = (drift,) if method == "bounds" else ()
    estimate = getattr(library, f"lep_offset_by_{method}")
    offset: Offset = estimate(exchanges, len(exchanges), (Double * len(exchanges))(), 1, *further)
    return offset

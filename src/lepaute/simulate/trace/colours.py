"""Colours of calls. They differ in lightness too, after Okabe and Ito's palette, so that they can be told apart without
seeing red or green, and in grey; waiting is hatched besides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.kit.picture import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW
from lepaute.simulate.trace import breakdown
from lepaute.simulate.trace.table import KERNEL, Trace


@dataclass(frozen=True, slots=True)
class Style:
    """How one class of time is drawn."""

    label: str
    colour: str
    hatch: str = ""

    @property
    def look(self) -> dict[str, Any]:
        """As Matplotlib takes it."""
        return {"color": self.colour, "hatch": self.hatch, "ec": "#555555"}


#: Classes of a picture of calls, as they are stacked: computing by its kinds, then the parts of messages.
CALLS = (
    Style("dgemm", BLUE),
    Style("dtrsm", SKY),
    Style("panel and solve (other BLAS)", GREEN),
    Style("row swaps and copies", YELLOW),
    Style("other computing", "#B8DCCB"),
    Style("the program's own code", "#C8BE8C"),
    Style("waiting for a core", "#B0B0C8", "\\\\\\\\"),
    Style("call overhead", "#5A4A42"),
    Style("waiting for the other side", RED, "////"),
    Style("transfer", ORANGE),
    Style("contention", PURPLE, "...."),
    Style("probe", "#1A1A1A"),
    Style("nothing recorded", "#FFFFFF"),
)
DGEMM, DTRSM, PANEL, COPIES, GLUE, OWN_CODE, NO_CORE = range(7)
CALL_OVERHEAD, WAITING, MOVING, CONTENDING, PROBING, NOTHING = range(NO_CORE + 1, len(CALLS))

#: The categories of a breakdown.
SHARES = (Style("compute", BLUE), *CALLS[CALL_OVERHEAD:NOTHING], *CALLS[OWN_CODE : NO_CORE + 1], Style("other", "#FFF"))


def labels(estimated: bool, unknown: Sequence[str]) -> list[str]:
    """Labels of the classes of CALLS.

    estimated : a call does not know its parts, as in recordings and in what SMPI writes: its transfer is all the rest
    unknown   : calls whose waiting is part of that too
    """
    found = [style.label for style in CALLS]
    if estimated:
        found[MOVING] += " and overhead" + (f", and waiting in {', '.join(unknown)}" if unknown else "")
    return found


#: Class whose colour each category of a breakdown has.
CLASS_OF_CATEGORY = (DGEMM, CALL_OVERHEAD, WAITING, MOVING, CONTENDING, PROBING, OWN_CODE, NO_CORE, NOTHING)
#: Kernels of applications whose computing is no routine of BLAS.
OTHER_COMPUTING = frozenset({"sweep", "first_touch"})


def _class_of_kernel(name: str) -> int:
    """The class in CALLS of a kernel, by its name."""
    if "gemm" in name:
        return DGEMM
    if "trsm" in name:
        return DTRSM
    if "laswp" in name or "locswp" in name or name.endswith(("cpy", "copy", "copy_contiguous", "swap")):
        return COPIES
    if name.endswith("_glue") or name in OTHER_COMPUTING:
        return GLUE
    return PANEL


def classes(trace: Trace, parts: NDArray[Any]) -> NDArray[Any]:
    """Seconds of each row by class, shape (rows, classes)."""
    seconds = numpy.zeros((len(trace), len(CALLS)))
    beside_computing = slice(breakdown.OVERHEAD, breakdown.OTHER)
    seconds[:, CLASS_OF_CATEGORY[beside_computing]] = parts[:, beside_computing]
    if len(trace):
        place_of_name = numpy.array([_class_of_kernel(name) for name in trace.names])
        kernels = numpy.flatnonzero(trace.kind == KERNEL)
        seconds[kernels, place_of_name[trace.name[kernels]]] += parts[kernels, breakdown.COMPUTE]
    return seconds

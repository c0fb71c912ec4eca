"""What the parameters and the computing of an application of one's own are made of: grids and costs."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.numbers import path_of, plain, texts
from lepaute.kit.quantities import whole_of
from lepaute.kit.text import counted
from lepaute.simulate.apps.own.sides import check_span
from lepaute.simulate.platform.nodes import check_same_memory

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.kit import expressions
    from lepaute.simulate.apps.own import measured
    from lepaute.simulate.platform import schema
else:
    _core, schema = later("lepaute._core"), later("lepaute.simulate.platform.schema")
    expressions, measured = later("lepaute.kit.expressions"), later("lepaute.simulate.apps.own.measured")

MOST = 2**31 - 1
MAX_DIMENSIONS = 8


class Grid(tuple[int, ...]):
    """Processes along each dimension, as `lp.Grid("16x8x8")` or `lp.Grid((16, 8, 8))`; ranks go in the order of
    MPI_Cart_create, the last dimension fastest.

    Raises InputError for anything but one to eight whole numbers of 1 or more.
    """

    __slots__ = ()

    def __new__(cls, sides: "str | Iterable[int]") -> Self:
        form = f"a grid is such as 16x8x8, one to {MAX_DIMENSIONS} whole numbers of 1 or more"
        if isinstance(sides, str):
            sides = [whole_of(part, "grid") for part in sides.lower().split("x")]
        found = tuple(map(plain, sides)) if isinstance(sides, Iterable) else ()
        if not 1 <= len(found) <= MAX_DIMENSIONS or any(type(each) is not int or each < 1 for each in found):
            raise InputError(f"grid is {sides!r:.80}; {form}")
        return super().__new__(cls, found)

    @property
    def size(self) -> int:
        """Number of processes."""
        return prod(self)

    def __str__(self) -> str:
        return "x".join(map(str, self))

    def __repr__(self) -> str:
        return f"Grid({str(self)!r})"


@dataclass(frozen=True, eq=False)
class Cost:
    """Cost of a unit of some computing, as a class attribute of an application: it is named by that.

    Parameters
    ----------
    seconds_a_unit : on one core while all cores of its node compute; or the name of a field that has it
    error : relative standard error of it, drawn once a run: in the layer `discrepancy` of the interval
    noise : relative standard deviation of a single call, half-normal: in the layer `noise`
    memory_share : of it that waits for memory, which is faster where fewer ranks share a node; counts where the
        platform knows its memory bandwidth (nodes.memory_bandwidth_Bps)
    recorded : smallest and largest number of ranks that it was measured on
    extrapolation : further relative standard error for each doubling of ranks beyond `recorded`: in that layer

    Raises
    ------
    InputError : for what is negative, or not finite
    """

    seconds_a_unit: float | str
    error: float = 0.0
    noise: float = 0.0
    memory_share: float = 0.0
    recorded: tuple[int, int] | None = None
    extrapolation: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        limits = (("error", 1.0), ("noise", 10.0), ("memory_share", 1.0), ("extrapolation", 1.0))
        for what, most in (("seconds_a_unit", 1e6), *limits):
            given = plain(getattr(self, what))
            if what == "seconds_a_unit" and isinstance(given, str):
                continue
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 <= given <= most:
                raise InputError(f"{what} of a Cost is {given!r:.80}; it is a number from 0 to {most:g}")
            object.__setattr__(self, what, float(given))
        object.__setattr__(self, "recorded", check_span(self.recorded, self.extrapolation))

    @staticmethod
    def measured(
        recording: "str | Path", between: "tuple[str, str]", per: str = "1", *, memory_share: float = 0.0, **of: float
    ) -> "Cost":
        """A cost from a recording of the program: its own time between two MPI calls of a rank, where nothing but
        MPI_Test and MPI_Iprobe are between them; with its error and its noise.

        Parameters
        ----------
        recording : a trace of `lepaute record`, or of an emulation, in the folder of the class's file
        between : the call before and the call after, such as ("MPI_Waitall", "MPI_Allreduce")
        per : units of such a stretch of the recording, an expression such as n**3 in fields, and `ranks`
        memory_share : as of any Cost
        of : fields of the recorded run, as n=104, where the recording does not tell them; else their defaults

        Raises
        ------
        InputError : here, and where an application is made: no such file, calls, or names; too few alike measurements

        Examples
        --------
        >>> import lepaute as lp
        >>> spmv = lp.Cost.measured("cg.parquet", ("MPI_Waitall", "MPI_Allreduce"), per="n**3", n=104)
        """
        return MeasuredCost(
            0.0, memory_share=memory_share, recording=Path(recording), between=between, per=per, of_recording=of
        )

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)

    def of(self, application: Any) -> "tuple[str, float, float, float, float]":
        """Name, seconds a unit, error, noise and memory share in an application."""
        seconds = self.seconds_a_unit
        if isinstance(seconds, str):
            found = plain(getattr(application, seconds, None))
            if isinstance(found, bool) or not isinstance(found, int | float) or not 0.0 <= found <= 1e6:
                raise InputError(
                    f"{self.name} costs {seconds!r:.80} a unit, which is {found!r:.80}; it is a field with 0 to 1e6 s"
                )
            seconds = float(found)
        return self.name, seconds, self.error, self.noise, self.memory_share


@dataclass(frozen=True, eq=False)
class MeasuredCost(Cost):
    """Result of `Cost.measured`."""

    recording: Path = field(default_factory=Path)
    between: tuple[str, str] = ("", "")
    per: str = "1"
    of_recording: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "recording", path_of(self.recording, "the recording of a Cost"))
        names = texts(self.between, "between", '("MPI_Waitall", "MPI_Allreduce")')
        if len(names) != 2:
            raise InputError(f"between has {counted(len(names), 'call')}; it is the one before and the one after")
        object.__setattr__(self, "between", names)
        if not isinstance(self.per, str):
            raise InputError(f"per is {self.per!r:.80}; it is a text such as n**3")
        try:
            expressions.Expression(self.per)
        except InputError as problem:
            raise InputError(f"per {problem}") from None

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        file = getattr(sys.modules.get(owner.__module__), "__file__", None)
        if file is not None:  # the recording lies beside the class
            object.__setattr__(self, "recording", Path(file).parent / self.recording)

    @property
    def stretches(self) -> "measured.Stretches":
        """Stretches of the recording; raises InputError."""
        try:
            state = self.recording.stat()
        except OSError as error:
            raise InputError(f"{self.recording}: {error.strerror}; `lepaute record -o` writes traces") from None
        return measured.told(self.recording, state.st_mtime_ns, state.st_size, self.between)

    def of(self, application: Any) -> "tuple[str, float, float, float, float]":
        try:
            found = self.stretches
            defaults = {each.name: each.default for each in fields(application) if each.default is not MISSING}
            units = expressions.Expression(self.per).number({**defaults, **found.parameters, **self.of_recording})
            if units <= 0.0:
                raise InputError(f"{self.per!r}: is {units:g}; a measurement has units of computing")
        except InputError as problem:
            raise InputError(f"the cost {self.name}: {problem}") from None
        return self.name, found.mean_s / units, found.error, found.noise, self.memory_share


def declared_costs(application: Any) -> list[Cost]:
    known = {name: value for each in reversed(type(application).__mro__) for name, value in vars(each).items()}
    return [value for value in known.values() if isinstance(value, Cost)]


def costs_of(application: Any) -> tuple[tuple[str, float, float, float, float], ...]:
    """Name, seconds a unit, error, noise and memory share of each Cost of an application."""
    return tuple(cost.of(application) for cost in declared_costs(application))


def kernel_of(cost: "tuple[str, float, float, float, float]", platform: "schema.Platform") -> "_core.MachineKernel":
    """The kernel of the core, called with n units, that costs so much on `platform`."""
    name, seconds, error, noise, memory_share = cost
    piece, kernel = _core.KernelPiece(), _core.MachineKernel()
    alone, crowding = _crowding(memory_share, platform)
    linear = [seconds * alone * (term == "n") for term in _core.term_names()]
    piece.mean = linear
    piece.deviation = [noise * each for each in linear]
    piece.noise = "half-normal" if noise else "none"
    kernel.name = name
    kernel.timed = True
    kernel.models = [_core.KernelModel([piece])]
    kernel.discrepancy_relative_sd = error
    kernel.crowding = crowding
    return kernel


def _crowding(memory_share: float, platform: "schema.Platform") -> "tuple[float, list[_core.CrowdingPoint]]":
    """Time of a lone rank over that on a full node, and the increase by the share of the other cores that compute."""
    nodes = platform.nodes
    if not memory_share or nodes.memory_bandwidth_Bps is None or nodes.core_memory_bandwidth_Bps is None:
        return 1.0, []
    check_same_memory(platform, "memory_share")
    from lepaute.simulate.smpi.emulated_run import slowdown_of

    ratio = nodes.core_memory_bandwidth_Bps / nodes.memory_bandwidth_Bps
    # The share is of the time on a full node; of that alone it is less.
    of_lone = memory_share / max(1.0, nodes.cores * ratio)
    lone_share = of_lone / (of_lone + 1.0 - memory_share)
    points = []
    for ranks in sorted({max(2, round(nodes.cores * at / 16)) for at in range(1, 17)} | {nodes.cores}):
        if 1 < ranks <= nodes.cores:
            share = (ranks - 1) / (nodes.cores - 1)
            points.append(_core.CrowdingPoint(share, slowdown_of(lone_share, ranks, ratio) - 1.0))
    return 1.0 / slowdown_of(lone_share, nodes.cores, ratio), points

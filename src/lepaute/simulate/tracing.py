"""What to trace of a simulated run, the trace of it, and where the time of all its ranks went."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import fsum
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.notebook import Public

if TYPE_CHECKING:
    from numpy import typing as npt

    from lepaute import _core
    from lepaute.simulate.application import Application
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.trace import Trace
else:
    npt = later("numpy.typing")

#: Categories of the engine, in its order; "other" stands beside them: waiting for the last rank at the end.
CATEGORIES = ("compute", "overhead", "late", "transfer", "contention", "probe")

#: About as many rows does a trace get unless its ranks and steps are chosen: a Perfetto file of some 200 MB.
MAX_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceRequest(Public):
    """Which ranks and which steps (panels, from 0) of a run to trace; None means all.

    Without steps, what is outside of any step (the triangular solve) is traced as well.
    """

    _unlisted = frozenset(("check", "narrowed", "to_core"))

    ranks: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None

    def check(self, application: "Application") -> None:
        """Raises InputError for a rank or a step that the run does not have."""
        for name, numbers, count in (("rank", self.ranks, application.ranks), ("step", self.steps, application.steps)):
            beyond = next((number for number in numbers or () if not 0 <= number < count), None)
            if beyond is not None:
                raise InputError(f"there is no {name} {beyond} to trace; this run has {name}s 0 to {count - 1}")

    def narrowed(self, application: "Application") -> "TraceRequest":
        """The same, of fewer ranks and steps where what is not chosen would make a trace of more than MAX_ROWS rows.

        Ranks are then those that the application takes for the others, steps as many as fit, in the middle of the run.
        """
        behaviour = application.on()
        ranks = range(application.ranks) if self.ranks is None else self.ranks
        steps = range(application.steps) if self.steps is None else self.steps
        if behaviour.trace_rows(ranks, steps) <= MAX_ROWS:
            return self
        request = self
        if self.ranks is None:
            request = replace(request, ranks=behaviour.trace_ranks())
            ranks = request.ranks or ()
        if self.steps is None and behaviour.trace_rows(ranks, steps) > MAX_ROWS:
            request = replace(request, steps=_middle_steps(application, ranks))
        return request

    def to_core(self, ranks: int) -> tuple[Sequence[int], Sequence[int] | None]:
        return (range(ranks) if self.ranks is None else self.ranks), self.steps


def _middle_steps(application: "Application", ranks: "Sequence[int]") -> tuple[int, ...]:
    """As many steps in the middle of the run as make at most MAX_ROWS rows, and at least one."""
    steps, behaviour = application.steps, application.on()

    def middle(count: int) -> range:
        first = (steps - count) // 2
        return range(first, first + count)

    counts = range(1, steps + 1)
    most = bisect_left(counts, True, key=lambda count: behaviour.trace_rows(ranks, middle(count)) > MAX_ROWS)
    return tuple(middle(max(1, most)))


@dataclass(frozen=True, eq=False)
class RunBreakdown:
    """Where the time of all ranks of a run went, in seconds; computing is split by kernel in Prediction.kernel_time_s.

    Arrays are made when they are asked for, or sent elsewhere: NumPy takes 0.1 s to import, mostly for nothing.

    ranks   : its number of ranks; ranks * time_s is the sum of total_s
    total_s : seconds over all ranks by category; "other" is what ranks wait at the end for the last one
    """

    time_s: float
    ranks: int
    total_s: dict[str, float]
    _by_rank_s: "Callable[[], npt.NDArray[Any]]" = field(repr=False)
    _by_step_s: "Callable[[], npt.NDArray[Any]]" = field(repr=False)

    @cached_property
    def by_rank_s(self) -> "npt.NDArray[Any]":
        """Shape (ranks, 6), columns as in CATEGORIES; a row adds up to when that rank had finished."""
        return self._by_rank_s()

    @cached_property
    def by_step_s(self) -> "npt.NDArray[Any]":
        """The same over all ranks, shape (1 + steps, 6), what is outside of any step first; empty without a trace."""
        return self._by_step_s()

    def __reduce__(self) -> "tuple[Any, ...]":
        arrays = (partial(_same, self.by_rank_s), partial(_same, self.by_step_s))
        return RunBreakdown, (self.time_s, self.ranks, self.total_s, *arrays)

    @property
    def shares(self) -> dict[str, float]:
        """The same as shares of the time of all ranks; they add up to 1."""
        whole = fsum(self.total_s.values())
        return {name: value / whole if whole else 0.0 for name, value in self.total_s.items()}


def breakdown_of_run(result: "_core.RunResult", ranks: int) -> RunBreakdown:
    total = dict(zip(CATEGORIES, result.total_shares_s, strict=True))
    other = max(0.0, ranks * result.time_s - fsum(total.values()))
    return RunBreakdown(result.time_s, ranks, {**total, "other": other}, result.rank_shares_s, result.step_shares_s)


def _same(array: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    return array


def nodes_of(platform: "Platform", cores: "Sequence[int]") -> dict[str, Any]:
    """Node facts for the metadata of a trace: of each rank the index of its own, and the number of the first."""
    return {"nodes": [core // platform.nodes.cores for core in cores], "first_node": platform.nodes.first_number}


def trace_of_run(result: "_core.RunResult", metadata: dict[str, Any]) -> "Trace":
    """The trace of a run that was traced; the result then has its rows no longer.

    metadata : of the run; the time of all ranks by category joins it, in all and for each step
    """
    from lepaute.simulate.trace import trace_of_columns

    outside, *steps = result.step_shares_s().tolist()
    everything = {
        "categories": list(CATEGORIES),
        "total_s": result.total_shares_s,
        "outside_steps_s": outside,
        "step_s": [[float(f"{value:.6g}") for value in row] for row in steps],
    }
    return trace_of_columns(
        result.take_trace_columns(),
        result.trace_names,
        {"source": "simulation", **metadata, "time_s": result.time_s, "all_ranks": everything},
        "simulation",
    )

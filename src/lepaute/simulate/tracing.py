"""What to trace of a simulated run, the trace of it, and where the time of all its ranks went."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lepaute import _core
from lepaute.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lepaute.simulate.hpl import Hpl
    from lepaute.trace import Trace

#: Of the engine, in its order; "other" stands beside them: waiting for the last rank at the end.
CATEGORIES = ("compute", "overhead", "late", "transfer", "contention", "probe")

#: About as many rows does a trace get unless its ranks and steps are chosen: a Perfetto file of some 200 MB.
MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Which ranks and which steps (panels, from 0) of a run to trace; None means all.

    Without steps, what is outside of any step (the triangular solve) is traced as well.
    """

    ranks: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None

    def check(self, hpl: "Hpl") -> None:
        """Raises InputError for a rank or a step that the run does not have."""
        for name, chosen, count in (("rank", self.ranks, hpl.ranks), ("step", self.steps, hpl.steps)):
            beyond = next((number for number in chosen or () if not 0 <= number < count), None)
            if beyond is not None:
                raise InputError(f"there is no {name} {beyond} to trace; this run has {name}s 0 to {count - 1}")

    def narrowed(self, hpl: "Hpl") -> "TraceRequest":
        """The same, of fewer ranks and steps where what is not chosen would make a trace of more than MOST_ROWS rows.

        Ranks are then those of the first process row and the first process column, steps as many as fit, in the middle
        of the run.
        """
        ranks = range(hpl.ranks) if self.ranks is None else self.ranks
        steps = range(hpl.steps) if self.steps is None else self.steps
        if rows_of(hpl, ranks, steps) <= MOST_ROWS:
            return self
        found = self
        if self.ranks is None:
            found = replace(found, ranks=edge_ranks(hpl))
            ranks = found.ranks or ()
        if self.steps is None and rows_of(hpl, ranks, steps) > MOST_ROWS:
            found = replace(found, steps=middle_steps(hpl, ranks))
        return found


def edge_ranks(hpl: "Hpl") -> tuple[int, ...]:
    """The ranks of the first process row and of the first process column."""
    by_row = hpl.pmap == "row"
    row = (column if by_row else column * hpl.p for column in range(hpl.q))
    column = (row * hpl.q if by_row else row for row in range(hpl.p))
    return tuple(sorted({*row, *column}))


def middle_steps(hpl: "Hpl", ranks: "Sequence[int]") -> tuple[int, ...]:
    """As many steps in the middle of the run as make at most MOST_ROWS rows, and at least one."""
    steps = hpl.steps
    low, high = 1, steps
    while low < high:
        count = (low + high + 1) // 2
        first = (steps - count) // 2
        if rows_of(hpl, ranks, range(first, first + count)) <= MOST_ROWS:
            low = count
        else:
            high = count - 1
    first = (steps - low) // 2
    return tuple(range(first, first + low))


def rows_of(hpl: "Hpl", ranks: "Sequence[int]", steps: "Sequence[int]") -> float:
    """Rows of a trace of these ranks and steps, about."""
    of_column = [0] * hpl.q
    for rank in ranks:
        of_column[rank % hpl.q if hpl.pmap == "row" else rank // hpl.p] += 1
    rounds = hpl.p.bit_length() - 1
    panel = hpl.nb * (9 + 3 * rounds)  # of each column: kernels, and three calls a round of the pivot exchange
    swap = 3 * (rounds if hpl.swap == "binary-exchange" else hpl.p + rounds)
    total = 0.0
    for step in steps:
        pieces = 1.0 + (hpl.n - step * hpl.nb) / (hpl.nb * hpl.q)  # of an update, with a probe after each
        total += of_column[step % hpl.q] * panel + len(ranks) * (10 + swap + 4 * pieces)
    return total


@dataclass(frozen=True, slots=True)
class RunBreakdown:
    """Where the time of all ranks of a run went, in seconds; computing is split by kernel in Prediction.kernel_time_s.

    time_s  : of the run
    ranks   : its number of ranks; ranks * time_s is the sum of total_s
    total_s : seconds over all ranks by category; "other" is what ranks wait at the end for the last one
    """

    time_s: float
    ranks: int
    total_s: dict[str, float]
    result: _core.RunResult

    @property
    def by_rank_s(self) -> "NDArray[Any]":
        """Shape (ranks, 6), columns as in CATEGORIES; a row adds up to when that rank had finished."""
        return self.result.rank_shares_s()

    @property
    def by_step_s(self) -> "NDArray[Any]":
        """The same over all ranks, shape (1 + steps, 6), what is outside of any step first; empty without a trace."""
        return self.result.step_shares_s()

    @property
    def shares(self) -> dict[str, float]:
        """The same as shares of the time of all ranks; they add up to 1."""
        whole = sum(self.total_s.values())
        return {name: value / whole if whole else 0.0 for name, value in self.total_s.items()}


def breakdown_of_run(result: _core.RunResult, ranks: int) -> RunBreakdown:
    """Where the time of a run went."""
    total = dict(zip(CATEGORIES, result.total_shares_s, strict=True))
    other = max(0.0, ranks * result.time_s - sum(total.values()))
    return RunBreakdown(result.time_s, ranks, {**total, "other": other}, result)


def trace_of_run(result: _core.RunResult, metadata: dict[str, Any]) -> "Trace":
    """The trace of a run that was traced; the result then has its rows no longer.

    metadata : of the run; the time of all ranks by category joins it, in all and for each step
    """
    from lepaute.trace import trace_of_columns

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

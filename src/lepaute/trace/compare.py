"""Two traces of the same program, call by call.

Calls are compared within a rank and a stream: kernels, point-to-point messages, collective operations. Probes and
tests are counted only, since how often a rank looks depends on how long it waits. Three questions, each with its own
rule:

- Are the calls the same, in the same order? The sequences of keys: kernels (name), messages (name, peer).
- Are the sizes the same? Of sequences that are equal, position by position; sizes are (m, n, k), and bytes.
- Are the durations the same? The i-th call of a name, peer and size on the left with the i-th on the right, so that
  one call more on one side shifts nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.trace.messages import IMMEDIATE_SENDS, PROBES, RECEIVES, SENDS, WAITS, pair_by_key
from lepaute.trace.table import KERNEL, MPI, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

STREAMS = ("kernels", "messages", "collectives")
KERNELS, MESSAGES, COLLECTIVES = range(len(STREAMS))
POINT_TO_POINT = SENDS | IMMEDIATE_SENDS | RECEIVES | WAITS | {"MPI_Irecv"}

#: HPL's loops for a U that is not transposed, which simulations name like those for a transposed one.
SAME_KERNEL = {f"dlaswp0{number}N": f"dlaswp0{number}T" for number in (1, 3, 4, 5, 6)}

PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the sequences of a rank first differ, in words; position counts the calls of that rank and stream."""

    rank: int
    stream: str
    position: int
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """All calls of one name on both sides.

    left_s, right_s  : their time in all
    same_sizes       : how many calls have the same sizes at the same position, None where the numbers of calls differ
    paired           : calls whose durations could be compared
    ratio_percentiles: of right / left over those pairs, at PERCENTILES; empty without pairs
    total_ratio      : right / left of the time of those pairs, NaN without
    """

    name: str
    stream: str
    left_calls: int
    right_calls: int
    left_s: float
    right_s: float
    left_bytes: float
    right_bytes: float
    same_sizes: int | None
    paired: int
    ratio_percentiles: tuple[float, ...]
    total_ratio: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """See the head of this file.

    ranks       : those that both traces have
    one_side    : names that only one side has, with the number of calls on the left and on the right; they take no
                  part in the order
    first       : of each rank and stream the first difference in order, where there is one
    first_size  : of each rank and stream with the same order the first difference in size
    probes      : number of probes on the left and on the right
    time_s      : length of the two traces
    """

    ranks: tuple[int, ...]
    classes: tuple[ClassComparison, ...]
    one_side: tuple[tuple[str, int, int], ...]
    first: tuple[Difference, ...]
    first_size: tuple[Difference, ...]
    probes: tuple[int, int]
    time_s: tuple[float, float]

    @property
    def same_calls(self) -> bool:
        """Whether every rank made the same calls in the same order, of those that both sides know."""
        return not self.first

    @property
    def same_sizes(self) -> bool:
        """Whether they had the same sizes too."""
        return self.same_calls and not self.first_size


def compare_traces(left: Trace, right: Trace) -> Comparison:
    """Compares two traces; raises InputError where they have no rank in common."""
    ranks = sorted(set(left.ranks) & set(right.ranks))
    if not ranks:
        raise InputError("the two traces have no rank in common; they are of different runs, or of chosen ranks")
    sides = (_Side(left, ranks), _Side(right, ranks))
    names = sorted({name for side in sides for name in side.streams})
    counts = [(name, sides[0].calls.get(name, 0), sides[1].calls.get(name, 0)) for name in names]
    one_side = tuple(count for count in counts if 0 in count)
    both = [count[0] for count in counts if 0 not in count]
    classes = tuple(_class(name, sides) for name in both)
    first, first_size = [], []
    for stream in range(len(STREAMS)):
        for rank in ranks:
            order, extent = _first_difference(sides, rank, stream, set(both))
            first += [order] if order else []
            first_size += [extent] if extent else []
    return Comparison(
        tuple(ranks),
        tuple(sorted(classes, key=lambda one: (STREAMS.index(one.stream), -one.left_s))),
        one_side,
        tuple(first),
        tuple(first_size),
        (sides[0].probes, sides[1].probes),
        (sides[0].span_s, sides[1].span_s),
    )


class _Side:
    """One trace, reduced to the calls that are compared: arrays of the same length in the order of rank and start."""

    def __init__(self, trace: Trace, ranks: list[int]) -> None:
        import numpy

        mine = numpy.isin(trace.rank, ranks)
        probes = trace.named(PROBES) & (trace.kind == MPI)
        self.probes = int((mine & probes).sum())
        used = trace.where(mine & ~probes & ((trace.kind == KERNEL) | (trace.kind == MPI)))
        self.span_s = float(trace.end_s.max() - trace.start_s.min())
        self.trace = used
        names = [SAME_KERNEL.get(name, name) for name in trace.names]
        self.names: NDArray[Any] = numpy.array(names, dtype=object)[used.name] if len(used) else numpy.zeros(0, object)
        self.kernel: NDArray[Any] = used.kind == KERNEL
        is_message = used.named(POINT_TO_POINT)
        self.stream: NDArray[Any] = numpy.where(self.kernel, KERNELS, numpy.where(is_message, MESSAGES, COLLECTIVES))
        self.streams: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        for name in dict.fromkeys(self.names.tolist()):
            rows = self.names == name
            self.calls[name] = int(rows.sum())
            self.streams[name] = int(self.stream[rows][0])
        # A wait stands for its request, whose peer not every writer knows.
        waits = used.named(WAITS)
        self.peer: NDArray[Any] = numpy.where(waits | self.kernel, -1, used.peer)
        self.sizes: NDArray[Any] = numpy.stack(
            [numpy.where(self.kernel, column, 0.0) for column in (used.m, used.n, used.k)]
            + [numpy.where(self.kernel | waits, 0.0, used.size_bytes)],
            axis=1,
        )

    def rows(self, rank: int, stream: int, names: set[str]) -> "NDArray[Any]":
        import numpy

        wanted = (self.trace.rank == rank) & (self.stream == stream)
        return numpy.array([row for row in numpy.flatnonzero(wanted).tolist() if self.names[row] in names], dtype=int)

    def words(self, row: int, with_size: bool) -> str:
        """A call as a person writes it."""
        name, sizes = self.names[row], [f"{value:g}" for value in self.sizes[row]]
        if self.kernel[row]:
            return f"{name}({', '.join(sizes[:3])})" if with_size else str(name)
        peer = f" peer {self.peer[row]}" if self.peer[row] >= 0 else ""
        return f"{name}{peer}" + (f", {sizes[3]} bytes" if with_size else "")


def _first_difference(
    sides: tuple[_Side, _Side], rank: int, stream: int, names: set[str]
) -> tuple[Difference | None, Difference | None]:
    """The first difference in order, or else in size."""
    import numpy

    rows = [side.rows(rank, stream, names) for side in sides]
    length = min(map(len, rows))
    heads = [one[:length] for one in rows]
    differs = (sides[0].names[heads[0]] != sides[1].names[heads[1]]) | (
        sides[0].peer[heads[0]] != sides[1].peer[heads[1]]
    )
    position = int(numpy.argmax(differs)) if differs.any() else length
    if differs.any() or len(rows[0]) != len(rows[1]):
        words = [
            side.words(int(one[position]), False) if position < len(one) else "(the end)"
            for side, one in zip(sides, rows, strict=True)
        ]
        return Difference(rank, STREAMS[stream], position, *words), None
    other = (sides[0].sizes[heads[0]] != sides[1].sizes[heads[1]]).any(axis=1) if length else numpy.zeros(0, bool)
    if not other.any():
        return None, None
    position = int(numpy.argmax(other))
    words = [side.words(int(one[position]), True) for side, one in zip(sides, rows, strict=True)]
    return None, Difference(rank, STREAMS[stream], position, *words)


def _class(name: str, sides: tuple[_Side, _Side]) -> ClassComparison:
    import numpy

    rows = [numpy.flatnonzero(side.names == name) for side in sides]
    same_sizes = None
    per_rank = [numpy.bincount(side.trace.rank[one]) for side, one in zip(sides, rows, strict=True)]
    if len(per_rank[0]) == len(per_rank[1]) and (per_rank[0] == per_rank[1]).all():
        # Rows are in the order of the ranks: equal numbers in each put equal positions side by side.
        same_sizes = int((sides[0].sizes[rows[0]] == sides[1].sizes[rows[1]]).all(axis=1).sum())
    keys = [
        numpy.column_stack((side.trace.rank[one], side.peer[one], side.sizes[one]))
        for side, one in zip(sides, rows, strict=True)
    ]
    at = pair_by_key(keys[0], keys[1])
    durations = [side.trace.duration_s[one[i]] for side, one, i in zip(sides, rows, at, strict=True)]
    usable = (durations[0] > 0) & (durations[1] > 0)
    ratios = durations[1][usable] / durations[0][usable]
    return ClassComparison(
        name=name,
        stream=STREAMS[sides[0].streams[name]],
        left_calls=len(rows[0]),
        right_calls=len(rows[1]),
        left_s=float(sides[0].trace.duration_s[rows[0]].sum()),
        right_s=float(sides[1].trace.duration_s[rows[1]].sum()),
        left_bytes=float(sides[0].sizes[rows[0], 3].sum()),
        right_bytes=float(sides[1].sizes[rows[1], 3].sum()),
        same_sizes=same_sizes,
        paired=len(ratios),
        ratio_percentiles=tuple(map(float, numpy.percentile(ratios, PERCENTILES))) if len(ratios) else (),
        total_ratio=float(durations[1].sum() / durations[0].sum()) if durations[0].sum() > 0 else float("nan"),
    )


def parameters_that_differ(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """What the metadata of the two say differently of the program, in words; empty where one does not say."""
    one, other = left.get("parameters"), right.get("parameters")
    if not isinstance(one, dict) or not isinstance(other, dict):
        return []
    return [f"{key}: {one[key]} and {other[key]}" for key in one if key in other and one[key] != other[key]]

"""Two traces of the same program, call by call.

What a program does may depend on when messages come, and a comparison that took that for a difference would find
nothing else. So, before anything is compared:

- Probes, tests and MPI_Waitsome are counted only: how often a rank looks depends on how long it waits.
- Calls with MPI_PROC_NULL are counted only: they move nothing.
- Kernels that have nothing to do (a size of 0) are counted only: HPL makes them while it looks for a panel, for the
  first block of a panel, and where a process has no rows left; a simulation has none.
- The pieces in which a rank does an update (phase "pdupdate"), looking for a panel after each, are put together: one
  call of each kernel, whose n (of dtrsm m) is the sum.
- Time of which only the passing is known (kernel `computing`, in what SMPI writes) takes no part.
- Calls whose sizes one of the traces does not know (its metadata `unsized`) are compared without sizes and roots.
- Messages are compared partner by partner: which of two partners is answered first is no property of the program.

Three questions remain, each with its own rule:

- Are the calls the same, in the same order? Of each rank the names of its kernels, of each partner the names of the
  MPI calls.
- Are the sizes the same? Where the order is equal, position by position; (m, n, k), or bytes.
- Are the durations the same? The i-th call of a name, partner and size on the left with the i-th on the right, so that
  one call more on one side shifts nothing else.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.simulate.trace.messages import IMMEDIATE, PROBES, RECEIVES, RECORDED, SENDS, WAITS, pair_by_key
from lepaute.simulate.trace.table import BETWEEN_CALLS, KERNEL, MPI, NOBODY, PHASE, Trace

STREAMS = ("kernels", "messages", "collectives")
KERNELS, MESSAGES, COLLECTIVES = range(len(STREAMS))
POINT_TO_POINT = SENDS | IMMEDIATE | RECEIVES | WAITS

#: HPL's loops for a U that is not transposed, which simulations name like those for a transposed one.
SAME_KERNEL = {f"dlaswp0{number}N": f"dlaswp0{number}T" for number in (1, 3, 4, 5, 6)}

#: Parts of the names of kernels that work on a matrix; the m of others is always 0.
WITH_ROWS = ("gemm", "trsm", "gemv", "ger", "laswp", "latcpy", "lacpy")

PERCENTILES = (5, 25, 50, 75, 95)
#: Names that an explanation lists.
MAX_NAMES = 4
SMPI_LACKS = (
    "MPI_Iprobe, MPI_Waitsome, the creation of communicators and MPI_Sendrecv with MPI_PROC_NULL; `lepaute emulate "
    "--trace` has them"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the sequences of a rank first differ, in words; position counts the calls of that rank and stream.

    why: how the whole sequences differ, and what one of the traces does not know
    """

    rank: int
    stream: str
    position: int
    left: str
    right: str
    why: str


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """All calls of one name on both sides, pieces of an update put together.

    same_sizes       : how many calls have the same sizes at the same position, None if the numbers of calls differ
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

    one_side    : names that only one side has, with the number of calls left and right, and why; not in the order
    first       : of each rank and stream the first difference in order, where there is one
    first_size  : of each rank and stream with the same order the first difference in size
    probes, idle, nobody: numbers of probes, of kernels without work, of calls with MPI_PROC_NULL, left and right
    """

    ranks: tuple[int, ...]
    classes: tuple[ClassComparison, ...]
    one_side: tuple[tuple[str, int, int, str], ...]
    first: tuple[Difference, ...]
    first_size: tuple[Difference, ...]
    probes: tuple[int, int]
    idle: tuple[int, int]
    nobody: tuple[int, int]
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
    """Compares two traces; raises InputError if they have no rank in common."""
    ranks = sorted(set(left.ranks) & set(right.ranks))
    if not ranks:
        raise InputError("the two traces have no rank in common; compare traces of the same run and of the same ranks")
    unsized = frozenset((*left.metadata.get("unsized", ()), *right.metadata.get("unsized", ())))
    sides = (_side_of(left, ranks, unsized), _side_of(right, ranks, unsized))
    names = sorted({name for side in sides for name in side.calls})
    counts = [(name, sides[0].calls.get(name, 0), sides[1].calls.get(name, 0)) for name in names]
    both = [count[0] for count in counts if 0 not in count]
    differences = list(_differences(sides, frozenset(both)))
    classes = [_class(name, sides) for name in both]
    return Comparison(
        ranks=tuple(ranks),
        classes=tuple(sorted(classes, key=lambda one: (STREAMS.index(one.stream), -one.left_s))),
        one_side=tuple((*count, _why_missing(count[0], sides[count[1] > 0])) for count in counts if 0 in count),
        first=tuple(one for one, is_size in differences if not is_size),
        first_size=tuple(one for one, is_size in differences if is_size),
        probes=(sides[0].probes, sides[1].probes),
        idle=(sides[0].idle, sides[1].idle),
        nobody=(sides[0].nobody, sides[1].nobody),
        time_s=(sides[0].span_s, sides[1].span_s),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """The calls of one trace that are compared: arrays of the same length, in the order of rank and start.

    sizes: shape (calls, 4): m, n, k of kernels, bytes of messages; 0 elsewhere
    peer : of messages, -1 elsewhere
    """

    rank: NDArray[Any]
    name: NDArray[Any]
    stream: NDArray[Any]
    peer: NDArray[Any]
    sizes: NDArray[Any]
    duration_s: NDArray[Any]
    calls: dict[str, int]
    probes: int
    idle: int
    nobody: int
    span_s: float
    is_smpi: bool

    def words(self, row: int, with_size: bool) -> str:
        """A call as a person writes it."""
        name, sizes = self.name[row], [f"{value:.12g}" for value in self.sizes[row]]
        if not with_size:
            return str(name)
        return f"{name}({', '.join(sizes[:3])})" if self.stream[row] == KERNELS else f"{name} of {sizes[3]} bytes"


def without_work(trace: Trace) -> NDArray[Any]:
    """Which rows are kernels on empty operands; shape (rows,), bool."""
    empty: NDArray[Any] = (
        (trace.n == 0) | ((trace.m == 0) & _of(trace, WITH_ROWS)) | ((trace.k == 0) & _of(trace, ("gemm",)))
    )
    empty &= (trace.kind == KERNEL) & ~trace.named(BETWEEN_CALLS)
    return empty


def _side_of(trace: Trace, ranks: list[int], unsized: frozenset[str]) -> _Side:
    mine = numpy.isin(trace.rank, ranks)
    probes = trace.named(PROBES | {"MPI_Waitsome"}) & (trace.kind == MPI)
    nobody = (trace.kind == MPI) & (trace.peer == NOBODY)
    anonymous = (trace.kind == KERNEL) & trace.named(BETWEEN_CALLS)
    idle = without_work(trace)
    used = trace.where(mine & ~probes & ~nobody & ~idle & ~anonymous & (trace.kind != PHASE))
    updates = trace.where(mine & (trace.kind == PHASE) & trace.named(("pdupdate",)))
    is_kernel = used.kind == KERNEL
    # A wait stands for its request, whose peer and size not every writer knows.
    waits = used.named(WAITS) | used.named(unsized - POINT_TO_POINT)
    sizes = numpy.stack(
        [numpy.where(is_kernel, column, 0.0) for column in (used.m, used.n, used.k)]
        + [numpy.where(is_kernel | waits | used.named(unsized), 0.0, used.size_bytes)],
        axis=1,
    )
    names = numpy.array([SAME_KERNEL.get(name, name) for name in trace.names] or [""], dtype=object)
    first, sizes, duration_s = _put_together(used, is_kernel, updates, sizes)
    name = names[used.name[first]]
    return _Side(
        rank=used.rank[first],
        name=name,
        stream=numpy.where(is_kernel, KERNELS, numpy.where(used.named(POINT_TO_POINT), MESSAGES, COLLECTIVES))[first],
        peer=numpy.where(waits | is_kernel, -1, used.peer)[first],
        sizes=sizes,
        duration_s=duration_s,
        calls=dict(Counter(name.tolist())),
        probes=int(numpy.maximum(trace.n[mine & probes], 1.0).sum()),
        idle=int((mine & idle).sum()),
        nobody=int((mine & nobody & ~probes).sum()),
        span_s=float(trace.end_s.max() - trace.start_s.min()),
        is_smpi=bool(trace.metadata.get("unsized")) and trace.metadata.get("calls") != "recorded",
    )


def _of(trace: Trace, parts: tuple[str, ...]) -> NDArray[Any]:
    """Which calls have a name with one of these parts."""
    return trace.named(name for name in trace.names if any(part in name for part in parts))


def _put_together(
    trace: Trace, is_kernel: NDArray[Any], updates: Trace, sizes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows to keep, and their sizes and durations: of each kernel in an update the first, with the sum of n and of
    time; of dtrsm, whose triangle is on the right, of m: there it counts columns of the update. The other sizes stay
    where all pieces have the same, else they are the sum as well."""
    group = numpy.arange(len(trace)) + len(updates) * (len(trace.names) + 1)  # each on its own
    for rank in updates.ranks:
        in_rank = updates.rank == rank
        start_s, end_s = updates.start_s[in_rank], updates.end_s[in_rank]
        first_of_rank = int(numpy.argmax(in_rank))
        rows = numpy.flatnonzero((trace.rank == rank) & is_kernel)
        place = numpy.searchsorted(start_s, trace.start_s[rows], side="right") - 1
        inside = (place >= 0) & (trace.start_s[rows] < end_s[place.clip(0)])
        chosen = rows[inside]
        group[chosen] = (first_of_rank + place[inside]) * len(trace.names) + trace.name[chosen]
    _, first, member = numpy.unique(group, return_index=True, return_inverse=True)
    member = member.reshape(-1)
    made = numpy.empty((len(first), sizes.shape[1]))
    by_m = trace.named(("dtrsm",))[first]
    for column in range(sizes.shape[1]):
        values = sizes[:, column]
        is_same = numpy.ones(len(first), dtype=bool)
        numpy.logical_and.at(is_same, member, values == values[first][member])
        is_sum = ~is_same | (by_m if column == 0 else ~by_m & (column == 1))
        made[:, column] = numpy.where(is_sum, numpy.bincount(member, values, len(first)), values[first])
    order = numpy.argsort(first)
    return first[order], made[order], numpy.bincount(member, trace.duration_s, len(first))[order]


def _differences(sides: tuple[_Side, _Side], names: frozenset[str]) -> Iterator[tuple[Difference, bool]]:
    """The first difference of each stream of a rank, and whether it is one of size only."""
    masks = [numpy.array([name in names for name in side.name.tolist()], dtype=bool) for side in sides]
    keys = [
        numpy.column_stack((side.stream, side.rank, numpy.where(side.stream == MESSAGES, side.peer, -1)))
        for side in sides
    ]
    rows_of = [_rows_by_key(key, one) for key, one in zip(keys, masks, strict=True)]
    none = numpy.zeros(0, dtype=int)
    for key in sorted(rows_of[0].keys() | rows_of[1].keys()):
        rows = [each.get(key, none) for each in rows_of]
        difference = _first_difference(sides, rows)
        if difference is not None:
            position, words, is_size = difference
            stream = STREAMS[key[0]] + (f" with rank {key[2]}" if key[2] >= 0 else "")
            why = _why_sizes(sides, rows) if is_size else _why_calls(sides, rows, key)
            yield Difference(key[1], stream, position, *words, why), is_size


def _rows_by_key(keys: NDArray[Any], mask: NDArray[Any]) -> dict[tuple[int, ...], NDArray[Any]]:
    rows = numpy.flatnonzero(mask)
    if not len(rows):
        return {}
    distinct, code = numpy.unique(keys[rows], axis=0, return_inverse=True)
    code = code.reshape(-1)
    parts = numpy.split(rows[numpy.argsort(code, kind="stable")], numpy.cumsum(numpy.bincount(code))[:-1])
    return dict(zip(map(tuple, distinct.tolist()), parts, strict=True))


def _first_difference(sides: tuple[_Side, _Side], rows: list[NDArray[Any]]) -> tuple[int, tuple[str, str], bool] | None:
    """Position, the two calls in words, and whether only their sizes differ; None if nothing does."""
    length = min(map(len, rows))
    heads = [row[:length] for row in rows]

    def words(position: int, with_size: bool) -> tuple[str, str]:
        one, other = (
            side.words(int(side_rows[position]), with_size) if position < len(side_rows) else "(the end)"
            for side, side_rows in zip(sides, rows, strict=True)
        )
        return one, other

    differs = sides[0].name[heads[0]] != sides[1].name[heads[1]]
    if differs.any() or len(rows[0]) != len(rows[1]):
        position = int(numpy.argmax(differs)) if differs.any() else length
        return position, words(position, with_size=False), False
    other = (sides[0].sizes[heads[0]] != sides[1].sizes[heads[1]]).any(axis=1)
    if not other.any():
        return None
    position = int(numpy.argmax(other))
    return position, words(position, with_size=True), True


def _why_calls(sides: tuple[_Side, _Side], rows: list[NDArray[Any]], key: tuple[int, ...]) -> str:
    counts = [Counter(side.name[one].tolist()) for side, one in zip(sides, rows, strict=True)]
    differing = [name for name in sorted(counts[0] | counts[1]) if counts[0][name] != counts[1][name]]
    if not differing:
        return "the same calls in another order"
    reasons = [f"{name} {counts[0][name]} and {counts[1][name]}" for name in differing[:MAX_NAMES]]
    if len(differing) > MAX_NAMES:
        reasons.append(f"{len(differing) - MAX_NAMES} more")
    text = "numbers of calls: " + ", ".join(reasons)
    for side, which in zip(sides, ("left", "right"), strict=True):
        nobody = (side.rank == key[1]) & (side.peer < 0) & (side.stream == MESSAGES)
        unknown = sorted(set(side.name[numpy.flatnonzero(nobody)].tolist()) & set(differing) - WAITS)
        if key[0] == MESSAGES and unknown:
            text += f"; the {which} trace does not know the partners of {', '.join(unknown)}"
        elif side.is_smpi:
            text += f"; the {which} trace is SMPI's own, which lacks some calls: {SMPI_LACKS}"
    return text


def _why_sizes(sides: tuple[_Side, _Side], rows: list[NDArray[Any]]) -> str:
    """How many calls of two sequences with the same names differ in size, and which."""
    unequal = (sides[0].sizes[rows[0]] != sides[1].sizes[rows[1]]).any(axis=1)
    names = Counter(sides[0].name[rows[0][unequal]].tolist())
    text = f"{int(unequal.sum())} of {len(unequal)} calls: " + ", ".join(
        f"{name} {count}" for name, count in names.most_common(MAX_NAMES)
    )
    if any("swp" in name or name == "MPI_Send" for name in names) and "dlocswp" in sides[0].calls:
        text += "; sizes of row swaps follow the pivots, which a simulation draws at random"
    return text


def _why_missing(name: str, lacking: _Side) -> str:
    if name.startswith("MPI_"):
        if lacking.is_smpi:
            return f"SMPI's own trace lacks {SMPI_LACKS}"
        return "the other program made none" if name in RECORDED else "the other trace does not record it"
    if not any(lacking.stream == KERNELS):
        return "the other trace holds no kernels"
    return "the other trace names no such kernel: a part of it, or the code around, may stand under another name"


def _class(name: str, sides: tuple[_Side, _Side]) -> ClassComparison:
    rows = [numpy.flatnonzero(side.name == name) for side in sides]
    same_sizes = None
    per_rank = [numpy.bincount(side.rank[one]) for side, one in zip(sides, rows, strict=True)]
    if len(per_rank[0]) == len(per_rank[1]) and (per_rank[0] == per_rank[1]).all():
        # Within a rank by partner, see the head of this file.
        ordered = [
            one[numpy.lexsort((one, side.peer[one], side.rank[one]))] for side, one in zip(sides, rows, strict=True)
        ]
        same_sizes = int((sides[0].sizes[ordered[0]] == sides[1].sizes[ordered[1]]).all(axis=1).sum())
    keys = [
        numpy.column_stack((side.rank[one], side.peer[one], side.sizes[one]))
        for side, one in zip(sides, rows, strict=True)
    ]
    at = pair_by_key(keys[0], keys[1])
    durations = [side.duration_s[one[i]] for side, one, i in zip(sides, rows, at, strict=True)]
    usable = (durations[0] > 0) & (durations[1] > 0)
    ratios = durations[1][usable] / durations[0][usable]
    return ClassComparison(
        name=name,
        stream=STREAMS[int(sides[0].stream[rows[0][0]])],
        left_calls=len(rows[0]),
        right_calls=len(rows[1]),
        left_s=float(sides[0].duration_s[rows[0]].sum()),
        right_s=float(sides[1].duration_s[rows[1]].sum()),
        left_bytes=float(sides[0].sizes[rows[0], 3].sum()),
        right_bytes=float(sides[1].sizes[rows[1], 3].sum()),
        same_sizes=same_sizes,
        paired=len(ratios),
        ratio_percentiles=tuple(map(float, numpy.percentile(ratios, PERCENTILES))) if len(ratios) else (),
        total_ratio=float(durations[1].sum() / durations[0].sum()) if durations[0].sum() > 0 else float("nan"),
    )


def parameters_that_differ(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """Differences in the program by the metadata of both, in words; empty if one does not say."""
    one, other = left.get("parameters"), right.get("parameters")
    if not isinstance(one, dict) or not isinstance(other, dict):
        return []
    return [f"{key}: {one[key]} and {other[key]}" for key in one if key in other and one[key] != other[key]]

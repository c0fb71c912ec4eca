"""The trace as a value: a table with a row for each call, held as columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

FORMAT = "lepaute-trace/1"
KINDS = ("kernel", "mpi", "phase")
KERNEL, MPI, PHASE = range(3)

#: Where the time of a rank goes. "late" is the other side's: a receive before its send, a blocking send before its
#: receive, a collective operation before the others came. "own_code" is the program's outside of all calls; "other" is
#: what nothing accounts for, such as waiting for the end.
CATEGORIES = ("compute", "overhead", "late", "transfer", "contention", "probe", "own_code", "other")

#: Column, type, and the value where it means nothing. kind and name are stored as text, held as codes.
NUMBERS = (
    ("rank", "int32", None),
    ("step", "int32", -1),
    ("start_s", "float64", None),
    ("duration_s", "float64", None),
    ("m", "float64", 0.0),
    ("n", "float64", 0.0),
    ("k", "float64", 0.0),
    ("size_bytes", "float64", 0.0),
    ("peer", "int32", -1),
    ("tag", "int64", -1),
    ("comm", "int32", -1),
    ("completion", "int32", -1),
    ("late_s", "float64", float("nan")),
    ("transfer_s", "float64", float("nan")),
    ("contention_s", "float64", float("nan")),
)
TEXTS = ("kind", "name")
#: The peer of calls with MPI_PROC_NULL: they move nothing.
NOBODY = -2
#: The kernel of which only the passing of time is known: the program's own code.
COMPUTING = "computing"
#: No date is later, and no size larger: both are written in nanoseconds and bytes.
MOST_S, MOST_SIZE = 1e9, 1e18


@dataclass(frozen=True, slots=True)
class Trace:
    """Calls in the order of rank, then start, phases (the longer first) before calls; columns have the same length.

    kind, name        : codes into KINDS and names
    step              : number of the panel, -1 where there is none
    start_s           : since the start of the timed region
    m, n, k           : of kernels, 0 elsewhere; size_bytes of MPI calls, 0 elsewhere. A probe that found nothing may
                        stand for n successive ones
    peer, tag         : -1 where there is none; peer NOBODY for MPI_PROC_NULL
    comm              : of collective operations the group of ranks: 0 all, 1, 2, ... others, the same number on all
                        members; -1 where that is not known
    completion        : the same number within a rank on a request and on the call that completed it, -1 elsewhere
    late_s, transfer_s, contention_s : parts of the duration of an MPI call, NaN where they are not known
    metadata          : source, application, parameters, platform, seed, ranks, ...
    """

    kind: "NDArray[Any]"
    name: "NDArray[Any]"
    names: tuple[str, ...]
    rank: "NDArray[Any]"
    step: "NDArray[Any]"
    start_s: "NDArray[Any]"
    duration_s: "NDArray[Any]"
    m: "NDArray[Any]"
    n: "NDArray[Any]"
    k: "NDArray[Any]"
    size_bytes: "NDArray[Any]"
    peer: "NDArray[Any]"
    tag: "NDArray[Any]"
    comm: "NDArray[Any]"
    completion: "NDArray[Any]"
    late_s: "NDArray[Any]"
    transfer_s: "NDArray[Any]"
    contention_s: "NDArray[Any]"
    metadata: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.rank)

    def __repr__(self) -> str:
        ends = f", {float(self.end_s.max()):.3g} s" if len(self) else ""
        return f"<Trace: {len(self)} calls of {len(self.ranks)} ranks{ends}>"

    def _repr_html_(self) -> str:
        import numpy

        shown = self.where(numpy.arange(min(10, len(self)))).to_frame().to_html(index=False)
        return f"<div><b>{escape(repr(self)[1:-1])}</b>{shown}</div>"

    def to_frame(self) -> "pandas.DataFrame":
        """A row a call, with the columns of the file: kind and name as categories, all others numbers."""
        import pandas

        texts = {
            "kind": pandas.Categorical.from_codes(self.kind.astype("int64"), categories=pandas.Index(KINDS)),
            "name": pandas.Categorical.from_codes(self.name.astype("int64"), categories=pandas.Index(self.names)),
        }
        return pandas.DataFrame({**texts, **{name: getattr(self, name) for name, _, _ in NUMBERS}})

    @property
    def end_s(self) -> "NDArray[Any]":
        """When each call ended."""
        ends: NDArray[Any] = self.start_s + self.duration_s
        return ends

    @property
    def ranks(self) -> list[int]:
        """The ranks that have rows, in order."""
        import numpy

        return [int(rank) for rank in numpy.unique(self.rank)]

    @property
    def is_recording(self) -> bool:
        """Whether a real program ran."""
        return self.metadata.get("source") == "recording"

    def named(self, names: Iterable[str] | str) -> "NDArray[Any]":
        """Which rows have one of these names, or this name; shape (rows,), bool."""
        import numpy

        chosen = {names} if isinstance(names, str) else set(names)
        is_wanted = numpy.array([name in chosen for name in self.names] or [False])
        return is_wanted[self.name] if len(self) else numpy.zeros(0, dtype=bool)

    def where(self, mask: "NDArray[Any]") -> "Trace":
        """The rows of a mask (or of indices), in their order."""
        columns = {name: getattr(self, name)[mask] for name in (*TEXTS, *(column for column, _, _ in NUMBERS))}
        return replace(self, **columns)

    def between(self, low_s: float, high_s: float) -> "Trace":
        """The rows that have a part in [low_s, high_s]."""
        return self.where((self.end_s >= low_s) & (self.start_s <= high_s))


def trace_of_columns(
    columns: "Mapping[str, NDArray[Any]]", names: Sequence[str], metadata: Mapping[str, Any], where: str = "trace"
) -> Trace:
    """A trace from arrays, put in order.

    columns: rank, start_s, duration_s, kind (codes into KINDS) and name (codes into names); a column of NUMBERS that is
             missing gets the value that means nothing
    where  : what is being read, for messages
    Raises InputError for a column that is missing, too short, or holds what cannot be.
    """
    import numpy

    rows = len(columns["rank"]) if "rank" in columns else 0
    made: dict[str, NDArray[Any]] = {}
    for name, kind, default in (*NUMBERS, ("kind", "int16", None), ("name", "int32", None)):
        if name in columns:
            made[name] = numpy.ascontiguousarray(columns[name], dtype=kind)
        elif default is None:
            raise InputError(f"{where}: the required column {name} is missing")
        else:
            made[name] = numpy.full(rows, default, dtype=kind)
        if len(made[name]) != rows:
            raise InputError(f"{where}: the column {name} has {len(made[name])} rows, rank has {rows}")
    _check(made, len(names), where)
    # Phases come before what they hold; calls that begin together stay as given: a simulation's may take no time.
    phase = made["kind"] == PHASE
    holds = numpy.where(phase, -1.0 - made["duration_s"], 0.0)
    order = numpy.lexsort((holds, made["start_s"], made["rank"]))
    sorted_columns = {name: made.pop(name)[order] for name in list(made)}  # never two copies of all
    return Trace(**sorted_columns, names=tuple(names), metadata=dict(metadata))


def _check(columns: "Mapping[str, NDArray[Any]]", names: int, where: str) -> None:
    import numpy

    def refuse(bad: "NDArray[Any]", column: str, expected: str) -> None:
        if bad.any():
            row = int(numpy.argmax(bad))
            raise InputError(f"{where}: {column} of row {row} is {columns[column][row]}; it is {expected}")

    refuse(columns["rank"] < 0, "rank", "at least 0")
    refuse(~(numpy.abs(columns["start_s"]) < MOST_S), "start_s", "a number of seconds")
    refuse(~((columns["duration_s"] >= 0) & (columns["duration_s"] < MOST_S)), "duration_s", "at least 0, and seconds")
    for name in ("m", "n", "k", "size_bytes"):
        refuse(~(numpy.abs(columns[name]) < MOST_SIZE), name, "a number")
    refuse((columns["kind"] < 0) | (columns["kind"] >= len(KINDS)), "kind", "kernel, mpi or phase")
    refuse((columns["name"] < 0) | (columns["name"] >= names), "name", "one of the names")

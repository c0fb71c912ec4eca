"""What a campaign measures: operations by name, in a form, with message sizes and reductions; and its request."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from math import isfinite

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.quantities import parse_size
from lepaute.measure.comparison.factors import Factor
from lepaute.measure.design.sizes import stratified_log_uniform

DATATYPE, OPERATOR = "MPI_DOUBLE", "MPI_SUM"
#: Bytes of an element of each datatype.
DATATYPES = {"MPI_BYTE": 1, "MPI_INT8_T": 1, "MPI_INT": 4, "MPI_LONG": 8, "MPI_FLOAT": 4, "MPI_DOUBLE": 8}
_ARITHMETIC = ("MPI_SUM", "MPI_PROD", "MPI_MAX", "MPI_MIN")
_BITWISE = ("MPI_BAND", "MPI_BOR", "MPI_BXOR")
OPERATORS = (*_ARITHMETIC, *_BITWISE, "MPI_LAND", "MPI_LOR")
#: Section 6.9.2 of the standard: that not every operator is for every datatype.
_OPERATORS_OF = {"MPI_BYTE": _BITWISE, "MPI_FLOAT": _ARITHMETIC, "MPI_DOUBLE": _ARITHMETIC}


@dataclass(frozen=True, slots=True)
class Reduction:
    """Datatype and operator of a campaign's reductions, whatever their size: sizes are whole counts of the datatype."""

    datatype: str = DATATYPE
    op: str = OPERATOR

    def __post_init__(self) -> None:
        for option, name, known in (("--datatype", self.datatype, DATATYPES), ("--op", self.op, OPERATORS)):
            if name not in known:
                raise InputError(f"{option} is {name[:40]!r}; choose one of {', '.join(known)}")
        defined = _OPERATORS_OF.get(self.datatype, OPERATORS)
        if self.op not in defined:
            raise InputError(f"MPI does not define {self.op} for {self.datatype}; choose --op {', '.join(defined)}")

    @property
    def element_bytes(self) -> int:
        return DATATYPES[self.datatype]

    def __str__(self) -> str:
        return f"{self.op} of {self.datatype}"


def reduction_of(datatype: str, op: str) -> Reduction:
    """By names in any case, with or without MPI_ before; raises InputError for others."""
    return Reduction(*(f"MPI_{name.strip().upper().removeprefix('MPI_')}" for name in (datatype, op)))


BLOCKING, NONBLOCKING, PERSISTENT, IN_PLACE = "blocking", "nonblocking", "persistent", "in-place"
#: Nonblocking, with work before it is waited for.
OVERLAPPED = "overlapped"
#: Operations that combine elements of a datatype; all others move bytes.
REDUCTIONS = ("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter_block", "Reduce_scatter", "Accumulate")
#: Operations that have a root.
ROOTED = ("Bcast", "Reduce", "Scatter", "Gather", "Scatterv", "Gatherv")
#: Of probe-collectives, as MPI calls them: of all ranks, which MPI_IN_PLACE is for or not, between pairs, one-sided.
_WITH_IN_PLACE = (
    *("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter_block", "Reduce_scatter", "Scatter", "Gather"),
    *("Allgather", "Alltoall", "Scatterv", "Gatherv", "Allgatherv", "Alltoallv", "Alltoallw"),
)
COLLECTIVES = ("Barrier", "Bcast", *_WITH_IN_PLACE, "Neighbor_allgather", "Neighbor_alltoall")
STREAMS = ("Bandwidth", "Bibandwidth")
_ONLY_BLOCKING = ("PingPong", *STREAMS, "Put", "Get", "Accumulate")
OPERATIONS = (*COLLECTIVES, "Send", "Sendrecv", *_ONLY_BLOCKING)
#: Messages of one call of a stream, in each of its directions (probes/point_to_point.h).
STREAM_MESSAGES = 64
UNSIZED = ("Barrier",)
NOTHING = "none"
#: The probe's bounds: of a message, and of what a rank receives from all.
MAX_BYTES, MAX_RESULT_BYTES = 1 << 26, 1 << 30
#: Sizes 10^U beside the powers of two of a range.
BETWEEN = 5
_DOUBLE_BYTES = 8


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """An operation in a form with a size, which one row of a comparison is about."""

    operation: str
    form: str
    size_bytes: int

    def __str__(self) -> str:
        return f"{name_of(self.operation, self.form)} of {self.size_bytes} bytes"


def name_of(operation: str, form: str) -> str:
    """As MPI calls it: Bcast, Ibcast where it is nonblocking, Bcast_init where its requests are persistent."""
    names = {
        NONBLOCKING: f"I{operation.lower()}",
        OVERLAPPED: f"I{operation.lower()} overlapped",
        PERSISTENT: f"{operation}_init",
        IN_PLACE: f"{operation} in place",
    }
    return names.get(form, operation)


def plain_operation(operation: str) -> str:
    """Without the ranks or levels of factors that a comparison has behind it, as in "Bcast, cache=cold"."""
    return operation.partition(", ")[0]


def word_of(operation: str, form: str) -> str:
    """What --ops has for it; empty for what is asked for otherwise."""
    return "" if form == OVERLAPPED else name_of(operation, form).lower().replace(" ", "_")


def forms_of(operation: str) -> tuple[str, ...]:
    """In which it can be asked for; persistent requests of collective operations are new in MPI 4."""
    if operation in _ONLY_BLOCKING:
        return (BLOCKING,)
    return BLOCKING, NONBLOCKING, PERSISTENT, *([IN_PLACE] if operation in _WITH_IN_PLACE else [])


def operations_of(text: str) -> tuple[tuple[str, str], ...]:
    """(operation, form) of a list such as bcast,iallreduce,bcast_init,scan_in_place: MPI's names, in any case.

    Raises InputError for a name that is none.
    """
    known = {word_of(name, form): (name, form) for name in OPERATIONS for form in forms_of(name)}
    chosen = []
    for word in text.split(","):
        name = word.strip().lower().removeprefix("mpi_")
        if name not in known:
            listed = ", ".join(name.lower() for name in OPERATIONS)
            raise InputError(
                f"--ops has {word[:40]!r}; choose of {listed}; with an i before: nonblocking; with _init behind: "
                "persistent; with _in_place behind: MPI_IN_PLACE, where MPI has them"
            )
        chosen.append(known[name])
    return tuple(dict.fromkeys(chosen))


def rows_of(texts: Sequence[str]) -> tuple[tuple[str, str, int], ...]:
    """(operation, form, size) of each OP:SIZE such as bcast:8K; of an operation without sizes OP alone.

    Raises InputError for anything else.
    """
    rows = []
    for text in texts:
        name, _, size = text.partition(":")
        for operation, form in operations_of(name):
            if bool(size) == (operation in UNSIZED):
                raise InputError(f"--primary is {text[:60]!r}; write OP:SIZE, such as bcast:8K")
            rows.append((operation, form, _size(size) if size else 0))
    return tuple(dict.fromkeys(rows))


def with_overlapped(operations: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each nonblocking operation also with work before it is waited for. Raises InputError if none is."""
    overlapped = [(operation, OVERLAPPED) for operation, form in operations if form == NONBLOCKING]
    if not overlapped:
        raise InputError("--compute is for nonblocking operations, and --ops has none; name some, such as iallreduce")
    return *operations, *overlapped


def unused_arguments(operations: Iterable[str]) -> list[str]:
    """Arguments of `measure_libraries` that none of these operations makes anything of."""
    chosen = {*operations}
    users = {"root": ROOTED, "datatype": REDUCTIONS, "op": REDUCTIONS, "sizes": {*OPERATIONS}.difference(UNSIZED)}
    return [name for name, users_of_it in users.items() if chosen.isdisjoint(users_of_it)]


def sizes_of(text: str, seed: int, reduction: Reduction | None = None) -> tuple[int, ...]:
    """Sizes in bytes, increasing: those of a list such as 8,64K; of a range 1:1M the powers of two in it, its ends, and
    BETWEEN sizes 10^U, U uniform in strata, since libraries change their algorithms at powers of two and close to them.

    reduction: of one of the operations; those of a list are whole counts of its datatype, a range has one at least
    Raises InputError for anything else.
    """
    if ":" not in text:
        return tuple(sorted({_counted(_size(word), reduction) for word in text.split(",")}))
    low, high = (_size(word) for word in _ends(text))
    if low > high:
        raise InputError(f"--sizes is {text[:60]!r}; a range must increase, such as 1:1M")
    if reduction and high // reduction.element_bytes * reduction.element_bytes < low:
        _counted(low, reduction)
    powers = {1 << exponent for exponent in range(MAX_BYTES.bit_length()) if low <= 1 << exponent <= high}
    generator = np.random.default_rng([seed, 0])
    unit = reduction.element_bytes if reduction else 1
    drawn = (
        {_whole(size, unit) for size in stratified_log_uniform(generator, BETWEEN, max(1, low), high)}
        if high > max(1, low)
        else set()
    )
    return tuple(sorted(powers | {low, high} | {size for size in drawn if low <= size <= high}))


def _counted(size: int, reduction: Reduction | None) -> int:
    if reduction is None or size % reduction.element_bytes == 0:
        return size
    below = size // reduction.element_bytes * reduction.element_bytes
    nearest = " or ".join(str(each) for each in (below, below + reduction.element_bytes) if each)
    raise InputError(
        f"--sizes has {size} bytes, no whole count of {reduction.datatype} ({reduction.element_bytes} bytes), which is "
        f"reduced; give {nearest}, or another --datatype"
    )


def _ends(text: str) -> tuple[str, str]:
    first, _, last = text.partition(":")
    if not first or not last or ":" in last:
        raise InputError(f"--sizes is {text[:60]!r}; write a range such as 1:1M or a list such as 8,64K")
    return first, last


def _size(word: str) -> int:
    size = parse_size(word.strip(), "--sizes") if word.strip() != "0" else 0
    if size > MAX_BYTES:
        raise InputError(f"--sizes has {word[:40]!r}; the probe sends at most {MAX_BYTES >> 20} MiB")
    return size


def _whole(size: float, unit: int) -> int:
    """A whole number of doubles where that changes the size by a few per cent at most, else of `unit` bytes."""
    whole = round(size)
    unit = _DOUBLE_BYTES if whole >= 8 * _DOUBLE_BYTES else unit
    return whole if whole < unit else whole // unit * unit


def cases_of(
    operations: Sequence[tuple[str, str]], sizes_bytes: Sequence[int], ranks: int, reduction: Reduction
) -> tuple[Case, ...]:
    """Every operation with every size, those without a size once, reductions with those that are whole counts.

    Raises InputError if the results are too large.
    """
    if max(sizes_bytes) * ranks > MAX_RESULT_BYTES:
        raise InputError(f"--sizes up to {max(sizes_bytes)} bytes for {ranks} ranks take more than 1 GiB; give less")
    return tuple(
        Case(operation, form, size)
        for operation, form in operations
        for size in ((0,) if operation in UNSIZED else sizes_bytes)
        if operation not in REDUCTIONS or size % reduction.element_bytes == 0
    )


SYNCHRONISATIONS = ("MPI_Barrier", "dissemination", "double", "window", "round-time")
CLOCKS = ("MPI_Wtime", "clock_gettime", "rdtscp")
CLOCK_METHODS = ("SKaMPI", "Netgauge", "JK", "HCA", "HCA2", "HCA3")
MAX_COMPUTE_S = 1.0
MAX_RANKS, MAX_CALLS, MAX_WARM_UP, MAX_MPIRUNS = 512, 100_000, 1000, 1000


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """The request; a resumed campaign has to be asked for the same.

    libraries : (label, spec) of each
    operations: (operation, form) of each; sizes_bytes: increasing
    ranks     : of the largest starts; fewer_ranks: of the others, in the same blocks, increasing
    precision : wanted half-width of a 95 % interval, a share; budget_s: of all starts of mpirun together
    synchronisation: None: round-time, or dissemination where ranks share cores, which waiting for a clock takes away
    cold      : the private last-level cache is overwritten before each call
    calls, mpiruns: fixed numbers in the place of derived ones
    primary   : rows (operation, form, size) that the campaign is planned for: p-values are corrected among these alone
    limit_s   : after which an mpirun is ended; None: in proportion to what the trial took
    datatype, op: of reductions, as MPI calls them; root: the rank, of operations that have one
    compute_s : work of overlapped operations before they are waited for
    nodes     : set of their names, empty on this machine; ranks_per_node: on each in turn, None: one on each core
    slots     : (host, ranks) of each, of a hostfile, in the place of ranks_per_node
    factors   : (name, levels) of each, which every library is measured with in every combination (factors)
    rows      : (operation, form, size) that alone are measured; all of operations and sizes without them
    """

    libraries: tuple[tuple[str, ...], ...]
    operations: tuple[tuple[str, ...], ...]
    sizes_bytes: tuple[int, ...]
    ranks: int
    fewer_ranks: tuple[int, ...] = ()
    precision: float = 0.02
    budget_s: float = 300.0
    synchronisation: str | None = None
    clock: str = "clock_gettime"
    clock_method: str = "HCA"
    cold: bool = False
    warm_up: int = 5
    calls: int | None = None
    mpiruns: int | None = None
    limit_s: float | None = None
    primary: tuple[tuple[str, str, int], ...] = ()
    datatype: str = DATATYPE
    op: str = OPERATOR
    root: int = 0
    compute_s: float = 0.0
    nodes: str = ""
    ranks_per_node: int | None = None
    slots: tuple[tuple[str, int], ...] = ()
    factors: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: tuple[tuple[str, str, int], ...] = ()

    def __post_init__(self) -> None:
        whole: tuple[tuple[str, int | None, int, int], ...] = (
            *(("--np", ranks, 2, MAX_RANKS) for ranks in self.all_ranks),
            ("--calls", self.calls, 1, MAX_CALLS),
            ("--mpiruns", self.mpiruns, 1, MAX_MPIRUNS),
            ("--warm-up", self.warm_up, 0, MAX_WARM_UP),
            ("--root", self.root, 0, self.all_ranks[0] - 1),
            ("--ranks-per-node", self.ranks_per_node, 1, MAX_RANKS),
        )
        for option, value, low, high in whole:
            if value is not None and not low <= value <= high:
                raise InputError(f"{option} is {value}; give {low} to {high}")
        if not (isfinite(self.precision) and 0.0001 <= self.precision <= 1.0):
            raise InputError(f"--precision is {100 * self.precision:g} %; give 0.01 % to 100 %")
        for option, seconds in (("--budget", self.budget_s), ("--limit", self.limit_s)):
            if seconds is not None and not (isfinite(seconds) and seconds > 0):
                raise InputError(f"{option} is {seconds:g} s; give a time above 0")
        if not (isfinite(self.compute_s) and 0 <= self.compute_s <= MAX_COMPUTE_S):
            raise InputError(f"--compute is {self.compute_s:g} s; give at most {MAX_COMPUTE_S:g} s")
        for option, chosen, choices in (
            ("--synchronisation", self.synchronisation, SYNCHRONISATIONS),
            ("--clock", self.clock, CLOCKS),
            ("--clock-method", self.clock_method, CLOCK_METHODS),
        ):
            if chosen is not None and chosen not in choices:
                raise InputError(f"{option} is {chosen[:40]!r}; choose one of {', '.join(choices)}")
        if self.cold and any(name == "cache" for name, _ in self.factors):
            raise InputError("--cold and --factor cache say the same; leave --cold out")
        if not self.operations or not self.sizes_bytes:
            raise InputError("a campaign needs operations (--ops) and sizes (--sizes)")
        self.primary_cases  # noqa: B018 - checks that they fit

    @property
    def all_ranks(self) -> tuple[int, ...]:
        """The numbers of ranks, increasing."""
        return *self.fewer_ranks, self.ranks

    @property
    def varied(self) -> tuple[Factor, ...]:
        return tuple(Factor(name, levels) for name, levels in self.factors)

    @property
    def cases(self) -> tuple[Case, ...]:
        operations = [(operation, form) for operation, form in self.operations]
        every = cases_of(operations, self.sizes_bytes, self.ranks, self.reduction)
        return tuple(case for case in every if not self.rows or astuple(case) in self.rows)

    @property
    def reduction(self) -> Reduction:
        """Raises InputError for one that MPI does not define."""
        return Reduction(self.datatype, self.op)

    @property
    def primary_cases(self) -> tuple[Case, ...]:
        """Cases of `primary`. Raises InputError for one that is not measured."""
        chosen = tuple(Case(*row) for row in self.primary)
        for case in chosen:
            if case not in self.cases:
                raise InputError(
                    f"--primary {case}: is not measured; choose among {', '.join(map(str, self.cases[:6]))}, ..."
                )
        return chosen

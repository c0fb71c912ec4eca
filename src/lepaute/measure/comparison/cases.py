"""What is measured: operations by name, in a form, with message sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.design.sizes import stratified_log_uniform
from lepaute.errors import InputError
from lepaute.kit.quantities import size_of

BLOCKING, NONBLOCKING = "blocking", "nonblocking"
#: Of probe-collectives, as MPI calls them; with SEND and its neighbours, which are between pairs of ranks.
REDUCTIONS = ("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter_block")
OPERATIONS = (
    *("Barrier", "Bcast", *REDUCTIONS, "Scatter", "Gather", "Allgather", "Alltoall"),
    *("Scatterv", "Gatherv", "Allgatherv", "Alltoallv", "Send", "Sendrecv", "PingPong"),
)
UNSIZED = ("Barrier",)
ONLY_BLOCKING = ("PingPong",)
NOTHING = "none"
#: The probe's bounds: of a message, and of what a rank receives from all.
MOST_BYTES, MOST_RESULT_BYTES = 1 << 26, 1 << 30
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
    """As MPI calls it: Bcast, or Ibcast where it is nonblocking."""
    return operation if form == BLOCKING else f"I{operation.lower()}"


def operations_of(text: str) -> tuple[tuple[str, str], ...]:
    """(operation, form) of a list such as bcast,iallreduce: MPI's names in any case, with an i for nonblocking ones.

    Raises InputError for a name that is none.
    """
    known = {name.lower(): (name, BLOCKING) for name in OPERATIONS}
    known |= {f"i{name.lower()}": (name, NONBLOCKING) for name in OPERATIONS if name not in ONLY_BLOCKING}
    chosen = []
    for word in text.split(","):
        name = word.strip().lower().removeprefix("mpi_")
        if name not in known:
            listed = ", ".join(name.lower() for name in OPERATIONS)
            raise InputError(f"--ops has {word[:40]!r}; choose of {listed}, nonblocking ones with an i before")
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


def sizes_of(text: str, seed: int) -> tuple[int, ...]:
    """Sizes in bytes, increasing: those of a list such as 8,64K; of a range 1:1M the powers of two in it, its ends, and
    BETWEEN sizes 10^U, U uniform in strata, since libraries change their algorithms at powers of two and close to them.

    Raises InputError for anything else.
    """
    if ":" not in text:
        return tuple(sorted({_size(word) for word in text.split(",")}))
    low, high = (_size(word) for word in _ends(text))
    if low > high:
        raise InputError(f"--sizes is {text[:60]!r}; a range must increase, such as 1:1M")
    powers = {1 << exponent for exponent in range(MOST_BYTES.bit_length()) if low <= 1 << exponent <= high}
    generator = np.random.default_rng([seed, 0])
    drawn = {_whole(size) for size in stratified_log_uniform(generator, BETWEEN, low, high)} if high > low else set()
    return tuple(sorted(powers | {low, high} | {size for size in drawn if low <= size <= high}))


def _ends(text: str) -> tuple[str, str]:
    first, _, last = text.partition(":")
    if not first or not last or ":" in last:
        raise InputError(f"--sizes is {text[:60]!r}; write a range such as 1:1M or a list such as 8,64K")
    return first, last


def _size(word: str) -> int:
    size = size_of(word.strip(), "--sizes")
    if size > MOST_BYTES:
        raise InputError(f"--sizes has {word[:40]!r}; the probe sends at most {MOST_BYTES >> 20} MiB")
    return size


def _whole(size: float) -> int:
    """A whole number of doubles, which reductions add, where that changes the size by a few per cent at most."""
    whole = round(size)
    return whole if whole < 8 * _DOUBLE_BYTES else whole // _DOUBLE_BYTES * _DOUBLE_BYTES


def cases_of(operations: Sequence[tuple[str, str]], sizes_bytes: Sequence[int], ranks: int) -> tuple[Case, ...]:
    """Every operation with every size, those without a size once. Raises InputError where the results are too large."""
    if max(sizes_bytes) * ranks > MOST_RESULT_BYTES:
        raise InputError(f"--sizes up to {max(sizes_bytes)} bytes for {ranks} ranks take more than 1 GiB; give less")
    return tuple(
        Case(operation, form, size)
        for operation, form in operations
        for size in ((0,) if operation in UNSIZED else sizes_bytes)
    )

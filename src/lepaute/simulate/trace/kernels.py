"""Kernels that an emulation wrote itself, and how they come into the trace that SMPI wrote.

SMPI sees of computing only that time passes, in one piece before the next MPI call. The runtime of the emulation knows
which kernels that was: it writes them to a file of its own (simblas/kernel_trace.hpp).

The file: 8 bytes "LEPKERN1"; two 32-bit integers, the number of names and the bytes of their text; the names, each
ended by a line feed, filled up with zeros to a multiple of 8 bytes; then records of 48 bytes: rank and place of the
name (32-bit integers), start_s, duration_s, and three numbers (64-bit floating point). They are m, n, k of a kernel; of
a name that begins with MPI_ size_bytes, peer and tag. All is little-endian. Records are in order of start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.simulate.trace.table import COMPUTING, KERNEL, MPI, Trace, with_rows

MAGIC = b"LEPKERN1"
HEAD_BYTES = 16
MAX_NAMES_BYTES = 1 << 24
MAX_RANK = 1 << 24


@dataclass(frozen=True, slots=True)
class KernelCalls:
    """Calls in the order of the file, columns of the same length; name: codes into names.

    numbers: shape (calls, 3): m, n, k; of names that begin with MPI_ size_bytes, peer, tag
    """

    names: tuple[str, ...]
    rank: NDArray[Any]
    name: NDArray[Any]
    start_s: NDArray[Any]
    duration_s: NDArray[Any]
    numbers: NDArray[Any]


def read_kernels(path: Path) -> KernelCalls:
    """Reads the file; raises InputError for one that is cut or something else."""
    record = numpy.dtype(
        [("rank", "<i4"), ("name", "<i4"), ("start_s", "<f8"), ("duration_s", "<f8"), ("numbers", "<f8", 3)]
    )
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            if len(head) < HEAD_BYTES or head[:8] != MAGIC:
                raise InputError(f"{path}: does not begin with {MAGIC.decode()}; not a file of kernel calls")
            count, size = (int.from_bytes(head[at : at + 4], "little") for at in (8, 12))
            if size > MAX_NAMES_BYTES or size % 8:
                raise InputError(f"{path}: the table of names has {size} bytes; the file is damaged")
            text = file.read(size)
            names = tuple(text.rstrip(b"\0").decode("utf-8", "replace").split("\n")[:-1])
            if len(text) < size or len(names) != count:
                raise InputError(f"{path}: expected {count} names, got {len(names)}; the file is truncated or damaged")
            rows = numpy.fromfile(file, dtype=record)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from None
    if (path.stat().st_size - HEAD_BYTES - size) % record.itemsize:
        raise InputError(f"{path}: ends inside call {len(rows)}; the file is truncated")
    kinds = {"rank": "int32", "name": "int32", "start_s": "float64", "duration_s": "float64", "numbers": "float64"}
    calls = KernelCalls(names, *(rows[column].astype(kind) for column, kind in kinds.items()))

    def refuse(bad: NDArray[Any], what: str) -> None:
        if bad.any():
            raise InputError(f"{path}: call {int(numpy.argmax(bad))} has {what}; the file is damaged")

    refuse((calls.rank < 0) | (calls.rank >= MAX_RANK), "an invalid rank")
    refuse((calls.name < 0) | (calls.name >= len(calls.names)), "an invalid name")
    refuse(~numpy.isfinite(calls.start_s), "an invalid start")
    refuse(~(calls.duration_s >= 0) | numpy.isinf(calls.duration_s), "an invalid duration")
    refuse(~(numpy.abs(calls.numbers) < 1e15).all(axis=1), "invalid sizes")
    return calls


def merge_kernels(trace: Trace, kernels: KernelCalls) -> Trace:
    """The trace with these calls in it, in the place of time of which it knew only that it passed.

    What is left of the rows `computing` besides the kernels stays. MPI calls of kernels replace those of the same name.
    """
    is_mpi = numpy.array([name.startswith("MPI_") for name in kernels.names] or [False])[kernels.name]
    mpi_names = sorted({kernels.names[code] for code in numpy.unique(kernels.name[is_mpi])})
    anonymous = trace.named((COMPUTING,)) & (trace.kind == KERNEL)
    other = trace.where(~anonymous & ~(trace.named(mpi_names) & (trace.kind == MPI)))
    names = list(dict.fromkeys((*trace.names, *kernels.names, COMPUTING)))
    numbers = kernels.numbers
    kernel_columns: dict[str, NDArray[Any]] = {
        "rank": kernels.rank,
        "start_s": kernels.start_s,
        "duration_s": kernels.duration_s,
        "kind": numpy.where(is_mpi, MPI, KERNEL),
        "name": numpy.array([names.index(name) for name in kernels.names] or [0])[kernels.name],
        "size_bytes": numpy.where(is_mpi, numbers[:, 0], 0.0),
        "peer": numpy.where(is_mpi, numbers[:, 1], -1.0),
        "tag": numpy.where(is_mpi, numbers[:, 2], -1.0),
    } | {column: numpy.where(is_mpi, 0.0, numbers[:, at]) for at, column in enumerate(("m", "n", "k"))}
    resolution_s = float(trace.metadata.get("resolution_s", 0.0))
    left_over = _left_over(trace.where(anonymous), kernels, resolution_s, names.index(COMPUTING))
    unsized = [name for name in trace.metadata.get("unsized", []) if name not in mpi_names]
    metadata = {**trace.metadata, "unsized": unsized}
    return with_rows(other, (kernel_columns, *left_over), names, metadata, "kernels of the emulation")


def _left_over(anonymous: Trace, kernels: KernelCalls, resolution_s: float, name_code: int) -> Iterator[dict[str, Any]]:
    """Pieces of these rows of each rank during which no kernel ran, but for those that are SMPI's rounding."""
    for rank in anonymous.ranks:
        in_rank = anonymous.rank == rank
        low, high = anonymous.start_s[in_rank], anonymous.end_s[in_rank]
        mine = kernels.rank == rank
        order = numpy.argsort(kernels.start_s[mine], kind="stable")
        end = numpy.maximum.accumulate((kernels.start_s + kernels.duration_s)[mine][order])
        # Between kernels is where one has ended and the next has not begun.
        gap_low = numpy.concatenate(([-numpy.inf], end))
        gap_high = numpy.concatenate((kernels.start_s[mine][order], [numpy.inf]))
        first = numpy.searchsorted(gap_high, low, side="right")
        count = numpy.maximum(numpy.searchsorted(gap_low, high, side="left") - first, 0)
        row = numpy.repeat(numpy.arange(len(low)), count)
        gap = numpy.arange(len(row)) - numpy.repeat(numpy.cumsum(count) - count, count) + numpy.repeat(first, count)
        from_s, to_s = numpy.maximum(low[row], gap_low[gap]), numpy.minimum(high[row], gap_high[gap])
        long = to_s - from_s > 2 * resolution_s
        same_in_all = {"rank": rank, "kind": KERNEL, "name": name_code}
        yield {**same_in_all, "start_s": from_s[long], "duration_s": (to_s - from_s)[long]}

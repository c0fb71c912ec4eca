"""Raw files of the recorder, written byte by byte (probes/record.h)."""

import struct
from pathlib import Path

from lepaute.measure.record_file import RankRecord, read_rank

HEADER_BYTES, NAMES, NOTES_BYTES = 20480, 448, 4096
KERNEL, MPI, PHASE = range(3)
MESSAGES = (
    "MPI_Send", "MPI_Iprobe", "MPI_Testany", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce", "(completed)",
    "(waited)", "(slept)",
)  # fmt: skip
CODES = ((KERNEL, "dgemm"), *((MPI, name) for name in MESSAGES), (PHASE, "factorisation"), (PHASE, "pdtrsv"))
Row = tuple[int, str, int, int, tuple[int, ...]]  # start, name, duration, step, values


def packed(start_ns: int, name: str, duration_ns: int, step: int, values: tuple[int, ...]) -> bytes:
    code = 1 + [text for _, text in CODES].index(name)
    duration = duration_ns if duration_ns < 1 << 31 else 1 << 31 | duration_ns >> 10
    head = struct.pack("<QII", start_ns, duration, (step + 1) << 15 | code)
    if name in MESSAGES:
        return head + struct.pack("<iiq", *values)
    return head + struct.pack("<iii4x", *values)


def written(
    path: Path,
    *rows: Row,
    rank: int = 0,
    ranks: int = 1,
    clocks: tuple[int, ...] = (0, 0, 0, 0, 0, 0),
    finished: int = 1,
    lost: int = 0,
    start_ns: int = 0,
    end_ns: int = 0,
    notes: str = "",
    spare_bytes: int = 0,
    fortran: int = 0,
    cores: tuple[int, ...] = (),
    threads: int = 1,
    abort_code: int = 0,
) -> RankRecord:
    """The record of a file with these rows; clocks are (at, add, round trip) twice."""
    head = struct.pack("<8sIIiiii", b"LEPREC5", HEADER_BYTES, 32, rank, ranks, 1, finished)
    head += struct.pack("<qqqq6q", len(rows), lost, start_ns, end_ns, *clocks)
    head += struct.pack("<64s160sII", f"host{rank}".encode(), b"Some MPI", 1 + len(CODES), fortran)
    table = b"".join(struct.pack("<B31s", kind, name.encode()) for kind, name in ((0, ""), *CODES))
    head += table.ljust(32 * NAMES, b"\0") + notes.encode().ljust(NOTES_BYTES, b"\0")
    affinity = sum(1 << core for core in cores).to_bytes(128, "little")
    head += struct.pack("<8x128siiii", affinity, len(cores), threads, 3, abort_code)
    body = b"".join(packed(*row) for row in rows)
    path.write_bytes(head.ljust(HEADER_BYTES, b"\0") + body + bytes(spare_bytes))
    return read_rank(path)

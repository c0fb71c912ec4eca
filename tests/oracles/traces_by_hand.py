"""Small traces, written call by call."""

from typing import Any

import numpy

from lepaute.simulate.trace import Trace, trace_of_columns

NAN = float("nan")
PHASES = ("pdfact", "pdupdate", "pdtrsv", "bcast")

Call = dict[str, Any]


def call(rank: int, name: str, start_s: float, duration_s: float, **more: float) -> Call:
    """One row; what is not given means nothing. The kind follows from the name."""
    row: Call = {"step": -1, "m": 0.0, "n": 0.0, "k": 0.0, "size_bytes": 0.0, "peer": -1, "tag": -1}
    row |= {"comm": -1, "completion": -1}
    row |= {"late_s": NAN, "transfer_s": NAN, "contention_s": NAN}
    row |= {"rank": rank, "name": name, "start_s": start_s, "duration_s": duration_s}
    return row | {"kind": 2 if name in PHASES else int(name.startswith("MPI_"))} | more


def trace(*calls: Call, **metadata: Any) -> Trace:
    """A trace of these calls; by default a recording."""
    names = list(dict.fromkeys(one["name"] for one in calls))
    columns = {column: numpy.array([one[column] for one in calls]) for column in calls[0] if column != "name"}
    columns["name"] = numpy.array([names.index(one["name"]) for one in calls])
    ranks = 1 + max(one["rank"] for one in calls)
    return trace_of_columns(columns, names, {"source": "recording", "ranks": ranks} | metadata)


def exchange(late_s: float = 2.0) -> Trace:
    """Rank 1 receives from 0 s on, rank 0 computes for late_s and then sends for a second, until when both have it."""
    return trace(
        call(0, "dgemm", 0.0, late_s, m=10, n=20, k=5, step=0),
        call(0, "MPI_Send", late_s, 1.0, peer=1, tag=7, size_bytes=800, step=0),
        call(1, "MPI_Recv", 0.0, late_s + 1.0, peer=0, tag=7, size_bytes=800, step=0),
    )


def hpl_like(ranks: int, steps: int) -> Trace:
    """Steps in which one rank after the other factors and sends to the others, and then all update."""
    calls: list[Call] = []
    at_s = 0.0
    for step in range(steps):
        owner = step % ranks
        calls.append(call(owner, "pdfact", at_s, 1.0, step=step))
        calls.append(call(owner, "idamax", at_s, 1.0, step=step, n=100))
        for rank in range(ranks):
            if rank != owner:
                calls.append(call(owner, "MPI_Send", at_s + 1.0, 0.1, step=step, peer=rank, tag=step, size_bytes=1e6))
                calls.append(call(rank, "MPI_Recv", at_s, 1.1, step=step, peer=owner, tag=step, size_bytes=1e6))
            begin_s = at_s + 1.1 + (0.1 * (ranks - 1) if rank == owner else 0.0)
            calls.append(call(rank, "pdupdate", begin_s, 3.0, step=step))
            calls.append(call(rank, "dgemm", begin_s, 3.0, step=step, m=500, n=400, k=64))
        at_s += 4.1 + 0.1 * ranks
    return trace(*calls, application="hpl", parameters={"n": 64 * steps, "nb": 64, "p": ranks, "q": 1})


def rows(made: Trace, rank: int) -> list[tuple[Any, ...]]:
    """Name, peer, tag, size and communicator of each row of a rank."""
    mine = made.where(made.rank == rank)
    columns = (mine.peer, mine.tag, mine.size_bytes, mine.comm)
    names = [made.names[code].removeprefix("MPI_") for code in mine.name.tolist()]
    return [(name, *(column[row].item() for column in columns)) for row, name in enumerate(names)]

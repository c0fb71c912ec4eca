"""Paraver files, written as Paraver's documentation and Extrae's sources have them; no tool of BSC took part."""

from pathlib import Path

from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.messages import ALL_TO_ALL, COLLECTIVES, FROM_ROOT, TO_ROOT, match_messages
from lepaute.simulate.trace.table import MPI

NAMES = (
    *("End", "MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Wait", "MPI_Waitall", "MPI_Bcast", "MPI_Barrier"),
    *("MPI_Reduce", "MPI_Allreduce", "MPI_Alltoall", "MPI_Init", "MPI_Finalize", "MPI_Sendrecv", "MPI_Iallreduce"),
    *("MPI_Put", "MPI_Comm_rank", "MPI_Test", "MPI_Scatter", "MPI_Comm_dup", "MPI_Neighbor_alltoall"),
)


def prv(folder: Path, tasks: int, *records: str, unit: str = "_ns") -> Path:
    """A trace of these records, on one node, with the names of its calls beside it."""
    path = folder / "run.prv"
    threads = ",".join(["1:1"] * tasks)
    world = ":".join(map(str, range(1, tasks + 1)))
    last = max((int(record.split(":")[5 if record[0] != "1" else 6]) for record in records), default=1)
    head = f"#Paraver (28/11/2026 at 10:02):{last}{unit}:1({tasks}):1:{tasks}({threads}),1"
    path.write_text("\n".join([head, f"c:1:1:{tasks}:{world}", *records]) + "\n")
    labels = "\n".join(f"{code} {name}" for code, name in enumerate(NAMES))
    path.with_suffix(".pcf").write_text(
        f"EVENT_TYPE\n9 50000001 MPI Point-to-point\n9 50000002 MPI Collective Comm\nVALUES\n{labels}\n"
    )
    return path


def prv_of(trace: Trace, folder: Path) -> Path:
    """The calls of a trace whose operations are of all ranks."""
    lines: list[tuple[int, int, str]] = []

    def at(time_s: float) -> int:
        return round(time_s * 1e9)

    for row in (trace.kind == MPI).nonzero()[0].tolist():
        name, task = trace.names[trace.name[row]], int(trace.rank[row]) + 1
        is_collective = name in COLLECTIVES
        head, kind = f"2:{task}:1:{task}:1", 50000002 if is_collective else 50000001
        told = f":50000001:{NAMES.index(name)}".replace("50000001", str(kind))
        if is_collective:
            size, root = int(trace.size_bytes[row]), int(trace.peer[row]) == task - 1
            sent = 0 if (name in FROM_ROOT and not root) or (name in TO_ROOT and root) else size
            sent //= len(trace.ranks) if name == "MPI_Alltoall" else 1
            told += f":50100001:{sent}:50100002:{size if name in ALL_TO_ALL else size - sent}:50100004:1"
            told += ":50100003:1" if root else ""
        begin, end = at(trace.start_s[row]), at(trace.start_s[row] + trace.duration_s[row])
        lines.append((2 * begin, len(lines), f"{head}:{begin}{told}"))
        lines.append((2 * max(end, begin) - 1 if end > begin else 2 * begin, len(lines), f"{head}:{end}:{kind}:0"))
    lines += [(-1, rank, f"2:{rank + 1}:1:{rank + 1}:1:0:40000001:1") for rank in trace.ranks]  # the program begins
    matches = match_messages(trace)
    for send, receive, end in zip(matches.send.tolist(), matches.receive.tolist(), matches.end.tolist(), strict=True):
        sender, receiver = int(trace.rank[send]) + 1, int(trace.rank[receive]) + 1
        ends = (f"{task}:1:{task}:1" for task in (sender, receiver))
        sent, posted, over = at(trace.start_s[send]), at(trace.start_s[receive]), at(trace.end_s[end])
        one, other = ends
        size, tag = int(trace.size_bytes[send]), int(trace.tag[send])
        lines.append((2 * sent, len(lines), f"3:{one}:{sent}:{sent}:{other}:{posted}:{over}:{size}:{tag}"))
    return prv(folder, len(trace.ranks), *(line for _, _, line in sorted(lines)))

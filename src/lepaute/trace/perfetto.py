"""A trace in the Trace Event Format, which Perfetto (ui.perfetto.dev) and Chrome's about:tracing open."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from lepaute.kit.files import whole_file
from lepaute.kit.text import size_text
from lepaute.trace.messages import match_messages
from lepaute.trace.report import headline, node_name
from lepaute.trace.table import KERNEL, KINDS, MPI, PHASE, Trace

MICROSECONDS = 1e6
#: Half the time of the default, and a tenth larger.
GZIP_LEVEL = 4
#: A plain file of more bytes than this is slow to load, or to send.
LARGE_BYTES = 50 << 20
#: Phases that overlap calls of their rank cannot hold them in the picture: they get a line of their own, below.
PHASE_LINES_FROM = 10_000_000


def write_perfetto(trace: Trace, path: Path) -> int:
    """Writes the events as one JSON object, piece by piece, and returns their number; with gzip where the name ends so.

    A process is a node (one for all where the trace does not know them), a thread a rank; arrows go from a send to the
    call in which its message was received, where the trace holds both.
    """
    count = 0
    with whole_file(path) as temporary, opened(temporary, compressed=path.suffix == ".gz") as file:
        file.write('{"displayTimeUnit": "ms", "otherData": ')
        json.dump(_plain(trace.metadata), file)
        file.write(', "traceEvents": [\n')
        for count, event in enumerate(events(trace), start=1):
            file.write(",\n" if count > 1 else "")
            json.dump(event, file, separators=(",", ":"))
        file.write("\n]}\n")
    return count


def written_text(path: Path, count: int) -> str:
    """What to tell of a file with so many events."""
    told = f"{path}: {count} events; open it at ui.perfetto.dev"
    size = path.stat().st_size if path.is_file() else 0
    if size > LARGE_BYTES and path.suffix != ".gz":
        told += f"; {size_text(size)}, a tenth of that as {path.name}.gz"
    return told


def opened(path: Path, compressed: bool) -> TextIO:
    """A text file to write."""
    if not compressed:
        return path.open("w", encoding="utf-8")
    return io.TextIOWrapper(cast(BinaryIO, gzip.open(path, "wb", compresslevel=GZIP_LEVEL)), encoding="utf-8")


def events(trace: Trace) -> Iterator[dict[str, Any]]:
    """The events: names first, then calls, then arrows."""
    nodes = trace.metadata.get("nodes")
    node_of = {rank: int(nodes[rank]) if isinstance(nodes, list) and rank < len(nodes) else 0 for rank in trace.ranks}
    for node in sorted(set(node_of.values())):
        name = node_name(trace, node) if isinstance(nodes, list) else headline(trace)
        yield _meta("process_name", node, 0, name=name)
    own_lines = _ranks_with_crossing_phases(trace)
    for rank, node in node_of.items():
        yield _meta("thread_name", node, rank, name=f"rank {rank}")
        yield _meta("thread_sort_index", node, rank, sort_index=2 * rank)
        if rank in own_lines:
            yield _meta("thread_name", node, PHASE_LINES_FROM + rank, name=f"rank {rank}: phases")
            yield _meta("thread_sort_index", node, PHASE_LINES_FROM + rank, sort_index=2 * rank + 1)
    for row in range(len(trace)):
        yield _call(trace, row, node_of, own_lines)
    yield from _arrows(trace, node_of)


def _meta(what: str, pid: int, tid: int, **values: object) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": values}


def _call(trace: Trace, row: int, node_of: dict[int, int], own_lines: set[int]) -> dict[str, Any]:
    rank, kind = int(trace.rank[row]), int(trace.kind[row])
    # Both ends are rounded, so that a call does not end after the next one has begun.
    start_ns, end_ns = (
        round(float(trace.start_s[row]) * 1e9),
        round(float(trace.start_s[row] + trace.duration_s[row]) * 1e9),
    )
    line = PHASE_LINES_FROM + rank if kind == PHASE and rank in own_lines else rank
    return {
        "name": trace.names[trace.name[row]],
        "cat": KINDS[kind],
        "ph": "X",
        "ts": start_ns / 1000,
        "dur": (end_ns - start_ns) / 1000,
        "pid": node_of[rank],
        "tid": line,
        "args": _arguments(trace, row, kind),
    }


def _arguments(trace: Trace, row: int, kind: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if trace.step[row] >= 0:
        arguments["step"] = int(trace.step[row])
    if kind != MPI:
        arguments.update({name: _number(value) for name in "mnk" if (value := float(getattr(trace, name)[row]))})
        if kind == KERNEL and "gemm" in trace.names[trace.name[row]] and trace.duration_s[row] > 0:
            flop = 2.0 * float(trace.m[row]) * float(trace.n[row]) * float(trace.k[row])
            arguments["gflops"] = round(flop / float(trace.duration_s[row]) / 1e9, 3)
        return arguments
    if trace.peer[row] >= 0:
        arguments["peer"] = int(trace.peer[row])
    if trace.tag[row] >= 0:
        arguments["tag"] = int(trace.tag[row])
    arguments["size_bytes"] = _number(float(trace.size_bytes[row]))
    for name in ("late_s", "transfer_s", "contention_s"):
        value = float(getattr(trace, name)[row])
        if value > 0:  # neither zero nor unknown (NaN)
            arguments[f"{name[:-2]}_us"] = round(value * MICROSECONDS, 3)
    return arguments


def _arrows(trace: Trace, node_of: dict[int, int]) -> Iterator[dict[str, Any]]:
    matches = match_messages(trace)
    for number, (send, end) in enumerate(zip(matches.send.tolist(), matches.end.tolist(), strict=True)):
        if end < 0:
            continue
        arrow = {"name": "message", "cat": "message", "id": number}
        # An arrow is bound to the call that holds its time stamp: the beginning of the send, and the end of the
        # receive, a nanosecond before it is over.
        begin_us = float(trace.start_s[send]) * MICROSECONDS
        end_us = max(float(trace.end_s[end]) * MICROSECONDS - 0.001, float(trace.start_s[end]) * MICROSECONDS)
        rank, other = int(trace.rank[send]), int(trace.rank[end])
        yield {**arrow, "ph": "s", "ts": round(begin_us, 3), "pid": node_of[rank], "tid": rank}
        yield {**arrow, "ph": "f", "bp": "e", "ts": round(end_us, 3), "pid": node_of[other], "tid": other}


def _ranks_with_crossing_phases(trace: Trace) -> set[int]:
    """Ranks of which a row begins inside another and ends after it."""
    crossing: set[int] = set()
    ends: list[float] = []
    before = -1
    for rank, start, end in zip(trace.rank.tolist(), trace.start_s.tolist(), trace.end_s.tolist(), strict=True):
        if rank != before:
            ends, before = [], rank
        while ends and ends[-1] <= start + 1e-12:
            ends.pop()
        if ends and end > ends[-1] + 1e-9:
            crossing.add(rank)
        ends.append(end)
    return crossing


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _plain(value: Any) -> Any:
    """What JSON can hold: other things as text."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)

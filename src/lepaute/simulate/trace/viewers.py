"""A trace in the formats of other viewers: the Trace Event Format, which Perfetto (ui.perfetto.dev) and Chrome's
about:tracing open, and OTF2, the format of Score-P, which Vampir opens."""

import gzip
import importlib
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeAlias, cast

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.extras import need
from lepaute.kit.files import scratch_folder, whole_file
from lepaute.kit.json_values import finite_json
from lepaute.kit.text import size_text
from lepaute.simulate.trace import messages
from lepaute.simulate.trace.otf2_reader import NO_ROOT, collective_bytes
from lepaute.simulate.trace.report import headline, node_name
from lepaute.simulate.trace.table import KERNEL, KINDS, MPI, PHASE, Trace

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
        json.dump(finite_json(trace.metadata), file, default=str)
        file.write(', "traceEvents": [\n')
        for count, event in enumerate(events(trace), start=1):
            file.write(",\n" if count > 1 else "")
            json.dump(event, file, separators=(",", ":"))
        file.write("\n]}\n")
    return count


def written_text(path: Path, count: int) -> str:
    line = f"{path}: {count} events; open it at ui.perfetto.dev"
    size = path.stat().st_size if path.is_file() else 0
    if size > LARGE_BYTES and path.suffix != ".gz":
        line += f"; {size_text(size)}, a tenth of that as {path.name}.gz"
    return line


def opened(path: Path, compressed: bool) -> TextIO:
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
    crossing = _ranks_with_crossing_phases(trace)
    for rank, node in node_of.items():
        yield _meta("thread_name", node, rank, name=f"rank {rank}")
        yield _meta("thread_sort_index", node, rank, sort_index=2 * rank)
        if rank in crossing:
            yield _meta("thread_name", node, PHASE_LINES_FROM + rank, name=f"rank {rank}: phases")
            yield _meta("thread_sort_index", node, PHASE_LINES_FROM + rank, sort_index=2 * rank + 1)
    for row in range(len(trace)):
        yield _call(trace, row, node_of, crossing)
    yield from _arrows(trace, node_of)


def _meta(what: str, pid: int, tid: int, **values: object) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": values}


def _call(trace: Trace, row: int, node_of: dict[int, int], crossing: set[int]) -> dict[str, Any]:
    rank, kind = int(trace.rank[row]), int(trace.kind[row])
    # Both ends are rounded, so that a call does not end after the next one has begun.
    start_s, duration_s = float(trace.start_s[row]), float(trace.duration_s[row])
    start_ns, end_ns = round(start_s * 1e9), round((start_s + duration_s) * 1e9)
    line = PHASE_LINES_FROM + rank if kind == PHASE and rank in crossing else rank
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
    arguments |= {name: number for name in ("peer", "tag") if (number := int(getattr(trace, name)[row])) >= 0}
    arguments["size_bytes"] = _number(float(trace.size_bytes[row]))
    for name in ("late_s", "transfer_s", "contention_s"):
        value = float(getattr(trace, name)[row])
        if value > 0:  # neither zero nor unknown (NaN)
            arguments[f"{name[:-2]}_us"] = round(value * MICROSECONDS, 3)
    return arguments


def _arrows(trace: Trace, node_of: dict[int, int]) -> Iterator[dict[str, Any]]:
    matches = messages.match_messages(trace)
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


#: Ticks a second of the time stamps.
RESOLUTION = 1_000_000_000
#: The region that holds all calls of a rank: what is in none of them is the program's own code.
PROGRAM = "the program"
WORLD = 0
#: Events of rows, as methods of the package's writer and their arguments.
_Events: TypeAlias = dict[int, list[tuple[str, tuple[Any, ...]]]]


def write_otf2(trace: Trace, folder: Path) -> int:
    """Writes the archive, traces.otf2 and what belongs to it, into a new folder; returns the number of events.

    A location is a rank, below its node. Messages of which both ends are in the trace go from the call that sends to
    the call in which they were received; collective operations have their communicator where that is known.
    Raises InputError if the folder exists, MissingExtra where the package otf2 is missing.
    """
    need("otf2", "an OTF2 archive")
    importlib.import_module("otf2.writer")
    otf2 = importlib.import_module("otf2")
    if folder.exists():
        raise InputError(f"{folder}: exists; name a folder that is to be made")
    with scratch_folder(folder.absolute().parent) as temporary:
        archive = temporary / "archive"
        with otf2.writer.open(str(archive), timer_resolution=RESOLUTION) as writer:
            writer.creator = "lepaute"
            writer.description = headline(trace)
            count = _Archive(otf2, writer, trace).write()
        archive.rename(folder)
    return count


class _Archive:
    """Definitions of the archive, and its events rank by rank."""

    def __init__(self, otf2: Any, writer: Any, trace: Trace) -> None:
        self.otf2, self.writer, self.trace = otf2, writer, trace
        self.regions = [self._region(code) for code in range(len(trace.names))]
        self.program = writer.definitions.region(PROGRAM)
        self.locations = self._locations()
        self.communicators = self._communicators()

    def _region(self, code: int) -> Any:
        roles, paradigms, name = self.otf2.RegionRole, self.otf2.Paradigm, self.trace.names[code]
        if not name.startswith("MPI_"):
            return self.writer.definitions.region(name, region_role=roles.FUNCTION)
        kinds = (
            (messages.ALL_TO_ALL, roles.COLL_ALL2ALL),
            (messages.FROM_ROOT, roles.COLL_ONE2ALL),
            (messages.TO_ROOT, roles.COLL_ALL2ONE),
        )
        role = next((role for names, role in kinds if name in names), roles.POINT2POINT)
        return self.writer.definitions.region(name, region_role=role, paradigm=paradigms.MPI)

    def _locations(self) -> dict[int, Any]:
        definitions, trace = self.writer.definitions, self.trace
        nodes = trace.metadata.get("nodes") or []
        machine = definitions.system_tree_node(str(trace.metadata.get("platform") or "machine"), "machine")
        tree: dict[int, Any] = {}
        locations = {}
        for rank in trace.ranks:
            node = int(nodes[rank]) if rank < len(nodes) else 0
            if node not in tree:
                tree[node] = definitions.system_tree_node(node_name(trace, node), "node", parent=machine)
            group = definitions.location_group(f"rank {rank}", system_tree_parent=tree[node])
            locations[rank] = definitions.location(f"rank {rank}", group=group)
        return locations

    def _communicators(self) -> dict[int, tuple[Any, list[int]]]:
        """Communicator and members of each group of ranks, which are ordered by their rank in the world."""
        definitions, mpi, groups = self.writer.definitions, self.otf2.Paradigm.MPI, self.otf2.GroupType
        everybody = tuple(self.locations.values())
        definitions.group("ranks", group_type=groups.COMM_LOCATIONS, paradigm=mpi, members=everybody)
        made: dict[int, tuple[Any, list[int]]] = {}
        known = self.trace.where(self.trace.comm > WORLD)
        for number in (WORLD, *numpy.unique(known.comm).tolist()):
            members = self.trace.ranks if number == WORLD else known.where(known.comm == number).ranks
            name = "MPI_COMM_WORLD" if number == WORLD else f"group {number}"
            places = tuple(self.locations[rank] for rank in members)
            group = definitions.group(name, group_type=groups.COMM_GROUP, paradigm=mpi, members=places)
            made[number] = definitions.comm(name, group=group), members
        return made

    def write(self) -> int:
        trace = self.trace
        begins, ends = self._messages()
        self._add_collectives(begins, ends)
        first = min(0, round(float(trace.start_s.min()) * RESOLUTION)) if len(trace) else 0
        count = 0
        for rank in trace.ranks:
            writer = self.writer.event_writer_from_location(self.locations[rank])
            rows = ((trace.rank == rank) & ~trace.named((messages.ARRIVAL,))).nonzero()[
                0
            ]  # no routine, but what one received
            at, count = 0, count + 2
            writer.enter(0, self.program)
            for row, is_begin, at_ns in _brackets(trace, rows):
                at = at_ns - first
                events = (begins if is_begin else ends).get(row, ())
                if is_begin:
                    writer.enter(at, self.regions[trace.name[row]])
                for method, arguments in events:
                    getattr(writer, method)(at, *arguments)
                if not is_begin:
                    writer.leave(at, self.regions[trace.name[row]])
                count += 1 + len(events)
            writer.leave(at, self.program)
        return count

    def _messages(self) -> tuple[_Events, _Events]:
        """What stands behind the beginning of a row, and before its end; requests have the number of their row."""
        trace, matches = self.trace, messages.match_messages(self.trace)
        begins: _Events = defaultdict(list)
        ends: _Events = defaultdict(list)
        immediate = trace.named(messages.IMMEDIATE)
        columns = (matches.send, matches.receive, matches.sent, matches.end)
        for send, receive, sent, end in zip(*(column.tolist() for column in columns), strict=True):
            if end < 0:
                continue
            source, target = int(trace.rank[send]), int(trace.peer[send])
            comm, members = self.communicators.get(int(trace.comm[send]), self.communicators[WORLD])
            if source not in members or target not in members:
                comm, members = self.communicators[WORLD]
            what = comm, max(int(trace.tag[send]), 0), int(trace.size_bytes[send])
            if immediate[send]:
                begins[send].append(("mpi_isend", (members.index(target), *what, send)))
                if sent >= 0:
                    ends[sent].append(("mpi_isend_complete", (send,)))
            else:
                begins[send].append(("mpi_send", (members.index(target), *what)))
            if immediate[receive]:
                begins[receive].append(("mpi_irecv_request", (receive,)))
                ends[end].append(("mpi_irecv", (members.index(source), *what, receive)))
            else:
                ends[end].append(("mpi_recv", (members.index(source), *what)))
        return begins, ends

    def _add_collectives(self, begins: _Events, ends: _Events) -> None:
        done = messages.completions(self.trace)
        for row in self.trace.named(messages.COLLECTIVES | messages.NONBLOCKING_COLLECTIVES).nonzero()[0].tolist():
            what = self._collective(row)
            if what and self.trace.names[self.trace.name[row]] in messages.COLLECTIVES:
                begins[row].append(("mpi_collective_begin", ()))
                ends[row].append(("mpi_collective_end", what))
            elif what:
                begins[row].append(("non_blocking_collective_request", (row,)))
                ends[int(done[row])].append(("non_blocking_collective_complete", (*what, row)))

    def _collective(self, row: int) -> tuple[Any, ...] | None:
        """Operation, communicator, root, bytes sent and received; None if its group is not known."""
        trace = self.trace
        name, number = trace.names[trace.name[row]], int(trace.comm[row])
        if number not in self.communicators:
            return None
        communicator, members = self.communicators[number]
        plain = messages.BLOCKING_OF.get(name, name)
        operation = getattr(
            self.otf2.CollectiveOp, "CREATE_HANDLE" if plain in messages.CREATIONS else plain[4:].upper()
        )
        root, rank = int(trace.peer[row]), int(trace.rank[row])
        sizes = collective_bytes(name, float(trace.size_bytes[row]), len(members), members.index(rank), root == rank)
        return operation, communicator, members.index(root) if root in members else NO_ROOT, *map(int, sizes)


def _brackets(trace: Trace, rows: Sequence[int] | NDArray[Any]) -> Iterator[tuple[int, bool, int]]:
    """For each row of a rank, when it begins (True) and ends (False), in ns; one ends with that in which it begins."""
    inside: list[tuple[int, int]] = []
    for row in map(int, rows):
        start = round(float(trace.start_s[row]) * RESOLUTION)
        end = max(start, round(float(trace.start_s[row] + trace.duration_s[row]) * RESOLUTION))
        while inside and inside[-1][1] <= start:
            ended, at = inside.pop()
            yield ended, False, at
        if inside:
            end = min(end, inside[-1][1])
        inside.append((row, end))
        yield row, True, start
    while inside:
        ended, at = inside.pop()
        yield ended, False, at

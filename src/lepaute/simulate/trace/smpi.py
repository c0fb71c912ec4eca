"""Traces of SimGrid's SMPI (`smpirun -trace`, a Paje file) as traces of ours.

What SMPI 3.32 writes, and what becomes of it:

- A state of a rank for each MPI call, with the name of the routine; outermost ones only are calls of the program. Its
  size, with --cfg=tracing/smpi/display-sizes, counts items of a type that is not told.
- States `computing` and `sleeping`: rows of the kernel `computing`, which says nothing about what was computed.
- A link for each message, which begins in the call that sends and ends in the call in which the receiver has it. Only
  links know peers, tags and bytes: link_ends.py finds out which call they belong to.
- No state for MPI_Iprobe (its cost is a state `computing`), MPI_Waitsome, what makes communicators, and MPI_Sendrecv
  with MPI_PROC_NULL on a side; no link for what MPI_Test completes.
- MPI_Init and MPI_Finalize are left out, as in a recording.
"""

import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.simulate.trace import messages as mpi
from lepaute.simulate.trace import paje
from lepaute.simulate.trace.foreign import LEFT_OUT
from lepaute.simulate.trace.link_ends import Links, Rows, attach
from lepaute.simulate.trace.table import COMPUTING, KERNEL, MAX_RANKS, MPI, Trace, trace_of_columns

STATES, LINKS = "MPI_STATE", "MPI_LINK"
#: States that stand for time between calls. `kernel` is what a replay calls it.
ANONYMOUS = frozenset((COMPUTING, "sleeping", "kernel"))
#: Names in replays, where capitals alone do not make them MPI's.
REPLAYED = {"sendrecv": "MPI_Sendrecv", "allreduce": "MPI_Allreduce", "reducescatter": "MPI_Reduce_scatter"}
#: As SMPI 3.32 writes them.
MISSPELT = {"MPI_Iallggather": "MPI_Iallgather"}
INTERNALS = "tracing/smpi/internals:yes"
COARSE_DIGITS = 6
WITHOUT_SIZE = frozenset(("MPI_Barrier", "MPI_Probe", *mpi.PROBES, *mpi.WAITS))
MAX_TAG = 1 << 40


def convert(path: Path, metadata: Mapping[str, Any] | None = None) -> Trace:
    """The trace that SMPI wrote.

    metadata: of the run, such as application and platform; it goes above what the file itself says. Its `warnings` and
              those found here are put together. `unsized` will name the calls whose sizes are not known.
    Raises InputError in one line, with the number of the line of the file, for what cannot be read.
    """
    reader = paje.PajeReader(path)
    calls = _Calls(path, reader)
    for event in reader:
        calls.take(event)
    return calls.trace(dict(metadata or {}))


class _Calls:
    """Rows and ends of links, as they are read: a few numbers for each."""

    def __init__(self, path: Path, reader: paje.PajeReader) -> None:
        self.path, self.reader = path, reader
        self.rank, self.name = array("i"), array("i")
        self.start_s, self.end_s, self.items = array("d"), array("d"), array("d")
        # Of links: the row in which they begin or end, and what their key says.
        self.starts = tuple(array("q") for _ in range(4))
        self.start_bytes = array("d")
        self.ends = tuple(array("q") for _ in range(4))
        self._rank_of: dict[int, int] = {}  # container to rank
        self._depth: dict[int, int] = {}
        self._row: dict[int, int] = {}  # the latest outermost state
        self._unfinished: list[str] = []

    def take(self, event: paje.Event) -> None:
        kind, line, time_s, type_, container, value, size = event
        if kind == paje.DESTROY:
            self._finish(container, time_s)
            return
        if kind == paje.CREATE:
            return
        name = self.reader.types[type_]
        if kind in (paje.START, paje.END):
            if name == LINKS:
                self._link(kind, line, container, value, size)
            return
        if name != STATES:
            return
        if kind in (paje.SET, paje.RESET):
            self._finish(container, time_s, unfinished=False)
        if kind in (paje.PUSH, paje.SET):
            depth = self._depth.get(container, 0)
            self._depth[container] = depth + 1
            if depth == 0:
                self._row[container] = len(self.rank)
                self.rank.append(self._rank(container, line))
                self.name.append(int(value))
                self.start_s.append(time_s)
                self.end_s.append(paje.NAN)
                self.items.append(size)
        elif kind == paje.POP:
            depth = self._depth.get(container, 0)
            if depth == 0:
                where = self.reader.containers[container].name[:40]
                raise InputError(f"{self.path}, line {line}: {where!r} leaves a state that it never entered")
            self._depth[container] = depth - 1
            if depth == 1:
                self.end_s[self._row[container]] = time_s

    def _rank(self, container: int, line: int) -> int:
        if container not in self._rank_of:
            name = self.reader.containers[container].name
            head, _, number = name.rpartition("-")
            if head != "rank" or not (number.isascii() and number.isdigit()) or len(number) > 9:
                raise InputError(
                    f"{self.path}, line {line}: MPI calls of {name[:40]!r}, which is not a rank (rank-0, ...)"
                )
            if int(number) >= MAX_RANKS:
                raise InputError(f"{self.path}, line {line}: rank {number} exceeds what a trace can hold")
            if int(number) in self._rank_of.values():
                raise InputError(f"{self.path}, line {line}: the container {name!r} is defined twice")
            self._rank_of[container] = int(number)
        return self._rank_of[container]

    def _finish(self, container: int, time_s: float, unfinished: bool = True) -> None:
        """Ends what the container is in."""
        if self._depth.get(container, 0):
            row = self._row[container]
            self.end_s[row] = time_s
            self._depth[container] = 0
            if unfinished:
                call = _call_of(self.reader.values[self.name[row]])[0]
                self._unfinished.append(f"rank {self.rank[row]} was in {call}")

    def _link(self, kind: int, line: int, container: int, key: int | bytes, size: float) -> None:
        row = self._row.get(container, -1)
        words = key.split(b"_") if isinstance(key, bytes) else []
        where, text = f"{self.path}, line {line}", repr(b"_".join(words)[:40].decode("utf-8", "replace"))
        try:
            source, target, tag, _ = map(int, words)
        except ValueError:
            raise InputError(f"{where}: the message key is {text}; SMPI's are sender_receiver_tag_number") from None
        if row < 0:
            raise InputError(
                f"{where}: a message of {self.reader.containers[container].name[:40]!r}, which has not made a call yet"
            )
        if max(abs(source), abs(target)) >= MAX_RANKS or abs(tag) >= MAX_TAG:
            raise InputError(f"{where}: the message key {text} holds an invalid rank or tag")
        if kind == paje.START:
            if tag < 0:
                raise InputError(
                    f"{where}: a message within a collective operation; such a file holds each message of the program "
                    f"twice: run without --cfg={INTERNALS}"
                )
            if size < 0 or size == float("inf"):
                raise InputError(f"{where}: a message of {size:g} bytes")
            self.start_bytes.append(size)
        columns = self.starts if kind == paje.START else self.ends
        for column, number in zip(columns, (row, source, target, tag), strict=True):
            column.append(number)

    def trace(self, metadata: dict[str, Any]) -> Trace:
        self._check_end()
        names, kinds, code_of_value = _names(self.reader.values)
        code = numpy.array(code_of_value or [0], dtype="int32")[numpy.array(self.name)]
        start_s, end_s = numpy.array(self.start_s), numpy.array(self.end_s)
        rows = Rows(names=names, rank=numpy.array(self.rank), name=code, items=numpy.array(self.items))
        starts = (numpy.array(column) for column in self.starts)
        end_row, end_source, _, end_tag = (numpy.array(column) for column in self.ends)
        links = Links(*(*starts, numpy.nan_to_num(numpy.array(self.start_bytes)), end_row, end_source, end_tag))
        self._check_senders(rows, links)
        attached = attach(rows, links)
        kept = numpy.flatnonzero(~numpy.isin(code, [at for at, name in enumerate(names) if name in LEFT_OUT]))
        arrivals = attached.arrival_row
        names = [*names, mpi.ARRIVAL]
        of_calls = {"rank": rows.rank, "name": code, "start_s": start_s, "duration_s": end_s - start_s}
        of_calls |= {"comm": _groups(rows, start_s, end_s), **attached.columns}
        same_in_all = {"name": len(names) - 1, "duration_s": 0.0, "comm": -1, "completion": -1}
        of_arrivals = {name: numpy.full(len(arrivals), value) for name, value in same_in_all.items()}
        of_arrivals |= {"rank": rows.rank[arrivals], "start_s": end_s[arrivals], **attached.arrivals}
        # What arrived stands right behind the call in which it did.
        order = numpy.argsort(numpy.concatenate((kept, arrivals)), kind="stable")
        columns = {
            name: numpy.concatenate((column[kept], of_arrivals[name]))[order] for name, column in of_calls.items()
        }
        columns["kind"] = numpy.array([*kinds, MPI], dtype="int16")[columns["name"]]
        used = [names[at] for at in numpy.unique(columns["name"])]
        has_bytes = not numpy.isnan(numpy.array(self.start_bytes)).any()
        metadata = self._metadata(rows, metadata, attached.warnings, _unsized(used, has_bytes), has_bytes)
        return trace_of_columns(columns, names, metadata, str(self.path))

    def _check_end(self) -> None:
        where = f"{self.path}, line {self.reader.lines}"
        if not self._rank_of:
            raise InputError(f"{where}: the file holds no MPI calls; trace the program with `smpirun -trace`")
        alive = [container for container in self._rank_of if not self.reader.is_over(container)]
        if alive:
            rank = min(self._rank_of[container] for container in alive)
            raise InputError(
                f"{where}: the file ends before rank {rank} does; it is truncated, or was written with "
                "--cfg=tracing/disable-destroy:yes: run without that"
            )
        if any(INTERNALS in comment for comment in self.reader.comments):
            raise InputError(
                f"{self.path}: was written with --cfg={INTERNALS}, which records each message twice; run without it"
            )

    def _check_senders(self, rows: Rows, links: Links) -> None:
        """Checks that a key means what it is taken for: the number of a process is its rank and one."""
        wrong = rows.rank[links.start_row] + 1 != links.start_source
        if wrong.any():
            at = int(numpy.argmax(wrong))
            raise InputError(
                f"{self.path}: a message that rank {rows.rank[links.start_row[at]]} sends is recorded as from process "
                f"{links.start_source[at]}; SMPI numbers them from 1. Only one application of a simulation can be read"
            )

    def _metadata(
        self, rows: Rows, given: dict[str, Any], warnings: list[str], unsized: list[str], has_bytes: bool
    ) -> dict[str, Any]:
        known: dict[str, Any] = {"source": "simulation", "whole": True, "ranks": int(rows.rank.max()) + 1}
        for comment in self.reader.comments:
            if version := re.search(r"SimGrid-(\S{1,40})", comment):
                known["engine"] = f"SimGrid {version[1]}"
            elif comment.startswith("["):
                words = [word for word in comment.strip("[] ").split() if not word.startswith("--cfg=")]
                known["command"] = " ".join(words)
                known["application"] = Path(words[0]).name if words else ""
        if self._unfinished:
            more = f", and {len(self._unfinished) - 1} more" if len(self._unfinished) > 1 else ""
            warnings.append(f"the simulation ended inside calls: {self._unfinished[0]}{more}")
        if self.reader.digits <= COARSE_DIGITS:
            warnings.append(
                f"timestamps have only {self.reader.digits} decimals, too few for short calls: "
                "run with --cfg=tracing/precision:12"
            )
        if not has_bytes:
            warnings.append("messages have no sizes: run without --cfg=tracing/basic:yes")
        known |= {"resolution_s": 10.0 ** -max(self.reader.digits, 1), "unsized": unsized}
        return {**known, **given, "warnings": [*given.get("warnings", []), *warnings]}


def _call_of(state: str) -> tuple[str, int]:
    """Name and kind of the row that a state becomes."""
    if state in ANONYMOUS:
        return COMPUTING, KERNEL
    name = state[1:] if state.startswith("PMPI_") else state
    if name.startswith("MPI_"):
        return MISSPELT.get(name, name), MPI
    if name.startswith("smpi_replay_run_"):
        return ("MPI_Init" if name.endswith("init") else "MPI_Finalize"), MPI
    plain = name.removeprefix("action_").lower()
    return (REPLAYED.get(plain, f"MPI_{plain.capitalize()}"), MPI) if plain.isalpha() else (name, KERNEL)


def _names(values: list[str]) -> tuple[list[str], list[int], list[int]]:
    """Names and kinds of rows, and of each state the place of its name."""
    calls = [_call_of(value) for value in values]
    names = list(dict.fromkeys(name for name, _ in calls))
    kinds = dict(calls)
    return names, [kinds[name] for name in names], [names.index(name) for name, _ in calls]


def _groups(rows: Rows, start_s: NDArray[Any], end_s: NDArray[Any]) -> NDArray[Any]:
    """Group of each row's collective operation, -1 if that is not known; shape (rows,).

    SMPI tells no communicators. Where all ranks make the same collective calls, and of those in which all wait for all
    nobody leaves before the last has come, they are taken to be operations of all ranks.
    """
    collective = numpy.flatnonzero(rows.named(mpi.COLLECTIVES))
    unknown = numpy.full(len(rows.rank), -1)
    ranks = len(numpy.unique(rows.rank))
    if len(collective) % ranks:
        return unknown
    table = collective[numpy.argsort(rows.rank[collective], kind="stable")].reshape(ranks, -1)
    if (rows.rank[table] != rows.rank[table[:, :1]]).any() or (rows.name[table] != rows.name[table[:1]]).any():
        return unknown
    if (end_s[table].min(axis=0) < start_s[table].max(axis=0))[rows.named(mpi.ALL_TO_ALL)[table[0]]].any():
        return unknown
    unknown[collective] = 0
    return unknown


def _unsized(names: list[str], has_bytes: bool) -> list[str]:
    """Calls of which the bytes are not known: collective ones, and all without sizes of messages."""
    messages = mpi.SENDS | mpi.IMMEDIATE_SENDS | mpi.RECEIVES | mpi.IMMEDIATE_RECEIVES
    return sorted(
        name
        for name in names
        if name.startswith("MPI_") and name not in WITHOUT_SIZE and (not has_bytes or name not in messages)
    )

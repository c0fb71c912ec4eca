"""Paraver's traces, as Extrae writes them, as traces of ours: the .prv, and its .pcf with the names of calls.

Events say when a thread enters and leaves a call of MPI (types 50000001 to 50000005), and of a collective operation the
bytes, communicator and whether the thread is the root (50100001 to 50100004); records of communication join a send
with its receive, and the latter with the end of the call in which the message was there. States are left out, as are
calls that do not communicate: their time is the program's own code. The format does not tell which call ended the
request of a send or of a collective operation (taken are, by a wait that ended no receive, the oldest, and by
MPI_Waitall all), what probes found, and the communicator of messages. Of several applications, such as a reader of
counters beside a program, the one that calls MPI is read. Sources: Extrae 4, src/merger/paraver, and
Paraver's "trace file description".
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import unpacked
from lepaute.kit.text import counted, seconds
from lepaute.simulate.trace import messages
from lepaute.simulate.trace.foreign import LEFT_OUT, LONGEST_LINE, NOT_REPLAYED, Calls, words_of
from lepaute.simulate.trace.table import FLUSH, MAX_RANKS, NOBODY, NOT_MEASURED, Trace

_HEADER = re.compile(r"#Paraver \([^)]*\):(\d{1,18})(_ns)?:\d+(?:\([\d,]*\))?:(\d{1,4}):(.*)")
_APPLICATION = re.compile(r"(\d{1,9})\([\d,:]*\)(?:,\d+)?(?::|$)")
#: Place of the application in a record; of communications, of sender and receiver.
_OF_WHOM = {"1": (1,), "2": (1,), "3": (1, 7), "c": (0,), "i": (0,)}
#: Numbers of states and communications; events have five, and two for each.
_LENGTHS = {"1": 7, "3": 14}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_ENTER = range(50000001, 50000006)
_SENT, _RECEIVED, _ROOT, _COMM = range(50100001, 50100005)
_MESSAGES = messages.SENDS | messages.RECEIVES | messages.IMMEDIATE
_SENDERS = messages.SENDS | messages.IMMEDIATE_SENDS | messages.COLLECTIVES
_RECEIVERS = messages.RECEIVES | messages.IMMEDIATE_RECEIVES | messages.SENDRECVS | messages.COLLECTIVES
#: Events with values other than 0 while a thread writes out its buffer, and while it is traced.
_FLUSHES, _TRACES = 40000003, 40000012


def convert(path: Path, metadata: Mapping[str, Any] | None = None) -> Trace:
    """The trace of a .prv file; raises InputError, one line with the file and the number of the line."""
    reader = _Reader(path)
    known: dict[str, Any] = {"source": "recording", "application": "a program", "engine": "Paraver"}
    begins, ends = ([at.get(task, 0.0) for task in range(reader.tasks)] for at in (reader.begin_s, reader.end_s))
    known |= {"ranks": reader.tasks, "begins_s": begins, "ends_s": ends, "resolution_s": reader.unit_s}
    return reader.calls.trace(known | {"warnings": reader.warnings()}, metadata)


def further_files(path: Path) -> list[Path]:
    """The .pcf beside a .prv, of the same name; each may be compressed."""
    names = (path.with_suffix("") if path.suffix in _COMPRESSED else path).with_suffix(".pcf")
    packed = [file for end in _COMPRESSED if (file := names.with_name(names.name + end)).is_file()]
    return [names] if names.is_file() or not packed else packed[:1]


def _heading(path: Path) -> tuple[int, bool, list[int]]:
    """The length of the trace, whether it is in nanoseconds, and the number of tasks of each application."""
    with unpacked(path, "a trace") as file:
        line = file.readline(LONGEST_LINE).decode("utf-8", "replace").strip()
    header = _HEADER.fullmatch(line)
    tasks = [int(match[1]) for match in _APPLICATION.finditer(header[4])] if header else []
    if header is None or not tasks or len(tasks) != int(header[3]):
        raise InputError(f"{path}, line 1: not the header of a Paraver trace")
    if max(tasks) > MAX_RANKS:
        raise InputError(f"{path}, line 1: has {max(tasks)} tasks; at most {MAX_RANKS} ranks are simulated")
    return int(header[1]), header[2] is not None, tasks


def _records(path: Path) -> Iterator[tuple[str, str, list[int]]]:
    """Where each record stands, its code, and its other numbers."""
    for number, words in words_of(path, ""):
        code, *fields = words[0].split(":")
        where = f"{path}, line {number}"
        try:
            numbers = [_number(field) for field in fields]
            count = len(numbers)
            is_sound = code in _OF_WHOM and count == _LENGTHS.get(code, max(count, 1))
            if len(words) > 1 or not is_sound or (code == "2" and (count < 7 or count % 2 == 0)):
                raise ValueError(code)
            yield where, code, numbers
        except ValueError:
            raise InputError(f"{where}: {' '.join(words)[:60]!r} is not a record of Paraver") from None


def _application(path: Path, tasks: list[int]) -> int:
    """The number of the one that calls MPI."""
    if len(tasks) == 1:
        return 1
    calling = {
        fields[1]
        for _, code, fields in _records(path)
        if code == "2" and 0 < fields[1] <= len(tasks) and any(type_ in _ENTER for type_ in fields[5::2])
    }
    if len(calling) != 1:
        named = f"{', '.join(map(str, sorted(calling)))} call" if calling else "none calls"
        raise InputError(f"{path}: of {len(tasks)} applications {named} MPI; a trace is of one: filter it in Paraver")
    return calling.pop()


def _number(word: str) -> int:
    if len(word) > 18:
        raise ValueError(word)
    return int(word)


class _Reader:
    """tasks: how many; begin_s, end_s: of each, between MPI_Init and MPI_Finalize; guessed: whether requests were."""

    def __init__(self, path: Path) -> None:
        self.length, is_ns, tasks = _heading(path)
        (names,) = further_files(path)
        if not names.is_file():
            raise InputError(f"{names}: no such file; it has the names of calls, and belongs beside the .prv")
        pairs = (words for _, words in words_of(names, "") if len(words) == 2)
        self.names = {value: name for value, name in pairs if name.startswith("MPI_")}
        self.path, self.calls, self.labels = path, Calls(str(path)), names
        self.unit_s, self.last = 1e-9 if is_ns else 1e-6, 0
        application = _application(path, tasks)
        self.tasks = tasks[application - 1]
        self.initialized = set[int]()
        self.begin_s: dict[int, float] = {}
        self.end_s: dict[int, float] = {}
        self.guessed, self.finalized = False, set[int]()
        self.members: dict[int, int] = {}  # of communicators
        self.inside: dict[int, tuple[str, int, dict[int, int]]] = {}  # of tasks the call, its start and what is told
        self.seen = set[int]()
        self.depth: dict[int, int] = defaultdict(int)
        self.rows: dict[int, list[tuple[int, int, str, int]]] = defaultdict(list)  # start, end, name, row
        self.roots: dict[tuple[int, int], int] = {}
        self.turns: dict[tuple[int, int], int] = defaultdict(int)
        self.rooted: list[tuple[int, int, int]] = []
        self.arrivals: dict[int, int] = {}  # of MPI_Sendrecv
        self.joined: set[int] = set()
        self.single: set[int] = set()  # rows of messages without their other side
        self.messages: list[tuple[str, list[int]]] = []
        for where, code, fields in _records(path):
            of = {fields[place] for place in _OF_WHOM[code]}
            if of == {application}:
                try:
                    self._take(code, fields, where)
                except LepauteError:
                    raise
                except (ValueError, IndexError):
                    raise InputError(f"{where}: {code}:{str(fields)[1:60]} is not a record of Paraver") from None
            elif application in of:
                raise InputError(f"{where}: a message between two applications; a trace is of one")
            else:
                self.calls.account("event| of another application", (len(fields) - 5) // 2 if code == "2" else 1)
        for task, (name, *_) in self.inside.items():
            raise InputError(f"{path}: task {task + 1} is in {name} at the end: truncated")
        self._check_end()
        self._join()

    def _check_end(self) -> None:
        """Refuses what ends before its header says so, or before its tasks do."""
        if silent := next((task for task in range(self.tasks) if task not in self.seen), None):
            raise InputError(f"{self.path}: has no record of task {silent + 1} of {self.tasks}: truncated")
        ends = f"{self.path}: ends at {self._time(self.last)} of {self._time(self.length)} (its header)"
        if self.last < self.length and (cut := self.initialized - self.finalized):
            raise InputError(f"{ends}, task {min(cut) + 1} without MPI_Finalize: truncated")
        if self.last < self.length and not self.finalized:
            raise InputError(f"{ends}: truncated; the length of a part that was cut out belongs into its header")

    def _time(self, time: int) -> str:
        return seconds(time * self.unit_s)

    def warnings(self) -> list[str]:
        texts = ["which call ended the request of a send is not told: the oldest is taken"] * self.guessed
        if self.last < self.length:
            texts.append(f"its records end at {self._time(self.last)} of {self._time(self.length)} (its header)")
        if cut := self.initialized - self.finalized:
            texts.append(f"{counted(len(cut), 'task')} without MPI_Finalize, the first is task {min(cut) + 1}")
        if not self.initialized:
            texts.append("no task calls MPI_Init: whether the trace is whole is not known")
        if self.single:
            alone = " and ".join(counted(count, what) for what, count in self.alone.items() if count)
            texts.append(f"{alone} without a record of communication, taken for MPI_PROC_NULL's")
        return texts

    def _take(self, code: str, fields: list[int], where: str) -> None:
        if code == "c":
            if fields[1] in self.members or len(fields) != 3 + fields[2]:
                raise InputError(f"{where}: communicator {fields[1]} is there twice, or has not {fields[2]} members")
            self.members[fields[1]] = fields[2]
            self.calls.account()
        elif code == "3":
            self.messages.append((where, fields))
            self.last = max(self.last, *fields[4:6], *fields[10:12])
        elif code in ("1", "i"):
            self.last = max(self.last, fields[5] if code == "1" else 0)
            self.seen.update((fields[2] - 1,) if code == "1" else ())
            self.calls.account("state" if code == "1" else "intercommunicator")
        else:
            self._events(fields[2] - 1, fields[3], fields[4], fields[5:], where)

    def _events(self, task: int, thread: int, time: int, pairs: list[int], where: str) -> None:
        if not 0 <= task < self.tasks:
            raise InputError(f"{where}: task {task + 1} of {self.tasks}")
        for type_, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type_ in _ENTER and thread != 1:
                raise InputError(f"{where}: MPI from thread {thread} of task {task + 1}: only the first one is read")
            if type_ in _ENTER:
                self._turn(task, value, time, where)
            elif _SENT <= type_ <= _COMM and task in self.inside:
                self.inside[task][2][type_] = value
                self.calls.account()
            elif type_ in (_FLUSHES, _TRACES) and thread == 1:
                name, begins = (FLUSH, value != 0) if type_ == _FLUSHES else (NOT_MEASURED, value == 0)
                self.calls.gap(task, name, time * self.unit_s, begins=begins)
                self.calls.account()
            else:
                self.calls.account("event| that is not of MPI")
        self.seen.add(task)
        self.last = max(self.last, time)
        self.begin_s.setdefault(task, time * self.unit_s)
        if task not in self.finalized:
            self.end_s[task] = time * self.unit_s

    def _turn(self, task: int, value: int, time: int, where: str) -> None:
        """A call that begins, or ends with 0; calls within others are the library's own."""
        self.depth[task] += 1 if value else -1
        if self.depth[task] < 0:
            raise InputError(f"{where}: task {task + 1} leaves a call that it did not enter")
        if value and self.depth[task] == 1:
            if (name := self.names.get(str(value), "")) == "":
                raise InputError(f"{where}: MPI call {value}, which {self.labels.name} does not name")
            self.inside[task] = name, time, {}
        elif not value and self.depth[task]:
            self.calls.account("event| of calls within others", 2)
        elif not value:
            self._leave(task, time, where)

    def _leave(self, task: int, time: int, where: str) -> None:
        name, start, told = self.inside.pop(task)
        omitted = ""
        if name in messages.NEIGHBOURS:
            raise InputError(f"{where}: task {task + 1}: {name}: such a trace does not tell of which neighbours")
        if name in LEFT_OUT:
            if name == "MPI_Finalize":
                self.end_s[task] = start * self.unit_s
                self.finalized.add(task)
            else:
                self.begin_s[task] = time * self.unit_s
                self.initialized.add(task)
        elif name in messages.CREATIONS and _COMM not in told:
            omitted = "event| of creations of communicators without one"
        elif name in messages.COMMUNICATING or NOT_REPLAYED.match(name):
            row = self._add(task, name, start, time, told)
            self.rows[task].append((start, time, name, row))
            if name in messages.SENDRECVS:
                self.arrivals[row] = self._add(task, messages.ARRIVAL, start, start, {})
        else:
            omitted = "event| of calls that move nothing"
        self.calls.account(omitted, 2)

    def _add(self, task: int, name: str, start: int, end: int, told: dict[int, int]) -> int:
        more: dict[str, Any] = {"start_s": start * self.unit_s, "duration_s": (end - start) * self.unit_s}
        plain = messages.BLOCKING_OF.get(name, name)
        if plain not in messages.COLLECTIVES or _COMM not in told:
            peer = NOBODY if name in _MESSAGES else -1
            row = self.calls.add(task, name, peer, n=float(name in messages.PROBES), **more)
            self.single.update((row,) if peer == NOBODY else ())
            return row
        comm, sent, received = told[_COMM], told.get(_SENT, 0), told.get(_RECEIVED, 0)
        if comm not in self.members:
            raise InputError(f"{self.path}: task {task + 1}: {name} in communicator {comm}, which has no record (c:)")
        if plain == "MPI_Alltoall":
            size = sent * self.members[comm]
        elif plain in ("MPI_Bcast", "MPI_Reduce", "MPI_Reduce_scatter"):
            size = max(sent, received)
        else:
            size = received if plain in messages.FROM_ROOT else sent
        world = next((each for each, count in self.members.items() if count == self.tasks), comm)
        row = self.calls.add(task, name, -1, float(size), comm=0 if comm == world else comm + 1, **more)
        turn = self.turns[comm, task]
        self.turns[comm, task] += 1
        if plain in messages.FROM_ROOT | messages.TO_ROOT:
            self.rooted.append((row, comm, turn))
            if told.get(_ROOT) and self.roots.setdefault((comm, turn), task) != task:
                tasks = f"tasks {self.roots[comm, turn] + 1} and {task + 1}"
                raise InputError(
                    f"{self.path}: {tasks} are both the root of {name}, call {turn + 1} in communicator {comm}"
                )
        return row

    def _join(self) -> None:
        """Messages with the calls that sent and received them, requests with waits, and operations with their root."""
        for row, comm, turn in self.rooted:
            self.calls.set(row, peer=self.roots.get((comm, turn), -1))
        self.starts = {task: [start for start, *_ in rows] for task, rows in self.rows.items()}
        received: dict[int, list[int]] = defaultdict(list)
        for where, fields in self.messages:
            _, _, sender, _, sent, _, _, _, receiver, _, begun, over, size, tag = fields
            source, target = sender - 1, receiver - 1
            sends, send = self._call_at(source, sent, _SENDERS)
            receives, receive = self._call_at(target, begun, _RECEIVERS)
            if sends in messages.COLLECTIVES and receives in messages.COLLECTIVES:
                self.calls.account("message| within collective operations, of the library,")
                continue
            if {sends, receives} & {"", *messages.COLLECTIVES}:
                raise InputError(f"{where}: a message outside of calls that send it and receive it")
            self.calls.account()
            if receives in messages.SENDRECVS:
                receive = self.arrivals[receive]
            self.single -= {send, receive}
            self.calls.set(send, peer=target, size_bytes=float(size), tag=tag)
            self.calls.set(receive, peer=source, size_bytes=float(size), tag=tag)
            if receives in messages.IMMEDIATE_RECEIVES:
                wait = bisect_left(self.starts[target], over) - 1
                received[self.rows[target][wait][3]].append(receive)
        for rows in self.rows.values():
            self._end_requests(rows, received)
        self._count_single()

    def _count_single(self) -> None:
        """Sends and receives of which no record of communication tells the other side."""
        names = Counter(map(self.calls.name, self.single))
        sends = sum(count for name, count in names.items() if name in messages.SENDS | messages.IMMEDIATE_SENDS)
        self.alone = {"send": sends, "receive": names.total() - sends}
        if not self.messages and all(self.alone.values()) and self.tasks > 1:
            raise InputError(
                f"{self.path}: has {counted(sends, 'send')}, {counted(self.alone['receive'], 'receive')} and no record "
                "of communication, which tells what belongs to what: merge the trace again, whole"
            )

    def _call_at(self, task: int, time: int, kinds: frozenset[str]) -> tuple[str, int]:
        """The call at this time that may be meant, by name and row; several may begin at once."""
        for at in range(bisect_right(self.starts.get(task, ()), time) - 1, -1, -1):
            start, end, name, row = self.rows[task][at]
            if name in kinds and time <= end and row not in self.joined:
                self.joined.update((row,) if name not in messages.COLLECTIVES | messages.SENDRECVS else ())
                return name, row
            if start < time:
                break
        return "", -1

    def _end_requests(self, rows: list[tuple[int, int, str, int]], received: dict[int, list[int]]) -> None:
        begun: list[int] = []
        for _, _, name, row in rows:
            if name in messages.IMMEDIATE_SENDS or name in messages.NONBLOCKING_COLLECTIVES:
                begun.append(row)
            elif name in messages.WAITS | messages.PROBES:
                over = received.get(row, [])
                count = len(begun) if name == "MPI_Waitall" else int(name in messages.WAITS and not over)
                ended, begun = begun[:count], begun[count:]
                self.guessed |= bool(ended and name != "MPI_Waitall")
                self.calls.end([*over, *ended], row)

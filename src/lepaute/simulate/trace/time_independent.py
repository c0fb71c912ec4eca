"""Time-independent traces of SimGrid's SMPI (`smpirun -trace-ti`) as traces of ours.

A line is a rank, an action and its amounts: flop that are computed, items of a datatype that is a number. A trace is
one file with the lines of all ranks, a list of files (which smpirun writes), or the folder with them. Source: SimGrid
3.32, src/smpi/internals/smpi_replay.cpp, and what its smpirun writes. No action has a time: the calls of a rank stand
where its computing ends. The files do not tell

- communicators: operations are taken to be of all ranks, but with numbers for fewer; sizes of datatype -1;
- who is meant by an unknown rank: of a send nobody; of a receive any source, or nobody where no message is left for it;
- the tag of MPI_Sendrecv; which requests MPI_Waitall, MPI_Waitany and MPI_Waitsome wait for: taken are the oldest;
- whether a test found something: taken is that the last one did where nothing else waits.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.text import counted, ranks_text
from lepaute.simulate.trace.foreign import UNIT_RATE, Calls, number_in, words_of
from lepaute.simulate.trace.table import NOBODY, Trace

#: Bytes of the datatypes 0, 1, ...: double int char short long float byte, then those of 64 bits and others of MPI.
_SIZES = bytes.fromhex(
    "080401020804010801010204080810040101020408010204080810200808081010080808101004040810081020010204081020"
)
_SENT, _RECEIVED = ("count", "type"), ("received", "other")
#: Of each collective operation its values in the file, [..] of as many numbers as ranks, and the count and the type of
#: its bytes. Those from `root` or `type` on may be missing.
_COLLECTIVES = {
    "barrier": ("", _SENT),
    "bcast": ("count root type", _SENT),
    "reduce": ("count flop root type", _SENT),
    **dict.fromkeys(("allreduce", "scan", "exscan"), ("count flop type", _SENT)),
    **dict.fromkeys(("alltoall", "allgather"), ("count received type other", _SENT)),
    "gather": ("count received root type other", _SENT),
    "scatter": ("count received root type other", _RECEIVED),
    "allgatherv": ("count [receives] type other", _SENT),
    "gatherv": ("count [receives] root type other", _SENT),
    "scatterv": ("[counts] received root type other", _RECEIVED),
    "reducescatter": ("[counts] flop type", ("counts", "type")),
    "alltoallv": ("buffer [counts] other_buffer [receives] type other", ("counts", "type")),
}
_MPI_NAMES = {"reducescatter": "MPI_Reduce_scatter", "ireducescatter": "MPI_Ireduce_scatter"}
_MESSAGES = {name: f"MPI_{name.capitalize()}" for name in ("send", "ssend", "recv", "isend", "issend", "irecv")}
_NOTHING = frozenset(("location", "comm_size", "comm_split", "comm_dup"))
_UNTOLD = frozenset(("testall", "testany", "testsome", "start", "startall"))
_WAITS = {"waitall": "MPI_Waitall", "waitany": "MPI_Waitany", "waitsome": "MPI_Waitsome"}


def convert(path: Path, metadata: Mapping[str, Any] | None = None, *, rate: float | None = None) -> Trace:
    """The trace of a file, a list of files, or a folder.

    rate : flop/s at which the amounts were counted (SMPI's smpi/host-speed); None: the trace has `flop_rate`
    Raises InputError, one line with file and line.
    """
    files = further_files(path)
    ranks = {
        int(words[0]) for file in files for _, words in words_of(file) if re.fullmatch(r"\d{1,9}", words[0], re.ASCII)
    }
    reader = _Reader(str(path), len(ranks), rate)
    for file in files:
        for number, words in words_of(file, "finalize"):
            reader.take(words, f"{file}, line {number}")
    reader.finish(str(path))
    known: dict[str, Any] = {"source": "simulation", "engine": "SimGrid", "application": "a program"}
    known |= {"warnings": reader.warnings(), "unsized": sorted(reader.unsized)}
    return reader.calls.trace(known | ({} if rate else {"flop_rate": UNIT_RATE}), metadata)


def further_files(path: Path) -> list[Path]:
    """The files with actions: those of a folder, or of a list, which may name them from the folder of the run."""
    if path.is_dir():
        return sorted(path.glob("*.txt"))
    lines = list(zip(range(2), words_of(path), strict=False))
    if not lines or lines[0][1][1][0].isdecimal():
        return [path]
    files = []
    for number, words in words_of(path):
        name = Path(" ".join(words))
        places = dict.fromkeys(
            (path.parent / name, path.parent / Path(*name.parts[-2:]), path.parent / name.name, name)
        )
        found = [place for place in places if place.is_file()]
        if not found:
            looked = ", ".join(map(str, places))[:400]
            raise InputError(
                f"{path}, line {number}: {str(name)[:80]!r}, a rank's file, does not exist; looked for {looked}"
            )
        if found[0] in files:
            raise InputError(f"{path}, line {number}: {str(name)[:80]!r} is named twice, or two files of that name are")
        files.append(found[0])
    return files


class _Rank:
    """A rank's requests: by what the file calls them, and in their order; which test looked at them last.

    begins, ends : whether the file says so, by init and finalize
    """

    def __init__(self, calls: Calls, number: int) -> None:
        self.calls, self.number, self.begins, self.ends = calls, number, False, False
        self.type = "6"  # what counts are of where the file does not say
        self.by_key: dict[tuple[int, ...], deque[int]] = defaultdict(deque)
        self.key_of: dict[int, tuple[int, ...]] = {}
        self.tested: dict[int, int] = {}

    def begin(self, row: int, key: tuple[int, ...]) -> None:
        for earlier in [one for one in self.by_key[key] if one in self.tested] if self.tested else ():
            self.over([earlier], self.tested[earlier])
        self.by_key[key].append(row)
        self.key_of[row] = key

    def over(self, requests: list[int], wait: int) -> None:
        for row in requests:
            self.by_key[self.key_of.pop(row)].remove(row)
            self.tested.pop(row, None)
        self.calls.end(requests, wait)

    def of_key(self, key: tuple[int, ...]) -> list[int]:
        """The oldest one of this name; a tag of the library is that of collective operations."""
        found = self.by_key.get(key) or (self.by_key.get(()) if key[2] < 0 else None)
        return [found[0]] if found else []


class _Reader:
    def __init__(self, where: str, count: int, rate: float | None) -> None:
        self.count, self.rate, self._is_counted = count, rate or UNIT_RATE, rate is None
        self.calls = Calls(where)
        self.ranks: dict[int, _Rank] = {}
        self._told: dict[str, int] = defaultdict(int)
        self.unsized: set[str] = set()
        # By receiver and tag: rows of the receives whose sender is not known.
        self._unknown: dict[tuple[int, int], list[int]] = defaultdict(list)
        # By source, receiver and tag: sends or receives without the other side, each with its bytes and line; receivers
        # that may take those of others, too; by receiver what is wrong with a message.
        self._single: dict[tuple[int, int, int], deque[tuple[str, float, str]]] = defaultdict(deque)
        self._unsure: set[int] = set()
        self._wrong: dict[int, str] = {}

    def finish(self, where: str) -> None:
        """What is known when all has been read: requests that tests ended, receives from nobody."""
        for rank in self.ranks.values():
            for row, test in list(rank.tested.items()):
                rank.over([row], test)
        self._check_complete(where)
        coming: Counter[tuple[int, int]] = Counter()
        for (_, receiver, tag), alone in self._single.items():
            coming[receiver, tag] += sum(what == "sends" for what, _, _ in alone)
        for (receiver, tag), rows in self._unknown.items():
            if coming[receiver, tag] >= len(rows) or (receiver, -1) in self._unknown:
                continue
            if coming[receiver, tag]:
                raise InputError(
                    f"{where}: of {len(rows)} receives of rank {receiver} with tag {tag} the sender is not told, and "
                    f"there are {coming[receiver, tag]} messages: which ones are from MPI_PROC_NULL is not known"
                )
            for row in rows:
                self.calls.set(row, peer=NOBODY)

    def _check_complete(self, where: str) -> None:
        """Refuses what is cut, or no whole trace: ranks that are missing or do not end, messages without a side."""
        for number, rank in self.ranks.items():
            if rank.begins != rank.ends:
                text = "begins (init) and does not end (finalize)" if rank.begins else "ends and does not begin"
                raise InputError(f"{where}: rank {number} {text}; it is truncated")
        if (last := max(self.ranks, default=-1)) >= self.count:
            first = next(number for number in range(last) if number not in self.ranks)
            raise InputError(
                f"{where}: has lines of {ranks_text(self.count)}, none of rank {first} of {last}; it is truncated"
            )
        for (source, receiver, _), alone in self._single.items():
            what, _, place = alone[0] if alone else ("", 0.0, "")
            text = f"rank {source} sends what rank {receiver} does not receive"
            if what == "receives":
                text = f"rank {receiver} receives what rank {source} does not send"
            if what:
                self._wrong.setdefault(receiver, f"{place}: {text}; it is truncated, or not a whole trace")
        for receiver, text in self._wrong.items():
            if receiver not in self._unsure:
                raise InputError(text)

    def warnings(self) -> list[str]:
        said = {
            "waits": ("wait", "for some of several requests, taken for the oldest"),
            "collective": ("collective call", "without a communicator, taken for all ranks"),
        }
        if self._is_counted:
            said["sleeps"] = ("sleep", "that last as long as a Gflop a second (trace convert --flop-rate)")
        texts = [f"{counted(self._told[of], noun)} {words}" for of, (noun, words) in said.items() if self._told[of]]
        if unended := sum(not rank.begins for rank in self.ranks.values()):
            texts.append(f"{ranks_text(unended)} without init and finalize: whether the file is whole is not known")
        return texts

    def take(self, words: list[str], where: str) -> None:
        if not words[0].isdecimal() or len(words[0]) > 9 or len(words) < 2:
            raise InputError(f"{where}: begins with {' '.join(words)[:40]!r}, which is not a rank and its action")
        number, action, values = int(words[0]), words[1].lower(), words[2:]
        rank = self.ranks.setdefault(number, _Rank(self.calls, number))
        rows = len(self.calls)
        if action in ("init", "finalize"):
            rank.type = rank.type if action == "finalize" else "0" if values else "6"
            rank.begins, rank.ends = rank.begins or action == "init", rank.ends or action == "finalize"
        elif action in ("compute", "sleep"):
            self._values(values, 1, 1, where, action, "an amount")
            amount = number_in(values[0], where, f"{action}'s amount")
            self._told["sleeps"] += action == "sleep"
            self.calls.compute(number, amount if action == "sleep" else amount / self.rate)
        elif action in _MESSAGES:
            self._message(rank, action, values, where)
        elif action == "sendrecv":
            self._values(values, 4, 6, where, "sendrecv", "count and rank of both messages, and their datatypes")
            for at, name in ((0, "MPI_Sendrecv"), (2, "MPI_Sendrecv_arrival")):
                kind = values[4 + at // 2] if len(values) > 4 + at // 2 else rank.type
                peer = self._rank(values[at + 1], where, "sendrecv's rank")
                self._unsure.update((rank.number, peer))
                size_bytes = self._bytes(values[at], kind, where, "sendrecv")
                self.calls.add(rank.number, name, peer if peer >= 0 else NOBODY, size_bytes, 0)
        elif action in ("wait", "test"):
            self._one(rank, action, values, where)
        elif action in _WAITS:
            self._several(rank, action, values, where)
        elif action in _COLLECTIVES or action[1:] in _COLLECTIVES:
            self._collective(rank, action, values, where)
        elif action in _UNTOLD:
            raise InputError(f"{where}: {action}: such a trace does not tell of which requests")
        elif action not in _NOTHING:
            raise InputError(f"{where}: the action {words[1][:40]!r} is not known")
        has_effect = len(self.calls) > rows or action in ("init", "finalize")
        self.calls.account("" if has_effect else f"call| of {action}, which moves nothing,")

    def _values(self, values: list[str], least: int, most: int, where: str, action: str, what: str) -> None:
        if not least <= len(values) <= most:
            raise InputError(f"{where}: {action} has {counted(len(values), 'value')}; it has {what}")

    def _bytes(self, count: str, datatype: str, where: str, action: str) -> float:
        items = number_in(count, where, f"{action}'s count")
        if datatype == "-1":
            self.unsized.add(_MPI_NAMES.get(action, f"MPI_{action.capitalize()}"))
            return 0.0
        if not datatype.isdecimal() or len(datatype) > 3 or int(datatype) >= len(_SIZES):
            raise InputError(f"{where}: {action} is of datatype {datatype[:20]!r}, whose size is not told")
        return items * _SIZES[int(datatype)]

    def _message(self, rank: _Rank, action: str, values: list[str], where: str) -> None:
        self._values(values, 3, 4, where, action, "rank, tag, count and datatype (SimGrid 3.25 and later)")
        peer = self._rank(values[0], where, f"{action}'s rank")
        tag = int(number_in(values[1], where, f"{action}'s tag", -1e9, int))
        size_bytes = self._bytes(values[2], values[3] if len(values) > 3 else rank.type, where, action)
        sends = action.endswith("send")
        named = (peer if peer >= 0 else NOBODY) if sends else max(peer, -1)
        row = self.calls.add(rank.number, _MESSAGES[action], named, size_bytes, max(tag, -1))
        if not sends and named < 0:
            self._unknown[rank.number, max(tag, -1)].append(row)
        if not sends and min(named, tag) < 0:
            self._unsure.add(rank.number)
        elif named >= 0:
            self._match((rank.number, named, tag) if sends else (named, rank.number, tag), sends, size_bytes, where)
        if action.startswith("i") and named != NOBODY:
            rank.begin(row, (rank.number, peer, tag) if sends else (peer, rank.number, tag))

    def _match(self, key: tuple[int, int, int], sends: bool, size_bytes: float, where: str) -> None:
        """A message with its other side, in their order."""
        alone, what = self._single[key], "sends" if sends else "receives"
        if not alone or alone[0][0] == what:
            alone.append((what, size_bytes, where))
            return
        _, other_bytes, place = alone.popleft()
        sent, room = (size_bytes, other_bytes) if sends else (other_bytes, size_bytes)
        if sent > room and not self.unsized:
            text = f"receives {room:.0f} bytes of a message of {sent:.0f} from rank {key[0]}"
            self._wrong.setdefault(key[1], f"{place if sends else where}: rank {key[1]} {text}")

    def _rank(self, word: str, where: str, what: str, least: float = -1e9) -> int:
        """One that there is, or below 0."""
        number = int(number_in(word, where, what, least, int))
        if number >= self.count:
            raise InputError(f"{where}: {what} is {number}; there are {ranks_text(self.count)}")
        return number

    def _one(self, rank: _Rank, action: str, values: list[str], where: str) -> None:
        self._values(values, 3, 3, where, action, "source, target and tag")
        found = rank.of_key(tuple(int(number_in(word, where, f"{action}'s request", -1e9, int)) for word in values))
        row = self.calls.add(rank.number, f"MPI_{action.capitalize()}", n=float(action == "test"))
        if action == "wait":
            rank.over(found, row)
        elif found:
            rank.tested[found[0]] = row

    def _several(self, rank: _Rank, action: str, values: list[str], where: str) -> None:
        self._values(values, 0, 1, where, action, "a number of requests")
        wanted = int(number_in(values[0], where, f"{action}'s number", 0.0, int)) if values else len(rank.key_of)
        wanted = wanted if action == "waitall" else min(wanted, 1)
        self._told["waits"] += wanted < len(rank.key_of)
        rank.over(list(rank.key_of)[:wanted], self.calls.add(rank.number, _WAITS[action]))

    def _collective(self, rank: _Rank, action: str, values: list[str], where: str) -> None:
        name = action if action in _COLLECTIVES else action[1:]
        form, (of_bytes, of_type) = _COLLECTIVES[name]
        found, left = {"root": "0", "type": rank.type, "other": rank.type}, list(values)
        counts: dict[str, list[str]] = {}
        lists = form.count("[")
        members, more = divmod(len(values) - len(form.split()) + lists, max(lists, 1))
        members = members if lists and not more and 0 < members < self.count else self.count
        for part in form.split():
            wanted = members if part.startswith("[") else 1
            taken, left = left[:wanted], left[wanted:]
            if len(taken) == wanted:
                counts[part.strip("[]")] = taken
        if left or not {part.strip("[]") for part in form.split()} <= found.keys() | counts.keys():
            raise InputError(f"{where}: {action} on {self.count} ranks has {len(values)} values; it has {form}")
        found |= {part: taken[0] for part, taken in counts.items()}
        size_bytes = 0.0
        if form:
            size_bytes = sum(self._bytes(count, found[of_type], where, action) for count in counts[of_bytes])
            self._bytes("0", found["other"], where, action)
        root = self._rank(found["root"], where, f"{action}'s root", 0.0) if "root" in form else -1
        if name == "alltoall":
            size_bytes *= self.count
        self._told["collective"] += members == self.count
        made = _MPI_NAMES.get(action, f"MPI_{action.capitalize()}")
        row = self.calls.add(rank.number, made, root, size_bytes, comm=0 if members == self.count else -1)
        if name != action:
            rank.begin(row, ())
        if "flop" in found:
            self.calls.compute(rank.number, number_in(found["flop"], where, f"{action}'s flop") / self.rate)

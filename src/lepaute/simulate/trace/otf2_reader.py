"""OTF2 archives, as Score-P writes them, as traces of ours; the package otf2 reads them.

The locations that the archive calls those of MPI are the ranks, and their calls and regions (phases) are read; other
threads (refused where they call MPI), devices and metrics are left out. Time between calls is the program's own code;
that of gaps is not (buffers that were written out, measurement that was off). What a call did say the events
within its region: messages, requests (by their number), collective operations with communicator and bytes. The last are
those of Score-P (`collective_bytes`). Calls without any that do not communicate, such as MPI_Comm_rank, are own code
too; so are probes, of which most archives do not tell what they found. Source: the documentation of OTF2 3.0, and
Score-P 8, src/adapters/mpi/scorep_mpi_coll.c.
"""

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import unpacked
from lepaute.kit.extras import need
from lepaute.kit.text import counted, seconds, tally
from lepaute.simulate.trace import messages
from lepaute.simulate.trace.foreign import LEFT_OUT, NOT_REPLAYED, Calls
from lepaute.simulate.trace.table import FLUSH, NOBODY, NOT_MEASURED, Trace

NO_ROOT = 0xFFFFFFFF
#: Names of regions, as some tools have them with parentheses.
_CALL = re.compile(r"(MPI_\w+)(?: ?\(.*\))?")
_COMPLETIONS = ("MpiIsendComplete", "MpiIrecv", "NonBlockingCollectiveComplete", "MpiRequestCancelled")
_BEGINNINGS = ("MpiIsend", "MpiIrecvRequest", "NonBlockingCollectiveRequest")
#: In place of what the library prints where it raises as well.
_SILENCE = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p),
    *(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p),
)(lambda *arguments: arguments[4])
#: Operations of which a rank tells its bytes once for each member.
_TO_EACH = frozenset(("MPI_Allgather", "MPI_Allgatherv", "MPI_Allreduce", "MPI_Reduce_scatter_block"))


def collective_bytes(name: str, size_bytes: float, members: int, me: int, is_root: bool) -> tuple[float, float]:
    """Bytes that member number `me` sends and receives by Score-P's rules if the size of its row is `size_bytes`."""
    plain = messages.BLOCKING_OF.get(name, name)
    if plain in messages.FROM_ROOT:
        return members * size_bytes if is_root else 0.0, size_bytes
    if plain in messages.TO_ROOT:
        return size_bytes, members * size_bytes if is_root else 0.0
    if plain in ("MPI_Scan", "MPI_Exscan"):
        other = plain == "MPI_Exscan"
        return (members - me - other) * size_bytes, (me + 1 - other) * size_bytes
    total = size_bytes * (members if plain in _TO_EACH else 1)
    return total, total


def size_of(name: str, sent: float, received: float, members: int, me: int, is_root: bool) -> float:
    """The size of the row, from what Score-P says was sent and received: the other way round."""
    of_sent, of_received = collective_bytes(name, 1.0, members, me, is_root)
    from_root = messages.BLOCKING_OF.get(name, name) in messages.FROM_ROOT
    return received / max(of_received, 1.0) if from_root or not of_sent else sent / of_sent


def convert(path: Path, metadata: Mapping[str, Any] | None = None) -> Trace:
    """The trace of an archive: the folder, or its file traces.otf2.

    Raises InputError, one line with the rank, for what cannot be read; MissingExtra where the package otf2 is missing.
    """
    need("otf2", "an OTF2 archive")
    reader = import_module("otf2.reader")
    anchor = next(iter(sorted(path.glob("*.otf2"))), path) if path.is_dir() else path
    for file in (anchor, *sorted(anchor.with_suffix("").rglob("*"))):
        if not file.is_dir():
            with unpacked(file, "a file of an archive"):  # the library would wait for a pipe
                pass
    import_module("_otf2.Config").conf.lib.OTF2_Error_RegisterCallback(_SILENCE, None)
    try:
        with redirect_stderr(StringIO()), reader.open(str(anchor)) as archive:  # where it prints what it raises
            return _Archive(anchor, archive).trace(metadata)
    except LepauteError:
        raise
    except Exception as problem:  # noqa: BLE001  whatever the package raises
        text = str(problem).strip().splitlines() or [type(problem).__name__]
        raise InputError(f"{anchor}: cannot be read: {text[0][:200]}") from None


class _Rank:
    """Open items on a rank: the call of MPI with its region, how many are in that, and its events; requests by number.

    count : the events since that call began
    """

    def __init__(self, number: int) -> None:
        self.number, self.depth, self.called, self.count = number, 0, "", 0
        self.region: Any = None
        self.start_s, self.events = 0.0, defaultdict[str, list[Any]](list)
        self.requests: dict[int, int] = {}
        self.regions: list[tuple[str, float]] = []
        self.begin_s: float | None = None
        self.end_s, self.is_over = 0.0, False


class _Archive:
    def __init__(self, path: Path, archive: Any) -> None:
        otf2 = import_module("otf2")
        self.path, self.archive, self.calls = path, archive, Calls(str(path))
        definitions = archive.definitions
        kind = otf2.GroupType.COMM_LOCATIONS, otf2.Paradigm.MPI
        groups = [group.members for group in definitions.groups if (group.group_type, group.paradigm) == kind]
        self.places = list(groups[0]) if groups else []
        if not self.places:
            raise InputError(f"{path}: it has no ranks of MPI (no group COMM_LOCATIONS)")
        self.rank_of = {place: rank for rank, place in enumerate(self.places)}
        self.ranks = [_Rank(number) for number in range(len(self.places))]
        self.members: dict[Any, list[int]] = {
            comm: [self.rank_of[place] for place in comm.group.members or ()] for comm in definitions.comms
        }
        world = next((comm for comm, ranks in self.members.items() if len(ranks) == len(self.places)), None)
        others = (comm for comm in self.members if comm != world)
        self.numbers = {comm: at for at, comm in enumerate(others, start=1)} | ({} if world is None else {world: 0})
        self.untold, self.off = Counter[str](), otf2.MeasurementMode.OFF
        clock = definitions.clock_properties
        self.first, self.resolution = clock.global_offset, float(clock.timer_resolution)

    def trace(self, metadata: Mapping[str, Any] | None) -> Trace:
        read: Counter[Any] = Counter()
        for place, event in self.archive.events:
            read[place] += 1
            type_, time_s = type(event).__name__, (event.time - self.first) / self.resolution
            if place in self.rank_of:
                self._take(self.ranks[self.rank_of[place]], type_, event, time_s)
            else:
                self._take_beside(place, type_, event)
        for place in self.archive.definitions.locations:
            if read[place] < place.number_of_events:
                events = f"{read[place]} of {counted(place.number_of_events, 'event')}"
                raise InputError(f"{self.path}: has {events} of {place.name[:40]!r}: truncated")
        for rank in self.ranks:
            for region in rank.regions:  # they go on to the end
                self._add_region(rank, *region, rank.end_s, events=1)
            if rank.called:
                raise InputError(f"{self.path}: rank {rank.number} is in {rank.called} at the end: truncated")
        nodes = [getattr(place.group.system_tree_parent, "name", "") for place in self.places]
        hosts = list(dict.fromkeys(nodes))
        known: dict[str, Any] = {"source": "recording", "application": "a program", "engine": "OTF2"}
        known |= {"ranks": len(self.places), "hosts": hosts, "nodes": [hosts.index(node) for node in nodes]}
        known["begins_s"] = [rank.begin_s or 0.0 for rank in self.ranks]
        known["ends_s"] = [rank.end_s for rank in self.ranks]
        known |= {"resolution_s": 1.0 / self.resolution, "warnings": tally(self.untold)}
        return self.calls.trace(known, metadata)

    def _take(self, rank: _Rank, type_: str, event: Any, time_s: float) -> None:
        if rank.begin_s is None:
            rank.begin_s = time_s
        rank.count += 1
        if type_ in ("Enter", "Leave"):
            self._turn(rank, event.region, type_ == "Enter", time_s)
        elif type_.startswith(("Mpi", "NonBlocking")):
            if not rank.called:
                raise self._refusal(rank, f"{type_} at {seconds(time_s)} outside of a call of MPI")
            if type_ in ("MpiMrecv", "MpiImrecvRequest", "MpiImrecv"):
                raise self._refusal(rank, f"{rank.called}: matched probes are not read")
            rank.events[type_].append(event)
        else:
            is_gap = type_ in ("BufferFlush", "MeasurementOnOff")
            if type_ == "BufferFlush":
                self.calls.gaps[rank.number, FLUSH].append((time_s, (event.stop_time - self.first) / self.resolution))
            elif is_gap:
                self.calls.gap(rank.number, NOT_MEASURED, time_s, begins=event.measurement_mode == self.off)
            if not rank.called:
                self.calls.account("" if is_gap else f"event| {type_}")
        if not rank.is_over:
            rank.end_s = time_s

    def _turn(self, rank: _Rank, region: Any, enters: bool, time_s: float) -> None:
        """A region that begins or ends; those within a call are its own."""
        match = _CALL.fullmatch(region.name)
        if rank.called:
            rank.depth += 1 if enters else -1
            if rank.depth < 0 and region != rank.region:
                raise self._refusal(rank, f"leaves {region.name[:40]!r} inside of {rank.called}")
            if rank.depth < 0:
                self.calls.account(self._leave(rank, time_s), rank.count)
                rank.called, rank.depth = "", 0
        elif match and not enters:
            raise self._refusal(rank, f"leaves {match[1]} at {seconds(time_s)}, which it did not enter")
        elif match:
            rank.called, rank.region, rank.start_s, rank.count = match[1], region, time_s, 1
            rank.events.clear()
            if rank.called == "MPI_Finalize":
                rank.end_s, rank.is_over = time_s, True
        elif enters:
            rank.regions.append((region.name, time_s))
        elif rank.regions and rank.regions[-1][0] == region.name:
            self._add_region(rank, *rank.regions.pop(), min(time_s, rank.end_s if rank.is_over else time_s))
        else:
            self.calls.account("event| that leave a region which was not entered last")

    def _add_region(self, rank: _Rank, name: str, start_s: float, end_s: float, events: int = 2) -> None:
        """Adds a region, as far as it is between MPI_Init and MPI_Finalize."""
        self.calls.region(rank.number, name, max(start_s, rank.begin_s or 0.0), end_s, events)

    def _take_beside(self, place: Any, type_: str, event: Any) -> None:
        """An event of a further thread, or of a device."""
        match = _CALL.fullmatch(event.region.name) if type_ == "Enter" else None
        calls = match is not None and (match[1] in messages.COMMUNICATING or NOT_REPLAYED.match(match[1]))
        if calls or type_.startswith(("Mpi", "NonBlocking")):
            rank = next((rank for rank in self.ranks if self.places[rank.number].group == place.group), self.ranks[0])
            call = match[1] if match else type_
            raise self._refusal(rank, f"{call} on {place.name[:40]!r}: MPI is read of one thread of a rank")
        self.calls.account("event| of further threads and devices")

    def _refusal(self, rank: _Rank, text: str) -> InputError:
        return InputError(f"{self.path}: rank {rank.number}: {text}")

    def _leave(self, rank: _Rank, time_s: float) -> str:
        """Makes rows of the call that is over; returns as what its events are left out, where it has none."""
        name = rank.called
        if name in LEFT_OUT:
            if name != "MPI_Finalize":
                rank.begin_s = time_s
            return ""
        rows = len(self.calls)
        self._check_events(rank)
        if name in messages.SENDS:
            self._message(rank, name, time_s, "MpiSend")
            if name in messages.SENDRECVS:
                self._message(rank, messages.ARRIVAL, rank.start_s, "MpiRecv")
        elif name in messages.RECEIVES:
            self._message(rank, name, time_s, "MpiRecv")
        elif name in messages.NEIGHBOURS:
            raise self._refusal(rank, f"{name}: an archive does not tell of which neighbours")
        elif name in messages.COLLECTIVES:
            ends = rank.events["MpiCollectiveEnd"]
            if ends or name not in messages.CREATIONS:
                self._add(rank, name, time_s, **(self._what(rank, name, ends[0]) if ends else {}))
        elif name in messages.WAITS | messages.PROBES:
            self._wait(rank, name, time_s)
        elif NOT_REPLAYED.match(name):
            self._add(rank, name, time_s)
        else:
            self._begin(rank, name, time_s)
        omitted = "event| of calls that move nothing, or creations of communicators without one"
        return omitted if len(self.calls) == rows else ""

    def _check_events(self, rank: _Rank) -> None:
        """Refuses what a call of this name does not do; messages within collective operations are the library's own."""
        name = rank.called
        if name in messages.COLLECTIVES or NOT_REPLAYED.match(name):
            return
        sends, receives = name in messages.SENDS, name in messages.RECEIVES | messages.SENDRECVS
        ends = name in messages.WAITS | messages.PROBES
        several = {*(_COMPLETIONS if ends else () if sends or receives else _BEGINNINGS), "MpiRequestTest", "MpiProbe"}
        for type_, events in rank.events.items():
            if type_ not in several and len(events) > {"MpiSend": sends, "MpiRecv": receives}.get(type_, 0):
                raise self._refusal(rank, f"{name} has {len(events)} of {type_}, which it does not do")

    def _add(self, rank: _Rank, name: str, time_s: float, **what: Any) -> int:
        duration_s = max(0.0, time_s - rank.start_s)
        return self.calls.add(rank.number, name, start_s=rank.start_s, duration_s=duration_s, **what)

    def _message(self, rank: _Rank, name: str, time_s: float, type_: str) -> None:
        """A row of the event of this type that the call has, or does not have."""
        if events := rank.events[type_]:
            self._add(rank, name, time_s, **self._ends(rank, events[0]))
        else:
            self.untold["message| without an event of it, taken for MPI_PROC_NULL's"] += 1
            self._add(rank, name, time_s, peer=NOBODY)

    def _ends(self, rank: _Rank, event: Any) -> dict[str, Any]:
        """Columns of a message."""
        comm, peer = event.communicator, event.receiver if hasattr(event, "receiver") else event.sender
        what = {"peer": self._world(rank, comm, peer), "size_bytes": float(event.msg_length)}
        return what | {"tag": int(event.msg_tag), "comm": self._number(rank, comm)}

    def _world(self, rank: _Rank, comm: Any, peer: int) -> int:
        """The rank among all of one in a communicator; one without members is that of a rank alone."""
        members = self.members.get(comm) or [rank.number]
        if not 0 <= peer < len(members):
            raise self._refusal(rank, f"{rank.called}: no rank {peer} in {comm.name[:40]!r}")
        return members[peer]

    def _number(self, rank: _Rank, comm: Any) -> int:
        if comm not in self.numbers:
            raise self._refusal(rank, f"{rank.called}: of two groups (an intercommunicator)")
        return self.numbers[comm] if self.members[comm] else len(self.numbers) + rank.number

    def _what(self, rank: _Rank, name: str, event: Any) -> dict[str, Any]:
        """Columns of a collective operation."""
        comm = event.communicator
        number, members = self._number(rank, comm), self.members[comm] or [rank.number]
        root = -1 if event.root == NO_ROOT else self._world(rank, comm, event.root)
        me = members.index(rank.number) if rank.number in members else 0
        sizes = float(event.size_sent), float(event.size_received), len(members), me, root == rank.number
        return {"peer": root, "size_bytes": size_of(name, *sizes), "comm": number}

    def _begin(self, rank: _Rank, name: str, time_s: float) -> None:
        """A call that began requests, also of several at once (MPI_Startall); or one that did nothing."""
        if not rank.events and name in messages.IMMEDIATE:
            self._message(rank, name, time_s, "")
        sends = name if name in messages.IMMEDIATE_SENDS else "MPI_Isend"
        for type_, begins in zip(_BEGINNINGS, (sends, "MPI_Irecv", name), strict=True):
            for event in rank.events[type_]:
                what = self._ends(rank, event) if type_ == "MpiIsend" else {}
                rank.requests[event.request_id] = self._add(rank, begins, time_s, **what)

    def _wait(self, rank: _Rank, name: str, time_s: float) -> None:
        row = self._add(rank, name, time_s)
        over = []
        for type_ in _COMPLETIONS:
            for event in rank.events[type_]:
                request = rank.requests.pop(event.request_id, None)
                if request is None:
                    raise self._refusal(rank, f"{name} ends request {event.request_id}, which is not open")
                over.append(request)
                if type_ == "MpiIrecv":
                    self.calls.set(request, **self._ends(rank, event))
                elif type_ == "NonBlockingCollectiveComplete":
                    self.calls.set(request, **self._what(rank, self.calls.name(request), event))
                elif type_ == "MpiRequestCancelled":
                    self.calls.set(request, peer=NOBODY, size_bytes=0.0)
        if name == "MPI_Waitall" and not over:
            over = list(rank.requests.values())
            rank.requests.clear()
            text = "by MPI_Waitall, which does not say so: all open ones are taken, receives from any source"
            self.untold.update({f"request| ended {text}": len(over)} if over else {})
        self.calls.end(over, row)
        if name in messages.PROBES and not over:
            self.calls.set(row, n=1.0)

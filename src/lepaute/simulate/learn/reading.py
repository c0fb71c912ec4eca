"""Recordings as learning takes them: what every rank calls, in order, and how long it computes before each call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import ranks_text
from lepaute.simulate.apps.own.rank import ALGORITHMS
from lepaute.simulate.apps.replay.calls import CALLS, MEETINGS, Does, Rows
from lepaute.simulate.apps.replay.collectives import OPENMPI
from lepaute.simulate.apps.replay.laying import RecordedPart, Survey
from lepaute.simulate.apps.replay.operations import Operations
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.messages import CREATIONS, completions
from lepaute.simulate.trace.reading import TraceParts
from lepaute.simulate.trace.table import NOBODY

SENDS, RECEIVES = frozenset(("send", "ssend", "isend")), frozenset(("receive", "irecv", "probe"))
BETWEEN_TWO = SENDS | RECEIVES
#: Collective operations that an application has a method for, by what recordings call them.
METHODS = {code: code for code in ALGORITHMS} | {"create": "allgather", "reduce_scatter_block": "reduce_scatter"}
_BOTH = (Does.SENDS_AND_RECEIVES, Does.ARRIVES)


@dataclass(frozen=True)
class Calls:
    """Calls of a recording in the order of ranks; arrays of one length.

    rank, code, site : code and site into `codes` and `sites`; site -1: not recorded
    peer, tag, size  : peer -1 of calls without; size in bytes, of a block or a vector as applications take it
    group            : of a collective operation, 0 for MPI_COMM_WORLD, else the number of its communicator on that rank
    before_s         : computing since the rank's call before, seconds, without waiting for a core
    duration_s       : of the call
    completed_by     : of a request the index of the call that ends it, else -1;  ended: requests that a call ends
    members          : by number of a communicator, of every rank that uses it the ranks in it
    """

    path: Path
    ranks: int
    parameters: Mapping[str, int]
    metadata: Mapping[str, Any]
    rank: NDArray[Any]
    code: NDArray[Any]
    site: NDArray[Any]
    peer: NDArray[Any]
    tag: NDArray[Any]
    size: NDArray[Any]
    group: NDArray[Any]
    before_s: NDArray[Any]
    duration_s: NDArray[Any]
    completed_by: NDArray[Any]
    ended: NDArray[Any]
    codes: tuple[str, ...]
    sites: tuple[str, ...]
    members: tuple[Mapping[int, tuple[int, ...]], ...]

    def __len__(self) -> int:
        return len(self.rank)


def read_calls(path: Path, parameters: Mapping[str, int]) -> Calls:
    """Calls of a recording, without those that have no effect, such as messages to nobody.

    Raises InputError for what is no recording of a complete run.
    """
    parts = TraceParts(path)
    survey = Survey(parts, str(path), operations=False)
    if survey.metadata.get("ended_by"):
        raise InputError(f"{path}: the run was cut short; learn takes recordings of runs that ended")
    read: list[dict[str, NDArray[Any]]] = []
    members: list[dict[int, tuple[int, ...]]] = []
    before = 0  # calls of earlier parts
    for trace in parts:
        read.append(_calls_of(trace, survey, members))
        read[-1]["completed_by"] += numpy.where(read[-1]["completed_by"] >= 0, before, 0)
        before += len(read[-1]["rank"])
    columns = {name: numpy.concatenate([part[name] for part in read]) for name in read[0]}
    codes, code = numpy.unique(columns.pop("words").astype(str), return_inverse=True)
    return Calls(
        path=path,
        ranks=survey.ranks,
        parameters=parameters,
        metadata=survey.metadata,
        code=code.reshape(-1),
        codes=tuple(codes.tolist()),
        sites=tuple(map(str, survey.metadata.get("sites") or ())),
        members=tuple(members),
        **columns,
    )


def _calls_of(trace: Trace, survey: Survey, members: list[dict[int, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """Columns of the calls of some ranks; members: gets the communicators that they use."""
    part = RecordedPart(Rows(trace), survey, Operations(), OPENMPI)
    rows, words = _expanded(trace, part)
    columns = _columns(trace, part, rows, words)
    kept = numpy.flatnonzero((columns["peer"] != NOBODY) & ((words != "wait") | (columns["ended"] > 0)))
    place = numpy.full(len(rows) + 1, -1)
    place[kept] = numpy.arange(len(kept))
    columns = {name: values[kept] for name, values in columns.items()}
    columns["completed_by"] = place[columns["completed_by"]]
    rows = rows[kept]
    passed = numpy.cumsum(part.seconds_between()[0])  # of calls without effect it counts with the next one
    starts = numpy.flatnonzero(numpy.diff(trace.rank[rows], prepend=-1))
    before_s = numpy.diff(passed[rows], prepend=0.0)
    first = numpy.searchsorted(trace.rank, trace.rank[rows[starts]])
    before_s[starts] = passed[rows[starts]] - numpy.where(first > 0, passed[first - 1], 0.0)
    return {
        **columns,
        "words": words[kept],
        "rank": trace.rank[rows],
        "site": trace.site[rows],
        "group": _groups(survey, trace, rows, members),
        "before_s": numpy.maximum(before_s, 0.0),
        "duration_s": numpy.where(numpy.diff(rows, prepend=-1) == 0, 0.0, trace.duration_s[rows]),
    }


def _expanded(trace: Trace, part: RecordedPart) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of calls that do something, and what they are: MPI_Sendrecv is a receive, a send, and a wait for both."""
    does = part.does
    is_call = ~numpy.isin(does, (Does.NOTHING, Does.COMPUTES, *_BOTH)) & (trace.peer != NOBODY)
    plain = numpy.flatnonzero(is_call)
    words = numpy.array([CALLS[name].code if name in CALLS else "" for name in trace.names] or [""], dtype=object)
    words[[at for at, name in enumerate(trace.names) if name in CREATIONS]] = "create"
    of_plain = words[trace.name[plain]]
    of_plain[does[plain] == Does.ENDS] = "wait"
    starts = does[plain] == Does.BEGINS_MEETING
    of_plain[starts] = "i" + of_plain[starts]
    send, receive = numpy.flatnonzero(does == _BOTH[0]), numpy.flatnonzero(does == _BOTH[1])
    rows = numpy.concatenate((plain, send, send, receive))
    order = numpy.concatenate((plain * 4, send * 4, send * 4 + 1, send * 4 + 2))
    three = (numpy.full(len(send), word, dtype=object) for word in ("irecv", "isend", "wait"))
    codes = numpy.concatenate((of_plain, *three))
    by_order = numpy.lexsort((order,))
    return rows[by_order], codes[by_order]


def _columns(trace: Trace, part: RecordedPart, rows: NDArray[Any], codes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Peer, tag, size and requests of the calls."""
    does = part.does[rows]
    peer, tag = trace.peer[rows].astype("int64"), trace.tag[rows].copy()
    size = numpy.zeros(len(rows))
    of_both = (does == _BOTH[0]) & (codes == "irecv")
    arrival = rows[of_both] + 1  # the row behind its MPI_Sendrecv
    peer[of_both], tag[of_both] = trace.peer[arrival], trace.tag[arrival]
    is_send = numpy.isin(codes, list(SENDS))
    size[is_send] = trace.size_bytes[rows[is_send]]
    met, _, _, sizes = part.meetings()
    is_met = numpy.isin(does, MEETINGS)
    size[is_met] = sizes[numpy.searchsorted(met, rows[is_met])]
    scattered = numpy.array(["reduce_scatter" in code for code in codes.tolist()], dtype=bool)
    size[scattered] /= part.meetings()[2][numpy.searchsorted(met, rows[scattered])]  # of a block
    at_row = numpy.full(len(trace), -1)
    at_row[rows[does == Does.ENDS]] = numpy.flatnonzero(does == Does.ENDS)
    done = completions(trace)[rows]
    completed_by = numpy.where(numpy.isin(does, (Does.BEGINS, Does.BEGINS_MEETING)) & (done >= 0), at_row[done], -1)
    both = numpy.flatnonzero(numpy.isin(does, _BOTH) & (codes != "wait"))
    waits = numpy.flatnonzero(numpy.isin(does, _BOTH) & (codes == "wait"))
    completed_by[both] = waits[numpy.searchsorted(waits, both)] if len(both) else completed_by[both]
    ended = numpy.bincount(completed_by[(completed_by >= 0) & (peer != NOBODY)], minlength=len(rows))
    return {"peer": peer, "tag": tag, "size": size, "completed_by": completed_by, "ended": ended}


def _groups(
    survey: Survey, trace: Trace, rows: NDArray[Any], members: list[dict[int, tuple[int, ...]]]
) -> NDArray[Any]:
    """Communicator of every call: 0 for MPI_COMM_WORLD; of others the order in which a rank first uses them, from 1."""
    group = numpy.zeros(len(rows), dtype="int64")
    comm = trace.comm[rows].clip(0)
    met = numpy.isin([CALLS[name].does if name in CALLS else Does.NOTHING for name in trace.names] or [0], MEETINGS)
    sub = numpy.flatnonzero(met[trace.name[rows]] & (comm > 0))
    bounds = numpy.flatnonzero(numpy.diff(trace.rank[rows[sub]], prepend=-1))
    for of_rank in numpy.split(sub, bounds[1:]) if len(sub) else ():
        values, first = numpy.unique(comm[of_rank], return_index=True)
        for place, at in enumerate(numpy.argsort(first).tolist()):
            group[of_rank[comm[of_rank] == values[at]]] = place + 1
            if place == len(members):
                members.append({})
            ranks = survey.members[survey.number[int(values[at])]]
            members[place][int(trace.rank[rows[of_rank[0]]])] = tuple(sorted(ranks))
    return group


def read_all(paths: Sequence[Path], parameters: Sequence[Mapping[str, int]]) -> list[Calls]:
    """Calls of all recordings, the fewest ranks first; raises InputError for two of one size."""
    recordings = [read_calls(path, known) for path, known in zip(paths, parameters, strict=True)]
    recordings.sort(key=lambda calls: calls.ranks)
    for calls in recordings:
        if not len(calls):
            raise InputError(f"{calls.path}: no rank calls MPI")
    if len({calls.ranks for calls in recordings}) < 2 and len({tuple(c.parameters.items()) for c in recordings}) < 2:
        raise InputError(
            f"{recordings[0].path}: all recordings are of {ranks_text(recordings[0].ranks)}; give recordings of "
            "different numbers, such as 4, 8 and 16"
        )
    return recordings

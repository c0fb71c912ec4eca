"""Whether an application of one's own makes the calls of a recording: of each rank in order, with sizes and peers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.numbers import path_of
from lepaute.kit.text import counted, ranks_text, seconds
from lepaute.simulate.apps.own.laying import Asked, Laying
from lepaute.simulate.apps.own.rank import ANY
from lepaute.simulate.apps.replay.calls import CALLS, MEETINGS, Does, Rows
from lepaute.simulate.apps.replay.collectives import BASE_OF, OPENMPI
from lepaute.simulate.apps.replay.laying import RecordedPart, Survey
from lepaute.simulate.apps.replay.operations import Operations
from lepaute.simulate.trace import read_trace
from lepaute.simulate.trace.messages import CREATIONS, completions
from lepaute.simulate.trace.table import NOBODY

if TYPE_CHECKING:
    from lepaute.simulate.apps.own import Application

_SENDS, _RECEIVES = frozenset(("send", "ssend", "isend")), frozenset(("receive", "irecv", "probe"))
_ROOTED = frozenset(("bcast", "reduce", "gather", "scatter"))


class Made(NamedTuple):
    """A call as both sides have it.

    peer, tag : -1 for any; peer of a rooted collective operation its root, of others 0
    size : bytes that are sent, of one block or of the vector; of a wait the requests that it ends
    group : ranks of a collective operation
    """

    code: str
    peer: int = 0
    tag: int = 0
    size: float = 0.0
    group: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """As a person writes it, without its name."""
        tag = "" if self.tag < 0 else f", tag {self.tag}"
        other = "any rank" if self.peer < 0 else f"rank {self.peer}"
        if self.code in _SENDS:
            return f" to {other}{tag}, {counted(int(self.size), 'byte')}"
        if self.code in _RECEIVES:
            return f" from {other}{tag}"
        if self.code == "wait":
            return f" for {counted(int(self.size), 'request')}"
        size = "" if self.code == "barrier" else f" of {counted(int(self.size), 'byte')}"
        root = f", root {self.peer}" if self.code in _ROOTED else ""
        return f"{size}{root}, on {ranks_text(len(self.group))}"

    def is_like(self, recorded: "Made") -> bool:
        """Whether a recording has it so, where source and tag may be any."""
        peer, tag = recorded.peer if self.peer < 0 else self.peer, recorded.tag if self.tag < 0 else self.tag
        return self._replace(peer=peer, tag=tag) == recorded


@dataclass(frozen=True)
class Checked:
    """Findings of `check`.

    same : whether all ranks make the calls of the recording, with these sizes and peers
    rank, call : where they first differ, the call counted from 1 on that rank; -1 if they do not
    line : of the application's file, as app.py:12; empty if the application makes no more calls
    """

    same: bool
    calls: int
    text: str
    rank: int = -1
    call: int = -1
    line: str = ""

    def __str__(self) -> str:
        return self.text


def checked(application: "Application", recording: "str | PathLike[str]") -> Checked:
    """Findings of `check`; raises InputError as it does."""
    path = path_of(recording, "the recording")
    trace = read_trace(path)
    survey = Survey([trace], str(path), operations=False)
    if trace.metadata.get("source") == "simulation" and "calls" not in trace.metadata:
        raise InputError(f"{path}: it is the trace of a prediction; a recording is what a program has done")
    if survey.ranks != application.ranks:
        raise InputError(f"{application.title} has {ranks_text(application.ranks)}, {path} {survey.ranks}")
    recorded = RecordedPart(Rows(trace), survey, Operations(), OPENMPI)
    laying = Laying(application, 1)
    try:
        laying.lay()
    except Asked as problem:
        raise InputError(f"{problem}: it cannot be compared with a recording") from None
    numbers: dict[Made, int] = {}
    theirs, made, rows, skips = _made_of_recording(recorded, numbers), _made_of_program(laying, numbers), 0, 0
    known = list(numbers)
    makes_communicators = trace.named(CREATIONS)
    for rank in range(application.ranks):
        ours, lines = made(rank)
        calls, at_row = theirs(rank)
        rows += len(calls)
        place = _first_difference(ours, calls, known)
        while place is not None and place < len(calls) and makes_communicators[at_row[place]]:
            calls, at_row, skips = numpy.delete(calls, place), numpy.delete(at_row, place), skips + 1
            place = _first_difference(ours, calls, known)
        if place is not None:
            line = lines(place) if place < len(ours) else ""
            one = other = "nothing more"
            if place < len(ours):
                one = f"{known[ours[place]].code}{known[ours[place]].words} ({line})"
            if place < len(calls):
                row = at_row[place]
                at = seconds(float(trace.start_s[row]))
                other = f"{trace.names[trace.name[row]].removesuffix('_arrival')}{known[calls[place]].words}, at {at}"
            text = f"rank {rank}, call {place + 1}: {one} in {application.title}, {other} in {path.name}"
            return Checked(False, rows, text, rank, place + 1, line)
    same = f"{application.title} makes the {counted(rows - skips, 'call')} of {path.name} on {ranks_text(survey.ranks)}"
    without = f"; left out: {counted(skips, 'call')} that make{'s' * (skips == 1)} communicators" if skips else ""
    return Checked(True, rows, f"{same}, in the same order with the same peers and sizes{without}")


def _first_difference(mine: "NDArray[Any]", theirs: "NDArray[Any]", known: list[Made]) -> int | None:
    length = min(len(mine), len(theirs))
    for place in numpy.flatnonzero(mine[:length] != theirs[:length]).tolist():
        if not known[mine[place]].is_like(known[theirs[place]]):
            return int(place)
    return None if len(mine) == len(theirs) else length


def _made_of_program(
    laying: Laying, numbers: dict[Made, int]
) -> "Callable[[int], tuple[NDArray[Any], Callable[[int], str]]]":
    """Function that gives, for a rank, its calls by their numbers, and the line of each."""
    ops, lists, groups, texts = laying.listed()

    def calls(op: tuple[Any, ...]) -> Iterator[Made]:
        code, _, peer, tag, which, size = op[:6]
        if code == "exchange":
            ranks, sizes = lists[which]
            yield from (Made("irecv", rank, tag) for rank in ranks)
            yield from (Made("isend", rank, tag, size) for rank, size in zip(ranks, sizes, strict=True))
            if ranks:
                yield Made("wait", size=2.0 * len(ranks))
        elif code in ("waitall", "waitany"):
            if lists[which][0]:
                yield Made("wait", size=1.0 if code == "waitany" else float(len(lists[which][0])))
        elif code in _SENDS or code in _RECEIVES:
            yield Made(code, -1 if peer == ANY else peer, -1 if tag == ANY else tag, size)
        elif code not in ("compute", "step"):
            group = groups[which]
            base = BASE_OF.get(code, code)
            size *= len(group) if code == "reduce_scatter" else 1
            yield Made(
                f"i{base}" if tag else base, group[peer] if base in _ROOTED else 0, 0, size, tuple(sorted(group))
            )

    numbered = [[numbers.setdefault(call, len(numbers)) for call in calls(op)] for op in ops]

    def of_rank(rank: int) -> "tuple[NDArray[Any], Callable[[int], str]]":
        track = laying.tracks[rank]
        pieces, places = [numpy.zeros(0, "int64")], [numpy.zeros(0, "int64")]
        for first, count, times in track.parts:
            part = track.ops[first : first + count]
            pieces.append(numpy.tile([number for op in part for number in numbered[op]], times))
            places.append(numpy.tile([op for op in part for _ in numbered[op]], times))
        made, at = (numpy.concatenate(arrays).astype("int64") for arrays in (pieces, places))
        return made, lambda place: texts[ops[int(at[place])][8]]

    return of_rank


def _made_of_recording(
    recorded: RecordedPart, numbers: dict[Made, int]
) -> "Callable[[int], tuple[NDArray[Any], NDArray[Any]]]":
    """Function that gives, for a rank, its calls by their numbers, and the row of each."""
    trace, does = recorded.trace, recorded.does
    met = numpy.full(len(trace), -1)
    rows, which, _, sizes = recorded.meetings()
    met[rows] = numpy.arange(len(rows))
    groups = [tuple(group) for group in recorded.survey.members]
    done = completions(trace)
    ended = numpy.bincount(
        done[(done >= 0) & numpy.isin(does, (Does.BEGINS, Does.BEGINS_MEETING)) & (trace.peer != NOBODY)],
        minlength=len(trace),
    )
    made: list[int] = []
    of_row: list[int] = []
    both: list[Made] = []  # the send of an MPI_Sendrecv
    columns = (does, trace.name, trace.peer, trace.tag, trace.size_bytes)
    chosen = numpy.flatnonzero(~numpy.isin(does, (Does.NOTHING, Does.COMPUTES)))
    for row, do, name, peer, tag, size in zip(
        chosen.tolist(), *(column[chosen].tolist() for column in columns), strict=True
    ):
        code = BASE_OF.get(CALLS[trace.names[name]].code, CALLS[trace.names[name]].code)
        calls: list[Made] = []
        if do in MEETINGS:
            at = int(met[row])
            nonblocking = "" if do == Does.MEETS else "i"
            calls = [Made(nonblocking + code, peer if code in _ROOTED else 0, 0, float(sizes[at]), groups[which[at]])]
        elif do == Does.ENDS:
            calls = [Made("wait", size=float(ended[row]))] if ended[row] else []
        elif do == Does.SENDS_AND_RECEIVES:
            both = [Made("isend", peer, tag, size)] if peer != NOBODY else []
        elif do == Does.ARRIVES:
            calls = [Made("irecv", peer, tag)] if peer != NOBODY else []
            calls += both
            calls += [Made("wait", size=float(len(calls)))] if calls else []
        elif peer != NOBODY:
            calls = [Made(code, peer, tag, size if code in _SENDS else 0.0)]
        made += [numbers.setdefault(call, len(numbers)) for call in calls]
        of_row += [row] * len(calls)
    all_rows = numpy.array(of_row, dtype="int64")
    bounds = numpy.searchsorted(trace.rank[all_rows], numpy.arange(recorded.survey.ranks + 1))
    everything = numpy.array(made, dtype="int64")
    return lambda rank: (everything[bounds[rank] : bounds[rank + 1]], all_rows[bounds[rank] : bounds[rank + 1]])

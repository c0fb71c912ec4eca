"""What a campaign measures for a program: the collective calls of its recording, by the time that they take."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy

from lepaute.errors import InputError
from lepaute.kit.text import counted, percent
from lepaute.measure.comparison.cases import BLOCKING, COLLECTIVES, DATATYPES, MAX_BYTES, REDUCTIONS, UNSIZED
from lepaute.simulate.apps.replay.calls import Rows
from lepaute.simulate.apps.replay.collectives import OPENMPI
from lepaute.simulate.apps.replay.laying import RecordedPart, Survey
from lepaute.simulate.apps.replay.operations import Operations
from lepaute.simulate.trace.messages import BLOCKING_OF
from lepaute.simulate.trace.reading import TraceParts

#: Cases of a campaign: those that take most of the time in collective calls, up to this share of it and this many.
SHARE, MAX_CASES = 0.98, 24
#: Cases with at least so much of the time are those that it is planned for.
DECIDING_SHARE = 0.05
#: Of what is left out, less is not worth a word.
MIN_SHARE = 0.01
_OF_PARTS = ("Reduce_scatter", "Reduce_scatter_block")
_DATATYPES = ("MPI_DOUBLE", "MPI_INT", "MPI_INT8_T")


@dataclass(frozen=True)
class RecordedCampaign:
    """Arguments of a campaign, as `ComparisonRequest` has them; caveats: what it leaves out, sentences."""

    ranks: int
    rows: tuple[tuple[str, str, int], ...]
    primary: tuple[tuple[str, str, int], ...]
    datatype: str
    caveats: tuple[str, ...]


def campaign_for(recording: Path) -> RecordedCampaign:
    """Blocking collective calls of all ranks of a recording: sizes as a campaign has them, those that take most time
    first. Raises InputError where there is none, or what is no recording."""
    parts = TraceParts(recording)
    survey = Survey(parts, str(recording))
    seconds: Counter[tuple[str, int]] = Counter()
    left_out: Counter[str] = Counter()
    for part in parts:
        placed = RecordedPart(Rows(part), survey, Operations(), OPENMPI)
        rows, _, members, sizes = placed.meetings()
        durations_s = part.end_s[rows] - part.start_s[rows]
        for name, count, size, took_s in zip(part.name[rows], members, sizes, durations_s, strict=True):
            operation = part.names[name].removeprefix("MPI_")
            size_bytes = 0 if operation in UNSIZED else round(float(size / count if operation in _OF_PARTS else size))
            if part.names[name] not in BLOCKING_OF.values() or operation not in COLLECTIVES or size_bytes > MAX_BYTES:
                left_out[part.names[name]] += took_s
            elif count != survey.ranks:
                left_out[f"{part.names[name]} of {counted(int(count), 'rank')}"] += took_s
            else:
                seconds[operation, size_bytes] += took_s
    if not seconds:
        raise InputError(f"{recording}: has no blocking collective call of all its ranks; nothing is to be measured")
    whole_s = sum(seconds.values()) + sum(left_out.values())
    ordered = seconds.most_common()
    shares = numpy.cumsum([took_s for _, took_s in ordered]) / max(whole_s, 1e-300)
    enough = min(int(numpy.searchsorted(shares, SHARE)) + 1, MAX_CASES, len(ordered))
    chosen = [case for case, _ in ordered[:enough]]
    sizes_of_reductions = [size for operation, size in chosen if operation in REDUCTIONS]
    datatype = next(each for each in _DATATYPES if all(size % DATATYPES[each] == 0 for size in sizes_of_reductions))
    deciding = [case for case in chosen if seconds[case] >= DECIDING_SHARE * whole_s]
    of_time = "of the time in collective calls"
    caveats = [
        f"{name}, {percent(took_s / whole_s)} {of_time}, is not measured"
        for name, took_s in left_out.most_common()
        if took_s > MIN_SHARE * whole_s
    ]
    further = sum(took_s for _, took_s in ordered[enough:])
    if further > MIN_SHARE * whole_s:
        caveats.append(f"{len(ordered) - enough} more, {percent(further / whole_s)} {of_time}, are not measured")
    rows, primary = (tuple((operation, BLOCKING, size) for operation, size in cases) for cases in (chosen, deciding))
    return RecordedCampaign(survey.ranks, rows, primary, datatype, tuple(caveats))

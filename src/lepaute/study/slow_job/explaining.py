"""Why did this run take longer than usual? Its recording beside those of usual runs of the same program."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.notebook import facts_html
from lepaute.kit.numbers import path_of
from lepaute.kit.text import counted, moment, percent, ranks_text, significant, time_unit
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.compare import parameters_that_differ
from lepaute.simulate.trace.report import headline
from lepaute.simulate.trace.table import caveats_of
from lepaute.stats.steps import find_steps
from lepaute.study.slow_job.course import ASLEEP, CALL, COLLECTIVE, COMPUTE, MESSAGE, NO_CORE, Course, course_of
from lepaute.study.slow_job.matching import Pieces, matched
from lepaute.study.slow_job.shares import Estimate, estimate, shares
from lepaute.study.slow_job.suspects import MIN_USUAL, NODE, Group, Suspect, suspects_of
from lepaute.study.slow_job.wording import advice_of, group_text, ratio_text, sentence_of, share_text

if TYPE_CHECKING:
    from lepaute.study.slow_job import support
else:
    support = later("lepaute.study.slow_job.support")

#: Of the usual time: a suspect that adds less is no cause.
MIN_CAUSE = 0.01
#: Less is 0 in a text.
SHOWN = 0.0005
#: Parts by which the remainder is shown.
REMAINDER = {
    "computing": (COMPUTE,),
    "waiting for a core, sleep, files": (NO_CORE, ASLEEP),
    "communication": (MESSAGE, CALL, COLLECTIVE),
}
#: Stretches of a suspect's time in which a change of level is looked for, and the least change.
MAX_STRETCHES, MIN_STEP = 48, 0.03
#: From this length on a run's dates are those of the clock.
LONG_RUN_S = 600.0
#: Of calls in the slow run, with a partner and size that occur in usual runs.
MIN_COMMON = 0.5

State = Literal["named", "nothing", "undecided"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that took longer than chance explains, and made the run longer.

    sentence   : what;  share : of the usual time that it adds, with a 95 % interval
    subject    : what it is about, in a few words
    part, axis, place : of the run, by what it is named, and nodes or ranks (`place` of a link: its two nodes)
    ratio      : of its time to the usual, all pieces together;  p_value : corrected for all tests
    since_s    : seconds from the beginning, None: all the time, or not known
    or_else    : what explains the same as well;  advice : what to do
    """

    sentence: str
    share: Estimate
    subject: str
    part: str
    axis: str
    name: str
    place: tuple[int, ...]
    ratio: float
    p_value: float
    since_s: float | None
    or_else: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class SlowJob:
    """The answer to `why`.

    time_s, usual_s : of the run, and of the usual runs, in seconds
    excess     : relative to their mean; the interval is that of the difference of a further run
    chance     : half of the 95 % prediction interval of a usual run, relative; None with one usual run
    causes     : the largest first;  harmless : what took longer without making the run longer
    remainder  : what is left of `excess`, by part and in all
    state      : "named", "nothing" stands out, or "undecided"
    """

    time_s: float
    usual_s: tuple[float, ...]
    excess: Estimate
    chance: float | None
    causes: tuple[Cause, ...]
    harmless: tuple[Cause, ...]
    remainder: Estimate
    remainder_by_part: dict[str, Estimate]
    state: State
    tests: int
    caveats: tuple[str, ...]
    known: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """18.2 % longer than usual (chance alone: up to 4.1 %). Node n17 computes 12 % slower, which adds 14.0 %
        (95 %: 11.2 to 16.9 %)."""
        value = self.excess.value
        text = f"{percent(abs(value))} {'longer' if value >= 0 else 'shorter'} than usual"
        text = text if value < 1 else f"{ratio_text(1 + value)} as usual"
        if self.chance is None:
            return f"{text}; one usual run does not show what is chance, so nothing is decided: record more"
        text += f" (chance alone: up to {percent(self.chance)})"
        if self.state == "nothing":
            return f"{text}: nothing stands out"
        if not self.causes:
            few = len(self.usual_s) < MIN_USUAL
            why = f"{counted(len(self.usual_s), 'usual run')} are too few: record more" if few else self._where()
            return f"{text}, but no cause stands out; {why}"
        named = [f"{cause.sentence}{_or_else(cause)}, which adds {share_text(cause.share)}" for cause in self.causes]
        remainder = self.remainder
        if remainder.low is not None and remainder.low > 0:
            end = f"A further {share_text(remainder)} has no cause that stands out; {self._where()}"
        elif abs(remainder.value) < SHOWN:
            end = "Nothing else differs from chance"
        else:
            end = f"The rest, {percent(remainder.value)}, cannot be told from chance"
        return ". ".join([text, *named, end])

    def _where(self) -> str:
        part, share = max(self.remainder_by_part.items(), key=lambda item: item[1].value)
        return f"most of it is in {part}, {share_text(share)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"answer": self.answer, **asdict(self)}

    def _repr_html_(self) -> str:
        facts = [(cause.sentence, share_text(cause.share)) for cause in self.causes]
        return facts_html(self.answer, facts, self.caveats)


def _or_else(cause: Cause) -> str:
    return "".join(f", or {other}" for other in cause.or_else)


def why(
    run: "str | Path | Trace", usual: "Sequence[str | Path | Trace]", *, store: str | Path | None = None
) -> SlowJob:
    """Why a recorded run took longer than usual.

    Parameters
    ----------
    run : a recording (`lepaute record`), as a file or a `Trace`
    usual : recordings of the same program on as many ranks; at least three, better five or more
    store : of `lepaute watch`: regressions that are open for the nodes of the run support the answer

    Raises
    ------
    InputError : for recordings of other programs, other ranks, or that were cut short

    Examples
    --------
    >>> import lepaute as lp
    >>> print(lp.why("run.parquet", ["monday.parquet", "tuesday.parquet"]).answer)  # doctest: +SKIP
    """
    return explained(run, usual, store=store)[0]


def explained(
    run: "str | Path | Trace", usual: "Sequence[str | Path | Trace]", *, store: str | Path | None = None
) -> tuple[SlowJob, tuple[Course, ...], Pieces]:
    """The answer, the courses of all runs, the slow one first, and its pieces."""
    if isinstance(usual, str | Path | Trace) or not len(usual):
        raise InputError("usual is what the run is held against: a list of recordings of usual runs, at least one")
    names = [_name_of(trace, f"usual run {number}") for number, trace in enumerate(usual, 1)]
    courses = [course_of(_read(run), _name_of(run, "the run"))]
    courses += [course_of(_read(trace), name) for trace, name in zip(usual, names, strict=True)]
    _refuse_others(courses, [_name_of(run, "the run"), *names])
    pieces = matched(courses[0], courses[1:])
    answer = _explained(courses, pieces, _caveats(courses, pieces, names))
    if store is not None:
        answer = replace(answer, known=support.supported(courses[0].trace, store))
    return answer, tuple(courses), pieces


def _read(trace: "str | Path | Trace") -> Trace:
    return trace if isinstance(trace, Trace) else read_trace(path_of(trace, "the recording"))


def _name_of(trace: "str | Path | Trace", otherwise: str) -> str:
    return otherwise if isinstance(trace, Trace) else str(trace)


def _refuse_others(courses: Sequence[Course], names: Sequence[str]) -> None:
    """Raises InputError for runs that are not comparable with the first."""
    run = courses[0]
    known: dict[bytes, str] = {}
    for course, name in zip(courses, names, strict=True):
        begins = course.start_s.tobytes()
        if begins in known:
            raise InputError(f"{name}: is the same run as {known[begins]}; give it once")
        known[begins] = name
        if how := course.trace.metadata.get("ended_by"):
            raise InputError(
                f"{name}: ended by {how}, so how long it takes is not known; give a run that came to its end"
            )
    program = str(run.trace.metadata.get("application") or "")
    for course, name in zip(courses[1:], names[1:], strict=True):
        if course.ranks != run.ranks:
            raise InputError(f"{name}: has {len(course.ranks)} ranks, {names[0]} {len(run.ranks)}; give as many")
        other = str(course.trace.metadata.get("application") or "")
        if program and other and program != other:
            raise InputError(f"{name}: is of {other}, {names[0]} of {program}; give runs of the same program")
        common = numpy.isin(run.sized_key, course.sized_key).mean()
        if common < MIN_COMMON:
            raise InputError(
                f"{name}: has {percent(float(common))} of the calls of {names[0]}, by routine, partner and size; it is "
                "another program, or another problem"
            )


def _caveats(courses: Sequence[Course], pieces: Pieces, names: Sequence[str]) -> tuple[str, ...]:
    metadata = courses[0].trace.metadata
    texts = list(caveats_of(metadata))
    for course, name in zip(courses[1:], names, strict=True):
        texts += [
            f"{name} has other parameters: {text}" for text in parameters_that_differ(metadata, course.trace.metadata)
        ]
        if _layout(course) != _layout(courses[0]):
            texts.append(f"{name} had its ranks placed differently on nodes: times of messages are not comparable")
        if course.trace.metadata.get("mpi") != metadata.get("mpi"):
            texts.append(f"{name} used another MPI library: {course.trace.metadata.get('mpi')!s:.60}")
    if pieces.followed < 1:
        texts.append(
            f"{percent(1 - pieces.followed)} of the ranks of usual runs made other calls, or in another order: their "
            "times are by the sums of what they did"
        )
    return tuple(texts)


def _layout(course: Course) -> list[int]:
    nodes = course.trace.metadata.get("nodes") or []
    first: dict[int, int] = {}
    return [first.setdefault(node, len(first)) for node in nodes]


def _explained(courses: Sequence[Course], pieces: Pieces, caveats: tuple[str, ...]) -> SlowJob:
    trace = courses[0].trace
    usual = float(pieces.time_s[1:].mean())
    nodes = trace.metadata.get("nodes") or [0] * (max(courses[0].ranks) + 1)
    suspects = suspects_of(pieces, nodes)
    parts, taken = [], numpy.zeros(len(pieces.rank), dtype=bool)
    for suspect in suspects:
        union = numpy.unique(numpy.concatenate([suspect.group.pieces, *(other.pieces for other in suspect.others)]))
        parts.append(union[~taken[union]])
        taken[union] = True
    by_part = {name: numpy.flatnonzero(pieces.of(*names) & ~taken) for name, names in REMAINDER.items()}
    silent = numpy.flatnonzero(~pieces.of(*(part for names in REMAINDER.values() for part in names)) & ~taken)
    seconds, course_s = shares(pieces, [*parts, *by_part.values(), silent])
    relative = seconds / usual
    total = (pieces.time_s[0] - pieces.time_s[1:]) / usual
    excess = estimate(total)
    causes, harmless, no_part = [], [], total.copy()
    for place, suspect in enumerate(suspects):
        share = estimate(relative[:, place])
        cause = _cause(trace, pieces, suspect, share)
        if share.value >= MIN_CAUSE and (share.low or 0.0) > 0:
            causes.append(cause)
            no_part -= relative[:, place]
        else:
            harmless.append(cause)
    remainders = {name: estimate(relative[:, len(parts) + at]) for at, name in enumerate(by_part)}
    other = relative[:, -1] + course_s / usual
    if numpy.abs(other).max() > 0.002:
        remainders["other calls, and what was not recorded"] = estimate(other)
    chance = None if excess.high is None else excess.high - excess.value
    state: State = "named" if causes else "undecided"
    if not causes and chance is not None and len(courses) > MIN_USUAL and excess.value <= chance:
        state = "nothing"
    return SlowJob(
        float(pieces.time_s[0]),
        tuple(pieces.time_s[1:].tolist()),
        excess,
        chance,
        tuple(sorted(causes, key=lambda cause: -cause.share.value)),
        tuple(harmless),
        estimate(no_part),
        remainders,
        state,
        max((suspect.tests for suspect in suspects), default=0),
        caveats,
    )


def _cause(trace: Trace, pieces: Pieces, suspect: Suspect, share: Estimate) -> Cause:
    since_s = began_s(pieces, suspect.group)
    group = suspect.group
    return Cause(
        sentence_of(trace, suspect, _slow_ranks(trace, pieces, group), _since_text(trace, pieces, since_s)),
        share,
        group_text(trace, group),
        group.part,
        group.axis,
        group.name,
        group.place,
        suspect.ratio,
        suspect.p_value,
        since_s,
        tuple(group_text(trace, other) for other in suspect.others),
        advice_of(group),
    )


def _slow_ranks(trace: Trace, pieces: Pieces, group: Group) -> list[int]:
    """Ranks of a node that have at least half as large an excess as the rank with the largest, where the node has
    others, too."""
    if group.axis != NODE or group.part != COMPUTE:
        return []
    rank = pieces.rank[group.pieces]
    excess = numpy.bincount(rank, (pieces.weight_s[:, 0] - pieces.weight_s[:, 1:].mean(axis=1))[group.pieces])
    slow = [int(number) for number in numpy.flatnonzero(excess >= 0.5 * excess.max()) if number in rank]
    nodes = trace.metadata.get("nodes") or []
    return [] if len(slow) == nodes.count(group.place[0]) == 1 else slow


def began_s(pieces: Pieces, group: Group) -> float | None:
    """When the group became slower, in seconds of the slow run; None where its level did not change, or cannot tell."""
    order = group.pieces[numpy.argsort(pieces.date_s[group.pieces])]
    slow, usual = pieces.weight_s[order, 0], pieces.weight_s[order, 1:].mean(axis=1)
    ranks = len(numpy.unique(pieces.rank[order]))
    dates = pieces.date_s[order]
    count = min(MAX_STRETCHES, len(order) // ranks)
    if count < 8:
        return None
    values, begins = _levels(slow, usual, dates, count, waits=group.part in (NO_CORE, ASLEEP), ranks=ranks)
    steps = find_steps(begins.tolist(), values.tolist(), least_size=MIN_STEP).steps
    slower = [step for step in steps if step.relative_size > 0]
    return None if not slower else 0.5 * (slower[0].after_s + slower[0].before_s)


def _levels(
    slow: NDArray[Any], usual: NDArray[Any], dates: NDArray[Any], count: int, *, waits: bool, ranks: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Times in stretches over the usual ones, and when the stretches began; of waits 1 and their share of the time."""
    if waits:
        edges = numpy.linspace(dates[0], dates[-1], count + 1)
        place = numpy.clip(numpy.searchsorted(edges, dates, side="right") - 1, 0, count - 1)
        extra = numpy.bincount(place, slow - usual, minlength=count)
        return numpy.maximum(1.0 + extra / (ranks * (edges[1] - edges[0])), 1e-3), edges[:-1]
    weight = numpy.cumsum(usual)
    place = numpy.minimum((weight - usual / 2) / weight[-1] * count, count - 1).astype(int)
    sums = numpy.bincount(place, usual, minlength=count)
    filled = sums > 0
    first = numpy.searchsorted(place, numpy.arange(count))[filled]
    return numpy.maximum(numpy.bincount(place, slow, minlength=count)[filled] / sums[filled], 1e-6), dates[first]


def _since_text(trace: Trace, pieces: Pieces, since_s: float | None) -> str:
    if since_s is None:
        return ""
    created = trace.metadata.get("created")
    if pieces.time_s[0] >= LONG_RUN_S and isinstance(created, str):
        try:
            date = datetime.fromisoformat(created).astimezone(UTC) + timedelta(seconds=since_s)
        except ValueError:
            pass
        else:
            return f"since {date:%H:%M} UTC"
    return f"after {moment(since_s)}"


def facts_of(answer: SlowJob, courses: Sequence[Course]) -> list[tuple[str, str]]:
    """What the answer rests on, for the lines below it."""
    times = numpy.array(answer.usual_s)
    unit, factor = time_unit(float(times.mean()))
    run, usual, least, most = (
        significant(time_s * factor, 4) for time_s in (answer.time_s, times.mean(), times.min(), times.max())
    )
    span = f", {least} to {most} {unit}" if len(times) > 1 else ""
    facts = [
        ("run", f"{headline(courses[0].trace)}, {ranks_text(len(courses[0].ranks))}: {run} {unit}"),
        ("usual", f"{counted(len(times), 'run')}: {usual} {unit}{span}"),
    ]
    facts += [("do", f"{cause.subject}: {cause.advice}") for cause in answer.causes]
    facts += [
        ("beside", f"{cause.sentence}, with no certain effect: {share_text(cause.share)}") for cause in answer.harmless
    ]
    facts += [("store", text) for text in answer.known]
    return facts

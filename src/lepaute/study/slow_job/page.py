"""The answer to `why` as a page: causes, and the slow run beside the usual one that is nearest to the mean."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
from markupsafe import Markup
from numpy.typing import NDArray

from lepaute.kit.picture import BLUE, RED, SOFT, entitle, measured_origin, new_figure
from lepaute.kit.report.page import figure_svg, records_table, render
from lepaute.kit.text import p_text, time_unit
from lepaute.simulate.trace import colours
from lepaute.simulate.trace.breakdown import split
from lepaute.simulate.trace.gantt import Window, draw_legend, draw_strips
from lepaute.simulate.trace.timeline import evenly
from lepaute.study.slow_job.course import Course
from lepaute.study.slow_job.explaining import Cause, SlowJob, facts_of
from lepaute.study.slow_job.matching import Pieces
from lepaute.study.slow_job.suspects import RANK
from lepaute.study.slow_job.wording import share_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Ranks in the pictures.
MAX_RANKS = 8
STATE = {"nothing": "fine", "named": "notable", "undecided": "unable"}


def page(answer: SlowJob, courses: Sequence[Course], pieces: Pieces, command: str) -> str:
    """The page; pieces: of the first course; command: that makes it again."""
    causes = [_row(cause) for cause in answer.causes]
    harmless = [_row(cause) for cause in answer.harmless]
    remainders = [{"part": name, "adds": share_text(share)} for name, share in answer.remainder_by_part.items()]
    facts = facts_of(answer, courses)
    named = _ranks_named(answer, courses[0])
    ranks = _ranks_shown(named, courses[0])
    return render(
        "lepaute.kit.report",
        "evidence.html.j2",
        title="Why a run was slow",
        facts="; ".join(text for name, text in facts if name in ("run", "usual")),
        answer=answer.answer,
        state=STATE[answer.state],
        further=[text for name, text in facts if name == "store"],
        beware=list(answer.caveats),
        pictures=[
            {
                "svg": Markup(
                    figure_svg(behind(courses, ranks, named), "How far calls of ranks are behind usual, over time.")
                ),
                "caption": "How far behind usual each rank is when its calls end: the mean over the usual runs that "
                "made the same calls; red: ranks that causes name; grey: usual runs. Where runs part, the lines rise.",
            },
            {
                "svg": Markup(figure_svg(beside(courses, pieces, ranks), "Calls over time of both runs.")),
                "caption": "What ranks do over time. Above: the slow run; below: the usual run whose time is nearest "
                "to the mean.",
            },
        ],
        shown=[records_table("What made it longer", causes)],
        tables=[
            records_table("What took longer with no certain effect", harmless),
            records_table("The remainder, by part", remainders),
            records_table("Runs", [{"run": name, "time in s": float(time)} for name, time in _times(answer)]),
        ],
        commands=[("This page is made by", command)],
    )


def _times(answer: SlowJob) -> list[tuple[str, float]]:
    return [("slow", answer.time_s), *((f"usual {at}", time_s) for at, time_s in enumerate(answer.usual_s, 1))]


def _row(cause: Cause) -> dict[str, Any]:
    return {
        "what": cause.sentence,
        **({"or else": "; ".join(cause.or_else)} if cause.or_else else {}),
        "adds": share_text(cause.share),
        "p, corrected": p_text(cause.p_value).removeprefix("p = "),
        "what to do": cause.advice,
    }


def _ranks_named(answer: SlowJob, course: Course) -> list[int]:
    """Ranks that causes name, or that are on nodes that they name."""
    nodes = course.trace.metadata.get("nodes") or []
    named: list[int] = []
    for cause in answer.causes:
        by_node = [rank for rank in course.ranks if rank < len(nodes) and nodes[rank] in cause.place]
        named += [rank for rank in (cause.place if cause.axis == RANK else by_node) if rank not in named]
    return named


def _ranks_shown(named: Sequence[int], course: Course) -> list[int]:
    """Some of the ranks that are named, and others, evenly spread."""
    shown = [*named[: MAX_RANKS // 2]]
    others = [rank for rank in course.ranks if rank not in shown]
    room = min(MAX_RANKS - len(shown), len(others))
    return sorted([*shown, *(evenly(others, room) if room > 1 else others[:room])])


def _lag(course: Course, others: Sequence[Course], rank: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """When calls of the rank end, and how long after the mean of others that made the same calls; None: none did."""
    here = course.rank == rank
    followed = [other for other in others if numpy.array_equal(other.key[other.rank == rank], course.key[here])]
    if not followed:
        return None
    usual = numpy.mean([other.end_s[other.rank == rank] for other in followed], axis=0)
    return course.end_s[here], course.end_s[here] - usual


def behind(courses: Sequence[Course], ranks: Sequence[int], named: Sequence[int]) -> "Figure":
    """How far behind usual the ranks are, over the time of the slow run, and so the usual runs."""
    figure = new_figure((10.0, 3.4), for_file=True)
    axis = figure.subplots()
    slow, usual = courses[0], courses[1:]
    unit, factor = time_unit(slow.time_s, 10.0)
    for course in usual:
        lag = _lag(course, usual, ranks[0])
        if lag is not None:
            axis.plot(lag[0] * factor, lag[1] * factor, color=SOFT, lw=0.8, zorder=1)
    for rank in ranks:
        lag = _lag(slow, usual, rank)
        if lag is not None:
            axis.plot(lag[0] * factor, lag[1] * factor, color=RED if rank in named else BLUE, lw=1.2, alpha=0.7)
    axis.set_xlabel(f"time of the slow run, {unit}", fontsize=9)
    axis.set_ylabel(f"behind usual, {unit}", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    entitle(figure, "How far behind usual", measured_origin(f"ranks {', '.join(map(str, ranks))}"))
    return figure


def beside(courses: Sequence[Course], pieces: Pieces, ranks: Sequence[int]) -> "Figure":
    """Calls over time of the slow run, and of the usual run nearest to the mean, on the same axis of time."""
    times = pieces.time_s[1:]
    nearest = courses[1 + int(numpy.abs(times - times.mean()).argmin())]
    figure = new_figure((13.0, 1.8 + 0.6 * len(ranks)), for_file=True)
    axes = figure.subplots(2, 1, sharex=True)
    window = Window(tuple(ranks), 0.0, float(pieces.time_s.max()))
    unit, factor = time_unit(window.high_s, 10.0)
    used: set[int] = set()
    for axis, course, name in zip(axes, (courses[0], nearest), ("slow", "usual"), strict=True):
        trace = course.trace.where(numpy.isin(course.trace.rank, ranks))
        used |= draw_strips(axis, trace, colours.classes(trace, split(trace)[0]), window)
        axis.set_yticks(range(len(ranks)), [str(rank) for rank in ranks], fontsize=8)
        axis.set_ylabel(f"{name} run, rank", fontsize=9)
        axis.axvline(course.time_s, color="black", lw=0.8)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value * factor:.4g}")
    axes[-1].set_xlabel(f"time since the beginning, {unit}", fontsize=9)
    draw_legend(figure, courses[0].trace, used)
    entitle(figure, "The slow run and a usual one", measured_origin("recordings"))
    return figure

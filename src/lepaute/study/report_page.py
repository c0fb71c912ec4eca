"""The page of a study: the question, the answer in one sentence, how sure, what was extrapolated, how to repeat it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lepaute.report.page import render
from lepaute.report.tables import records_table
from lepaute.study import plot
from lepaute.study.evaluation import LESS_IS_BETTER, Outcome, Point, by_point
from lepaute.study.pareto import Front
from lepaute.study.ranking import MOST_EXTRAPOLATED, Ranking, Standing
from lepaute.study.sensitivity import Effects
from lepaute.study.sensitivity_sobol import SobolIndices
from lepaute.study.tune import Tuned
from lepaute.study.tune_real import Corrected

#: Shares of the time below this are not spoken of.
LEAST_EXTRAPOLATED = 0.01
MOST_TABLE_ROWS = 200


@dataclass(frozen=True)
class Asked:
    """What a page says of the study itself.

    title, question : of the study file;  command : that repeats it;  facts : platform, version, seeds, in words
    """

    title: str
    question: str
    command: str
    facts: str


def tuned_page(asked: Asked, found: Tuned, real: Corrected | None = None) -> str:
    """Of tuning, with real runs where there were some."""
    ranking = found.ranking
    sure = [
        f"{found.simulations} simulations of {found.budget}; ended: {found.ended}",
        f"the best has a probability of {100.0 * ranking.best.probability:.0f} % to be the best one on the machine",
        _near_words(ranking),
    ]
    if real is not None:
        sure.append(
            f"{len(real.runs)} real runs, after which the choice is expected to be worse than the best by "
            f"{100.0 * real.expected_loss:.2g} %; {real.ended}"
        )
    pictures = [("Ranking", plot.ranking(ranking))]
    pictures += _heat_maps(ranking)
    tables = [_standings("Points", ranking.standings)]
    if ranking.apart:
        tables.append(_standings("Too far outside of the calibrated ranges", ranking.apart))
    if real is not None:
        rows = [{"point": str(point), "real time, s": seconds} for point, seconds in real.runs]
        tables.insert(0, records_table("Real runs", rows))
    tables += _refusals(ranking.refused)
    answer = found.text if real is None else real.text
    doubtful = len(found.near) > max(1, len(ranking.standings) // 4)
    return page(asked, answer, doubtful, sure, outside(found.outcomes, ranking), pictures, tables)


def effects_page(asked: Asked, found: Effects, outcomes: Sequence[Outcome] = ()) -> str:
    """Of main effects and interactions."""
    sure = [
        f"{found.points} points, each with {found.seeds} seeds",
        f"machines and days differ by a standard deviation of {_sd(found.between_seeds, found.logarithm)}, which all "
        f"points share; a point differs from that by {_sd(found.noise, found.logarithm)}",
        f"{100.0 * found.unexplained:.1f} % of the variance between the points is of interactions of three and more",
    ]
    if found.left_out:
        sure.append(f"{len(found.left_out)} points were refused and are left out")
    picture = plot.tornado(found)
    pictures = [("Effects", picture)] if picture is not None else []
    pictures.append(("Shares of the variance", plot.shares(found)))
    rows = [
        {"term": term.name, "share, %": 100.0 * term.share, "degrees": term.degrees, "F": term.f, "p": term.p_value}
        for term in found.terms
    ]
    tables = [records_table("Analysis of variance", rows)]
    return page(asked, found.text, False, sure, outside(outcomes), pictures, tables)


def sobol_page(asked: Asked, found: SobolIndices, outcomes: Sequence[Outcome] = ()) -> str:
    """Of Sobol indices."""
    null = [name for name in found.total if found.is_null(name)]
    sure = [
        f"{found.simulations} simulations, {found.rows} rows of the base sample",
        f"machine and day, with their interactions, are {found.machine.text} of the variance",
        f"without an effect that shows: {', '.join(null)}" if null else "every factor has an effect that shows",
    ]
    if found.refused:
        sure.append(f"{found.refused} rows were left out, since one of their runs was refused")
    rows = [
        {"factor": name, "by itself": found.first[name].text, "with interactions": found.total[name].text}
        for name in found.total
    ]
    tables = [records_table("Sobol indices", rows)]
    return page(
        asked, found.text, False, sure, outside(outcomes), [("Shares of the variance", plot.shares(found))], tables
    )


def front_page(asked: Asked, found: Front, outcomes: Sequence[Outcome] = ()) -> str:
    """Of a Pareto front."""
    sure = [
        f"{len(found.members)} points; {len(found.likely)} are on the front with a probability of a half or more",
        f"{sum(0.05 < one.probability < 0.95 for one in found.members)} may or may not be (5 to 95 %)",
    ]
    rows = [
        {
            "point": str(one.point),
            "on the front, %": 100.0 * one.probability,
            **{name: f"{s.middle:.4g} ({s.low:.4g} to {s.high:.4g})" for name, s in one.spreads.items()},
        }
        for one in found.members[:MOST_TABLE_ROWS]
    ]
    tables = [records_table("Points", rows), *_refusals(found.refused)]
    return page(asked, found.text, False, sure, outside(outcomes), [("Pareto front", plot.pareto(found))], tables)


def page(
    asked: Asked,
    answer: str,
    doubtful: bool,
    sure: Sequence[str],
    outside: Sequence[str],
    pictures: Sequence[tuple[str, plot.Drawing]],
    tables: Sequence[dict[str, Any] | None],
) -> str:
    """The page of any question; doubtful : whether the answer leaves much open."""
    from markupsafe import Markup

    shown = [{"title": title, "svg": Markup(one.svg()), "caption": one.caption} for title, one in pictures]
    return render(
        "lepaute.study",
        "study.html.j2",
        title=asked.title or "Study",
        question=asked.question,
        facts=asked.facts,
        command=asked.command,
        answer=answer,
        doubtful=doubtful,
        sure=sure,
        outside=outside,
        pictures=shown,
        tables=[table for table in tables if table],
    )


def _near_words(ranking: Ranking) -> str:
    near = len(ranking.near) - 1
    if near == 0:
        return f"all {len(ranking.standings) - 1} others can be told from it"
    return f"{near} of {len(ranking.standings) - 1} others cannot be told from it"


def _heat_maps(ranking: Ranking) -> list[tuple[str, plot.Drawing]]:
    """Of the grid and the block size where both vary, else of the two factors with the most levels."""
    if ranking.response not in LESS_IS_BETTER:
        return []
    values = {one.point: one.value for one in ranking.standings}
    levels = {name: {point.get(name) for point in values} for name in ranking.best.point}
    several = sorted((name for name in levels if len(levels[name]) > 1), key=lambda name: -len(levels[name]))
    if len(several) < 2:
        return []
    wanted = [name for name in several if name in ("grid", "p")] + [name for name in several if name == "nb"]
    rows, columns = wanted if len(wanted) == 2 else several[:2]
    drawn = plot.heat_map(values, rows, columns, ranking.response, ranking.best.point)
    return [(f"{rows} × {columns}", drawn)]


def _standings(title: str, standings: Sequence[Standing]) -> dict[str, Any] | None:
    rows = [
        {
            **dict(one.point),
            "runs": one.runs,
            "value": f"{one.value:.5g}",
            "against the best": f"{100.0 * (one.ratio - 1.0):+.2f} %",
            "95 %": "–"
            if one.low is None or one.high is None
            else f"{100.0 * (one.low - 1.0):+.1f} to {100.0 * (one.high - 1.0):+.1f} %",
            "best, %": 100.0 * one.probability,
            "extrapolated, %": 100.0 * one.extrapolated,
        }
        for one in standings[:MOST_TABLE_ROWS]
    ]
    return records_table(title, rows)


def _refusals(refused: Mapping[Point, str]) -> list[dict[str, Any] | None]:
    rows = [{"point": str(point), "why": reason} for point, reason in list(refused.items())[:MOST_TABLE_ROWS]]
    return [records_table("Refused", rows)] if rows else []


def outside(outcomes: Sequence[Outcome], ranking: Ranking | None = None) -> list[str]:
    """What was extrapolated, in words."""
    worst = {
        point: max((one.extrapolated for one in each if one.refusal is None), default=0.0)
        for point, each in by_point(outcomes).items()
    }
    some = {point: share for point, share in worst.items() if share >= LEAST_EXTRAPOLATED}
    if not some:
        return []
    far = sum(share > MOST_EXTRAPOLATED for share in some.values())
    most = max(some, key=some.__getitem__)
    lines = [
        f"{len(some)} of {len(worst)} points spend 1 % of their time or more outside of the ranges that models were "
        f"fitted in; the most is {100.0 * some[most]:.0f} %, at {most}"
    ]
    if far and ranking is not None:
        lines.append(f"{far} of them spend more than a fifth of it there and are not compared; calibrate their sizes")
    elif far:
        lines.append(
            f"{far} of them spend more than a fifth of it there: calibrate their sizes before you believe them"
        )
    return lines


def _sd(value: float, logarithm: bool) -> str:
    return f"{100.0 * value:.2g} %" if logarithm else f"{value:.3g}"

"""The page of a study: the question, the answer in one sentence, how sure, what was extrapolated, how to repeat it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from lepaute.kit.report.page import records_table, render
from lepaute.kit.text import counted, exact_number, quantity, significant
from lepaute.study import plot
from lepaute.study.capacity import Front
from lepaute.study.evaluation import (
    LESS_IS_BETTER,
    SCENARIO,
    Answer,
    Outcome,
    Point,
    answered,
    by_point,
    called,
    label,
    listed,
    noun,
    same,
)
from lepaute.study.ranking import Ranking
from lepaute.study.schema import Study
from lepaute.study.sensitivity import Effects
from lepaute.study.sobol import SobolIndices
from lepaute.study.tune import Tuned
from lepaute.study.whatif import WhatIfAnswer

#: Shares of computing below this are not spoken of.
MIN_EXTRAPOLATED = 0.01
MAX_TABLE_ROWS = 200
#: A table with more is folded.
MAX_SHOWN_ROWS = 12


@dataclass(frozen=True)
class PageFacts:
    """What a page says of the study itself.

    made_of : names and values of what decides its figures: digests of platforms, first seed
    commands : each repeats it: the one that was given, where there was one, and that of study.yaml beside the page
    """

    title: str
    question: str
    commands: tuple[str, ...]
    facts: str
    caveats: tuple[str, ...] = ()
    made_of: tuple[tuple[str, str], ...] = ()


class _Content(NamedTuple):
    """What the page of a question has of its own."""

    sure: Sequence[str]
    pictures: Sequence[tuple[str, plot.Picture | None]]
    tables: Sequence[dict[str, Any] | None]


def page_of(
    study: Study,
    answer: Answer,
    outcomes: Sequence[Outcome],
    caveats: Sequence[str] = (),
    command: str | None = None,
    platform_digests: Mapping[str, str] | None = None,
) -> str:
    """The page of an answer; caveats : of it;  command : that was given, if any;  platform_digests : by their names."""
    varied = {"application.name", "application.class", *(factor.path for factor in study.factors.values())}
    varied |= {path for fields in study.scenarios.values() for path in fields}
    name = str(study.base.application.get("name", study.base.application.get("class")))
    known = study.base.application.items()
    fields = ", ".join(f"{field} {value}" for field, value in known if f"application.{field}" not in varied)
    base = f"{name} ({fields})" if fields else name
    facts = PageFacts(
        study.title or f"A study of {name} on {study.base.platform}",
        _question_in_words(study),
        (*([command] if command else []), f"lepaute study {study.question} study.yaml"),
        f"{base} on {study.base.platform}",
        tuple(caveats),
        (
            *((f"platform {name}", digest[:12]) for name, digest in (platform_digests or {}).items()),
            ("seeds from", str(study.seed)),
        ),
    )
    return page(facts, answer, outcomes)


def page(facts: PageFacts, answer: Answer, outcomes: Sequence[Outcome] = ()) -> str:
    """The page of the answer to any question."""
    contents: dict[type, Callable[[Any], _Content]] = {
        WhatIfAnswer: _whatif,
        Tuned: _tuned,
        Effects: _effects,
        SobolIndices: _sobol,
        Front: _front,
    }
    content = contents[type(answer)](answer)
    first, *others = content.tables
    is_short = first is not None and len(first["rows"]) <= MAX_SHOWN_ROWS
    return render(
        "lepaute.study",
        "study.html.j2",
        title=facts.title,
        question=facts.question,
        facts=facts.facts,
        made_of=facts.made_of,
        commands=[
            ("As it was run:" if command is not facts.commands[-1] else "From the study beside this page:", command)
            for command in facts.commands
        ],
        answer=answered(answer),
        state=answer.decision.state("for"),
        sure=content.sure,
        beware=[*facts.caveats, *_outside(outcomes)],
        pictures=[
            {"svg": Markup(one.svg), "caption": f"{title}. {one.caption}"} for title, one in content.pictures if one
        ],
        shown=first if is_short else None,
        tables=others if is_short else content.tables,
    )


def _question_in_words(study: Study) -> str:
    response = study.responses[0]
    names = [*([SCENARIO] if study.scenarios else []), *study.factors]
    if study.question == "tune":
        best = "lowest" if response in LESS_IS_BETTER else "highest"
        return f"With which {listed(names)} is {noun(response)} {best}?"
    if study.question == "sensitivity":
        return f"Which of {listed(names)} matter to {noun(response)}, and how much?"
    if study.question == "capacity":
        section = study.capacity
        within = f" for a price of at most {exact_number(section.price)}" if section and section.price else ""
        within += f" with at most {quantity(section.watts, 'W')}" if section and section.watts else ""
        return f"Which machines of the catalogue{within} does no other one beat in time, cost and energy at once?"
    asked = study.compared
    others = [level for level in study.levels[asked.factor] if not same(level, asked.base)]
    of, base = f"{asked.factor} = ", f"{asked.factor} = {asked.base}"
    best_of = f", each with its best {listed(asked.best_of)}" if asked.best_of else ""
    if asked.factor == SCENARIO:
        of, base, others = "", f"“{asked.base}”", [f"“{level}”" for level in others]
    return f"How does {noun(response)} change with {of}{listed(others)}, against {base}{best_of}?"


def _whatif(answer: WhatIfAnswer) -> _Content:
    sure = [answer.pairing]
    if apart := sum(not pair.shared for pair in answer.comparisons):
        sure.append(
            f"in {apart} of them the models have no errors in common: machines drawn independently are compared, and "
            "the intervals are wider"
        )
    if moved := sum(not pair.same_geometry for pair in answer.comparisons if answer.responses[0] in pair.differences):
        sure.append(f"in {moved} of them ranks are on other CPUs, so that errors of single CPUs do not cancel")
    if answer.source is not None:
        sure.append(f"published figures: {answer.source}")
    return _Content(
        sure,
        [(f"Change of {noun(name)}", plot.changes(answer, name)) for name in answer.responses],
        [records_table("Comparisons", _comparisons(answer))],
    )


def _tuned(found: Tuned) -> _Content:
    ranking, real = found.ranking, found.real
    others, near = len(ranking.standings) - 1, len(ranking.near) - 1
    sure = [
        f"{found.simulations} simulations of {found.budget}; ended: {found.ended}",
        f"{near} of {others} others cannot be told from it" if near else f"all {others} others can be told from it",
        *(fact for _, fact in found.facts),
    ]
    tables = [records_table("Points", _standings(ranking)), _refusals(ranking.refused)]
    if real is not None:
        sure.append(
            f"{len(real.runs)} real runs, after which the choice is expected to be worse than the best by "
            f"{significant(100.0 * real.expected_loss, 2)} %; {real.ended}"
        )
        rows = [{"point": str(point), "real time, s": seconds} for point, seconds in real.runs]
        tables.insert(0, records_table("Real runs", rows))
    return _Content(
        sure,
        [
            ("Ranking", plot.ranking(ranking)),
            ("What was tried, and what remains", plot.tuning(found)),
            *_heat_maps(ranking),
        ],
        tables,
    )


def _effects(found: Effects) -> _Content:
    sure = [
        f"{found.points} points, each with {counted(found.seeds, 'seed')}",
        f"{100.0 * found.unexplained:.1f} % of the variance between the points is of interactions of three and more",
    ]
    if found.is_known:
        between, noise = (
            f"{significant(100.0 * sd, 2)} %" if found.logarithm else f"{significant(sd)}"
            for sd in (found.between_seeds, found.noise)
        )
        sure.insert(
            1,
            f"machines and days differ by a standard deviation of {between}, which all points share; a point differs "
            f"from that by {noise}",
        )
    if found.left_out:
        sure.append(f"left out, since refused: {counted(len(found.left_out), 'point')}")
    levels = [{"factor": term.name, "levels": found.direction_of(term)} for term in found.told_terms]
    rows = [
        {
            "term": term.name,
            "share, %": 100.0 * term.share,
            "degrees of freedom": term.degrees,
            "F": term.f,
            "p": term.p_value,
        }
        for term in found.terms
    ]
    return _Content(
        sure,
        [("Effects", plot.tornado(found)), (f"Shares of the variance of {noun(found.response)}", plot.shares(found))],
        [records_table("Levels", levels), records_table("Analysis of variance", rows)],
    )


def _sobol(found: SobolIndices) -> _Content:
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
    pictures = [(f"Shares of the variance of {noun(found.response)}", plot.shares(found))]
    return _Content(sure, pictures, [records_table("Sobol indices", rows)])


def _front(found: Front) -> _Content:
    rows = [
        {
            "configuration": called(member.point),
            **{label(name): spread.text(basis="") for name, spread in member.spreads.items()},
            "on the front": f"{100.0 * member.probability:.0f} %",
        }
        for member in found.by_first[:MAX_TABLE_ROWS]
    ]
    tables = [records_table("Configurations", rows), _refusals(found.refused)]
    return _Content([f"{name}: {text}" for name, text in found.facts], [("Pareto front", plot.pareto(found))], tables)


def _comparisons(answer: WhatIfAnswer) -> list[dict[str, Any]]:
    """A row for the base of each setting, and one for every level that is compared with it."""
    rows: list[dict[str, Any]] = []
    for pair, side in answer.sides:
        chosen = {name: side.point[name] for name in answer.best_of(pair)}
        row: dict[str, Any] = {**pair.setting, answer.factor: side.level, **chosen}
        for name in answer.responses:
            difference = pair.differences.get(name)
            row[label(name)] = side.spreads[name].figure() if name in side.spreads else ""
            row[f"change of {noun(name)} (95 %)"] = (
                "the base" if side is pair.reference else "" if difference is None else difference.in_words()
            )
        if answer.source is not None:
            figure = pair.published_of(side)
            row["published"] = "" if figure is None else figure.text
        row["comparable"] = f"no: {side.refusal}" if side.refusal else side.trust.words
        rows.append(row)
    return rows[:MAX_TABLE_ROWS]


def _heat_maps(ranking: Ranking) -> list[tuple[str, plot.Picture]]:
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
    return [(f"{rows} × {columns}", plot.heat_map(values, rows, columns, ranking.response, ranking.best.point))]


def _standings(ranking: Ranking) -> list[dict[str, Any]]:
    return [
        {
            **one.point,
            "runs": one.runs,
            **ranking.figures(one),
            "against the best": words,
            "probability to be the best": one.chance,
            "extrapolated": f"{100.0 * one.trust.computing:.0f} %",
            "comparable": one.trust.words,
        }
        for one, words in ranking.rows[:MAX_TABLE_ROWS]
    ]


def _refusals(refused: Mapping[Point, str]) -> dict[str, Any] | None:
    rows = [{"point": str(point), "why": reason} for point, reason in list(refused.items())[:MAX_TABLE_ROWS]]
    return records_table("Refused", rows)


def _outside(outcomes: Sequence[Outcome]) -> list[str]:
    """What was extrapolated, in words; what that does to the answer is among its caveats."""
    worst = {
        point: max((one.extrapolated for one in each if one.refusal is None), default=0.0)
        for point, each in by_point(outcomes).items()
    }
    some = {point: share for point, share in worst.items() if share >= MIN_EXTRAPOLATED}
    if not some:
        return []
    most = max(some, key=some.__getitem__)
    return [
        f"{len(some)} of {counted(len(worst), 'configuration')} do 1 % of their computing or more outside of the "
        f"ranges that models were fitted in; the most is {100.0 * some[most]:.0f} %, at {called(most)}"
    ]

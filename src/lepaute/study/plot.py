"""Pictures of answers: changes, ranking, tornado, shares of variance, heat map, Pareto front."""

from collections.abc import Callable, Mapping
from math import isfinite, log, log2

from lepaute.report.tables import number
from lepaute.study.drawing import FOOT, RIGHT, ROW, TOP, WIDTH, Drawing, middle_of, named_rows, ticks, with_room
from lepaute.study.evaluation import Point, Value
from lepaute.study.label_places import Box, free_place
from lepaute.study.pareto import Front
from lepaute.study.ranking import Ranking
from lepaute.study.sensitivity import Effects
from lepaute.study.sensitivity_sobol import Index, SobolIndices
from lepaute.study.whatif import WhatIfAnswer
from lepaute.study.wording import begun, called, label, noun

#: Points of a ranking that have a row of their own.
MOST_ROWS = 20
#: Comparisons that have a row in a picture.
MOST_CHANGES = 60
#: From this ratio on, or one over it, changes are drawn on a logarithmic axis.
LARGE_RATIO = 3.0
#: Points on a front that have their name beside them.
MOST_NAMES = 12
#: Columns and rows of a heat map in which the values are written.
MOST_CELLS = 16
#: Points that are less likely on a front are drawn without their intervals.
LEAST_CROSSED = 0.05
#: From the best to the worst: light to dark.
PALE, DARK = (233, 241, 250), (31, 95, 168)


def changes(found: WhatIfAnswer, response: str) -> Drawing | None:
    """A row for each comparison: how much the response changes, with its interval; None where nothing is known."""
    rows = [(each, each.differences[response]) for each in found.comparisons if response in each.differences]
    rows = rows[:MOST_CHANGES]
    if not rows:
        return None
    most = max(max(log2(one.ratio), -log2(one.ratio), 0.01) for _, one in rows)
    is_large = most > log2(LARGE_RATIO)
    scaled: Callable[[float], float] = log2 if is_large else lambda ratio: 100.0 * (ratio - 1.0)

    def shown(ratio: float) -> float:
        """Where a ratio is on the axis; intervals of two or three runs can be so wide that nothing else is seen."""
        return scaled(min(max(ratio, 2.0 ** (-4.0 * most)), 2.0 ** (4.0 * most)))

    ends = [0.0] + [shown(end) for _, one in rows for end in (one.ratio, one.low, one.high) if end is not None]
    picture, place = named_rows(
        f"the change of {noun(response)} in {len(rows)} comparisons, with intervals",
        f"Change of {noun(response)} against the base, {found.base_name}; lines: 95 % intervals of one further pair of "
        "runs on one machine and day. Bold: told apart from it.",
        [found.name_of(each) for each, _ in rows],
        (min(ends), max(ends)),
        (lambda value: f"× {2.0**value:.3g}") if is_large else percent_text,
        [one.is_told_apart for _, one in rows],
        least_step=1.0 if is_large else 0.0,
    )
    picture.line(place(0.0), TOP, place(0.0), TOP + ROW * len(rows), "zero")
    for at, (_, one) in enumerate(rows):
        y = middle_of(at)
        if one.low is not None and one.high is not None:
            style = "line" if one.is_told_apart else "thin"
            picture.line(place(shown(one.low)), y, place(shown(one.high)), y, style)
        picture.dot(place(shown(one.ratio)), y, "mark" if one.is_told_apart else "dot")
        change = f"× {number(one.ratio)}" if is_large else percent_text(100.0 * (one.ratio - 1.0), 2)
        picture.text(WIDTH - 2, y + 4, change, "end", "label")
    return picture


def ranking(found: Ranking) -> Drawing:
    """A row for each of the best points: how much worse than the best, with its interval."""
    rows = found.standings[:MOST_ROWS]
    ends = [1.0, *(value for one in rows for value in (one.ratio, one.low, one.high) if value is not None)]
    # An interval from two or three runs can be so wide that nothing else is seen: the axis ends at twice the worst.
    worst = max(one.ratio for one in rows)
    low, high = max(min(ends), 2.0 - 1.5 * worst, 0.5), min(max(ends), 1.0 + 2.0 * max(worst - 1.0, 0.02))
    rest = len(found.standings) - len(rows)
    names = [f"{one.point}{' *' if one.flagged else ''}" for one in rows]
    starred = "; *: not comparable, since too much depends on what is outside the fitted ranges"
    more = starred if any(one.flagged for one in rows) else ""
    more += f"; {rest} more are worse still" if rest > 0 else ""
    picture, place = named_rows(
        f"{len(rows)} points, the best first, with the interval of how much worse each is",
        f"{begun(noun(found.response))} against that of the best point at equal seeds: how much worse, and the 95 % "
        "interval for one further machine and day. Bold: the best and what cannot be told from it. Right: the "
        f"probability to be the best{more}.",
        names,
        (low, high),
        lambda value: percent_text(100.0 * (value - 1.0)),
        [one.near for one in rows],
    )
    for at, one in enumerate(rows):
        y = middle_of(at)
        if one.low is not None and one.high is not None:
            picture.line(place(one.low), y, place(one.high), y, "line" if one.near else "thin")
        picture.dot(place(one.ratio), y, "mark" if one.near else "dot")
        picture.text(WIDTH - 2, y + 4, _probability(one.probability), "end", "label")
    return picture


def tornado(found: Effects) -> Drawing | None:
    """A bar for each factor, from its best to its worst level; None where no factor has an effect of its own."""
    terms = [term for term in found.terms if len(term.factors) == 1 and term.levels]
    terms.sort(key=lambda term: min(one.effect for one in term.levels) - max(one.effect for one in term.levels))
    if not terms:
        return None
    unity = 1.0 if found.logarithm else 0.0
    ends = [value for term in terms for one in term.levels for value in (one.effect, one.low, one.high)
            if value is not None]  # fmt: skip
    picture, place = named_rows(
        f"effects of {len(terms)} factors on {found.response}, the largest on top",
        f"The effect of the levels of each factor on {noun(found.response)}, against the mean of all points; thin: the "
        "95 % interval of the mean over machines. Factors in bold stand out from what machines differ by.",
        [term.name for term in terms],
        (min(*ends, unity), max(*ends, unity)),
        (lambda value: percent_text(100.0 * (value - 1.0))) if found.logarithm else (lambda value: f"{value:+.3g}"),
        [term.is_significant for term in terms],
        margin=70.0,
    )
    for at, term in enumerate(terms):
        y = middle_of(at)
        ordered = sorted(term.levels, key=lambda one: one.effect)
        low, high = ordered[0], ordered[-1]
        picture.box(place(low.effect), y - 6, place(high.effect) - place(low.effect), 12, "#8fb0d6")
        for one in (low, high):
            if one.low is not None and one.high is not None:
                picture.whisker(place(one.low), place(one.high), y)
        picture.text(_left_of(place, low.low, low.effect) - 5, y + 4, _word(low.level), "end", "label")
        picture.text(_right_of(place, high.high, high.effect) + 5, y + 4, _word(high.level), "start", "label")
    picture.line(place(unity), TOP, place(unity), TOP + ROW * len(terms), "zero")
    return picture


def shares(found: Effects | SobolIndices) -> Drawing:
    """A bar for each term, or two for each factor: its share of the variance."""
    if isinstance(found, SobolIndices):
        bars: list[tuple[str, Index | None, float]] = []
        for name, index in found.total.items():
            bars += [(f"{name}, with interactions", index, index.value)]
            bars += [(f"{name}, by itself", found.first[name], found.first[name].value)]
        bars += [("machine and day", found.machine, found.machine.value), ("a run's own noise", None, found.noise)]
        caption = f"Share of the variance of {noun(found.response)}: Sobol indices with 95 % bootstrap intervals."
        bold = [index is not None and index.low > 0.0 for _, index, _ in bars]
    else:
        bars = [(term.name, None, term.share) for term in found.terms]
        bars += [("interactions of three and more", None, found.unexplained)] if found.unexplained > 5e-4 else []
        caption = (
            f"Share of the variance of {noun(found.response)} between the points. Bold: p < 0.05 against what machines "
            "differ by in it."
        )
        bold = [*(term.is_significant for term in found.terms), *([False] * (len(bars) - len(found.terms)))]
    most = max(index.high if index is not None else value for _, index, value in bars)
    picture, place = named_rows(
        f"shares of the variance of {found.response}",
        caption,
        [name for name, _, _ in bars],
        (0.0, min(max(most, 0.02), 1.2)),
        lambda value: f"{100.0 * value:.3g} %",
        bold,
    )
    for at, (_, interval, value) in enumerate(bars):
        y = middle_of(at)
        picture.box(place(0.0), y - 6, place(max(value, 0.0)) - place(0.0), 12, "#8fb0d6" if bold[at] else "#d9dee5")
        if interval is not None:
            picture.whisker(place(max(interval.low, 0.0)), place(max(interval.high, 0.0)), y)
        picture.text(WIDTH - 2, y + 4, f"{100.0 * max(value, 0.0):.1f} %", "end", "label")
    return picture


def heat_map(values: Mapping[Point, float], rows: str, columns: str, response: str, best: Point | None) -> Drawing:
    """The smallest value at each pair of levels of two factors, over all others; the best is framed."""
    across = _in_order({point[columns] for point in values})
    down = _in_order({point[rows] for point in values})
    cells: dict[tuple[Value, Value], float] = {}
    for point, value in values.items():
        key = (point[rows], point[columns])
        cells[key] = min(value, cells.get(key, value))
    left = 24.0 + 7.0 * max(len(_word(level)) for level in down)
    width = min(86.0, (WIDTH - left - RIGHT) / len(across))
    height = 24.0
    picture = Drawing(
        f"{response} by {rows} and {columns}",
        f"{begun(label(response))}, by {rows} (down) and {columns} (across), the best over all other factors: the "
        "lighter, the less. Framed: the choice. Empty: not simulated, or refused.",
        TOP + height * len(down) + FOOT,
    )
    low, high = min(cells.values()), max(cells.values())
    for at, level in enumerate(down):
        y = TOP + at * height
        picture.text(left - 6, y + height / 2 + 4, _word(level), "end")
        for place, other in enumerate(across):
            x = left + place * width
            if (level, other) not in cells:
                continue
            value = cells[level, other]
            share = (log(value / low) / log(high / low)) if low > 0.0 and high > low else 0.0
            picture.box(x + 1, y + 1, width - 2, height - 2, _colour(share))
            if len(across) <= MOST_CELLS:
                shown = number(value, 4)
                picture.text(x + width / 2, y + height / 2 + 4, shown, "middle", fill="#ffffff" if share > 0.55 else "")
            if best is not None and (best[rows], best[columns]) == (level, other):
                corner = f"M{x + 1:.1f} {y + 1:.1f}h{width - 2:.1f}v{height - 2:.1f}h{2 - width:.1f}Z"
                picture.parts.append(f'<path class="rule" d="{corner}"/>')
    bottom = TOP + height * len(down)
    every = -(-len(across) // MOST_CELLS)
    for place, other in enumerate(across):
        if place % every == 0:
            picture.text(left + (place + 0.5) * width, bottom + 15, _word(other), "middle")
    picture.text(left + width * len(across) / 2, bottom + 33, columns, "middle", "label")
    picture.text(left - 6, bottom + 15, rows, "end", "label")
    return picture


def pareto(found: Front) -> Drawing:
    """Two responses of each point with their intervals; those that may be on the front are marked."""
    x_name, y_name = found.responses[0], found.responses[1]
    left, bottom, height = 74.0, 330.0, 330.0 + FOOT
    crosses = [one for one in found.members if one.probability >= LEAST_CROSSED]
    spans = []
    for name in (x_name, y_name):
        ends = [one.spreads[name].middle for one in found.members]
        ends += [end for one in crosses for end in (one.spreads[name].low, one.spreads[name].high)]
        spans.append(with_room(min(ends), max(ends)))
    picture = Drawing(
        f"{x_name} against {y_name}, and which points are on the front",
        f"{begun(noun(x_name))} and {noun(y_name)} of each configuration. Dark: on the Pareto front with a probability "
        "of a half or more, which is written where it is below 95 %; with a thin line: of 5 % or more. Lines are 95 % "
        "intervals.",
        height,
    )
    (x_low, x_high), (y_low, y_high) = spans

    def across(value: float) -> float:
        return left + (value - x_low) / (x_high - x_low) * (WIDTH - left - RIGHT)

    def up(value: float) -> float:
        return bottom - (value - y_low) / (y_high - y_low) * (bottom - TOP)

    for value in ticks(x_low, x_high):
        picture.line(across(value), TOP, across(value), bottom, "grid")
        picture.text(across(value), bottom + 15, number(value, 6), "middle")
    for value in ticks(y_low, y_high):
        picture.line(left, up(value), WIDTH - RIGHT, up(value), "grid")
        picture.text(left - 6, up(value) + 4, number(value, 6), "end")
    picture.text((left + WIDTH - RIGHT) / 2, bottom + 33, label(x_name), "middle", "label")
    picture.text(2, TOP + 8, label(y_name), "start", "label")
    for one in sorted(found.members, key=lambda one: one.probability):
        x, y = one.spreads[x_name], one.spreads[y_name]
        is_likely = one.probability >= 0.5
        style = "line" if is_likely else "thin"
        if one.probability >= LEAST_CROSSED:
            picture.line(across(x.low), up(y.middle), across(x.high), up(y.middle), style)
            picture.line(across(x.middle), up(y.low), across(x.middle), up(y.high), style)
        picture.dot(across(x.middle), up(y.middle), "mark" if is_likely else "dot")
    lines = [
        (across(one.spreads[x_name].low), across(one.spreads[x_name].high), up(one.spreads[y_name].middle))
        for one in found.likely
    ]
    labels: list[Box] = []
    for one in found.likely:
        sure = "" if one.probability >= 0.95 else f" ({_probability(one.probability)})"
        name = f"{called(one.point) if len(found.likely) <= MOST_NAMES else ''}{sure}".strip()
        box = free_place(across(one.spreads[x_name].middle), up(one.spreads[y_name].middle), name, labels, lines)
        labels.append(box)
        picture.text(box.left, box.bottom, name, "start", "label")
    return picture


def _left_of(place: Callable[[float], float], *values: float | None) -> float:
    return min(place(value) for value in values if value is not None)


def _right_of(place: Callable[[float], float], *values: float | None) -> float:
    return max(place(value) for value in values if value is not None)


def _in_order(levels: set[Value]) -> list[Value]:
    """Numbers by size; grids such as 8x16 by their first number; others by name."""

    def key(level: Value) -> tuple[int, float, str]:
        if isinstance(level, int | float):
            return 0, float(level), ""
        words = str(level).split("x")
        return (1, float(words[0]), "") if all(word.isdigit() for word in words) else (2, 0.0, str(level))

    return sorted(levels, key=key)


def _colour(share: float) -> str:
    mixed = (round(a + (b - a) * min(max(share, 0.0), 1.0)) for a, b in zip(PALE, DARK, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _probability(value: float) -> str:
    if not isfinite(value):
        return "–"
    return f"{100.0 * value:.0f} %" if value >= 0.005 or value == 0.0 else "< 1 %"


def percent_text(value: float, digits: int = 3) -> str:
    """A change in per cent, with its sign."""
    text = f"{value:+.{digits}g}" if abs(value) < 99.5 else f"{value:+,.0f}"
    return f"{text if value else '0'} %"


def _word(level: Value) -> str:
    return f"{level:.6g}" if isinstance(level, float) else str(level)

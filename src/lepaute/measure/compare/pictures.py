"""Pictures of a comparison: run-times and their ratio by size, repetitions of it, and how normal means are."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas
from scipy import stats

from lepaute.kit.report.svg import Axis, Layer, Picture, axis
from lepaute.kit.text import exact_size, p_text, seconds, significant, time_unit
from lepaute.measure.compare.resampling import MEANS, OBSERVATIONS, TRIALS, SampleMeans, resampled_trials
from lepaute.measure.compare.verdicts import Verdict
from lepaute.measure.compare.wording import operation_name
from lepaute.measure.comparison.cases import name_of
from lepaute.stats.expanding import Floats

if TYPE_CHECKING:
    from lepaute.measure.compare.comparison import Comparison


#: Classes of the style sheet for the left and for the right library: blue, and orange.
LEFT, RIGHT = "", " second"
#: How far the points of the libraries are drawn from its place, as a factor.
APART = 1.09
_MAX_POINTS = 800
#: Mpiruns of each library from which on repetitions are drawn.
MIN_MPIRUNS = 3
#: Intervals that reach further than this change, in per cent, are drawn to the edge.
FARTHEST = 300.0


def of_operation(
    rows: Sequence[Verdict], summaries: pandas.DataFrame, found: "Comparison", generator: np.random.Generator
) -> list[Picture]:
    """Pictures of the rows of one operation in one form, by size; summaries: of this operation and form."""
    left, right = found.left, found.right
    summaries = summaries.assign(value_s=summaries[found.value], single_s=summaries["mean_all_s"])
    drawn = [_run_times(rows, summaries, left, right), _ratios(rows, left, right)]
    if min(min(row.left_mpiruns, row.right_mpiruns) for row in rows) >= MIN_MPIRUNS:
        drawn.append(repetitions(rows, summaries, left, right, generator))
    return drawn


def _run_times(rows: Sequence[Verdict], summaries: pandas.DataFrame, left: str, right: str) -> Picture:
    """Every mpirun, and the median over mpiruns of both libraries."""
    unit, factor = time_unit(max(max(row.left_s, row.right_s) for row in rows))
    sizes = _places([row.size_bytes for row in rows])
    layers = []
    every = [np.array([factor * row.left_s for row in rows] + [factor * row.right_s for row in rows])]
    for label, style, apart in ((left, LEFT, 1 / APART), (right, RIGHT, APART)):
        of_it = summaries[summaries["library"] == label]
        some = of_it if len(of_it) <= _MAX_POINTS else of_it.sample(_MAX_POINTS, random_state=len(of_it))
        values = factor * some["value_s"].to_numpy(dtype=np.float64)
        every.append(values)
        layers.append(Layer("points", _places(some["size_bytes"]) * apart, values, f"dot{style}"))
    for style, times in ((LEFT, [row.left_s for row in rows]), (RIGHT, [row.right_s for row in rows])):
        layers += [
            Layer("line", sizes, factor * np.array(times), f"line{style}"),
            Layer("points", sizes, factor * np.array(times), f"mark{style}"),
        ]
    first, last = rows[0], rows[-1]
    return Picture(
        f"Run-times of {operation_name(first)} by size: {left} from {seconds(first.left_s)} at "
        f"{exact_size(first.size_bytes)} to {seconds(last.left_s)} at {exact_size(last.size_bytes)}, {right} from "
        f"{seconds(first.right_s)} to {seconds(last.right_s)}.",
        f"Run-times. Blue: {left}; orange: {right}. Dots: single mpiruns; lines: their median.",
        _size_axis(sizes),
        axis(f"run-time, {unit}", np.concatenate(every), log=True),
        layers,
    )


def _ratios(rows: Sequence[Verdict], left: str, right: str) -> Picture:
    """How much longer the right library takes, in per cent, with intervals."""
    sizes = _places([row.size_bytes for row in rows])
    change = 100.0 * (np.array([row.ratio for row in rows]) - 1.0)
    low = 100.0 * (np.array([row.low for row in rows]) - 1.0)
    high = np.minimum(100.0 * (np.array([row.high if isfinite(row.high) else 1e9 for row in rows]) - 1.0), FARTHEST)
    high = np.maximum(high, change)
    horizontal = _size_axis(sizes)
    shown = np.array([row.decision.is_shown for row in rows])
    known = np.array([row.low > 0.0 or isfinite(row.high) for row in rows])  # unlike of single runs
    return Picture(
        f"Difference of {operation_name(rows[0])} by size, {right} against {left}: "
        + ", ".join(
            f"{value:+.0f} % at {exact_size(one.size_bytes)}" for one, value in list(zip(rows, change, strict=True))[:8]
        )
        + ".",
        f"Difference of {right} against {left}{' with 95 % intervals' if known.any() else ', too few runs to test'}. "
        f"Above 0: {left} is faster.{' In full colour: shown, corrected for all rows.' if shown.any() else ''}",
        horizontal,
        axis("difference, %", np.concatenate([change, low[known], high[known]]), include=(0.0,)),
        [
            Layer("line", np.array([horizontal.low, horizontal.high]), np.zeros(2), "zero"),
            Layer("bars", sizes[known], high[known], "interval", low[known]),
            Layer("points", sizes[~shown], change[~shown], "faint"),
            Layer("points", sizes[shown], change[shown], "mark"),
        ],
    )


def repetitions(
    rows: Sequence[Verdict], summaries: pandas.DataFrame, left: str, right: str, generator: np.random.Generator
) -> Picture:
    """Normalised run-times of repetitions (figure 29): of all mpiruns, and of one mpirun each."""
    sizes = _places([row.size_bytes for row in rows])
    layers, every, worst = [], [], []
    for label, style, apart in ((left, LEFT, 1 / APART), (right, RIGHT, APART)):
        of_it = summaries[summaries["library"] == label]
        ours, single = [], []
        for row in rows:
            of_size = of_it[of_it["size_bytes"] == row.size_bytes]
            ours.append(resampled_trials(of_size["value_s"], len(of_size), generator))
            single.append(float(resampled_trials(of_size["single_s"], 1, generator).max()))
        layers += [
            Layer("line", sizes, np.array(single), f"bare{style}"),
            Layer("points", np.repeat(sizes * apart, TRIALS), np.concatenate(ours), f"dot{style}"),
        ]
        every += [*ours, np.array(single)]
        worst.append((label, max(float(each.max()) for each in ours), max(single)))
    most = "; ".join(
        f"{label} {significant(ours)}, by one mpirun {significant(single)}" for label, ours, single in worst
    )
    return Picture(
        f"Normalised run-times of {TRIALS} repetitions of {operation_name(rows[0])}, at most: {most}.",
        f"Repetitions: run-times over the least of {TRIALS}. Dots: means over all mpiruns; dashed: the greatest means "
        f"of one mpirun. At most: {most}. Drawn from the mpiruns made, so days that differ are not in it.",
        _size_axis(sizes),
        axis("run-time over the least", np.concatenate(every), log=True, include=(1.0, 2.0)),
        layers,
    )


def normality(found: Sequence[SampleMeans], label: str) -> list[Picture]:
    """Pictures of a library's row with the least normal means of the fewest calls: distribution and quantiles."""
    of_it = [one for one in found if one.library == label]
    if not of_it:
        return []
    fewest = [one for one in of_it if one.observations == OBSERVATIONS[0]]
    worst = max(fewest, key=lambda one: abs(one.skewness))
    row = attrgetter("operation", "form", "size_bytes")
    pair = [next(one for one in of_it if one.observations == n and row(one) == row(worst)) for n in OBSERVATIONS]
    name = name_of(worst.operation, worst.form)
    subject = f"{name} of {exact_size(worst.size_bytes)} with {label}"
    scaled = [_scaled(one.means_s) for one in pair]
    return [_distribution(pair, scaled, subject), _quantiles(pair, scaled, subject)]


def _distribution(pair: Sequence[SampleMeans], scaled: Sequence[Floats], subject: str) -> Picture:
    edges = np.arange(-4.0, 6.01, 0.25)
    middle = (edges[:-1] + edges[1:]) / 2
    layers, every = [], []
    for values, style in zip(scaled, (RIGHT, LEFT), strict=True):
        height = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / (MEANS * 0.25)
        every.append(height)
        layers.append(Layer("line", np.repeat(edges, 2)[1:-1], np.repeat(height, 2), f"line{style}"))
    normal = np.exp(-(middle**2) / 2) / np.sqrt(2 * np.pi)
    layers.append(Layer("line", middle, normal, "model"))
    words = " and ".join(f"{one.observations} calls: skewness {significant(one.skewness, 2)}" for one in pair)
    return Picture(
        f"Distribution of means of calls of {subject}: {words}.",
        f"{subject}: distribution of {MEANS} means of 30 calls (orange) and of 500 (blue); dashed: normal. "
        f"Skewness {significant(pair[0].skewness, 2)} and {significant(pair[1].skewness, 2)}.",
        Axis("standard deviations from the middle", -4.0, 6.0),
        axis("density", np.concatenate([*every, normal]), include=(0.0,)),
        layers,
    )


def _quantiles(pair: Sequence[SampleMeans], scaled: Sequence[Floats], subject: str) -> Picture:
    places = stats.norm.ppf((np.arange(MEANS) + 0.5) / MEANS)
    ends = np.array([-3.2, 3.2])
    return Picture(
        f"Normal quantiles of means of calls of {subject}: "
        f"{' and '.join(f'{p_text(means.p_value)} for {means.observations} calls' for means in pair)}.",
        f"{subject}: quantiles of the same means against normal ones; dashed: normal. Shapiro and Wilk: "
        f"{p_text(pair[0].p_value)} and {p_text(pair[1].p_value)}.",
        Axis("normal quantile", -3.4, 3.4),
        axis("quantile of the means", np.concatenate([*scaled, ends])),
        [
            Layer("points", places, scaled[0], f"dot{RIGHT}"),
            Layer("points", places, scaled[1], "dot"),
            Layer("line", ends, ends, "model"),
        ],
    )


def _scaled(means_s: Floats) -> Floats:
    spread = float(np.std(means_s))
    return np.asarray((means_s - means_s.mean()) / (spread if spread > 0 else 1.0))


def _places(sizes_bytes: npt.ArrayLike) -> Floats:
    """Where sizes are on a logarithmic axis: no bytes at half a byte."""
    return np.maximum(np.asarray(sizes_bytes, dtype=np.float64), 0.5)


def _size_axis(sizes: Floats) -> Axis:
    """Axis of places; a single size is its label."""
    held = axis("size", np.concatenate([sizes / APART**2, sizes * APART**2]), log=True)
    if len(np.unique(sizes)) > 1:
        return replace(held, of_memory=True)
    return replace(held, label=exact_size(int(sizes[0])), numbered=False)

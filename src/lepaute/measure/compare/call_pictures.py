"""Pictures of the single calls of a row, both libraries in each (figures 10, 12 and 14 to 18 of the paper).

The caption of each begins with what it shows.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np
import numpy.typing as npt
import pandas

from lepaute.kit.report.svg import Axis, Layer, Picture, axis
from lepaute.kit.text import exact_size, seconds, signed_percent, time_unit
from lepaute.measure.compare.single_calls import LEAST, MOST, NUMBERS, SingleCalls, independent_band
from lepaute.measure.compare.verdicts import Verdict
from lepaute.measure.compare.wording import operation_name
from lepaute.stats.expanding import Booleans, Floats

#: Mpiruns of a library, and ranks, that are drawn.
MAX_MPIRUNS, MAX_RANKS = 40, 64
#: Shades of the columns of a histogram; a pale one is below a quarter of the fullest bin.
SHADES = 4
#: Means beyond this many of the highest quartile are at the edge: a mean of calls may be of one that was interrupted.
OUTLYING = 2.0
#: How far the two libraries are drawn from its place.
ASIDE = 0.04
#: Blue, orange: which library, by the classes of the style sheet.
_STYLES = ("", " second")


def of_row(
    row: "Verdict",
    found: Sequence[SingleCalls],
    values: pandas.DataFrame,
    ranks: pandas.DataFrame,
    names: tuple[str, str],
) -> list[Picture]:
    """All pictures of a row.

    values: columns library, mpirun, value_s, what the verdict takes of each mpirun; ranks: `mpi_campaign.rank_times`
    """
    subject = f"{operation_name(row)} of {exact_size(row.size_bytes)}"
    style = dict(zip(names, _STYLES, strict=True))
    drawn = [_from_run_to_run(subject, found, values, style)]
    if found:
        drawn = [every_mpirun(subject, found, style), *drawn, course(subject, found, style)]
        if any(len(one.correlations) for one in found):
            drawn.insert(2, correlations(subject, found, style))
    ranks = ranks.dropna()
    if len(ranks):
        drawn.append(of_ranks(subject, ranks, style))
    return drawn


def every_mpirun(subject: str, found: Sequence[SingleCalls], style: Mapping[str, str]) -> Picture:
    """A column an mpirun, by its median: as dark as a bin of run-times has calls."""
    edges_s = found[0].edges_s
    unit, factor = time_unit(float(edges_s[-1]))
    drawn = [(one, _thinned(one)) for one in found]
    columns = sum(len(order) for _, order in drawn) + 2 * (len(drawn) + 1)
    layers, begin = [], 2
    for one, order in drawn:
        shares = one.shares[order]
        shade = np.ceil(SHADES * shares / shares.max(axis=1, keepdims=True)).astype(int)
        for each in range(1, SHADES + 1):
            column, low, high = (part.astype(np.float64) for part in _stretches(shade == each))
            tile = f"tile{style[one.library]}"
            layers.append(
                Layer("tiles", begin + column, high, tile, low, opacity=each / SHADES, grid=(columns, len(edges_s) - 1))
            )
        begin += len(order) + 2
    inside = [f"{one.library} {seconds(_middle(one, 0))} to {seconds(_middle(one, 2))}" for one in found]
    every = "" if all(len(order) == len(one.mpiruns) for one, order in drawn) else "; not all mpiruns are drawn"
    sides = ", then ".join(f"{one.library} ({_colour(style, one.library)})" for one in found)
    return Picture(
        f"Histograms of every mpirun's calls of {subject}.",
        f"A column an mpirun, by its median, {sides}: the fuller the colour, the more of its calls. What is beyond "
        f"{LEAST:g} and {MOST:g} % of all calls is at the edge{every}.",
        Axis("mpiruns, by their median", 0.0, float(columns), numbered=False),
        Axis(f"run-time, {unit}", float(factor * edges_s[0]), float(factor * edges_s[-1]), log=True),
        layers,
        title=f"Half of the calls of an mpirun: {', '.join(inside)}",
    )


def _from_run_to_run(
    subject: str, found: Sequence[SingleCalls], values: pandas.DataFrame, style: Mapping[str, str]
) -> Picture:
    """The mpiruns of both libraries in the order of their starts."""
    order = {number: place + 1.0 for place, number in enumerate(sorted(values["mpirun"].unique()))}
    sides = [(name, values[values["library"] == name]) for name in style]
    ends_s = [one.quartiles_s[:, [0, 2]].ravel() for one in found]
    every_s = np.concatenate([values["value_s"].to_numpy(dtype=np.float64), *ends_s])
    unit, factor = time_unit(float(every_s.max()))
    layers = [
        Layer("bars", _places(order, one.mpiruns), factor * one.quartiles_s[:, 2], f"thin{style[one.library]}",
              factor * one.quartiles_s[:, 0])
        for one in found
    ]  # fmt: skip
    spread = []
    for name, table in sides:
        if len(table):
            times_s = table["value_s"].to_numpy(dtype=np.float64)
            layers.append(Layer("points", _places(order, table["mpirun"]), factor * times_s, f"mark{style[name]}"))
            spread.append(f"{name} {seconds(times_s.min())} to {seconds(times_s.max())}")
    bars = "; bars: half of its calls" if found else ""
    return Picture(
        f"Every mpirun of {subject} in the order of the starts.",
        f"A dot an mpirun, what the verdict takes of it, {_legend(style)}{bars}.",
        axis("mpirun, in the order of starts", np.array([1.0, float(max(2, len(order)))])),
        axis(f"run-time, {unit}", factor * every_s, log=True),
        layers,
        title=f"From run to run: {', '.join(spread)}",
    )


def correlations(subject: str, found: Sequence[SingleCalls], style: Mapping[str, str]) -> Picture:
    """Correlations of calls that are this many apart, with what independent ones would have."""
    known = [one for one in found if len(one.correlations)]
    layers, every, words = [], [], []
    for one in known:
        lags = np.arange(1.0, len(one.correlations) + 1)
        value = one.correlations[:, 1]
        band = np.array([independent_band(one.calls, int(lag)) for lag in lags])
        layers += [
            *(Layer("line", lags, band[:, end], f"bare{style[one.library]}") for end in (0, 1)),
            Layer("line", lags, value, f"line{style[one.library]}"),
        ]
        every += [value, band.ravel()]
        words.append(f"{one.library} {value[0]:.2f}")
    longest = max(len(one.correlations) for one in known)
    return Picture(
        f"Correlation of calls of {subject} by their distance.",
        f"Of calls so many apart in their mpirun, median over mpiruns, {_legend(style)}; dashed: between these lie "
        "95 % of what independent calls of one mpirun have.",
        axis("calls apart", np.array([1.0, float(max(2, longest))])),
        axis("correlation", np.concatenate(every), include=(0.0,)),
        [Layer("line", np.array([0.5, longest + 0.5]), np.zeros(2), "zero"), *layers],
        title=f"Correlation of neighbouring calls: {', '.join(words)}",
    )


def course(subject: str, found: Sequence[SingleCalls], style: Mapping[str, str]) -> Picture:
    """Run-times by the number of the call in its mpirun."""
    every_s = np.concatenate([one.course_s[:, :3].ravel() for one in found])
    highest_s = OUTLYING * float(every_s.max())
    every_s = np.concatenate([every_s, *(np.minimum(one.course_s[:, 3], highest_s) for one in found)])
    unit, factor = time_unit(float(every_s.max()))
    layers = []
    for one in found:
        side, times = style[one.library], factor * one.course_s
        layers += [
            Layer("bars", one.numbers, times[:, 2], f"thin{side}", times[:, 0]),
            Layer("line", one.numbers, times[:, 3], f"bare{side}"),
            Layer("line", one.numbers, times[:, 1], f"line{side}"),
        ]
    words = ", ".join(f"{one.library} {_second_half_change_text(one)}" for one in found)
    return Picture(
        f"Run-times of {subject} by the number of the call.",
        f"The calls of all mpiruns by their number, in up to {NUMBERS} bins, {_legend(style)}: median (line), half of "
        "them (bars), mean (dashed; at the edge where it is beyond).",
        axis("number of the call in its mpirun", np.concatenate([one.numbers for one in found])),
        axis(f"run-time, {unit}", factor * every_s, log=True),
        layers,
        title=f"Later calls of an mpirun against earlier ones: {words}",
    )


def of_ranks(subject: str, ranks: pandas.DataFrame, style: Mapping[str, str]) -> Picture:
    """When each rank begins and ends a call, after the first one's begin."""
    columns = ["begin_s", "end_s", "end_low_s", "end_high_s"]
    ranks = ranks.sort_values("rank")
    layers, words = [], []
    unit, factor = time_unit(float(ranks["end_high_s"].max()))
    for name, side in style.items():
        table = ranks[ranks["library"] == name]
        if not len(table):
            continue
        last, late_s = int(np.argmax(table["end_s"])), float(table["begin_s"].max())
        begins = f"within {seconds(late_s)}" if late_s > 0 else "together"
        words.append(
            f"{name} rank {table['rank'].iloc[last]} after {seconds(table['end_s'].iloc[last])} (ranks begin {begins})"
        )
        first = np.unique(np.arange(len(table)) * min(MAX_RANKS, len(table)) // len(table), return_index=True)[1]
        place = table["rank"].to_numpy(dtype=np.float64)[first] + (ASIDE if side else -ASIDE)
        begin, end, low, high = factor * np.maximum.reduceat(table[columns].to_numpy(dtype=np.float64), first).T
        layers += [
            Layer("bars", place, high, f"thin{side}", np.minimum(low, end)),
            Layer("line", place, begin, f"bare{side}"),
            Layer("line", place, end, f"line{side}"),
            Layer("points", place, end, f"mark{side}"),
        ]
    number, every = int(ranks["rank"].max()) + 1, factor * ranks[columns].to_numpy(dtype=np.float64).ravel()
    together = f"; of neighbouring ranks the latest, in {MAX_RANKS} groups" if number > MAX_RANKS else ""
    return Picture(
        f"When the ranks begin and end {subject}.",
        f"After the first rank's begin: ends (dots; bars: half of the mpiruns) and begins (dashed), {_legend(style)}"
        f"{together}.",
        Axis("rank", -4 * ASIDE, number - 1 + 4 * ASIDE, names=tuple(map(str, range(number)))),
        axis(f"after the first begin, {unit}", every, include=(0.0,)),
        layers,
        title=f"Last to end: {', '.join(words)}",
    )


def _thinned(one: SingleCalls) -> npt.NDArray[np.intp]:
    """Mpiruns by their median: all, or every second, third, ... of them."""
    order = np.argsort(one.quartiles_s[:, 1], kind="stable")
    return order[:: -(-len(order) // MAX_MPIRUNS)]


def _stretches(marked: Booleans) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Runs of marked bins in each row of (rows, bins): row, first edge, last edge."""
    change = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, low = np.nonzero(change == 1)
    return row, low, np.nonzero(change == -1)[1]


def _places(order: Mapping[int, float], mpiruns: npt.ArrayLike) -> Floats:
    return np.array([order[int(number)] for number in np.asarray(mpiruns)], dtype=np.float64)


def _middle(one: SingleCalls, quartile: int) -> float:
    return float(np.median(one.quartiles_s[:, quartile]))


def _colour(style: Mapping[str, str], name: str) -> str:
    return "orange" if style[name] else "blue"


def _legend(style: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {_colour(style, name)}" for name in style)


def _second_half_change_text(one: SingleCalls) -> str:
    """Text about the second half of an mpirun's calls."""
    if not isfinite(one.later_over_earlier):
        return "too few calls to say"
    return signed_percent(one.later_over_earlier - 1, one.later_low - 1, one.later_high - 1, "")

"""Pictures: a predicted distribution of runs, and several predictions side by side."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.files import whole_file
from lepaute.kit.notebook import new_figure, own_figure, plain_decades
from lepaute.kit.text import scaled_unit
from lepaute.simulate.prediction.sweep import Sweep, speed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lepaute.simulate.prediction.prediction import Prediction, Spread
    from lepaute.simulate.prediction.sweep import ScalingPoint


def plot_prediction(prediction: "Prediction", path: Path | None, axes: "Axes | None" = None) -> "Axes":
    """Draws a dot a run, the mean, and the 95 % prediction interval shaded, over the rate; `path` : of a PNG of it."""
    application = prediction.application
    spread = prediction.time_s if prediction.rate is None else prediction.rate
    runs = [run.time_s if prediction.rate is None else run.rate for run in prediction.run_list]
    quantity, factor = quantity_axis([prediction])
    mean, low, high = (factor * end for end in (spread.mean, spread.low, spread.high))
    values = sorted(factor * value for value in runs if value is not None)
    if axes is None:
        axes = new_figure((8, 3), for_file=path is not None).add_subplot()
    axes.axvspan(low, high, color="#4c78a8", alpha=0.2, lw=0, label="95 % interval")
    axes.axvline(mean, color="#4c78a8", lw=1.5, label="mean")
    shares = [(i + 0.5) / len(values) for i in range(len(values))]
    axes.plot(values, shares, "o", color="#222222", ms=5, label="simulated runs")
    axes.set_ylim(0, 1)
    axes.set_xlabel(quantity)
    axes.set_ylabel("share of runs below")
    axes.set_title(f"{application.title} {application.label} on {prediction.platform_name}", fontsize=10)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    if path is not None:
        _save(own_figure(axes), path)
    return axes


#: Lines of a picture of many predictions; of more, the fastest.
MOST_LINES = 80


def plot_sweep(predictions: "Sequence[Prediction]", path: Path) -> None:
    """Writes a PNG: a line a prediction, its mean and 95 % prediction interval, in the order asked for.

    Hollow and grey if not comparable; orange if it is the best or cannot be told from it. Of more than MOST_LINES
    those with the highest rate, or the shortest time, are drawn, of each problem as many; the title says of how many.
    """
    from matplotlib.figure import Figure

    quantity, factor = quantity_axis(predictions)
    sweep = Sweep(tuple(predictions))
    problems = sweep.problems
    bests = {id(predictions[place]) for place in sweep.best_places}
    most = MOST_LINES if len(problems) == 1 else max(1, MOST_LINES // len(problems))
    chosen = {id(one) for each in problems for one in sorted(each.predictions, key=speed, reverse=True)[:most]}
    drawn = [one for one in predictions if id(one) in chosen]
    figure = Figure(figsize=(9, 1.5 + 0.28 * len(drawn)), layout="constrained")
    axes = figure.add_subplot()
    named = set()
    spreads = [one.time_s if one.rate is None else one.rate for one in drawn]
    for line, (one, spread) in enumerate(zip(drawn, spreads, strict=True)):
        kind = "may be the best" if id(one) in bests else "comparable"
        label = kind if one.comparable else "not comparable: extrapolated"
        colour = "#999999" if not one.comparable else "#e07b00" if id(one) in bests else "#4c78a8"
        axes.errorbar(
            factor * spread.mean,
            line,
            xerr=[[factor * reach] for reach in _reach(spread)],
            fmt="o",
            color=colour,
            mfc=colour if one.comparable else "white",
            ms=5,
            label=None if label in named else label,
        )
        named.add(label)
    axes.set_yticks(range(len(drawn)), [one.application.label for one in drawn], fontsize=8)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    ends = [factor * end for one in spreads for end in (one.mean, one.low, one.high) if not isnan(end)]
    if max(ends) > 10.0 * min(ends):
        axes.set_xscale("log")
        plain_decades(axes.xaxis, (min(ends), max(ends)))
    axes.grid(axis="x", color="#e8e8e8", lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", top=len(drawn) > 20, labeltop=len(drawn) > 20)
    axes.set_xlabel(quantity)
    named_most = (
        f"{len(drawn)} fastest of {len(predictions)}" if len(problems) == 1 else f"{most} fastest of each problem"
    )
    which = f", the {named_most}" if len(drawn) < len(predictions) else ""
    axes.set_title(f"{predictions[0].application.title} on {predictions[0].platform_name}{which}", fontsize=10)
    if len(named) > 1:
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    _save(figure, path)


def plot_scaling(points: "Sequence[ScalingPoint]", path: Path) -> None:
    """Writes a PNG: time and efficiency over the number of ranks, with their 95 % intervals and the ideal.

    The line joins the fastest of each number of ranks.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    first = points[0].prediction
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    times, efficiencies = figure.subplots(1, 2)
    ranks = [point.ranks for point in points]
    ideal = [first.time_s.mean * ranks[0] / count for count in ranks]
    fastest = {point.ranks: point for point in sorted(points, key=lambda point: -point.prediction.time_s.mean)}
    joined = [point in fastest.values() for point in points]
    label = "one run each: no interval" if not first.time_s.has_interval else "mean, 95 % interval"
    times.plot(ranks, ideal, color="#999999", lw=1, ls="--", label="ideal")
    times.set_yscale("log")
    times.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    times.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    times.yaxis.set_minor_locator(NullLocator())
    times.set_ylabel("time (s)")
    efficiencies.axhline(100.0, color="#999999", lw=1, ls="--")
    efficiencies.set_ylabel(f"efficiency, relative to {ranks[0]} rank(s) (%)")
    for axes, spreads, factor in (
        (times, [point.prediction.time_s for point in points], 1.0),
        (efficiencies, [point.efficiency for point in points], 100.0),
    ):
        means = [factor * spread.mean for spread in spreads]
        reach = [[factor * end for end in _reach(spread)] for spread in spreads]
        errors = [[low for low, _ in reach], [high for _, high in reach]]
        axes.errorbar(ranks, means, yerr=errors, fmt="o", color="#4c78a8", ms=5, label=label)
        line = [(count, mean) for count, mean, is_joined in zip(ranks, means, joined, strict=True) if is_joined]
        axes.plot(*zip(*line, strict=True), color="#4c78a8", lw=1)
        axes.set_xscale("log")
        axes.set_xticks(sorted(set(ranks)), [str(count) for count in sorted(set(ranks))])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("ranks")
    efficiencies.set_ylim(0, None)
    times.legend(frameon=False, fontsize=8)
    figure.suptitle(f"{first.application.heading} on {first.platform_name}", fontsize=10)
    _save(figure, path)


def quantity_axis(predictions: "Sequence[Prediction]") -> tuple[str, float]:
    """The label of an axis of rates, or else of times, in the unit that suits the highest, and its factor."""
    rates = [prediction.rate.mean for prediction in predictions if prediction.rate is not None]
    rate = predictions[0].application.rate
    if rate is None or len(rates) < len(predictions):
        return "time (s)", 1.0
    unit, factor = scaled_unit(rate.unit, max(rates))
    return f"rate ({unit})", factor


def _save(figure: Any, path: Path) -> None:
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)


def _reach(spread: "Spread") -> tuple[float, float]:
    """How far the ends are from the mean; 0 where there is no interval."""
    if not spread.has_interval:
        return 0.0, 0.0
    return max(0.0, spread.mean - spread.low), max(0.0, spread.high - spread.mean)

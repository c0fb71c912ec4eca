"""Pictures: the predicted distribution of runs, several predictions side by side, and how a problem scales."""

from collections.abc import Sequence
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.picture import (
    APART,
    BEST,
    MEASURED,
    PREDICTED,
    RULE,
    SOFT,
    bare,
    entitle,
    new_figure,
    origin,
    own_figure,
    plain_decades,
    shown_once,
    write_picture,
)
from lepaute.kit.text import counted, ranks_text, scaled_unit, time_unit
from lepaute.simulate.prediction.wording import fastest, scaling_answer, takes, where_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lepaute.simulate.prediction.prediction import Prediction, Spread
    from lepaute.simulate.prediction.sweep import ScalingPoint, Sweep

#: Where the curve has another share than this between the ends of the interval, it is not what the interval is of.
MIN_SHARE, MAX_SHARE = 0.93, 0.99
#: Heights below the curve, in its own: of simulated and of real runs.
RUNS_AT, REAL_AT = -0.07, -0.16


def plot_prediction(
    prediction: "Prediction", path: str | Path | None, axes: "Axes | None" = None, real_s: Sequence[float] = ()
) -> "Axes":
    """Draws what `Prediction.plot` describes.

    path : of `picture_files`;  axes : to draw on, which get the title instead of a figure of its own
    """
    if len(prediction.run_list) < 2:
        raise InputError("a picture of a distribution needs at least 2 runs; ask for more with --runs")
    if bad := [time_s for time_s in real_s if not 0.0 < time_s < inf]:
        raise InputError(f"a real run took {bad[0]!r} s; real_s has times above 0")
    path = None if path is None else Path(path)
    finding, subject, spread = takes(prediction), where_run(prediction), prediction.time_s
    is_new = axes is None
    if axes is None:
        axes = new_figure((8, 4.2), for_file=path is not None).add_subplot()
    unit, factor = time_unit(spread.mean, 1e-3)
    runs = [run.time_s for run in prediction.run_list]
    low, high = (end(*runs, *real_s, bound) for end, bound in ((min, spread.low), (max, spread.high)))
    margin = (spread.high - spread.low) / 3.0 or 0.05 * spread.mean or 1.0
    height = _curve(axes, prediction, (max(low - margin, 1e-3 * spread.mean), high + margin), factor)
    top = 1.0 if height is None else height
    axes.axvline(factor * spread.mean, color=PREDICTED, lw=1.8, label="mean")
    label = counted(len(runs), "simulated run")
    marks: dict[str, Any] = {"ls": "", "clip_on": False, "zorder": 4}
    axes.plot(
        [factor * t for t in runs], [RUNS_AT * top] * len(runs), "o",
        mec=PREDICTED, mfc="white", ms=4.5, label=label, **marks,
    )  # fmt: skip
    if real_s:
        inside = sum(spread.low <= time_s <= spread.high for time_s in real_s)
        label = f"{counted(len(real_s), 'real run')}, {inside} of them inside"
        axes.plot([factor * t for t in real_s], [REAL_AT * top] * len(real_s), "D", color=MEASURED, ms=4.5, label=label,
                  **marks)  # fmt: skip
    axes.set_ylim((REAL_AT - 0.06 if real_s else 2.0 * RUNS_AT) * top, 1.12 * top)
    # Below 0 stand runs.
    axes.set_yticks([] if height is None else [tick for tick in axes.get_yticks() if 0.0 <= tick <= 1.12 * top])
    axes.set_xlabel(f"time of a run ({unit})")
    axes.set_ylabel("" if height is None else f"probability density (1/{unit})")
    bare(axes)
    if prediction.rate is not None and prediction.application.rate is not None and min(runs) > 0.0:
        _rates_on_top(axes, prediction, factor)
    axes.legend(loc="upper right", frameon=False, fontsize=8)
    if is_new:
        axes.set_title(subject, loc="left", fontsize=9, color=SOFT)
    return _finished(axes, path, finding if is_new else f"{finding}\n{subject}", [prediction], is_new=is_new)


def _curve(axes: "Axes", prediction: "Prediction", view: tuple[float, float], factor: float) -> float | None:
    """Draws the density, darker inside the interval, and returns its height; None if the interval stands alone."""
    from lepaute.stats.predictive import predictive_density

    spread, label = prediction.time_s, "95 % of further runs"
    runs = [run.time_s for run in prediction.run_list]
    if min(runs) > 0.0 and max(runs) > min(runs):
        at = np.union1d(np.linspace(*view, 801), [spread.low, spread.high])
        density = predictive_density(runs, at, prediction.sampling_sd, prediction.controls)
        inside = (at >= spread.low) & (at <= spread.high)
        # By hand: NumPy before 2.0 calls trapezoid() trapz().
        share = np.diff(at[inside]) @ (density[inside][:-1] + density[inside][1:]) / 2
        if MIN_SHARE <= share <= MAX_SHARE:
            at, density = at * factor, density / factor
            axes.fill_between(at, density, color=PREDICTED, alpha=0.10, lw=0)
            axes.fill_between(at[inside], density[inside], color=PREDICTED, alpha=0.35, lw=0, label=label)
            axes.plot(at, density, color=PREDICTED, lw=1.0)
            axes.set_xlim(at[0], at[-1])
            return float(density.max())
    axes.axvspan(factor * spread.low, factor * spread.high, color=PREDICTED, alpha=0.25, lw=0, label=label)
    axes.set_xlim(*(factor * end for end in view))
    return None


def _rates_on_top(axes: "Axes", prediction: "Prediction", factor: float) -> None:
    """The rate of each time: all runs do the same work."""
    run, rate = prediction.run_list[0], prediction.application.rate
    assert rate is not None
    assert run.rate is not None
    unit, of_rate = scaled_unit(rate.unit, run.rate)
    work = run.rate * of_rate * run.time_s * factor

    def other(value: Any) -> Any:
        return work / np.maximum(value, 1e-300)

    above = axes.secondary_xaxis("top", functions=(other, other))
    above.set_xlabel(f"rate ({unit})", fontsize=9)
    above.tick_params(labelsize=8)
    above.spines["top"].set_color(RULE)


#: Lines of a picture of many predictions; of more, the fastest.
MAX_LINES = 80
#: Problems that are named in its title.
MAX_PROBLEMS = 3


def plot_sweep(sweep: "Sweep", path: Path | None = None, axes: "Axes | None" = None) -> "Axes":
    """Draws a line a prediction, its mean and 95 % prediction interval, the fastest of each problem first.

    A star is the fastest that is comparable; orange what cannot be told from it, by pairs of equal seeds and not by
    whether intervals overlap; hollow and grey what is not comparable. Of more than MAX_LINES those with the highest
    rate, or the shortest time, are drawn, of each problem as many; the axis says of how many.
    """
    predictions, problems = sweep.predictions, sweep.problems
    quantity, factor = _quantity_axis(predictions)
    most = MAX_LINES if len(problems) == 1 else max(1, MAX_LINES // len(problems))
    drawn = [one for problem in problems for one in problem.by_speed[:most]]
    kinds = {id(one): ("cannot be told from it", BEST, "o", 6.0) for problem in problems for one in problem.bests[1:]}
    kinds |= {id(each.best): ("fastest", BEST, "*", 13.0) for each in problems if len(each.predictions) > 1}
    is_new, named = axes is None, set()
    if axes is None:
        axes = new_figure((9.0, 1.9 + 0.28 * len(drawn)), for_file=path is not None).add_subplot()
    spreads = [one.time_s if one.rate is None else one.rate for one in drawn]
    for line, (one, spread) in enumerate(zip(drawn, spreads, strict=True)):
        usual = ("slower", PREDICTED, "o", 5.0) if one.comparable else ("not comparable: extrapolated", APART, "o", 5.0)
        label, colour, marker, points = kinds.get(id(one), usual)
        axes.errorbar(
            factor * spread.mean, line, xerr=[[factor * reach] for reach in _reach(spread)], fmt=marker, color=colour,
            mfc=colour if one.comparable else "white", ms=points, lw=1.6, capsize=2.5,
            label=None if label in named else label,
        )  # fmt: skip
        named.add(label)
    axes.set_yticks(range(len(drawn)), [one.application.label for one in drawn], fontsize=8)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    ends = [factor * end for one in spreads for end in (one.mean, one.low, one.high) if not isnan(end)]
    if max(ends) > 10.0 * min(ends):
        axes.set_xscale("log")
        plain_decades(axes.xaxis, (min(ends), max(ends)))
    axes.grid(axis="x", color=RULE, lw=0.8)
    bare(axes)
    axes.tick_params(axis="x", top=len(drawn) > 20, labeltop=len(drawn) > 20)
    axes.set_xlabel(f"{quantity}, mean and 95 % of further runs")
    if len(drawn) < len(predictions):
        which = f"of {len(predictions)}" if len(problems) == 1 else "of each problem"
        axes.set_ylabel(f"the {most} fastest {which}")
    if len(named) > 1:
        place = {"loc": "outside lower center", "ncols": len(named)} if is_new else {"loc": "best"}
        (own_figure(axes) if is_new else axes).legend(
            *axes.get_legend_handles_labels(), frameon=False, fontsize=8, **place
        )
    answers = [fastest(problem, f" for {problem.problem}" if len(problems) > 1 else "") for problem in problems]
    finding = "\n".join([*answers[:MAX_PROBLEMS], *(["…"] if len(answers) > MAX_PROBLEMS else [])])
    return _finished(axes, path, finding, predictions, is_new=is_new)


def _finished(
    axes: "Axes", path: Path | None, finding: str, predictions: "Sequence[Prediction]", *, is_new: bool
) -> "Axes":
    if is_new:
        entitle(own_figure(axes), finding, _origin(predictions))
    else:
        axes.set_title(finding, loc="left", fontsize=9)
    if path is not None:
        write_picture(own_figure(axes), path)
    return axes


def plot_scaling(points: "Sequence[ScalingPoint]", path: Path | None = None) -> "Figure":
    """Draws time and efficiency over the number of ranks, with their 95 % intervals and the ideal; returns the figure.

    The line joins the fastest of each number of ranks.
    """
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    first = points[0].prediction
    figure = new_figure((9, 4.4), for_file=path is not None)
    times, efficiencies = figure.subplots(1, 2)
    ranks = [point.ranks for point in points]
    ideal = [first.time_s.mean * ranks[0] / count for count in ranks]
    fastest_of = {point.ranks: point for point in sorted(points, key=lambda point: -point.prediction.time_s.mean)}
    joined = [point in fastest_of.values() for point in points]
    label = "one run each: no interval" if not first.time_s.has_interval else "mean and 95 % of further runs"
    times.plot(ranks, ideal, color=SOFT, lw=1, ls="--", label="ideal")
    times.set_yscale("log")
    times.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    times.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    times.yaxis.set_minor_locator(NullLocator())
    times.set_ylabel("time of a run (s)")
    efficiencies.axhline(100.0, color=SOFT, lw=1, ls="--")
    efficiencies.set_ylabel(f"efficiency against {ranks_text(ranks[0])} (%)")
    for axes, spreads, factor, unit in (
        (times, [point.prediction.time_s for point in points], 1.0, " s"),
        (efficiencies, [point.efficiency for point in points], 100.0, " %"),
    ):
        means = [factor * spread.mean for spread in spreads]
        reach = [[factor * end for end in _reach(spread)] for spread in spreads]
        errors = [[low for low, _ in reach], [high for _, high in reach]]
        axes.errorbar(ranks, means, yerr=errors, fmt="o", color=PREDICTED, ms=4.5, lw=1.6, capsize=4, label=label)
        line = [at for at, is_joined in enumerate(joined) if is_joined]
        axes.plot([ranks[at] for at in line], [means[at] for at in line], color=PREDICTED, lw=1)
        for at in line:
            text = f"{spreads[at].figure(factor)}{unit}"
            axes.annotate(text, (ranks[at], means[at]), (6, 5), textcoords="offset points", fontsize=8, color=SOFT)
        axes.set_xscale("log")
        axes.set_xticks(sorted(set(ranks)), [str(count) for count in sorted(set(ranks))])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.margins(x=0.12)
        axes.set_xlabel("ranks")
        axes.grid(axis="y", color=RULE, lw=0.8)
        bare(axes)
    # From zero only where the efficiency comes near it: intervals of some per cent would not be seen.
    least = min(100.0 * (spread.mean - _reach(spread)[0]) for spread in (point.efficiency for point in points))
    efficiencies.set_ylim(max(0.0, least - 0.3 * (100.0 - least) - 2.0) if least > 40.0 else 0.0, None)
    times.legend(frameon=False, fontsize=8)
    entitle(figure, scaling_answer(points), _origin([point.prediction for point in points]))
    if path is not None:
        write_picture(figure, path)
    return shown_once(figure, path)


def _quantity_axis(predictions: "Sequence[Prediction]") -> tuple[str, float]:
    """The label of an axis of rates, or else of times, in the unit that suits the highest, and its factor."""
    rates = [prediction.rate.mean for prediction in predictions if prediction.rate is not None]
    rate = predictions[0].application.rate
    if rate is None or len(rates) < len(predictions):
        return "time (s)", 1.0
    unit, factor = scaled_unit(rate.unit, max(rates))
    return f"rate ({unit})", factor


def _origin(predictions: "Sequence[Prediction]") -> str:
    first, runs = predictions[0], sum(len(prediction.run_list) for prediction in predictions)
    return origin(first.platform_name, first.platform_sha256, first.seed, first.version, runs)


def _reach(spread: "Spread") -> tuple[float, float]:
    """How far the ends are from the mean; 0 if there is no interval."""
    if not spread.has_interval:
        return 0.0, 0.0
    return max(0.0, spread.mean - spread.low), max(0.0, spread.high - spread.mean)

"""Pictures of a subject: residuals against size, order, time and place, scatter against size, correlation."""

from collections.abc import Callable

import numpy as np

from lepaute.kit.report.svg import Axis, Layer, Picture, axis
from lepaute.kit.text import significant
from lepaute.measure.fit.diagnostics.course import Machine, Series, series_of, steps_of
from lepaute.measure.fit.diagnostics.residuals import Classed
from lepaute.measure.fit.numeric import Floats, Integers

#: Points drawn of a subject, taken by chance; more would only cover each other.
MAX_POINTS = 500
LAGS = 15
#: The middle of the calls that the vertical axis holds; what is beyond is drawn at its end.
SHOWN = (0.05, 0.95)


def pictures(calls: Classed) -> list[Picture]:
    """Pictures for which there is something to draw."""
    result = [_against_size(calls), _against_order(calls), _against_time(calls)]
    result += [_scatter_against_size(calls)] if len(calls.counts) > 1 else []
    result += [correlations(calls)] if len(calls.of) > 4 * LAGS else []
    result += [_against_place(calls)] if len(calls.of.places) > 1 else []
    return result


def of_kind(calls: Classed, kind: str) -> Picture:
    """The picture that shows best what a check of this kind looks at."""
    drawn: dict[str, Callable[[Classed], Picture]] = {
        "outliers": _against_order,
        "drift": _against_time,
        "step": _against_time,
    }
    if len(calls.counts) > 1:
        drawn["spread"] = _scatter_against_size
    if len(calls.of) > 4 * LAGS:
        drawn["autocorrelation"] = drawn["dependence"] = correlations
    if len(calls.of.places) > 1:
        drawn["cores"] = drawn["hosts"] = _against_place
    return drawn.get(kind, _against_size)(calls)


def _against_size(calls: Classed) -> Picture:
    """Points, the mean of each class of size, and what the model says of single calls."""
    some, percent = _some(calls), _percent(calls)
    centre = np.array([float(np.median(calls.of.size[calls.number == at])) for at in range(len(calls.counts))])
    order = np.argsort(centre)
    mean = 100.0 * (calls.mean - 1.0)
    relative = 100.0 * np.array(
        [
            float(np.median((calls.of.deviation_s / calls.of.predicted_s)[calls.number == at]))
            for at in range(len(calls.counts))
        ]
    )
    vertical = _vertical(percent, mean)
    horizontal = axis(calls.of.size_name, calls.of.size, log=bool(np.all(calls.of.size > 0)))
    band = [Layer("band", centre[order], relative[order], "band", -relative[order])] if calls.of.noise_modelled else []
    worst = int(np.argmax(np.abs(mean)))
    return Picture(
        f"Residuals of {calls.of.subject} against size: class means from {mean.min():.1f} % to {mean.max():.1f} %, the "
        f"farthest at size {significant(centre[worst])}.",
        "Against size. Dots: single calls; line: mean of each class of size"
        + ("; band: one standard deviation by the model" if calls.of.noise_modelled else "")
        + ". The line should lie at 0. Dots at the edge lie beyond it.",
        horizontal,
        vertical,
        [
            *band,
            Layer("points", calls.of.size[some], percent[some], "dot"),
            _zero(horizontal),
            Layer("line", centre[order], mean[order], "line"),
            Layer("points", centre, mean, "mark"),
        ],
    )


def _against_order(calls: Classed) -> Picture:
    """Points in the order in which the calls were made, and their running median."""
    some, percent = _some(calls), _percent(calls)
    by_time = np.argsort(calls.of.time_s, kind="stable")
    place = np.empty(len(by_time))
    place[by_time] = np.arange(1, len(by_time) + 1)
    parts = [part for part in np.array_split(by_time, min(60, max(1, len(by_time) // 8))) if len(part)]
    middle = np.array([float(np.median(percent[part])) for part in parts])
    at = np.array([float(np.mean(place[part])) for part in parts])
    horizontal = axis("number of the call", place)
    return Picture(
        f"Residuals of {calls.of.subject} in the order of the calls: running median from {middle.min():.1f} % to "
        f"{middle.max():.1f} %.",
        "Against order. Dots: single calls; line: running median. No pattern should be seen.",
        horizontal,
        _vertical(percent, middle),
        [Layer("points", place[some], percent[some], "dot"), _zero(horizontal), Layer("line", at, middle, "line")],
    )


def _against_time(calls: Classed) -> Picture:
    """Levels of parts of processes in the course of the measurement."""
    series = series_of(calls)
    return _of_time(
        series,
        f"Level of {calls.of.subject} in the course of the measurement",
        "Against time. Dots: median of a part of a process"
        + (", each process set to the same level" if series.centred else "")
        + ", sizes taken into account. A trend or a step is a change of the machine.",
    )


def machine_in_time(machine: Machine) -> list[Picture]:
    """All kernels together, over the measurement and inside the process that changed most clearly."""
    where = f" of {machine.host}" if machine.host else ""
    result = []
    if machine.series is not None:
        result.append(
            _of_time(
                machine.series,
                f"Level of all kernels{where} in the course of the measurement",
                "All kernels together. Dots: time that parts of processes took, over the expected time.",
            )
        )
    if machine.sentinels is not None:
        result.append(
            _of_time(
                machine.sentinels,
                f"Sentinels{where} in the course of the calibration",
                "Sentinels: duration of the same product on all cores, between the probes, over its median. It tells "
                "how fast the machine was, whatever the models say.",
            )
        )
    result += [
        _of_time(
            inside,
            f"Level of all kernels{where} inside one process",
            "The process whose level changed most clearly while it ran.",
        )
        for inside in machine.inside
    ]
    return result


def _scatter_against_size(calls: Classed) -> Picture:
    """Mean absolute deviation of single calls in each class, measured and by the model."""
    centre, measured, modelled = [], [], []
    relative = calls.of.deviation_s / calls.of.predicted_s
    for at in range(len(calls.counts)):
        inside = calls.number == at
        centre.append(float(np.median(calls.of.size[inside])))
        measured.append(100.0 * float(np.std(calls.ratio[inside])))
        modelled.append(100.0 * float(np.sqrt(np.mean(relative[inside] ** 2))))
    order = np.argsort(centre)
    x, seen, predicted = (np.array(values)[order] for values in (centre, measured, modelled))
    model = [Layer("line", x, predicted, "model")] if calls.of.noise_modelled else []
    return Picture(
        f"Scatter of single calls of {calls.of.subject} against size: {_reach(seen)} measured"
        + (f", {_reach(predicted)} by the model." if model else "."),
        "Scatter against size (heteroscedasticity). Line with dots: standard deviation of single calls"
        + ("; dashed: that of the model." if model else "; the model has none."),
        axis(calls.of.size_name, x, log=bool(np.all(x > 0))),
        axis("standard deviation, %", np.concatenate([seen, predicted]) if model else seen, include=(0.0,)),
        [*model, Layer("line", x, seen, "line"), Layer("points", x, seen, "mark")],
    )


def correlations(calls: Classed) -> Picture:
    """Correlation of residuals with those of the same process some calls before."""
    value, number = calls.by_process()
    rank = np.argsort(np.argsort(value, kind="stable")).astype(np.float64)
    rank = rank - rank.mean()
    power = float(np.mean(rank**2)) or 1.0
    lags = np.arange(1, LAGS + 1)
    rho = np.array(
        [
            float(np.mean(both)) / power
            if len(both := (rank[lag:] * rank[:-lag])[number[lag:] == number[:-lag]])
            else 0.0
            for lag in lags
        ]
    )
    horizontal = axis("calls apart", lags.astype(np.float64))
    return Picture(
        f"Autocorrelation of {calls.of.subject}: {rho[0]:.2f} between neighbours, {rho[-1]:.2f} {LAGS} calls apart.",
        "Autocorrelation. How alike calls of one process are that many calls apart, beyond what the whole process has "
        "in common; 0 for independent ones.",
        horizontal,
        Axis("rank correlation", min(-0.25, float(rho.min())), max(1.0, float(rho.max()))),
        [_zero(horizontal), Layer("bars", lags.astype(np.float64), rho, "bar")],
    )


def _against_place(calls: Classed) -> Picture:
    """Mean level of each process, by core."""
    key = calls.of.process * len(calls.of.places) + calls.of.place
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    level = 100.0 * (np.bincount(number, weights=calls.level) / np.bincount(number) - 1.0)
    place = calls.of.place[first].astype(np.float64)
    mean = np.array([float(level[place == at].mean()) for at in range(len(calls.of.places))])
    at = np.arange(len(calls.of.places), dtype=np.float64)
    horizontal = Axis("core", -0.5, len(at) - 0.5, names=tuple(name[:24] for name in calls.of.places))
    return Picture(
        f"Level of {calls.of.subject} by core: " + ", ".join(
            f"{name} {value:+.1f} %" for name, value in list(zip(calls.of.places, mean, strict=True))[:8]
        ) + ".",
        "Against place. Dots: processes; large dots: mean of each core.",
        horizontal,
        axis("beyond the expected, %", np.concatenate([level, mean]), include=(0.0,)),
        [Layer("points", place, level, "dot"), _zero(horizontal), Layer("points", at, mean, "mark")],
    )  # fmt: skip


def _of_time(series: Series, alt: str, caption: str) -> Picture:
    percent = 100.0 * (series.level - 1.0)
    horizontal = axis("seconds since the first call", np.concatenate([series.start_s, series.end_s]))
    dates = np.array([step.before_s for step in steps_of(series)])
    steps_text = f" It changes at {', '.join(f'{significant(date)} s' for date in dates[:5])}." if len(dates) else ""
    return Picture(
        f"{alt}: between {percent.min():.1f} % and {percent.max():.1f} %." + steps_text
        if len(percent)
        else f"{alt}: nothing.",
        caption + (" Vertical lines: changes of level." if len(dates) else ""),
        horizontal,
        axis("beyond the expected, %", percent, include=(0.0,)),
        [
            _zero(horizontal),
            Layer("rules", dates, np.zeros(len(dates)), "rule"),
            Layer("line", series.start_s, percent, "thin"),
            Layer("points", series.start_s, percent, "mark"),
        ],
    )


def _percent(calls: Classed) -> Floats:
    result: Floats = 100.0 * (calls.of.ratio - 1.0)
    return result


def _vertical(percent: Floats, means: Floats) -> Axis:
    return axis("measured over model, less 1, %", np.concatenate([np.quantile(percent, SHOWN), means]), include=(0.0,))


def _zero(horizontal: Axis) -> Layer:
    return Layer("line", np.array([horizontal.low, horizontal.high]), np.zeros(2), "zero")


def _some(calls: Classed) -> Integers:
    count = len(calls.of)
    if count <= MAX_POINTS:
        return np.arange(count)
    # The same points for the same calls, and none preferred.
    return np.sort(np.random.default_rng(count).choice(count, MAX_POINTS, replace=False))


def _reach(percent: Floats) -> str:
    return f"{significant(percent.min(), 2)} to {significant(percent.max(), 2)} %"

"""Before and after a change that was planned: what did the upgrade do to each machine, and to all of them?

The t-test of a textbook takes days for independent. They resemble their neighbours: with a correlation of 0.6, a 95 %
interval that takes them for independent holds two thirds. So the means have the errors of autocorrelated series.
"""

import datetime as dt
from collections.abc import Collection

import numpy as np
import pandas as pd
from scipy.special import stdtr

from lepaute.errors import InputError
from lepaute.stats.expanding import Floats
from lepaute.stats.level_shift import independent_values, level_shift
from lepaute.stats.multiple_tests import holm, outlier_p_values
from lepaute.stats.robust import robust_sd
from lepaute.stats.student import student_quantile
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.reference import references
from lepaute.watch.values import DAY_S, MACHINE, check_values, start_of, vectors

CONFIDENCE = 0.95
#: On either side, or there is no error to speak of; and pairs of a machine before and after.
FEWEST, MIN_PAIRS = 3, 5
#: Correlation of neighbours before any day is seen; worth this many days, as in `change_evidence`.
PRIOR_CORRELATION, PRIOR_DAYS = 0.6, 20
MAX_CORRELATION = 0.9


def before_after(
    values: "pd.DataFrame",
    date: dt.date,
    changelog: Changelog | None = None,
    *,
    factors: Collection[str] | None = None,
    confidence: float = CONFIDENCE,
) -> "pd.DataFrame":
    """Each machine and factor before `date`, 00:00 UTC, and from then on: one row each, and one for all of a cluster.

    values    : as watch.values says; jobs of one stratum on both sides are compared, without outliers
    changelog : only what lies between the last event before the date and the first after it, of each node, counts; the
                events of the date itself are the change
    factors   : all by default
    confidence: of the intervals, each by itself

    Columns: cluster, node, cpu (node "" and -1: the mean of the machines measured on both sides), stratum, factor,
    n_before, n_after (jobs; days for the mean), correlation (of neighbours), independent_before, independent_after (how
    many independent values would say as much), before, after (means, in the unit of the factor; about 1 in the row of
    all), change, low, high (relative to before), p_value, p_adjusted (Holm over the machines of a factor; the row of
    all by itself), missing (jobs that are missing on a side at least; the rest is NaN then), pairs (machines that the
    row of all is of, where its days are too few for an error: 0 if they are enough), p_differs (of a machine of
    these pairs: that any of them is as far from the others by chance).
    Welch's t-test with the variances of means of autocorrelated series (`stats.level_shift`). The correlation is that
    of all machines together, since no machine has enough days for one of its own. The row of all is the mean over
    machines of each day, relative to their levels, so that what days share counts among its errors. In the rows of
    machines it does not, unless it lasts no longer than what their days have in common with their neighbours.
    By pairs, such as of a sweep before and one after, the change is the mean over machines of their relative changes,
    without those that differ, by Student's t; what the days did to all machines alike is part of it.
    Raises InputError for a table that is none, or where nothing is left on either side of the date.
    """
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence!r}; give a number between 0 and 1, such as {CONFIDENCE}")
    table = check_values(values)
    wanted = sorted(table["factor"].unique() if factors is None else factors)
    moment, log = start_of(date), changelog or Changelog()
    parts = [_of_factor(vectors(table, (factor,)), factor, moment, log, confidence) for factor in wanted]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise InputError(f"no machine was measured in the same way both before and after {date}")
    return pd.concat(parts, ignore_index=True)


def _of_factor(
    observations: "pd.DataFrame", factor: str, moment: float, changelog: Changelog, confidence: float
) -> "pd.DataFrame":
    if observations.empty:
        return pd.DataFrame()
    others = Changelog(tuple(event for event in changelog.events if event.start_s != moment), changelog.outliers)
    found = references(observations, others)
    begin, end = found.begin_s[found.series], found.end_s[found.series]
    rows = observations[~found.outlier & (begin < moment) & (end > moment)]
    rows = rows.rename(columns={factor: "value"}).assign(late=rows["started_s"] >= moment)
    result: list[dict[str, object]] = []
    for (cluster, stratum), part in rows.groupby(["cluster", "stratum"], sort=True):
        sides = [series for _, series in part.groupby(MACHINE, sort=True) if series["late"].nunique() == 2]
        rho = _correlation([_halves(series) for series in sides])
        machines = [
            {
                "cluster": cluster,
                "node": series["node"].iloc[0],
                "cpu": int(series["cpu"].iloc[0]),
                **_compared(*_halves(series), rho, confidence),
            }
            for series in sides
        ]
        tested = [row for row in machines if row["missing"] == 0]
        for row, adjusted in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row["p_adjusted"] = adjusted
        of_all = _of_all(sides, confidence)
        if (of_all is None or of_all["missing"]) and len(sides) >= MIN_PAIRS:
            of_all, p_differs = _by_pairs([_halves(series) for series in sides], confidence)
            for row, series, p_value in zip(machines, sides, p_differs, strict=True):
                before, after = (float(side.mean()) for side in _halves(series))
                row |= {"before": before, "after": after, "change": after / before - 1, "p_differs": p_value}
        if of_all is not None:
            machines.append({"cluster": cluster, "node": "", "cpu": -1, **of_all, "p_adjusted": of_all["p_value"]})
        result += [{**row, "stratum": stratum, "factor": factor} for row in machines]
    frame = pd.DataFrame(result)
    columns = [*MACHINE, "stratum", "factor"]
    return frame[[*columns, *[name for name in frame if name not in columns]]] if len(frame) else frame


def _halves(one: "pd.DataFrame") -> "tuple[Floats, Floats]":
    ordered = one.sort_values("started_s", kind="stable")
    values, late = ordered["value"].to_numpy(np.float64), ordered["late"].to_numpy(np.bool_)
    return values[~late], values[late]


def _correlation(machines: "list[tuple[Floats, Floats]]") -> float:
    """Correlation of neighbouring days of these machines: from products of deviations, without the bias of means."""
    power = products = 0.0
    free = count = 0
    for sides in machines:
        for x in sides:
            if len(x) < FEWEST:
                continue
            spread = robust_sd(x)
            rest = np.clip(x - np.median(x), -3 * spread, 3 * spread) if spread > 0 else x - x.mean()
            rest = rest - rest.mean()
            scale = float((rest**2).mean())
            if scale == 0:
                continue
            power += float((rest**2).sum()) / scale
            products += float((rest[1:] * rest[:-1]).sum()) / scale
            free += len(x)
            count += 1
    if power == 0:
        return PRIOR_CORRELATION
    raw = products / power
    # of n values around their own mean it is too low by about (1 + 4 rho) / n (Kendall, Biometrika 41, 1954)
    length = free / count
    rho = max(0.0, (raw + 1 / length) / (1 - 4 / length) if length > 8 else raw + (1 + 4 * max(raw, 0.0)) / length)
    rho += 1 / np.sqrt(free)
    # a few days of a few machines say little
    return float(min(MAX_CORRELATION, (PRIOR_DAYS * PRIOR_CORRELATION + free * rho) / (PRIOR_DAYS + free)))


def _compared(before: "Floats", after: "Floats", rho: float, confidence: float) -> "dict[str, float]":
    missing = max(0, FEWEST - len(before)) + max(0, FEWEST - len(after))
    row: dict[str, float] = {
        "n_before": len(before),
        "n_after": len(after),
        "correlation": rho,
        "independent_before": independent_values(len(before), rho),
        "independent_after": independent_values(len(after), rho),
        "pairs": 0,
        "p_differs": float("nan"),
    }
    nothing = dict.fromkeys(("before", "after", "change", "low", "high", "p_value", "p_adjusted"), float("nan"))
    row |= {**nothing, "missing": missing}
    if missing:
        return row
    shift = level_shift(before, after, rho, pooled=False)
    base = abs(shift.before)
    half = shift.half_width(confidence)
    p = (
        2 * float(stdtr(shift.degrees_of_freedom, -abs(shift.difference) / shift.standard_error))
        if shift.standard_error > 0
        else float(shift.difference == 0)
    )
    relative = [each / base if base > 0 else float("nan") for each in (shift.difference, half)]
    return row | {
        "before": shift.before,
        "after": shift.after,
        "change": relative[0],
        "low": relative[0] - relative[1],
        "high": relative[0] + relative[1],
        "p_value": p,
    }


def _by_pairs(sides: "list[tuple[Floats, Floats]]", confidence: float) -> "tuple[dict[str, float], Floats]":
    """The row of all, and of each machine the chance that any differs so much from the others."""
    changes = np.array([after.mean() / before.mean() - 1 for before, after in sides])
    p_differs = outlier_p_values(changes)
    count = len(same := changes[p_differs > 1 - confidence])
    error = float(same.std(ddof=1)) / np.sqrt(count)
    t = float(same.mean()) / error if error > 0 else np.inf * float(same.mean() != 0)
    half = student_quantile(0.5 + confidence / 2, count - 1) * error
    means = {"before": 1.0, "after": 1 + float(same.mean()), "change": float(same.mean())}
    bounds = {"low": float(same.mean()) - half, "high": float(same.mean()) + half}
    of_pairs = dict.fromkeys(("n_before", "n_after", "independent_before", "independent_after", "pairs"), count)
    tail = {"p_value": 2 * float(stdtr(count - 1, -abs(t))), "p_differs": float("nan"), "missing": 0}
    return {"correlation": 0.0, **of_pairs, **means, **bounds, **tail}, p_differs


def _of_all(sides: "list[pd.DataFrame]", confidence: float) -> "dict[str, float] | None":
    """The mean over machines of each day; each machine relative to its level before, so that it does not matter which
    of them were measured on a day."""
    parts = []
    for one in sides:
        before, _ = _halves(one)
        base = abs(float(np.median(before)))
        if base > 0:
            parts.append(one.assign(relative=one["value"] / base, day=np.floor(one["started_s"] / DAY_S)))
    if len(parts) < 2:
        return None
    days = pd.concat(parts).groupby(["late", "day"])["relative"].mean()
    before, after = (days.xs(late, level="late").to_numpy(np.float64) for late in (False, True))
    return _compared(before, after, _correlation([(before, after)]), confidence)

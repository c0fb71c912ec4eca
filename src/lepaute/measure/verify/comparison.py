"""Predictions and real runs as one table: a row a case."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas

from lepaute.kit.text import change_in_words, counted, significant
from lepaute.measure.verify import naming
from lepaute.measure.verify.campaign import Case, RecordedRun, run_record
from lepaute.measure.verify.machine import compute_share, time_without_drift
from lepaute.simulate.platform.schema import Sentinel
from lepaute.stats.decision import Decision, Weakness

MIN_OF_ONE_SIGN = 3  # cases; of two, both err to one side half of the time
MIN_CHANCE_PERCENT = 0.01  # smaller ones are told as below it
WIDE = 2.0  # of the upper end over the lower one, in the median: a run inside such an interval says little
_MANY_TIMES, _FAR = 2.0, 3.0  # from here on a ratio is not told in per cent, or an error
#: What errors of one sign may share, where the machine was measured by the same command.
CAUSES = "the speed of the machine since it was calibrated, or the platform"
LARGE_N = 4000  # of HPL: from here on the summary gives its mean absolute error: below, a run lasts a tenth of a second


def run_table(cases: list[Case], runs: list[RecordedRun], sentinel: "Sentinel | None" = None) -> "pandas.DataFrame":
    """Every run that was made, in order; columns as in `campaign.run_record`, and two of the machine's drift.

    sentinel: of the platform. drift_percent: by which the sentinels around the run took longer than that;
    time_without_drift_s: what the run would have taken on the machine as it was calibrated. Both NaN if unknown.
    """
    rows = []
    for recorded in runs:
        case, row = cases[recorded.case], run_record(cases[recorded.case], recorded)
        before, after = recorded.sentinel_before_s, recorded.sentinel_after_s
        row |= {"drift_percent": float("nan"), "time_without_drift_s": float("nan")}
        if sentinel is not None and before is not None and after is not None:
            ratio = (before + after) / 2.0 / sentinel.duration_s
            row["drift_percent"] = 100.0 * (ratio - 1.0)
            row["time_without_drift_s"] = time_without_drift(recorded.run.time_s, compute_share(case.prediction), ratio)
        rows.append(row)
    return pandas.DataFrame(rows)


def _predicted(cases: list[Case]) -> "pandas.DataFrame":
    """A row a case; low_s and high_s are NaN if the prediction has one run only, hence no interval."""
    names = naming.columns_of_cases([case.application for case in cases])
    return pandas.DataFrame(
        [
            {
                "case": index,
                **named,
                "predicted_time_s": case.prediction.time_s.mean,
                "low_s": case.prediction.time_s.low,
                "high_s": case.prediction.time_s.high,
            }
            for index, (case, named) in enumerate(zip(cases, names, strict=True))
        ]
    ).astype({"low_s": float, "high_s": float})


def compare(cases: list[Case], runs: "pandas.DataFrame") -> "pandas.DataFrame":
    """One row a case: prediction, runs, error.

    runs: case, time_s, disturbed.
    Columns besides the prediction's: measured_time_s and measured_sd_s over the runs that count (undisturbed ones; all
    where every run of a case was disturbed, which only_disturbed says), n_runs and n_disturbed (of all runs made),
    n_counting and n_inside (of these, how many lie in low_s to high_s, the interval of one run; NaN without one),
    mean_low_s and mean_high_s (interval of the mean of as many runs) and inside_interval (whether the measured mean
    lies in that; None without one), half_width_percent (of the predicted mean), error_percent =
    100 (predicted - measured) / measured. Of HPL measured_rate_gflops and predicted_rate_gflops, which are means of
    rates, as of a prediction. Measured mean, error and inside once more with `_all` over all runs. Where
    the machine's drift is known, drift_percent (mean over the runs that count), and mean, error, inside and n_inside
    once more with `without_drift`, what the machine drifted by since its calibration taken out; else NaN, None.
    """
    table = _predicted(cases)
    disturbed = runs["disturbed"].astype(bool)
    every = runs.groupby("case")["time_s"]
    counting = runs[~disturbed].groupby("case")["time_s"]
    key = table["case"]
    table["n_runs"] = key.map(every.size()).astype(int)
    table["n_disturbed"] = key.map(disturbed.groupby(runs["case"]).sum()).astype(int)
    table["only_disturbed"] = table["n_runs"] == table["n_disturbed"]
    table["measured_time_s"] = key.map(counting.mean()).fillna(key.map(every.mean()))
    table["measured_sd_s"] = key.map(counting.std()).fillna(key.map(every.std()).where(table["only_disturbed"]))
    table["measured_all_time_s"] = key.map(every.mean())
    counts = ~disturbed | runs["case"].map(table.set_index("case")["only_disturbed"])
    table["n_counting"] = key.map(counts.groupby(runs["case"]).sum()).astype(int)
    table["n_inside"] = _inside_each(table, runs, "time_s", counts)
    of_means = _bounds_of_means(cases, table["n_counting"])
    table[["mean_low_s", "mean_high_s"]] = of_means
    table["half_width_percent"] = 50 * (table["high_s"] - table["low_s"]) / table["predicted_time_s"]
    for suffix, bounds in (("", of_means), ("_all", _bounds_of_means(cases, table["n_runs"]))):
        measured = table[f"measured{suffix}_time_s"]
        table[f"error{suffix}_percent"] = 100 * (table["predicted_time_s"] - measured) / measured
        table[f"inside_interval{suffix}"] = _inside_mean(measured, bounds)
    if "flop_count" in table:
        rates = runs["case"].map(table.set_index("case")["flop_count"]) / runs["time_s"] / 1e9
        table["measured_rate_gflops"] = key.map(rates[counts].groupby(runs["case"]).mean())
        table["predicted_rate_gflops"] = [case.prediction.rate_gflops.mean for case in cases]
    _without_drift(table, runs, counts)
    return table


def _inside_each(
    table: "pandas.DataFrame", runs: "pandas.DataFrame", column: str, counts: "pandas.Series[Any]"
) -> "pandas.Series[Any]":
    """For each case, how many of the runs that count lie in the interval of one run; NaN if one is not known."""
    bounds = table.set_index("case")
    low, high = runs["case"].map(bounds["low_s"]), runs["case"].map(bounds["high_s"])
    inside = ((runs[column] >= low) & (runs[column] <= high) & counts).groupby(runs["case"]).sum()
    known = (runs[column].notna() & low.notna()) | ~counts
    return table["case"].map(inside.where(known.groupby(runs["case"]).all()))


def _bounds_of_means(cases: list[Case], counts: "pandas.Series[int]") -> "np.ndarray[Any, np.dtype[np.float64]]":
    """For each case, the interval of the mean of this many runs; NaN without one. Shape (cases, 2), in seconds."""
    bounds = [case.interval_of_mean(count) for case, count in zip(cases, counts, strict=True)]
    return np.array(bounds, dtype=np.float64).reshape(-1, 2)


def _inside_mean(mean: "pandas.Series[Any]", bounds: "np.ndarray[Any, np.dtype[np.float64]]") -> "pandas.Series[Any]":
    """Whether a mean of the runs lies in the interval of such means; None if one is not known."""
    inside = (mean >= bounds[:, 0]) & (mean <= bounds[:, 1])
    return inside.astype(object).where(~np.isnan(bounds[:, 0]) & mean.notna(), None)


def _without_drift(table: "pandas.DataFrame", runs: "pandas.DataFrame", counts: "pandas.Series[Any]") -> None:
    """Adds the columns of the machine's drift."""
    columns = ["drift_percent", "time_without_drift_s"]
    known = runs.assign(**{column: math.nan for column in columns if column not in runs.columns})
    means = known[counts].groupby("case")[columns].mean()
    table["drift_percent"] = table["case"].map(means["drift_percent"])
    measured = table["measured_without_drift_s"] = table["case"].map(means["time_without_drift_s"])
    table["error_without_drift_percent"] = 100 * (table["predicted_time_s"] - measured) / measured
    table["n_inside_without_drift"] = _inside_each(table, known, "time_without_drift_s", counts)
    table["inside_without_drift"] = _inside_mean(measured, table[["mean_low_s", "mean_high_s"]].to_numpy())


def decision_of(row: Mapping[Any, Any]) -> Decision:
    """Whether the runs of a case are as predicted; row: of compare. A wide interval holds any run: no evidence."""
    inside, is_wide = row["inside_interval"], row["high_s"] > WIDE * row["low_s"] > 0.0
    lacks = [] if inside is not None else [Weakness("too few", "a single simulated run has no interval (--runs 10)")]
    return Decision.of(inside is True and not is_wide, inside is False, [*lacks, *_spoilt(row)])


def within(table: "pandas.DataFrame", tolerance: float) -> Decision:
    """Whether no error exceeds a share of the measured time."""
    return Decision.of_several(
        (
            Decision.of(within, not within, _spoilt(row))
            for row in table.to_dict("records")
            for within in [abs(row["error_percent"]) <= 100.0 * tolerance]
        ),
        "against",
    )


def _spoilt(row: Mapping[Any, Any]) -> list[Weakness]:
    return [Weakness("disturbed", "every run was disturbed by other load")] if row["only_disturbed"] else []


def comparison_record(row: dict[Any, Any]) -> dict[str, Any]:
    """How a case compares, as JSON shows it; row: of compare."""
    keys = ("measured_time_s", "error_percent", "inside_interval")
    return {
        **{key: row[key] for key in keys},
        **({"measured_rate_gflops": row["measured_rate_gflops"]} if "measured_rate_gflops" in row else {}),
        **decision_of(row).to_dict(),
        "runs_counting": int(row["n_counting"]),
        "runs_inside": None if math.isnan(row["n_inside"]) else int(row["n_inside"]),
        "interval_of_mean_s": None if math.isnan(row["mean_low_s"]) else [row["mean_low_s"], row["mean_high_s"]],
    }


def sentence(table: "pandas.DataFrame", causes: str = CAUSES) -> str:
    """The verification in a sentence, and others on what limits it; causes: what errors of one sign may share."""
    judged = table[table["inside_interval"].notna()]
    inside = "No interval: a single simulated run has none (use --runs 10)" if judged.empty else _inside(judged)
    found = one_sided(table["error_percent"].tolist())
    errors = _errors(table, "error_percent", "predicted relative to measured")
    counts, limits = f"{inside}; {errors}.{_wide(judged)}", _without_disturbed(table)
    lines = [
        *([*limits, counts] if table["only_disturbed"].all() else [counts, *limits]),
        *([] if found is None else [found.text(causes)]),
    ]
    return "\n".join(lines)


def finding(table: "pandas.DataFrame") -> str:
    """The verification in a title: how many runs are inside, and the error."""
    judged, errors = table[table["inside_interval"].notna()], _errors(table, "error_percent")
    if judged.empty:
        return f"No interval; {errors}"
    return f"{int(judged['n_inside'].sum())} of {counted(int(judged['n_counting'].sum()), 'run')} inside 95 %; {errors}"


def times_as_long(ratio: float) -> str:
    """How long it took: 11 times as long as, 25 % longer than, 433 times as fast as."""
    if ratio >= _MANY_TIMES:
        return f"{significant(ratio, 2)} times as long as"
    if 0.0 < ratio <= 1.0 / _MANY_TIMES:
        return f"{significant(1.0 / ratio, 2)} times as fast as"
    return f"{change_in_words(ratio, 'longer', 'shorter')} than"


def error_text(error_percent: float) -> str:
    """An error in per cent; of what was predicted many times as long as measured, that: 433 times as long."""
    ratio = 1.0 + error_percent / 100.0
    is_far = ratio >= _FAR or ratio <= 1.0 / _FAR
    return times_as_long(ratio).removesuffix(" as") if is_far else f"{error_percent:+.1f} %"


def _wide(judged: "pandas.DataFrame") -> str:
    """What follows from intervals that nearly any run is inside of."""
    ratio = float((judged["high_s"] / judged["low_s"].where(judged["low_s"] > 0.0)).median())
    if not ratio > WIDE:  # NaN too
        return ""
    wide = significant(ratio, 2)
    return f" The intervals are wide (upper end / lower end: {wide} in the median), so inside says little."


def _without_disturbed(table: "pandas.DataFrame") -> list[str]:
    """What remains without the cases of which every run was disturbed; nothing to say where there are none."""
    spoilt = table["only_disturbed"].astype(bool)
    if not spoilt.any():
        return []
    if spoilt.all():
        return ["Every run of every case was disturbed, so nothing is verified: close other programs and run it again."]
    rest = table[~spoilt]
    judged = rest[rest["inside_interval"].notna()]
    inside = "" if judged.empty else f"{_inside(judged)}; "
    return [
        f"Every run of {counted(int(spoilt.sum()), 'case')} was disturbed by other load. "
        f"The other {len(rest)}: {inside}{_errors(rest, 'error_percent')}."
    ]


@dataclass(frozen=True, slots=True)
class OneSided:
    """All predictions err to one side.

    side: "too short" or "too long";  least, mean, largest: of the absolute errors, in per cent
    chance: of that among as many cases that err to either side alike, and independently
    """

    cases: int
    side: str
    least_percent: float
    mean_percent: float
    largest_percent: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"chance": self.chance}

    @property
    def chance(self) -> float:
        return 2.0 ** (1 - self.cases)

    def text(self, causes: str = CAUSES, when: str = "") -> str:
        """For people; causes: what the cases may share; when: after what the errors are so, such as a correction."""
        percent = 100.0 * self.chance
        often = (
            f"in {significant(percent, 2)} %"
            if percent >= MIN_CHANCE_PERCENT
            else f"in less than {MIN_CHANCE_PERCENT} %"
        )
        return (
            f"All {self.cases} predictions are {self.side}{when}, by {self.least_percent:.1f} to "
            f"{self.largest_percent:.1f} % ({self.mean_percent:.1f} % on average): cases with independent errors "
            f"would do so {often} of campaigns. Look for a cause that they share: {causes}."
        )


def one_sided(errors_percent: Sequence[float]) -> OneSided | None:
    """Whether these errors (predicted - measured) have one sign; None if they do not, or are too few to say so."""
    sizes = [abs(error) for error in errors_percent]
    if len(sizes) < MIN_OF_ONE_SIGN or not (max(errors_percent) < 0.0 or min(errors_percent) > 0.0):
        return None
    side = "too short" if errors_percent[0] < 0.0 else "too long"
    return OneSided(len(sizes), side, min(sizes), sum(sizes) / len(sizes), max(sizes))


def sentence_without_drift(table: "pandas.DataFrame") -> str:
    """The same with the machine's drift taken out; empty if that is not known."""
    known = table[table["error_without_drift_percent"].notna()]
    if known.empty:
        return ""
    judged = known[known["inside_without_drift"].notna() & known["n_inside_without_drift"].notna()]
    inside = "" if judged.empty else f"{_inside(judged, '_without_drift', 'inside_without_drift')}; "
    found = one_sided(known["error_without_drift_percent"].tolist())
    shared = "" if found is None else "\n" + found.text("the platform, or other load", " with the drift taken out")
    return (
        f"With that taken out: {inside}{_errors(known, 'error_without_drift_percent')} (assuming that all but the "
        f"moving of messages goes with the speed of dgemm).{shared}"
    )


def _inside(judged: "pandas.DataFrame", suffix: str = "", means: str = "inside_interval") -> str:
    """How many single runs lie in the interval of one run, and how many means in theirs where there are others."""
    inside, count = int(judged[f"n_inside{suffix}"].sum()), int(judged["n_counting"].sum())
    text = f"{inside} of {counted(count, 'run')}"
    several = judged[judged["n_counting"] > 1]
    if not several.empty:
        text += f" and {int(several[means].astype(bool).sum())} of {counted(len(several), 'mean')}"
    return f"{text} inside {'its' if count == 1 else 'their'} 95 % prediction interval{'' if count == 1 else 's'}"


def _errors(table: "pandas.DataFrame", column: str, basis: str = "") -> str:
    """Of a single case with its sign, as the table has it."""
    large = table[table["n"] >= LARGE_N] if "n" in table else table
    beside = ", ".join(filter(None, [basis, f"N ≥ {LARGE_N}" if 0 < len(large) < len(table) else ""]))
    errors = (large if len(large) else table)[column]
    mean, largest = errors.abs().mean(), error_text(max(errors, key=abs))
    several = f"mean absolute error {mean:.1f} %" if mean < 100.0 * (_FAR - 1.0) else f"errors up to {largest}"
    return f"{f'error {largest}' if len(errors) == 1 else several}{beside and f' ({beside})'}"

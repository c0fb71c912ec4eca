"""Predictions and real runs as one table: a row a case."""

from typing import TYPE_CHECKING

from lepaute.verify.campaign import Case, RecordedRun, run_record

if TYPE_CHECKING:
    import pandas

LARGE_N = 4000  # from here on the summary gives its mean absolute error: below, a run lasts a tenth of a second


def run_table(cases: list[Case], runs: list[RecordedRun]) -> "pandas.DataFrame":
    """Every run that was made, in order; columns as in `campaign.run_record`."""
    import pandas

    return pandas.DataFrame([run_record(cases[recorded.case], recorded) for recorded in runs])


def predicted_table(cases: list[Case]) -> "pandas.DataFrame":
    """What was predicted: case, n, nb, p, q, flop_count, predicted_time_s, low_s, high_s.

    The last two are NaN where the prediction has one run only, hence no interval.
    """
    import pandas

    return pandas.DataFrame(
        [
            {
                "case": index,
                "n": case.hpl.n,
                "nb": case.hpl.nb,
                "p": case.hpl.p,
                "q": case.hpl.q,
                "flop_count": case.hpl.flop_count,
                "predicted_time_s": case.prediction.time_s.mean,
                "low_s": case.prediction.time_s.low,
                "high_s": case.prediction.time_s.high,
            }
            for index, case in enumerate(cases)
        ]
    ).astype({"low_s": float, "high_s": float})


def compare(predicted: "pandas.DataFrame", runs: "pandas.DataFrame") -> "pandas.DataFrame":
    """One row a case: prediction, runs, error.

    predicted: as of predicted_table; runs: case, time_s, disturbed.
    Added columns: measured_time_s and measured_sd_s over the runs that count (undisturbed ones; all where every run
    of a case was disturbed, which only_disturbed says), n_runs and n_disturbed (of all runs made), half_width_percent
    (of the predicted mean), error_percent = 100 (predicted - measured) / measured, inside_interval (low <= measured
    mean <= high; None without an interval), and the three last once more with `_all` over all runs.
    """
    table = predicted.copy()
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
    table["half_width_percent"] = 50 * (table["high_s"] - table["low_s"]) / table["predicted_time_s"]
    for suffix in ("", "_all"):
        measured = table[f"measured{suffix}_time_s"]
        table[f"error{suffix}_percent"] = 100 * (table["predicted_time_s"] - measured) / measured
        inside = (measured >= table["low_s"]) & (measured <= table["high_s"])
        table[f"inside_interval{suffix}"] = inside.astype(object).where(table["low_s"].notna(), None)
    return table


def sentence(table: "pandas.DataFrame") -> str:
    """The verification in one sentence."""
    judged = table[table["inside_interval"].notna()]
    if judged.empty:
        inside = "No interval: a single simulated run has none (use --runs 10)"
    else:
        cases = "case" if len(judged) == 1 else "cases"
        within = int(judged["inside_interval"].astype(bool).sum())
        inside = f"Measured inside the 95 % prediction interval in {within} of {len(judged)} {cases}"
    large = table[table["n"] >= LARGE_N]
    where = f" for N >= {LARGE_N}" if 0 < len(large) < len(table) else ""
    errors = (large if len(large) else table)["error_percent"].abs()
    kind = "error" if len(errors) == 1 else "mean absolute error"
    return f"{inside}; {kind} {errors.mean():.1f} %{where}."

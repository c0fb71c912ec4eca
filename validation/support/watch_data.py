"""Published daily measurements of Grid'5000 as tables of factor values: monitoring, and models of dgemm."""

from collections.abc import Mapping
from pathlib import Path

import pandas

#: Column of the file -> factor, and what its unit is in SI.
FACTORS = {
    "mean_frequency": ("mean_frequency_Hz", 1e9),
    "mean_temperature": ("mean_temperature_degC", 1.0),
    "mean_power_cpu": ("cpu_power_W", 1.0),
    "mean_power_dram": ("dram_power_W", 1.0),
}

#: The same of the daily models of dgemm: duration = intercept + mnk M N K, fitted to the calls of all cores of a
#: processor; *_residual: the standard deviation of a call, in the same form. The rate is that of one core.
MODEL_FACTORS = {
    "avg_gflops": ("dgemm_rate_flops", 1e9),
    "mnk": ("dgemm_mnk_s", 1.0),
    "intercept": ("dgemm_intercept_s", 1.0),
    "mnk_residual": ("dgemm_mnk_residual_s", 1.0),
    "intercept_residual": ("dgemm_intercept_residual_s", 1.0),
}


def published_values(path: Path) -> pandas.DataFrame:
    """The monitoring, a row a (job, processor, factor); what was not measured has none.

    The file does not say with which design and software; the log of events has what changed, so all is one stratum.
    """
    return _values(pandas.read_csv(path, dtype={"node": str, "jobid": str}), FACTORS)


def published_daily_models(*paths: Path) -> pandas.DataFrame:
    """The daily models of dgemm on Dahu in `dgemm_daily_*.csv.gz`, a row a (job, processor, factor); one table of all.

    Of that time the protocol drew the sizes anew for each day: `expfile_hash` names the day, not a protocol, and as a
    stratum it would leave nothing to compare. All is one stratum; the log of events has what else changed.
    """
    frame = pandas.concat([pandas.read_csv(path, dtype={"node": str, "jobid": str}) for path in paths])
    return _values(frame.assign(cluster="dahu"), MODEL_FACTORS)


def _values(frame: pandas.DataFrame, factors: Mapping[str, tuple[str, float]]) -> pandas.DataFrame:
    keys = frame[["cluster", "node", "cpu"]].assign(
        job=frame["jobid"], started_s=frame["start_time_unix_s"].astype(float)
    )
    parts = [
        keys.assign(stratum="", factor=factor, value=frame[column] * unit, state="done", archive="")
        for column, (factor, unit) in factors.items()
    ]
    return pandas.concat(parts, ignore_index=True).dropna(subset="value", ignore_index=True)

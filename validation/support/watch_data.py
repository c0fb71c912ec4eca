"""The published monitoring of Grid'5000 as a table of factor values."""

from pathlib import Path

import pandas

#: Column of the file -> factor, and what its unit is in SI.
FACTORS = {
    "mean_frequency": ("mean_frequency_Hz", 1e9),
    "mean_temperature": ("mean_temperature_degC", 1.0),
    "mean_power_cpu": ("cpu_power_W", 1.0),
    "mean_power_dram": ("dram_power_W", 1.0),
}


def published_values(path: Path) -> pandas.DataFrame:
    """A row a (job, processor, factor); what was not measured has none.

    The file does not say with which design and software; the log of events has what changed, so all is one stratum.
    """
    frame = pandas.read_csv(path, dtype={"node": str, "jobid": str})
    keys = frame[["cluster", "node", "cpu"]].assign(
        job=frame["jobid"], started_s=frame["start_time_unix_s"].astype(float)
    )
    parts = [
        keys.assign(stratum="", factor=factor, value=frame[column] * unit, state="done", archive="")
        for column, (factor, unit) in FACTORS.items()
    ]
    return pandas.concat(parts, ignore_index=True).dropna(subset="value", ignore_index=True)

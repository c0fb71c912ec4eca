"""What the monitor of a node saw in the steady window: frequency, temperature, power of processors and their memory."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lepaute.archive.documents import mapping, number
from lepaute.fit.numeric import Floats
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.steady_window import Window, steady_window
from lepaute.watch.factors.value import FactorValue
from lepaute.watch.values import WHOLE_NODE

if TYPE_CHECKING:
    import pandas as pd

FREQUENCY, TEMPERATURE = "mean_frequency_Hz", "mean_temperature_degC"
CPU_POWER, DRAM_POWER, NODE_POWER = "cpu_power_W", "dram_power_W", "node_power_W"
#: A mean of fewer samples says more about the moment than about the processor.
LEAST_SAMPLES = 3
_FOLDER = "monitoring/"
_FREQUENCY = re.compile(r"frequency_core(\d{1,6})_hz")
_PACKAGE = re.compile(r"temperature_coretemp_package_id_(\d{1,4})_celsius")
#: Drivers that show one temperature a processor and do not number it: the first is that of processor 0, and so on.
_NUMBERED_ALONG = re.compile(
    r"temperature_(k10temp_tctl|k10temp_tdie|zenpower_tdie|x86_pkg_temp|cpu_thermal[a-z0-9_]*?)(?:_(\d{1,4}))?_celsius"
)
_CPU_POWER = re.compile(r"power_package_?(\d{1,4})(?:_die_\d{1,4})?_watt")
_DRAM_POWER = re.compile(r"power_dram_?(\d{1,4})_watt")
_NODE_POWER = re.compile(r"power_psys_?\d{0,4}_watt")


def monitoring(run: ArchivedRun) -> Iterator[FactorValue]:
    """The means of each processor; one without enough samples in the window has NaN."""
    if run.measuring is None:
        return
    begun_s, duration_s = run.measuring
    window = steady_window(duration_s)
    period_s = number(mapping(run.archive.metadata.get("settings")).get("monitor_period_s"))
    for node in run.states:
        member = f"{_FOLDER}{node}.parquet"
        if member not in run.archive.members():
            continue
        table = run.archive.table(member)
        if "time_s" not in table:
            continue
        start_s = begun_s + run.clock_offset_s(node)
        time_s = _numbers(table["time_s"]) - start_s
        rows = table[(time_s >= window.start_s) & (time_s <= window.end_s)]
        for (factor, cpu), columns in sorted(sensors(run, node, map(str, table.columns)).items()):
            yield FactorValue(
                node, factor, _mean(rows, factor, columns), cpu, {**run.plan, **_how(window, period_s, factor, columns)}
            )


def sensors(run: ArchivedRun, node: str, columns: "Iterator[str]") -> dict[tuple[str, int], list[str]]:
    """(factor, processor) -> the columns it is made of."""
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for name in columns:
        if match := _FREQUENCY.fullmatch(name):
            found[FREQUENCY, run.cpu_of(node, int(match[1]))].append(name)
        elif match := _PACKAGE.fullmatch(name):
            found[TEMPERATURE, int(match[1])].append(name)
        elif match := _CPU_POWER.fullmatch(name):
            found[CPU_POWER, int(match[1])].append(name)
        elif match := _DRAM_POWER.fullmatch(name):
            found[DRAM_POWER, int(match[1])].append(name)
        elif _NODE_POWER.fullmatch(name):
            found[NODE_POWER, WHOLE_NODE].append(name)
        elif (match := _NUMBERED_ALONG.fullmatch(name)) and (TEMPERATURE, cpu := int(match[2] or 1) - 1) not in found:
            found[TEMPERATURE, cpu].append(name)
    return dict(found)


def _how(window: Window, period_s: float | None, factor: str, columns: list[str]) -> dict[str, str]:
    """Conditions of a mean; how many cores have a frequency is not how it is measured."""
    sensor = "frequency of each core" if factor == FREQUENCY else " + ".join(sorted(columns))
    period = "" if period_s is None else f"{period_s:g} s"
    return {"window": window.name, "period of the monitor": period, "sensor": sensor}


def _mean(rows: "pd.DataFrame", factor: str, columns: list[str]) -> float:
    """Over the samples in which all columns have a value: their mean for a frequency, else their sum."""
    if len(rows) == 0:
        return np.nan
    values = np.column_stack([_numbers(rows[name]) for name in columns])
    if factor in (FREQUENCY, TEMPERATURE):
        known = np.isfinite(values)
        count = known.sum(axis=1)
        samples = np.where(known, values, 0.0).sum(axis=1)[count > 0] / count[count > 0]
    else:
        samples = values.sum(axis=1)
        samples = samples[np.isfinite(samples)]
    return float(samples.mean()) if len(samples) >= LEAST_SAMPLES else np.nan


def _numbers(column: "pd.Series[float]") -> Floats:
    """As floats; what is none, or infinite, is NaN."""
    import pandas as pd

    numbers: Floats = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)

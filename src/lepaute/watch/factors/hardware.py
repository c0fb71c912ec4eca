"""Factors of the memory, disk, network, workloads and sensors of a node."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from lepaute.measure.archive.documents import mapping, number
from lepaute.measure.fit.memory import is_memory
from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.observations.columns import Place, check_durations, checked_table
from lepaute.measure.observation_columns import NEEDED, P2P
from lepaute.watch.factors.archived_run import PLACES, ArchivedRun, last_attempts
from lepaute.watch.factors.value import FactorValue, cells_text, rate_of
from lepaute.watch.values import WHOLE_NODE

BANDWIDTH = "memory_bandwidth_B_per_s"
#: Columns of the design of `lepaute run memory`.
BUFFERS = {"size_bytes", "stride", "element_bytes", "unroll"}
DISK = "observations/disk.parquet"
WORKLOADS = "observations/workloads.parquet"


def memory(run: ArchivedRun) -> Iterator[FactorValue]:
    """The bandwidth of each processor, of experiments that measure the memory hierarchy (`lepaute run memory`).

    That of the largest buffer, read with the widest elements, the smallest stride and the most unrolled loop: bytes of
    all calls over the time of all calls. Where several cores of a processor were measured, that of a core in the mean.
    """
    if run.is_calibration:
        return
    for member in run.tables():
        table = run.archive.table(member)
        if not is_memory(table) or len(table) == 0:
            continue
        for column in ("size_bytes", "stride", "element_bytes", "unroll", "read_bytes", "duration_s"):
            check_durations(table, Place(run.archive.path, member), column)
        nodes = run.nodes_of(table)
        if nodes is None:
            continue
        varied = [name for name in run.design_columns if name in table and name not in PLACES]
        threads = table["cpu"] if "cpu" in table else nodes.map(lambda _: -1)
        cpus = pd.Series(
            [run.cpu_of(str(node), int(thread)) for node, thread in zip(nodes, threads, strict=True)], table.index
        )
        for (node, cpu), rows in table.groupby([nodes, cpus], sort=True):
            largest = rows
            for name, best in (("size_bytes", "max"), ("element_bytes", "max"), ("stride", "min"), ("unroll", "max")):
                largest = largest[largest[name] == largest[name].agg(best)]
            value = rate_of(largest["read_bytes"], largest["duration_s"])
            how = cells_text(rows, varied or ["size_bytes", "stride", "element_bytes", "unroll"])
            yield FactorValue(str(node), BANDWIDTH, value, int(str(cpu)), {"buffers": how})
        return


def disk(run: ArchivedRun) -> Iterator[FactorValue]:
    """disk_<operation>_B_per_s of each node: bytes of all calls over the time of all calls.

    Of experiments that record a table `disk` with the columns operation, size_bytes and duration_s.
    """
    if run.is_calibration or DISK not in run.archive.members():
        return
    table = run.archive.table(DISK)
    if not set(table.columns) >= {"operation", "size_bytes", "duration_s"} or len(table) == 0:
        return
    for column in ("size_bytes", "duration_s"):
        check_durations(table, Place(run.archive.path, DISK), column)
    nodes = run.named_nodes(table, DISK)
    varied = [name for name in run.design_columns if name in table and name not in PLACES and name != "size_bytes"]
    for (node, operation), rows in table.groupby([nodes, table["operation"].astype(str)], sort=True):
        name = re.sub(r"[^a-z0-9]+", "_", str(operation).lower()).strip("_")
        rate = rate_of(rows["size_bytes"], rows["duration_s"])
        how = {"calls": cells_text(rows, ["size_bytes", *varied])}
        yield FactorValue(str(node), f"disk_{name}_B_per_s", rate, conditions=how)


def workloads(run: ArchivedRun) -> Iterator[FactorValue]:
    """workload_<workload>_<figure> of each node: the median over what its runs told.

    Of experiments that record a table `workloads` with the columns workload, figure, value and command, as the node
    test does. The version of stress-ng is a condition, since versions count operations differently.
    """
    if run.is_calibration or WORKLOADS not in run.archive.members():
        return
    table = run.archive.table(WORKLOADS)
    if not set(table.columns) >= {"workload", "figure", "value", "command"} or len(table) == 0:
        return
    nodes = run.named_nodes(table, WORKLOADS)
    for (node, workload, figure), rows in table.groupby([nodes, "workload", "figure"], sort=True):
        notes = {
            name: " | ".join(sorted(rows[column].dropna().astype(str).unique()))
            for name, column in (("command", "command"), ("pattern", "pattern"), ("stress-ng", "stress_ng"))
            if column in rows
        }
        how = {name: text for name, text in notes.items() if text}
        value = float(np.median(_numbers(rows["value"])))
        yield FactorValue(str(node), f"workload_{workload}_{figure}", value, conditions=how)


#: Messages whose time is all latency, and those whose time is all bandwidth, on networks of 1 to 400 Gbit/s.
SMALL_BYTES, LARGE_BYTES = 256, 1 << 20


def network(run: ArchivedRun) -> Iterator[FactorValue]:
    """For each node and kind of link: the median time of small messages, and bytes over time of large ones.

    Of the ping-pongs of a calibration or a node test, half of a round trip, less the clock's cost; between nodes
    (`network_...`) and inside a node (`loopback_...`). Both ends of a pair have the value of the pair: one slow card
    shows at both, and the pairs of a node tell which end it is.
    """
    if P2P not in run.archive.members():
        return
    if not run.is_calibration and not set(run.archive.table(P2P).columns) >= {*NEEDED[P2P], "link"}:
        return  # a table of that name of somebody's own experiment
    table = checked_table(run.archive, P2P)
    nodes = run.nodes_of(table)
    if nodes is None or "link" not in table:
        return
    table = table.assign(node=nodes, one_way_s=(table["duration_s"] - table["clock_cost_s"]).clip(lower=0.0) / 2.0)
    table = table[table["operation"].astype(str) == "pingpong"]
    table = last_attempts(table, "node", "block", "link", "peer", "distance")
    nearest = ""
    if "distance" in table:  # inside a node the nearest cores
        local = (table["link"] == "local").to_numpy()
        nearest = table.loc[local, "distance"].astype(str).min() if local.any() else ""
        table = table[~local | (table["distance"].astype(str) == nearest).to_numpy()]
    for node in run.states:
        ends = table["node"] == node
        if "peer" in table:
            ends |= table["peer"].astype(str) == node
        for link, name in (("remote", "network"), ("local", "loopback")):
            rows = table[ends & (table["link"] == link)]
            if len(rows):
                yield from _of_link(run, node, name, rows, nearest if link == "local" else "")


def _of_link(run: ArchivedRun, node: str, name: str, rows: "pd.DataFrame", distance: str) -> Iterator[FactorValue]:
    conditions = {**run.mpi(node), **({"distance of the cores": distance} if distance else {})}
    small, large = rows[rows["size_bytes"] <= SMALL_BYTES], rows[rows["size_bytes"] >= LARGE_BYTES]
    if len(small):
        how = {**conditions, "messages": cells_text(small, ["size_bytes"])}
        yield FactorValue(node, f"{name}_latency_s", float(small["one_way_s"].median()), conditions=how)
    if len(large):
        how = {**conditions, "messages": cells_text(large, ["size_bytes"])}
        bandwidth = rate_of(large["size_bytes"], large["one_way_s"])
        yield FactorValue(node, f"{name}_bandwidth_B_per_s", bandwidth, conditions=how)


FREQUENCY, TEMPERATURE = "mean_frequency_Hz", "mean_temperature_degC"
CPU_POWER, DRAM_POWER, NODE_POWER = "cpu_power_W", "dram_power_W", "node_power_W"
#: A mean of fewer samples says more about the moment than about the processor.
MIN_SAMPLES = 3
#: What a column of the monitor is, its processor as the group; a frequency is that of a core.
_SENSORS = (
    (FREQUENCY, re.compile(r"frequency_core(\d{1,6})_hz")),
    (TEMPERATURE, re.compile(r"temperature_coretemp_package_id_(\d{1,4})_celsius")),
    (CPU_POWER, re.compile(r"power_package_?(\d{1,4})(?:_die_\d{1,4})?_watt")),
    (DRAM_POWER, re.compile(r"power_dram_?(\d{1,4})_watt")),
    (NODE_POWER, re.compile(r"power_psys_?\d{0,4}_watt")),
)
#: Drivers that show one temperature a processor and do not number it: the first is that of processor 0, and so on.
_NUMBERED_ALONG = re.compile(
    r"temperature_(k10temp_tctl|k10temp_tdie|zenpower_tdie|x86_pkg_temp|cpu_thermal[a-z0-9_]*?)(?:_(\d{1,4}))?_celsius"
)


def steady_window(duration_s: float) -> tuple[float, float, str]:
    """Beginning and end of the part of a test that is taken to be steady, and a name that comparable runs share.

    Minutes 2 to 4 of the test, as in Cornebize's thesis (section 9.2.1); what a shorter test has of them, if it is
    three samples at the usual period of the monitor, or else its second half. Which part it was belongs to the stratum,
    as a processor that has been busy for a minute is cooler than after three.
    """
    if duration_s >= 240.0:
        return 120.0, 240.0, "minutes 2 to 4"
    if duration_s >= 120.0 + 15.0:
        return 120.0, duration_s, "from minute 2 to the end, before minute 4"
    return duration_s / 2, duration_s, "second half of a run that is over by minute 2"


def monitoring(run: ArchivedRun) -> Iterator[FactorValue]:
    """Mean frequency, temperature and power of each processor and its memory in the steady window.

    One without enough samples there has NaN.
    """
    if run.measuring is None:
        return
    begun_s, duration_s = run.measuring
    window_s, window_end_s, window = steady_window(duration_s)
    period_s = number(mapping(run.archive.metadata.get("settings")).get("monitor_period_s"))
    how = {**run.plan, "window": window, "period of the monitor": "" if period_s is None else f"{period_s:g} s"}
    for node in run.states:
        member = f"monitoring/{node}.parquet"
        if member not in run.archive.members():
            continue
        table = run.archive.table(member)
        if "time_s" not in table:
            continue
        time_s = _numbers(table["time_s"]) - (begun_s + run.clock_offset_s(node))
        rows = table[(time_s >= window_s) & (time_s <= window_end_s)]
        for (factor, cpu), columns in sorted(_sensors(run, node, map(str, table.columns)).items()):
            # how many cores have a frequency is not how it is measured
            sensor = "frequency of each core" if factor == FREQUENCY else " + ".join(sorted(columns))
            yield FactorValue(node, factor, _mean(rows, factor, columns), cpu, {**how, "sensor": sensor})


def _sensors(run: ArchivedRun, node: str, columns: Iterable[str]) -> dict[tuple[str, int], list[str]]:
    """(factor, processor) -> the columns it is made of."""
    sensors: dict[tuple[str, int], list[str]] = defaultdict(list)
    for name in columns:
        factor, match = next(((each, m) for each, form in _SENSORS if (m := form.fullmatch(name))), ("", None))
        if match is None:
            if (match := _NUMBERED_ALONG.fullmatch(name)) and (TEMPERATURE, int(match[2] or 1) - 1) not in sensors:
                sensors[TEMPERATURE, int(match[2] or 1) - 1].append(name)
            continue
        cpu = WHOLE_NODE if factor == NODE_POWER else int(match[1])
        sensors[factor, run.cpu_of(node, cpu) if factor == FREQUENCY else cpu].append(name)
    return sensors


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
    return float(samples.mean()) if len(samples) >= MIN_SAMPLES else np.nan


def _numbers(column: "pd.Series[float]") -> Floats:
    """As floats; what is none, or infinite, is NaN."""
    numbers: Floats = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)

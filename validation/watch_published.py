"""The published test on the published data: does `lepaute.watch` raise the alarms that an independent recount raised?

Fixed before: the figures, to be met to the digit, come from a count that shares no code with this one.

* data: watch/stats_monitoring.csv.gz, 13,540 (job, processor) means of the daily test of 32 nodes of Dahu, November
  2019 to March 2021: frequency, temperature, power of the processor and of its memory; watch/exp_changelog.csv and
  watch/exp_outlierlog.csv, what was known of them in the end;
* rule: each factor by itself, r = 1, confidence 99.99 %: an alarm where p < 1e-4. The reference is what the same
  processor was seen to do since the last event (of either type; its cluster or all; the node in its set), which counts
  from 00:00 UTC of its date on, itself included; at least 3 values; logged outliers, by cluster, node and job, are
  tested and are no reference; a reference without variance is no reference;
* two readings of the log of outliers: whole (29/30/31/32 are four nodes), and its lines of a single node only;
* beside it, never judged: windows of five jobs, and a covariance pooled over the processors of the cluster;
* power drops: means of processor power below 124 W before 2021-01-01, as (node, job) pairs.
"""

from dataclasses import replace

import pandas
from support.report import Goal, Options, run_study
from support.watch_data import FACTORS, published_values

from lepaute.watch.changelog import read_changelog
from lepaute.watch.judging.judge import judge

DATA, EVENTS, OUTLIERS = "watch/stats_monitoring.csv.gz", "watch/exp_changelog.csv", "watch/exp_outlierlog.csv"
LEVEL = 1e-4
NAMES = dict(
    zip([name for name, _ in FACTORS.values()], ("frequency", "temperature", "power", "memory power"), strict=True)
)
#: Reading of the log of outliers -> tests, alarms, of these by factor, of these on logged jobs (None: not counted).
EXPECTED = {"whole": (38_864, 543, (136, 53, 262, 92), 454), "single nodes": (38_896, 195, (26, 41, 109, 19), None)}
LOW_POWER_W = 124.0
#: What was below it -> rows, and (node, job) pairs.
LOW_POWER = {
    f"power below {LOW_POWER_W:g} W, before 2021": (128, 68),
    f"power below {LOW_POWER_W:g} W, all": (209, 110),
}
YEAR_END_S = pandas.Timestamp("2021-01-01", tz="UTC").timestamp()

TEXT = """## The published test of machines on its published data

Daily measurements of the 32 nodes of Dahu, November 2019 to March 2021, tested as in chapter 9 of Cornebize's thesis:
each factor by itself, 99.99 %; an alarm is p < 0.0001 (`validation/watch_published.py`). The expected counts come from
a recount, of r = 1 without pooling, that shares no code with Lepaute's.

{goals}

{cases}

Without the lines of several nodes in the log of outliers, most power drops of nodes 29 to 32 enter the reference and
hide the later ones: 195 alarms against 543. These counts say nothing about false alarms.
"""


def counted(options: Options) -> pandas.DataFrame:
    """A row a (reading of the log, window, pooled, factor): observations, tests, alarms, and those on logged jobs.

    Of what was below LOW_POWER_W, rows are observations and their (node, job) pairs are tests.
    """
    values = published_values(options.data(DATA))
    if options.quick:
        values = values[values["node"].isin(["26", "29"])]
    log = read_changelog(options.data(EVENTS), options.data(OUTLIERS))
    single = replace(log, outliers=tuple(outlier for outlier in log.outliers if "/" not in outlier.nodes.text))
    low = values[(values["factor"] == "cpu_power_W") & (values["value"] < LOW_POWER_W)]
    rows: list[dict[str, object]] = []
    for name, part in zip(LOW_POWER, (low[low["started_s"] < YEAR_END_S], low), strict=True):
        counts = {"observations": len(part), "tests": len(part[["node", "job"]].drop_duplicates())}
        rows.append({"outlier_log": name, "r": 0, "pooled": False, "factor": "cpu_power_W", **counts})
    for reading, known in (("whole", log), ("single nodes", single)):
        for pooled in (False, True):
            found = judge(values, known, windows=(1, 5), confidence=1 - LEVEL, pooled=pooled)
            found["alarm"] = found["p_value"] < LEVEL
            for (r, factor), part in found.groupby(["r", "factor"], sort=True):
                tested = part[part["missing"] == 0]
                counts = {
                    "observations": len(part),
                    "tests": len(tested),
                    "alarms": int(tested["alarm"].sum()),
                    "logged_tests": int(tested["outlier"].sum()),
                    "logged_alarms": int((tested["outlier"] & tested["alarm"]).sum()),
                }
                rows.append({"outlier_log": reading, "r": r, "pooled": pooled, "factor": factor, **counts})
    return pandas.DataFrame(rows).convert_dtypes()


def judged(frame: pandas.DataFrame) -> list[Goal]:
    """The counts, which have to be those of the recount."""
    published = frame[(frame["r"] == 1) & ~frame["pooled"].astype(bool)]
    goals = []
    for reading, (tests, alarms, by_factor, logged) in EXPECTED.items():
        part = published[published["outlier_log"] == reading].set_index("factor")
        where = f"log of outliers: {reading}: "
        sums = {"tests": tests, "alarms": alarms}
        goals += [equal(f"{where}{name}", wanted, int(part[name].sum())) for name, wanted in sums.items()]
        goals += [
            equal(f"{where}alarms of {name}", wanted, int(part["alarms"].get(factor, 0)))
            for (factor, name), wanted in zip(NAMES.items(), by_factor, strict=True)
        ]
        if logged is not None:
            goals.append(equal(f"{where}alarms on logged jobs", logged, int(part["logged_alarms"].sum())))
            goals.append(equal(f"{where}tests of logged jobs", 880, int(part["logged_tests"].sum())))
    low = frame.set_index("outlier_log")
    for name, (rows, pairs) in LOW_POWER.items():
        goals.append(equal(f"{name}: rows", rows, int(low.loc[name, "observations"])))
        goals.append(equal(f"{name}: (node, job) pairs", pairs, int(low.loc[name, "tests"])))
    return goals


def equal(what: str, wanted: int, reached: int) -> Goal:
    """A count that has to be this one."""
    return Goal(what, f"{wanted:,}", f"{reached:,}", wanted == reached)


if __name__ == "__main__":
    run_study(counted, judged, TEXT, needs=(DATA, EVENTS, OUTLIERS))

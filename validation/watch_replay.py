"""What a watch of Dahu would have found, and on which day: the published data, replayed with what was known each day.

Fixed before the result was seen, except where it says so:

* data: watch/stats_monitoring.csv.gz, four factors of 64 processors, 2019-11-25 to 2021-03-17; and
  dahu/kernels/dgemm_daily_{slownodes,good}.csv.gz, 2019-10-18 to 2020-01-31, the only ones around the repair;
* truth: the logs of events and of outliers; of Cornebize's thesis, 9.2.4, the power drops, (node, job) with a processor
  below 124 W. No factor has its memory faults, whose jobs never ended;
* raw tests at 1e-4: r = 1 and 5 of each factor, by itself and pooled; p = 2, frequency and temperature, 3 and 4 with
  both powers; of the models p = 2 (MNK, intercept) to 4 (residuals). `watch.alarms` and change points beside them;
* *as logged*: each entry known from its date on; *left out*: the same without the event in question;
* found: the first day on which a tenth of the processors that the event touches have had an alarm of the same test and
  factor within 30 days, or until another event touches half of its nodes; alarms of outliers and power drops aside
  (added after a trial). Alarms and change points have 56 days (30 at first, changed after two events had been looked
  at); a change point counts if its interval comes within 3 days of the date;
* an alarm belongs to an outlier, a power drop, or an event of its node at most 7 days away; others are outside, and the
  first explanation of support/replay_tests.py that fits is given;
* wanted: the repair found on all eight processors of nodes 13 to 16 within three jobs (rate of dgemm, r = 1, left out);
  one proposed platform event with nodes 29 to 32 and no other, after 2020-11-06; alarms outside (r = 1, as logged) at
  most twice what the level promises, or no more than that alone.
"""

from dataclasses import replace

import pandas
from support import replay_tests
from support.replay_tests import verdicts_of
from support.report import Goal, finish, options_of, reached, run_main
from support.watch_data import FACTORS, MODEL_FACTORS, published_daily_models, published_values
from watch_published import DATA, EVENTS, OUTLIERS

from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.changelog import Changelog, read_changelog
from lepaute.watch.proposals.change_points import find_change_points
from lepaute.watch.proposals.day_events import day_events

STUDY = "watch_replay"
MODELS = tuple(f"dahu/kernels/dgemm_daily_{name}.csv.gz" for name in ("slownodes", "good"))
TABLES = ("outliers", "counts", "outside", "alarms", "platform")
#: The first two to four factors; of models, the rate aside.
VECTORS = tuple(tuple(name for name, _ in FACTORS.values())[:p] for p in (2, 3, 4))
MODEL_VECTORS = tuple(tuple(name for name, _ in MODEL_FACTORS.values())[1 : p + 1] for p in (2, 3, 4))
DROPPING = frozenset({"29", "30", "31", "32"})


def main() -> int:
    options = options_of(__doc__, (DATA, EVENTS, OUTLIERS, *MODELS))
    log = read_changelog(options.data(EVENTS), options.data(OUTLIERS))
    monitoring = published_values(options.data(DATA))
    models = published_daily_models(*(options.data(name) for name in MODELS))
    if options.quick:
        few = ["13", "16", "29", "30"]
        monitoring, models = (table[table["node"].isin(few)] for table in (monitoring, models))
    verdicts = verdicts_of(monitoring, log, VECTORS)
    verdicts = verdicts.assign(belongs=replay_tests.belongs_to(verdicts, log, monitoring))
    if options.summarise:
        blank = dict.fromkeys(("days", "jobs", "last_jobs", "tests"), "")
        found = pandas.read_csv(options.table(STUDY), keep_default_na=False, na_values=blank)
        tables = {name: pandas.read_csv(options.table(f"{STUDY}_{name}"), keep_default_na=False) for name in TABLES}
    else:
        found = pandas.DataFrame(left_out(monitoring, log, VECTORS) + left_out(models, log, MODEL_VECTORS))
        tables = {
            "outliers": outliers_found(verdicts, monitoring, log),
            "counts": counted(verdicts),
            "outside": outside(verdicts, monitoring),
            "alarms": corrected(monitoring, log),
            "platform": platform(verdicts, monitoring),
        }
        for name, table in tables.items():
            options.write(f"{STUDY}_{name}", table, "%.6g")
    goals = judged(found, tables)
    section, figure = replay_tests.text(tables), replay_tests.picture(verdicts, log)
    return finish(options, STUDY, found, goals, section, figure, finding(goals))


def finding(goals: list[Goal]) -> str:
    outside, left = (reached(goals, which) for which in ("alarms outside of all events", "the same, without"))
    return f"Alarms of single jobs outside of all events: {outside}; {left} stay unexplained"


def left_out(values: pandas.DataFrame, log: Changelog, vectors: tuple[tuple[str, ...], ...]) -> list[dict[str, object]]:
    """A row an (event, test, factor): when it was found without its entry in the log."""
    rows = []
    days = (replay_tests.WINDOW_DAYS, replay_tests.LOOKS * replay_tests.LOOK_DAYS)
    for event, long in zip(*(replay_tests.known_events(log, values, most) for most in days), strict=True):
        ignorant = replay_tests.without(log, event)
        begin = replay_tests.last_common_event_s(values, ignorant, event)
        seen = values[values["started_s"].between(begin, event.end_s, inclusive="left")]
        present = set(seen["factor"])
        possible = [names for names in vectors if present.issuperset(names)]
        verdicts = verdicts_of(seen, ignorant, possible, since=event.entry.date)
        rows += replay_tests.found_by_tests(verdicts, values, event)
        rows += replay_tests.found_by_alarms(values, ignorant, long)
        rows += replay_tests.found_by_change_points(values, ignorant, long)
    return rows


def outliers_found(verdicts: pandas.DataFrame, values: pandas.DataFrame, log: Changelog) -> pandas.DataFrame:
    """A row an outlier of the log: on how many of its nodes that have the job it raised an alarm, by test."""
    unedited = verdicts_of(values, replace(log, outliers=()), VECTORS[1:2])
    nodes = {(replay_tests.CLUSTER, node) for node in values["node"].unique()}
    rows = []
    for entry in log.outliers:
        named = {node for _, node in entry.nodes.among(nodes)}
        if not named:
            continue
        row: dict[str, object] = {"date": entry.date, "nodes": entry.nodes.text, "job": entry.job}
        row["reason"] = entry.reason
        for reading, table in (("", verdicts), ("unedited, ", unedited)):
            of_job = table[(table["job"] == entry.job) & table["node"].isin(named)]
            row.setdefault("nodes_with_data", of_job["node"].nunique())
            hit = of_job[of_job["alarm"]]
            for test in sorted(table["test"].unique()):
                row[f"{reading}{test}"] = hit.loc[hit["test"] == test, "node"].nunique()
            if not reading:
                row["factors"] = " ".join(sorted(set(hit.loc[hit["test"] == "r = 1", "factor"])))
        rows.append(row)
    return pandas.DataFrame(rows)


def counted(verdicts: pandas.DataFrame) -> pandas.DataFrame:
    """A row a test: its alarms, by what they belong to, and how many the level promises outside of all events."""
    rows = []
    for test, part in verdicts[verdicts["missing"] == 0].groupby("test", sort=False):
        alarms = part.loc[part["alarm"], "belongs"].value_counts()
        is_outside = part["belongs"] == ""
        rows.append(
            {
                "test": test,
                "tests": len(part),
                "alarms": int(part["alarm"].sum()),
                **{kind: int(alarms.get(kind, 0)) for kind in ("outlier of the log", "power drop", "event of the log")},
                "outside": int(alarms.get("", 0)),
                "promised": replay_tests.LEVEL * int(is_outside.sum()),
            }
        )
    return pandas.DataFrame(rows)


def outside(verdicts: pandas.DataFrame, values: pandas.DataFrame) -> pandas.DataFrame:
    """The alarms of r = 1 that belong to nothing known, with what explains them."""
    some = verdicts[(verdicts["test"] == "r = 1") & verdicts["alarm"] & (verdicts["belongs"] == "")]
    frame = replay_tests.explained(some, values)
    frame["date"] = pandas.to_datetime(frame["started_s"], unit="s").dt.date
    columns = "date node cpu job started_s factor n direction value usual size p_value kind".split()
    return frame[columns].sort_values(["kind", "started_s", "node", "cpu"], ignore_index=True)


def corrected(values: pandas.DataFrame, log: Changelog) -> pandas.DataFrame:
    """The alarms of the corrected procedure, as logged, and the change points that are seen in the end."""
    alarms = judge_days(values, log).alarms
    rows = alarms[["day", "node", "cpu", "factor", "since_s", "changed_s", "direction", "size"]].assign(by="alarms")
    names = ("node", "cpu", "factor", "direction", "size")
    points = [
        {"by": "change points", "day": "", "changed_s": point.before_s} | {name: getattr(point, name) for name in names}
        for point in find_change_points(values, log)
    ]
    rows = pandas.concat([rows, pandas.DataFrame(points)], ignore_index=True)
    rows["changed"] = pandas.to_datetime(rows["changed_s"], unit="s").dt.date
    return rows.drop(columns=["since_s", "changed_s"])


def platform(verdicts: pandas.DataFrame, values: pandas.DataFrame) -> pandas.DataFrame:
    """The events of several nodes on single days that are proposed from the tests of r = 1, known in the end."""
    rows = [
        {
            "first": event.days[0],
            "last": event.days[-1],
            "days": len(event.days),
            "nodes": "/".join(sorted({node for _, node in event.nodes}, key=int)),
            "factors": "; ".join(str(factor) for factor in event.factors),
            "p_value": event.p_value,
        }
        for event in day_events(verdicts[verdicts["test"] == "r = 1"], values)
    ]
    return pandas.DataFrame(rows)


def judged(found: pandas.DataFrame, tables: dict[str, pandas.DataFrame]) -> list[Goal]:
    goals = []
    for test, name in (("r = 1", ""), ("pooled r = 1", ", pooled (looked at afterwards)")):
        row = found[
            found["event"].str.startswith("2019-11-27")
            & (found["test"] == test)
            & (found["factor"] == "dgemm_rate_flops")
        ].iloc[0]
        machines, touched, jobs = int(row["machines"]), int(row["touched"]), row["last_jobs"]
        what, goal = f"repair of nodes 13 to 16, rate of dgemm{name}", "all processors within 3 jobs"
        seen = f"{machines} of {touched} processors" + (f", the last one at its job {int(jobs)}" if machines else "")
        goals.append(Goal(what, goal, seen, bool(machines and machines == touched and jobs <= 3)))
    drops = tables["platform"]
    nodes = drops["nodes"].str.split("/").map(set)
    after = drops["last"].astype(str) > "2020-11-06"
    of_drops = [some for some, late in zip(nodes, after, strict=True) if late and len(some & DROPPING) >= 2]
    words = "; ".join("/".join(sorted(some, key=int)) for some in of_drops)
    is_one = of_drops == [set(DROPPING)]
    goals.append(Goal("power drops of nodes 29 to 32", "one platform event", f"{len(of_drops)}: {words}", is_one))
    counts = tables["counts"].set_index("test").loc["r = 1"]
    limit = 2 * float(counts["promised"])
    alone = int((tables["outside"]["kind"] == "alone").sum())
    left = alone - int((replay_tests.afterwards(tables["outside"]) != "").sum())
    every, most = f"{int(counts['outside'])}, of which {alone} alone", f"at most {limit:.1f}"
    return [
        *goals,
        Goal("alarms outside of all events, r = 1", f"{most}, or each explained", every, alone <= limit),
        Goal("the same, without what was explained afterwards", most, f"{left}", left <= limit),
    ]


if __name__ == "__main__":
    run_main(main)

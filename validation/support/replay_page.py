"""The section of its page about the replay."""

import pandas

from support.goals import markdown
from support.replay_outside import KINDS, afterwards, groups

SHORT = {
    "mean_frequency_Hz": "frequency",
    "mean_temperature_degC": "temperature",
    "cpu_power_W": "power",
    "dram_power_W": "memory power",
    "dgemm_rate_flops": "rate of dgemm",
    "dgemm_mnk_s": "MNK",
    "dgemm_intercept_s": "intercept",
    "dgemm_mnk_residual_s": "residual MNK",
    "dgemm_intercept_residual_s": "residual intercept",
}
TESTS = ("r = 1", "r = 5", "pooled r = 1", "pooled r = 5", "p = 2", "p = 3", "p = 4", "change points", "alarms")


def text(found: pandas.DataFrame, tables: dict[str, pandas.DataFrame]) -> str:
    alone = tables["outside"][tables["outside"]["kind"] == "alone"]
    later = afterwards(tables["outside"]).loc[alone.index].value_counts()
    return f"""## The published data, replayed day by day

Each day of the published monitoring of Dahu is judged with what was known on it (`validation/watch_replay.py`, which
says what was fixed before and what was changed afterwards; 50 s of one core). All tables: `data/watch_replay*.csv`.

{{goals}}

![Alarms on their days, a row a processor]({{picture}})

The repair of 2019-11-27 is found at the first job on all eight processors only where tests are pooled: two of them
scatter too much by day. Small changes of all nodes (2020-04-01, 2020-12-15) take windows or pooling.

*Outliers of the log*: entries with an alarm on any of their nodes, and on all of them. Without the log they enter the
references and hide the next ones.

{outliers(tables["outliers"])}

*Alarms by what they belong to*, as logged, and how many of those outside the level promises:

{counts(tables["counts"])}

The raw tests do not hold their level on these data: days are alike on neighbouring nodes, and have heavy tails. Of
{len(tables["outside"])} alarms of r = 1 outside of all events, {len(alone)} are alone (one processor, one factor, one
job). Of these, {later.get("below 0.01 %", 0)} are changes of power by less than 0.01 % (it is capped near 124.64 W),
and {later.get("same chassis", 0)} came on the same day, in the same direction as one on another node of their four, 1
to 4, 5 to 8 and so on; both were seen afterwards. {later.get("", 0)} are left.

Alarms after correction (`watch.alarms`), and change points in the end, are few, most of them from the power drain of
node 26 with its neighbours, and they miss most of the events of the log.

<!-- cases -->
*Events of the log*, each left out of the log, which otherwise masks it: days and jobs until a tenth of its processors
have alarms, by the factor that was first, and processors with alarms of all it touches. The repair of 2019-11-27 is
found at the first job on all eight processors only where tests are pooled: two of them scatter too much by day.
Small changes of all nodes (2020-04-01, 2020-12-15) take windows or pooling; "–": not found. Alarms count whatever their
cause: in weeks in which 64 processors are tested, those of temperature need not come from the event. MK, NK and other
terms of the models are not published, so there is no p = 8.

{events(found)}

*Memory faults* left no value, only absence; around their dates:

{gaps(tables["gaps"])}

*What explains the alarms of r = 1 outside of all events*:

{outside(tables["outside"])}

*Proposed platform events* (`watch.proposals.day_events`) from the tests of all days:

{platform(tables["platform"])}

*Alarms after correction* (`watch.alarms`), and change points in the end, if any, as logged. They are few, most of
them from the power drain of node 26 with its neighbours, and they miss most of the events above:

{corrected(tables["alarms"])}
<!-- end cases -->
"""


def events(found: pandas.DataFrame) -> str:
    rows = []
    for name, part in found.groupby("event", sort=True):
        rows.append([str(name), *[_cell(part[part["test"].isin((test, f"{test}, in common"))]) for test in TESTS]])
    return markdown(("event", *TESTS), rows)


def _cell(part: pandas.DataFrame) -> str:
    """The factor that found it first: days, jobs, processors."""
    if part.empty or ("tests" in part and (part["tests"] == 0).all()):
        return "no test"
    there = part[part["found"].astype(str) != ""]
    if there.empty:
        return "–"
    best = there.sort_values(["days", "machines"], ascending=[True, False]).iloc[0]
    factor = " & ".join(SHORT[each] for each in str(best["factor"]).split(" & "))
    if str(best["test"]).endswith("in common"):
        return f"+{best['days']:.0f} d, {factor} of all nodes"
    several = "" if " & " in str(best["factor"]) else f" {factor}"
    return f"+{best['days']:.0f} d, {best['jobs']:g} jobs,{several} {best['machines']:.0f}/{best['touched']:.0f}"


def outliers(frame: pandas.DataFrame) -> str:
    have = frame["nodes_with_data"]
    rows = []
    for reading, prefix in (("as logged", ""), ("without the log of outliers", "unedited, ")):
        cells = []
        for test in TESTS[:7]:
            if f"{prefix}{test}" not in frame:
                cells.append("not tried")
                continue
            hit = frame[f"{prefix}{test}"]
            cells.append(f"{int((hit > 0).sum())}, all nodes {int(((hit >= have) & (have > 0)).sum())}")
        rows.append([reading, str(int((have > 0).sum())), *cells])
    return markdown(("log of outliers", "entries", *TESTS[:7]), rows)


def gaps(frame: pandas.DataFrame) -> str:
    rows = [
        [f"{row['date']}, node {row['node']}", f"{float(row['gap_d']):.1f} d", f"{float(row['median_gap_d']):.1f} d"]
        for _, row in frame.iterrows()
    ]
    return markdown(("memory fault", "longest time without a job that ended", "of the median node"), rows)


def counts(frame: pandas.DataFrame) -> str:
    rows = [
        [
            str(row["test"]),
            *(
                f"{int(row[name]):,}"
                for name in ("tests", "alarms", "outlier of the log", "power drop", "event of the log")
            ),
            f"{int(row['outside']):,}",
            f"{float(row['promised']):.1f}",
        ]
        for _, row in frame.iterrows()
    ]
    return markdown(
        ("test", "tests", "alarms", "outlier of the log", "power drop", "event of the log", "outside", "promised"), rows
    )


def outside(frame: pandas.DataFrame) -> str:
    rows = []
    for kind in KINDS:
        part = frame[frame["kind"] == kind]
        if part.empty:
            continue
        several = groups(part.astype({"started_s": float, "size": float, "node": str}))
        largest = several.sort_values("alarms", ascending=False).head(3)
        words = "; ".join(
            f"{row['first']}{'' if row['last'] == row['first'] else ' to ' + row['last'][5:]} nodes {row['nodes']}: "
            f"{', '.join(SHORT[each] for each in row['factors'].split())} {100 * row['median_size']:+.1f} %"
            for _, row in largest.iterrows()
        )
        by_factor = part["factor"].map(SHORT).value_counts()
        rows.append(
            [
                kind,
                str(len(part)),
                str(len(several)),
                ", ".join(f"{name} {count}" for name, count in by_factor.items()),
                words,
            ]
        )
    return markdown(("kind", "alarms", "groups", "by factor", "largest groups"), rows)


def platform(frame: pandas.DataFrame) -> str:
    rows = [
        [f"{row['first']} to {row['last']}", str(row["days"]), str(row["nodes"]), str(row["factors"])]
        for _, row in frame.iterrows()
    ]
    return markdown(("proposed event of single days", "days", "nodes", "what"), rows)


def corrected(frame: pandas.DataFrame) -> str:
    rows = []
    for (by, day, factor), part in frame.groupby(["by", "day", "factor"], sort=True):
        nodes = sorted({str(node) for node in part["node"]}, key=lambda name: (len(name), name))
        sizes = 100 * part["size"].astype(float)
        rows.append(
            [by, str(day), SHORT[factor], "/".join(nodes), str(part["changed"].min()), f"{sizes.median():+.1f} %"]
        )
    return markdown(("by", "day", "factor", "nodes", "changed", "size"), rows)

"""The section of its page about the replay."""

import pandas

from support.goals import markdown
from support.replay_outside import afterwards

TESTS = ("r = 1", "r = 5", "pooled r = 1", "pooled r = 5", "p = 2", "p = 3", "p = 4")


def text(tables: dict[str, pandas.DataFrame]) -> str:
    alone = tables["outside"][tables["outside"]["kind"] == "alone"]
    later = afterwards(tables["outside"]).loc[alone.index].value_counts()
    return f"""## The published data, replayed day by day

Each day of the published monitoring of Dahu is judged with what was known on it (`validation/watch_replay.py`, which
says what was fixed before and what was changed afterwards).

{{goals}}

![Alarms on their days, a row a processor]({{picture}})

The repair of 2019-11-27 is found on all eight processors only where tests are pooled: two of them scatter too much.

*Outliers of the log*: entries with an alarm on any of their nodes, and on all. Without the log they hide the next ones.

{outliers(tables["outliers"])}

*Alarms by what they belong to*, as logged, and how many of those outside the level promises:

{counts(tables["counts"])}

{{cases}}

The raw tests do not hold their level on these data: days are alike on neighbouring nodes, and have heavy tails. Of
{len(tables["outside"])} alarms of r = 1 outside of all events, {len(alone)} are alone (one processor, factor and job),
of which {later.get("below 0.01 %", 0)} change the power, which is capped near 124.64 W, by less than 0.01 %, and
{later.get("same chassis", 0)} came with one in the same direction on another node of their four; both were seen
afterwards. {later.get("", 0)} are left.

Alarms after correction (`watch.alarms`), and change points in the end, are few, most of them from the power drain of
node 26 with its neighbours, and they miss most of the events of the log.
"""


def outliers(frame: pandas.DataFrame) -> str:
    have = frame["nodes_with_data"]
    rows = []
    for reading, prefix in (("as logged", ""), ("without the log of outliers", "unedited, ")):
        cells = []
        for test in TESTS:
            if f"{prefix}{test}" not in frame:
                cells.append("not tried")
                continue
            hit = frame[f"{prefix}{test}"]
            cells.append(f"{int((hit > 0).sum())}, all nodes {int(((hit >= have) & (have > 0)).sum())}")
        rows.append([reading, str(int((have > 0).sum())), *cells])
    return markdown(("log of outliers", "entries", *TESTS), rows)


def counts(frame: pandas.DataFrame) -> str:
    names = ("tests", "alarms", "outlier of the log", "power drop", "event of the log", "outside")
    rows = [
        [str(row["test"]), *(f"{int(row[name]):,}" for name in names), f"{float(row['promised']):.1f}"]
        for _, row in frame.iterrows()
    ]
    return markdown(("test", *names, "promised"), rows)

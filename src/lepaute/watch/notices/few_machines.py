"""Groups of so few machines that an alarm takes many jobs: how many, for a change that anybody would want to know."""

from typing import TYPE_CHECKING

import numpy as np

from lepaute.kit.text import counted
from lepaute.stats.change_evidence import FEWEST_PEERS
from lepaute.watch.alarms.polarity import worse_direction
from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.changelog import Changelog
from lepaute.watch.notices.notice import Notice
from lepaute.watch.values import DAY_S, MACHINE

if TYPE_CHECKING:
    import pandas as pd

#: The relative change, and the jobs that are tried.
CHANGE, MOST_JOBS = 0.05, 60
#: Of the latest values, whose median is the level.
LATEST = 10
FEW = "few machines"


def few_machines(values: "pd.DataFrame", changelog: Changelog) -> tuple[Notice, ...]:
    """A notice for each cluster with a factor of fewer than FEWEST_PEERS machines: after how many jobs an alarm comes.

    values : as check_values returns it. The number is that of the alarm procedure itself, for a machine of each factor
    that is worse by CHANGE from now on and does not scatter: about as many.
    """
    done = values[values["state"] == "done"]
    found = []
    for cluster, rows in done.groupby("cluster", sort=True):
        machines = rows.groupby("factor")[["node", "cpu"]].apply(lambda part: len(part.drop_duplicates()))
        few = machines[machines < FEWEST_PEERS]
        if few.empty:
            continue
        jobs = max(_jobs_to_alarm(rows[rows["factor"] == factor], changelog) for factor in few.index)
        count = counted(int(few.max()), "machine")
        more = f"more than {MOST_JOBS} jobs" if jobs > MOST_JOBS else f"about {counted(jobs, 'job')}"
        text = (
            f"{count}, fewer than {FEWEST_PEERS}: a change of {100 * CHANGE:.0f} % is confirmed after {more} of each; "
            "until then it is a suspicious test (--strict)"
        )
        found.append(Notice(FEW, str(cluster), "", -1, "", float(rows["started_s"].max()), np.nan, np.nan, text))
    return tuple(found)


def _jobs_to_alarm(rows: "pd.DataFrame", changelog: Changelog) -> int:
    """Of one factor: days of one job each until the first alarm; MOST_JOBS + 1 without one."""
    import pandas as pd

    direction = worse_direction(str(rows["factor"].iloc[0])) or -1
    ordered = rows.sort_values("started_s", kind="stable").groupby([*MACHINE, "stratum"], sort=False)
    last = ordered.tail(1).set_index([*MACHINE, "stratum"])
    level = ordered["value"].apply(lambda each: each.tail(LATEST).median())
    day_s = float(rows["started_s"].max())
    after = [
        last.assign(value=level * (1 + direction * CHANGE), started_s=day_s + DAY_S * job, job=f"\0{job}", archive="")
        for job in range(1, MOST_JOBS + 1)
    ]
    alarms = judge_days(pd.concat([rows, *(each.reset_index() for each in after)]), changelog).alarms
    new = alarms[alarms["day"] > str(np.datetime64(int(day_s // DAY_S), "D"))]
    if new.empty:
        return MOST_JOBS + 1
    return int((np.datetime64(str(new["day"].min())) - np.datetime64(int(day_s // DAY_S), "D")).astype(int))

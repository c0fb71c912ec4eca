"""Which alarms are of consequence now: regressions that were confirmed and still stand.

Alarms of one machine, factor and stratum since the last event that touches it belong together: the level before the
first of them is what it should be; the level since that event is, where the alarm knew an older one, because the event
was logged later. They stand until an event begins a new reference: someone has explained the change, or repaired it.
The date of a change is an estimate, so an event up to EXPLAINS_S before it explains it, too. Or they stand until the
machine is back: the latest RETURNED values all lie nearer to the level that it should have than to what the alarm that
is nearest to it reported. They are a regression while the level now is on the worse side, or, of a factor without a
better side, on either.
"""

from typing import TYPE_CHECKING

import numpy as np

from lepaute.watch.alarms.polarity import is_worse
from lepaute.watch.alarms.streams import STREAM
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.values import DAY_S, check_values

if TYPE_CHECKING:
    import pandas as pd

#: So many latest values must be back at the old level.
RETURNED = 5
#: So many values between an event and a change tell the level.
FEWEST_VALUES = 3
EXPLAINS_S = 3 * DAY_S


def standing(alarms: "pd.DataFrame", changelog: Changelog, values: "pd.DataFrame") -> "pd.DataFrame":
    """The latest alarm of each machine, factor and stratum whose regression still stands, a row each.

    alarms : as watch.alarms.procedure.judge_days gives them, all of them; values : the table of factor values
    Columns: those of alarms, and now (median of the latest values, in the unit of the factor), now_size (relative
    to the level it should have).
    """
    import pandas as pd

    rows = []
    if len(alarms):
        table = check_values(values)
        table = table[table["state"] == "done"]
        nodes = list(table[["cluster", "node"]].drop_duplicates().itertuples(index=False, name=None))
        resets = changelog.resets_s(nodes)
        outlying = changelog.outlying_jobs(nodes)
        by_stream = dict(iter(table.groupby(STREAM, sort=False)))
        for key, each in alarms.sort_values(["day", *STREAM]).groupby(STREAM, sort=False):
            cluster, node, _, factor, stratum = map(str, key)
            if node == ALL:
                own = table[(table[["cluster", "factor", "stratum"]] == [cluster, factor, stratum]).all(axis=1)]
                shared = [set(resets[cluster, name]) for name in own["node"].unique()]
                known = set.intersection(*shared) if shared else set()
                days = own.groupby(np.floor(own["started_s"] / DAY_S))["value"].median()
                series, times = days.to_numpy(np.float64), days.index.to_numpy(np.float64) * DAY_S
            else:
                own = by_stream.get(key, table.iloc[:0])
                known = set(resets.get((cluster, node), ()))
                logged = [(cluster, node, job) in outlying for job in own["job"]]
                kept = own[~np.array(logged, dtype=bool)].sort_values(["started_s", "job"])
                series, times = kept["value"].to_numpy(np.float64), kept["started_s"].to_numpy(np.float64)
            last_event = max(known, default=-np.inf)
            current = _rebased(each[each["changed_s"] > last_event + EXPLAINS_S], times, series, last_event)
            row = _regression(current, series, factor)
            if row is not None:
                rows.append(row)
    columns = [*alarms.columns, "now", "now_size"]
    return pd.DataFrame(rows, columns=columns).reset_index(drop=True)


def _rebased(current: "pd.DataFrame", times: np.ndarray, series: np.ndarray, event_s: float) -> "pd.DataFrame":
    """The alarms with the level before the first of them as it was from the event on, where they knew an older one."""
    if current.empty or not current["since_s"].iloc[0] < event_s:
        return current
    since = series[(times >= event_s) & (times < np.floor(current["changed_s"].iloc[0] / DAY_S) * DAY_S)]
    if len(since) < FEWEST_VALUES or not current["before"].iloc[0]:
        return current
    ratio = float(np.median(since)) / current["before"].iloc[0]
    return current.assign(before=current["before"] * ratio)


def _regression(current: "pd.DataFrame", series: np.ndarray, factor: str) -> dict[str, object] | None:
    """The latest of the alarms of one stream since the last event, if they are a regression that stands."""
    if current.empty or not len(series):
        return None
    should_be = float(current["before"].iloc[0])
    latest = series[-RETURNED:]
    now = float(np.median(latest))
    reported = (current["before"] * (1 + current["size"])).to_numpy()
    off = np.abs(reported - should_be)
    # an alarm of the return itself reports the old level
    least = float(off[off > 0.5 * off.max()].min(initial=off.max()))
    if len(latest) == RETURNED and (np.abs(latest - should_be) < least / 2).all():
        return None
    if not is_worse(factor, 1 if now > should_be else -1):
        return None
    row = {str(name): value for name, value in current.iloc[-1].items()}
    return {**row, "now": now, "now_size": now / should_be - 1 if should_be else np.nan}

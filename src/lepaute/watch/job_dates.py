"""Dates that cannot be right: in the future, or of a job that began, by its clock, before one with a smaller number."""

import datetime as dt
import time
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import InputError
from lepaute.watch.values import DAY_S

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Booleans = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]

_LAST_SECOND = 253_402_300_799  # of the year 9999


def refuse_future(started_s: float, job: str, name: str, remedy: str) -> None:
    """Raises InputError where a job of the file `name` starts more than a day after now.

    A day, because clocks differ and a date without a time zone may be of one that is ahead of UTC. Alarms judge a day
    once and in order, so a single date far ahead would leave all days before it unjudged.
    """
    now_s = time.time()
    if started_s > now_s + DAY_S:
        date, now = (
            f"{dt.datetime.fromtimestamp(min(int(each), _LAST_SECOND), dt.UTC):%Y-%m-%d %H:%M}"
            for each in (started_s, now_s)
        )
        raise InputError(
            f"{name}: job {job[:40]} starts in the future, at {date} UTC, and by this machine's clock it is {now} UTC; "
            f"{remedy}, or set the clock of this machine"
        )


def backward_jobs(table: "pd.DataFrame") -> "Booleans":
    """Which rows of a table of factor values (`check_values`) have a date that their number contradicts; shape (rows,).

    Schedulers number jobs in the order of their submission, and on one node they run in about that order. As many jobs
    of a node as possible are taken for right: the longest series in which dates rise with numbers. The others are at
    fault, if they are out of order by more than a day, and so are those that they contradict where these are not more
    than twice as many: a clock that was set back by a month leaves two months of which nobody knows which is right.
    Jobs without a number, such as archives, have no order.
    """
    faulty = np.zeros(len(table), np.bool_)
    numbered = table["job"].str.fullmatch(r"[0-9]{1,18}").to_numpy(np.bool_)
    jobs = table[numbered].drop_duplicates(["cluster", "node", "job"])
    wrong: set[tuple[str, str, str]] = set()
    for (cluster, node), part in jobs.groupby(["cluster", "node"], sort=False):
        number = part["job"].astype(np.int64).to_numpy()
        order = np.argsort(number, kind="stable")
        started = part["started_s"].to_numpy(np.float64)[order]
        if (started[1:] >= np.maximum.accumulate(started)[:-1] - DAY_S).all():
            continue
        names = part["job"].to_numpy()[order]
        wrong |= {(str(cluster), str(node), str(names[each])) for each in _out_of_order(started)}
    if wrong:
        keys = zip(table["cluster"], table["node"], table["job"], strict=True)
        faulty = np.array([key in wrong for key in keys], np.bool_)
    return faulty


def _out_of_order(started: "Floats") -> list[int]:
    """Positions off the longest non-decreasing subsequence by more than a day, and those in doubt for them."""
    tails: list[float] = []
    ends: list[int] = []
    previous = np.full(len(started), -1, np.int64)
    for position, value in enumerate(started):
        place = bisect_right(tails, float(value))
        previous[position] = ends[place - 1] if place else -1
        if place == len(tails):
            tails.append(float(value))
            ends.append(position)
        else:
            tails[place], ends[place] = float(value), position
    kept = np.zeros(len(started), np.bool_)
    position = ends[-1]
    while position >= 0:
        kept[position] = True
        position = int(previous[position])
    wrong = []
    doubtful = np.zeros(len(started), np.bool_)
    places = np.arange(len(started))
    for position in np.flatnonzero(~kept).tolist():
        late = (places < position) & (started > started[position] + DAY_S)
        early = (places > position) & (started < started[position] - DAY_S)
        contradicted = kept & (late | early)
        if contradicted.any():
            wrong.append(position)
            doubtful |= contradicted
    if int(doubtful.sum()) <= 2 * len(wrong):
        wrong += np.flatnonzero(doubtful).tolist()
    return wrong

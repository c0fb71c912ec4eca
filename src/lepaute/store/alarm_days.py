"""Days that the alarm procedure judged, and their alarms: recorded together, in order, and never changed."""

from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.store.backend import Backend
from lepaute.store.rows import rows_of
from lepaute.store.tables import ALARM_DAYS, ALARMS

if TYPE_CHECKING:
    import pandas


def add_judged_days(backend: Backend, days: "pandas.DataFrame", alarms: "pandas.DataFrame", after: str) -> bool:
    """Records both in one change if `after` is still the last day that was judged; returns whether it is.

    Raises InputError for days that are not later than `after`, and for alarms of other days.
    """
    new_days, new_alarms = rows_of(ALARM_DAYS, days), rows_of(ALARMS, alarms)
    names = set(new_days["day"].to_pylist())
    if names and min(names) <= after:
        raise InputError(f"alarm_days: {min(names)} is not after {after}, the last day that was judged")
    if strangers := set(new_alarms["day"].to_pylist()) - names:
        raise InputError(f"alarms: {min(strangers)} is none of the days that are recorded")
    with backend.writing() as writer:
        last = writer.read("select coalesce(max(day), '') as day from alarm_days")["day"][0].as_py() or ""
        if last != after:
            return False
        writer.append(ALARM_DAYS, new_days)
        writer.append(ALARMS, new_alarms)
    return True

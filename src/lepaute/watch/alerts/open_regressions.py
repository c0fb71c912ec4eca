"""The regressions that are open by what a store has recorded; nothing is tested or judged here."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.watch.alarms.standing import standing
from lepaute.watch.changelog_edits import logged_changelog
from lepaute.watch.report.summary import Regression, regressions_of

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store


@dataclass(frozen=True, slots=True)
class OpenRegressions:
    """rows : as watch.alarms.standing gives them; reports : the same for people; values : the factor values read.

    judged : the last day that `lepaute watch test` judged, "" where there is none
    """

    rows: "pd.DataFrame"
    reports: tuple[Regression, ...]
    values: "pd.DataFrame"
    judged: str


def judged_regressions(store: "Store", nodes: Collection[str] | None = None) -> OpenRegressions:
    """As `open_regressions`; raises InputError where nothing was judged yet, in which nothing can be wrong."""
    found = open_regressions(store, nodes)
    if not found.judged:
        if store.factors().empty:
            raise InputError("the store has no factor values; `lepaute watch ingest` adds some")
        raise InputError("nothing in the store has been tested; `lepaute watch test` does it")
    return found


def open_regressions(store: "Store", nodes: Collection[str] | None = None) -> OpenRegressions:
    """Of all nodes, or of these alone, without what all machines of a cluster have in common."""
    alarms, values = store.alarms(nodes=nodes), store.values(nodes=nodes)
    rows = standing(alarms, logged_changelog(store), values)
    days = store.alarm_days()["day"]
    return OpenRegressions(rows, regressions_of(rows), values, str(days.iloc[-1]) if len(days) else "")

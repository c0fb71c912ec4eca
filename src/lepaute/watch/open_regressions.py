"""The regressions that are open: every command asks here, so that all of them name the same machines, dates and sizes.

They are a function of values, changelog and settings; what was tested, proposed or recorded before does not matter.
"""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import inf

import numpy as np
import pandas as pd

from lepaute.errors import InputError
from lepaute.stats.rank_cusum import null_tables
from lepaute.watch.alarms.procedure import AlarmSettings, Judged, judge_days, judged_once, known_days, settings_of
from lepaute.watch.alarms.standing import EXPLAINS_S, standing
from lepaute.watch.alarms.steps import Row, shared_steps, steps_of
from lepaute.watch.changelog import ALL, Changelog, Event, NodeSet
from lepaute.watch.changelog_edits import logged_changelog
from lepaute.watch.kept import keep_object, kept_object, kept_tables
from lepaute.watch.notices.notice import Notice, least_seen
from lepaute.watch.proposals.change_points import ChangePoint, find_change_points
from lepaute.watch.report.summary import Regression, regressions_of
from lepaute.watch.store import Store
from lepaute.watch.values import Node, check_values, day_of, is_of, nodes_of

#: What the search for changes simulated of series without any, the latest of it, is kept for the next one.
KEPT_TABLES, _TABLES = 256, f"null tables, NumPy {np.__version__}"


@dataclass(frozen=True, slots=True)
class OpenRegressions:
    """rows : as watch.alarms.standing gives them; reports : the same for people; values : the factor values judged.

    judged : all days and alarms; changelog : that they were judged with
    steps  : of all alarms, whatever nodes are asked about (`watch.alarms.steps`)
    """

    rows: "pd.DataFrame"
    reports: tuple[Regression, ...]
    values: "pd.DataFrame"
    judged: Judged
    changelog: Changelog
    steps: tuple[Row, ...] = ()

    def of_nodes(self, nodes: Collection[Node]) -> "OpenRegressions":
        """Regressions of these (cluster, node): their own, and those of all nodes of their clusters."""
        part = partial(rows_of, nodes=nodes)
        theirs = {name: part(getattr(self.judged, name)) for name in ("alarms", "looks", "unconfirmed")}
        rows, judged = part(self.rows), replace(self.judged, **theirs)
        reports = regressions_of(rows, self.changelog.inventory, nodes_of(self.values))
        return OpenRegressions(rows, reports, part(self.values), judged, self.changelog, self.steps)

    def confirmed(self) -> "pd.DataFrame":
        """`rows`, and the steps for the better since the last event of their machines."""
        resets = self.changelog.resets_s(nodes_of(self.values))
        of_all = set.intersection(*map(set, resets.values()))
        after_s = {node: max(dates, default=-inf) for node, dates in resets.items()}
        after_s |= {(cluster, ALL): max(of_all, default=-inf) for cluster, _ in resets}
        better = [
            row
            for row in self.steps
            if not row["worse"] and row["changed_s"] > after_s[row["cluster"], row["node"]] + EXPLAINS_S
        ]
        return pd.concat([self.rows, pd.DataFrame(better, columns=[*self.judged.alarms.columns, "gradual_s"])])

    def unconfirmed(self) -> "pd.DataFrame":
        """`Judged.unconfirmed` of the nodes without an open regression."""
        rows = self.judged.unconfirmed
        return rows[~is_of(rows, set(zip(self.rows["cluster"], self.rows["node"], strict=True)))]

    def unseen(self) -> tuple[Notice, ...]:
        """The least change that would be named, of each cluster."""
        return least_seen(self, set(self.values["cluster"]))

    def shared_changes(self) -> dict[str, Changelog]:
        """By factor, the changelog with the steps that a part of a fleet shares, as if they were logged."""
        logs: dict[str, Changelog] = {}
        for (cluster, factor, _, changed_s), rows in shared_steps(self.steps, self.values).items():
            nodes = NodeSet(cluster, "/".join(dict.fromkeys(row["node"] for row in rows)))
            event = Event(day_of(changed_s), nodes, "platform", f"{len(rows)} machines changed together")
            log = logs.get(factor, self.changelog)
            logs[factor] = replace(log, events=(*log.events, event))
        return logs

    def change_points(self) -> tuple[ChangePoint, ...]:
        """Change points of these values, however small, kept for the next who asks; `propose` takes them."""
        names, logs = [field.name for field in fields(ChangePoint)], self.shared_changes()

        def found() -> "list[pd.DataFrame]":
            null_tables.update(kept_object(_TABLES) or {})
            known = set(null_tables)
            points = find_change_points(self.values, self.changelog, least_change=0.0, of_factor=logs)
            if null_tables.keys() - known:
                keep_object(_TABLES, dict(list(null_tables.items())[-KEPT_TABLES:]))
            return [pd.DataFrame([asdict(point) for point in points], columns=names)]

        (table,) = kept_tables(["points"], self.values, (self.changelog, logs), found)
        return tuple(ChangePoint(**{str(name): cell for name, cell in row.items()}) for row in table.to_dict("records"))

    @property
    def last_day(self) -> str:
        """ISO date of the last day on which something was measured, "" without any."""
        return str(self.judged.days["day"].iloc[-1]) if len(self.judged.days) else ""


def rows_of(table: "pd.DataFrame", nodes: Collection[Node]) -> "pd.DataFrame":
    """The rows of these (cluster, node), or of all of a cluster: names may be those of another cluster, too."""
    mine = is_of(table, {*nodes, *((cluster, ALL) for cluster, _ in nodes)})
    return table if mine.all() else table[mine].reset_index(drop=True)


def open_regressions(
    store: "Store",
    *,
    settings: AlarmSettings | None = None,
    progress: Callable[[float], None] | None = None,
    values: "pd.DataFrame | None" = None,
) -> OpenRegressions:
    """Open regressions of all nodes.

    values : of the jobs that count, where they are not all of the store (`packed_values`)
    settings : of the alarms; those of the store by default; progress : gets the share of the work that is behind
    Raises InputError if the store has no values.
    """
    values = known_days(packed_values(store) if values is None else values)
    if values.empty:
        raise InputError("the store has no factor values; `lepaute watch ingest` adds some")
    changelog, settings = logged_changelog(store), settings or settings_of(store.alarm_days())
    return _of(values, changelog, judged_once(values, changelog, settings, progress), kept=True)


def packed_values(store: "Store") -> "pd.DataFrame":
    """All values of the store, as `check_values` gives them, in little memory."""
    return check_values(store.values(packed=True))


def regressions_in(values: "pd.DataFrame", changelog: Changelog, settings: AlarmSettings) -> OpenRegressions:
    return _of(values, changelog, judge_days(values, changelog, settings))


def _of(values: "pd.DataFrame", changelog: Changelog, judged: Judged, *, kept: bool = False) -> OpenRegressions:
    """kept : the steps are kept for the next who asks"""

    def found() -> "list[pd.DataFrame]":
        return [pd.DataFrame(steps_of(judged.alarms, changelog, check_values(values)))]

    alarms = judged.alarms.drop(columns="judged_s").to_dict("records")
    (table,) = kept_tables(["steps"], values, (changelog, alarms), found) if kept and alarms else found()
    steps = tuple({str(name): value for name, value in row.items()} for row in table.to_dict("records"))
    rows = standing(judged.alarms, changelog, values, steps)
    reports = regressions_of(rows, changelog.inventory, nodes_of(values))
    return OpenRegressions(rows, reports, values, judged, changelog, steps)

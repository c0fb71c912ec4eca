"""What no change shows: a machine that was bad from the start, dates that cannot be right.

And the least change that would be named, and changes that the data show in the end, though no alarm has confirmed them.
"""

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lepaute.kit.text import counted, signed_percent
from lepaute.stats.group_effects import MIN_PEERS
from lepaute.stats.multiple_tests import outlier_p_values
from lepaute.stats.robust import medians_of
from lepaute.watch.alarms.procedure import AlarmSettings, Judged, judge_days, settings_of
from lepaute.watch.alarms.sizes import is_worse, worse_direction
from lepaute.watch.alarms.worth_a_look import look_text
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.kept import kept_tables
from lepaute.watch.proposals.change_points import LEVEL, LeastChange, least_change_of
from lepaute.watch.proposals.platform_events import propose, standing_events
from lepaute.watch.proposals.proposed_event import DAYS
from lepaute.watch.proposals.watched_series import day_effect, observed
from lepaute.watch.store.rows import row_keys
from lepaute.watch.values import (
    DAY_S,
    MACHINE,
    NODE,
    Node,
    backward_jobs,
    check_values,
    day_numbers,
    day_of,
    in_turn,
    numbered_nodes,
    parts_of,
)

if TYPE_CHECKING:
    from lepaute.watch.open_regressions import OpenRegressions


#: Kinds; of an unconfirmed change the text says itself of which nodes it is.
UNLIKE_PEERS, DATES, LEAST, UNCONFIRMED, SMALL = (
    *("unlike its peers", "dates", "least change", "unconfirmed change", "worth a look"),
)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to look at; not an event, since nothing changed, or nobody can say when.

    kind     : one of the kinds above
    cpu      : -1 if it is about the node; factor: empty if it is about none
    since_s  : the first job that it is about, or the last one before
    size     : relative to the median of its peers; NaN for other kinds
    nodes    : that an unconfirmed change is of, where they are several
    p_value  : corrected for the number of machines and factors; NaN for dates, which are no test
    """

    kind: str
    cluster: str
    node: str
    cpu: int
    factor: str
    since_s: float
    size: float
    p_value: float
    text: str
    nodes: tuple[str, ...] = ()

    @property
    def is_worse(self) -> bool:
        """Whether it is of a machine that is unlike its peers, or changed, for the worse."""
        return self.kind in (UNLIKE_PEERS, UNCONFIRMED) and is_worse(self.factor, 1 if self.size > 0 else -1)

    def names(self, node: str) -> bool:
        """Whether it is about the node."""
        return node in (self.nodes or (self.node,))

    @property
    def is_unknown(self) -> bool:
        """Whether it says, of a cluster, that silence is no news."""
        return not self.factor and self.size > _LARGEST_UNSEEN

    @property
    def reason(self) -> tuple[str, str]:
        """Of what is unknown: why, and what would be seen all the same."""
        why, _, seen = self.text.partition("; ")
        return why, seen

    @property
    def caveat(self) -> str:
        """Its text, after what it is of: the beginning alone is shown."""
        prefixes = {UNLIKE_PEERS: "unlike its peers, ", UNCONFIRMED: "unconfirmed change of ", DATES: "wrong dates of "}
        return f"{prefixes.get(self.kind, '')}{self}"

    def __str__(self) -> str:
        name = " ".join(each for each in (self.cluster, self.node) if each)
        return self.text if self.kind == UNCONFIRMED or not name else f"{name}: {self.text}"


def worse_first(noticed: Iterable[Notice]) -> tuple[Notice, ...]:
    """Notices for the worse: of machines unlike their peers, then of unconfirmed changes, the largest first."""
    return tuple(sorted((n for n in noticed if n.is_worse), key=lambda n: (n.kind != UNLIKE_PEERS, -abs(n.size))))


def notices(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    *,
    least_change: LeastChange | None = None,
    level: float = LEVEL,
) -> tuple[Notice, ...]:
    """Notices besides events; `level` is the chance of any of each kind where nothing is wrong.

    values, changelog, least_change : as for `propose`
    In order of kind, cluster, node, processor and factor. Raises InputError as that does.
    """
    table = check_values(values)
    every = [
        *_unlike_peers(table, changelog or Changelog(), least_change, level),
        *_backward(table[backward_jobs(table)]),
    ]
    return tuple(sorted(every, key=lambda each: (each.kind, each.cluster, each.node, each.cpu, each.factor)))


def _backward(backward: "pd.DataFrame") -> Iterator[Notice]:
    for (cluster, node), jobs in backward.drop_duplicates([*NODE, "job"]).groupby(NODE, sort=True):
        first = jobs.sort_values("started_s").iloc[0]
        text = (
            f"the dates of {counted(len(jobs), 'job')} run backwards, such as {day_of(first['started_s'])} of job "
            f"{first['job']}: was a clock set? No change is looked for in them"
        )
        yield Notice(DATES, str(cluster), str(node), -1, "", float(first["started_s"]), nan, nan, text)


#: Fewer jobs are no level, but in a first sweep.
MIN_JOBS = 3


def _unlike_peers(
    table: "pd.DataFrame", changelog: Changelog, least_change: LeastChange | None, level: float
) -> Iterator[Notice]:
    """The machines whose level since their last event is outside the spread of their peers (`outlier_p_values`).

    Processors of the same number in their nodes are compared, in one cluster, stratum and model of the inventory, each
    by its median since its last event and without the effects of the days. `level` is the chance of any where levels
    are normal, over all factors and groups. Machines of two models that nobody told apart are rightly unlike.
    """
    groups = list(_groups(table, changelog))
    for factor, rows in groups:
        size = rows["level"].to_numpy(np.float64)
        p = outlier_p_values(size) * len(groups)
        least = least_change_of(factor, least_change)
        for at in np.flatnonzero(p <= level):
            relative = float((1 + size[at]) / (1 + np.median(np.delete(size, at))) - 1)
            if abs(relative) < least:
                continue
            row = rows.iloc[at]
            cpu, since_s = int(row["cpu"]), float(row["since_s"])
            text = (
                f"{f'cpu {cpu}, ' if cpu >= 0 else ''}{factor} {signed_percent(relative)} from the median of its "
                f"{len(size) - 1} peers over {counted(int(row['jobs']), 'job')} since {day_of(since_s)}"
            )
            yield Notice(UNLIKE_PEERS, row["cluster"], row["node"], cpu, factor, since_s, relative, float(p[at]), text)


def _groups(table: "pd.DataFrame", changelog: Changelog) -> "Iterator[tuple[str, pd.DataFrame]]":
    """Of each factor a row a machine: level (relative to the median of the group), jobs, since_s."""
    for factor, rows in observed(table, changelog):
        number, nodes = numbered_nodes(rows)
        models = pd.Categorical([changelog.inventory.group_of("model", *node) or "" for node in nodes])
        rows["model"] = models.take(number)
        for _, part in parts_of(rows, ["cluster", "model", "stratum", "cpu"]):
            middle = float(part[factor].median())
            if middle == 0:
                continue
            relative = part[factor].to_numpy(np.float64) / middle - 1.0
            series, day = part["series"].to_numpy(np.int64), day_numbers(part["started_s"])
            number = in_turn(series)  # in order of machine and time
            effect = day_effect(day, series, relative - medians_of(number, relative)[number])
            residuals = relative - (effect.at(day) if effect is not None else 0.0)
            first = np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))
            levels = part[[*MACHINE, "series"]].iloc[first].reset_index(drop=True)
            levels["level"], levels["jobs"] = medians_of(number, residuals), np.bincount(number)
            levels["since_s"] = part["started_s"].to_numpy()[first]
            # of each machine the latest stretch
            levels = levels.sort_values("since_s", kind="stable").drop_duplicates(["node", "cpu"], keep="last")
            lasting = levels[levels["jobs"] >= MIN_JOBS]
            levels = lasting if 2 * len(lasting) >= len(levels) else levels
            if len(levels) >= MIN_PEERS:
                yield factor, levels.sort_values("node", kind="stable").reset_index(drop=True)


#: Changes of a machine that are tried, relative; days that they last at most, or half of the days that there are;
#: machines that are changed and machines that are judged, at most; of the latest days so many, and of more than
#: _EVERY_DAY whole weeks, so that a day more is no other simulation.
SIZES, LASTING_DAYS, MAX_CHANGED, MAX_MACHINES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.4), 10, 4, 32
_MAX_DAYS, _EVERY_DAY, _WEEK = 60, 28, 7
#: Where a change of so much might not be named, no alarm is no news: the machines are unknown, not fine.
_LARGEST_UNSEEN = 0.1


def least_seen(regressions: "OpenRegressions", clusters: Collection[str]) -> tuple[Notice, ...]:
    """For each of these clusters, the smallest change that would be named, from SIZES, and of machines always bad.

    After LASTING_DAYS days, of machines of which nothing is known yet. By simulation: up to MAX_CHANGED machines, one
    of eight at once at most, are changed and judged with the others; all are to have an alarm, or be unconfirmed.
    regressions : of all nodes
    """
    lines = []
    values, key = regressions.values, row_keys(regressions.values, MACHINE)
    done = (values["state"] == "done").to_numpy(np.bool_)
    for cluster in sorted(clusters):
        places = np.flatnonzero((values["cluster"] == cluster).to_numpy(np.bool_) & done)
        rows = values.take(places[in_turn(key[places]) < MAX_MACHINES])
        if rows.empty:
            continue
        machines = rows[MACHINE].drop_duplicates().set_index(MACHINE).index
        day = day_numbers(rows["started_s"])
        days = np.unique(day)
        jobs = rows[MACHINE].assign(day=day).drop_duplicates().groupby(MACHINE, observed=True).size().median()
        rarer = len(days) / jobs  # machines may take turns
        days = days[: len(days) - (len(days) % _WEEK if len(days) > _EVERY_DAY else 0)][-int(_MAX_DAYS * rarer) :]
        lasting = max(1, min(LASTING_DAYS, int(jobs) // 2))
        since_s = float(days[-int(np.ceil(lasting * rarer))] * DAY_S)
        rows, late = rows[(day >= days[0]) & (day <= days[-1])], rows["started_s"] >= since_s
        often = rows[MACHINE].assign(late=late).groupby(MACHINE, observed=True)["late"].agg(["size", "sum"])
        calm = often.index[(often >= often.median()).all(axis=1)].difference(
            _changed_since(regressions.judged, since_s)
        )
        if calm.empty:
            continue
        changed, at_once = calm[:: max(1, len(calm) // MAX_CHANGED)][:MAX_CHANGED], max(1, len(machines) // 8)
        trials = [changed[begin : begin + at_once] for begin in range(0, len(changed), at_once)]
        settings = settings_of(regressions.judged.days)
        of = regressions.changelog, settings, since_s, [trial.tolist() for trial in trials]
        tried = partial(_least, rows, trials, since_s, regressions.changelog, settings)
        size, level = kept_tables(["least"], rows, of, tried)[0]["least"].tolist()
        what = f"a change of one machine of {100 * min(size, SIZES[-1]):.0f} %"
        what = f"{what} or more" if size < inf else f"not even {what}"
        if size > _LARGEST_UNSEEN:
            why = "values scatter too much to tell"
            if jobs < 2 * LASTING_DAYS:
                why = f"{counted(round(jobs), 'day')} of jobs are too few to tell"
            what = f"{why}; {f'only {what}' if size < inf else what}"
        text = (
            f"{what} would be named within {counted(lasting, 'day')} of jobs, one bad from the start "
            f"{f'from {100 * level:.0f} % on' if level < inf else 'not at all'}, by simulation on these machines"
        )
        lines.append(Notice(LEAST, str(cluster), "", -1, "", since_s, size, nan, text))
    return tuple(lines)


def _changed_since(judged: Judged, since_s: float) -> "pd.Index[Any]":
    """The machines of alarms about changes since then, and of unconfirmed changes."""
    alarms = judged.alarms[judged.alarms["changed_s"] >= since_s - DAY_S]
    return pd.concat([alarms, judged.unconfirmed]).set_index(MACHINE).index


def _least(
    rows: "pd.DataFrame", trials: "list[pd.Index[Any]]", since_s: float, changelog: Changelog, settings: AlarmSettings
) -> "list[pd.DataFrame]":
    """The least change that is named, and the least level, inf if none is; trials : machines changed at once"""
    machines, late = rows.set_index(MACHINE).index, (rows["started_s"] >= since_s).to_numpy()
    directions = rows["factor"].map(lambda factor: worse_direction(str(factor)) or -1).to_numpy(np.float64)

    def is_named(size: float) -> bool:
        for trial in trials:
            factor = np.where(late & machines.isin(trial), 1 + directions * size, 1.0)
            judged = judge_days(rows.assign(value=rows["value"] * factor), changelog, settings)
            if not trial.isin(_changed_since(judged, since_s)).all():
                return False
        return True

    size = (*SIZES, inf)[bisect(SIZES, False, key=is_named)]
    return [pd.DataFrame({"least": [size, _least_level(rows, changelog)]})]


def _least_level(rows: "pd.DataFrame", changelog: Changelog) -> float:
    """The least of SIZES by which a machine, else in the middle, is unlike its peers in each group; inf if never."""
    groups = list(_groups(rows, changelog))

    def is_unlike(size: float) -> bool:
        for factor, machines in groups:
            levels = machines["level"].to_numpy(np.float64).copy()
            middle = int(np.abs(levels - np.median(levels)).argmin())
            levels[middle] = (1 + levels[middle]) * (1 + (worse_direction(factor) or -1) * size) - 1
            if outlier_p_values(levels)[middle] * len(groups) > LEVEL:
                return False
        return bool(groups)

    return next((size for size in SIZES if is_unlike(size)), inf)


def worth_a_look(found: "OpenRegressions") -> tuple[Notice, ...]:
    """The lines of the second tier that stand, of what no open regression covers; shown under their own LABEL."""
    lines = []
    for row in found.judged.looks.to_dict("records"):
        open_rows = found.rows[found.rows["node"].isin([row["node"], ALL]) & (found.rows["cluster"] == row["cluster"])]
        if row["stands"] and not (open_rows["factor"] == row["factor"]).any():
            machine = row["cluster"], row["node"], int(row["cpu"]), row["factor"]
            lines.append(Notice(SMALL, *machine, row["changed_s"], row["size"], nan, look_text(row)))
    return tuple(lines)


def unconfirmed_changes(found: "OpenRegressions", nodes: Collection[Node] | None = None) -> tuple[Notice, ...]:
    """A notice for each proposal of a lasting change, better or worse, that no alarm has and no event is later than.

    found : of all nodes, who are asked together; nodes : (cluster, node) that are of interest, all by default
    """
    confirmed = pd.DataFrame(found.steps, columns=found.judged.alarms.columns)
    reported = standing_events(confirmed, found.values)
    of: dict[str, Any] = {"standing": confirmed, "points": found.change_points(), "unconfirmed": found.unconfirmed()}
    unconfirmed = []
    for event in propose(found.values, found.changelog, **of):
        resets = found.changelog.resets_s(event.nodes).values()
        over = all(max(each, default=-inf) > event.before_s for each in resets)
        of_interest = nodes is None or not set(nodes).isdisjoint(event.nodes)
        if event.shape == DAYS or event in reported or over or not of_interest:
            continue
        text = f"{event.nodes_text}, since {event.date}: {event.reason}"
        cluster, names = event.nodes[0][0], tuple(node for _, node in event.nodes)
        size = (event.factors[0].factor, event.before_s, event.factors[0].size, event.p_value)
        unconfirmed.append(Notice(UNCONFIRMED, cluster, names[0] if len(names) == 1 else "", -1, *size, text, names))
    return tuple(unconfirmed)

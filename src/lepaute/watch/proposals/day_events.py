"""Days on which many nodes left their usual range at once, and were back afterwards: one report, however often.

A power supply that four nodes share fails for an hour, now and then, for months. Each time, the raw tests of `judge`
have alarms on the same nodes, which as alarms of single jobs are dozens of reports. Here a day is compared with how
many alarms of a factor and direction are usual among as many nodes, and two nodes with how often they would have
alarms on the same days if they had nothing in common. Days with mostly the same nodes are one event.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.later import stats
from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.watch.proposals.change_points import LEVEL, LeastChange, least_change_of
from lepaute.watch.proposals.proposed_event import DAYS, PLATFORM, ProposedEvent, factor_changes
from lepaute.watch.store.rows import row_keys
from lepaute.watch.values import DAY_S, Machine, Node, day_numbers, day_of

#: A raw test below this is an alarm: the level of the thesis.
ALARM = 1e-4
MIN_NODES = 2
#: On which two nodes have alarms together, before it is asked whether that is chance.
MIN_DAYS = 2
#: Days without an alarm after which the same nodes begin another event.
MAX_GAP_DAYS = 60
#: So many values after a day tell whether a machine was back, three of them at least.
_AFTER, _MIN_AFTER = 5, 3
#: The nodes of an event are judged by this many of its latest days.
_RECENT = 3
#: A node belongs to an event if it is in this share of its days.
_MIN_SHARE = 0.25

_KEY = ["cluster", "node", "cpu", "job", "factor"]
_OF_ALARM = ["node", "cpu", "job", "archive", "started_s", "size"]
#: Columns of verdicts that single days are told from; the others than _COLUMNS may be missing.
OF_DAYS = (
    *("cluster", "node", "cpu", "job", "started_s", "archive", "factor", "r", "p", "pooled", "p_value", "direction"),
    *("low", "high", "judged_s"),
)
_COLUMNS = ("cluster", "node", "cpu", "job", "started_s", "factor", "r", "p", "p_value", "direction")


@dataclass(frozen=True, slots=True)
class _Alarm:
    machine: Machine
    job: str
    archive: str
    started_s: float
    factor: str
    direction: int
    size: float


@dataclass(slots=True)
class _Day:
    """One day, factor and direction; or several factors of one day, joined."""

    day: int
    alarms: list[_Alarm]
    p_value: float

    @property
    def nodes(self) -> frozenset[Node]:
        return frozenset(alarm.machine[:2] for alarm in self.alarms)

    @property
    def moves(self) -> frozenset[tuple[str, int]]:
        return frozenset((alarm.factor, alarm.direction) for alarm in self.alarms)

    def part(self, nodes: Iterable[Node]) -> "_Day":
        wanted = set(nodes)
        return _Day(self.day, [alarm for alarm in self.alarms if alarm.machine[:2] in wanted], self.p_value)


@dataclass(slots=True)
class _Episode:
    days: list[_Day] = field(default_factory=list)

    def core(self) -> frozenset[Node]:
        """The nodes on at least half of its latest days."""
        recent = self.days[-_RECENT:]
        count = Counter(node for day in recent for node in day.nodes)
        return frozenset(node for node, days in count.items() if 2 * days >= len(recent))


def day_events(
    verdicts: "pd.DataFrame",
    values: "pd.DataFrame",
    *,
    least_change: LeastChange | None = None,
    level: float = LEVEL,
    since_s: float | None = None,
    counted: "Booleans | None" = None,
) -> tuple[ProposedEvent, ...]:
    """The days on which more nodes of a cluster had an alarm of a factor, in one direction, than chance explains.

    verdicts : rows of `judge` or of a store; those of single factors and single jobs (p = 1, r = 1) count, an alarm
               being p_value < ALARM. Pooled ones count where there are no others
    values   : the factor values that they are about; alarms smaller than least_change are none
    level    : the chance of any such day where alarms of nodes and days are independent of each other
    counted  : which of the verdicts count besides, shape (rows,); all, unless given
    Two tests, each for half of the level, corrected for their number (Bonferroni) over factors and directions. Of a
    day: k alarms among its n nodes, by the binomial distribution with the share of alarms on all other days. Of a pair
    of nodes: days on which both have alarms, by the hypergeometric distribution; nodes of such pairs then make an event
    of each day that they have in common. Neither heavy tails nor a wrong level of the raw test matter, but an effect of
    the day that all nodes share is no chance, and is reported. MIN_NODES at least.
    Days of the same nodes at most MAX_GAP_DAYS apart are one event; nodes on less than a quarter of its days are left
    out of `machines`, not out of `jobs`. Where more than half of what was alarmed was not back afterwards, by the
    median of its next five values, something has lasted, and it is no event of days. In order of date.
    Raises InputError if verdicts lack a column.
    """
    if missing := [name for name in _COLUMNS if name not in verdicts]:
        raise InputError(f"the table of verdicts has no column {missing[0]}; give what `judge` returns")
    places = _tested(verdicts, counted)
    alarms = places[verdicts["p_value"].to_numpy()[places] < ALARM]
    tested = verdicts[["cluster", "factor", "node", "started_s"]].iloc[places]
    days = _days(tested, _alarming(verdicts.iloc[alarms], values), least_change, level)
    episodes = [each for each in _episodes(_over_factors(days)) if not _lasts(each, values)]
    events = [_event(episode, least_change) for episode in episodes]
    return tuple(event for event in events if since_s is None or event.before_s >= since_s)


def _tested(verdicts: "pd.DataFrame", counted: "Booleans | None") -> "Integers":
    """The rows of the tests that count, each test once: a store has millions, and no copy of them is made."""
    counts = ((verdicts["r"] == 1) & (verdicts["p"] == 1) & verdicts["p_value"].notna()).to_numpy()
    if counted is not None:
        counts = counts & counted
    if "pooled" in verdicts and (single := counts & ~verdicts["pooled"].to_numpy(np.bool_)).any():
        counts = single
    places = np.flatnonzero(counts)
    order = verdicts["judged_s" if "judged_s" in verdicts else "started_s"].iloc[places]
    if not order.is_monotonic_increasing:
        places = places[np.argsort(order.to_numpy(), kind="stable")]
    # judged again after a new event: the latest verdict counts
    again = pd.Series(row_keys(verdicts, _KEY)[places]).duplicated(keep="last").to_numpy()
    return places[~again] if again.any() else places


def _alarming(alarms: "pd.DataFrame", values: "pd.DataFrame") -> "pd.DataFrame":
    """The alarms with their day and the relative size of the deviation, NaN if it is not known."""
    texts = dict.fromkeys(("cluster", "node", "job", "factor"), "str")
    rows = alarms.astype(texts)
    theirs = values[values["node"].isin(rows["node"].unique()) & values["job"].isin(rows["job"].unique())]
    rows = rows.merge(theirs[[*_KEY, "value"]].astype(texts), on=_KEY, how="left", validate="many_to_one")
    usual = (rows["low"] + rows["high"]) / 2 if "low" in rows and "high" in rows else np.nan
    return rows.assign(
        day=day_numbers(rows["started_s"]),
        size=(rows["value"] - usual) / np.abs(usual),
        archive=rows.get("archive", ""),
    )


def _days(
    tested: "pd.DataFrame", alarming: "pd.DataFrame", least_change: LeastChange | None, level: float
) -> list[_Day]:
    """The significant days of each factor and direction, with the nodes concerned; half of the level for each test."""
    kinds = []
    tested = tested[["cluster", "factor", "node"]].assign(day=day_numbers(tested["started_s"]))
    for (cluster, factor), part in tested.groupby(["cluster", "factor"], sort=True):
        least = least_change_of(str(factor), least_change)
        own = alarming[(alarming["cluster"] == cluster) & (alarming["factor"] == factor)]
        own = own[~(own["size"].abs() < least)]
        of_node = part[["day", "node"]].drop_duplicates().astype({"node": "str"}).assign(tested=True)
        was_tested = of_node.pivot(index="day", columns="node", values="tested").notna()
        for direction in (-1, 1):
            some = own[own["direction"] == direction]
            kinds.append((str(cluster), str(factor), direction, some, was_tested))
    count_days = sum(len(was_tested) for *_, was_tested in kinds)
    count_pairs = sum(was_tested.shape[1] * (was_tested.shape[1] - 1) // 2 for *_, was_tested in kinds)
    found: list[_Day] = []
    for cluster, factor, direction, some, was_tested in kinds:
        alarmed = was_tested & False
        for day, node in some[["day", "node"]].drop_duplicates().itertuples(index=False, name=None):
            alarmed.loc[day, node] = True
        nodes, hit, tests = list(was_tested.columns), alarmed.to_numpy(), was_tested.to_numpy()
        of_day, pairs = _day_p_values(hit, tests) * count_days, _pair_p_values(hit, tests) * count_pairs
        for position, day in enumerate(was_tested.index):
            members = np.flatnonzero(hit[position])
            if len(members) < MIN_NODES:
                continue
            sets = [(members, float(of_day[position]))]
            if of_day[position] > level / 2:
                sets = _recurring(members, pairs, level / 2)
            for chosen, p in sets:
                rows = some[(some["day"] == day) & some["node"].isin([nodes[each] for each in chosen])]
                alarms = [
                    _Alarm((cluster, node, int(cpu)), job, archive, float(started_s), factor, direction, float(size))
                    for node, cpu, job, archive, started_s, size in rows[_OF_ALARM].itertuples(index=False, name=None)
                ]
                found.append(_Day(int(day), alarms, min(1.0, p)))
    return found


def _day_p_values(hit: "Booleans", tested: "Booleans") -> "Floats":
    """The chance of this many alarms a day, with the share of alarms on all other days; both of shape (days, nodes)."""
    hits, tests = hit.sum(axis=1), tested.sum(axis=1)
    return np.asarray(
        stats.binom.sf(hits - 1, tests, np.minimum(1.0, (hits.sum() - hits + 1) / (tests.sum() - tests + 1)))
    )


def _pair_p_values(hit: "Booleans", tested: "Booleans") -> "Floats":
    """The chance that two nodes have alarms on as many of the same days: hypergeometric, shape (nodes, nodes)."""
    alarms, both = hit.astype(np.float64), tested.astype(np.float64)
    common, days = alarms.T @ alarms, both.T @ both
    # alarms of the one on days on which the other was tested as well
    mine = alarms.T @ both
    p: Floats = np.ones(common.shape)
    again = common >= MIN_DAYS
    np.fill_diagonal(again, False)
    p[again] = stats.hypergeom.sf(common[again] - 1, days[again], mine[again], mine.T[again])
    return p


def _recurring(members: "Integers", pairs: "Floats", level: float) -> "list[tuple[Integers, float]]":
    """The sets of nodes among these that are connected by pairs which have alarms together again and again."""
    left = list(members)
    sets = []
    while left:
        group = [left.pop(0)]
        for one in group:
            near = [other for other in left if pairs[one, other] <= level]
            group += near
            left = [other for other in left if other not in near]
        if len(group) >= MIN_NODES:
            sets.append((np.array(sorted(group)), float(pairs[np.ix_(group, group)].min())))
    return sets


def _over_factors(days: list[_Day]) -> list[_Day]:
    """Factors and directions of one day whose nodes are half the same, as one; in order of date."""
    joined: list[_Day] = []
    for day in sorted(days, key=lambda each: (each.day, -len(each.nodes))):
        for other in joined:
            common = len(day.nodes & other.nodes)
            if other.day == day.day and 2 * common >= min(len(day.nodes), len(other.nodes)):
                other.alarms = [*other.alarms, *day.alarms]
                other.p_value = min(other.p_value, day.p_value)
                break
        else:
            joined.append(_Day(day.day, list(day.alarms), day.p_value))
    return joined


def _episodes(days: list[_Day]) -> list[_Episode]:
    """Days of mostly the same nodes, together. A day may be of two episodes, each with its nodes."""
    episodes: list[_Episode] = []
    for day in days:
        left = day
        candidates = [one for one in episodes if day.day - one.days[-1].day <= MAX_GAP_DAYS]
        for episode in sorted(candidates, key=lambda one: -len(one.core() & day.nodes)):
            core = episode.core()
            same = core & left.nodes
            # a factor moved the same way on its latest day
            alike = not episode.days[-1].moves.isdisjoint(left.moves)
            if len(same) < MIN_NODES or 2 * len(same) < len(core) or not alike:
                continue
            rest = left.nodes - core
            alone = len(rest) < MIN_NODES
            episode.days.append(left if alone else left.part(same))
            left = left.part([] if alone else rest)
        if left.alarms:
            episodes.append(_Episode([left]))
    return episodes


def _lasts(episode: _Episode, values: "pd.DataFrame") -> bool:
    """Whether most machines stayed at half of the deviation or more, as far as there are values to tell."""
    alarms = [alarm for day in episode.days for alarm in day.alarms]
    jobs = {(*alarm.machine, alarm.job) for alarm in alarms}
    series = {(alarm.machine, alarm.factor) for alarm in alarms}
    done = values[values["factor"].isin({factor for _, factor in series}) & (values["state"] == "done")]
    done = done[done["started_s"] > min(alarm.started_s for alarm in alarms) - DAY_S]
    done = done[done["node"].isin({alarm.machine[1] for alarm in alarms})]
    own: dict[tuple[Machine, str], list[tuple[float, float, bool]]] = defaultdict(list)
    columns = [done[name] for name in ("cluster", "node", "cpu", "job", "factor", "started_s", "value")]
    for cluster, node, cpu, job, factor, started_s, value in zip(*columns, strict=True):
        machine = (cluster, node, int(cpu))
        if (machine, factor) in series:
            own[machine, factor].append((float(started_s), float(value), (*machine, job) in jobs))
    lasts: list[bool] = []
    for alarm in alarms:
        rows = sorted(own[alarm.machine, alarm.factor])
        at = [value for started_s, value, alarmed in rows if alarmed and started_s == alarm.started_s]
        after = [value for started_s, value, alarmed in rows if not alarmed and started_s > alarm.started_s][:_AFTER]
        if at and len(after) >= _MIN_AFTER and np.isfinite(alarm.size):
            usual = at[0] / (1 + np.sign(at[0]) * alarm.size)
            lasts.append((float(np.median(after)) - usual) * (at[0] - usual) >= (at[0] - usual) ** 2 / 2)
    return 2 * sum(lasts) > len(lasts)


def _event(episode: _Episode, least_change: LeastChange | None) -> ProposedEvent:
    count = Counter(node for day in episode.days for node in day.nodes)
    nodes = {node for node, days in count.items() if days >= _MIN_SHARE * len(episode.days)}
    every = [alarm for day in episode.days for alarm in day.alarms]
    alarms = [alarm for alarm in every if alarm.machine[:2] in nodes]
    in_order = sorted(every, key=lambda alarm: (alarm.started_s, alarm.machine))
    sizes: dict[tuple[str, int], dict[Machine, list[float]]] = defaultdict(lambda: defaultdict(list))
    for alarm in alarms:
        sizes[alarm.factor, alarm.direction][alarm.machine].append(alarm.size)
    rows: dict[tuple[str, int], list[tuple[Machine, float, float, float]]] = defaultdict(list)
    weights: dict[Machine, float] = {}
    for (factor, direction), by_machine in sizes.items():
        least = least_change_of(factor, least_change) or 0.01
        for machine, each in by_machine.items():
            size = float(np.median(each))
            rows[factor, direction].append((machine, size, np.nan, np.nan))
            weight = abs(size) / least
            weights[machine] = max(weights.get(machine, 0.0), weight if np.isfinite(weight) else 1.0)
    return ProposedEvent(
        kind=PLATFORM,
        shape=DAYS,
        after_s=min(alarm.started_s for alarm in alarms),
        before_s=max(alarm.started_s for alarm in alarms),
        machines=tuple(sorted(weights)),
        factors=factor_changes(rows),
        p_value=min(day.p_value for day in episode.days),
        weight=sum(weights.values()),
        archives_after=tuple(dict.fromkeys(alarm.archive for alarm in alarms if alarm.archive)),
        days=tuple(day_of(day.day * DAY_S) for day in episode.days),
        jobs=tuple(dict.fromkeys((*alarm.machine[:2], alarm.job, day_of(alarm.started_s)) for alarm in in_order)),
    )

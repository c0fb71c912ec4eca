"""What is known to have happened to Dahu while it was watched, and which alarms belong to it."""

from dataclasses import dataclass, replace

import numpy
import pandas

from lepaute.watch.changelog import Changelog, Event

CLUSTER = "dahu"
DAY_S = 86_400.0
#: Below this, the literature calls it a power drop.
LOW_POWER_W = 124.0
#: An alarm so near to an event of the log belongs to it: its date was written down by people.
NEAR_S = 7 * DAY_S
#: Days after an event in which it counts as found, unless another one touches half of its nodes before.
WINDOW_DAYS = 30


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An entry of the log, the nodes of the cluster that it touches, and until when it counts as found."""

    entry: Event
    nodes: frozenset[str]
    end_s: float

    @property
    def begin_s(self) -> float:
        return self.entry.start_s

    @property
    def name(self) -> str:
        return f"{self.entry.date} {self.entry.nodes.text}: {self.entry.reason}"


def known_events(log: Changelog, values: pandas.DataFrame, days: int = WINDOW_DAYS) -> list[KnownEvent]:
    """The events of the log for which there are jobs on both sides, in order of date."""
    nodes = {(CLUSTER, node) for node in values["node"].unique()}
    first, last = values["started_s"].min(), values["started_s"].max()
    resets = log.resets_s(nodes)
    found = []
    for entry in sorted(log.events, key=lambda one: one.date):
        touched = entry.nodes.among(nodes)
        if not touched or not first < entry.start_s <= last:
            continue
        later = {date for node in touched for date in resets[node] if date > entry.start_s}
        most = [date for date in later if 2 * sum(date in resets[node] for node in touched) >= len(touched)]
        end_s = min([entry.start_s + days * DAY_S, *most])
        found.append(KnownEvent(entry, frozenset(node for _, node in touched), end_s))
    return found


def without(log: Changelog, event: KnownEvent) -> Changelog:
    return replace(log, events=tuple(one for one in log.events if one is not event.entry))


def power_drops(values: pandas.DataFrame) -> frozenset[tuple[str, str]]:
    """The (node, job) in which a processor had less than LOW_POWER_W."""
    low = values[(values["factor"] == "cpu_power_W") & (values["value"] < LOW_POWER_W)]
    return frozenset(zip(low["node"], low["job"], strict=True))


def belongs_to(verdicts: pandas.DataFrame, log: Changelog, values: pandas.DataFrame) -> pandas.Series:
    """Of each verdict: "outlier of the log", "power drop", "event of the log", or "" for none of these."""
    nodes = {(CLUSTER, node) for node in values["node"].unique()}
    logged = {(node, job) for _, node, job in log.outlying_jobs(nodes)}
    drops = power_drops(values)
    resets = {node: numpy.array(dates) for (_, node), dates in log.resets_s(nodes).items()}
    pairs = list(zip(verdicts["node"], verdicts["job"], strict=True))
    started = verdicts["started_s"].to_numpy()
    near = [
        bool((numpy.abs(resets[node] - start) <= NEAR_S).any())
        for node, start in zip(verdicts["node"], started, strict=True)
    ]
    kinds = [
        "outlier of the log" if pair in logged else "power drop" if pair in drops else "event of the log" if at else ""
        for pair, at in zip(pairs, near, strict=True)
    ]
    return pandas.Series(kinds, index=verdicts.index)

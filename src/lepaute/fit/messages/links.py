"""Messages inside nodes and between them, each a network of its own; idle, or while the machine does something else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lepaute.errors import FitError
from lepaute.fit.messages.busy import with_busy_receivers
from lepaute.fit.messages.conditions import ConditionEffect, condition_effects, conditions_of, loaded_series
from lepaute.fit.messages.distances import BETWEEN, INSIDE, DistanceEffect, distance_effects
from lepaute.fit.messages.flows import FlowCurve, flow_curve
from lepaute.fit.messages.network import NOT_SHARED, FittedNetwork, fit_network, fit_segments, size_range
from lepaute.fit.messages.platform_network import node_link_Bps
from lepaute.fit.messages.protocol import ProtocolLimits, limits_by_tests
from lepaute.fit.messages.series import Series, series_of
from lepaute.fit.messages.starts import start_relative_sd
from lepaute.fit.messages.switch_tree import SAME_SWITCH, SwitchTree, longer_way, uplink_Bps

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class MessageTables:
    """Observations of messages of one or more calibrations, a table an archive; those not made are left out.

    p2p       : point-to-point; the column `link` says local or remote, tables without it are local
    semantics : tests of send-completion semantics
    ring      : messages by condition
    flows     : several messages at once between two nodes
    """

    p2p: Sequence["pandas.DataFrame"]
    semantics: Sequence["pandas.DataFrame"] = ()
    ring: Sequence["pandas.DataFrame"] = ()
    flows: Sequence["pandas.DataFrame"] = ()

    def of(self, link: str) -> "MessageTables":
        """The rows of one class of links."""
        parts = (self.p2p, self.semantics, self.ring, self.flows)
        return MessageTables(*([_of(frame, link) for frame in part] for part in parts))

    def at(self, distance: str) -> "MessageTables":
        """The same with the messages between two ranks at that distance alone."""
        known = [frame for frame in self.p2p if "distance" in frame.columns]
        return replace(self, p2p=[frame[frame["distance"] == distance] for frame in known])


@dataclass(frozen=True, slots=True)
class FittedLinks:
    """The networks of a machine.

    inside, between : messages inside a node, and between nodes; the latter None where not measured
    link_Bps        : bandwidth of the link of a node as messages between idle nodes show it, None where not measured
    flows           : what several messages at once between two nodes reach, None where not measured
    tree            : the switches, where messages that leave one take longer; None: one switch
    effects         : how conditions change the time of messages
    notes           : for readers of the platform, one sentence each
    """

    inside: FittedNetwork
    between: FittedNetwork | None
    link_Bps: float | None  # noqa: N815 - the unit
    flows: FlowCurve | None
    tree: SwitchTree | None
    effects: tuple[ConditionEffect, ...]
    notes: list[str]


def fitted_links(
    tables: MessageTables, several: bool, condition: str | None = None, switches: Sequence[Sequence[int]] = ()
) -> FittedLinks:
    """Fits the networks.

    several   : there are several nodes
    switches  : the numbers of the nodes of each switch; empty where that is not known
    condition : of the ring that all messages are to be under; None: those of the point-to-point measurements, and those
                of the ring to busy receivers where it has them
    Raises FitError where the messages inside nodes are too few, or were not measured under the condition.
    """
    idle, inside, effects, notes = _fit(tables.of("local"), "local", condition)
    notes += _told(distance_effects(tables.of("local").p2p, idle.segments, INSIDE))
    between, link_Bps, flows, tree = None, None, None, None
    remote = tables.of("remote")
    if several and any(len(frame) for frame in remote.p2p):
        fit = _fit(remote, "remote", condition)
        far = distance_effects(remote.p2p, fit[0].segments, BETWEEN)
        longer = longer_way(far) if switches else None
        if longer is not None:
            # The segments are those of one switch; the tree has what comes on top.
            fit = _fit(remote.at(SAME_SWITCH), "remote", condition)
        idle, between, more, unknown = fit
        flows = flow_curve(remote.flows)
        link_Bps, effects, notes = node_link_Bps(idle), (*effects, *more), notes + unknown
        if flows is not None:
            link_Bps = max(link_Bps, flows.best[1])
        if longer is not None:
            tree = SwitchTree(switches, longer, uplink_Bps(remote.flows))
            notes += [effect.sentence() for effect in far if effect.matters] + [tree.sentence()]
        else:
            notes += _told(far)
        if idle.exchange_ratio > NOT_SHARED:
            notes.append(
                f"Two opposite messages between nodes take {idle.exchange_ratio:.2f} times as long as one alone, which "
                "a platform, whose links are as wide in each direction, does not hold."
            )
    if condition is not None:
        notes += [f"Messages are as under {condition}.", *(e.sentence() for e in effects if e.condition == condition)]
    return FittedLinks(inside, between, link_Bps, flows, tree, effects, notes)


def _told(effects: Sequence[DistanceEffect]) -> list[str]:
    """Of differences that the platform does not have."""
    return [f"{effect.sentence()} The platform has one model of both." for effect in effects if effect.matters]


def _fit(
    tables: MessageTables, link: str, condition: str | None
) -> tuple[FittedNetwork, FittedNetwork, tuple[ConditionEffect, ...], list[str]]:
    """The network of the point-to-point measurements, the one under the condition, what all conditions change, and of
    which the ring tells too little: it is needed for nothing else unless its condition is asked for."""
    usual = series_of(tables.p2p)
    limits = limits_by_tests(tables.semantics)
    idle = fit_network(usual, limits)
    idle = replace(idle, start_relative_sd=start_relative_sd(tables.p2p, idle.segments))
    assert idle.limits is not None
    eager = idle.limits.eager_bytes
    names = [*conditions_of(tables.ring)]
    if condition is not None and condition not in names:
        names.append(condition)  # loaded_series says what is missing
    loaded, unknown = {}, []
    for name in names:
        try:
            loaded[name] = loaded_series(tables.ring, name, eager, usual)
        except FitError as problem:
            if name == condition:
                raise
            unknown.append(f"What messages take under {name} ({link}) is unknown: {problem}.")
    effects = condition_effects(link, {name: part["pingpong"] for name, part in loaded.items()}, eager)
    if condition is None:
        under = with_busy_receivers(idle, tables.ring)
    else:
        under = _loaded(idle, loaded[condition], idle.limits)
    return idle, under, effects, unknown


def _loaded(idle: FittedNetwork, series: dict[str, Series], limits: ProtocolLimits) -> FittedNetwork:
    """The segments under a condition; all else as on idle nodes, which the ring does not measure: what flows share, the
    cost of probes, messages with gaps."""
    half = series["pingpong"].scaled(0.5)
    segments = fit_segments(half, series["isend"], series["recv"], limits)
    return replace(idle, segments=segments, sizes=size_range(half))


def _of(frame: "pandas.DataFrame", link: str) -> "pandas.DataFrame":
    if "link" not in frame.columns:
        return frame if link == "local" else frame.iloc[:0]
    return frame[frame["link"] == link]

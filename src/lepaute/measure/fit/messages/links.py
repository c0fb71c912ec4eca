"""Messages inside nodes and between them, each a network of its own; idle, or while the machine does something else.

Messages whose receiver computes between its probes for them: what they cost from the probe that finds them.

Measured by the ring under iprobe+dgemm: MPI_Recv after the successful MPI_Iprobe, while the sender waits in MPI_Send.
The wait for that probe is no cost of the message: it follows from the pieces that a program computes, and is simulated.
    eager                : the message has come by itself; what changes is MPI_Recv, which copies it
    detached, rendezvous : the transfer begins with MPI_Recv, and is all that it does
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any

import pandas

from lepaute.errors import FitError
from lepaute.measure.fit.messages import conditions, distances
from lepaute.measure.fit.messages import network as networks
from lepaute.measure.fit.messages.segment import FittedSegment, relative_line, series_of
from lepaute.simulate.platform.network_model import Network


def network_model(
    fitted: networks.FittedNetwork, between: networks.FittedNetwork | None = None, link_Bps: float | None = None
) -> Network:
    """The network of the machines that were measured.

    fitted   : messages inside a node
    between  : messages between nodes; None if they were not measured: then they cost what they cost inside
    link_Bps : bandwidth of the link of a node, None for what the fastest large messages between nodes make use of
    """
    loopback: dict[str, Any] = {"shared": fitted.shared, "bandwidth_Bps": fitted.shared_bandwidth_Bps, "segments": None}
    remote, link = fitted, fitted.shared_bandwidth_Bps
    if between is not None:
        loopback |= _class(fitted)
        link = node_link_Bps(between) if link_Bps is None else link_Bps
        gaps = None if between.noncontiguous is None else over_link(between.noncontiguous, link)
        busy = None if between.busy is None else over_link(between.busy, link)
        remote = replace(between, segments=over_link(between.segments, link), noncontiguous=gaps, busy=busy)
    return Network.model_validate(
        {
            "flow_factor": "bound",
            "node_link": {"bandwidth_Bps": link},
            "loopback": loopback,
            "remote": _class(remote),
            "costs": {
                "iprobe_s": fitted.iprobe_s,
                "test_s": fitted.test_s,
                "wtime_s": fitted.wtime_s,
                "iprobe_looks_first": fitted.iprobe_looks_first,
            },
        }
    )


def _class(network: networks.FittedNetwork) -> dict[str, Any]:
    return {
        "segments": _segments(network.segments),
        "noncontiguous": _segments(network.noncontiguous),
        "busy": _busy(network),
        "range_bytes": network.sizes,
        "noncontiguous_range_bytes": network.noncontiguous_sizes,
        **_errors(network),
    }


def _errors(network: networks.FittedNetwork) -> dict[str, float | None]:
    """If starts do not show how much calls differ, they are taken to differ as transfers do."""
    return {
        "discrepancy_relative_sd": network.start_relative_sd or None,
        "overhead_relative_sd": network.start_overhead_sd or None,
    }


def _busy(network: networks.FittedNetwork) -> dict[str, Any] | None:
    """What a start of mpirun does to all of its messages it does to these."""
    if network.busy is None:
        return None
    return {"segments": _segments(network.busy), "range_bytes": network.busy_sizes, **_errors(network)}


def _segments(parts: tuple[FittedSegment, ...] | None) -> list[dict[str, Any]] | None:
    return None if parts is None else [_segment(part) for part in parts]


def _segment(part: FittedSegment) -> dict[str, Any]:
    fields = asdict(part)
    modes = fields.pop("modes")
    return {**fields, "noise": {"modes": modes} if modes else None}


def node_link_Bps(between: networks.FittedNetwork) -> float:  # noqa: N802 - the unit
    """Bytes per second of the link: what the fastest of the large messages makes use of.

    Messages of one core at a time do not show whether several would get more; a link that one flow fills is assumed.
    """
    bounds = [part.above_bytes for part in between.segments] + [inf]
    uppers = [high for _, high in pairwise(bounds)]
    return max(
        1.0 / _per_byte_s(part)
        for part, high in zip(between.segments, uppers, strict=True)
        if high > networks.LARGE_BYTES
    )


def over_link(segments: Sequence[FittedSegment], link_Bps: float) -> tuple[FittedSegment, ...]:
    """The same segments, in which every byte takes the time that it needs on the link.

    Where the calls of a message were measured to take all the time of its bytes, the link was at work meanwhile: so
    much is moved from the overheads to the link, and the time of a message alone stays the same. A segment whose bytes
    are faster than the link, as a few small ones may be, gets all of their time as transfer.
    """
    return tuple(_over_link(part, link_Bps) for part in segments)


def _over_link(part: FittedSegment, link_Bps: float) -> FittedSegment:
    if part.bandwidth_Bps <= link_Bps:
        return part
    whole_s = _per_byte_s(part)
    on_link_s = min(whole_s, 1.0 / link_Bps)
    calls_s = part.send[1] + part.receive[1]
    left = (whole_s - on_link_s) / calls_s if calls_s > 0 else 0.0
    return replace(
        part,
        bandwidth_Bps=1.0 / on_link_s,
        send=(part.send[0], part.send[1] * left),
        receive=(part.receive[0], part.receive[1] * left),
    )


def _per_byte_s(part: FittedSegment) -> float:
    """Seconds per byte of a message alone, from the beginning of the send to the end of the receive; > 0."""
    return 1.0 / part.bandwidth_Bps + part.send[1] + part.receive[1]


def with_busy_receivers(idle: networks.FittedNetwork, frames: Sequence[pandas.DataFrame]) -> networks.FittedNetwork:
    """The network with segments of messages to busy receivers; as it was where the ring has too few of them.

    idle   : with its limits
    frames : ring observations of the same class of links
    """
    receives = conditions.receives_after_probes(frames)
    assert idle.limits is not None
    eager_bytes = idle.limits.eager_bytes
    copies, above = receives.within(-1.0, eager_bytes), receives.within(eager_bytes, inf)
    if len(above if eager_bytes < inf else copies) < conditions.FEWEST:
        return idle
    segments = [part for part in idle.segments if part.protocol == "eager"]
    if len(copies) >= conditions.FEWEST:
        taking = relative_line(copies, copies.capped_s)
        segments = [replace(part, receive=taking) for part in segments]
    if len(above):
        nothing = receives.within(inf, inf)
        first, *others = networks.fit_segments(above, nothing, nothing, idle.limits, pairs=False)
        segments += [replace(first, above_bytes=int(eager_bytes) if segments else 0), *others]
    return replace(idle, busy=tuple(segments), busy_sizes=networks.size_range(receives))


@dataclass(frozen=True, slots=True)
class MessageTables:
    """Observations of messages of one or more calibrations, a table an archive; those not made are left out.

    p2p       : point-to-point; the column `link` says local or remote, tables without it are local
    semantics : tests of send-completion semantics
    ring      : messages by condition
    flows     : several messages at once between two nodes
    """

    p2p: Sequence[pandas.DataFrame]
    semantics: Sequence[pandas.DataFrame] = ()
    ring: Sequence[pandas.DataFrame] = ()
    flows: Sequence[pandas.DataFrame] = ()

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

    inside, between : messages inside a node, and between nodes; the latter None if not measured
    link_Bps        : bandwidth of the link of a node as messages between idle nodes show it, None if not measured
    flows           : what several messages at once between two nodes reach, None if not measured
    tree            : the switches, where messages that leave one take longer; None: one switch
    effects         : how conditions change the time of messages
    notes           : for readers of the platform, one sentence each
    """

    inside: networks.FittedNetwork
    between: networks.FittedNetwork | None
    link_Bps: float | None  # noqa: N815 - the unit
    flows: distances.FlowCurve | None
    tree: distances.SwitchTree | None
    effects: tuple[conditions.ConditionEffect, ...]
    notes: list[str]


def fitted_links(
    tables: MessageTables, several: bool, condition: str | None = None, switches: Sequence[Sequence[int]] = ()
) -> FittedLinks:
    """Fits the networks.

    several   : there are several nodes
    switches  : the numbers of the nodes of each switch; empty if that is not known
    condition : of the ring that all messages are to be under; None: those of the point-to-point measurements, and those
                of the ring to busy receivers where it has them
    Raises FitError if the messages inside nodes are too few, or were not measured under the condition.
    """
    idle, inside, effects, notes = _fit(tables.of("local"), "local", condition)
    notes += _told(distances.distance_effects(tables.of("local").p2p, idle.segments, distances.INSIDE))
    between, link_Bps, flows, tree = None, None, None, None
    remote = tables.of("remote")
    if several and any(len(frame) for frame in remote.p2p):
        fit = _fit(remote, "remote", condition)
        far = distances.distance_effects(remote.p2p, fit[0].segments, distances.BETWEEN)
        longer = distances.longer_way(far) if switches else None
        if longer is not None:
            # The segments are those of one switch; the tree has what comes on top.
            fit = _fit(remote.at(distances.SAME_SWITCH), "remote", condition)
        idle, between, more, unknown = fit
        flows = distances.flow_curve(remote.flows)
        link_Bps, effects, notes = node_link_Bps(idle), (*effects, *more), notes + unknown
        if flows is not None:
            link_Bps = max(link_Bps, flows.best[1])
        if longer is not None:
            tree = distances.SwitchTree(switches, longer, distances.uplink_Bps(remote.flows))
            notes += [effect.sentence() for effect in far if effect.matters] + [tree.sentence()]
        else:
            notes += _told(far)
        if idle.exchange_ratio > networks.NOT_SHARED:
            notes.append(
                f"Two opposite messages between nodes take {idle.exchange_ratio:.2f} times as long as one alone, which "
                "a platform, whose links are as wide in each direction, does not hold."
            )
    if condition is not None:
        notes += [f"Messages are as under {condition}.", *(e.sentence() for e in effects if e.condition == condition)]
    return FittedLinks(inside, between, link_Bps, flows, tree, effects, notes)


def _told(effects: Sequence[distances.DistanceEffect]) -> list[str]:
    """Sentences on differences that the platform does not have."""
    return [f"{effect.sentence()} The platform has one model of both." for effect in effects if effect.matters]


def _fit(
    tables: MessageTables, link: str, condition: str | None
) -> tuple[networks.FittedNetwork, networks.FittedNetwork, tuple[conditions.ConditionEffect, ...], list[str]]:
    """The network of the point-to-point measurements, the one under the condition, what all conditions change, and of
    which the ring tells too little: it is needed for nothing else unless its condition is asked for."""
    usual = series_of(tables.p2p)
    idle = networks.fit_network(usual, networks.limits_by_tests(tables.semantics))
    transfers, calls = distances.start_errors(tables.p2p, idle.segments)
    idle = replace(idle, start_relative_sd=transfers, start_overhead_sd=calls)
    assert idle.limits is not None
    eager = idle.limits.eager_bytes
    names = [*conditions.conditions_of(tables.ring)]
    if condition is not None and condition not in names:
        names.append(condition)  # loaded_series says what is missing
    loaded, unknown = {}, []
    for name in names:
        try:
            loaded[name] = conditions.loaded_series(tables.ring, name, eager, usual)
        except FitError as problem:
            if name == condition:
                raise
            unknown.append(f"What messages take under {name} ({link}) is unknown: {problem}.")
    effects = conditions.condition_effects(link, {name: part["pingpong"] for name, part in loaded.items()}, eager)
    if condition is None:
        under = with_busy_receivers(idle, tables.ring)
    else:
        # All else as on idle nodes, which the ring does not measure: what flows share, probes, messages with gaps.
        under_load = loaded[condition]
        half = under_load["pingpong"].scaled(0.5)
        segments = networks.fit_segments(half, under_load["isend"], under_load["recv"], idle.limits)
        under = replace(idle, segments=segments, sizes=networks.size_range(half))
    return idle, under, effects, unknown


def _of(frame: pandas.DataFrame, link: str) -> pandas.DataFrame:
    if "link" not in frame.columns:
        return frame if link == "local" else frame.iloc[:0]
    return frame[frame["link"] == link]

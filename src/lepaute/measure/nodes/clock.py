"""Clock offsets between nodes and the controller."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lepaute.measure.nodes.channel import Channel

PROBES = 8


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """offset_s: the node's clock minus the controller's; error_s: half the round trip, the bound of its error."""

    node: str
    offset_s: float
    error_s: float
    measured_at_s: float


def clock_offset(channel: Channel, probes: int = PROBES) -> ClockOffset:
    """The offset by the probe with the shortest round trip. Raises NodeLost.

    Source: F. Cristian, Probabilistic clock synchronization, Distributed Computing 3 (1989), section 3.
    """
    return best_offset(channel.name, [_probe(channel) for _ in range(probes)])


def best_offset(node: str, probes: Sequence[tuple[float, float, float]]) -> ClockOffset:
    """probes: (sent, the node's clock, received) in seconds, sent and received by the controller's clock."""
    sent, node_s, received = min(probes, key=lambda probe: probe[2] - probe[0])
    return ClockOffset(node, node_s - (sent + received) / 2, (received - sent) / 2, received)


def _probe(channel: Channel) -> tuple[float, float, float]:
    sent = time.time()
    answer = channel.result(channel.ask({"do": "clock"})[1], 30.0)
    received = time.time()
    node_s = answer.get("time_s") if isinstance(answer, dict) else None
    if not isinstance(node_s, float) or not math.isfinite(node_s):
        raise channel.give_up("its agent sent no time of its clock")
    return sent, node_s, received

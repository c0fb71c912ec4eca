"""Messages of a machine whose network nobody measured: by InfiniBand and its like, or by TCP over Ethernet.

Where the constants come from: docs/design/decisions/data_sheets.md. Deviations are drawn once a run.
"""

from dataclasses import dataclass
from typing import Any

#: Messages between nodes by RDMA: a flow alone, as a share of the nominal bandwidth (79 % on Stampede, 99 % on Dahu),
#: and the error of latencies and transfers together; with an unknown latency.
SHARE_OF_LINK, REMOTE_SD = 0.95, 0.25
LATENCY_S, REMOTE_SD_WITHOUT_LATENCY = 2e-6, 0.4
#: Messages inside a node: one flow (18 GB/s on Dahu, 4.5 GB/s on a virtual machine), half a round trip, error.
LOOPBACK_BPS, LOOPBACK_LATENCY_S, LOOPBACK_SD = 8e9, 6e-7, 0.5
#: Messages that find their receiver computing: a quarter of the bandwidth on Dahu, all of it on a virtual machine.
BUSY_SHARE, BUSY_SD = 0.5, 0.5
#: Shares of the latency (half a round trip) that are the sender's, the link's and the receiver's.
OF_SENDER, OF_LINK, OF_RECEIVER = 0.2, 0.5, 0.3
#: Copies of eager messages, on both sides, in seconds per byte; above the threshold, a handshake of some latencies.
COPY_S_PER_BYTE = 1e-10
EAGER_BYTES = 16384
HANDSHAKE = 4.0
#: A call of MPI_Iprobe or MPI_Test that finds nothing.
PROBE_S = 3e-7
#: TCP over Ethernet: what headers leave of the link, what one flow has at most, and the error.
SHARE_OF_ETHERNET, TCP_FLOW_BPS, TCP_SD = 1460 / 1538, 0.72e9, 0.4
TCP_LATENCY_S, TCP_SD_WITHOUT_LATENCY = 21e-6, 0.6
#: A message of more bytes than a frame waits for gathered interrupts, one of more than `eager` for a handshake; in
#: latencies. Copies of sender and receiver.
TCP_FRAME_BYTES, TCP_FRAMES = 1420, 2.7
TCP_EAGER_BYTES, TCP_HANDSHAKE = 65536, 6.0
TCP_COPIES_S_PER_BYTE = (1.1e-10, 2.7e-10)
FABRICS = ("rdma", "ethernet")
#: Without a latency, links of these many Gb/s are Ethernet; with one, those from here on.
_OF_ETHERNET, _ETHERNET_S = (1.0, 2.5, 5.0, 10.0, 25.0), 8e-6

Segments = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Link:
    """Known data of the links between nodes: nominal bandwidth, half a round trip, one of FABRICS; None: nothing."""

    nominal_Bps: float | None  # noqa: N815 - the unit
    given_latency_s: float | None
    fabric: str | None

    @property
    def is_ethernet(self) -> bool:
        """Whether messages go by TCP: as given, or as latency or bandwidth tell."""
        if self.fabric is not None or self.nominal_Bps is None:
            return self.fabric == "ethernet"
        if self.given_latency_s is not None:
            return self.given_latency_s >= _ETHERNET_S
        return any(abs(self.nominal_Bps / (gigabits * 1.25e8) - 1.0) < 1e-6 for gigabits in _OF_ETHERNET)

    @property
    def latency_s(self) -> float:
        """Latency of a small message."""
        if self.given_latency_s is not None:
            return self.given_latency_s
        return TCP_LATENCY_S if self.is_ethernet else LATENCY_S

    @property
    def error(self) -> tuple[float, str]:
        """Standard deviation of messages between nodes, and what is assumed of them."""
        known = self.given_latency_s is not None
        latency = "the given latency" if known else f"{self.latency_s * 1e6:g} µs"
        if self.is_ethernet:
            width = f"{100 * SHARE_OF_ETHERNET:.0f} % of the link, a flow at most {TCP_FLOW_BPS / 1e9:g} GB/s"
            text = f"TCP: {width}, {latency}, eager up to {TCP_EAGER_BYTES} bytes"
            return TCP_SD if known else TCP_SD_WITHOUT_LATENCY, text
        text = f"{100 * SHARE_OF_LINK:.0f} % of the link, {latency}, eager up to {EAGER_BYTES} bytes"
        return REMOTE_SD if known else REMOTE_SD_WITHOUT_LATENCY, text

    @property
    def width_Bps(self) -> float:  # noqa: N802 - the unit
        """Bandwidth of all flows of a node together."""
        nominal_Bps = self.nominal_Bps or LOOPBACK_BPS
        return SHARE_OF_ETHERNET * nominal_Bps if self.is_ethernet else nominal_Bps


def guessed_network(link: Link) -> dict[str, Any]:
    inside = _segments(LOOPBACK_LATENCY_S, LOOPBACK_BPS)
    loopback: dict[str, Any] = {
        "bandwidth_Bps": LOOPBACK_BPS,
        "segments": inside,
        "discrepancy_relative_sd": LOOPBACK_SD,
        "busy": _busy(inside),
    }
    if link.is_ethernet:
        flow_Bps, frames = min(link.width_Bps, TCP_FLOW_BPS), TCP_FRAMES - OF_SENDER - OF_RECEIVER
        between = [
            _eager(0, link.latency_s, OF_LINK, flow_Bps, TCP_COPIES_S_PER_BYTE),
            _eager(TCP_FRAME_BYTES, link.latency_s, frames, flow_Bps, TCP_COPIES_S_PER_BYTE),
            _rendezvous(TCP_EAGER_BYTES, link.latency_s, TCP_HANDSHAKE, flow_Bps),
        ]
    else:
        between = _segments(link.latency_s, SHARE_OF_LINK * link.width_Bps)
    return {
        "node_link": {"bandwidth_Bps": link.width_Bps},
        "loopback": loopback,
        "remote": {"segments": between, "discrepancy_relative_sd": link.error[0], "busy": _busy(between)},
        "costs": {"iprobe_s": PROBE_S, "test_s": PROBE_S},
    }


def _segments(latency_s: float, bandwidth_Bps: float) -> Segments:
    return [
        _eager(0, latency_s, OF_LINK, bandwidth_Bps, (COPY_S_PER_BYTE, COPY_S_PER_BYTE)),
        _rendezvous(EAGER_BYTES, latency_s, HANDSHAKE, bandwidth_Bps),
    ]


def _eager(
    above: int, latency_s: float, link_fraction: float, bandwidth_Bps: float, copies: tuple[float, float]
) -> dict[str, Any]:
    sender = (OF_SENDER * latency_s, copies[0])
    return {
        "above_bytes": above,
        "protocol": "eager",
        "latency_s": link_fraction * latency_s,
        "bandwidth_Bps": bandwidth_Bps,
        "send": sender,
        "isend": sender,
        "receive": (OF_RECEIVER * latency_s, copies[1]),
    }


def _rendezvous(above: int, latency_s: float, handshake: float, bandwidth_Bps: float) -> dict[str, Any]:
    return {
        "above_bytes": above,
        "protocol": "rendezvous",
        "latency_s": handshake * latency_s,
        "bandwidth_Bps": bandwidth_Bps,
        "isend": (OF_SENDER * latency_s, 0.0),
    }


def _busy(segments: Segments) -> dict[str, Any]:
    slower = [
        segment
        | ({"bandwidth_Bps": BUSY_SHARE * segment["bandwidth_Bps"]} if segment["protocol"] == "rendezvous" else {})
        for segment in segments
    ]
    return {"segments": slower, "discrepancy_relative_sd": BUSY_SD}

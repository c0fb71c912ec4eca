"""A platform whose messages are those of a ping-pong that another benchmark has measured.

Half a round trip is what MPI_Send, the route, the transfer and MPI_Recv take together. A ping-pong does not tell how it
divides among them, which protocol a size has, nor other pairs and days: these are guessed, and named in `assumed`.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import InputError
from lepaute.simulate.platform import guessed_messages
from lepaute.simulate.platform.network_model import BusyReceiver, Segment
from lepaute.simulate.platform.schema import Assumption, Platform
from lepaute.stats.robust import robust_sd

if TYPE_CHECKING:
    from lepaute.measure.fit.duration_tables import DurationTable
    from lepaute.measure.fit.segmentation import SegmentedLine
    from lepaute.measure.fit.segmentation.points import Line

#: Error of the time of a message: one pair of ranks at one time was measured, and others differ.
PAIR_SD = 0.1
#: Time per byte of a piece without one: the link decides.
_FASTEST_S_PER_BYTE = 1e-12
#: No library's limit of eager messages is lower. A jump below is that of messages which go along with their request to
#: the adapter ("inline", up to some hundred bytes on InfiniBand).
MIN_EAGER_BYTES = 512
#: What `assumed` calls the messages of a class of links.
BETWEEN, WITHIN, TO_BUSY = "messages between nodes", "messages inside nodes", "messages to ranks that compute"
_OF_OSU = re.compile(r"OSU MPI\S* (Multi\S* )?(Latency|Bandwidth)\b")


def ping_pong_of(tables: "Sequence[DurationTable]", file: Path) -> "DurationTable":
    """The one ping-pong among the tables of a file.

    Raises InputError for output of another benchmark, and for a table whose sizes are not bytes.
    """
    found = [table for table in tables if _is_ping_pong(table.name)]
    if len(found) != 1:
        named = "; ".join(table.name for table in found or tables)
        what = "several ping-pongs" if found else "no ping-pong: half of its round trip by size is needed"
        raise InputError(f"{file}: holds {what}; there are: {named}")
    if not found[0].in_bytes:
        raise InputError(
            f"{file}: the sizes, {found[0].x_name!r}, are not known to be bytes; call the column size_bytes"
        )
    return found[0]


def _is_ping_pong(name: str) -> bool:
    if name.startswith("OSU "):
        match = _OF_OSU.match(name)
        return match is not None and match[2] == "Latency"
    return not re.search(r", \d+ processes$", name) or name.startswith("PingPong,")


def eager_bytes_of(line: "SegmentedLine", platform: Platform) -> int:
    """The largest message that is taken as eager: the breakpoint with the largest jump upwards, as the handshake of a
    rendezvous makes it, from MIN_EAGER_BYTES on; the threshold of the platform where no breakpoint has one."""
    rises = {}
    for place, below, above in zip(line.breakpoints, line.segments[:-1], line.segments[1:], strict=True):
        before_s, after_s = (piece.intercept + piece.slope * place for piece in (below, above))
        if place >= MIN_EAGER_BYTES and after_s > before_s and above.intercept > below.intercept:
            rises[place] = after_s / before_s
    if rises:
        return int(max(rises, key=lambda place: rises[place]))
    return next((s.above_bytes for s in platform.network.remote.segments if s.protocol == "rendezvous"), 0)


def with_ping_pong(
    platform: Platform, line: "SegmentedLine", *, source: str, within: bool = False, eager_bytes: int | None = None
) -> Platform:
    """`platform` with the messages between its nodes, or `within` them, of a segmented ping-pong.

    line        : half a round trip in seconds over the size in bytes; its scatter widens what runs draw
    source      : where it was measured, for `assumed`
    eager_bytes : the largest message that is sent at once; None: as `eager_bytes_of` takes it
    Messages with gaps and those to ranks that compute are then as a data sheet's.
    """
    threshold = eager_bytes_of(line, platform) if eager_bytes is None else eager_bytes
    told = "given" if eager_bytes is not None else "guessed"
    segments = _segments(line, threshold)
    what = WITHIN if within else BETWEEN
    relative_sd = round(math.hypot(PAIR_SD, robust_sd(np.log(line.y / line.predict(line.x)), 0.0)), 3)
    assumption = Assumption(
        what=f"{what} of other pairs and times",
        relative_sd=relative_sd,
        source=f"{source}: one ping-pong; shares of sender and receiver guessed, eager up to {threshold} bytes {told}",
    )
    links = platform.network.loopback if within else platform.network.remote
    busy = None if links.busy is None else _busy(segments)
    update: dict[str, object] = {
        "segments": segments,
        "noncontiguous": None,
        "noncontiguous_range_bytes": None,
        "busy": busy,
        "range_bytes": (int(line.segments[0].low), int(line.segments[-1].high)),
        "discrepancy_relative_sd": relative_sd,
    }
    if within:
        update["bandwidth_Bps"] = max(segments[-1].bandwidth_Bps, platform.network.loopback.bandwidth_Bps)
    changed = {"loopback" if within else "remote": links.model_copy(update=update)}
    assumed = [*(each for each in platform.assumed or () if not each.what.startswith(what)), assumption]
    if busy is not None and not any(each.what.startswith(TO_BUSY) for each in assumed):
        share = f"{100 * guessed_messages.BUSY_SHARE:.0f} % of the bandwidth of others"
        assumed.append(Assumption(what=TO_BUSY, relative_sd=guessed_messages.BUSY_SD, source=share))
    since = f"Since then, {what} are those of a ping-pong: {source}."
    return platform.model_copy(
        update={
            "description": f"{platform.description or ''}\n{since}".strip(),
            "network": platform.network.model_copy(update=changed),
            "assumed": tuple(assumed),
        }
    )


def _busy(segments: tuple[Segment, ...]) -> BusyReceiver:
    slower = [
        segment.model_copy(update={"bandwidth_Bps": guessed_messages.BUSY_SHARE * segment.bandwidth_Bps})
        if segment.protocol == "rendezvous"
        else segment
        for segment in segments
    ]
    return BusyReceiver(segments=tuple(slower), discrepancy_relative_sd=guessed_messages.BUSY_SD)


def _segments(line: "SegmentedLine", eager_bytes: int) -> tuple[Segment, ...]:
    """The pieces as segments; one with the threshold inside becomes two, with the same durations."""
    overhead_s = guessed_messages.OF_SENDER * line.segments[0].intercept
    result = []
    for number, piece in enumerate(line.segments):
        low = int(piece.low) if number else 0
        if low < eager_bytes:
            result.append(_eager(piece, low))
        if piece.high > eager_bytes or number == len(line.segments) - 1:
            result.append(_rendezvous(piece, max(low, eager_bytes), overhead_s))
    return tuple(result)


def _eager(piece: "Line", above_bytes: int) -> Segment:
    copy_s = min(guessed_messages.COPY_S_PER_BYTE, piece.slope / 4)
    sender = (guessed_messages.OF_SENDER * piece.intercept, copy_s)
    return Segment(
        above_bytes=above_bytes,
        protocol="eager",
        latency_s=guessed_messages.OF_LINK * piece.intercept,
        bandwidth_Bps=1.0 / max(piece.slope - 2 * copy_s, _FASTEST_S_PER_BYTE),
        send=sender,
        isend=sender,
        receive=(guessed_messages.OF_RECEIVER * piece.intercept, copy_s),
    )


def _rendezvous(piece: "Line", above_bytes: int, overhead_s: float) -> Segment:
    return Segment(
        above_bytes=above_bytes,
        protocol="rendezvous",
        latency_s=piece.intercept,
        bandwidth_Bps=1.0 / max(piece.slope, _FASTEST_S_PER_BYTE),
        isend=(overhead_s, 0.0),
    )

"""Which messages a simulated run sent, by class of links, and how many of a size that no model was fitted to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.kit.text import size_text

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.platform.schema import Platform

#: Of the time of all messages; below it, an extrapolation is not worth a sentence.
SMALL_SHARE = 0.005
WHERE = {
    "loopback": "inside nodes",
    "remote": "between nodes",
    "loopback_noncontiguous": "inside nodes, with gaps,",
    "remote_noncontiguous": "between nodes, with gaps,",
    "loopback_busy": "inside nodes to ranks that compute",
    "remote_busy": "between nodes to ranks that compute",
}


@dataclass(frozen=True, slots=True)
class MessageUse:
    """The messages of one class of links in one run.

    link         : one of loopback, remote, and each of them with _noncontiguous or _busy
    fitted_bytes : smallest and largest size that the model of the class was fitted to, both inclusive
    time_s       : sum of the times of all messages, each as if it were alone and without noise; outside_time_s of
                   those whose size is outside fitted_bytes
    outside_from_bytes, outside_to_bytes : smallest and largest size among those, None where there are none
    """

    link: str
    fitted_bytes: tuple[int, int]
    messages: int
    bytes: float
    time_s: float
    outside_messages: int
    outside_bytes: float
    outside_time_s: float
    outside_from_bytes: float | None
    outside_to_bytes: float | None


def message_use(platform: "Platform", counted: "Mapping[str, _core.MessageUse]") -> tuple[MessageUse, ...]:
    """The classes of links that sent messages and whose fitted sizes are known; counted is by class of links."""
    uses = []
    for link, use in counted.items():
        fitted = platform.network.fitted_sizes[link]
        if fitted is None or not use.messages:
            continue
        outside = use.outside_messages > 0
        uses.append(
            MessageUse(
                link,
                fitted,
                use.messages,
                use.bytes,
                use.time_s,
                use.outside_messages,
                use.outside_bytes,
                use.outside_time_s,
                use.outside_low_bytes if outside else None,
                use.outside_high_bytes if outside else None,
            )
        )
    return tuple(uses)


def message_warnings(uses: Sequence[MessageUse]) -> list[str]:
    """A sentence for each class of links with a noticeable share of its time outside the fitted sizes."""
    total_s = sum(use.time_s for use in uses)
    warnings = []
    for use in uses:
        if use.outside_from_bytes is None or use.outside_to_bytes is None:
            continue
        if use.outside_time_s <= max(SMALL_SHARE * use.time_s, 0.1 * SMALL_SHARE * total_s):
            continue
        share = 100.0 * use.outside_time_s / use.time_s
        met = f"{size_text(use.outside_from_bytes)} to {size_text(use.outside_to_bytes)}"
        fitted = f"{size_text(use.fitted_bytes[0])} to {size_text(use.fitted_bytes[1])}"
        warnings.append(
            f"{share:.2g} % of the time of messages {WHERE[use.link]} is of sizes outside the fitted ones: "
            f"{met}, fitted from {fitted}"
        )
    return warnings

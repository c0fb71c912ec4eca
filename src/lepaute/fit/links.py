"""Messages inside nodes and between them, each a network of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.fit.messages import series_of
from lepaute.fit.network import NOT_SHARED, FittedNetwork, fit_network

if TYPE_CHECKING:
    import pandas


def networks(
    frames: "Sequence[pandas.DataFrame]", several: bool
) -> tuple[FittedNetwork, FittedNetwork | None, list[str]]:
    """The network inside nodes, that between nodes (None where not measured), and what a reader should know of them.

    frames : p2p observations; their column `link` tells local from remote, and those without it are local
    Raises FitError where the messages inside nodes are too few.
    """
    inside = fit_network(series_of([_of(frame, "local") for frame in frames]))
    between = [_of(frame, "remote") for frame in frames]
    if not several or not sum(map(len, between)):
        return inside, None, []
    remote = fit_network(series_of(between))
    if remote.exchange_ratio <= NOT_SHARED:
        return inside, remote, []
    told = f"Two opposite messages between nodes take {remote.exchange_ratio:.2f} times as long as one alone, which a "
    return inside, remote, [told + "platform, whose links are as wide in each direction, does not hold."]


def _of(frame: "pandas.DataFrame", link: str) -> "pandas.DataFrame":
    if "link" not in frame.columns:
        return frame if link == "local" else frame.iloc[:0]
    return frame[frame["link"] == link]

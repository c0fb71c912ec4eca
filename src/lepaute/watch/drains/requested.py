"""Nodes of which a confirmation run is asked for."""

from typing import TYPE_CHECKING

from lepaute.watch.drains.decision import REQUESTED

if TYPE_CHECKING:
    import pandas as pd


def requested_runs(actions: "pd.DataFrame", cluster: str) -> dict[str, float]:
    """Node -> when a run of it was asked for, seconds since the epoch, where nothing was done about it since.

    actions : rows of a store's node actions
    """
    mine = actions[actions["cluster"] == cluster].sort_values("revision")
    last = mine.drop_duplicates("node", keep="last")
    rows = last[last["action"] == REQUESTED]
    return dict(zip(rows["node"], rows["recorded_s"].astype(float), strict=True))

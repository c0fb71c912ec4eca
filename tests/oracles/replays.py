"""Recordings written call by call, and what their replays take without any uncertainty."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import lepaute as lp
from lepaute.simulate.trace import trace_of_columns, write_trace
from lepaute.simulate.trace.table import KERNEL, MPI

NOTHING = lp.Layers.only()
#: A message is 1 MB, so that it is sent when its receive is there.
LARGE = 1e6


def replayed(path: Path, platform: Any = "dahu", **more: Any) -> lp.Prediction:
    return lp.predict(lp.TraceReplay(path, **more), platform, runs=1, layers=NOTHING)


def recorded(path: Path, application: Any) -> lp.Prediction:
    """One run, whose trace is written."""
    found = lp.predict(application, "dahu", runs=1, layers=NOTHING, trace=lp.TraceRequest())
    assert found.trace is not None
    write_trace(found.trace, path)
    return found


def write(path: Path, rows: Sequence[dict[str, Any]], **metadata: Any) -> Path:
    """A recording of these rows: of a rank in their order, each a second after the one before unless it has a start."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    seen: dict[int, float] = {}
    unless_given = dict.fromkeys(("m", "n", "k", "size_bytes"), 0.0) | {"thread": 0}
    unless_given |= dict.fromkeys(("peer", "tag", "comm", "completion"), -1)
    columns: dict[str, list[Any]] = {
        name: [row.get(name, usual) for row in rows] for name, usual in unless_given.items()
    }
    columns |= {name: [] for name in ("rank", "start_s", "duration_s", "kind", "name")}
    for row in rows:
        rank = row["rank"]
        seen[rank] = seen.get(rank, 0.0) + 1.0
        columns["rank"].append(rank)
        columns["start_s"].append(row.get("start_s", seen[rank]))
        columns["duration_s"].append(row.get("duration_s", 0.0))
        columns["kind"].append(MPI if row["name"].startswith("MPI_") else KERNEL)
        columns["name"].append(names.index(row["name"]))
    ranks = 1 + max(row["rank"] for row in rows)
    arrays = {name: np.array(values) for name, values in columns.items()}
    write_trace(trace_of_columns(arrays, names, {"source": "recording", "ranks": ranks} | metadata), path)
    return path


def call(rank: int, name: str, peer: int = -1, size_bytes: float = 0.0, tag: int = 0, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "name": f"MPI_{name}", "peer": peer, "size_bytes": size_bytes, "tag": tag, **more}

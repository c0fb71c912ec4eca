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


def write(path: Path, rows: Sequence[dict[str, Any]], **metadata: Any) -> Path:
    """A recording of these rows: of a rank in their order, each a second after the one before unless it has a start."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    seen: dict[int, float] = {}
    columns: dict[str, list[Any]] = {name: [] for name in ("rank", "start_s", "duration_s", "kind", "name")}
    for name in ("m", "n", "k", "size_bytes", "peer", "tag", "comm", "completion", "thread"):
        columns[name] = []
    for row in rows:
        rank = row["rank"]
        seen[rank] = seen.get(rank, 0.0) + 1.0
        columns["rank"].append(rank)
        columns["start_s"].append(row.get("start_s", seen[rank]))
        columns["duration_s"].append(row.get("duration_s", 0.0))
        columns["kind"].append(MPI if row["name"].startswith("MPI_") else KERNEL)
        columns["name"].append(names.index(row["name"]))
        for name in ("m", "n", "k", "size_bytes"):
            columns[name].append(row.get(name, 0.0))
        for name in ("peer", "tag", "comm", "completion"):
            columns[name].append(row.get(name, -1))
        columns["thread"].append(row.get("thread", 0))
    ranks = 1 + max(row["rank"] for row in rows)
    arrays = {name: np.array(values) for name, values in columns.items()}
    write_trace(trace_of_columns(arrays, names, {"source": "recording", "ranks": ranks} | metadata), path)
    return path


def call(rank: int, name: str, peer: int = -1, size_bytes: float = 0.0, tag: int = 0, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "name": f"MPI_{name}", "peer": peer, "size_bytes": size_bytes, "tag": tag, **more}

"""Recordings of applications whose rules and costs are known: what a program of these calls would have left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lepaute.simulate.apps.own import Application
from lepaute.simulate.apps.own.laying import Laying
from lepaute.simulate.apps.own.rank import ANY
from lepaute.simulate.apps.own.values import costs_of
from lepaute.simulate.trace import Trace, write_trace
from lepaute.simulate.trace.table import MPI, trace_of_columns

NAMES = {
    "send": "MPI_Send",
    "isend": "MPI_Isend",
    "receive": "MPI_Recv",
    "irecv": "MPI_Irecv",
    "waitall": "MPI_Waitall",
}
CALL_S = 1e-6


def record(application: Application, path: Path, noise: float = 0.0, seed: int = 1, sites: bool = False) -> Path:
    """Writes the recording of an application; costs vary by a half-normal noise. A split is an allgather of 8 bytes."""
    write_trace(recording_of(application, noise, seed, sites), path)
    return path


def recording_of(application: Application, noise: float, seed: int, sites: bool) -> Trace:
    laying = Laying(application, 1)
    laying.lay()
    ops, lists, groups, texts = laying.listed()
    costs, random = {at: cost[1] for at, cost in enumerate(costs_of(application))}, np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {
        name: [] for name in "rank name start_s size_bytes peer tag comm completion site".split()
    }
    names: list[str] = []
    places = sorted(set(texts.values()))
    for track in laying.tracks:
        now_s, waits = 0.0, 0
        open_requests: dict[int, int] = {}
        for code, peer, tag, which, size, units, place in _calls(track, ops):
            if code == "compute":
                now_s += costs[which] * units * (1.0 + noise * abs(random.standard_normal()))
                continue
            group = groups[which] if code not in NAMES and code != "exchange" else ()
            for name, *values in _rows(
                code, peer, tag, size, lists[which] if code in ("exchange", "waitall") else ((), ()), group
            ):
                row = len(rows["rank"])
                completion, comm = -1, which if group else 0
                if name.startswith("MPI_I"):
                    open_requests[tag - 1 if group else which if code != "exchange" else -row - 1] = row
                elif name == "MPI_Waitall":
                    waits += 1
                    completion = waits
                    of = lists[which][0] if code == "waitall" else [key for key in open_requests if key < 0]
                    for request in of:
                        rows["completion"][open_requests.pop(request)] = waits
                if name not in names:
                    names.append(name)
                site = places.index(texts[place]) if sites else -1
                row_values = (track.rank, names.index(name), now_s, *values, comm, completion, site)
                for column, value in zip(rows, row_values, strict=True):
                    rows[column].append(value)
                now_s += CALL_S
    columns = {name: np.array(values) for name, values in rows.items()}
    columns |= {"kind": np.full(len(columns["rank"]), MPI), "duration_s": np.full(len(columns["rank"]), CALL_S)}
    known = {"sites": places} if sites else {}
    metadata = {"source": "recording", "application": "known", "ranks": application.ranks, "whole": True, **known}
    return trace_of_columns(columns, names, metadata)


def _calls(track: Any, ops: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for first, count, times in track.parts:
        for _ in range(times):
            for number in track.ops[first : first + count]:
                code, _, peer, tag, which, m, n, _, place = ops[number]
                if code != "step":
                    yield code, -1 if peer == ANY else peer, -1 if tag == ANY else tag, which, m, n, place


def _rows(
    code: str, peer: int, tag: int, size: float, listed: Any, group: tuple[int, ...]
) -> Iterator[tuple[Any, ...]]:
    """Name, bytes, peer and tag of the rows of a call."""
    if code == "exchange":
        yield from (("MPI_Irecv", size_bytes, rank, tag) for rank, size_bytes in zip(*listed, strict=True))
        yield from (("MPI_Isend", size_bytes, rank, tag) for rank, size_bytes in zip(*listed, strict=True))
        yield "MPI_Waitall", 0.0, -1, -1
    elif code in NAMES:
        yield NAMES[code], size, peer, tag
    elif code == "allgather" and size == 8.0:
        yield "MPI_Comm_split", 0.0, -1, -1
    else:
        amount = size * len(group) if code.startswith("alltoall") else size
        rooted = code in ("bcast", "reduce", "gather", "scatter")
        name = f"{code}_block" if code == "reduce_scatter" else code
        yield f"MPI_{f'i{name}'.capitalize() if tag else name.capitalize()}", amount, group[peer] if rooted else -1, -1

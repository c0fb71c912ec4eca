"""Archives whose factors are known: calibrations of nodes with two processors, and experiments with monitoring."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.measure.archive import ArchiveWriter

#: Two processors of two cores; thread 0 and 2 are of the first.
LAYOUT = {"source": "hwloc", "pu": [0, 1, 2, 3], "socket": [0, 1, 0, 1], "numa": [0, 1, 0, 1], "l3": [0, 1, 0, 1]}
#: Seconds per mnk of a core of each processor, and what a call costs besides.
RATE_S, CALL_S = {0: 4e-11, 1: 5e-11}, 2e-6
START = "2026-11-21T09:14:33+00:00"
START_S = 1_795_252_473.0  # the same in seconds since the epoch
SIZES = [(m, n, k) for m in (64, 256, 2048) for n in (128, 2048) for k in (64, 300, 2048)]


def machine(
    blas: str = "OpenBLAS 0.3.21 DYNAMIC_ARCH SkylakeX MAX_THREADS=64", core: str = "SkylakeX"
) -> dict[str, Any]:
    return {
        "machine": "m", "cores": [0, 1, 2, 3], "cpus": [0, 1, 2, 3], "node_cores": 4, "cpu_model": "made up",
        "memory_bytes": 8 << 30, "mpi": "Open MPI 4.1.4", "layout": LAYOUT,
        "blas": {"library": "openblas", "core": core, "config": blas, "coretype_env": None, "dgemm_gflops": 50.0},
    }  # fmt: skip


def dgemm_rows(
    nodes: Sequence[str] = ("n1", "n2"),
    sizes: Sequence[tuple[int, int, int]] = SIZES,
    *,
    slower: Mapping[tuple[str, int], float] = {},
    noise: float = 0.0,
    attempts: int = 1,
    seed: int = 1,
    **columns: Any,
) -> pandas.DataFrame:
    """The rows of the probe dgemm on all cores at once; each core makes a call of each size.

    slower : factor of the durations by (node, processor)
    attempts : the earlier ones took twice as long and are marked as disturbed
    """
    rng = np.random.default_rng(seed)
    m, n, k = np.array(sizes, np.float64).T
    parts = []
    for node in nodes:
        for core, socket in enumerate(LAYOUT["socket"]):
            clock_s = 100.0
            for attempt in range(attempts):
                early = attempt < attempts - 1
                order = rng.permutation(len(sizes))
                mean = (RATE_S[socket] * m * n * k + CALL_S) * slower.get((node, socket), 1.0) * (2.0 if early else 1.0)
                duration = (mean * (1 + noise * rng.normal(size=len(sizes))))[order]
                start = clock_s + np.concatenate([[0.0], np.cumsum(duration + 1e-5)[:-1]])
                clock_s = start[-1] + duration[-1] + 1.0
                parts.append(
                    pandas.DataFrame(
                        {
                            "design_row": np.arange(len(sizes)), "kind": "dgemm", "position": 0, "kernel": "dgemm",
                            "m": m[order].astype(int), "n": n[order].astype(int), "k": k[order].astype(int),
                            "start_s": start, "duration_s": duration, "rank": core, "cpu": core, "pu": core, "block": 0,
                            "attempt": attempt, "disturbed": early, "host": node, "probe": "dgemm", "active_cores": 4,
                            "active_socket_cores": 2, "threads": 1, "clock_cost_s": 0.0,
                        }
                    ).assign(**columns)
                )  # fmt: skip
    return pandas.concat(parts, ignore_index=True)


def metadata(kind: str, nodes: Iterable[str], duration_s: float | None = 600.0, **changed: Any) -> dict[str, Any]:
    names = list(nodes)
    return {
        "kind": kind, "name": "Daily", "created": START, "lepaute_version": "0.1.0", "run_id": "r", "nodes": names,
        "host": ",".join(names), "seed": 1, "parameters": {}, "scheduler": {"name": "ssh"}, "status": "complete",
        "partial": False, "failure": None, "lost_nodes": [], "warnings": [],
        "phases": [
            {"name": "acquire", "start": "2026-11-21T07:00:00+00:00", "duration_s": 8000.0, "status": "done"},
            {"name": "run", "start": START, "duration_s": duration_s, "status": "done"},
        ],
        "settings": {"control": {}, "monitor_period_s": 5.0, "warm_up_s": 0.0},
        **changed,
    }  # fmt: skip


def calibration(
    path: Path,
    kernels: pandas.DataFrame | None = None,
    nodes: Sequence[str] = ("n1", "n2"),
    *,
    tables: Mapping[str, pandas.DataFrame] = {},
    monitoring: Mapping[str, pandas.DataFrame] = {},
    variables: Mapping[str, str] = {},
    **changed: Any,
) -> Path:
    """A calibration of nodes with two processors; `changed` are keys of the metadata."""
    about = metadata("calibration", nodes, machines={node: machine() for node in nodes}, quick=True, threads=[1])
    with ArchiveWriter(path, about | changed) as archive:
        archive.add_table("observations/kernels.parquet", dgemm_rows(nodes) if kernels is None else kernels)
        for name, table in tables.items():
            archive.add_table(f"observations/{name}.parquet", table)
        for node in nodes:
            archive.add_bytes(f"environment/{node}/variables.json", json.dumps({"values": dict(variables)}).encode())
        for node, table in monitoring.items():
            archive.add_table(f"monitoring/{node}.parquet", table)
    return path


def experiment(
    path: Path,
    tables: Mapping[str, pandas.DataFrame] = {},
    nodes: Sequence[str] = ("n1",),
    *,
    design: str | None = None,
    script: str = "import lepaute\n",
    monitoring: Mapping[str, pandas.DataFrame] = {},
    environment: Mapping[str, str] = {},
    **changed: Any,
) -> Path:
    """An experiment of one's own; environment: files of every node."""
    duration_s = changed.pop("duration_s", 600.0)
    with ArchiveWriter(path, metadata("experiment", nodes, duration_s) | changed) as archive:
        archive.add_bytes("experiment/daily.py", script.encode())
        if design is not None:
            archive.add_bytes("design.csv", design.encode())
        for name, table in tables.items():
            archive.add_table(f"observations/{name}.parquet", table)
        for node in nodes:
            for file, text in {"lstopo.xml": lstopo(), **environment}.items():
                archive.add_bytes(f"environment/{node}/{file}", text.encode())
        for node, table in monitoring.items():
            archive.add_table(f"monitoring/{node}.parquet", table)
    return path


def lstopo(sockets: Sequence[Sequence[int]] = ((0, 2), (1, 3))) -> str:
    """hwloc's document of a node whose processors have these hardware threads."""
    packages = "".join(
        f'<object type="Package" os_index="{number}">'
        + "".join(f'<object type="Core"><object type="PU" os_index="{pu}"/></object>' for pu in pus)
        + "</object>"
        for number, pus in enumerate(sockets)
    )
    return f'<?xml version="1.0"?><topology version="2.0"><object type="Machine">{packages}</object></topology>'


def samples(
    duration_s: float = 600.0, period_s: float = 5.0, offset_s: float = 0.0, **columns: Any
) -> pandas.DataFrame:
    """Samples of a monitor from 60 s before the run to its end; columns: values, or functions of seconds since then."""
    since = np.arange(-60.0, duration_s, period_s)
    made = {name: value(since) if callable(value) else value for name, value in columns.items()}
    return pandas.DataFrame({"time_s": START_S + offset_s + since, "monotonic_s": 1000.0 + since, **made})

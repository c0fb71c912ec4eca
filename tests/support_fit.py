"""Archives of made-up observations, as a calibration writes them, for tests of fits and of what is told of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.measure.archive import ArchiveWriter

Change = Callable[[pandas.DataFrame], pandas.DataFrame]


def kernel_rows(
    processes: int = 10, calls: int = 300, *, kernels: tuple[str, ...] = ("dgemm",), seed: int = 1, gap_s: float = 0.5
) -> pandas.DataFrame:
    """Calls of `processes` processes, two a block, one after the other on cores 0 and 1, in the order of time.

    Durations are those of a polynomial, times 1 + 0.05 |normal|.
    """
    rng = np.random.default_rng(seed)
    frames, clock_s = [], 100.0
    for process in range(processes):
        m, n = np.floor(10 ** rng.uniform(1, 3, (2, calls)))
        kernel = np.array(kernels)[rng.integers(0, len(kernels), calls)]
        duration = (2.5e-11 * m * n * 128 + 1e-6) * (1 + 0.05 * np.abs(rng.normal(size=calls)))
        start = clock_s + np.concatenate([[0.0], np.cumsum(duration + 1e-7)[:-1]])
        clock_s = start[-1] + duration[-1] + gap_s
        frames.append(
            pandas.DataFrame(
                {
                    "design_row": np.arange(calls), "kind": "hpl_step", "position": 1, "kernel": kernel,
                    "m": m.astype(int), "n": n.astype(int), "k": 128, "start_s": start, "duration_s": duration,
                    "rank": 0, "cpu": process % 2, "block": process // 2, "attempt": 0, "disturbed": False,
                    "host": "here", "probe": "hpl_steps_1x1", "clock_cost_s": 0.0,
                }
            )
        )  # fmt: skip
    return pandas.concat(frames, ignore_index=True)


def message_rows(blocks: int = 5, seed: int = 2) -> pandas.DataFrame:
    """Operations between two ranks, in the order of time."""
    rng = np.random.default_rng(seed)
    frames, clock_s = [], 50.0
    for block in range(blocks):
        operation = rng.permutation(np.repeat(["pingpong", "recv", "isend", "exchange"], 60))
        factor = np.array([{"pingpong": 2.0, "recv": 0.5, "isend": 0.3, "exchange": 1.3}[name] for name in operation])
        size = np.floor(10 ** rng.uniform(0, 7, len(operation)))
        duration = factor * (1e-6 + size / 8e9) * (1 + 0.1 * np.abs(rng.normal(size=len(size))))
        start = clock_s + np.concatenate([[0.0], np.cumsum(duration + 1e-5)[:-1]])
        clock_s = start[-1] + duration[-1] + 10.0
        frames.append(
            pandas.DataFrame(
                {
                    "design_row": np.arange(len(size)), "operation": operation, "size_bytes": size.astype(int),
                    "start_s": start, "duration_s": duration, "rank": 0, "cpu": 0, "block": block, "attempt": 0,
                    "disturbed": False, "host": "here", "link": "local", "peer": "here", "clock_cost_s": 0.0,
                }
            )
        )  # fmt: skip
    return pandas.concat(frames, ignore_index=True)


def sentinel_rows(
    level: "np.typing.ArrayLike", *, error: float = 0.003, period_s: float = 4.0, start_s: float = 1e9, seed: int = 3
) -> pandas.DataFrame:
    """Sentinels of 20 calls on two cores, `period_s` apart in five blocks; level: by how much each is slower."""
    rng = np.random.default_rng(seed)
    frames = []
    for order, factor in enumerate(np.asarray(level, dtype=np.float64)):
        for cpu in (0, 1):
            # One call of twenty is interrupted.
            call = 5e-3 * (1 + factor + error * rng.normal()) * (1 + 0.01 * np.abs(rng.normal(size=20)))
            call[rng.integers(0, 20)] *= 3.0
            begin = order * period_s + np.concatenate([[0.0], np.cumsum(call)[:-1]])
            frames.append(
                pandas.DataFrame(
                    {
                        "design_row": np.arange(20), "kind": "dgemm", "position": 0, "kernel": "dgemm", "m": 1024,
                        "n": 1024, "k": 128, "start_s": 100.0 + begin, "duration_s": call, "rank": cpu, "cpu": cpu,
                        "block": order * 5 // len(level), "attempt": 0, "disturbed": False, "host": "here",
                        "probe": "sentinel", "clock_cost_s": 0.0, "order": order,
                        "started_s": start_s + order * period_s,
                    }
                )
            )  # fmt: skip
    return pandas.concat(frames, ignore_index=True)


#: What is known of a node of two cores.
MACHINE: dict[str, Any] = {"cpu_model": "made up", "node_cores": 2, "cores": [0, 1], "blas": {"core": "Haswell"}}
#: Seconds for a product and a sum, of each core of two nodes.
RATES = {("n1", 0): 2.0e-11, ("n1", 1): 2.2e-11, ("n2", 0): 3.0e-11, ("n2", 1): 3.3e-11}
INTERCEPT_S, GAMMA = 1e-6, 0.05  # the noise's sd over the mean


def kernels_of_two_nodes(
    day: float = 1.0, rows: int = 4000, blocks: int = 5, slower_a_block: float = 0.0
) -> pandas.DataFrame:
    """dgemm of all cores on a day that makes all slower by that factor, and each block by as much more."""
    rng = np.random.default_rng(7)
    m, n = np.floor(10 ** rng.uniform(1.5, 3.0, (2, rows))).astype(int)
    host, cpu, block = rng.choice(["n1", "n2"], rows), rng.integers(0, 2, rows), rng.integers(0, blocks, rows)
    rate = np.array([RATES[name, number] for name, number in zip(host, cpu, strict=True)])
    noise = (np.abs(rng.normal(size=rows)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration = rate * day * (1 + slower_a_block * block) * m * n * 128 * (1 + GAMMA * noise) + INTERCEPT_S
    columns = {"design_row": 0, "kind": "hpl_step", "position": 1, "kernel": "dgemm", "m": m, "n": n, "k": 128}
    columns |= {"start_s": np.cumsum(duration), "duration_s": duration, "rank": 0, "cpu": cpu, "host": host}
    columns |= {"block": block, "attempt": 0, "disturbed": False, "probe": "hpl_steps_1x1"}
    return pandas.DataFrame({**columns, "clock_cost_s": 0.0})


def write_calibration(
    path: Path,
    kernels: pandas.DataFrame | None = None,
    messages: pandas.DataFrame | None = None,
    sentinels: pandas.DataFrame | None = None,
    ring: pandas.DataFrame | None = None,
    lists: dict[str, list[Any]] | None = None,
    **metadata: Any,
) -> Path:
    """An archive of these tables, or of those above; without sentinels and a ring unless given."""
    about = {
        "kind": "calibration", "created": "2026-11-21T00:00:00+00:00", "lepaute_version": "0", "host": "here",
        "cores": [0, 1], "node_cores": 2, "cpu_model": "made up", "memory_bytes": 8 << 30,
        "blas": {"core": "Haswell", "coretype_env": None}, "blocks": 5, "nb": 128, "warnings": [], "seed": 1, "mpi": {},
    }  # fmt: skip
    with ArchiveWriter(path, about | metadata) as archive:
        archive.add_table("observations/kernels.parquet", kernel_rows() if kernels is None else kernels)
        archive.add_table("observations/p2p.parquet", message_rows() if messages is None else messages)
        for name, table in {"sentinels": sentinels, "ring": ring}.items():
            if table is not None:
                archive.add_table(f"observations/{name}.parquet", table)
        for name, entries in (lists or {}).items():
            archive.add_list(name, entries)
    return path

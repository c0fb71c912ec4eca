"""What it takes to lay down and replay a long recording: seconds of CPU time, and memory.

    PYTHONPATH=src .venv/bin/python benchmarks/replay_memory.py --millions 10 [--ranks 64] [--no-run]

The recording is of ranks in a ring: nonblocking messages to both neighbours, a wait, an allreduce now and then.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lepaute as lp
from lepaute.simulate.apps.replay import TraceReplay
from lepaute.simulate.trace.table import FORMAT, KEY

#: Of one turn: irecv, irecv, isend, isend, waitall; after each tenth an allreduce.
TURN = ("MPI_Irecv", "MPI_Irecv", "MPI_Isend", "MPI_Isend", "MPI_Waitall")
NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce")


def columns_of(rank: int, ranks: int, turns: int) -> dict[str, np.ndarray]:
    """All calls of one rank."""
    left, right = (rank - 1) % ranks, (rank + 1) % ranks
    block = [NAMES.index(name) for name in TURN] * 10 + [NAMES.index("MPI_Allreduce")]
    peers = [left, right, right, left, -1] * 10 + [-1]
    tags = [1, 2, 1, 2, -1] * 10 + [-1]
    waits = [at // 5 * 5 + 4 for at in range(50)] + [-1]
    name, peer, tag, wait = (np.tile(np.array(each), turns // 10) for each in (block, peers, tags, waits))
    at = np.arange(len(name)) // len(block) * len(block)
    draws = np.random.default_rng(rank)
    gaps = np.round(draws.exponential(1e-5, len(name)), 9) + 1e-6
    return {
        "rank": np.full(len(name), rank, "int32"),
        "name": name.astype("int32"),
        "start_s": np.cumsum(gaps) + np.arange(len(name)) * 1e-6,
        "duration_s": np.full(len(name), 1e-6),
        "size_bytes": np.where(name == 3, 8.0, np.where(tag >= 0, 4096.0, 8192.0)),
        "peer": peer.astype("int32"),
        "tag": tag.astype("int64"),
        "comm": np.where(name == 3, 0, -1).astype("int32"),
        "completion": np.where(wait >= 0, at + wait, -1).astype("int32"),
    }


def write(path: Path, ranks: int, calls: int) -> int:
    """A recording of about so many calls; how many they are."""
    turns = max(10, round(calls / ranks / 5.1) // 10 * 10)
    text = json.dumps({"source": "recording", "ranks": ranks, "format": FORMAT, "application": "ring"})
    writer, rows = None, 0
    for rank in range(ranks):
        columns = columns_of(rank, ranks, turns)
        rows += len(columns["rank"])
        arrays = {name: pa.array(values) for name, values in columns.items()}
        arrays["name"] = pa.DictionaryArray.from_arrays(arrays["name"], pa.array(NAMES))
        kind = pa.array(np.zeros(len(columns["rank"]), "int32"))
        arrays["kind"] = pa.DictionaryArray.from_arrays(kind, pa.array(["mpi"]))
        table = pa.table(arrays).replace_schema_metadata({KEY: text.encode()})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return rows


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(path: Path, *, runs: bool) -> dict[str, float]:
    """Seconds of CPU time and the largest memory after each step."""
    found: dict[str, float] = {"imported_bytes": peak_bytes()}
    began_s = time.process_time()
    replay = TraceReplay(path, own_code=(1.0, 1.0))
    found["calls"] = replay.on().recording.survey.rows
    found |= {"survey_s": time.process_time() - began_s, "survey_bytes": peak_bytes()}
    began_s = time.process_time()
    replay.on(lp.load_platform("dahu")).laid()
    found |= {"laid_s": time.process_time() - began_s, "laid_bytes": peak_bytes()}
    if runs:
        began_s = time.process_time()
        lp.predict(replay, "dahu", runs=1, layers=lp.Layers.only())
        found |= {"run_s": time.process_time() - began_s, "run_bytes": peak_bytes()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=10.0)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--trace", type=Path, help="measured in a process of its own")
    options = parser.parse_args()
    if options.trace:
        print(json.dumps(measure(options.trace, runs=not options.no_run)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ring.parquet"
        calls = write(path, options.ranks, int(options.millions * 1e6))
        words = [sys.executable, __file__, "--trace", str(path), *(["--no-run"] if options.no_run else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        print(f"{calls} calls of {options.ranks} ranks, {path.stat().st_size / 1e6:.0f} MB")
        for name, value in json.loads(done.stdout.splitlines()[-1]).items():
            print(f"{name:16} {value / 1e6:12.1f} MB" if name.endswith("_bytes") else f"{name:16} {value:12.1f}")


if __name__ == "__main__":
    main()

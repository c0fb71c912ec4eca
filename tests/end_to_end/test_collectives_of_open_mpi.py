"""Messages of collective operations of Open MPI 4.1, as its pml/monitoring counts them, and those of a replay."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from oracles.replays import NOTHING, call, write

import lepaute as lp
from lepaute.kit.mpi_library import find_library

pytestmark = [pytest.mark.machine, pytest.mark.slow]
SOURCE = Path(__file__).parents[2] / "validation" / "collectives.c"
ROOTED = ("Bcast", "Reduce", "Gather", "Scatter")
LINE = re.compile(r"^I\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs", re.MULTILINE)
#: Whose bytes are those of all blocks together. Its largest linear exchanges are persistent, and not counted.
OF_ALL = ("Alltoall", "Reduce_scatter")


@pytest.mark.parametrize("name", ["Barrier", "Allreduce", "Allgather", "Allgatherv", *ROOTED, *OF_ALL])
def test_the_library_sends_what_a_replay_sends(name: str, tmp_path: Path) -> None:
    try:
        library = find_library("openmpi")
    except Exception as problem:  # noqa: BLE001 - whatever is missing, there is nothing to test
        pytest.skip(f"no Open MPI here: {problem}")
    if library.launcher is None or not library.launcher.version.startswith("4.1"):
        pytest.skip(f"other rules: {library.launcher}")
    library.compile([str(SOURCE), "-o", str(tmp_path / "collectives")], what="building collectives.c")
    for ranks, size in ((3, 8), (5, 1024), (6, 40_000), (8, 65536)):
        counts = {"enable": "2", "enable_output": "3", "filename": str(tmp_path / f"{ranks}")}
        counted = {f"OMPI_MCA_pml_monitoring_{key}": value for key, value in counts.items()}
        start = library.launcher.start(ranks, use_scheduler=False)
        command = [*start.argv, str(tmp_path / "collectives"), name.lower(), str(size)]
        subprocess.run(command, check=True, env={**os.environ, **start.environment, **counted}, timeout=60)
        real, real_bytes = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for file in tmp_path.glob(f"{ranks}.*.prof"):
            for source, target, size_bytes, messages in LINE.findall(file.read_text()):
                if source != target:
                    real[int(source), int(target)] += int(messages)
                    real_bytes[int(source), int(target)] += int(size_bytes)
        amount = 0.0 if name == "Barrier" else float(size * (ranks if name in OF_ALL else 1))
        peer = 0 if name in ROOTED else -1
        rows = [call(rank, name, comm=0, size_bytes=amount, peer=peer) for rank in range(ranks)]
        path = write(tmp_path / "run.parquet", rows, mpi=f"Open MPI {library.launcher.version}")
        trace = lp.predict(lp.TraceReplay(path), "dahu", runs=1, layers=NOTHING, trace=lp.TraceRequest()).trace
        sent, sent_bytes = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for row in trace.named({"MPI_Send", "MPI_Isend"}).nonzero()[0]:
            sent[int(trace.rank[row]), int(trace.peer[row])] += 1
            sent_bytes[int(trace.rank[row]), int(trace.peer[row])] += round(float(trace.size_bytes[row]))
        assert sent == real, (ranks, size)
        assert sent_bytes == pytest.approx(real_bytes, abs=16)  # blocks are of whole elements

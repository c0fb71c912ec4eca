"""What `lepaute record` costs: nanoseconds a call, and per cent of a real HPL.

    .venv/bin/python benchmarks/record_overhead.py [--pairs 15] [--n 1000,2000,4000] [--grids 1x1,2x1,1x2]

A call: programs that make many calls that do next to nothing, with the recorder and without, best batch of forty.
HPL: the same program with the recorder and without, in turn; the median over the pairs of the relative difference of
what the solver took, with its 95 % interval from the ranks of the sorted differences. On a grid of 1x1 that is CPU
time, which other load on the machine hardly touches; on more ranks it is wall time, and wants a quiet machine. Fails
where a recording does not hold as many calls as were made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from lepaute.kit.mpi_launcher import find_launcher
from lepaute.kit.mpi_library import find_library
from lepaute.kit.quantities import grid_of
from lepaute.measure.record import FOLDER_VARIABLE, build_recorded_hpl, build_recorder
from lepaute.measure.record_file import read_rank
from lepaute.measure.verify.real_run import hpl_input_text
from lepaute.simulate import Hpl

BATCHES, CALLS = 40, 5000
MESSAGE, FREED = "MPI_Irecv, MPI_Send, MPI_Wait, mean", "MPI_Isend, MPI_Request_free, MPI_Recv, mean, after 100,000"
LIMIT_S = 120


def run(program: Path, ranks: int, library: Path | None, folder: Path) -> str:
    """Standard output of one run, with the recorder where a library is given."""
    raw = folder / "raw"
    raw.mkdir(exist_ok=True)
    for old in raw.glob("*.rec"):
        old.unlink()
    variables = {} if library is None else {"LD_PRELOAD": str(library), FOLDER_VARIABLE: str(raw)}
    argv = find_launcher().command(["mpirun", "--oversubscribe", "-np", str(ranks), str(program)], variables)
    consent = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        argv, cwd=folder, env={**os.environ, **consent}, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    return done.stdout


def cost_of_calls(mpicc: Path, library: Path, folder: Path) -> None:
    """Prints what a call costs without the recorder and with it."""
    program = folder / "calls"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([mpicc, "-O2", source, "-o", program, "-lopenblas"], check=True, timeout=LIMIT_S)
    without = [json.loads(run(program, 1, None, folder)) for _ in range(3)]
    with_it = [json.loads(run(program, 1, library, folder)) for _ in range(3)]
    rows = read_rank(folder / "raw/rank-0.rec").rows["code"]
    # Successive probes are one row; of each batch a BLAS call and three MPI calls are left.
    if len(rows) < 4 * BATCHES * CALLS:
        sys.exit(f"the recording holds {len(rows)} calls, made were more than {4 * BATCHES * CALLS}")
    print("| call | alone | recorded | cost |\n|---|---|---|---|")
    for name, label in (("blas", "BLAS"), ("probe", "MPI_Iprobe"), ("message", MESSAGE), ("freed", FREED)):
        bare, loaded = (min(one[name] for one in runs) for runs in (without, with_it))
        print(f"| {label} | {bare:.0f} ns | {loaded:.0f} ns | {loaded - bare:.0f} ns |")


def cost_of_hpl(program: Path, library: Path, folder: Path, n: int, p: int, q: int, pairs: int) -> None:
    """Prints what a recorded HPL takes longer."""
    (folder / "hpccinf.txt").write_text(hpl_input_text(Hpl(n=n, nb=128, p=p, q=q), to_stdout=False))

    def solver_s(with_library: Path | None) -> float:
        output = run(program, p * q, with_library, folder)
        told = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        return float(told["ranks"][0]["cpu_s"] if p * q == 1 else told["time_s"])

    relative, bare_s, calls = [], [], 0
    for pair in range(pairs):
        first = library if pair % 2 else None
        times = {first: solver_s(first)}
        second = None if pair % 2 else library
        times[second] = solver_s(second)
        if second is not None:
            calls = len(read_rank(folder / "raw/rank-0.rec").rows)
        bare_s.append(times[None])
        relative.append(times[library] / times[None] - 1)
    relative.sort()
    # Of the binomial(pairs, 1/2): the ranks between which the median lies with 95 % probability.
    reach = round(0.98 * pairs**0.5)
    low, high = relative[max(0, pairs // 2 - reach)], relative[min(pairs - 1, pairs // 2 + reach)]
    print(
        f"| {n} | {p} x {q} | {1e3 * median(bare_s):.1f} ms | {calls} | {100 * median(relative):+.1f} % "
        f"({100 * low:+.1f} to {100 * high:+.1f}) |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--n", default="1000,2000,4000")
    parser.add_argument("--grids", default="1x1,2x1,1x2")
    arguments = parser.parse_args()
    mpi = find_library()
    library, program = build_recorder(mpi), build_recorded_hpl(mpi)
    with tempfile.TemporaryDirectory(prefix="lepaute-bench-") as temporary:
        folder = Path(temporary)
        cost_of_calls(mpi.mpicc, library, folder)
        print("\n| N | grid | solver | calls of a rank | recorded takes longer (median, 95 %) |\n|---|---|---|---|---|")
        for n in map(int, arguments.n.split(",")):
            for grid in arguments.grids.split(","):
                p, q = grid_of(grid)
                cost_of_hpl(program, library, folder, n, p, q, arguments.pairs)


if __name__ == "__main__":
    main()

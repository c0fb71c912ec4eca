"""Counts what the real HPL does, for the tests of the simulated one: writes tests/data/hpl_counts.csv.gz.

    .venv/bin/python scripts/record_hpl_counts.py [--output tests/data] [--only NAME]

Needs mpicc, mpirun, OpenBLAS and Debian's source of HPL (`lepaute doctor` tells). Runs the real program on grids of 2
to 8 processes with all broadcasts, swaps, depths, forms of L1 and U and panel factorisations, and writes

- hpl_counts.csv.gz: one row a run; its parameters; per phase and rank the messages sent and their bytes; calls and
  work (sum of m n k, m n or n) of each kernel over all ranks;
- hpl_pivots.csv: the pivots (global rows, by column) of the matrix of each order. HPL's matrix depends on its order
  alone, so that a simulation with these pivots swaps the very rows.

The swap, its threshold, the equilibration and the forms of L1 and U are one a process: HPL keeps those of its first
run.
"""

import argparse
import csv
import gzip
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.errors import LepauteError
from lepaute.kit.command import run_command
from lepaute.kit.mpi_launcher import find_launcher
from lepaute.measure.hpl_source import build_hpl, hpl_include_flags
from lepaute.measure.toolchain import find_toolchain

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "scripts" / "hpl_counts.c"
PHASES = ("pivots", "broadcast", "swap", "solve")
WRAPPED_BESIDES = ("cblas_idamax", "HPL_pdmxswp", "HPL_pdfact", "HPL_pdgesv")
ONE_ROW = tuple((1, q) for q in range(2, 9))
ONE_COLUMN = tuple((p, 1) for p in range(2, 9))
BOTH = ((2, 2), (2, 3), (3, 2), (2, 4), (4, 2))
GRIDS = ONE_ROW + ONE_COLUMN + BOTH
MAX_VALUES = 20  # of one parameter in an input file of HPL
COLUMNS = (
    *("series", "n", "nb", "p", "q", "pmap", "depth", "bcast", "swap", "swap_threshold", "l1", "u", "equil", "align"),
    *("pfact", "rfact", "nbmin", "ndiv", *(f"sent_{phase}" for phase in PHASES), "kernels"),
)


@dataclass(frozen=True)
class Series:
    """All combinations of these values, in one process. Codes are those of HPL.dat."""

    name: str
    n: Sequence[int] = (200,)
    nb: Sequence[int] = (24,)
    grids: Sequence[tuple[int, int]] = GRIDS
    pfact: Sequence[int] = (1,)
    nbmin: Sequence[int] = (2,)
    ndiv: Sequence[int] = (2,)
    rfact: Sequence[int] = (2,)
    bcast: Sequence[int] = (2,)
    depth: Sequence[int] = (0, 1)
    pmap: int = 0
    swap: int = 0
    swap_threshold: int = 24
    l1: int = 0
    u: int = 0
    equil: int = 1
    align: int = 8

    def input_text(self) -> str:
        """HPL's input file; its report goes to a file, and no residual is checked."""
        lists: list[list[Any]] = [
            [self.n],
            [self.nb],
            [self.pmap],
            [[p for p, _ in self.grids], [q for _, q in self.grids]],
            [-1.0],
            *([values] for values in (self.pfact, self.nbmin, self.ndiv, self.rfact, self.bcast, self.depth)),
            *([value] for value in (self.swap, self.swap_threshold, self.l1, self.u, self.equil, self.align)),
        ]
        lines = ["HPL input file", "counting", "HPL.out", "8"]
        for group in lists:
            if isinstance(group[0], int | float):
                lines.append(str(group[0]))
            else:
                lines.append(str(len(group[0])))
                lines += [" ".join(map(str, values)) for values in group]
        return "\n".join(lines) + "\n"


def all_series() -> Iterator[Series]:
    """What is recorded. Orders that NB divides and others; fewer blocks than processes, and more."""
    yield Series("broadcasts", grids=ONE_ROW + BOTH, bcast=range(6), depth=(0, 1, 2))
    yield Series("columns", n=(192, 205), grids=ONE_COLUMN, depth=(0,))
    yield Series("depths", n=(65,), grids=((1, 2), (1, 3), (2, 2), (3, 2)), bcast=(2, 5), depth=(2, 3, 4, 5))
    for equil in (0, 1):
        yield Series(f"spread-roll-{equil}", grids=ONE_COLUMN + BOTH, swap=1, equil=equil)
    yield Series("rolls-and-long", grids=((2, 3), (3, 2), (4, 2), (2, 4)), bcast=(0, 4, 5), depth=(0, 1, 2), swap=1)
    yield Series("rolls-unlevel", n=(67, 111, 131, 146, 151), nb=(9, 11, 19), grids=ONE_COLUMN[1:], swap=1, depth=(0,))
    yield Series("mix", grids=ONE_COLUMN + BOTH, swap=2, swap_threshold=60)
    for l1, u in ((0, 1), (1, 0), (1, 1)):
        for swap in (0, 1):
            yield Series(f"forms-{l1}{u}-{swap}", grids=(*ONE_COLUMN, *BOTH, (1, 3)), l1=l1, u=u, swap=swap, depth=(0,))
    for l1 in (0, 1):
        yield Series(
            f"factorisations-{l1}",
            nb=(27,),
            grids=((1, 2), (3, 1), (2, 2)),
            pfact=range(3),
            rfact=range(3),
            nbmin=(1, 4),
            ndiv=(2, 3),
            depth=(0,),
            l1=l1,
        )
    for swap in (0, 1):
        yield Series(f"larger-{swap}", n=(500,), nb=(32, 60), grids=((1, 4), (2, 3), (4, 2), (7, 1)), swap=swap)
    yield Series("column-major", grids=BOTH, pmap=1, align=4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "tests" / "data")
    parser.add_argument("--only", help="only the series whose name starts so, printed instead of written")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    pivots: dict[int, list[int]] = {}
    with tempfile.TemporaryDirectory(prefix="hpl-counts-") as folder:
        program = build(Path(folder))
        for series in all_series():
            if options.only and not series.name.startswith(options.only):
                continue
            runs = list(record(program, series, Path(folder)))
            print(f"{series.name}: {len(runs)} runs", file=sys.stderr)
            for run in runs:
                known = pivots.setdefault(run["n"], run["pivots"])
                if known != run["pivots"]:
                    raise LepauteError(f"{series.name}: the pivots of order {run['n']} differ between runs")
                rows.append(row_of(series, run))
    if options.only:
        csv.writer(sys.stdout).writerows([[row[name] for name in COLUMNS] for row in rows])
        return 0
    write(options.output, rows, pivots)
    return 0


def build(folder: Path) -> Path:
    """The counting program, in `folder`."""
    tools = find_toolchain()
    hpl = build_hpl()
    text = SOURCE.read_text()
    wrapped = [line.removeprefix("WRAP(").split(",")[0] for line in text.splitlines() if line.startswith("WRAP(")]
    program = folder / "hpl-counts"
    argv = [str(tools.mpi.mpicc), "-O2", *hpl_include_flags(hpl), str(SOURCE), str(ROOT / "probes" / "hpl_defaults.c")]
    argv += [f"-Wl,--wrap={name}" for name in (*wrapped, *WRAPPED_BESIDES)]
    argv += [str(hpl / "libhpl.a"), *tools.blas_flags, "-lm", "-o", str(program)]
    run_command(argv, what="building the counting HPL", timeout_s=120.0)
    return program


def record(program: Path, series: Series, folder: Path) -> Iterator[dict[str, Any]]:
    """The runs of one series, as the program prints them."""
    (folder / "hpccinf.txt").write_text(series.input_text())
    ranks = max(p * q for p, q in series.grids)
    # More ranks than cores, on purpose: nothing is timed. Ranks that wait give up their core.
    launcher = find_launcher()
    start = launcher.start(ranks)
    environment = {**start.environment, **launcher.tuning({"mpi_yield_when_idle": "1"}), "OPENBLAS_NUM_THREADS": "1"}
    lines = run_to_file([*start.argv, str(program)], folder, environment, f"the runs of {series.name}")
    yield from map(json.loads, lines)


def run_to_file(argv: list[str], folder: Path, environment: dict[str, str], what: str) -> list[str]:
    """Lines that a command prints, however many (run_command keeps the ends of a long output alone)."""
    output = folder / "runs.jsonl"
    script = 'exec "$@" > runs.jsonl'
    run_command(["sh", "-c", script, "sh", *argv], what=what, timeout_s=1200.0, folder=folder, environment=environment)
    return [line for line in output.read_text().splitlines() if line.startswith("{")]


def row_of(series: Series, run: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(series, name) for name in COLUMNS if hasattr(series, name)}
    row |= {name: run[name] for name in COLUMNS if name != "kernels" and name in run}
    row["series"] = series.name
    for index, phase in enumerate(PHASES):  # rank by rank, "messages:bytes"
        pairs = zip(
            run["sent"][2 * index :: 2 * len(PHASES)], run["sent"][2 * index + 1 :: 2 * len(PHASES)], strict=True
        )
        row[f"sent_{phase}"] = " ".join(f"{messages}:{size}" for messages, size in pairs)
    row["kernels"] = " ".join(f"{name}:{calls}:{work}" for name, (calls, work) in run["kernels"].items())
    return row


def write(folder: Path, rows: list[dict[str, Any]], pivots: dict[int, list[int]]) -> None:
    """Both files; the same runs give the same bytes."""
    header = (
        f"#@source=HPL 2.0 of Debian's hpcc source package, {find_launcher()}\n"
        "#@command=python scripts/record_hpl_counts.py\n"
    )
    text = io.StringIO()
    text.write(header)
    text.write("#@sent=messages:bytes of each rank inside HPL_pdgesv\n#@kernels=name:calls:work over all ranks\n")
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    (folder / "hpl_counts.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    lines = [f"{n},{' '.join(map(str, pivots[n]))}\n" for n in sorted(pivots)]
    (folder / "hpl_pivots.csv").write_text(header + "n,pivots\n" + "".join(lines))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LepauteError, subprocess.SubprocessError) as error:
        sys.exit(f"record_hpl_counts: {error}")

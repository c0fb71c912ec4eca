"""Runs of the probes here, as calibrations make them on nodes."""

import csv
from collections.abc import Sequence
from pathlib import Path

from support_limits import HANG_S

from lepaute.kit.command import run_command
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES, Start
from lepaute.measure.design.table import parse_design
from lepaute.measure.plan import DGEMM, P2P, RING, STEPS, STEPS_COLUMN, PlannedRun
from lepaute.measure.probes import Probes, probe_words

Row = dict[str, str]
_NOTHING = parse_design("design_row,kind,m,n,k\n0,dgemm,1,1,1\n", "nothing")


def run_dgemm(built: Probes, design: Path, out: Path, *cpus: int, threads: int = 1) -> list[Path]:
    """The raw files of the dgemm probe, one a process of so many threads."""
    return _run(built, DGEMM, "the dgemm probe", design, out, cpus, (), threads)


def run_steps(
    built: Probes,
    design: Path,
    out: Path,
    cpus: Sequence[int],
    options: Sequence[str] = (),
    *,
    alone: bool = False,
    threads: int = 1,
) -> list[Path]:
    """The raw files of the step probe, one a rank; alone: each is a grid of its own."""
    return _run(built, STEPS if alone else STEPS_COLUMN, "the HPL step probe", design, out, cpus, options, threads)


def run_p2p(built: Probes, design: Path, out: Path, cpus: Sequence[int], options: Sequence[str] = ()) -> list[Path]:
    """The raw files of the message probe, one a rank."""
    return _run(built, P2P, "the message probe", design, out, cpus, options)


def run_ring(built: Probes, design: Path, out: Path, cpus: Sequence[int], options: Sequence[str] = ()) -> list[Path]:
    """The raw files of the ring probe, one a rank."""
    return _run(built, RING, "the ring probe", design, out, cpus, options)


def _run(
    built: Probes,
    probe: str,
    what: str,
    design: Path,
    out: Path,
    cpus: Sequence[int],
    options: Sequence[str],
    threads: int = 1,
) -> list[Path]:
    run = PlannedRun(0, probe, probe, tuple(cpus), 1, _NOTHING, threads=threads)
    words, environment = probe_words(run, cpus, str(built.dgemm.parent), str(design), str(out), None)
    start = Start(()) if probe == DGEMM else MPIRUN_OF_NODES.start(run.ranks, use_scheduler=False)
    added = {**start.environment, **environment}
    run_command([*start.argv, *words, *options], what=what, timeout_s=HANG_S, environment=added)
    return [Path(f"{out}.r{rank}") for rank in range(run.ranks)]


def read_raw(path: Path) -> tuple[dict[str, str], list[Row]]:
    """Header and rows of a raw file."""
    lines = path.read_text().splitlines()
    header = dict(line[2:].split("=", 1) for line in lines if line.startswith("#@"))
    return header, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path

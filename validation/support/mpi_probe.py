"""Probes of probes/, compiled for an MPI library of this machine and run on some ranks; what their raw files say."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas

from lepaute.kit.mpi_library import MpiLibrary, find_library
from lepaute.measure.toolchain import C_FLAGS, probe_source
from lepaute.stats.clock_models import ClockModels, exit_skew

LIBRARIES = ("openmpi", "mpich")
TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}
CLOCKS = ("clock_sync.c", "clock_exchange.c", "clock_model.c", "clock_offset.c", "clock_source.c")
COMMON = ("probe_common.c", "probe_mpi.c")
COLLECTIVES = (
    *("probe_collectives.c", "collective_operations.c", "reductions.c", "point_to_point.c"),
    *("one_sided.c", "process_sync.c", "transports.c", *CLOCKS, *COMMON),
)
SYNCHRONISATION = ("probe_clocks.c", *CLOCKS, *COMMON)
DESIGN_COLUMNS = "design_row,operation,form,size_bytes,calls,synchronisation,compute_ns,window_ns"
MODEL_COLUMNS = ("x0_ns", "y0_ns", "drift", "variance_ns2", "drift_variance", "covariance_ns", "bound_ns")


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled probe and its library; `preload`: a library that is loaded before, "" for none."""

    library: MpiLibrary
    path: Path
    preload: str = ""

    def start(
        self,
        ranks: int,
        *options: str,
        pinned: bool = True,
        launcher_options: Sequence[str] = (),
        hosts: tuple[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """The running program, rank r on core r where `pinned`; hosts: a hostfile and what reaches them."""
        hostfile, shell = hosts or (None, None)
        start = self.library.launcher.start(
            ranks,
            cores=range(ranks) if pinned else None,
            hostfile=hostfile,
            remote_shell=shell,
            options=launcher_options,
            use_scheduler=False,
        )
        variables = {**os.environ, **start.environment}
        if self.preload:
            variables["LD_PRELOAD"] = self.preload
        words = [*start.argv, str(self.path), *options]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)

    def run(self, ranks: int, *options: str, **how: object) -> None:
        """Runs it to its end; raises RuntimeError with its message where it fails."""
        process = self.start(ranks, *options, **how)  # type: ignore[arg-type]
        _, errors = process.communicate(timeout=600)
        if process.returncode != 0:
            raise RuntimeError(f"{self.path.name} ended with status {process.returncode}: {errors.strip()[-500:]}")


def program(library: str, sources: Sequence[str], folder: Path) -> Program:
    """Compiles a probe of probes/; raises EnvironmentProblem where the library is missing."""
    mpi = find_library(library)
    path = folder / f"{Path(sources[0]).stem}-{library}"
    files = [str(probe_source() / name) for name in sources]
    mpi.compile([*C_FLAGS, *files, "-lm", "-o", str(path)], what=f"building {path.name}")
    return Program(mpi, path)


def preloaded(original: Program, source: Path) -> Program:
    """The same with a C file compiled, and loaded before the MPI library."""
    shim = original.path.with_suffix(f".{source.stem}.so")
    original.library.compile([*C_FLAGS, "-shared", "-fPIC", str(source), "-o", str(shim)], what=f"building {shim.name}")
    return Program(original.library, original.path, str(shim))


def design_words(folder: Path, rows: Sequence[str]) -> tuple[str, ...]:
    """Writes a design into a folder; the words by which a probe reads it, and writes FILE.r0 ... beside it."""
    text = [DESIGN_COLUMNS, *(f"{number},{row}" for number, row in enumerate(rows))]
    (folder / "design.csv").write_text("\n".join(text) + "\n")
    return "--design", str(folder / "design.csv"), "--out", str(folder / "raw")


def measured(probe: Program, rows: Sequence[str], folder: Path, *options: str, ranks: int = 2) -> pandas.DataFrame:
    """The calls of one mpirun: rows of a design without their numbers, measured in this order.

    A row a call: its design row (row), operation, size_bytes, synchronisation, window_ns, call; local_ns, the longest
    time of a rank; global_ns, last end less first start by rank 0's clock; skew_ns, the exit skew of the
    synchronisation with skew_low_ns and skew_high_ns; marks of any rank. Calls to warm up are left out.
    """
    probe.run(ranks, *design_words(folder, rows), *options)
    raw = folder / "raw"
    calls = pandas.concat(pandas.read_csv(f"{raw}.r{rank}", comment="#") for rank in range(ranks))
    models = pandas.concat(pandas.read_csv(f"{raw}.clocks.r{rank}", comment="#") for rank in range(ranks))
    models = models[models["before_row"].astype(str) != "end"].astype({"before_row": "int64"})
    calls = calls[calls["call"] >= 0].sort_values("design_row", kind="stable")
    joined = pandas.merge_asof(
        calls, models.sort_values("before_row", kind="stable"), left_on="design_row", right_on="before_row", by="rank"
    ).sort_values(["design_row", "call", "rank"], kind="stable")

    def by_rank(name: str) -> "object":
        return joined[name].to_numpy().reshape(-1, ranks)

    clocks = ClockModels(*(by_rank(name) for name in MODEL_COLUMNS))
    starts, ends = by_rank("start_ns"), by_rank("end_ns")
    begin, done = clocks.at(starts).min(axis=1), clocks.at(ends).max(axis=1)
    skew = exit_skew(starts, clocks)
    first = joined.iloc[::ranks]
    return pandas.DataFrame(
        {
            "row": first["design_row"].to_numpy(),
            **{name: first[name].to_numpy() for name in ("operation", "size_bytes", "synchronisation", "window_ns")},
            "call": first["call"].to_numpy(),
            "local_ns": (ends - starts).max(axis=1),  # type: ignore[operator]
            "global_ns": done - begin,
            "skew_ns": skew.spread_ns,
            "skew_low_ns": skew.low_ns,
            "skew_high_ns": skew.high_ns,
            "marked": (by_rank("marks") != 0).any(axis=1),  # type: ignore[attr-defined]
        }
    )

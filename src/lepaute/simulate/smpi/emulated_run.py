"""One emulated run: its times, and what its routines were charged."""

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.errors import InputError, SimulationError
from lepaute.simulate.run import KernelUse, Sizes
from lepaute.simulate.smpi.own_computing import OwnTimes, Slowdowns, own_times
from lepaute.simulate.smpi.process import Ended


@dataclass(frozen=True, slots=True)
class EmulatedRun:
    """One emulated run.

    time_s : of the value that the program prints where one was asked for, else of the region between MPI_Pcontrol(1)
        and MPI_Pcontrol(0) where there is one, else of the program
    program_s : until the last rank calls MPI_Finalize
    computing_s : over all ranks, as simulated; own: the part of it that no routine of BLAS or LAPACK is
    threads : that the ranks started
    gapped : messages of datatypes with gaps, their bytes, and the CPU seconds that packing them would take here
    put_off : receives of rendezvous messages during which their rank computed; least and largest size in bytes
    kernels : with a model of the platform; fallback: routines without, from their operations and the rate of dgemm
    """

    seed: int
    time_s: float
    program_s: float
    region_s: float | None
    value_s: float | None
    computing_s: float
    own: OwnTimes
    wtime_s: float
    kernels: dict[str, KernelUse]
    fallback: dict[str, KernelUse]
    messages: int
    put_off: tuple[int, float, float]
    probes: int
    folded: int
    folded_bytes: float
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int
    stdout: tuple[str, ...]
    warnings: tuple[str, ...] = ()  # about the program
    slowdowns: Slowdowns | None = None  # of its own computing; None where no first run told any
    cores_timed: int = 1  # of this machine, busy during that run
    ranks_on_node: int = 1
    threads: int = 0
    gapped: tuple[int, float, float] = (0, 0.0, 0.0)

    @property
    def own_share(self) -> float:
        """Share of the computing that is the program's own, measured here, from 0 to 1."""
        return self.own.charged_s / self.computing_s if self.computing_s > 0.0 else 0.0

    @property
    def unmodelled_share(self) -> float:
        """Share of the computing that is of routines of BLAS and LAPACK without a model, from 0 to 1."""
        if self.computing_s <= 0.0:
            return 0.0
        return sum(use.time_s for use in self.fallback.values()) / self.computing_s


def read_report(path: Path) -> dict[str, Any] | None:
    """What simblas wrote at the end; None where there is no whole report."""
    with contextlib.suppress(OSError, json.JSONDecodeError):
        report = json.loads(path.read_text(encoding="utf-8"))
        return report if isinstance(report, dict) else None
    return None


def run_of(
    report: dict[str, Any], ended: Ended, seed: int, value_pattern: str | None, warnings: tuple[str, ...]
) -> EmulatedRun:
    """The run that the report and the process tell of; raises what value_in() raises."""
    region_s = report["region_s"] or None
    value_s = value_in(ended.stdout, value_pattern) if value_pattern is not None else None
    return EmulatedRun(
        seed=seed,
        time_s=next(value for value in (value_s, region_s, report["time_s"]) if value is not None),
        program_s=report["time_s"],
        region_s=region_s,
        value_s=value_s,
        computing_s=report["computing_s"],
        own=own_times(report["own_computing"]),
        wtime_s=report["wtime_s"],
        kernels=_uses(report["kernels"]),
        fallback=_uses(report["fallback"]),
        messages=report["messages"],
        put_off=tuple(report["put_off"]),
        probes=report["probes"],
        folded=report["folded"],
        folded_bytes=report["folded_bytes"],
        wall_s=ended.wall_s,
        cpu_s=ended.cpu_s,
        peak_rss_bytes=ended.peak_rss_bytes,
        stdout=ended.stdout,
        warnings=warnings,
        threads=report["threads"],
        gapped=tuple(report["gapped"]),
    )


def _uses(written: dict[str, dict[str, Any]]) -> dict[str, KernelUse]:
    uses = {}
    for name, use in written.items():
        for bound in ("outside_low", "outside_high"):
            if bound in use:
                use[bound] = Sizes(*use[bound])
        uses[name] = KernelUse(**use)
    return uses


def checked_pattern(pattern: str) -> str:
    """`pattern`, a regular expression with one group; raises InputError for anything else."""
    try:
        groups = re.compile(pattern).groups
    except re.error as problem:
        raise InputError(f"the pattern '{pattern}' is no regular expression: {problem}") from None
    if groups != 1:
        raise InputError(
            f"the pattern '{pattern}' has {groups} groups; it needs one, around the seconds: 'time: (\\S+) s'"
        )
    return pattern


def value_in(lines: Sequence[str], pattern: str) -> float:
    """The number that the last match of `pattern` in `lines` holds; raises SimulationError where there is none."""
    matches = [match[1] for line in lines for match in [re.search(pattern, line)] if match]
    try:
        return float(matches[-1])
    except IndexError:
        raise SimulationError(f"the program printed nothing that matches '{pattern}' on standard output") from None
    except ValueError:
        raise SimulationError(f"the program printed {matches[-1]!r} for '{pattern}', which is not a number") from None

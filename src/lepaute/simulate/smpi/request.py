"""What simblas is told: the file that the variable LEPAUTE_EMULATION names."""

import math
import os
import resource
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lepaute.errors import EnvironmentProblem
from lepaute.kit.text import significant
from lepaute.simulate.conditions import Layers
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.population import on_its_day, with_network_of_run
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.simgrid import holds_loopback
from lepaute.simulate.platform.simgrid.zones import node_speeds_flops
from lepaute.simulate.smpi.emulated_run import Slowdowns

Computing = Literal["measured", "none", "untimed"]
#: Sizes of the dgemm whose rate stands for what has no model, where the model was not fitted in a range.
_REFERENCE = {"m": 1024.0, "n": 1024.0, "k": 128.0}


@dataclass(frozen=True, slots=True)
class Private:
    """Bytes of an allocation that are not folded: those from `first` to `last`, negative ones from the end.

    where : file or file:line of C sources, else the function that allocates
    """

    where: str
    first: int = 0
    last: int = -1


@dataclass(frozen=True, slots=True)
class Folding:
    """Allocations of `from_bytes` bytes and more share memory, except for what is private; None: nothing is folded.

    block_bytes : of the memory that they share; huge : on huge pages, where the system has some
    """

    from_bytes: int | None = None
    block_bytes: int = 64 << 20
    huge: bool = True
    private: tuple[Private, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """Where simblas writes: the report at the end, the progress now and then, the kernels (None: not)."""

    report: Path
    progress: Path
    kernel_log: Path | None = None


def request_text(
    platform: "Platform",
    cores: Sequence[int],
    *,
    seed: int,
    run_seed: int | None = None,
    layers: Layers,
    folding: Folding,
    files: Files,
    threads: int = 1,
    computing: Computing = "untimed",
    load_cpus: Sequence[int] = (),
    slowdowns: Slowdowns | None = None,
    sleeping_probes: bool = True,
) -> str:
    """The file, for ranks on `cores` (node * cores per node + core).

    The network is that of the run, as in the platform file of the run: factors of messages come from here.

    Raises InputError if the platform has no models for `threads` threads.
    """
    slowdowns = slowdowns or Slowdowns()
    of_run = with_network_of_run(platform, seed, layers)
    huge = folding.huge and free_huge_bytes() >= folding.block_bytes  # a block without room there would end the program
    lines = [
        f"seed {seed} {seed if run_seed is None else run_seed}",
        f"without {' '.join(layers.off)}",
        f"cores {' '.join(map(str, cores))}",
        f"reference {' '.join(map(repr, reference_sizes(platform, threads)))}",
        f"wtime {of_run.network.costs.wtime_s!r}",
        f"fold {folding.from_bytes or 0} {folding.block_bytes} {int(huge)}",
        *(f"private {kept.first} {kept.last} {kept.where}" for kept in folding.private),
        f"report {files.report}",
        f"progress {files.progress}",
        *([f"kernel_log {files.kernel_log}"] if files.kernel_log is not None else []),
        f"measures {int(computing != 'untimed')} {int(computing == 'measured')}",
        f"host_flops {statistics.fmean(node_speeds_flops(platform))!r}",
        *_cpu_lines(computing, len(cores), load_cpus),
        f"slowdown {slowdowns.other!r}",
        *(f"slowdown_from {place} {factor!r}" for place, factor in slowdowns.by_place.items()),
        f"sleeping_probes {int(sleeping_probes)}",
        f"puts_off {int(platform.network.progress != 'background')}",
        f"own_factors {int(not holds_loopback(of_run))}",
        "machine",
        machine_of(on_its_day(of_run, seed, days=layers.days), threads).text(),
    ]
    return "\n".join(lines) + "\n"


def _cpu_lines(computing: Computing, ranks: int, load_cpus: Sequence[int]) -> list[str]:
    """Where ranks compute: in a run under load on one cpu, else each on one of its own where there are enough."""
    if computing != "measured":
        return []
    if load_cpus:
        return [f"load_cpus {' '.join(map(str, load_cpus))}"]
    allowed = sorted(os.sched_getaffinity(0))
    return [f"rank_cpus {' '.join(map(str, allowed[:ranks]))}"] if ranks <= len(allowed) else []


def reference_sizes(platform: "Platform", threads: int = 1) -> tuple[float, float, float]:
    """m, n and k of the dgemm that is the measured rate: the middle, on a scale of logarithms, of the fitted range."""
    model = platform.kernel("dgemm", threads)
    ranges = [piece.range for piece in model.pieces if piece.range] if model is not None else []

    def middle(letter: str) -> float:
        pairs = [bounds for one in ranges for name, bounds in one.items() if name == letter]
        if not pairs:
            return _REFERENCE[letter]
        low, high = min(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
        return round(math.sqrt(max(low, 1.0) * high))

    return middle("m"), middle("n"), middle("k")


_MAPPINGS_PER_RANK = 8  # a stack, its guard and the rank's copy of the program with its libraries
_MAPPINGS_OF_PROCESS = 2000


def check_limits(ranks: int, stack_kib: int, fold_bytes: int | None, root: Path = Path("/")) -> None:
    """Raises EnvironmentProblem for the first limit that `ranks` ranks exceed.

    stack_kib : stack of a rank; fold_bytes : size from which allocations are folded, None if they are not
    """
    most = _number(root / "proc/sys/vm/max_map_count")
    needed = _MAPPINGS_OF_PROCESS + ranks * _MAPPINGS_PER_RANK
    if most is not None and needed > most:
        raise EnvironmentProblem(
            f"{ranks} ranks need about {needed} memory mappings in one process, the system allows {most}; "
            f"set it as root: sysctl vm.max_map_count={2 * needed}"
        )
    if fold_bytes is not None and _number(root / "proc/sys/vm/overcommit_memory") == 2:
        raise EnvironmentProblem(
            "folded allocations overcommit memory, which this system does not allow "
            "(vm.overcommit_memory is 2); set it as root: sysctl vm.overcommit_memory=1"
        )
    available_kib = _meminfo(root).get("MemAvailable")
    free_bytes = None if available_kib is None else int(available_kib) * 1024
    stacks = ranks * stack_kib * 1024
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and stacks > soft:
        raise EnvironmentProblem(
            f"the stacks of {ranks} ranks take {significant(stacks / 1e9)} GB of address space, this shell allows "
            f"{significant(soft / 1e9)} GB; raise it (ulimit -v unlimited) or take a smaller --stack"
        )
    if free_bytes is not None and stacks > 8 * free_bytes:  # most of a stack is never touched
        raise EnvironmentProblem(
            f"the stacks of {ranks} ranks take {significant(stacks / 1e9)} GB, {significant(free_bytes / 1e9)} GB are "
            "free; take a smaller --stack"
        )


def check_copies(ranks: int, program_bytes: int, folder: Path) -> None:
    """Raises EnvironmentProblem if `folder` has no room for a copy of the program for each rank, as SMPI makes to
    give each its own global variables."""
    needed, free = ranks * program_bytes, shutil.disk_usage(folder).free
    if needed > free:
        raise EnvironmentProblem(
            f"{ranks} copies of the program take {significant(needed / 1e9)} GB, {folder} has "
            f"{significant(free / 1e9)} GB free; strip the program, "
            "name another folder in TMPDIR, or take --shared-globals"
        )


def free_huge_bytes(root: Path = Path("/")) -> int:
    """Memory available on huge pages of 2 MiB."""
    fields = _meminfo(root)
    size_kib, free = fields.get("Hugepagesize", "0"), fields.get("HugePages_Free", "0")
    return int(free) * (2 << 20) if size_kib == "2048" else 0


def _meminfo(root: Path) -> dict[str, str]:
    return {line.partition(":")[0]: line.split()[1] for line in _lines(root / "proc/meminfo") if ":" in line}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None

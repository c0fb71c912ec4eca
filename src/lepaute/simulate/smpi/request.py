"""What simblas is told: the file that the variable LEPAUTE_EMULATION names."""

import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lepaute.platform.simgrid import holds_loopback
from lepaute.platform.simgrid.zones import node_speeds_flops
from lepaute.simulate.layers import Layers
from lepaute.simulate.machine import machine_of
from lepaute.simulate.network_of_run import with_network_of_run
from lepaute.simulate.population import on_its_day
from lepaute.simulate.smpi.limits import free_huge_bytes
from lepaute.simulate.smpi.own_computing import Slowdowns

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

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

    Raises InputError where the platform has no models for `threads` threads.
    """
    lines = [
        f"seed {seed} {seed if run_seed is None else run_seed}",
        f"without {' '.join(layers.off)}",
        f"cores {' '.join(map(str, cores))}",
        f"reference {' '.join(map(repr, reference_sizes(platform, threads)))}",
        f"wtime {platform.network.costs.wtime_s!r}",
        f"fold {folding.from_bytes or 0} {folding.block_bytes} {int(uses_huge_pages(folding))}",
        *(f"private {kept.first} {kept.last} {kept.where}" for kept in folding.private),
        f"report {files.report}",
        f"progress {files.progress}",
        *([f"kernel_log {files.kernel_log}"] if files.kernel_log is not None else []),
        f"measures {int(computing != 'untimed')} {int(computing == 'measured')}",
        f"host_flops {statistics.fmean(node_speeds_flops(platform))!r}",
        *_cpu_lines(computing, len(cores), load_cpus),
        *_slowdown_lines(slowdowns or Slowdowns()),
        f"sleeping_probes {int(sleeping_probes)}",
        f"puts_off {int(platform.network.progress != 'background')}",
        f"own_factors {int(not holds_loopback(platform))}",
        "machine",
        machine_of(on_its_day(with_network_of_run(platform, seed, layers), seed, days=layers.days), threads).text(),
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


def _slowdown_lines(slowdowns: Slowdowns) -> list[str]:
    return [
        f"slowdown {slowdowns.other!r}",
        *(f"slowdown_from {place} {factor!r}" for place, factor in slowdowns.by_place.items()),
    ]


def uses_huge_pages(folding: Folding) -> bool:
    """Whether the block that is shared finds room on huge pages: one that does not would end the program."""
    return folding.huge and free_huge_bytes() >= folding.block_bytes


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

"""One emulated run: its times, and what its routines were charged, and what the program computes itself.

What is outside of modelled routines is timed here, and slower where ranks share memory. A place is where MPI returned
to the program; what is computed from there to the next call of MPI is timed. In a first run, other cores of this
machine stream through memory during half of the intervals of each place, chosen by chance. With s the factor by which a
stream of our own becomes slower meanwhile, and l the factor of the place (ratio of geometric means), its *memory share*
is (l - 1) / (s - 1): the part of its time that waits for memory when it runs alone. Where s is about 1 the share cannot
be seen, and is what the user says, or taken as none.

On a node with n ranks that all run such code, each is in its memory part with some probability q, independently: with
k of them there, memory takes max(1, k B1 / Bn) times as long, B1 the bandwidth that one core uses alone and Bn that of
all cores. q follows from the share and from the mean of that factor, which follows from q.
"""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import SimulationError
from lepaute.kit.quantities import value_in
from lepaute.simulate.engine import KernelUse, Sizes
from lepaute.simulate.platform.nodes import check_same_memory
from lepaute.simulate.smpi.process import Ended

if TYPE_CHECKING:
    from lepaute.simulate.platform.schema import Platform

#: A stream that becomes less slow than this tells nothing of what waits for memory.
MIN_CONTENTION = 1.1
#: Intervals of a place with and without load, below which it takes the share of the whole program.
MIN_INTERVALS = 3
#: Least share of the computing: less of the program's own is not worth a second run, nor a sentence.
MIN_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Place:
    """Intervals that began at one place, over all ranks: CPU seconds; (number, sum of the logarithms) of the durations
    with idle and with streaming other cores."""

    visits: int
    time_s: float
    alone: tuple[int, float]
    loaded: tuple[int, float]

    def slowdown(self) -> float | None:
        """By the load; None if too few intervals tell."""
        if min(self.alone[0], self.loaded[0]) < MIN_INTERVALS:
            return None
        return math.exp(self.loaded[1] / self.loaded[0] - self.alone[1] / self.alone[0])


@dataclass(frozen=True, slots=True)
class OwnTimes:
    """Seconds over all ranks: CPU time here, and what it was charged. Bandwidths of a stream here, 0: not timed."""

    measured_s: float = 0.0
    charged_s: float = 0.0
    stream_alone_Bps: float = 0.0  # noqa: N815 - the unit
    stream_loaded_Bps: float = 0.0  # noqa: N815
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slowdowns:
    """Factors on what is measured, by place; `other` where a place has none.

    memory_share : of the whole program's own computing; None if it was not told
    """

    other: float = 1.0
    by_place: Mapping[str, float] = field(default_factory=dict)
    memory_share: float | None = None


def _times_of(report: Mapping[str, Any]) -> OwnTimes:
    places = {
        name: Place(place["visits"], place["time_s"], tuple(place["alone"]), tuple(place["loaded"]))
        for name, place in report["places"].items()
    }
    return OwnTimes(**{**report, "places": places})


def load_cpus(ranks_on_node: int) -> tuple[int, ...]:
    """CPUs of this machine for a first run: our own, then those that make the load, as many as ranks share a node."""
    allowed = sorted(os.sched_getaffinity(0))[: max(1, ranks_on_node)]
    return tuple(allowed) if len(allowed) > 1 else ()


def slowdowns_of(
    times: OwnTimes, cores_here: int, ranks_on_node: int, platform: "Platform", given_share: float | None = None
) -> Slowdowns:
    """Slowdowns from a first run on a node with `ranks_on_node` ranks.

    cores_here : of this machine that were busy under load, our own included
    given_share : memory share of all places, in the place of what is seen
    """
    if times.stream_loaded_Bps <= 0.0:
        return Slowdowns()
    contention = times.stream_alone_Bps / times.stream_loaded_Bps
    shares = memory_shares(times, contention) if given_share is None else {}
    overall = given_share
    if shares:
        seconds = math.fsum(times.places[name].time_s for name in shares)
        overall = math.fsum(share * times.places[name].time_s for name, share in shares.items()) / seconds
    if overall is None:
        return Slowdowns()
    check_same_memory(platform, "memory contention (--no-contention leaves it out)")
    nodes = platform.nodes
    alone = 1.0
    if nodes.memory_bandwidth_Bps is not None:
        of_core = nodes.core_memory_bandwidth_Bps or times.stream_alone_Bps
        alone = times.stream_alone_Bps / of_core
        ranks, ratio = ranks_on_node, of_core / nodes.memory_bandwidth_Bps
    else:
        ranks, ratio = min(ranks_on_node, cores_here), contention / cores_here
    by_place = {name: slowdown_of(share, ranks, ratio, alone) for name, share in shares.items()}
    return Slowdowns(slowdown_of(overall, ranks, ratio, alone), by_place, overall)


def memory_shares(times: OwnTimes, contention: float) -> dict[str, float]:
    """Share of each place; empty if the load did not slow our own stream, by `contention`, enough to tell."""
    if contention < MIN_CONTENTION:
        return {}
    return {
        name: min(1.0, max(0.0, (slowdown - 1.0) / (contention - 1.0)))
        for name, place in times.places.items()
        if (slowdown := place.slowdown()) is not None
    }


def slowdown_of(share: float, ranks: int, ratio: float, alone: float = 1.0) -> float:
    """Factor on the time of code with this memory share, on a node with `ranks` ranks that run it.

    ratio : bandwidth that one core uses over that of all cores
    alone : time of the memory part on the platform over that here, with one busy core
    """
    memory, other = share * alone, 1.0 - share
    total = memory + other
    for _ in range(100):  # converges: the mean grows more slowly than q
        total = other + memory * _mean_factor(ranks, min(1.0, memory and (total - other) / total), ratio)
    return total


def _mean_factor(ranks: int, q: float, ratio: float) -> float:
    """Mean of max(1, (1 + k) ratio), k binomial of ranks - 1 and q."""
    if q >= 1.0:
        return max(1.0, ranks * ratio)
    others = ranks - 1
    return math.fsum(
        math.comb(others, k) * q**k * (1.0 - q) ** (others - k) * max(1.0, (1 + k) * ratio) for k in range(ranks)
    )


@dataclass(frozen=True, slots=True)
class EmulatedRun:
    """One emulated run.

    time_s : of the value that the program prints where one was asked for, else of the region between MPI_Pcontrol(1)
        and MPI_Pcontrol(0) where there is one, else of the program
    program_s : until the last rank calls MPI_Finalize
    computing_s : over all ranks, as simulated; own: the part of it that no routine of BLAS or LAPACK is
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
    slowdowns: Slowdowns | None = None  # of its own computing; None if no first run told any
    cores_timed: int = 1  # of this machine, busy during that run
    ranks_on_node: int = 1
    threads: int = 0
    gapped: tuple[int, float, float] = (0, 0.0, 0.0)
    collectives: str | None = None  # the library whose algorithms it followed; None: SMPI's own

    @property
    def own_share(self) -> float:
        """Share of the computing that is the program's own, measured here, from 0 to 1."""
        return self.own.charged_s / self.computing_s if self.computing_s > 0.0 else 0.0

    @property
    def unmodelled_share(self) -> float:
        """Share of the computing that is of routines of BLAS and LAPACK without a model, from 0 to 1."""
        if self.computing_s <= 0.0:
            return 0.0
        return math.fsum(use.time_s for use in self.fallback.values()) / self.computing_s


def read_report(path: Path) -> dict[str, Any] | None:
    """Report of simblas at the end; None if there is no whole report."""
    with contextlib.suppress(OSError, json.JSONDecodeError):
        report = json.loads(path.read_text(encoding="utf-8"))
        return report if isinstance(report, dict) else None
    return None


_AS_REPORTED = ("computing_s", "wtime_s", "messages", "probes", "folded", "folded_bytes", "threads")


def run_of(
    report: dict[str, Any], ended: Ended, seed: int, value_pattern: str | None, warnings: tuple[str, ...]
) -> EmulatedRun:
    """The run that the report and the process tell of; raises SimulationError if no value was printed."""
    region_s = report["region_s"] or None
    try:
        value_s = value_in(ended.stdout, value_pattern) if value_pattern is not None else None
    except ValueError as problem:
        raise SimulationError(str(problem)) from None
    return EmulatedRun(
        seed=seed,
        time_s=next(value for value in (value_s, region_s, report["time_s"]) if value is not None),
        program_s=report["time_s"],
        region_s=region_s,
        value_s=value_s,
        own=_times_of(report["own_computing"]),
        kernels=_uses(report["kernels"]),
        fallback=_uses(report["fallback"]),
        put_off=tuple(report["put_off"]),
        gapped=tuple(report["gapped"]),
        warnings=warnings,
        **{name: report[name] for name in _AS_REPORTED},
        **{name: getattr(ended, name) for name in ("wall_s", "cpu_s", "peak_rss_bytes", "stdout")},
    )


def _uses(written: dict[str, dict[str, Any]]) -> dict[str, KernelUse]:
    uses = {}
    for name, use in written.items():
        for bound in ("outside_low", "outside_high"):
            if bound in use:
                use[bound] = Sizes(*use[bound])
        uses[name] = KernelUse(**use)
    return uses

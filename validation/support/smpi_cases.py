"""The cases of native_against_smpi.py, and what the two engines say about one."""

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute import Hpl, Platform, load_platform
from lepaute.simulate import Layers, predict
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, SWAPS
from lepaute.simulate.machine.core import wiring
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.platform.io import override
from lepaute.simulate.platform.simgrid import export_xml, holds_loopback
from lepaute.simulate.smpi.emulate import Smpi
from lepaute.simulate.smpi.library import build_library
from lepaute.simulate.smpi.process import Limits
from lepaute.simulate.smpi.request import Files, Folding, request_text

PLATFORM = "dahu-2020-01"
#: The same machine, whose messages cost all what they cost when receivers compute between their probes.
LOADED = "dahu-2020-01-loaded"
#: What SMPI does: shares times factors, and one state for all messages.
SETTINGS = {"network.flow_factor": "scale", "network.loopback.busy": "null", "network.remote.busy": "null"}
EXACT = {"network.sharing": "exact"}
SHAPES = ((4, 4), (2, 8), (1, 16), (6, 6), (6, 8), (4, 16), (16, 4), (32, 2), (2, 32))
#: Of groups E and F, by the number of ranks: NB, with which 1 x R and R x 1 have two blocks a rank, as grids of 1000
#: ranks have; cores of a node that the grid's rows and columns fill, and of one that they do not.
NARROW = {16: (64, 4, 6), 64: (16, 16, 12)}
ALGORITHMS = (("1ring", "binary-exchange"), ("1ring-modified", "spread-roll"), ("2ring", "mix"),
              ("2ring-modified", "binary-exchange"))  # fmt: skip
LIMITS = Limits(timeout_s=3600.0, stall_s=300.0)
NATIVE_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class SmpiCase:
    """HPL to be run by both engines; noise: all layers of uncertainty, else none."""

    group: str
    n: int
    p: int
    q: int
    depth: int
    bcast: str = "2ring"
    swap: str = "binary-exchange"
    noise: bool = False
    seeds: tuple[int, ...] = (1,)
    nb: int = 128
    cores: int = 32
    platform: str = PLATFORM

    @property
    def hpl(self) -> Hpl:
        """Its parameters; the others are HPL's usual ones, those of lepaute.Hpl."""
        return Hpl(n=self.n, nb=self.nb, p=self.p, q=self.q, depth=self.depth, bcast=self.bcast, swap=self.swap)

    @property
    def layers(self) -> Layers:
        return Layers() if self.noise else Layers.only()

    @property
    def name(self) -> str:
        noise = ", noise" if self.noise else ""
        where = f", {self.cores} a node" if self.cores != 32 else ""
        where += ", loaded" if self.platform == LOADED else ""
        return f"{self.p} × {self.q}, N = {self.n:,}, depth {self.depth}, {self.bcast}, {self.swap}{noise}{where}"

    @property
    def settings(self) -> dict[str, str]:
        """Of the platform, for both engines."""
        return SETTINGS | ({"nodes.cores": str(self.cores)} if self.cores != 32 else {})


def cases_of(groups: str) -> list[SmpiCase]:
    """The cases of the groups whose letters are in `groups`, as the study was fixed."""
    every: list[SmpiCase] = []
    every += [SmpiCase("A", 5000, 8, 8, depth, bcast, swap)
              for bcast in BROADCASTS for swap in SWAPS for depth in (0, 1)]  # fmt: skip
    every += [SmpiCase("B", n, p, q, depth) for p, q in SHAPES for n in (2000, 5000, 10000) for depth in (0, 1)]
    every += [SmpiCase("C", n, 8, 8, depth, bcast, swap, noise=True, seeds=(1, 2, 3))
              for n in (5000, 10000) for depth in (0, 1)
              for bcast in ("1ring-modified", "2ring") for swap in ("binary-exchange", "spread-roll")]  # fmt: skip
    every += [
        SmpiCase("D", 10000, 32, 32, 0),
        SmpiCase("D", 10000, 32, 32, 1),
        SmpiCase("D", 10000, 32, 32, 1, "long", "spread-roll"),
        SmpiCase("D", 20000, 32, 32, 1, noise=True),
        SmpiCase("D", 20000, 32, 32, 0),
    ]
    for group, ranks in (("E", 16), ("F", 64)):
        nb, filled, unfilled = NARROW[ranks]
        every += [SmpiCase(group, 2000, 1 << p, ranks >> p, depth, bcast, swap, nb=nb, cores=cores, platform=platform)
                  for cores, platform in ((filled, PLATFORM), (unfilled, PLATFORM), (unfilled, LOADED))
                  for p in range(ranks.bit_length()) for depth in (0, 1) for bcast, swap in ALGORITHMS]  # fmt: skip
    return [case for case in every if case.group in groups]


def shared_platform(case: SmpiCase) -> Platform:
    """The platform that both engines are given."""
    return override(load_platform(case.platform), case.settings)


def emulation_inputs(case: SmpiCase, platform: Platform, program: Path) -> str:
    """A digest of all that an emulation depends on: the program, simblas, and the files that SMPI and simblas read.

    An emulation takes minutes, so one that was made from the same is not made again.
    """
    nowhere = Path("/")
    request = request_text(
        platform, Mapping().cores(platform, case.hpl.ranks), seed=0, layers=case.layers, folding=Folding(huge=False),
        files=Files(nowhere, nowhere),
    )  # fmt: skip
    xml = export_xml(platform, wiring(platform), tables=holds_loopback(platform)).text
    parts = (program.parent.name, build_library().name, request, xml, *case.hpl.on().emulation(0)[1])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Said:
    """What an engine says of a case: a time and a number of messages for each seed, and what it used for all.

    cpu_s : user and system, without the start of Python on the native side; with SimGrid's start on the other
    """

    times_s: tuple[float, ...]
    messages: tuple[int, ...]
    cpu_s: float
    peak_rss_bytes: int


def emulated(case: SmpiCase, platform: Platform, program: Path) -> Said:
    """HPL's own code under SMPI, a process for each seed."""
    before_s = _children_s()
    runs = [
        predict(case.hpl, platform, runs=1, seed=seed, layers=case.layers, engine=Smpi(program, limits=LIMITS))
        for seed in case.seeds
    ]
    return Said(
        tuple(run.run_list[0].time_s for run in runs),
        tuple(run.simulation.messages for run in runs),
        _children_s() - before_s,
        max(run.simulation.peak_rss_bytes for run in runs),
    )


def native(case: SmpiCase, settings: dict[str, str] | None = None) -> Said:
    """The native engine in a process of its own; settings : of the platform, beside those of both."""
    hpl = {name: getattr(case, name) for name in ("n", "nb", "p", "q", "depth", "bcast", "swap")}
    asked = {
        "hpl": hpl,
        "platform": case.platform,
        "set": case.settings | (settings or {}),
        "noise": case.noise,
        "seeds": case.seeds,
    }
    worker = Path(__file__).with_name("native_run.py")
    done = subprocess.run(
        [sys.executable, "-P", str(worker), json.dumps(asked)], capture_output=True, text=True, check=True,
        timeout=NATIVE_LIMIT_S,
    )  # fmt: skip
    found = json.loads(done.stdout)
    return Said(tuple(found["times_s"]), tuple(found["messages"]), found["cpu_s"], found["peak_rss_bytes"])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""Made-up nodes whose cores share a clock and a memory: calibrated under several loads, and run in several placements.

A call takes cpu part * clock(1) / clock(a) + memory part * max(1, a' / SATURATED), with a computing cores on its socket
and a' on what shares the memory: the socket, or the node where pages are interleaved. The memory part is the term mn of
calls with more than IN_CACHE rows, and of all swaps; smaller calls stay in a cache of the core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas

from lepaute.measure.design import dgemm_design, hpl_step_design
from lepaute.measure.fit.kernels.polynomial import design_matrix
from lepaute.simulate import Hpl, predict
from lepaute.simulate.machine.mapping import Mapping as Placement
from lepaute.simulate.machine.mapping import Slot as Place
from lepaute.simulate.platform import Platform
from truth import calibration
from truth.calibration import CLOCK_S, MAX_N, USUAL, Slot, call_rows
from truth.law import NB, Effects, Law
from truth.runs import FIRST_DAY, SHARED_BPS, UNSHARED, messages, piece, truth

Floats = np.ndarray
#: Hz: of a core alone on its socket, and of all.
CLOCK_HZ = (3.5e9, 2.4e9)
#: Cores that together take all the bandwidth of a memory.
SATURATED = 5.0
IN_CACHE = 1024
#: Kernels that only move data, all of them from and to the memory.
SWAPS = "dlaswp"
BLOCKS = 7
P2P = "p2p"


@dataclass(frozen=True, slots=True)
class Node:
    """What the cores of a node share.

    sockets, cores : of the node; cores in all
    clock          : whether it falls with the computing cores of the socket
    memory         : what shares one: "socket", "node", or "" where nothing does
    """

    sockets: int
    cores: int
    clock: bool = True
    memory: str = "socket"

    def socket_of(self, core: int) -> int:
        """Cores of a socket are consecutive."""
        return core // (self.cores // self.sockets)

    def on_socket(self, core: int, computing: Sequence[int]) -> int:
        """How many of the computing cores are on the socket of a core."""
        return sum(self.socket_of(other) == self.socket_of(core) for other in computing)

    def growth(self, core: int, computing: Sequence[int]) -> tuple[float, float]:
        """Factors of the cpu part and of the memory part of calls on a core."""
        active = self.on_socket(core, computing)
        idle = 1.0 - (active - 1) / max(self.cores // self.sockets - 1, 1)
        high, low = CLOCK_HZ
        cpu = high / (low + (high - low) * idle**1.5) if self.clock else 1.0
        sharing = {"socket": active, "node": len(computing), "": 1}[self.memory]
        return cpu, max(1.0, sharing / SATURATED) if self.memory else cpu


def parts(law: Law, kernel: str) -> list[tuple[dict[str, list[int]], Mapping[str, float], bool]]:
    """Bounds, terms, and whether the term mn is of the memory, of the pieces of a kernel; the first that holds."""
    result = []
    for highest, terms in law.mean[kernel]:
        where = {"k": [0, int(highest)]} if np.isfinite(highest) else {}
        if "mn" in terms and not kernel.startswith(SWAPS):
            result.append((where | {"m": [0, IN_CACHE]}, terms, False))
        result.append((where, terms, "mn" in terms))
    return result


def grown(terms: Mapping[str, float], in_memory: bool, growth: tuple[float, float]) -> dict[str, float]:
    """The terms under a load."""
    return {term: value * growth[in_memory and term == "mn"] for term, value in terms.items()}


def mean_s(law: Law, growth: tuple[float, float], kernel: str, *sizes: Floats) -> Floats:
    """Mean durations of calls under a load; sizes: m, n, k, each of shape (calls,)."""
    result, free = np.zeros(len(sizes[0])), np.ones(len(sizes[0]), dtype=bool)
    for where, terms, in_memory in parts(law, kernel):
        here = free.copy()
        for letter, (low, high) in where.items():
            values = sizes["mnk".index(letter)]
            here &= (values >= low) & (values <= high)
        free &= ~here
        coefficients = grown(terms, in_memory, growth)
        columns = design_matrix(tuple(coefficients), *(values[here] for values in sizes))
        result[here] = columns @ np.array(list(coefficients.values()))
    return result


def write_calibration(path: Path, node: Node, law: Law, effects: Effects, rng: np.random.Generator) -> Path:
    """The archive of a calibration under all loads."""
    drafts = [("p2p", (0, 1))]
    each = node.cores // node.sockets
    loads = {"one": (0,), "all": tuple(range(node.cores))}
    if node.sockets > 1:
        loads["one-a-socket"] = tuple(range(0, node.cores, each))
    if each >= 4:
        loads["half"] = tuple(core for core in range(node.cores) if core % each < each // 2)
    for load, cores in loads.items():
        drafts += [(f"{probe} {load}", cores) for probe in ("dgemm", "hpl_steps_1x1")]
        drafts += [(f"hpl_steps_column {load}", cores)] if len(cores) > 1 else []
    return _write(path, node, law, effects, rng, drafts, with_loads=True)


def write_two_core_calibration(path: Path, node: Node, law: Law, effects: Effects, rng: np.random.Generator) -> Path:
    """The archive of a calibration of two neighbouring cores of the same node, the others idle, as of versions before
    loads."""
    drafts = [("p2p", (0, 1)), ("hpl_steps_1x1_pair", (0, 1)), ("hpl_steps_2x1", (0, 1))]
    drafts += [(probe, (core,)) for core in (0, 1) for probe in ("dgemm", "hpl_steps_1x1")]
    return _write(path, node, law, effects, rng, drafts, with_loads=False)


def _write(
    path: Path,
    node: Node,
    law: Law,
    effects: Effects,
    rng: np.random.Generator,
    drafts: list[tuple[str, tuple[int, ...]]],
    *,
    with_loads: bool,
) -> Path:
    kernels, tables = [], []
    for block in range(BLOCKS):
        for position, index in enumerate(rng.permutation(len(drafts))):
            name, cores = drafts[index]
            if name.endswith(" one"):
                cores = ((block * 7) % node.cores,)
            ranks = tuple((0, core) for core in cores)
            slot = Slot(name.split(" ")[0], ranks, block, block * len(drafts) + position, BLOCKS * len(drafts))
            start = effects.start()
            if slot.probe == P2P:
                tables.append(calibration.message_rows(slot, USUAL, law, effects, rng))
                continue
            for rank, calls in enumerate(_rows(slot, rng)):
                growth = node.growth(cores[rank], cores)
                expected_s = calibration.means_s(calls, partial(mean_s, law, growth))
                factor = np.exp(start + effects.process(block, 0, cores[rank]))
                duration_s = law.durations_s(expected_s, np.full(len(calls), factor), rng) + CLOCK_S
                active = {"active_cores": len(cores), "active_socket_cores": node.on_socket(cores[rank], cores)}
                kernels.append(calibration.observed(calls, slot, rank, duration_s, **active, threads=1))
    table = pandas.concat(kernels, ignore_index=True)
    if not with_loads:
        table = table.drop(columns=["active_cores", "active_socket_cores", "threads"])
    numbers, sockets = list(range(node.cores)), [node.socket_of(core) for core in range(node.cores)]
    facts = {"node_cores": node.cores, "cores": numbers if with_loads else [0, 1], "cpus": numbers}
    layout = {"layout": {"source": "made up", "pu": numbers, "socket": sockets, "numa": sockets, "l3": sockets}}
    facts["memory_bytes"] = 64 << 30
    return calibration.write_archive(path, table, tables, 1, facts, layout if with_loads else None)


def _rows(slot: Slot, rng: np.random.Generator) -> list[pandas.DataFrame]:
    """The calls of each rank, in their order."""
    seed = int(rng.integers(2**31))
    if slot.probe == "dgemm":
        design = dgemm_design(seed, products=USUAL.products, product_range=(1e3, 3e8), most=(MAX_N, MAX_N, 2048))
        calls = [(row, 0, "dgemm", *(int(value) for value in each[1:4])) for row, each in enumerate(design.rows)]
        return [call_rows(calls)] * len(slot.ranks)
    design = hpl_step_design(seed, rows=USUAL.steps, nbs=(NB,), max_n=MAX_N + NB)
    return calibration.step_rows(design.rows, slot.probe in {"hpl_steps_column", "hpl_steps_2x1"}, len(slot.ranks), rng)


def placement(cores: Sequence[int]) -> Placement:
    """Ranks on these cores of the node, in their order."""
    return Placement(slots=tuple(Place(0, core) for core in cores), source="the study")


def true_runs_s(
    hpl: Hpl, node: Node, law: Law, effects: Effects, cores: Sequence[int], runs: int, rng: np.random.Generator
) -> list[float]:
    """Times of runs of HPL with a rank on each of `cores`, each run on another day."""
    times = []
    for run in range(runs):
        start = effects.start()
        factors = {core: float(np.exp(start + effects.process(FIRST_DAY + run, 0, core))) for core in range(node.cores)}
        platform = true_platform(node, law, factors, cores)
        seed = int(rng.integers(2**31))
        times.append(predict(hpl, platform, runs=1, seed=seed, mapping=placement(cores)).run_list[0].time_s)
    return times


def true_platform(node: Node, law: Law, factors: Mapping[int, float], computing: Sequence[int]) -> Platform:
    """The node while these cores compute, exactly; factors: of each core on that day."""
    growth = {core: node.growth(core, computing) for core in computing}
    kernels = [_kernel(law, kernel, factors, growth) for kernel in law.mean]
    return truth(kernels, 1, node.cores, SHARED_BPS, UNSHARED, messages(law, "local", 1.0))


def _kernel(
    law: Law, kernel: str, factors: Mapping[int, float], growth: Mapping[int, tuple[float, float]]
) -> dict[str, object]:
    pieces = []
    for where, terms, in_memory in parts(law, kernel):
        rows = []
        for core, each in growth.items():
            mean = [factors[core] * value for value in grown(terms, in_memory, each).values()]
            rows.append([1.0, float(core), *mean, *(law.relative_sd * value for value in mean)])
        pieces.append(piece(law, where, terms, {term: law.relative_sd * value for term, value in terms.items()}, rows))
    return {"kernel": kernel, "pieces": pieces}

"""Made recordings of a slow job and of usual ones: a solver simulated on a shipped platform, with one thing planted."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import lepaute as lp
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.trace import Trace, trace_of_columns
from lepaute.simulate.trace.table import MPI, NUMBERS, SLEEPING, WAITING

PLATFORM = "dahu"
#: Of tags from here on are the messages of collective operations.
FIRST_INTERNAL_TAG = 1 << 31
NONE, NODE, CORE, SITE, LINK, ALGORITHM, NO_CORE, FILES = CAUSES = (
    "none",
    "slow node",
    "slow core from a moment on",
    "a call site",
    "slow link",
    "another algorithm",
    "waiting for a core",
    "slow file system",
)
#: Processes along x, y, z, and ranks of a node.
LAYOUTS = (((4, 2, 2), 4), ((2, 2, 2), 1), ((4, 2, 2), 8))
SIZE_8_BYTES = 8.0


class Solver(lp.Application):
    """Conjugate gradients with faces of some size, a file written now and then, and what is planted.

    grid : processes along x, y and z
    per_node : ranks of a node
    node, node_share : which node computes slower, and by how much
    core, core_share, core_from : which rank does from which iteration on
    site_share : by which the operator takes longer on all ranks
    low, high, more : the nodes between which messages are so many times as large
    algorithm : how many times as many bytes an MPI_Allreduce moves
    waiting, waits : which rank waits for its core, and how long per iteration
    files : seconds that files take beyond usual, an iteration
    """

    grid: lp.Grid
    per_node: int = 4
    n: int = 44
    iterations: int = 24
    node: int = -1
    node_share: float = 0.0
    core: int = -1
    core_share: float = 0.0
    core_from: int = 0
    site_share: float = 0.0
    low: int = -1
    high: int = -1
    more: int = 1
    algorithm: int = 1
    waiting: int = -1
    waits: float = 0.0
    files: float = 0.0
    spmv = lp.Cost(2.7e-8, error=0.0, noise=0.02, memory_share=0.0)
    axpy = lp.Cost(4.0e-9, error=0.0, noise=0.02, memory_share=0.0)
    hog = lp.Cost(1e-6, error=0.0, noise=0.3, memory_share=0.0)
    io = lp.Cost(1e-6, error=0.0, noise=0.3, memory_share=0.0)

    def run(self, me):  # type: ignore[no-untyped-def]
        mine, points = me.rank // self.per_node, self.n**3
        faces = [
            (rank, 300 * self.n ** (3 - order) * (self.more if _between(self, mine, rank // self.per_node) else 1))
            for rank, order in me.cartesian(self.grid).neighbours(27)
        ]
        for step in me.steps(self.iterations):
            slower = 1.0 + self.node_share * (mine == self.node)
            slower *= 1.0 + self.core_share * (me.rank == self.core and step >= self.core_from)
            yield me.exchange(faces)
            yield me.compute(self.spmv, points * slower * (1.0 + self.site_share))
            if me.rank == self.waiting and step % 3 == 1:
                yield me.compute(self.hog, 3e6 * self.waits)
            yield me.allreduce(8 * self.algorithm)
            yield me.compute(self.axpy, 3 * points * slower)
            if me.rank == 0 and step % 4 == 2:
                yield me.compute(self.io, 2e2 + 4e6 * self.files)
            yield me.allreduce(8 * self.algorithm)


def _between(solver: Solver, one: int, other: int) -> bool:
    return {one, other} == {solver.low, solver.high} and one != other


@dataclass(frozen=True, slots=True)
class Planted:
    """What is planted in a run: its cause, fields of Solver, and where that is, as answers name it."""

    cause: str
    fields: dict[str, Any]
    place: tuple[int, ...]


def drawn(rng: np.random.Generator, cause: str, layout: int) -> Planted:
    """A cause of this name, with its size and place."""
    grid, per_node = LAYOUTS[layout]
    ranks = int(np.prod(grid))
    node, rank = int(rng.integers(ranks // per_node)), int(rng.integers(ranks))
    iteration_s = 2.7e-8 * 44**3 + 3 * 4.0e-9 * 44**3
    if cause == NODE:
        return Planted(cause, {"node": node, "node_share": float(rng.uniform(0.08, 0.3))}, (node,))
    if cause == CORE:
        start = int(rng.integers(4, 16))
        return Planted(cause, {"core": rank, "core_share": float(rng.uniform(0.15, 0.5)), "core_from": start}, (rank,))
    if cause == SITE:
        return Planted(cause, {"site_share": float(rng.uniform(0.08, 0.3))}, ())
    if cause == LINK:
        other = (node + 1) % (ranks // per_node)
        low, high = sorted((node, other))
        return Planted(cause, {"low": low, "high": high, "more": int(rng.integers(3, 6))}, (low, high))
    if cause == ALGORITHM:
        return Planted(cause, {"algorithm": int(rng.integers(1 << 13, 1 << 15))}, ())
    if cause == NO_CORE:
        return Planted(cause, {"waiting": rank, "waits": float(rng.uniform(0.06, 0.3)) * iteration_s}, (rank,))
    if cause == FILES:
        return Planted(cause, {"files": float(rng.uniform(0.06, 0.3)) * iteration_s}, (0,))
    return Planted(NONE, {}, ())


def recording(layout: int, seed: int, planted: Planted) -> Trace:
    """What a recorder would have left of a run: sizes as the program has them, no parts of calls."""
    grid, per_node = LAYOUTS[layout]
    solver = Solver(grid=grid, per_node=per_node, **planted.fields)
    slots = tuple(Slot(rank // per_node, rank % per_node) for rank in range(int(np.prod(grid))))
    mapping = lp.Mapping("rankfile", slots=slots)
    trace = lp.simulate_one(solver, PLATFORM, seed, mapping=mapping, trace=lp.TraceRequest()).trace
    assert trace is not None
    return _as_recorded(trace, solver)


def _as_recorded(trace: Trace, solver: Solver) -> Trace:
    names = [*trace.names, "MPI_Allreduce", WAITING, SLEEPING]
    columns = {column: getattr(trace, column).copy() for column, _, _ in NUMBERS}
    columns |= {"kind": trace.kind.copy(), "name": trace.name.astype("int32").copy()}
    is_phase = trace.named("allreduce")
    columns["kind"][is_phase] = MPI
    columns["name"][is_phase] = len(trace.names)
    columns["comm"][is_phase] = 0
    columns["size_bytes"][is_phase] = SIZE_8_BYTES
    for name, code in (("hog", len(names) - 2), ("io", len(names) - 1)):
        columns["name"][trace.named(name)] = code
    ends = trace.rank // solver.per_node, trace.peer // solver.per_node
    for low, high in ((solver.low, solver.high), (solver.high, solver.low)):
        between = (ends[0] == low) & (ends[1] == high) & (trace.peer >= 0) & (low != high)
        columns["size_bytes"][between] /= solver.more
    columns["size_bytes"][trace.named("MPI_Waitall")] = 0.0
    for column in ("late_s", "transfer_s", "contention_s"):
        columns[column] = np.full(len(trace), np.nan)
    kept = (trace.tag < FIRST_INTERNAL_TAG) & (is_phase | (trace.kind != 2))
    nodes = [rank // solver.per_node for rank in range(int(np.prod(solver.grid)))]
    metadata = {
        "source": "recording",
        "application": "solver",
        "whole": True,
        "ranks": len(nodes),
        "nodes": nodes,
        "hosts": [f"n{node}" for node in range(max(nodes) + 1)],
        "created": "2026-12-01T09:00:00+00:00",
    }
    return trace_of_columns({name: values[kept] for name, values in columns.items()}, names, metadata)

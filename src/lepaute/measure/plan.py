"""The plan of a calibration: which probe runs on which core in which block, on which design. Pure; no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from lepaute.design import Design, content_design, dgemm_design, hpl_step_design, p2p_design, ring_design
from lepaute.design.p2p import DEFAULT_COUNTS
from lepaute.errors import EnvironmentProblem

NB = 128
#: Matrices up to this order; a machine with little memory gets less.
MOST_N = 8000
#: Share of the memory that the largest matrix may take: the rest of the machine must not be pushed to disk.
_MEMORY_SHARE = 0.4
#: What a rank of the ring takes besides its messages: room to move them about in, and its dgemm's operands.
RING_SPARE_BYTES = 64 << 20
#: Below this a plan does not check the available memory.
_LEAST_MESSAGE_BYTES = 64 << 10

#: Names of the probes in the observations.
DGEMM, STEPS_ALONE, STEPS_TOGETHER, P2P = "dgemm", "hpl_steps_1x1", "hpl_steps_2x1", "p2p"
RING, SEMANTICS = "ring", "semantics"
#: Few products, often, with operands of several contents: some processors are slower on numbers that flip more bits.
CONTENT = "dgemm_content"
CONTENTS = ("random", "constant", "masked:40")
CONTENT_SIZES = ((1000, 1000, 128), (500, 500, 128))
#: Programs without MPI: one process, one raw file.
SERIAL = frozenset({DGEMM, CONTENT})
#: Both cores do the steps of a grid of their own at once: caches and memory as in a run with one process row.
STEPS_SIDE_BY_SIDE = "hpl_steps_1x1_pair"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much a calibration measures of a node: the whole takes about 100 s, the quick one about 10 s.

    p2p_most_bytes   : the largest message between two ranks and in the ring, where memory has room for it
    ring_sizes       : messages of each operation in the ring, each in all four conditions
    most_repetition_s: all repetitions of disturbed runs on a node together last no longer
    """

    blocks: int
    dgemm_products: int
    dgemm_product_range: tuple[float, float]
    steps_alone: int
    steps_together: int
    p2p_counts: Mapping[str, int]
    p2p_most_bytes: int
    ring_sizes: int
    most_n: int
    most_repetition_s: float
    content_replications: int


FULL = Scale(
    blocks=5,
    dgemm_products=60,
    dgemm_product_range=(1e3, 1.3e9),
    steps_alone=24,
    steps_together=24,
    p2p_counts=DEFAULT_COUNTS,
    p2p_most_bytes=64 << 20,
    ring_sizes=12,
    most_n=MOST_N,
    most_repetition_s=20.0,
    content_replications=10,
)
QUICK = Scale(
    blocks=2,
    dgemm_products=14,
    dgemm_product_range=(1e3, 1e8),
    steps_alone=8,
    steps_together=8,
    p2p_counts={operation: count // 2 for operation, count in DEFAULT_COUNTS.items()},
    p2p_most_bytes=16 << 20,
    ring_sizes=10,
    most_n=1500,
    most_repetition_s=4.0,
    content_replications=3,
)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One fresh process (or pair of ranks) of a probe.

    name: of its design and raw files inside the block, such as dgemm_core0
    probe: its name in the observations
    cores: the core of each rank
    """

    block: int
    name: str
    probe: str
    cores: tuple[int, ...]
    seed: int
    design: Design


class Place(Protocol):
    """A node as the plan sees it; machine: equal for all names of one machine; cores: the two that are measured;
    cpus: all that it lends."""

    @property
    def name(self) -> str: ...

    @property
    def machine(self) -> str: ...

    @property
    def cores(self) -> tuple[int, int]: ...

    @property
    def cpus(self) -> tuple[int, ...]: ...

    @property
    def memory_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Link:
    """A run of messages between two nodes, rank 0 on the first."""

    run: PlannedRun
    first: str
    second: str


def largest_n(scale: Scale, memory_bytes: int) -> int:
    """Order of the largest matrix that the plan uses on a machine with that much memory."""
    fitting = int((_MEMORY_SHARE * memory_bytes / 8) ** 0.5)
    return min(scale.most_n, max(fitting, NB))


def largest_message(most_bytes: int, memory_bytes: int | None, ranks: int) -> int:
    """`most_bytes`, or as much less as a node with that memory needs for `ranks` ranks; None: memory is no matter.

    All buffers together take no more than the share that a matrix may. A rank of a ring has room for a message to send
    and one to receive, and RING_SPARE_BYTES; a rank of a pair has twice the room, to move messages about in.
    """
    if memory_bytes is None:
        return most_bytes
    room = int(_MEMORY_SHARE * memory_bytes)
    in_pair, in_ring = room // 8, (room // ranks - RING_SPARE_BYTES) // 2
    return max(_LEAST_MESSAGE_BYTES, min(most_bytes, in_pair, in_ring))


def plan(
    scale: Scale,
    seed: int,
    cores: tuple[int, int],
    most_n: int,
    position: int = 0,
    *,
    ring: tuple[int, ...] = (),
    most_message_bytes: int | None = None,
) -> list[PlannedRun]:
    """All runs on one node in the order in which they will be made: blocks one after the other, shuffled inside.

    position: of the node among those that are measured
    ring    : cores of the ring, the two unless given
    most_message_bytes: the largest message, that of the scale unless given
    Every run has a design and a seed of its own, drawn from `seed` and `position`: blocks and nodes are then
    independent samples of sizes as well as of days.
    """
    import numpy as np

    runs = []
    root = np.random.SeedSequence([seed, 0, position] if position else seed)
    for block, block_seed in enumerate(root.spawn(scale.blocks)):
        rng = np.random.default_rng(block_seed)
        drafts = _block(cores, ring or cores)
        seeds = [int(value) for value in rng.integers(0, 2**31, size=len(drafts))]
        order = [int(index) for index in rng.permutation(len(drafts))]
        for index in order:
            name, probe, where = drafts[index]
            design = _design(scale, probe, seeds[index], most_n, len(where), most_message_bytes)
            runs.append(PlannedRun(block, name, probe, where, seeds[index], design))
    return runs


def plan_links(scale: Scale, seed: int, places: Sequence[Place], most_message_bytes: int | None = None) -> list[Link]:
    """The runs of messages between neighbours of `places`, two ranks and a ring of all, shuffled inside each block.

    Rank 0 is on the first node's first core, rank 1 on the second's: on its second core where both are one machine.
    """
    import numpy as np

    links = []
    for block, block_seed in enumerate(np.random.SeedSequence([seed, 1]).spawn(scale.blocks)):
        rng = np.random.default_rng(block_seed)
        drafts = [(probe, pair) for pair in pairwise(places) for probe in (P2P, RING)]
        seeds = [int(value) for value in rng.integers(0, 2**31, size=len(drafts))]
        for index in rng.permutation(len(drafts)):
            probe, (first, second) = drafts[index]
            cores = pair_cores(first, second) if probe == P2P else _ring_cores(first, second)
            design = _design(scale, probe, seeds[index], 0, len(cores), most_message_bytes)
            run = PlannedRun(block, f"{probe}_{first.name}_{second.name}", probe, cores, seeds[index], design)
            links.append(Link(run, first.name, second.name))
    return links


def pair_cores(first: Place, second: Place) -> tuple[int, int]:
    """A core on each of two nodes, not the same one where both are one machine."""
    return first.cores[0], second.cores[1 if second.machine == first.machine else 0]


def _ring_cores(first: Place, second: Place) -> tuple[int, ...]:
    """As many cores on each node, those of the first before those of the second."""
    if first.machine == second.machine:
        return pair_cores(first, second)
    each = min(len(first.cpus), len(second.cpus))
    return (*first.cpus[:each], *second.cpus[:each])


def _block(cores: tuple[int, int], ring: tuple[int, ...]) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, probe, cores) of the runs of one block, before they are shuffled."""
    if len(set(cores)) != 2:
        raise EnvironmentProblem(f"calibration needs two cores, got {cores}; measure on a machine that has them")
    alone = [(f"{probe}_core{core}", probe, (core,)) for core in cores for probe in (DGEMM, CONTENT, STEPS_ALONE)]
    both = [(probe, probe, cores) for probe in (STEPS_TOGETHER, STEPS_SIDE_BY_SIDE, P2P)]
    return [*alone, *both, (RING, RING, ring)]


def _design(scale: Scale, probe: str, seed: int, most_n: int, ranks: int, most_message_bytes: int | None) -> Design:
    messages = (1, most_message_bytes if most_message_bytes is not None else scale.p2p_most_bytes)
    if probe == DGEMM:
        return dgemm_design(
            seed,
            products=scale.dgemm_products,
            product_range=scale.dgemm_product_range,
            most=(most_n, most_n, min(2048, most_n)),
        )
    if probe == CONTENT:
        sizes = [size for size in CONTENT_SIZES if max(size) <= most_n] or [(most_n, most_n, min(NB, most_n))]
        return content_design(seed, sizes=sizes, contents=CONTENTS, replications=scale.content_replications)
    if probe == P2P:
        return p2p_design(seed, counts=scale.p2p_counts, size_range_bytes=messages)
    if probe == RING:
        return ring_design(seed, ranks=ranks, sizes=scale.ring_sizes, size_range_bytes=messages)
    rows = {STEPS_ALONE: scale.steps_alone, STEPS_SIDE_BY_SIDE: scale.steps_alone // 2}.get(probe, scale.steps_together)
    # The first step of a row runs on cold caches and is not fitted; the second shall still reach most_n.
    return hpl_step_design(seed, rows=rows, nbs=(NB,), max_n=most_n + NB)

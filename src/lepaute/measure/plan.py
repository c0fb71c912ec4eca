"""The plan of a calibration: which probe runs on which cores in which block, on which design, and how long it takes."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lepaute.errors import EnvironmentProblem
from lepaute.measure import design as designs
from lepaute.measure.design.hpl_step import DEFAULT_NBS, StepOptions, drawn_step_options
from lepaute.measure.design.messages import DEFAULT_COUNTS
from lepaute.measure.layout import ALL, ONE, Layout, active, loads, places
from lepaute.measure.sentinel import MAX_SHARE, SENTINEL

#: Matrices up to this order; a machine with little memory gets less.
MAX_N = 8000
#: Share of the memory that all processes together may take: the rest of the machine must not be pushed to disk.
_MEMORY_SHARE = 0.4
#: What a rank of the ring takes besides its messages: room to move them about in, and its dgemm's operands.
RING_SPARE_BYTES = 64 << 20
#: Below this a plan does not check the available memory.
_MIN_MESSAGE_BYTES = 64 << 10
_MIN_OPERAND_BYTES = 16 << 20
#: Matrices of steps with other options than the defaults: what they change depends on columns more than on rows.
_OPTIONS_N = 3000
#: Largest k of a dgemm.
_MAX_K = 2048

#: Names of the probes in the observations. STEPS: each rank is a grid of its own; STEPS_COLUMN: all are one column.
DGEMM, STEPS, STEPS_COLUMN, P2P = "dgemm", "hpl_steps_1x1", "hpl_steps_column", "p2p"
#: All ranks are one column, with other options of HPL than the defaults.
STEPS_OPTIONS = "hpl_steps_options"
RING, SEMANTICS = "ring", "semantics"
#: Several messages at once from one node to another, and back.
FLOWS = "flows"
#: Messages of the flows: the start of an exchange and the skew between ranks are little of their time.
FLOW_BYTES = (1 << 20, 4 << 20, 16 << 20)
FLOW_REPLICATIONS = 4
#: Few products, often, with operands of several contents: some processors are slower on numbers that flip more bits.
CONTENT = "dgemm_content"
CONTENTS = ("random", "constant", "masked:40")
CONTENT_SIZES = ((1000, 1000, 128), (500, 500, 128))
#: For the operands of all contents together.
CONTENT_BYTES = 300_000_000
#: Programs without MPI, which start a process for each core themselves.
SERIAL = frozenset({DGEMM, CONTENT, SENTINEL})
#: Share of the rows of a probe that one core and all get where there are loads in between, and that one of these gets:
#: what changes on the way takes fewer calls, and a block takes as long as without, more starts included.
_OUTER_SHARE, _BETWEEN_SHARE = 0.8, 0.3
#: Of the rows of HPL's steps, that one core alone gets where all cores together get one: the models are those of a full
#: node, and how much faster a core is alone takes fewer calls.
_ALONE_SHARE = 0.5
#: Of these rows, so much less with each doubling of the cores: every core makes them, and more ranks start later.
_DOUBLING_SHARE = 0.09


@dataclass(frozen=True, slots=True)
class Scale:
    """How much a calibration measures of a node: the whole takes about 110 s on two cores, the quick one about 10 s.

    least_blocks     : after which it may end, where the precision is met
    steps, columns   : rows of HPL's steps, ranks for themselves and in one column
    option_runs      : runs of a block with other options of HPL; option_rows: rows of HPL's steps in each
    option_round     : runs after which the options begin anew; with one less every kernel is called, too
    operand_bytes    : memory of a dgemm's process, where there is as much
    p2p_most_bytes   : the largest message between two ranks and in the ring, where memory has room for it
    ring_sizes       : messages of each operation in the ring, each in all four conditions
    most_repetition_s: all repetitions of disturbed runs on a node together last no longer
    """

    blocks: int
    least_blocks: int
    dgemm_products: int
    dgemm_product_range: tuple[float, float]
    steps: int
    columns: int
    option_runs: int
    option_rows: int
    option_round: int
    operand_bytes: int
    p2p_counts: Mapping[str, int]
    p2p_most_bytes: int
    ring_sizes: int
    most_n: int
    most_repetition_s: float
    content_replications: int


#: Seven blocks: the effect of the day is drawn with one degree of freedom less than there are. Of five, with as many
#: rows in all, half-widths for one and the same machine were 7 to 21 %.
FULL = Scale(
    blocks=7,
    least_blocks=5,
    dgemm_products=43,
    dgemm_product_range=(1e3, 1.3e9),
    steps=12,
    columns=16,
    option_runs=1,
    option_rows=7,
    option_round=6,
    operand_bytes=1 << 30,
    p2p_counts={operation: round(0.7 * count) for operation, count in DEFAULT_COUNTS.items()},
    p2p_most_bytes=64 << 20,
    ring_sizes=9,
    most_n=MAX_N,
    most_repetition_s=20.0,
    content_replications=7,
)
QUICK = Scale(
    blocks=2,
    least_blocks=2,
    dgemm_products=14,
    dgemm_product_range=(1e3, 1e8),
    steps=6,
    columns=6,
    option_runs=2,
    option_rows=8,
    option_round=4,
    operand_bytes=32 << 20,
    p2p_counts={operation: count // 2 for operation, count in DEFAULT_COUNTS.items()},
    p2p_most_bytes=16 << 20,
    ring_sizes=10,
    most_n=1200,
    most_repetition_s=4.0,
    content_replications=3,
)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One fresh start of a probe.

    name   : of its design and raw files inside the block, such as dgemm_half
    probe  : its name in the observations
    cores  : those that compute, each process on `threads` of them one after the other
    load   : of the node, see `loads`
    threads: of a process
    most_bytes: memory of a process for operands; None: the probe takes what its design needs
    options: of HPL in its steps; None: the defaults
    """

    block: int
    name: str
    probe: str
    cores: tuple[int, ...]
    seed: int
    design: designs.Design
    load: str = ONE
    threads: int = 1
    most_bytes: int | None = None
    options: StepOptions | None = None

    @property
    def ranks(self) -> int:
        return len(self.cores) // self.threads


class Place(Protocol):
    """A node as the plan sees it; machine: equal for all names of one machine."""

    @property
    def name(self) -> str: ...

    @property
    def machine(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def memory_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Room:
    """How large the largest measurements are.

    most_n: order of a matrix; most_operand_bytes: operands of a dgemm's process; most_message_bytes: a message
    """

    most_n: int
    most_operand_bytes: int
    most_message_bytes: int


def room(scale: Scale, memory_bytes: int, ranks: int, most_message_bytes: int | None = None) -> Room:
    """What fits into a node with that memory while `ranks` processes run at once.

    most_message_bytes: that of the scale unless given
    """
    share = int(_MEMORY_SHARE * memory_bytes) // ranks
    return Room(
        most_n=min(scale.most_n, max(int((share / 8) ** 0.5), *DEFAULT_NBS)),
        most_operand_bytes=max(_MIN_OPERAND_BYTES, min(scale.operand_bytes, share)),
        most_message_bytes=largest_message(
            scale.p2p_most_bytes if most_message_bytes is None else most_message_bytes, memory_bytes, ranks
        ),
    )


def largest_message(most_bytes: int, memory_bytes: int, ranks: int) -> int:
    """`most_bytes`, or as much less as a node with that memory needs for `ranks` ranks.

    All buffers together take no more than the share that matrices may. A rank of a ring has room for a message to send
    and one to receive, and RING_SPARE_BYTES; a rank of a pair has twice the room, to move messages about in.
    """
    whole = int(_MEMORY_SHARE * memory_bytes)
    in_pair, in_ring = whole // 8, (whole // ranks - RING_SPARE_BYTES) // 2
    return max(_MIN_MESSAGE_BYTES, min(most_bytes, in_pair, in_ring))


def plan(
    scale: Scale,
    seed: int,
    layout: Layout,
    limits: Room,
    position: int = 0,
    *,
    nbs: Sequence[int] = DEFAULT_NBS,
    threads: Sequence[int] = (1,),
    blocks: int = 0,
) -> list[PlannedRun]:
    """All runs on one node in the order in which they will be made: blocks one after the other, shuffled inside.

    position: of the node among those that are measured
    nbs     : block sizes of HPL's steps
    blocks  : how many, if more than the scale's, which stay the same
    threads : of a process; kernels are measured with each number, messages between processes of one thread
    Every run has a design and a seed of its own, drawn from `seed` and `position`: blocks and nodes are independent.
    """
    if len(layout.cores) < 2:
        raise EnvironmentProblem("calibration needs two cores, got one; measure on a machine that has them")
    runs = []
    root = np.random.SeedSequence([seed, 0, position] if position else seed)
    core_seed, of_options, *block_seeds = root.spawn(max(blocks, scale.blocks) + 2)
    of_round = np.random.default_rng(of_options)
    options = (option for _ in itertools.count() for option in drawn_step_options(of_round, scale.option_round))
    for block, block_seed in enumerate(block_seeds):
        rng = np.random.default_rng(block_seed)
        drafts = [
            *(draft for count in threads for draft in _kernel_drafts(layout, count, block, core_seed, rng)),
            *_options_drafts(layout, min(threads), [next(options) for _ in range(scale.option_runs)]),
            *_message_drafts(layout, rng),
        ]
        seeds = [int(value) for value in rng.integers(0, 2**31, size=len(drafts))]
        order = [int(index) for index in rng.permutation(len(drafts))]
        runs += [drafts[index].run(block, scale, seeds[index], limits, nbs) for index in order]
    return runs


@dataclass(frozen=True, slots=True)
class _Draft:
    """A run before it has a design; share: of the rows that the scale has for its probe."""

    name: str
    probe: str
    processes: tuple[tuple[int, ...], ...]
    load: str
    share: float
    options: StepOptions | None = None

    def run(self, block: int, scale: Scale, seed: int, limits: Room, nbs: Sequence[int]) -> PlannedRun:
        most_bytes = {DGEMM: limits.most_operand_bytes, CONTENT: min(CONTENT_BYTES, limits.most_operand_bytes)}
        return PlannedRun(
            block,
            self.name,
            self.probe,
            tuple(core for process in self.processes for core in process),
            seed,
            design_of(scale, self.probe, seed, limits, len(self.processes), nbs, self.share),
            self.load,
            len(self.processes[0]),
            most_bytes.get(self.probe),
            self.options,
        )


def _kernel_drafts(
    layout: Layout, threads: int, block: int, core_seed: "np.random.SeedSequence", rng: "np.random.Generator"
) -> list[_Draft]:
    """The runs of one block that measure kernels with that many threads."""
    more = f"_{threads}_threads" if threads > 1 else ""
    every = loads(layout, threads)
    between = [load for load in every if load not in (ONE, ALL)]
    fewer = 1.0 - _DOUBLING_SHARE * math.log2(len(layout.cores) / 2)
    drafts = []
    for load in every:
        if load in between and load != between[block % len(between)]:
            continue
        processes = active(layout, load, threads, block, np.random.default_rng(core_seed) if load == ONE else rng)
        share = fewer * (1.0 if not between else _OUTER_SHARE if load in (ONE, ALL) else _BETWEEN_SHARE)
        probes = (DGEMM, STEPS) if threads > 1 else (DGEMM, CONTENT, STEPS)
        alone = _ALONE_SHARE if load == ONE and len(every) > 1 else 1.0
        drafts += [
            _Draft(f"{probe}_{load}{more}", probe, processes, load, share * (alone if probe == STEPS else 1.0))
            for probe in probes
        ]
    column = places(layout, threads)
    if len(column) > 1:
        drafts.append(_Draft(f"{STEPS_COLUMN}{more}", STEPS_COLUMN, column, ALL, fewer))
    return drafts


def _options_drafts(layout: Layout, threads: int, options: Sequence[StepOptions]) -> list[_Draft]:
    """Steps of one column of all ranks with other options than the defaults; none where there is one rank."""
    column = places(layout, threads)
    return [
        _Draft(f"{STEPS_OPTIONS}_{number}", STEPS_OPTIONS, column, ALL, 1.0, each)
        for number, each in enumerate(options)
        if len(column) > 1
    ]


def _message_drafts(layout: Layout, rng: "np.random.Generator") -> list[_Draft]:
    """Messages between two cores of each distance that there is, drawn anew in each block, and in a ring of all."""
    pairs = _pairs(layout, rng)
    drafts = [
        _Draft(f"{P2P}_{distance}", P2P, tuple((core,) for core in pair), "", 1.0 / len(pairs))
        for distance, pair in pairs.items()
    ]
    return [*drafts, _Draft(RING, RING, places(layout, 1), ALL, 1.0)]


def _pairs(layout: Layout, rng: "np.random.Generator") -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    numbers = [core.number for core in layout.cores]
    for first in map(int, rng.permutation(numbers)):
        others: dict[str, list[int]] = {}
        for second in numbers:
            if second != first:
                others.setdefault(layout.distance(first, second), []).append(second)
        for distance in sorted(others.keys() - found.keys()):
            found[distance] = first, int(rng.choice(others[distance]))
        if len(found) == 3:
            break
    return dict(sorted(found.items()))


def design_of(
    scale: Scale, probe: str, seed: int, limits: Room, ranks: int, nbs: Sequence[int] = DEFAULT_NBS, share: float = 1.0
) -> designs.Design:
    """Design of a run of a probe; share: of the rows that the scale has for it."""

    def part(count: int) -> int:
        return max(round(count * share), 1)

    most_n, messages = limits.most_n, (1, limits.most_message_bytes)
    if probe == DGEMM:
        # Of C and the larger of A and B, with a little more for leading dimensions.
        order = min(most_n, int((_MAX_K**2 / 4 + 0.95 * limits.most_operand_bytes / 8) ** 0.5 - _MAX_K / 2))
        least, highest = scale.dgemm_product_range
        depth = min(_MAX_K, order)
        return designs.dgemm_design(
            seed,
            products=part(scale.dgemm_products),
            product_range=(least, min(highest, order * order * depth / 8)),  # not the few shapes of the very largest
            most=(order, order, depth),
        )
    if probe == CONTENT:
        sizes = [size for size in CONTENT_SIZES if max(size) <= most_n] or [(most_n, most_n, min(128, most_n))]
        return designs.content_design(
            seed, sizes=sizes, contents=CONTENTS, replications=part(scale.content_replications)
        )
    if probe == P2P:
        counts = {operation: part(count) for operation, count in scale.p2p_counts.items()}
        return designs.p2p_design(seed, counts=counts, size_range_bytes=messages)
    if probe == RING:
        return designs.ring_design(seed, ranks=ranks, sizes=scale.ring_sizes, size_range_bytes=messages)
    if probe == FLOWS:
        flows = [size for size in FLOW_BYTES if size <= limits.most_message_bytes] or [limits.most_message_bytes]
        return designs.flow_design(seed, ranks=ranks, sizes=flows, replications=FLOW_REPLICATIONS)
    # The first step of a row runs on cold caches and is not fitted; the second shall still reach most_n.
    most = most_n + max(nbs)
    if probe == STEPS_COLUMN:
        return designs.hpl_step_design(seed, rows=part(scale.columns), nbs=nbs, max_n=most, ranks=ranks)
    if probe == STEPS_OPTIONS:
        most = min(most_n, _OPTIONS_N) + max(nbs)
        return designs.hpl_step_design(seed, rows=scale.option_rows, nbs=nbs, max_n=most, ranks=ranks)
    return designs.hpl_step_design(seed, rows=max(part(scale.steps), len(nbs)), nbs=nbs, max_n=most)


#: Start of a process by itself, of an mpirun, and of each of its ranks; of each process until its first call.
_PROCESS_S, _MPIRUN_S, _RANK_S = 0.05, 0.25, 0.012
#: Memory that is written for the first time, random numbers, and what is read and written: seconds a byte.
_TOUCH_S, _RANDOM_S, _COPY_S = 2.0e-10, 1.5e-10, 2.5e-10
#: Rates as shares of that of a large dgemm: of HPL's update, and of the factorisation of a panel.
_UPDATE_SHARE, _PANEL_SHARE = 0.8, 0.1
#: A pivot of a panel is agreed upon in log2 of the ranks rounds.
_ROUND_S = 3e-6
#: A call of a kernel of no size; an exchange of messages of no size with what the probe does around it.
_CALL_S, _EXCHANGE_S = 2e-6, 5e-4
#: Messages move through memory that both ranks share, to and fro: seconds a byte of the sizes in a design.
_P2P_S, _RING_S = 6e-10, 1e-9
#: Tests of send-completion semantics on one node; and what comes before the first run and after the last.
SEMANTICS_S, AROUND_S = 5.0, 6.0


def reckoned_s(runs: Iterable[PlannedRun], gflops: float) -> float:
    """Seconds that runs on one node take, one after the other; gflops: of a large dgemm on one core."""
    return sum(run_s(run, gflops) for run in runs)


def calibration_s(runs: Iterable[PlannedRun], gflops: float) -> float:
    """Seconds of the calibration of one node, undisturbed, with as many sentinels as there may be."""
    return AROUND_S + SEMANTICS_S + reckoned_s(runs, gflops) / (1.0 - MAX_SHARE)


def run_s(run: PlannedRun, gflops: float) -> float:
    rate = gflops * 1e9 * run.threads
    if run.probe in SERIAL:
        return _PROCESS_S + 0.002 * run.ranks + _dgemm_s(run, rate)
    start_s = _MPIRUN_S + _RANK_S * run.ranks
    if run.probe in (P2P, RING, FLOWS):
        sizes = [int(str(size)) for size in run.design.column("size_bytes")]
        byte_s = _P2P_S if run.probe == P2P else _RING_S
        return start_s + len(sizes) * _EXCHANGE_S + byte_s * sum(sizes) + 8 * _TOUCH_S * max(sizes)
    return start_s + _steps_s(run, rate)


def _dgemm_s(run: PlannedRun, rate: float) -> float:
    products = [(int(str(row[1])), int(str(row[2])), int(str(row[3]))) for row in run.design.rows]
    flops = 2.0 * sum(m * n * k for m, n, k in products)
    operands = 8.0 * max(m * n + max(m, n) * k for m, n, k in products)
    pools = max(2.0 * operands, 256 << 20) * (len(CONTENTS) if run.probe == CONTENT else 1)
    pools = min(pools, run.most_bytes or math.inf)
    return flops / rate + len(products) * _CALL_S + pools * (_TOUCH_S + _RANDOM_S)


def _steps_s(run: PlannedRun, rate: float) -> float:
    column = 1 if run.probe == STEPS else run.ranks
    rounds = math.ceil(math.log2(column)) if column > 1 else 0
    total_s, largest = 0.0, 0.0
    for row in run.design.rows:
        m, n, nb, _chunks, steps = (int(str(cell)) for cell in row[1:6])
        own = m / column
        bytes_here = 8.0 * own * n
        largest = max(largest, bytes_here)
        total_s += _RANDOM_S * bytes_here + _COPY_S * bytes_here
        for step in range(steps):
            rows, columns = max(own - step * nb / column, 0.0), n - step * nb
            total_s += 2.0 * rows * columns * nb / (rate * _UPDATE_SHARE) + nb**2 * rows / (rate * _PANEL_SHARE)
            total_s += 3 * 8.0 * _COPY_S * nb * columns + nb * (rounds * _ROUND_S + 8 * _CALL_S)
    return total_s + _TOUCH_S * largest

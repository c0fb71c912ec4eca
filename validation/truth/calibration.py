"""The calibration of a made-up machine: the tables that the probes would have written, in an archive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.measure.archive import ArchiveWriter
from lepaute.measure.design import dgemm_design, hpl_step_design, p2p_design
from lepaute.measure.plan import CONTENT, CONTENTS, DGEMM, P2P
from truth.law import EAGER_BYTES, GRID, IPROBE_S, NB, RECEIVE, SEND, TEST_S, WTIME_S, Effects, Law

#: The largest matrix of a run.
MAX_N = 4000
CORES = (0, 1)
#: Steps of HPL on one core, on both at once, and on both as one process column, by the names of archives of two cores.
STEPS_ALONE, STEPS_SIDE_BY_SIDE, STEPS_TOGETHER = "hpl_steps_1x1", "hpl_steps_1x1_pair", "hpl_steps_2x1"
CLOCK_S = 2e-8
GAP_S = 1e-7
#: Seconds that the slot of a process takes.
SLOT_S = 100.0
#: Calls of the recursion of a panel that are timed, of each width.
MAX_OF_A_WIDTH = 4
LEADING_PAD = 8
#: Sizes of messages around the limit that tests of send-completion find, each asked so often.
TESTED_BYTES = (1, 1024, EAGER_BYTES, EAGER_BYTES + 1, 1 << 16, 16 << 20)
ASKED = 3
LARGEST_MESSAGE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Scale:
    """How much a calibration measures; counts of one block, as in `lepaute.measure.plan.Scale`."""

    blocks: int
    products: int
    steps: int
    messages: int


USUAL, FEW = Scale(7, 12, 12, 60), Scale(2, 4, 4, 30)


@dataclass(frozen=True, slots=True)
class Slot:
    """A start of mpirun: probe, ranks as (node, core), block, and the slots before it in time of all slots."""

    probe: str
    ranks: tuple[tuple[int, int], ...]
    block: int
    position: int
    slots: int


def write_calibration(path: Path, law: Law, effects: Effects, nodes: int, rng: np.random.Generator) -> Path:
    """Writes the archive of a calibration of `nodes` nodes with two cores each; returns its path."""
    scale = FEW if law.scatter.few else USUAL
    kernels, messages = [], []
    for slot in _slots(scale, nodes, law.scatter.sorted, rng):
        start = effects.start()
        if slot.probe == P2P:
            messages.append(message_rows(slot, scale, law, effects, rng))
            continue
        calls = _rows(slot, scale, law.scatter.sorted, rng)
        for rank, (node, core) in enumerate(slot.ranks):
            log_factor = start + effects.process(slot.block, node, core)
            mean_s = means_s(calls[rank], law.crowded_s if slot.probe == STEPS_SIDE_BY_SIDE else law.mean_s)
            along = (np.cumsum(mean_s) - mean_s / 2) / np.sum(mean_s)  # how far the process has come, 0 to 1
            wander = effects.wander()[np.minimum((along * GRID).astype(int), GRID - 1)]
            drift = effects.drift((slot.position + along) / slot.slots)
            duration_s = law.durations_s(mean_s, np.exp(log_factor + wander + drift), rng) + CLOCK_S
            kernels.append(observed(calls[rank], slot, rank, duration_s))
    facts = {"node_cores": 2, "cores": list(CORES), "cpus": list(CORES), "memory_bytes": 8 << 30}
    return write_archive(path, pandas.concat(kernels, ignore_index=True), messages, nodes, facts)


def write_archive(
    path: Path,
    kernels: pandas.DataFrame,
    messages: list[pandas.DataFrame],
    nodes: int,
    facts: dict[str, object],
    layout: dict[str, object] | None = None,
) -> Path:
    """Writes the tables of calls and messages, and what such an archive says of its nodes; returns its path."""
    facts = {"cpu_model": "made up", **facts, "blas": {"core": "Haswell"}, "mpi": {}}
    names = [f"n{node + 1}" for node in range(nodes)]
    about = {
        "kind": "calibration", "created": "2026-11-22T00:00:00+00:00", "lepaute_version": "0", "host": ",".join(names),
        "machines": {name: {"machine": name, **facts, **(layout or {})} for name in names}, "warnings": [], "seed": 1,
        **facts,
    }  # fmt: skip
    with ArchiveWriter(path, about) as archive:
        archive.add_table("observations/kernels.parquet", kernels)
        archive.add_table("observations/p2p.parquet", pandas.concat(messages, ignore_index=True))
        archive.add_table("observations/semantics.parquet", semantics_rows(nodes))
    return path


def _slots(scale: Scale, nodes: int, with_content: bool, rng: np.random.Generator) -> list[Slot]:
    """All starts in the order of time: those of a block shuffled, as a plan has them."""
    drafts: list[tuple[str, tuple[tuple[int, int], ...]]] = []
    for node in range(nodes):
        both = tuple((node, core) for core in CORES)
        drafts += [(probe, (place,)) for place in both for probe in (DGEMM, STEPS_ALONE)]
        drafts += [(CONTENT, (place,)) for place in both if with_content]
        drafts += [(probe, both) for probe in (STEPS_TOGETHER, STEPS_SIDE_BY_SIDE, P2P)]
    drafts += [(P2P, ((node, CORES[0]), (node + 1, CORES[0]))) for node in range(nodes - 1)]
    total = scale.blocks * len(drafts)
    return [
        Slot(*drafts[index], block, block * len(drafts) + position, total)
        for block in range(scale.blocks)
        for position, index in enumerate(rng.permutation(len(drafts)))
    ]


def _rows(slot: Slot, scale: Scale, in_order: bool, rng: np.random.Generator) -> list[pandas.DataFrame]:
    """The calls of each rank, in their order: design_row, position, kernel, m, n, k, and content where it varies."""
    seed = int(rng.integers(2**31))
    if slot.probe == CONTENT:
        return [_content_rows()]
    if slot.probe == DGEMM:
        design = dgemm_design(seed, products=scale.products, product_range=(1e3, 3e8), most=(MAX_N, MAX_N, 2048))
        sizes = [tuple(int(value) for value in row[1:4]) for row in design.rows]
        sizes = sorted(sizes, key=np.prod) if in_order else sizes
        return [call_rows([(row, 0, "dgemm", *size) for row, size in enumerate(sizes)])]
    rows = scale.steps // 2 if slot.probe == STEPS_SIDE_BY_SIDE else scale.steps
    design = hpl_step_design(seed, rows=rows, nbs=(NB,), max_n=MAX_N + NB)
    steps = sorted(design.rows, key=lambda row: row[1] * row[2]) if in_order else design.rows
    return step_rows(steps, slot.probe == STEPS_TOGETHER, len(slot.ranks), rng)


def step_rows(steps: Sequence[Any], together: bool, ranks: int, rng: np.random.Generator) -> list[pandas.DataFrame]:
    """The calls of each rank in rows of a design of steps, in their order; together: of one process column."""
    return [
        call_rows(
            [
                (number, position, *call)
                for number, (_, m, n, _, chunks, count) in enumerate(steps)
                for position in range(count)
                for call in step_calls(m, n, position, chunks, together, (rank - position) % ranks, rng)
            ]
        )
        for rank in range(ranks)
    ]


def step_calls(
    m: int, n: int, position: int, chunks: int, together: bool, distance: int, rng: np.random.Generator
) -> list[tuple[str, int, int, int]]:
    """Kernel, m, n, k of the timed calls of the step of that number in a trailing matrix of first m rows, n columns.

    together : the rows are shared by two ranks, of which the one of distance 0 owns the panel
    """
    leading_dimension = (m // 2 if together else m) + LEADING_PAD
    m, n = m - position * NB, n - position * NB
    rows = m // 2 if together else m
    calls: list[tuple[str, int, int, int]] = []
    width = NB // 2
    while width >= 2:
        for at in range(min(NB // (2 * width), MAX_OF_A_WIDTH)):
            done = 0 if together else 2 * width * at
            calls += [("dtrsm", width, width, width), ("dgemm", max(rows - done - width, 0), width, width)]
        width //= 2
    calls += [("dgemv", max(rows - 2 * at, 1), 1, 0) for at in range(MAX_OF_A_WIDTH)]
    calls += [("dgemv", int(rng.integers(1, rows + 1)), width, 0) for width in (1, NB)]  # the latter in the solution
    columns, below = max(n - NB, 0) + 1, max(rows - NB // (2 if together else 1), 0)
    parts = [min(NB, columns)] * min(chunks, (columns - 1) // NB)
    for count in [*parts, columns - sum(parts)]:
        if together:
            moved = int(rng.binomial(NB, 0.5))
            if distance == 0:
                calls += [("dlaswp01T", NB + moved, count, leading_dimension), ("dlaswp03T", moved, count, 0)]
            else:
                calls += [(name, moved, count, leading_dimension) for name in ("dlaswp02N", "dlaswp04T")]
            calls += [("dtrsm", count, NB, NB), ("dgemm", below, count, NB)]
        else:
            calls += [("dlaswp00N", NB, count, leading_dimension)]
            calls += [("dtrsm_left", NB, count, NB), ("dgemm_nn", below, count, NB)]
    return [call for call in calls if min(call[1:3]) > 0]


def _content_rows() -> pandas.DataFrame:
    """Levels of the content of operands one after the other, not shuffled."""
    rows = [(content, size) for content in CONTENTS for size in (1000, 500) for _ in range(6)]
    frame = call_rows([(number, 0, "dgemm", size, size, NB) for number, (_, size) in enumerate(rows)])
    return frame.assign(content=[content for content, _ in rows])


def call_rows(rows: list[tuple[int, int, str, int, int, int]]) -> pandas.DataFrame:
    """A table of (design row, position, kernel, m, n, k)."""
    return pandas.DataFrame(rows, columns=["design_row", "position", "kernel", "m", "n", "k"])


def means_s(calls: pandas.DataFrame, of_kernel: Callable[..., np.ndarray]) -> np.ndarray:
    """Of each call, shape (calls,); of_kernel: of a kernel by name, m, n and k."""
    sizes = calls[["m", "n", "k"]].to_numpy(dtype=np.float64).T
    result_s = np.zeros(len(calls))
    for kernel in calls["kernel"].unique():
        mine = (calls["kernel"] == kernel).to_numpy()
        result_s[mine] = of_kernel(str(kernel), *sizes[:, mine])
    return result_s


def observed(
    calls: pandas.DataFrame, slot: Slot, rank: int, duration_s: np.ndarray, **more: object
) -> pandas.DataFrame:
    """The calls of a rank as an archive has them."""
    node, core = slot.ranks[rank]
    return calls.assign(
        kind="dgemm" if slot.probe in (DGEMM, CONTENT) else "hpl_step", start_s=starts_s(slot, duration_s),
        duration_s=duration_s, rank=rank, cpu=core, content=calls.get("content"), block=slot.block, attempt=0,
        disturbed=False, host=f"n{node + 1}", probe=slot.probe, clock_cost_s=CLOCK_S, **more,
    )  # fmt: skip


def starts_s(slot: Slot, duration_s: np.ndarray) -> np.ndarray:
    """When each call of a process began."""
    return slot.position * SLOT_S + np.concatenate([[0.0], np.cumsum(duration_s + GAP_S)[:-1]])


def message_rows(slot: Slot, scale: Scale, law: Law, effects: Effects, rng: np.random.Generator) -> pandas.DataFrame:
    """Operations between two ranks, timed by the first."""
    count = scale.messages
    counts = {"pingpong": count, "recv": count, "isend": count, "exchange": count // 2, "strided": count // 2}
    counts |= {"seen": count // 4, "iprobe": count // 4, "test": count // 4, "wtime": count // 4}
    design = p2p_design(int(rng.integers(2**31)), counts=counts, size_range_bytes=(1, LARGEST_MESSAGE_BYTES))
    rows = sorted(design.rows) if law.scatter.sorted else design.rows
    operation = np.array([str(row[0]) for row in rows])
    size = np.array([row[1] for row in rows], dtype=np.float64)
    (first, core), (second, _) = slot.ranks
    link = "local" if first == second else "remote"
    one, eager = law.one_way_s(link, size), size <= EAGER_BYTES

    def noise() -> np.ndarray:
        return law.message_noise(rng, len(size))

    empty_s = law.one_way_s(link, np.zeros(1))[0]
    both_ways = (noise() + noise()) / 2
    kinds = {
        "pingpong": 2 * one * both_ways,
        "exchange": one * noise(),
        "isend": (SEND[0] + np.where(eager, SEND[1] * size, 0.0)) * noise(),
        "recv": np.where(eager, RECEIVE[0] + RECEIVE[1] * size, one) * noise(),
        "strided": law.one_way_s(link, size, gaps=True) * noise() + empty_s,
        "seen": IPROBE_S * noise(),
        "iprobe": IPROBE_S * noise(),
        "test": TEST_S * noise(),
        "wtime": WTIME_S * noise(),
    }
    duration_s = np.zeros(len(size))
    for name, seconds in kinds.items():
        duration_s[operation == name] = seconds[operation == name]
    duration_s = duration_s * effects.of_messages() + CLOCK_S
    return pandas.DataFrame(
        {
            "design_row": np.arange(len(size)), "operation": operation, "size_bytes": size.astype(int),
            "start_s": starts_s(slot, duration_s), "duration_s": duration_s, "rank": 0, "cpu": core,
            "block": slot.block, "attempt": 0, "disturbed": False, "host": f"n{first + 1}", "link": link,
            "peer": f"n{second + 1}", "clock_cost_s": CLOCK_S,
        }
    )  # fmt: skip


def semantics_rows(nodes: int) -> pandas.DataFrame:
    """Tests that find the limit of each link exactly."""
    outcomes = {"deadlock": ("returned", "blocked"), "corruption": ("copied", "changed")}
    rows = []
    for link in ("local", "remote")[:nodes]:
        for _ in range(ASKED):
            for test, (within, beyond) in outcomes.items():
                for size in TESTED_BYTES:
                    outcome = within if size <= EAGER_BYTES else beyond
                    rows.append(
                        (test, size, 0, 20, outcome, len(rows) * 1e-3, link, "n2" if link == "remote" else "n1")
                    )
    columns = ["test", "size_bytes", "backlog", "patience_ms", "outcome", "start_s", "link", "peer"]
    frame = pandas.DataFrame(rows, columns=columns)
    return frame.assign(
        design_row=range(len(frame)), returned=1, duration_s=1e-4, rank=0, cpu=0, block=0, attempt=0, disturbed=False,
        host="n1", round=0, clock_cost_s=CLOCK_S,
    )  # fmt: skip

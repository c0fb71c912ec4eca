"""What the node test measures; `lepaute.measure.shipped.node_test` puts it together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, Field

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES
from lepaute.measure.design import Design, dgemm_design
from lepaute.measure.design.columns import DECLARATION
from lepaute.measure.design.memory import memory_design
from lepaute.measure.design.sizes import Triple
from lepaute.measure.design.table import header_of
from lepaute.measure.experiment.options import parsed_parameters
from lepaute.measure.experiment.ranks import start_of_ranks, write_hosts
from lepaute.measure.layout import Layout
from lepaute.measure.node_test_workloads import chosen_workloads, is_of_workloads
from lepaute.measure.nodes.channel import Channel
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.probes import DGEMM_PROGRAM, P2P_PROGRAM
from lepaute.measure.raw_files import header_of_raw, rows_of
from lepaute.measure.schedulers.types import RankLaunch

#: Largest m, n, k; and memory for the operands of each core, with room to move in.
MOST: Triple = (3000, 3000, 2048)
OPERAND_BYTES = 320 << 20
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
#: A block takes seconds; one that takes so long hangs.
BLOCK_LIMIT_S = 900.0
#: Beyond the share of a core in any cache; read as `lepaute run memory` reads fastest.
BUFFER_BYTES, STRIDE, ELEMENT_BYTES, UNROLL = 64 << 20, 1, 16, 8
BATCH_BYTES, REPLICATIONS, QUICK_REPLICATIONS = 256 << 20, 12, 2
PINGPONGS, QUICK_PINGPONGS = 400, 60
MAX_BYTES = 8 << 20
LIMIT_S = 120.0
#: What is absent, and how the names of its columns begin.
SENSORS = {"frequency of the cores": ("frequency_core",), "temperature": ("temperature_",), "power": ("power_",)}


Seconds = Annotated[float, Field(ge=0.0, le=86_400.0)]


class Parameters(BaseModel, frozen=True, extra="forbid"):
    """warm_up_s  : dgemm on all cores before anything is measured
    dgemm_s    : no block of dgemm begins later than this; four minutes, so that the steady window is whole
    disk_folder: where the disk is probed; the folder of temporary files by default
    workloads  : of stress-ng, with commas; all or none. A user's: workload.NAME=COMMAND, workload_pattern.NAME=PATTERN
    workload_s : of each run of a stressor
    quick      : a few seconds of each part, to try the test out; not comparable with whole tests
    """

    warm_up_s: Seconds = 60.0
    dgemm_s: Seconds = 240.0
    disk_folder: str = ""
    workloads: str = "all"
    workload_s: Annotated[int, Field(ge=1, le=600)] = 3
    quick: bool = False

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Raises InputError for an unknown name, or a value that cannot be."""
        known = {name: value for name, value in given.items() if name in cls.model_fields or not is_of_workloads(name)}
        chosen = parsed_parameters(cls, known)
        if chosen.quick:
            chosen = parsed_parameters(cls, {"warm_up_s": 0.5, "dgemm_s": 0.0, "workload_s": 1, **known})
        chosen_workloads(chosen.workloads, chosen.workload_s, given)
        return chosen


@dataclass(frozen=True, slots=True)
class Scale:
    """products, product_range, fixed: as of `dgemm_design`; most_blocks: more than any machine has time for."""

    products: int
    product_range: tuple[float, float]
    fixed: tuple[Triple, ...]
    most_blocks: int


#: Some 480 sizes, which take a core of 40 Gflop/s 12 s; `dgemm_2048_rate_flops` is taken of the calls of 2048.
FULL = Scale(80, (1e3, 8e9), ((2048, 2048, 2048),), 60)
QUICK = Scale(6, (1e3, 1e7), ((256, 256, 256),), 2)


def node_test_design(seed: int, scale: Scale, order_seed: int) -> Design:
    """Blocks of the same sizes, each shuffled for itself.

    seed      : of the sizes: results of other sizes are not compared
    order_seed: of the order of the calls
    """
    sizes = dgemm_design(
        seed, products=scale.products, product_range=scale.product_range, most=MOST, fixed=scale.fixed
    ).rows
    rng = np.random.default_rng(order_seed)
    rows = tuple(
        (*sizes[index], block) for block in range(scale.most_blocks) for index in rng.permutation(len(sizes)).tolist()
    )
    header = header_of("node test", seed, order_seed=order_seed, products=scale.products, most=MOST)
    header |= {"product_range": f"{scale.product_range}", DECLARATION: "kind:text,m:int,n:int,k:int,block:int"}
    return Design(header, ("kind", "m", "n", "k", "block"), rows)


@dataclass(frozen=True, slots=True)
class CoreCalls:
    """Calls of a core: its hardware thread, the calls in the order of the design, and what reading the clock costs."""

    cpu: int
    start_s: tuple[float, ...]
    duration_s: tuple[float, ...]
    clock_cost_s: float


def run_block(node: Nodes, layout: Layout, block: Design, seed: int) -> list[CoreCalls]:
    """Makes the calls of a block on all cores of one node; raises CommandFailed, EnvironmentProblem, NodeLost."""
    threads = [core.pu for core in layout.cores]
    node.write("dgemm.csv", block.to_csv())
    node.run(
        f"./{DGEMM_PROGRAM}",
        *("--design", "dgemm.csv", "--out", "dgemm.raw", "--seed", seed, "--max-bytes", OPERAND_BYTES),
        *("--cpus", ",".join(map(str, threads))),
        environment=ONE_THREAD,
        timeout_s=BLOCK_LIMIT_S,
    )
    calls = []
    for rank, thread in enumerate(threads):
        (content,) = node.read(f"dgemm.raw.r{rank}").values()
        text = content.decode()
        rows = rows_of(text)
        if len(rows) != len(block.rows):
            raise EnvironmentProblem(f"{node.names[0]}: dgemm wrote {len(rows)} of {len(block.rows)} rows")
        calls.append(
            CoreCalls(
                thread,
                tuple(float(row["start_s"]) for row in rows),
                tuple(float(row["duration_s"]) for row in rows),
                float(header_of_raw(text).get("clock_cost_s", 0.0)),
            )
        )
    return calls


def memory_rows(seed: int, *, quick: bool) -> Design:
    """The same batch of passes over the buffer again and again, its place in memory drawn anew for each."""
    return memory_design(
        seed,
        sizes_bytes=(BUFFER_BYTES,),
        strides=(STRIDE,),
        element_bytes=(ELEMENT_BYTES,),
        unrolls=(UNROLL,),
        allocations=1,
        fresh=False,
        batch_bytes=(BATCH_BYTES,),
        blocks=QUICK_REPLICATIONS if quick else REPLICATIONS,
    )


def numa_threads(layout: Layout) -> dict[int, list[int]]:
    """Number of each NUMA node -> the hardware thread of each of its cores."""
    threads: dict[int, list[int]] = defaultdict(list)
    for core in layout.cores:
        threads[core.numa].append(core.pu)
    return dict(threads)


def together(threads: list[int], design: str, seed: int) -> str:
    """A shell script that runs the probe on each of these threads at once; thread t leaves memory.t.csv."""
    runs = [
        f'./probe-memory --design {design} --out memory.{thread}.csv --cpu {thread} --seed {seed} & all="$all $!"'
        for thread in threads
    ]
    return "\n".join([*runs, "for one in $all; do wait $one; done"])


def messages_inside(node: Nodes, layout: Layout, design: Design, seed: int) -> list[dict[str, float | str]]:
    """Between the first two cores of one node; raises CommandFailed or NodeLost."""
    start = MPIRUN_OF_NODES.start(2, use_scheduler=False)
    node.write("p2p.csv", design.to_csv())
    threads = ",".join(str(core.pu) for core in layout.cores[:2])
    node.run(*start.argv, *_p2p_words(threads, seed), environment=start.environment, timeout_s=LIMIT_S)
    return _p2p_rows(node)


def messages_between(
    pair: tuple[Nodes, Nodes], layouts: Mapping[str, Layout], launch: RankLaunch, design: Design, seed: int
) -> list[dict[str, float | str]]:
    """Between the first cores of two nodes; raises CommandFailed or NodeLost."""
    first, second = pair
    names = [first.names[0], second.names[0]]
    for node in pair:
        node.write("p2p.csv", design.to_csv())
    write_hosts(first, names, 1, launch)
    one = first.channels[0]
    cores = [layouts[names[0]].cores[0], layouts[names[1]].cores[1 if _are_one_machine(pair) else 0]]
    words = _p2p_words(",".join(str(core.pu) for core in cores), seed, one)
    start = start_of_ranks(words, names, 1, None, launch, (), one.folder)
    first.run(*start.argv, environment=start.environment, timeout_s=LIMIT_S)
    return _p2p_rows(first)


def have_a_core_each(pair: tuple[Nodes, Nodes], layouts: Mapping[str, Layout]) -> bool:
    """Not where both are names of one machine that lends one core."""
    return not _are_one_machine(pair) or len(layouts[pair[1].names[0]].cores) > 1


def _are_one_machine(pair: tuple[Nodes, Nodes]) -> bool:
    one, other = (node.channels[0].hello.boot for node in pair)
    return one == other


def neighbours(names: Sequence[str]) -> list[tuple[str, str]]:
    """Each node with the next one in the order of the nodes, the last with the first: each node is in two pairs."""
    if len(names) < 2:
        return []
    pairs = list(zip(names, [*names[1:], names[0]], strict=True))
    return pairs[:1] if len(names) == 2 else pairs


def _p2p_words(cpus: str, seed: int, channel: Channel | None = None) -> list[str]:
    folder = "." if channel is None else channel.folder
    files = ["--design", f"{folder}/p2p.csv", "--out", f"{folder}/p2p.raw"]
    return [f"{folder}/{P2P_PROGRAM}", *files, "--seed", str(seed), "--cpus", cpus]


def _p2p_rows(node: Nodes) -> list[dict[str, float | str]]:
    """The columns of the table p2p: those of a calibration."""
    (content,) = node.read("p2p.raw.r0").values()
    text = content.decode()
    cost_s = float(header_of_raw(text).get("clock_cost_s", 0.0))
    return [
        {
            "operation": row["operation"],
            "size_bytes": int(row["size_bytes"]),
            "start_s": float(row["start_s"]),
            "duration_s": float(row["duration_s"]),
            "cpu": int(row["cpu"]),
            "clock_cost_s": cost_s,
        }
        for row in rows_of(text)
    ]


def absent_sensors(samples: Iterable[Mapping[str, object]]) -> list[str]:
    """Sensors without a number in any sample."""
    seen = {name for sample in samples for name, value in sample.items() if isinstance(value, int | float)}
    return [what for what, prefixes in SENSORS.items() if not any(name.startswith(prefixes) for name in seen)]

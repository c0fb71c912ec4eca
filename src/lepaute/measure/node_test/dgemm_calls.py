"""The dgemm part: a process on every core of a node, all making the same calls at the same time."""

from dataclasses import dataclass

from lepaute.design import Design
from lepaute.errors import EnvironmentProblem
from lepaute.measure.layout import Layout
from lepaute.measure.node_test.design import OPERAND_BYTES
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.probes import DGEMM_PROGRAM
from lepaute.measure.raw_output import header_of_raw, rows_of

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
#: A block takes seconds; one that takes so long hangs.
BLOCK_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class CoreCalls:
    """Of one core: its hardware thread, the calls in the order of the design, and what reading the clock costs."""

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

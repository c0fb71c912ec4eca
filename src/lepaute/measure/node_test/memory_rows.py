"""The memory part: all cores of a NUMA node read large buffers of their own at the same time."""

from collections import defaultdict

from lepaute.design import Design
from lepaute.design.memory import memory_design
from lepaute.measure.layout import Layout

#: Beyond the share of a core in any cache; read as `lepaute run memory` reads fastest.
BUFFER_BYTES, STRIDE, ELEMENT_BYTES, UNROLL = 64 << 20, 1, 16, 8
BATCH_BYTES, REPLICATIONS, QUICK_REPLICATIONS = 256 << 20, 12, 2


def memory_rows(seed: int, *, quick: bool) -> Design:
    """The same batch of passes over the buffer again and again, its place in memory drawn anew for each."""
    replications = QUICK_REPLICATIONS if quick else REPLICATIONS
    return memory_design(
        seed,
        sizes_bytes=(BUFFER_BYTES,),
        strides=(STRIDE,),
        element_bytes=(ELEMENT_BYTES,),
        unrolls=(UNROLL,),
        allocations=1,
        fresh=False,
        batch_bytes=(BATCH_BYTES,),
        blocks=replications,
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

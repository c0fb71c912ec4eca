"""Bandwidth of the memory, of experiments that measure the memory hierarchy (`lepaute run memory`).

That of the largest buffer, read with the widest elements, the smallest stride and the most unrolled loop: bytes of all
calls over the time of all calls. Where several cores of a processor were measured, that of a core in the mean.
"""

from collections.abc import Iterator

import numpy as np

from lepaute.fit.memory import is_memory
from lepaute.fit.observations.columns import Place, check_durations
from lepaute.watch.factors.archived_run import PLACES, ArchivedRun
from lepaute.watch.factors.sizes import cells_text
from lepaute.watch.factors.value import FactorValue

BANDWIDTH = "memory_bandwidth_B_per_s"
_NUMBERS = ("size_bytes", "stride", "element_bytes", "unroll", "read_bytes", "duration_s")


def memory(run: ArchivedRun) -> Iterator[FactorValue]:
    """The bandwidth of each processor that was measured."""
    import pandas as pd

    if run.is_calibration:
        return
    for member in run.tables():
        table = run.archive.table(member)
        if not is_memory(table) or len(table) == 0:
            continue
        for column in _NUMBERS:
            check_durations(table, Place(run.archive.path, member), column)
        nodes = run.nodes_of(table)
        if nodes is None:
            continue
        varied = [name for name in run.design_columns if name in table and name not in PLACES]
        threads = table["cpu"] if "cpu" in table else nodes.map(lambda _: -1)
        cpus = pd.Series(
            [run.cpu_of(str(node), int(thread)) for node, thread in zip(nodes, threads, strict=True)], table.index
        )
        for (node, cpu), rows in table.groupby([nodes, cpus], sort=True):
            largest = rows[rows["size_bytes"] == rows["size_bytes"].max()]
            for name, best in (("element_bytes", "max"), ("stride", "min"), ("unroll", "max")):
                largest = largest[largest[name] == largest[name].agg(best)]
            seconds = float(largest["duration_s"].sum())
            value = float(largest["read_bytes"].sum()) / seconds if seconds > 0 else np.nan
            how = cells_text(rows, varied or ["size_bytes", "stride", "element_bytes", "unroll"])
            yield FactorValue(str(node), BANDWIDTH, value, int(str(cpu)), {"buffers": how})
        return

"""Rates of a disk, of experiments that record a table `disk` with the columns operation, size_bytes and duration_s."""

import re
from collections.abc import Iterator

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.observations.columns import Place, check_durations
from lepaute.watch.factors.archived_run import PLACES, ArchivedRun
from lepaute.watch.factors.sizes import cells_text
from lepaute.watch.factors.value import FactorValue

TABLE = "observations/disk.parquet"
_COLUMNS = {"operation", "size_bytes", "duration_s"}


def disk(run: ArchivedRun) -> Iterator[FactorValue]:
    """disk_<operation>_B_per_s of each node: bytes of all calls over the time of all calls."""
    if run.is_calibration or TABLE not in run.archive.members():
        return
    table = run.archive.table(TABLE)
    if not set(table.columns) >= _COLUMNS or len(table) == 0:
        return
    for column in ("size_bytes", "duration_s"):
        check_durations(table, Place(run.archive.path, TABLE), column)
    nodes = run.nodes_of(table)
    if nodes is None:
        raise FitError(f"{run.archive.path}: {TABLE} does not name the nodes of its rows; record a column `node`")
    varied = [name for name in run.design_columns if name in table and name not in PLACES and name != "size_bytes"]
    for (node, operation), rows in table.groupby([nodes, table["operation"].astype(str)], sort=True):
        name = re.sub(r"[^a-z0-9]+", "_", str(operation).lower()).strip("_")
        seconds = float(rows["duration_s"].sum())
        rate = float(rows["size_bytes"].sum()) / seconds if seconds > 0 else np.nan
        how = {"calls": cells_text(rows, ["size_bytes", *varied])}
        yield FactorValue(str(node), f"disk_{name}_B_per_s", rate, conditions=how)

"""A trace that need not fit into memory, read in parts: the calls of some ranks at a time."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import counted
from lepaute.trace.table import (
    MOST_TRACE_BYTES,
    ROW_BYTES,
    Trace,
    foreign_trace,
    open_trace,
    read_columns,
    read_trace,
    trace_of_columns,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: What all parts together may take: some six hundred million calls.
MOST_BYTES = 1 << 36
#: From so many calls on a trace is read in parts, and a part has about as many.
PART_ROWS = 1 << 20


class TraceParts:
    """The parts of a file, in the order of ranks, each with all calls of its ranks.

    A trace of another program is one part, which is held.
    Raises InputError for what read_trace() refuses, and while it is gone through: for a long trace whose ranks are not
    in order, and for a rank with more calls than can be held.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._foreign = path, foreign_trace(path)
        if self._foreign is not None:
            self.rows, self.metadata = len(self._foreign), dict(self._foreign.metadata)
            return
        file, self.path, self.metadata = open_trace(path, MOST_BYTES)
        self.rows = int(file.metadata.num_rows)

    def __iter__(self) -> Iterator[Trace]:
        if self._foreign is not None:
            yield self._foreign
            return
        file, path, metadata = open_trace(self.path, MOST_BYTES)
        if self.rows <= PART_ROWS or (self.rows * ROW_BYTES <= MOST_TRACE_BYTES and not _in_order(file)):
            yield read_trace(path)
            return
        names: dict[str, int] = {}
        held: dict[str, NDArray[Any]] = {}
        for group in range(file.num_row_groups):
            if (file.metadata.row_group(group).num_rows + len(held.get("rank", ()))) * ROW_BYTES > MOST_TRACE_BYTES:
                raise InputError(
                    f"{self.path}: a rank, or a group of rows of the file, has more than "
                    f"{MOST_TRACE_BYTES // ROW_BYTES} calls, which is more than can be held at once"
                )

            def column(name: str, group: int = group) -> Any:
                return file.read_row_group(group, columns=[name]).column(0)

            columns = read_columns(path, file, names, column)
            if held and len(columns["rank"]) and columns["rank"].min() < held["rank"].max():
                raise InputError(f"{path}: has {counted(self.rows, 'call')} that are not in the order of their ranks")
            if held:
                columns = {name: numpy.concatenate((held.pop(name), columns.pop(name))) for name in list(columns)}
            kept = columns["rank"] == columns["rank"].max(initial=-1)  # the next group may have more of this rank
            if group + 1 == file.num_row_groups:
                kept[:] = False
            elif numpy.count_nonzero(~kept) < PART_ROWS // 2:
                kept[:] = True
            if not kept.all():
                part = {name: each[~kept] for name, each in columns.items()}
                held = {name: each[kept] for name, each in columns.items()}
                del columns
                yield trace_of_columns(part, list(names), metadata, str(path))
            else:
                held = columns


def _in_order(file: "pq.ParquetFile") -> bool:
    """Whether the ranks of no group of rows come before those of an earlier one, as far as the file tells."""
    place = file.schema_arrow.names.index("rank") if "rank" in file.schema_arrow.names else 0
    found = [file.metadata.row_group(number).column(place).statistics for number in range(file.num_row_groups)]
    bounds = [(each.min, each.max) for each in found if each is not None and each.has_min_max]
    return len(bounds) == len(found) and all(one[1] <= other[0] for one, other in pairwise(bounds))

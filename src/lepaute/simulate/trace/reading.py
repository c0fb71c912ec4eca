"""Reads traces: of which kind a file or folder is, one of ours or of another program; and one that need not fit into
memory in parts, the calls of some ranks at a time."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.documents import unpacked
from lepaute.kit.numbers import path_of
from lepaute.kit.text import counted
from lepaute.simulate.trace.consistency import checked
from lepaute.simulate.trace.table import (
    FORMATS_TEXT,
    MAX_TRACE_BYTES,
    ROW_BYTES,
    Trace,
    open_trace,
    read_columns,
    trace_of_columns,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: What all parts together may take: some six hundred million calls.
MAX_BYTES = 1 << 36
#: From this many calls on a trace is read in parts, and a part has about as many.
PART_ROWS = 1 << 20
_HEAD_BYTES = 1 << 16


def read_trace(path: str | Path) -> Trace:
    """Reads a trace: what each rank called, when and for how long, in seconds.

    Parameters
    ----------
    path : a Parquet file, of `lepaute record`, `predict --trace` or `write_trace`; or what another program wrote, as
           `lepaute trace convert` takes it

    Raises
    ------
    InputError : one line, where there is no file, or one that is no trace, or one of another form

    Examples
    --------
    >>> import lepaute as lp
    >>> lp.read_trace("t.parquet").to_frame()  # doctest: +SKIP
    """
    path = path_of(path, "the trace")
    if kind_of(path) is not None:
        return read_foreign(path)
    file, path, metadata = open_trace(path, MAX_TRACE_BYTES)
    names: dict[str, int] = {}
    columns = read_columns(path, file, names, lambda name: file.read(columns=[name]).column(0))
    return checked(trace_of_columns(columns, list(names), metadata, str(path)), str(path), sizes=False)


def kind_of(path: Path) -> str | None:
    """The module here that reads it, with convert(path, metadata); None if none does, as of a trace of ours."""
    if not path.exists():
        return None
    if path.suffix == ".otf2" or (path.is_dir() and any(path.glob("*.otf2"))):
        return "otf2_reader"
    if path.is_dir():
        first_file = min(path.glob("*.txt"), default=None)
        return None if first_file is None else kind_of(first_file)
    with unpacked(path, "a trace") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"#Paraver"):
        return "paraver"
    lines = (line.strip() for line in head.split(b"\n"))
    first = next((line for line in lines if line and not line.startswith((b"#", b"//"))), b"")
    if first.startswith(b"%"):
        return "smpi"
    if first.startswith(b"num_ranks "):
        return "goal"
    words = first.split()
    is_call = len(words) > 1 and words[0].isdigit() and words[1].replace(b"_", b"").isalpha()
    return "time_independent" if is_call or (b"\0" not in first and first.endswith(b".txt")) else None


def read_foreign(path: Path, metadata: Mapping[str, Any] | None = None, *, rate: float | None = None) -> Trace:
    """The trace of another program.

    metadata : goes above what the file itself says
    rate     : flop/s of the machine for which amounts of computing were counted, where the format has such; None: not
               known, and the trace's `flop_rate` says at which its durations stand
    Raises InputError, one line with the file and its line or rank, for what cannot be read.
    """
    kind = kind_of(path)
    if kind is None:
        raise InputError(f"{path}: not a trace of another program; read are {FORMATS_TEXT.partition(', ')[2]}")
    if rate is not None and kind != "time_independent":
        raise InputError(f"{path}: has times, not amounts of computing, for which --flop-rate is")
    read = import_module(f"lepaute.simulate.trace.{kind}").convert
    made: Trace = read(path, metadata) if rate is None else read(path, metadata, rate=rate)
    return checked(made, str(path), operations=kind != "time_independent")


def files_of(path: Path) -> list[Path]:
    """All that a trace consists of, in order: the file itself; of a folder or a list those in it."""
    if path.is_dir() or path.suffix == ".otf2":
        return sorted(each for each in (path if path.is_dir() else path.parent).rglob("*") if each.is_file())
    kind = kind_of(path)
    if kind not in ("time_independent", "paraver"):
        return [path]
    more: list[Path] = import_module(f"lepaute.simulate.trace.{kind}").further_files(path)
    return list(dict.fromkeys((path, *more)))


class TraceParts:
    """The parts of a file, in the order of ranks, each with all calls of its ranks.

    A trace of another program is one part, which is held.
    Raises InputError for what read_trace() refuses, and while it is gone through: for a long trace whose ranks are not
    in order, and for a rank with more calls than can be held.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._foreign = path, None if kind_of(path) is None else read_foreign(path)
        if self._foreign is not None:
            self.rows, self.metadata = len(self._foreign), dict(self._foreign.metadata)
            return
        file, self.path, self.metadata = open_trace(path, MAX_BYTES)
        self.rows = int(file.metadata.num_rows)

    def __iter__(self) -> Iterator[Trace]:
        if self._foreign is not None:
            yield self._foreign
            return
        file, path, metadata = open_trace(self.path, MAX_BYTES)
        if self.rows <= PART_ROWS or (self.rows * ROW_BYTES <= MAX_TRACE_BYTES and not _in_order(file)):
            yield read_trace(path)
            return
        names: dict[str, int] = {}
        held: dict[str, NDArray[Any]] = {}
        for group in range(file.num_row_groups):
            if (file.metadata.row_group(group).num_rows + len(held.get("rank", ()))) * ROW_BYTES > MAX_TRACE_BYTES:
                raise InputError(
                    f"{self.path}: a rank, or a group of rows of the file, has more than "
                    f"{MAX_TRACE_BYTES // ROW_BYTES} calls, which is more than can be held at once"
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

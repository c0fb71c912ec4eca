"""What the readers of other programs' traces share: words of lines, and calls as the rows that a recording has."""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from lepaute.errors import InputError
from lepaute.kit.documents import unpacked
from lepaute.kit.text import counted, seconds, tally
from lepaute.simulate.trace import table

#: Calls that no trace of ours has.
LEFT_OUT = frozenset(("MPI_Init", "MPI_Init_thread", "MPI_Finalize"))
#: Calls that communicate and that a replay cannot make: they are kept, and refused by it by name.
NOT_REPLAYED = re.compile(
    r"MPI_(Win_|File_|R?put|R?get(_accumulate)?$|R?accumulate|I?neighbor|Comm_spawn)", re.IGNORECASE
)
#: Flop/s at which amounts of computing are seconds where nothing tells of the machine.
UNIT_RATE = 1e9
LONGEST_LINE = 1 << 23


def words_of(path: Path, last: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each line that has any and is no comment (#); raises InputError for what cannot be read.

    last : the word with which a line may end where the file does; None: any. Elsewhere such a line may have been cut
    """
    with unpacked(path, "a trace") as file:
        for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 1):
            if len(line) == LONGEST_LINE:
                raise InputError(f"{path}, line {number}: has more than {LONGEST_LINE} bytes")
            words = line.decode("utf-8", "replace").split()
            if not line.endswith(b"\n") and last is not None and words[-1:] != [last]:
                raise InputError(f"{path}, line {number}: ends without a newline; the file is truncated")
            if words and not words[0].startswith("#"):
                yield number, words


def number_in(word: str, where: str, what: str, least: float = 0.0, as_type: Callable[[str], float] = float) -> float:
    """The number that a word is; raises InputError, where it is none, or below `least`."""
    try:
        found = as_type(word)
    except ValueError:
        found = math.nan
    if not least <= found < 1e18:
        raise InputError(f"{where}: {what} is {word[:40]!r}; it is a number{', at least 0' if least == 0.0 else ''}")
    return found


class Calls:
    """Rows of calls, as they are read, with the clock of each rank for formats that have no times.

    clock_s : of each rank the end of what it has done so far
    events : how many there are in the file, each of which is placed in a row, or omitted
    omitted: how many of these are in no row, by what they are
    regions : names of rows that are regions of the program
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.clock_s: dict[int, float] = {}
        self.events, self.placed, self.omitted = 0, 0, Counter[str]()
        self.regions: set[str] = set()
        self.gaps: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
        self._since: dict[tuple[int, str], float] = {}  # when a gap began
        self._names: dict[str, int] = {}
        self._columns: dict[str, array[Any]] = {
            **{name: array("d") for name in ("start_s", "duration_s", "size_bytes", "n")},
            **{name: array("q") for name in ("rank", "name", "peer", "tag", "comm", "completion")},
        }

    def __len__(self) -> int:
        return len(self._columns["rank"])

    def add(
        self,
        rank: int,
        name: str,
        peer: int = -1,
        size_bytes: float = 0.0,
        tag: int = -1,
        *,
        comm: int = -1,
        n: float = 0.0,
        start_s: float | None = None,
        duration_s: float = 0.0,
    ) -> int:
        """The number of the row; without a start it is when the rank's clock stands, which goes on."""
        if len(self) >= table.MAX_TRACE_BYTES // table.ROW_BYTES:
            raise InputError(
                f"{self.where}: has more than {table.MAX_TRACE_BYTES // table.ROW_BYTES} calls; these can be held"
            )
        if start_s is None:
            start_s = self.clock_s.get(rank, 0.0)
        self.clock_s[rank] = start_s + duration_s
        code = self._names.setdefault(name, len(self._names))
        row = (start_s, duration_s, size_bytes, n, rank, code, peer, tag, comm, -1)
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)
        return len(self) - 1

    def compute(self, rank: int, duration_s: float) -> None:
        if duration_s > 0.0:
            self.add(rank, table.COMPUTING, duration_s=duration_s)

    def region(self, rank: int, name: str, start_s: float, end_s: float, events: int = 2) -> None:
        """A phase, of so many events, unless half of all rows are used; those named as other rows get another name."""
        is_full = 2 * len(self) >= table.MAX_TRACE_BYTES // table.ROW_BYTES
        self.account("event| of the program's regions, for which there is no room" if is_full else "", events)
        if not is_full:
            name = f"{name} (region)" if name in table.BETWEEN_CALLS | table.GAPS or name.startswith("MPI_") else name
            self.regions.add(name)
            self.add(rank, name, start_s=start_s, duration_s=max(0.0, end_s - start_s))

    def account(self, omitted: str = "", count: int = 1) -> None:
        """Each event of the file is given here: as one that rows hold, or by the name of those that none does."""
        self.events += count
        if omitted:
            self.omitted[omitted] += count
        else:
            self.placed += count

    def gap(self, rank: int, name: str, time_s: float, *, begins: bool) -> None:
        """A gap in what was recorded begins, or ends; one that does not end lasts as long as the rank."""
        if begins:
            self._since.setdefault((rank, name), time_s)
        elif (since_s := self._since.pop((rank, name), None)) is not None:
            self.gaps[rank, name].append((since_s, time_s))

    def name(self, row: int) -> str:
        return list(self._names)[int(self._columns["name"][row])]

    def set(self, row: int, **values: float) -> None:
        for name, value in values.items():
            self._columns[name][row] = value

    def end(self, requests: "list[int]", wait: int) -> None:
        """Joins the rows that began requests with that of the call that ended them."""
        for row in (*requests, wait) if requests else ():
            self.set(row, completion=wait)

    def trace(self, metadata: Mapping[str, Any], given: Mapping[str, Any] | None) -> table.Trace:
        """All rows; `given` goes above `metadata`, but for the warnings, of which it has those of both."""
        if not len(self):
            raise InputError(f"{self.where}: it has no calls of MPI")
        warnings = [*(given or {}).get("warnings", ()), *metadata.get("warnings", ()), *self._end_gaps(metadata)]
        columns = {name: numpy.array(column) for name, column in self._columns.items()}
        for name, most in (("rank", table.MAX_RANKS), ("peer", 1 << 31), ("comm", 1 << 31)):
            if not -3 < columns[name].min() <= columns[name].max() < most:
                raise InputError(f"{self.where}: {name} {int(columns[name].max())} exceeds what a trace can hold")
        names = list(self._names)
        is_mpi = [name.startswith("MPI_") for name in names]
        kinds = [
            table.PHASE if name in self.regions else table.MPI if mpi else table.KERNEL
            for name, mpi in zip(names, is_mpi, strict=True)
        ]
        columns["kind"] = numpy.array(kinds)[columns["name"]]
        known = {"ranks": int(columns["rank"].max()) + 1, "whole": True, **metadata, **(given or {})}
        known |= {"events": {"read": self.events, "placed": self.placed}, "warnings": warnings}
        if self.omitted:
            known["omitted"] = tally(self.omitted)
        return table.trace_of_columns(columns, names, known, self.where)

    def _end_gaps(self, metadata: Mapping[str, Any]) -> list[str]:
        """Adds a row for each gap in what was recorded of a rank; what to say of them."""
        lost_s: dict[str, list[float]] = defaultdict(list)
        for rank, name in list(self._since):
            self.gap(rank, name, math.inf, begins=False)
        for (rank, name), gaps in self.gaps.items():
            low_s, high_s = metadata["begins_s"][rank], metadata["ends_s"][rank]
            for begin_s, end_s in numpy.clip(gaps, low_s, high_s).tolist():
                if end_s > begin_s:
                    self.add(rank, name, start_s=begin_s, duration_s=end_s - begin_s)
                    lost_s[name].append(end_s - begin_s)
        return [
            f"{name}: {counted(len(gaps_s), 'gap')}, {seconds(sum(gaps_s))} in all, taken off computing"
            for name, gaps_s in lost_s.items()
        ]

"""Traces of other programs: of which kind a file or folder is, and its calls as the rows that a recording has."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

from lepaute.errors import InputError
from lepaute.kit.documents import unpacked
from lepaute.kit.text import tally
from lepaute.trace.table import COMPUTING, FORMATS_TEXT, KERNEL, MOST_RANKS, MPI, Trace, trace_of_columns

#: Calls that no trace of ours has.
LEFT_OUT = frozenset(("MPI_Init", "MPI_Init_thread", "MPI_Finalize"))
#: Calls that communicate and that a replay cannot make: they are kept, and refused by it by name.
NOT_REPLAYED = re.compile(
    r"MPI_(Win_|File_|R?put|R?get(_accumulate)?$|R?accumulate|I?neighbor|Comm_spawn)", re.IGNORECASE
)
#: Flop/s at which amounts of computing are seconds where nothing tells of the machine.
UNIT_RATE = 1e9
_HEAD_BYTES = 1 << 16
LONGEST_LINE = 1 << 26


def kind_of(path: Path) -> str | None:
    """The module here that reads it, with convert(path, metadata); None where none does, as of a trace of ours."""
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
    read = import_module(f"lepaute.trace.{kind}").convert
    made: Trace = read(path, metadata) if rate is None else read(path, metadata, rate=rate)
    return made


def files_of(path: Path) -> list[Path]:
    """All that a trace consists of, in order: the file itself; of a folder or a list those in it."""
    if path.is_dir() or path.suffix == ".otf2":
        folder = path if path.is_dir() else path.parent
        return sorted(each for each in folder.rglob("*") if each.is_file())
    kind = kind_of(path)
    if kind not in ("time_independent", "paraver"):
        return [path]
    more: list[Path] = import_module(f"lepaute.trace.{kind}").further_files(path)
    return list(dict.fromkeys((path, *more)))


def words_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each line that has any and is no comment (#); raises InputError for what cannot be read."""
    with unpacked(path, "a trace") as file:
        for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 1):
            words = line.decode("utf-8", "replace").split()
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
    omitted: how many of what is in the file are no rows, by what they are
    """

    def __init__(self) -> None:
        self.clock_s: dict[int, float] = {}
        self.omitted: Counter[str] = Counter()
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
            self.add(rank, COMPUTING, duration_s=duration_s)

    def name(self, row: int) -> str:
        return list(self._names)[int(self._columns["name"][row])]

    def set(self, row: int, **values: float) -> None:
        for name, value in values.items():
            self._columns[name][row] = value

    def end(self, requests: "list[int]", wait: int) -> None:
        """Joins the rows that began requests with that of the call that ended them."""
        for row in (*requests, wait) if requests else ():
            self.set(row, completion=wait)

    def trace(self, metadata: Mapping[str, Any], given: Mapping[str, Any] | None, where: str) -> Trace:
        """All rows; `given` goes above `metadata`, but for the warnings, of which it has those of both."""
        if not len(self):
            raise InputError(f"{where}: it has no calls")
        columns = {name: numpy.array(column) for name, column in self._columns.items()}
        for name, most in (("rank", MOST_RANKS), ("peer", 1 << 31), ("comm", 1 << 31)):
            if not -3 < columns[name].min() <= columns[name].max() < most:
                raise InputError(f"{where}: {name} {int(columns[name].max())} exceeds what a trace can hold")
        names = list(self._names)
        columns["kind"] = numpy.array([MPI if name.startswith("MPI_") else KERNEL for name in names])[columns["name"]]
        known = {"ranks": int(columns["rank"].max()) + 1, "whole": True, **metadata, **(given or {})}
        if self.omitted:
            known["omitted"] = tally(self.omitted)
        known["warnings"] = [*(given or {}).get("warnings", ()), *metadata.get("warnings", ())]
        return trace_of_columns(columns, names, known, where)

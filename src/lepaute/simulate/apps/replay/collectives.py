"""Of what operations of the core a collective call consists: by rules (collectives.txt), or one, as it was measured."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from math import exp, inf, log
from pathlib import Path
from typing import NamedTuple

from lepaute.kit.options import word_of

OPENMPI, MPICH = LIBRARIES = ("openmpi", "mpich")
AUTO = "auto"
CHOICES = (AUTO, *LIBRARIES)
#: Versions whose rules are those of the table; what other libraries and versions take is not known.
_KNOWN = {
    OPENMPI: re.compile(r"open mpi(\s+v?(4\.[1-9]|[5-9]\.).*)?", re.DOTALL),
    MPICH: re.compile(r"mpich(\s+(version:?\s*)?4\..*)?", re.DOTALL),
}
#: Operations whose bytes are those of a vector; those of others are of a block.
_OF_VECTORS = frozenset(("bcast", "reduce", "allreduce", "scan", "reduce_scatter"))
#: In the core, and in applications of one's own, where names differ.
BASE_OF = {f"{code}v": code for code in ("allgather", "alltoall", "gather", "scatter")} | {
    "reduce_scatter_block": "reduce_scatter"
}
#: Members of the largest communicator in which all messages of an all-to-all are posted at once; beyond, pairs in turn
#: stand for that: the memory would be that of members squared.
MOST_POSTED = 512
#: Of a vector: algorithms that reduce it in parts need an element for all, else another one takes their place.
_ELEMENT_BYTES = 8


class Part(NamedTuple):
    """One operation of the core; size_bytes is of the vector of a broadcast or a reduction, else of a block.

    segment_bytes : 0 for one segment;  fan_out : chains, children of a tree, or messages at once
    stands_in : for the library's algorithm, which is another one
    Of a MEASURED one segment_bytes, fan_out, error, source are sd_log, mean_s, error, source of `MeasuredCall`.
    """

    code: str
    size_bytes: float
    algorithm: str = "usual"
    segment_bytes: float = 0.0
    fan_out: float = 0.0
    stands_in: bool = False
    error: float = 0.0
    source: str = ""


MEASURED = "measured"


class MeasuredCall(NamedTuple):
    """What single calls of an operation took: of `size_bytes`, which `parts_of` takes, on so many members.

    mean_s : of a call;  sd_log : of its logarithm;  error : of the mean, relative, one for calls of a name and source
    """

    code: str
    members: int
    size_bytes: float
    mean_s: float
    sd_log: float
    error: float
    source: str = ""


class MeasuredFile(NamedTuple):
    """An archive of `lepaute compare`, as a command line names it; library: its label, empty if there is no choice."""

    path: Path
    library: str = ""


@dataclass(frozen=True)
class MeasuredCalls:
    """Single calls of an MPI library, in the place of the messages that its rules would make.

    name  : as messages have it;  rules: library whose rules are for what was not measured
    calls : in any order
    """

    name: str
    rules: str
    calls: tuple[MeasuredCall, ...]

    def __str__(self) -> str:
        return self.name

    def except_for(self, code: str, other: "MeasuredCalls") -> "MeasuredCalls":
        """These, with the calls of one operation from others."""
        calls = [call for call in self.calls if call.code != code] + [call for call in other.calls if call.code == code]
        return MeasuredCalls(f"{other.name} for {code} alone", self.rules, tuple(calls))

    def call(self, code: str, size_bytes: float, members: int) -> MeasuredCall | None:
        """By straight lines of logarithms over those of sizes, and below the smallest as that; None beyond the largest,
        and where nothing was measured."""
        known = sorted(call for call in self.calls if call[:2] == (code, members))
        at = bisect_left(known, size_bytes, key=lambda call: call.size_bytes)
        if at == len(known):
            return None
        above = known[at]
        if at == 0 or above.size_bytes == size_bytes:
            return above
        below = known[at - 1]
        share = log(size_bytes / max(below.size_bytes, 1.0)) / log(above.size_bytes / max(below.size_bytes, 1.0))
        mean_s = exp((1 - share) * log(below.mean_s) + share * log(above.mean_s))
        sd_log, error = (max(getattr(below, name), getattr(above, name)) for name in ("sd_log", "error"))
        return MeasuredCall(code, members, size_bytes, mean_s, sd_log, error, above.source)


class _Row(NamedTuple):
    members: str
    steps: tuple[tuple[str, str], ...]  # bytes, algorithm


def parts_of(
    code: str, size_bytes: float, members: int, library: "str | MeasuredCalls", *, blocks: bool = True
) -> tuple[Part, ...]:
    """One or two operations for one of `code`; for a reduce_scatter of any kind the bytes are those of the vector."""
    if isinstance(library, MeasuredCalls):
        if blocks and (call := library.call(code, size_bytes, members)) is not None:
            base = "reduce_scatter" if code == "reduce_scatter_block" else BASE_OF.get(code, code)
            return (Part(base, size_bytes, MEASURED, call.sd_log, call.mean_s, error=call.error, source=call.source),)
        library = library.rules
    table = _table()[library]
    rows = table[code] if blocks else table.get(f"i{code}", table[code])
    block = code not in _OF_VECTORS
    size = size_bytes / members if code == "reduce_scatter_block" else size_bytes
    total = size * members if block else size
    steps = next(row.steps for row in rows if _fits(row.members, members))
    way = next(way for limit, way in steps if (total if limit[:1] == "t" else size) < float(limit.lstrip("t")))
    if "=" not in way:
        return (_part(code, way, total, members),)
    made: list[Part] = []
    for part in way.split("+"):
        name, _, how = part.partition("=")
        amount = total if name in _OF_VECTORS else total / members
        made += parts_of(name, amount, members, library) if how == "*" else [_part(name, how, total, members)]
    return tuple(made)


def _part(code: str, way: str, total: float, members: int) -> Part:
    algorithm, fan_out, segment = (*way.split("/"), "0", "0")[:3]
    at_once = 0 if code.startswith("alltoall") and int(fan_out) >= members else int(fan_out)  # 0: all
    code = BASE_OF.get(code, code)
    cube = 1 << (members.bit_length() - 1)
    parts = {"ring": members, "rabenseifner": cube, "rabenseifner-halves": cube}
    stands_in = algorithm == "linear-posted" and code == "alltoall" and not at_once and members > MOST_POSTED
    if stands_in:
        algorithm = "pairwise"
    elif code in ("allreduce", "reduce") and total < _ELEMENT_BYTES * parts.get(algorithm, 0):
        algorithm = "recursive-doubling" if code == "allreduce" else "binomial"
    elif code == "allgather" and algorithm == "recursive-doubling" and members & (members - 1):
        algorithm = "bruck"
    size_bytes = total if code in ("bcast", "reduce", "allreduce") else total / members
    return Part(code, size_bytes, algorithm, float(segment), float(at_once), stands_in)


def _fits(limit: str, members: int) -> bool:
    return members & (members - 1) == 0 if limit == "2^" else members < float(limit)


@cache
def _table() -> dict[str, dict[str, list[_Row]]]:
    """By library and operation its lines."""
    table: dict[str, dict[str, list[_Row]]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            rows = table[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            operation, members, *steps = line.split()
            pairs = [(limit or str(inf), way) for limit, _, way in (step.rpartition(":") for step in steps)]
            rows.setdefault(operation, []).append(_Row(members.replace("-", str(inf)), tuple(pairs)))
    return table


def library_of(recorded: object) -> str | None:
    """Library whose rules a recording's `mpi` follows; None where they are not known."""
    name = str(recorded or "").casefold().strip()
    return next((library for library, known in _KNOWN.items() if known.fullmatch(name)), None)


def collectives_of(text: str) -> "str | MeasuredFile":
    """What --collectives gives: auto, a library, or an archive of `lepaute compare` and a library of it."""
    file, separator, label = text.partition(".zip")
    if separator and label[:1] in ("", ":"):
        return MeasuredFile(Path(f"{file}.zip"), label[1:])
    return word_of(text, CHOICES, "collectives")

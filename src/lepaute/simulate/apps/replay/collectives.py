"""Of what operations of the core a collective call consists, by the rules of an MPI library (collectives.txt)."""

import re
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

OPENMPI, MPICH = LIBRARIES = ("openmpi", "mpich")
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
    """

    code: str
    size_bytes: float
    algorithm: str = "usual"
    segment_bytes: float = 0.0
    fan_out: float = 0.0
    stands_in: bool = False


class _Row(NamedTuple):
    members: str
    steps: tuple[tuple[str, str], ...]  # bytes, algorithm


def parts_of(code: str, size_bytes: float, members: int, library: str, *, blocks: bool = True) -> tuple[Part, ...]:
    """One or two operations for one of `code`; for a reduce_scatter of any kind the bytes are those of the vector."""
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

"""Detects which collective algorithm a library ran for a case. Open MPI's are exported functions called across shared
objects, so that the dynamic linker's log (LD_DEBUG=bindings, ld.so(8)) names those that really ran, whatever rules
chose them (probes/probe_algorithms.c). MPICH's is known only if an environment variable forces it; all others are
unknown."""

import os
import re
from collections.abc import Mapping, Sequence

from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI
from lepaute.measure.comparison.cases import BLOCKING, COLLECTIVES, Case
from lepaute.measure.comparison.libraries import ALGORITHMS, UNKNOWN, ReadyLibrary
from lepaute.measure.comparison.mpirun import Cell, file_name
from lepaute.measure.comparison.places import Place

_LIMIT_S = 120.0
_BEGIN, _END = "a64l", "l64a"
#: Output of one rank; the others do the same. Successive calls of one function are one line.
_FILTER = """
file=$(ls -1 "$1".* 2>/dev/null | head -n 1)
[ -z "$file" ] || LC_ALL=C grep -oE "a64l|l64a|ompi_coll_[a-z0-9_]+" "$file" | uniq
rm -f "$1".*
"""
_FUNCTION = re.compile(r"ompi_coll_[a-z0-9]+_([a-z_]+?)_intra_([a-z0-9_]+)")
#: Functions that choose, and one that several algorithms share.
_NO_ALGORITHM = re.compile(r"do_this|dec_\w+|check_forced_init|generic")


def algorithms_of(place: Place, cell: Cell, cases: Sequence[Case]) -> dict[Case, str]:
    """The algorithm of each case, UNKNOWN where the library does not tell."""
    visible = [case for case in cases if case.form == BLOCKING and case.operation in COLLECTIVES]
    family = cell.library.named.library.family
    if family == OPEN_MPI and visible:
        return {**dict.fromkeys(cases, UNKNOWN), **_seen(place, cell, visible)}
    demanded = _demanded(cell.library, os.environ) if family == MPICH else {}
    return {case: demanded.get(case.operation, UNKNOWN) if case in visible else UNKNOWN for case in cases}


def _seen(place: Place, cell: Cell, cases: Sequence[Case]) -> dict[Case, str]:
    library, setting, node = cell.library, cell.setting, place.nodes[0]
    base = f"{node.place}/algorithms-{file_name(cell.name)}"
    rows = [f"{number},{case.operation},{case.size_bytes}" for number, case in enumerate(cases)]
    place.write(setting.ranks, f"{base}/design.csv", "\n".join(["design_row,operation,size_bytes", *rows]) + "\n")
    variables = {"LD_BIND_NOT": "1", "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{base}/bindings"}
    words = [place.program(library, ALGORITHMS), "--design", f"{base}/design.csv", *setting.subject]
    # A script that binds a rank would write into the log, too.
    start = place.start(library, setting.ranks, setting.pus if place.is_here else None, words, base, variables)
    node.run(*start.argv, environment=start.environment, timeout_s=_LIMIT_S, check=False)
    log = node.shell(_FILTER, f"{base}/bindings", timeout_s=_LIMIT_S, check=False).only.stdout
    return dict(zip(cases, parse_bindings(log.splitlines(), [case.operation for case in cases]), strict=True))


def parse_bindings(lines: Sequence[str], operations: Sequence[str]) -> list[str]:
    """The algorithm of each operation, in the order of the calls, from names of functions between marks.

    All are unknown where there are not as many marks as operations: a call failed, or the library uses them too.
    """
    algorithms = [UNKNOWN] * len(operations)
    if lines.count(_BEGIN) != len(operations):
        return algorithms
    number, inside = -1, False
    for line in lines:
        if line in (_BEGIN, _END):
            inside = line == _BEGIN
            number += inside
        elif inside and algorithms[number] == UNKNOWN:
            match = _FUNCTION.fullmatch(line)
            if match and match[1] == operations[number].lower() and not _NO_ALGORITHM.fullmatch(match[2]):
                algorithms[number] = match[2]
    return algorithms


def _demanded(library: ReadyLibrary, environ: Mapping[str, str]) -> dict[str, str]:
    variables = {**environ, **library.named.environment}
    names = {operation: f"CVAR_{operation.upper()}_INTRA_ALGORITHM" for operation in COLLECTIVES}
    return {
        operation: value
        for operation, name in names.items()
        for prefix in ("MPIR_", "MPICH_")
        if (value := variables.get(prefix + name, "auto")) != "auto"
    }

"""Rows of the recorder, of real runs and emulations, as columns: which call completed which request, and groups."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.simulate.trace.messages import COLLECTIVES, IMMEDIATE, NONBLOCKING_COLLECTIVES, PROBES, RECORDED, WAITS
from lepaute.simulate.trace.table import MPI, NOBODY, Trace, with_rows

#: The name of rows that are no calls: which call found a request complete (probes/record.h).
COMPLETED = "(completed)"
MAGIC = b"LEPCALL1"


def with_completions(columns: dict[str, NDArray[Any]], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The rows of one rank that are calls, with the columns completion and comm.

    columns: name (codes into names), start (unique in calls), peer, tag, size_bytes and others, of one length. A row
             COMPLETED has the start of the request that is over, and as size_bytes the start of the call that found it
             so; of a collective operation, tag is the communicator
    A request and the call that completed it get the same completion, all others -1; a receive from any source or with
    any tag gets those that came, and one that was cancelled is from nobody.
    """

    def named(chosen: frozenset[str]) -> NDArray[Any]:
        mask: NDArray[Any] = numpy.isin(columns["name"], [code for code, name in enumerate(names) if name in chosen])
        return mask

    is_completion = named(frozenset((COMPLETED,)))
    completed = {column: values[is_completion] for column, values in columns.items()}
    columns = {column: values[~is_completion] for column, values in columns.items()}
    collective = named(COLLECTIVES | NONBLOCKING_COLLECTIVES)
    columns["comm"] = numpy.where(collective, columns["tag"], columns.get("comm", numpy.array(-1)))
    columns["tag"] = numpy.where(collective, -1, columns["tag"])
    columns["completion"] = numpy.full(len(columns["name"]), -1)
    posts = numpy.flatnonzero(named(IMMEDIATE | NONBLOCKING_COLLECTIVES))
    waits = numpy.flatnonzero(named(WAITS | PROBES))
    if not (len(completed["name"]) and len(posts) and len(waits)):
        return columns
    found, known = [], numpy.ones(len(completed["name"]), dtype=bool)
    for wanted, candidates in ((completed["start"], posts), (completed["size_bytes"], waits)):
        order = candidates[numpy.argsort(columns["start"][candidates], kind="stable")]
        at = order[numpy.searchsorted(columns["start"][order], wanted).clip(max=len(order) - 1)]
        known &= columns["start"][at] == wanted
        found.append(at)
    post, wait = found[0][known], found[1][known]
    columns["completion"][wait] = wait
    columns["completion"][post] = wait
    for column in ("peer", "tag"):
        came = completed[column][known]
        columns[column][post] = numpy.where(columns[column][post] == -1, came, columns[column][post])
    cancelled = post[completed["peer"][known] == NOBODY]
    columns["peer"][cancelled] = NOBODY
    columns["size_bytes"][cancelled] = 0
    return columns


def numbered_communicators(numbers: NDArray[Any], short: NDArray[Any]) -> NDArray[Any]:
    """0 for all ranks, 1, 2, ... for other communicators, -1 if there is none.

    numbers : as the recorder has them
    short   : of which rows the 16 lowest bits alone are known, by which they have the numbers of the others
    """
    known = numpy.unique(numbers[(numbers > 0) & ~short])
    order = numpy.argsort(known & 0xFFFF, kind="stable")
    bits = (known & 0xFFFF)[order]
    more = numpy.setdiff1d(numbers[short & (numbers > 0)], bits)
    found = numpy.where(numbers > 0, 1 + numpy.searchsorted(known, numbers), numbers)
    if len(bits):
        place = numpy.searchsorted(bits, numbers).clip(max=len(bits) - 1)
        found = numpy.where(short & (numbers > 0) & (bits[place] == numbers), 1 + order[place], found)
    is_more = short & numpy.isin(numbers, more)
    result: NDArray[Any] = numpy.where(is_more, 1 + len(known) + numpy.searchsorted(more, numbers), found)
    return result


def merge_calls(trace: Trace, path: Path) -> Trace:
    """The trace that SMPI wrote with the calls that the recorder wrote beside it, in the place of SMPI's.

    path: the recorder's file (probes/record_smpi.c); that with names stands beside it
    What SMPI knows of other calls of MPI, and of time without calls, stays.
    Raises InputError for a file that is cut or something else.
    """
    columns, names = _read(path)
    # Persistent receives may be simblas' own: it starts those of large messages later than the program does.
    other = trace.where(~(trace.named(RECORDED | {"MPI_Start"}) & (trace.kind == MPI)))
    all_names = list(dict.fromkeys((*trace.names, *names)))
    columns["name"] = numpy.array([all_names.index(name) for name in names] or [0])[columns["name"]]
    columns["kind"] = numpy.full(len(columns["name"]), MPI)
    kept = {other.names[code] for code in numpy.unique(other.name)}
    unsized = [name for name in trace.metadata.get("unsized", []) if name in kept]
    warnings = [text for text in trace.metadata.get("warnings", []) if "MPI_" not in text]
    metadata = {**trace.metadata, "unsized": unsized, "warnings": warnings, "calls": "recorded"}
    return with_rows(other, [columns], all_names, metadata, "calls of the emulation")


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Columns of all ranks, name as codes into the names."""
    of_record = ("rank", "code", "start", "start_s", "end_s", "peer", "tag", "size_bytes")
    record = numpy.dtype(list(zip(of_record, "<i4 <i4 <i8 <f8 <f8 <i4 <i4 <i8".split(), strict=True)))
    content = path.read_bytes()
    if not content.startswith(MAGIC) or (len(content) - len(MAGIC)) % record.itemsize:
        raise InputError(f"{path}: not a file of recorded calls, or truncated")
    names = tuple(path.with_name(path.name + ".names").read_text(encoding="ascii").split())
    rows = numpy.frombuffer(content, record, offset=len(MAGIC))
    if len(rows) and not (rows["code"].min() >= 1 and rows["code"].max() <= len(names) and rows["rank"].min() >= 0):
        raise InputError(f"{path}: a call without a name or rank; the file is damaged")
    rows = rows[numpy.argsort(rows["rank"], kind="stable")]
    pieces = []
    for part in numpy.split(rows, numpy.flatnonzero(numpy.diff(rows["rank"], prepend=-1))[1:]):
        columns = {column: part[column].copy() for column in part.dtype.names or ()}
        columns["name"] = columns.pop("code") - 1
        pieces.append(with_completions(columns, names))
    joined = {column: numpy.concatenate([piece[column] for piece in pieces]) for column in pieces[0]}
    joined["comm"] = numbered_communicators(joined["comm"], numpy.zeros(len(joined["comm"]), dtype=bool))
    joined["duration_s"] = joined["end_s"] - joined["start_s"]
    joined["n"] = (-joined["size_bytes"]).clip(0)  # looks that found nothing
    joined["size_bytes"] = joined["size_bytes"].clip(0)
    return joined, names

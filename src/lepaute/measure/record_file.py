"""The raw files of a recording, one a rank, as one trace. Their form is that of probes/record.h."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.text import counted, ranks_text
from lepaute.simulate.trace.messages import BETWEEN_TWO, TESTS
from lepaute.simulate.trace.recorded_calls import COMPLETED, numbered_communicators, with_completions
from lepaute.simulate.trace.table import MPI, PHASE, Trace, trace_of_columns

MAGIC = b"LEPREC3"
_NAMES, _NAME_BYTES, _HEADER_BYTES, _NOTES_BYTES, _CODE_BITS = 448, 32, 20480, 4096, 9
#: The phase that a program's timed region begins with, and the one that ends it.
REGION_BEGINS, REGION_ENDS = "factorisation", "pdtrsv"


@dataclass(frozen=True, slots=True)
class RankRecord:
    """Record that one rank left.

    rows    : in the order in which the calls ended; start_ns and end_ns on rank 0's clock
    names   : of each code its kind (a code into KINDS) and its name; code 0 is none
    start_ns: when all ranks had come together in MPI_Init, on rank 0's clock
    end_ns  : when it called MPI_Finalize; the end of its last call where it did not
    clock_error_ns: most by which this rank's clock may be off, 0 if it is rank 0's own
    finished: whether the rank came to MPI_Finalize
    notes   : lines that the program wrote about itself
    fortran : whether it initialized MPI by a routine of Fortran that passes by the one of C, as its other calls do
    costs_s : what a row takes between the end of its call and the next call, and what a test that found nothing does
    """

    rank: int
    ranks: int
    host: str
    mpi: str
    rows: "NDArray[Any]"
    names: tuple[tuple[int, str], ...]
    start_ns: int
    end_ns: int
    clock_error_ns: int
    lost: int
    finished: bool
    notes: tuple[str, ...]
    fortran: bool
    costs_s: tuple[float, float] = (0.0, 0.0)


def read_rank(path: Path) -> RankRecord:
    """Reads one raw file; raises EnvironmentProblem if it is not a recording."""
    header_type, row_type = _types()
    content = path.read_bytes()
    if len(content) < _HEADER_BYTES or not content.startswith(MAGIC):
        raise EnvironmentProblem(f"{path}: not a Lepaute recording")
    header = numpy.frombuffer(content, header_type, count=1)[0]
    if int(header["header_bytes"]) != _HEADER_BYTES or int(header["row_bytes"]) != row_type.itemsize:
        raise EnvironmentProblem(f"{path}: written by another version of the recorder; record the run again")
    room = (len(content) - _HEADER_BYTES) // row_type.itemsize
    packed = numpy.frombuffer(content, row_type, offset=_HEADER_BYTES, count=room)
    names = tuple((int(entry["kind"]), _text(entry["name"])) for entry in header["names_of"][: int(header["names"])])
    # Of a program that was killed the file still has its spare room, and perhaps rows that were not completed.
    codes = packed["step_and_code"] & ((1 << _CODE_BITS) - 1)
    # The rows before MPI_Init had ended are the recorder's own, which measured what a row costs.
    begins = max(1, int(header["start_ns"]))
    packed = packed[(codes > 0) & (codes < len(names)) & (packed["start_ns"] >= begins)]
    rows = _rows(packed, names)
    last = int(header["end_ns"]) or int(rows["end_ns"].max(initial=int(header["start_ns"])))
    for column in ("start_ns", "end_ns"):
        rows[column] += _clock_correction_ns(header, rows[column])
    start = int(header["start_ns"])
    return RankRecord(
        rank=int(header["rank"]),
        ranks=int(header["ranks"]),
        host=_text(header["host"]),
        mpi=_text(header["mpi"]),
        rows=rows,
        names=names,
        start_ns=start + int(_clock_correction_ns(header, numpy.array([start]))[0]),
        end_ns=last + int(_clock_correction_ns(header, numpy.array([last]))[0]),
        clock_error_ns=int(header["clocks"]["round_trip_ns"].max()) // 2,
        lost=int(header["lost"]),
        finished=bool(header["finished"]),
        notes=tuple(_text(header["notes"]).splitlines()),
        fortran=bool(header["fortran"]),
        costs_s=(int(header["cost_ps"][0]) * 1e-12, int(header["cost_ps"][1]) * 1e-12),
    )


def _types() -> "tuple[Any, Any]":
    header = [
        ("magic", "S8"),
        ("header_bytes", "<u4"),
        ("row_bytes", "<u4"),
        *((name, "<i4") for name in ("rank", "ranks", "pid", "finished")),
        *((name, "<i8") for name in ("used", "lost", "start_ns", "end_ns")),
        ("clocks", [("at_ns", "<i8"), ("add_ns", "<i8"), ("round_trip_ns", "<i8")], (2,)),
        ("host", "S64"),
        ("mpi", "S160"),
        ("names", "<u4"),
        ("fortran", "<u4"),
        ("names_of", [("kind", "u1"), ("name", f"S{_NAME_BYTES - 1}")], (_NAMES,)),
        ("notes", f"S{_NOTES_BYTES}"),
        ("cost_ps", "<u4", (2,)),
    ]
    packed = [("start_ns", "<i8"), ("duration", "<u4"), ("step_and_code", "<u4"), ("what", "<i4", (4,))]
    return numpy.dtype(header), numpy.dtype(packed)


def _rows(packed: "NDArray[Any]", names: "Sequence[tuple[int, str]]") -> "NDArray[Any]":
    """Packed rows as rows with a column for each value; names: kind and name of each code. The communicator of a call
    stands in comm, of one between two ranks its lowest bits, and completion joins requests with what completed them.
    """
    kinds = numpy.array([kind for kind, _ in names])
    is_completion, is_between_two, is_test = (
        numpy.array([name in chosen for _, name in names]) for chosen in ((COMPLETED,), BETWEEN_TWO, TESTS)
    )
    columns = [
        ("start_ns", "i8"),
        ("end_ns", "i8"),
        *((name, "i4") for name in ("step", "code", "m", "n", "k", "peer", "comm", "completion")),
        ("size_bytes", "i8"),
        ("tag", "i8"),
    ]
    rows = numpy.zeros(len(packed), dtype=columns)
    took = packed["duration"].astype("int64")
    rows["start_ns"] = packed["start_ns"]
    rows["end_ns"] = packed["start_ns"] + numpy.where(took < 1 << 31, took, (took - (1 << 31)) << 10)
    rows["code"] = packed["step_and_code"] & ((1 << _CODE_BITS) - 1)
    rows["step"] = (packed["step_and_code"] >> _CODE_BITS).astype("int32") - 1
    what = packed["what"]
    is_message = kinds[rows["code"]] == MPI
    for place, name in enumerate("mnk"):
        rows[name] = numpy.where(is_message, 0, what[:, place])
    rows["peer"] = numpy.where(is_message, what[:, 0], -1)
    rows["tag"] = numpy.where(is_message, what[:, 1], -1)
    number = numpy.ascontiguousarray(what[:, 2:]).view("<i8").reshape(-1)
    size_bytes = numpy.where(is_completion[rows["code"]], number, number << 16 >> 16)
    rows["comm"] = numpy.where(is_between_two[rows["code"]], number >> 48 & 0xFFFF, -1)
    rows["size_bytes"] = numpy.where(is_message, size_bytes.clip(0), 0)
    rows["n"] = numpy.where(is_message, (-size_bytes).clip(0), rows["n"])  # looks that found nothing
    vain = is_test[rows["code"]] & (rows["n"] > 0)
    rows["m"] = numpy.where(vain, rows["tag"], rows["m"])
    rows["tag"] = numpy.where(vain, -1, rows["tag"])
    return _with_completions(rows, names)


def _with_completions(rows: "NDArray[Any]", names: "Sequence[tuple[int, str]]") -> "NDArray[Any]":
    columns: dict[str, NDArray[Any]] = {column: rows[column].copy() for column in rows.dtype.names or ()}
    columns["name"], columns["start"] = columns["code"], columns["start_ns"]
    columns = with_completions(columns, [name for _, name in names])
    calls: NDArray[Any] = numpy.zeros(len(columns["code"]), dtype=rows.dtype)
    for column in rows.dtype.names or ():
        calls[column] = columns[column]
    return calls


def _clock_correction_ns(header: Any, at_ns: "NDArray[Any]") -> "NDArray[Any]":
    """Correction to add to a rank's own stamps: known in MPI_Init and MPI_Finalize, a straight line in between."""
    first, last = header["clocks"]
    span = int(last["at_ns"]) - int(first["at_ns"])
    if span <= 0 or int(first["add_ns"]) == int(last["add_ns"]):
        return numpy.full(len(at_ns), int(first["add_ns"]), dtype="int64")
    drift = (int(last["add_ns"]) - int(first["add_ns"])) / span
    return numpy.rint(drift * (at_ns - int(first["at_ns"]))).astype("int64") + int(first["add_ns"])


def _text(value: bytes) -> str:
    return bytes(value).split(b"\0", 1)[0].decode(errors="replace")


def trace_of_records(records: Sequence[RankRecord], metadata: dict[str, Any], solve: int = 1) -> Trace:
    """One trace of all ranks.

    metadata: what the caller knows; that of the files is added
    solve   : which timed region, from 1, of a program that marks them, as the HPL built for recordings does; of any
              other program the trace is everything from MPI_Init to MPI_Finalize
    Raises InputError if there are fewer regions.
    """
    records = sorted(records, key=lambda record: record.rank)
    regions = [_region(record, solve) for record in records]
    has_region = all(region is not None for region in regions)
    start_ns = min(record.start_ns for record in records)
    if has_region:
        start_ns = min(region[0] for region in regions if region is not None)
    names: dict[tuple[int, str], int] = {}
    pieces: list[dict[str, NDArray[Any]]] = []
    for record, region in zip(records, regions, strict=True):
        rows = record.rows
        if region is not None and has_region:
            rows = rows[(rows["start_ns"] >= region[0]) & (rows["end_ns"] <= region[1])]
        codes = numpy.array([0, *(names.setdefault(key, len(names)) for key in record.names[1:])])
        pieces.append(
            {
                "rank": numpy.full(len(rows), record.rank, dtype="int32"),
                "start_s": (rows["start_ns"] - start_ns) * 1e-9,
                "duration_s": (rows["end_ns"] - rows["start_ns"]) * 1e-9,
                "kind": numpy.array([kind for kind, _ in record.names], dtype="int16")[rows["code"]],
                "name": codes[rows["code"]],
                **{column: rows[column] for column in ("step", "m", "n", "k", "size_bytes", "peer", "tag")},
                **{column: rows[column] for column in ("comm", "completion")},
            }
        )
    columns = {column: numpy.concatenate([piece[column] for piece in pieces]) for column in pieces[0]}
    list_of_names = [name for _, name in names]
    columns["comm"] = numbered_communicators(
        columns["comm"], numpy.isin(columns["name"], [names.get((MPI, name), -1) for name in BETWEEN_TWO])
    )
    keep = ~(
        (columns["kind"] == PHASE)
        & numpy.isin(columns["name"], [i for i, name in enumerate(list_of_names) if name == REGION_BEGINS])
    )
    columns = {column: values[keep] for column, values in columns.items()}
    metadata = {**metadata, **_recorded_metadata(records, solve), "whole": True}
    if solve != 1 and not has_region:
        metadata["warnings"].append(
            f"--solve {solve} chose nothing: the program marks none, and this is all that it did"
        )
    spans = {
        record.rank: region if region is not None and has_region else (record.start_ns, record.end_ns)
        for record, region in zip(records, regions, strict=True)
    }
    for place, name in enumerate(("begins_s", "ends_s")):
        dates = (spans.get(rank, (start_ns, start_ns))[place] for rank in range(metadata["ranks"]))
        metadata[name] = [(date - start_ns) * 1e-9 for date in dates]
    if has_region:
        metadata["time_s"] = max((region[1] - region[0]) * 1e-9 for region in regions if region is not None)
    return trace_of_columns(columns, list_of_names, metadata, "recording")


def _region(record: RankRecord, solve: int) -> tuple[int, int] | None:
    """Start and end of a timed region, None if the program marks none."""
    begins, ends = (_spans(record, name) for name in (REGION_BEGINS, REGION_ENDS))
    if not begins:
        return None
    if not 1 <= solve <= len(begins):
        raise InputError(f"--solve is {solve}; the program solved {counted(len(begins), 'system')}")
    start, end = begins[solve - 1]
    # The solution follows the factorisation, unless the matrix was found singular.
    following = [last for first, last in ends if first >= end and (solve == len(begins) or first < begins[solve][0])]
    return start, (following[0] if following else end)


def _spans(record: RankRecord, phase: str) -> list[tuple[int, int]]:
    codes = [code for code, (kind, name) in enumerate(record.names) if code and kind == PHASE and name == phase]
    rows = record.rows[numpy.isin(record.rows["code"], codes)]
    return sorted(zip(rows["start_ns"].tolist(), rows["end_ns"].tolist(), strict=True))


def _recorded_metadata(records: Sequence[RankRecord], solve: int) -> dict[str, Any]:
    hosts = list(dict.fromkeys(record.host for record in records))
    by_rank = {record.rank: hosts.index(record.host) for record in records}
    ranks = max(record.ranks for record in records)
    metadata: dict[str, Any] = {
        "ranks": ranks,
        "hosts": hosts,
        "nodes": [by_rank.get(rank, 0) for rank in range(ranks)],
        "mpi": records[0].mpi,
        "clock_error_s": max(record.clock_error_ns for record in records) * 1e-9,
        "unfinished": [record.rank for record in records if not record.finished],
        "recorder_s": [sum(record.costs_s[place] for record in records) / len(records) for place in (0, 1)],
    }
    notes = records[0].notes
    if len(notes) >= solve:
        try:
            metadata.update(application="hpl", parameters=json.loads(notes[solve - 1]))
        except ValueError:
            metadata["notes"] = list(notes)
    metadata["warnings"] = _warnings(records, ranks)
    return metadata


def _warnings(records: Sequence[RankRecord], ranks: int) -> list[str]:
    warnings = []
    if len(records) < ranks:
        warnings.append(f"{len(records)} of {ranks} ranks left a recording")
    unfinished = [record.rank for record in records if not record.finished]
    if unfinished:
        calls = counted(sum(len(record.rows) for record in records), "call")
        where = f"on {len(unfinished)} of {ranks_text(ranks)}, the first is rank {unfinished[0]}"
        warnings.insert(0, f"the run ended before MPI_Finalize ({where}), after {calls}: this is what ran")
    lost = sum(record.lost for record in records)
    if lost:
        warnings.append(f"{lost} calls found no room and are missing")
    if any(record.fortran for record in records):
        warnings.append(
            "the program calls MPI from Fortran: all or some of these calls are missing, and when requests were over "
            "is not known; its BLAS calls are recorded"
        )
    return warnings

"""The raw files of a recording, one a rank, as one trace. Their form is that of probes/record.h."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.text import counted, percent
from lepaute.measure.call_sites import joined_sites, read_sites, sites_of_rows, starts_of_rows
from lepaute.simulate.trace.messages import BETWEEN_TWO, TESTS
from lepaute.simulate.trace.recorded_calls import COMPLETED, numbered_communicators, with_completions
from lepaute.simulate.trace.table import KERNEL, MPI, PHASE, SLEEPING, WAITING, Trace, trace_of_columns

MAGIC = b"LEPREC5"
_NAMES, _NAME_BYTES, _HEADER_BYTES, _NOTES_BYTES, _CODE_BITS, _THREAD_BITS = 448, 32, 20480, 4096, 9, 6
_AFFINITY_BYTES = 128
#: How a rank ended.
_KILLED, _FINALIZED, _ABORTED, _EXITED = range(4)
#: Rows of time within own code, and what they are in a trace.
_WAITS = {"(waited)": WAITING, "(slept)": SLEEPING}
#: Of own code, waiting for a core: less is not worth a word.
_MIN_WAITING_SHARE = 0.01
#: The phase that a program's timed region begins with, and the one that ends it.
REGION_BEGINS, REGION_ENDS = "factorisation", "pdtrsv"


_Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class RankRecord:
    """Record that one rank left.

    rows    : in the order in which the calls ended; start_ns and end_ns on rank 0's clock
    names   : of each code its kind (a code into KINDS) and its name; code 0 is none
    start_ns: when all ranks had come together in MPI_Init, on rank 0's clock
    end_ns  : when it called MPI_Finalize; the end of its last call where it did not
    clock_error_ns: most by which this rank's clock may be off, 0 if it is rank 0's own
    ended   : _KILLED, _FINALIZED, ...; abort_code: that of MPI_Abort
    notes   : lines that the program wrote about itself
    fortran : whether it initialized MPI by a routine of Fortran that passes by the one of C, as its other calls do
    costs_s : what a row takes between the end of its call and the next call, and what a test that found nothing does
    affinity: the cores that it may use;  cores: of its node;  threads: of the program at its end
    sites   : texts of the places of calls; rows have their number from 1, 0 where there is none
    """

    rank: int
    ranks: int
    host: str
    mpi: str
    rows: _Columns
    names: tuple[tuple[int, str], ...]
    start_ns: int
    end_ns: int
    clock_error_ns: int
    lost: int
    ended: int
    notes: tuple[str, ...]
    fortran: bool
    costs_s: tuple[float, float]
    affinity: frozenset[int]
    cores: int
    threads: int
    abort_code: int
    sites: tuple[str, ...]


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
    starts_ns = starts_of_rows(packed["site_and_start"], int(header["base_ns"]))
    kept = (codes > 0) & (codes < len(names)) & (starts_ns >= begins)
    rows = _with_waits(_rows(packed[kept], starts_ns[kept], names), names)
    names = tuple((KERNEL, _WAITS[name]) if name in _WAITS else (kind, name) for kind, name in names)
    mask = int.from_bytes(bytes(header["affinity"]).ljust(_AFFINITY_BYTES, b"\0"), "little")
    last = int(header["end_ns"]) or int(rows["end_ns"].max(initial=int(header["start_ns"])))
    for column in ("start_ns", "end_ns"):
        rows[column] += _clock_correction_ns(header, rows[column])
    start = int(header["start_ns"])
    numbers = {name: int(header[name]) for name in ("rank", "ranks", "lost", "cores", "threads", "abort_code")}
    return RankRecord(
        **numbers,
        host=_text(header["host"]),
        mpi=_text(header["mpi"]),
        rows=rows,
        names=names,
        start_ns=start + int(_clock_correction_ns(header, numpy.array([start]))[0]),
        end_ns=last + int(_clock_correction_ns(header, numpy.array([last]))[0]),
        clock_error_ns=int(header["clocks"]["round_trip_ns"].max()) // 2,
        ended=int(header["finished"]),
        notes=tuple(_text(header["notes"]).splitlines()),
        fortran=bool(header["fortran"]),
        costs_s=(int(header["cost_ps"][0]) * 1e-12, int(header["cost_ps"][1]) * 1e-12),
        affinity=frozenset(core for core in range(8 * _AFFINITY_BYTES) if mask >> core & 1),
        sites=read_sites(path.with_suffix(".sites")),
    )


def _types() -> "tuple[Any, Any]":
    header = [
        ("magic", "S8"),
        *((name, "<u4") for name in ("header_bytes", "row_bytes")),
        *((name, "<i4") for name in ("rank", "ranks", "pid", "finished")),
        *((name, "<i8") for name in ("used", "lost", "start_ns", "end_ns")),
        ("clocks", [("at_ns", "<i8"), ("add_ns", "<i8"), ("round_trip_ns", "<i8")], (2,)),
        ("host", "S64"),
        ("mpi", "S160"),
        *((name, "<u4") for name in ("names", "fortran")),
        ("names_of", [("kind", "u1"), ("name", f"S{_NAME_BYTES - 1}")], (_NAMES,)),
        ("notes", f"S{_NOTES_BYTES}"),
        ("cost_ps", "<u4", (2,)),
        ("affinity", f"V{_AFFINITY_BYTES}"),
        *((name, "<i4") for name in ("cores", "threads", "thread_level", "abort_code")),
        ("base_ns", "<i8"),
    ]
    packed = [("site_and_start", "<u8"), ("duration", "<u4"), ("step_and_code", "<u4"), ("what", "<i4", (4,))]
    return numpy.dtype(header), numpy.dtype(packed)


def _rows(packed: "NDArray[Any]", starts_ns: "NDArray[Any]", names: "Sequence[tuple[int, str]]") -> _Columns:
    """Columns of packed rows; names: kind and name of each code. The communicator of a call stands in comm, of one
    between two ranks its lowest bits, and completion joins requests with what completed them.
    """
    bits, took, what = packed["step_and_code"], packed["duration"].astype("int64"), packed["what"]
    code = bits & ((1 << _CODE_BITS) - 1)
    is_message = numpy.array([kind for kind, _ in names])[code] == MPI
    is_completion, is_between_two, is_test = (
        numpy.array([name in chosen for _, name in names])[code] for chosen in ((COMPLETED,), BETWEEN_TWO, TESTS)
    )
    number = numpy.ascontiguousarray(what[:, 2:]).view("<i8").reshape(-1)
    size_bytes = numpy.where(is_completion, number, number << 16 >> 16)
    m, n, k = (numpy.where(is_message, 0, what[:, place]) for place in range(3))
    n = numpy.where(is_message, (-size_bytes).clip(0), n)  # looks that found nothing
    tag = numpy.where(is_message, what[:, 1], -1).astype("int64")
    vain = is_test & (n > 0)
    columns = {
        "start": starts_ns,
        "start_ns": starts_ns.copy(),
        "end_ns": starts_ns + numpy.where(took < 1 << 31, took, (took - (1 << 31)) << 10),
        "code": code,
        "name": code,
        "site": sites_of_rows(packed["site_and_start"]),
        "step": (bits >> (_CODE_BITS + _THREAD_BITS)).astype("int32") - 1,
        "thread": bits >> _CODE_BITS & ((1 << _THREAD_BITS) - 1),
        "m": numpy.where(vain, tag, m),
        "n": n,
        "k": k,
        "peer": numpy.where(is_message, what[:, 0], -1),
        "tag": numpy.where(vain, -1, tag),
        "comm": numpy.where(is_between_two, number >> 48 & 0xFFFF, -1),
        "size_bytes": numpy.where(is_message, size_bytes.clip(0), 0),
    }
    return with_completions(columns, [name for _, name in names])


def _with_waits(rows: _Columns, names: "Sequence[tuple[int, str]]") -> _Columns:
    """The same, where waits lie within the time between two calls of their thread, or are taken from the kernel before.

    A wait has been seen at its end: what its thread had waited since it looked last, perhaps before that time.
    """
    is_wait = numpy.array([name in _WAITS for _, name in names])[rows["code"]]
    for thread in numpy.unique(rows["thread"][is_wait]).tolist():
        at = numpy.flatnonzero(rows["thread"] == thread)
        before = numpy.maximum.accumulate(numpy.where(is_wait[at], -1, at))
        ends_ns = numpy.maximum.accumulate(numpy.where(is_wait[at], 0, rows["end_ns"][at]))[is_wait[at]]
        at, before = at[is_wait[at]], before[is_wait[at]]
        in_kernel = (rows["peer"][at] == 1) & (before >= 0)
        earliest = numpy.where(in_kernel, rows["start_ns"][before], ends_ns)
        rows["start_ns"][at] = numpy.maximum(rows["start_ns"][at], earliest)
        rows["end_ns"][at] = numpy.maximum(rows["start_ns"][at], rows["end_ns"][at])
        rows["end_ns"][before[in_kernel]] = rows["start_ns"][at[in_kernel]]
    rows["peer"][is_wait] = -1
    rows["site"][is_wait] = 0
    return rows


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
    regions = [region for record in records if (region := _region(record, solve)) is not None]
    has_region = len(regions) == len(records)
    spans = regions if has_region else [(record.start_ns, record.end_ns) for record in records]
    start_ns = min(start for start, _ in spans)
    names: dict[tuple[int, str], int] = {}
    sites: dict[str, int] = {}
    pieces: list[_Columns] = []
    for record, span in zip(records, spans, strict=True):
        rows = record.rows
        if has_region:
            inside = (rows["start_ns"] >= span[0]) & (rows["end_ns"] <= span[1])
            rows = {column: values[inside] for column, values in rows.items()}
        codes = numpy.array([0, *(names.setdefault(key, len(names)) for key in record.names[1:])])
        pieces.append(
            {
                "rank": numpy.full(len(rows["code"]), record.rank, dtype="int32"),
                "start_s": (rows["start_ns"] - start_ns) * 1e-9,
                "duration_s": (rows["end_ns"] - rows["start_ns"]) * 1e-9,
                "kind": numpy.array([kind for kind, _ in record.names], dtype="int16")[rows["code"]],
                "name": codes[rows["code"]],
                "site": joined_sites(rows["site"], record.sites, sites),
                **{column: rows[column] for column in ("step", "m", "n", "k", "size_bytes", "peer", "tag")},
                **{column: rows[column] for column in ("comm", "completion", "thread")},
            }
        )
    columns = {column: numpy.concatenate([piece[column] for piece in pieces]) for column in pieces[0]}
    columns["comm"] = numbered_communicators(
        columns["comm"], numpy.isin(columns["name"], [names.get((MPI, name), -1) for name in BETWEEN_TWO])
    )
    keep = columns["name"] != names.get((PHASE, REGION_BEGINS), -1)
    columns = {column: values[keep] for column, values in columns.items()}
    main_s = numpy.where(columns["thread"] == 0, columns["duration_s"], 0.0)  # others overlap it
    is_wait = columns["name"] == names.get((KERNEL, WAITING), -1)
    waited_s, in_calls_s = (float(main_s[rows].sum()) for rows in (is_wait, columns["kind"] == MPI))
    outside_s = sum(end - start for start, end in spans) * 1e-9 - in_calls_s
    metadata = metadata | _recorded_metadata(records, solve, waited_s / max(outside_s, waited_s, 1e-9))
    metadata["whole"] = True
    metadata |= {"sites": list(sites)} if sites else {}
    if solve != 1 and not has_region:
        metadata["warnings"].append(f"--solve {solve} chose nothing: the program marks none, and this is all it did")
    span_of = {record.rank: span for record, span in zip(records, spans, strict=True)}
    for place, name in enumerate(("begins_s", "ends_s")):
        dates = (span_of.get(rank, (start_ns, start_ns))[place] for rank in range(metadata["ranks"]))
        metadata[name] = [(date - start_ns) * 1e-9 for date in dates]
    if has_region:
        metadata["time_s"] = max((end - start) * 1e-9 for start, end in regions)
    return trace_of_columns(columns, [name for _, name in names], metadata, "recording")


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
    codes = [code for code, named in enumerate(record.names) if code and named == (PHASE, phase)]
    chosen = numpy.isin(record.rows["code"], codes)
    return sorted(zip(*(record.rows[end][chosen].tolist() for end in ("start_ns", "end_ns")), strict=True))


def _recorded_metadata(records: Sequence[RankRecord], solve: int, waiting_share: float) -> dict[str, Any]:
    hosts = list(dict.fromkeys(record.host for record in records))
    by_rank = {record.rank: hosts.index(record.host) for record in records}
    ranks = max(record.ranks for record in records)
    metadata: dict[str, Any] = {
        "ranks": ranks,
        "hosts": hosts,
        "nodes": [by_rank.get(rank, 0) for rank in range(ranks)],
        "mpi": records[0].mpi,
        "clock_error_s": max(record.clock_error_ns for record in records) * 1e-9,
        "cores": [next(record.cores for record in records if record.host == host) for host in hosts],
        "affinity": [
            {"host": host, "cores": sorted(cores), "ranks": count}
            for (host, cores), count in _ranks_on_cores(records).items()
        ],
        "threads": max(record.threads for record in records),
        "waiting_share": waiting_share,
        "recorder_s": [sum(record.costs_s[place] for record in records) / len(records) for place in (0, 1)],
    }
    notes = records[0].notes
    if len(notes) >= solve:
        try:
            metadata.update(application="hpl", parameters=json.loads(notes[solve - 1]))
        except ValueError:
            metadata["notes"] = list(notes)
    return metadata | _ended(records) | _sharing(records, waiting_share) | {"warnings": _warnings(records, ranks)}


def _ended(records: Sequence[RankRecord]) -> dict[str, str]:
    """What ended a run that did not come to its end, in a word and in a sentence."""
    for how, what in ((_ABORTED, "MPI_Abort"), (_EXITED, "exit without MPI_Finalize"), (_KILLED, "a signal")):
        who = [record for record in records if record.ended == how]
        if not who:
            continue
        first = who[0]
        codes = [code for code, (kind, _) in enumerate(first.names) if code and kind == MPI]
        calls = counted(int(numpy.isin(first.rows["code"], codes).sum()), "call")
        text = f"ended by {what} after {calls} (of rank {first.rank}, status {first.abort_code})"
        if how == _KILLED:
            text = f"{counted(len(who), 'rank')} did not come to MPI_Finalize, the first is rank {first.rank}"
        return {"ended_by": what, "ended": f"{text}: the trace is of what ran until then"}
    return {}


def _sharing(records: Sequence[RankRecord], waiting_share: float) -> dict[str, str]:
    """A sentence on ranks that were not alone on their cores."""
    on_cores = _ranks_on_cores(records)
    crowded = [(count, len(cores)) for (_, cores), count in on_cores.items() if count > len(cores) > 0]
    who = "other programs ran on the cores of the ranks"
    if crowded:
        ranks, cores = max(crowded, key=lambda sharing: sharing[0] / sharing[1])
        who = f"{counted(ranks, 'rank')} shared {counted(cores, 'core')}"
    elif waiting_share <= _MIN_WAITING_SHARE:
        return {}
    waited = f"{percent(waiting_share)} of the time outside of MPI they waited for a core, which replays leave out"
    return {"shared": f"{who}: {waited}"}


def _ranks_on_cores(records: Sequence[RankRecord]) -> dict[tuple[str, frozenset[int]], int]:
    return Counter((record.host, record.affinity) for record in records)


def _warnings(records: Sequence[RankRecord], ranks: int) -> list[str]:
    warnings = []
    if len(records) < ranks:
        warnings.append(f"{len(records)} of {ranks} ranks left a recording")
    lost = sum(record.lost for record in records)
    if lost:
        warnings.append(f"{lost} calls found no room and are missing")
    callers = max(int(record.rows["thread"].max(initial=0)) + 1 for record in records)
    threads = max(callers, *(record.threads for record in records))
    if threads > 1:
        which = f"{callers} of them call" if callers > 1 else "one of them calls"
        warnings.append(f"a rank has up to {threads} threads, {which} MPI or BLAS: own code is what these take")
    if any(record.fortran for record in records):
        warnings.append(
            "the program calls MPI from Fortran: all or some of these calls are missing, and when requests were over "
            "is not known; its BLAS calls are recorded"
        )
    return warnings

"""Traces of each format, cut somewhere or damaged: what is read must be all that there is, or say what is not there.

A trace is one piece of bytes, an archive with its files; it is read from a folder of its own.
"""

import json
import random
from functools import cache
from pathlib import Path
from shutil import rmtree

from oracles.paraver_by_hand import NAMES, prv
from oracles.trace_events import check_events
from oracles.traces_by_hand import call, trace

from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.report import description
from lepaute.simulate.trace.viewers import write_otf2
from mutants import written_files as written
from mutants.changes import changed

#: What a trace that was cut says of itself, where it is read.
SAYS_SO = ("not complete: ", "whole is not known", "without MPI_Finalize", "MPI_PROC_NULL", "its records end at")


def packed(files: dict[str, bytes]) -> bytes:
    return json.dumps({name: data.decode("latin-1") for name, data in files.items()}).encode()


def unpacked(data: bytes) -> dict[str, bytes]:
    return {name: text.encode("latin-1") for name, text in json.loads(data).items()}


@cache
def archives() -> list[bytes]:
    """Two ranks that send, wait and reduce, in OTF2."""
    made = trace(
        call(0, "MPI_Isend", 1.0, 0.5, peer=1, tag=7, size_bytes=800, completion=1),
        call(0, "MPI_Waitall", 2.0, 0.5, completion=1),
        call(1, "MPI_Recv", 0.0, 2.5, peer=0, tag=7, size_bytes=800),
        *(call(rank, "MPI_Bcast", 3.0 + at, 0.5, peer=0, comm=0, size_bytes=16) for rank in (0, 1) for at in range(9)),
        source="simulation",
    )
    folder = written._scratch("otf2") / "archive"
    write_otf2(made, folder)
    files = (each for each in folder.rglob("*") if each.is_file())
    return [packed({str(each.relative_to(folder)): each.read_bytes() for each in files})]


@cache
def traces(ending: str = "") -> list[bytes]:
    """One of each format (with a file that ends so), with and without the calls that a program begins and ends with."""
    folder = written._scratch("prv")
    calls = [(0, 9, "Init"), (20, 30, "Isend"), (32, 33, "Wait"), (40, 50, "Barrier"), (60, 70, "Finalize")]
    dates = [(at, NAMES.index(f"MPI_{name}") * (at == begin)) for begin, end, name in calls for at in (begin, end)]
    whole = prv(folder, 1, *(f"2:1:1:1:1:{at}:50000002:{code}" for at, code in dates))
    files = {each.name: each.read_bytes() for each in (whole, whole.with_suffix(".pcf"))}
    texts = written.time_independent_traces()
    plain = b"0 compute 1e6\n0 send 1 0 8 6\n0 bcast 8 0 6\n1 recv 0 0 8 6\n1 bcast 8 0 6\n1 compute 1e5\n"
    made = [
        *archives(),
        packed(files),
        *(packed({"run.prv": data, "run.pcf": files["run.pcf"]}) for data in written.paraver_traces()),
        *(packed({"run.txt": data}) for data in (*texts, plain)),
        *(packed({"run.goal": data}) for data in written.goal_schedules()),
        *(packed({"run.parquet": data}) for data in written.recordings()),
    ]
    return [data for data in made if any(name.endswith(ending) for name in unpacked(data))]


def cut_file(rng: random.Random, data: bytes, _others: list[bytes]) -> tuple[str, bytes]:
    """One of the files ends too early, also behind a line, or where it did."""
    files = unpacked(data)
    name = rng.choice(sorted(files))
    at = rng.randrange(len(files[name]) + 1)
    at = rng.choice((at, files[name].rfind(b"\n", 0, at) + 1, len(files[name])))
    return f"{name} cut", packed(files | {name: files[name][:at]})


def changed_file(rng: random.Random, data: bytes, _others: list[bytes]) -> tuple[str, bytes]:
    files = unpacked(data)
    name = rng.choice(sorted(files))
    way, made = changed(rng, files[name], list(files.values()))
    return f"{name}: {way}", packed(files | {name: made})


def _read(data: bytes, folder: Path) -> tuple[Path, Trace]:
    rmtree(folder, ignore_errors=True)
    for name, content in unpacked(data).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    formats = (".otf2", ".prv", ".parquet", ".goal")
    first = next((each for each in sorted(folder.iterdir()) if each.suffix in formats), folder)
    return first, read_trace(first)


@cache
def _whole() -> dict[tuple[str, ...], list[Trace]]:
    """What the traces are read as that are not cut, by the names of their files."""
    made: dict[tuple[str, ...], list[Trace]] = {}
    for data in traces():
        made.setdefault(tuple(sorted(unpacked(data))), []).append(_read(data, written._scratch("whole") / "trace")[1])
    return made


def read_damaged(path: Path) -> object:
    place, found = _read(path.read_bytes(), path.with_suffix(".folder"))
    check_events(place, found)
    return description(found)


def read_cut(path: Path) -> object:
    """Fails where a cut trace is neither refused, nor all that it was, nor says so."""
    data = path.read_bytes()
    place, found = _read(data, path.with_suffix(".folder"))
    if "events" in found.metadata:
        check_events(place, found)
    rows = found.to_frame()
    is_whole = any(rows.equals(each.to_frame()) for each in _whole()[tuple(sorted(unpacked(data)))])
    said = [text for text in found.metadata.get("warnings", ()) if any(word in text for word in SAYS_SO)]
    assert is_whole or said, f"{len(rows)} rows, {found.metadata.get('warnings')}"
    return description(found)

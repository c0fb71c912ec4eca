"""How many events a trace of another program has, counted from its files alone; no reader of ours takes part."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from lepaute.simulate.trace import Trace


def check_events(path: Path, trace: Trace) -> None:
    """Fails where an event of the file is neither in a row nor named."""
    told, named = trace.metadata["events"], trace.metadata.get("omitted", ())
    assert told["read"] == events_in(path, str(trace.metadata["engine"])), path
    assert told["read"] == told["placed"] + sum(int(text.split()[0]) for text in named), (told, named)


def events_in(path: Path, engine: str) -> int:
    if engine == "OTF2":
        reader = pytest.importorskip("otf2.reader")
        with reader.open(str(next(path.glob("*.otf2"), path))) as archive:
            return sum(1 for _ in archive.events)
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    lines = [line for file in files for line in file.read_bytes().decode(errors="replace").split("\n")]
    if engine == "Paraver":
        return sum((line.count(":") - 5) // 2 if line.startswith("2") else 1 for line in _words(lines))
    if engine == "GOAL":
        plain = (re.sub(r"/\*.*?\*/|//.*", "", line) for line in _words(lines))
        return sum(bool(re.search(r"send|recv|calc|requires", line)) for line in plain)
    return sum(1 for _ in _words(lines))


def _words(lines: Iterable[str]) -> Iterable[str]:
    """Lines with something on them that are no comments."""
    return (line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))

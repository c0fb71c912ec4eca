"""Archives made to exhaust memory, each given to a process of its own: it refuses, or answers, in little memory."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from support_archive import sealed
from support_limits import ran

#: Beyond what the same commands take of a sound archive. What is parsed takes 100 MiB; what bombs declare, gigabytes.
MAX_MORE_BYTES = 512 << 20
READ = """
import re, sys
from pathlib import Path
from lepaute.measure.archive import Archive
from lepaute.cli.main import main
path = sys.argv[1]
status = [main(["archive", *words]) for words in (["show", path], ["verify", path], ["diff", path, path])]
try:
    archive = Archive.open(path)
    for name in archive.members():
        if name.endswith((".parquet", ".csv")):
            archive.table(name)
except Exception as problem:
    print(type(problem).__name__)
# Not what getrusage says, which begins with the memory of the process that started this one.
most_kib = int(re.search("VmHWM: *([0-9]+) kB", Path("/proc/self/status").read_text().replace("\t", " "))[1])
print(status, most_kib * 1024)
"""


def one_text_a_thousand_times() -> bytes:
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 4000), pyarrow.array(["x" * (1 << 20)]))
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": column}), out, store_schema=False)
    return out.getvalue()


BOMBS: dict[str, Callable[[], dict[str, bytes]]] = {
    "metadata of many lists": lambda: {"metadata.json": b'{"kind": "x", "a": [' + b"[]," * 10_000_000 + b"0]}"},
    "commands of many lists": lambda: {"commands.json": b"[" + b"[]," * 1_300_000 + b"0]"},
    "commands larger than memory allows": lambda: {"commands.json": b"[" + b"[]," * 30_000_000 + b"0]"},
    "many members": lambda: {"x" * 100 + str(number): b"" for number in range(20_000)},
    "deep documents": lambda: {"controls.json": b"[" * 2_000_000, "repositories.json": b'{"a":' * 1_000_000},
    "entities": lambda: {
        "environment/n/lstopo.xml": b"<!DOCTYPE t ["
        + b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10 if n else b"x" * 1000) for n in range(12))
        + b"]><t>&e11;</t>"
    },
    "one text spelt out": lambda: {"observations/t.parquet": one_text_a_thousand_times()},
    "many columns": lambda: {"raw/t.csv": b"," * 8_000_000},
    "many packages": lambda: {"environment/n/packages.txt": b"".join(b"p%d 1\n" % n for n in range(100_000))},
}


def read(path: Path, members: dict[str, bytes]) -> "subprocess.CompletedProcess[str]":
    """READ of an archive with these members."""
    metadata = {"kind": "experiment", "created": "2026", "nodes": ["n"]}
    sealed(path, {"metadata.json": json.dumps(metadata).encode(), **members}, zipfile.ZIP_STORED)
    return ran([sys.executable, "-c", READ, str(path)])


@pytest.fixture(scope="module")
def sound_bytes(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Memory that READ of an archive takes in which nothing is hostile."""
    members = {"raw/t.csv": b"a\n1\n", "controls.json": b"[]", "commands.json": b"[]"}
    return int(read(tmp_path_factory.mktemp("sound") / "sound.zip", members).stdout.split()[-1])


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_read_or_refused_in_little_memory_and_without_a_traceback(tmp_path, bomb, sound_bytes):
    result = read(tmp_path / "bomb.zip", BOMBS[bomb]())
    assert "Traceback" not in result.stderr, result.stderr[-2000:]
    assert result.returncode == 0
    *_, last = result.stdout.splitlines()
    status, _, rss_bytes = last.rpartition(" ")
    assert set(json.loads(status)) <= {0, 2}
    assert int(rss_bytes) < sound_bytes + MAX_MORE_BYTES
    others = [line for line in result.stdout.splitlines() if line.endswith("Error")]
    assert set(others) <= {"ArchiveError"}

"""No output destroys an input, another output, an archive or a device, whatever it is called."""

from pathlib import Path

import pytest

from lepaute.measure.archive import ArchiveWriter
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.schema import platform_text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file of each kind that commands read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing is measured, whatever else goes wrong
    Path("p.yaml").write_text(platform_text(load_platform("stampede-like")))
    for name in ("HPL.dat", "t.parquet", "u.parquet", "d.csv", "p.xml", "table.csv", "smpi.trace"):
        Path(name).write_text("an input")
    with ArchiveWriter("c.zip", {"kind": "calibration", "created": "2026-11-21"}) as writer:
        writer.add_bytes("a", b"measured")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


#: A command line that reads a file, without its last word, and the file.
READERS = [
    ("fit c.zip -o", "c.zip"),
    ("predict hpl -p p.yaml --n 100 -o", "p.yaml"),
    ("predict hpl -p p.yaml --n 100 --trace", "p.yaml"),
    ("predict hpl -p p.yaml --dat HPL.dat -o", "HPL.dat"),
    ("predict hpl -p p.yaml --n 100 --hostfile d.csv -o", "d.csv"),
    ("emulate hpl -p p.yaml --n 100 --trace", "p.yaml"),
    ("trace perfetto t.parquet -o", "t.parquet"),
    ("trace convert smpi.trace -o", "smpi.trace"),
    ("trace breakdown t.parquet --report", "t.parquet"),
    ("design mix d.csv --force -o", "d.csv"),
    ("platform export p.yaml --output", "p.yaml"),
    ("platform import p.xml -o", "p.xml"),
    ("platform synthesize --nodes 2 --like p.yaml -o", "p.yaml"),
    ("platform population table.csv --of p.yaml -o", "table.csv"),
    ("platform population table.csv --of p.yaml -o", "p.yaml"),
    ("record --dat HPL.dat -o HPL.dat -- mpirun", "xhpl-lepaute"),
]


@pytest.mark.parametrize(("words", "file"), READERS, ids=[f"{words} {file}" for words, file in READERS])
def test_no_command_writes_over_what_it_reads(words, file, folder, refusal_of):
    before = contents(folder)
    assert "is also an input" in refusal_of(*words.split(), file)
    assert contents(folder) == before
    if file != "xhpl-lepaute":
        Path("link").symlink_to(file)
        assert "is also an input" in refusal_of(*words.split(), "link")


@pytest.mark.parametrize(
    "words",
    ["fit c.zip -o out.yaml --plot c.zip", "predict hpl -p p.yaml --n 100 --plot p.yaml",
     "emulate hpl -p p.yaml --n 100 --gantt p.yaml", "trace gantt t.parquet -o t.parquet",
     "trace breakdown t.parquet --plot t.parquet", "trace compare t.parquet u.parquet --plot u.parquet",
     "design picture d.csv -o d.csv", "segment d.csv --plot d.csv"],
)  # fmt: skip
def test_a_picture_has_the_name_of_a_picture_and_so_of_no_input(words, folder, refusal_of):
    before = contents(folder)
    assert "a picture's name ends in .png, .svg or .pdf" in refusal_of(*words.split())
    assert contents(folder) == before

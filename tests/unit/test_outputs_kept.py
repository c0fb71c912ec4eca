"""No output destroys an input, another output, an archive or a device, whatever it is called."""

import os
import stat
from pathlib import Path

import pytest

from lepaute.archive import ArchiveWriter
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.kit.files import write_whole
from lepaute.kit.outputs import check_archive_output
from lepaute.platform import load_platform
from lepaute.platform.io import platform_text


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
    ("fit c.zip -o out.yaml --plot", "c.zip"),
    ("predict hpl -p p.yaml --n 100 -o", "p.yaml"),
    ("predict hpl -p p.yaml --n 100 --plot", "p.yaml"),
    ("predict hpl -p p.yaml --n 100 --trace", "p.yaml"),
    ("predict hpl -p p.yaml --dat HPL.dat -o", "HPL.dat"),
    ("predict hpl -p p.yaml --n 100 --hostfile d.csv -o", "d.csv"),
    ("emulate hpl -p p.yaml --n 100 --trace", "p.yaml"),
    ("emulate hpl -p p.yaml --dat HPL.dat --gantt", "HPL.dat"),
    ("trace gantt t.parquet -o", "t.parquet"),
    ("trace perfetto t.parquet -o", "t.parquet"),
    ("trace convert smpi.trace -o", "smpi.trace"),
    ("trace breakdown t.parquet --plot", "t.parquet"),
    ("trace compare t.parquet u.parquet --plot", "u.parquet"),
    ("design picture d.csv -o", "d.csv"),
    ("design mix d.csv --force -o", "d.csv"),
    ("platform export p.yaml --simgrid", "p.yaml"),
    ("platform import p.xml -o", "p.xml"),
    ("platform synthesize --nodes 2 --like p.yaml -o", "p.yaml"),
    ("platform population table.csv --of p.yaml -o", "table.csv"),
    ("platform population table.csv --of p.yaml -o", "p.yaml"),
    ("record --dat HPL.dat -o HPL.dat -- mpirun", "xhpl-lepaute"),
]


@pytest.mark.parametrize(("words", "file"), READERS, ids=[f"{words} {file}" for words, file in READERS])
def test_no_command_writes_over_what_it_reads(words, file, folder, capsys):
    before = contents(folder)
    assert main([*words.split(), file]) == 2
    assert "is also an input" in capsys.readouterr().err
    assert contents(folder) == before
    if file != "xhpl-lepaute":
        Path("link").symlink_to(file)
        assert main([*words.split(), "link"]) == 2
        assert "is also an input" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["calibrate -o new.zip --archive new.zip", "predict hpl -p p.yaml --n 100 -o new --plot ./new",
     "fit c.zip -o new.html --report new.html", "predict hpl -p p.yaml --n 100 --trace new --gantt new"],
)  # fmt: skip
def test_two_outputs_of_one_name_are_refused(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    assert main(words.split()) == 2
    assert "writes it too" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "empty"), (".", "is a folder"), ("/", "is a folder"), ("x" * 300, "too long"), ("loop", "loop"),
     ("nowhere/x", "no folder"), ("d.csv/x", "not a folder"), ("a\0b", "null byte")],
)  # fmt: skip
@pytest.mark.parametrize(
    "command",
    ["fit c.zip -o", "predict hpl -p p.yaml --n 100 -o", "calibrate --archive", "calibrate -o", "design p2p -o",
     "run memory -o", "platform synthesize --nodes 2 -o", "trace gantt t.parquet -o",
     "emulate hpl -p dahu --n 100 --trace", "platform export dahu --simgrid", "record -o",
     "predict hpl -p p.yaml --n 100 --plot", "trace breakdown none.parquet --plot"],
)  # fmt: skip
def test_names_that_cannot_be_are_one_line_before_any_work(command, name, words, folder, capsys):
    Path("loop").symlink_to("loop")
    before = {path.name for path in folder.iterdir()}
    program = ["--", "mpirun", "true"] if command == "record -o" else []
    assert main([*command.split(), name, *program]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err or command == "run memory -o"  # which asks for .zip first
    assert {path.name for path in folder.iterdir()} == before


def test_a_name_that_is_not_utf_8_is_written_and_printed_as_it_can_be(folder, capsys):
    name = os.fsdecode(b"\xff.yaml")
    assert main(["platform", "synthesize", "--nodes", "2", "--like", "dahu", "-o", name]) == 0
    assert (folder / name).is_file()
    assert "\\udcff.yaml" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["calibrate --archive", "run memory --dry-run -o"])
def test_an_archive_is_replaced_only_where_that_is_asked_for(words, folder, capsys):
    before = contents(folder)
    Path("link.zip").symlink_to("c.zip")
    for name in ("c.zip", "link.zip"):
        assert main([*words.split(), name]) == 2
        assert "--force" in capsys.readouterr().err
    Path("link.zip").unlink()
    main([*words.split(), "c.zip", "--force"])  # ends because nothing can be measured here
    assert "--force" not in capsys.readouterr().err
    assert contents(folder) == before


def test_an_archive_is_a_file(tmp_path: Path) -> None:
    check_archive_output(tmp_path / "new.zip", force=False)
    (tmp_path / "old.zip").touch()
    check_archive_output(tmp_path / "old.zip", force=True)
    for path in (Path("/dev/null"), tmp_path / "old.zip"):
        with pytest.raises(InputError):
            check_archive_output(path, force=False)


def test_extracting_into_nothing_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    assert main(["archive", "extract", "c.zip", "-o", ""]) == 2
    assert "empty" in capsys.readouterr().err
    assert contents(folder) == before
    assert main(["archive", "extract", "c.zip", "-o", "."]) == 0
    assert (folder / "a").read_bytes() == b"measured"


def test_another_users_link_of_a_temporary_name_is_not_followed(folder: Path) -> None:
    """The names that a process of this number would once have taken."""
    precious = folder / "precious"
    precious.write_text("precious")
    for name in (".r.txt", "r.txt", "r"):
        (folder / f"{name}.{os.getpid()}.tmp").symlink_to(precious)
    write_whole(folder / "r.txt", "new")
    assert precious.read_text() == "precious"
    assert not (folder / "r.txt").is_symlink()


@pytest.mark.parametrize(
    "words",
    ["predict hpl -p p.yaml --n 100 --runs 1 -o", "platform synthesize --nodes 2 --like dahu -o", "design p2p -o",
     "platform export p.yaml --simgrid", "predict hpl -p p.yaml --n 100 --runs 1 --perfetto"],
)  # fmt: skip
def test_a_device_stays_one(words: str, folder: Path) -> None:
    Path("null").symlink_to("/dev/null")
    for name in ("/dev/null", "null"):
        assert main([*words.split(), name]) == 0
        assert stat.S_ISCHR(Path(name).stat().st_mode)
    assert Path("null").is_symlink()

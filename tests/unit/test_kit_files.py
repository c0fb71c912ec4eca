"""Files written whole, outputs checked before the work starts; no output destroys what is there."""

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support_limits import HANG_S, ran
from support_rights import obeying_permissions

from lepaute.errors import InputError
from lepaute.kit.files import check_output, remove_abandoned, scratch_file, scratch_folder, whole_file, write_atomic
from lepaute.kit.outputs import check_outputs
from lepaute.measure.archive import ArchiveWriter
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.schema import platform_text


def run_python(code: str, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-c", code, *words], **options)


def test_a_file_appears_whole_and_nothing_else_does(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with whole_file(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.parent == tmp_path
    assert target.read_text() == "half"
    write_atomic(target, "new Δ")
    assert target.read_bytes() == "new Δ".encode()
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write() -> None:
        with whole_file(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_those_that_open_gives(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "new", "x")
        (tmp_path / "opened").write_text("x")
        kept = tmp_path / "kept"
        kept.write_text("x")
        kept.chmod(0o640)
        write_atomic(kept, "y")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == stat.S_IMODE((tmp_path / "opened").stat().st_mode)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link, target = tmp_path / "link", tmp_path / "data" / "target"
    link.symlink_to("data/target")
    for text in ("one", "two"):  # first it dangles
        write_atomic(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert list(target.parent.iterdir()) == [target]


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        received: list[bytes] = []
        reader = threading.Thread(target=lambda into=received: into.append(pipe.read_bytes()))
        reader.start()
        write_atomic(path, b"x" * 200_000)
        reader.join()
        assert received == [b"x" * 200_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_is_written_where_it_stands(tmp_path: Path) -> None:
    """Redirected to a file, it is not replaced, and what is printed before and after stands around it."""
    code = """
from lepaute.kit.files import write_atomic
print("before"); write_atomic("/dev/stdout", "middle\\n"); write_atomic("/dev/fd/1", "more\\n"); print("after")
"""
    assert run_python(code).stdout.split() == ["before", "middle", "more", "after"]
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, timeout=HANG_S)
    assert (tmp_path / "out").read_text().split() == ["before", "middle", "more", "after"]


def test_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    code = """
import resource, sys
from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomic(sys.argv[1], b"x" * 100_000)
except InputError as problem:
    print(problem)
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000
    assert "cannot be written (File too large)" in run_python(code, str(target)).stdout
    with pytest.raises(InputError, match="No space left"):
        write_atomic("/dev/full", "x")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_outputs_that_cannot_be_written_are_refused_with_their_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for path, reason in {
        tmp_path: "is a folder; give a file name",
        Path(): "is a folder",
        Path(".."): "is a folder",
        tmp_path / "none" / "a": f"there is no folder {tmp_path / 'none'}",
        tmp_path / "file" / "a": "is not a folder",
        tmp_path / "circle": "Too many levels of symbolic links",
        tmp_path / ("x" * 300): "File name too long",
        tmp_path / "a\0b": "null (byte|character)",  # the latter from Python 3.14 on
        tmp_path / "socket": "cannot be written",
    }.items():
        with pytest.raises(InputError, match=reason) as problem:
            check_outputs({"--output": path}, force=False)
        assert "--output" in str(problem.value)
        assert "\n" not in str(problem.value)
    for path in (tmp_path / "new", tmp_path / "file", Path("/dev/null"), Path("new")):
        check_output(path)


@obeying_permissions
def test_a_folder_or_file_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o444)
    with pytest.raises(InputError, match="cannot be written"):
        check_output(tmp_path / "file")
    tmp_path.chmod(0o555)
    with pytest.raises(InputError, match=r"the folder .* is not writable"):
        check_output(tmp_path / "new")


def test_an_output_that_is_an_input_or_another_output_is_refused(tmp_path: Path) -> None:
    source, link = tmp_path / "in.csv", tmp_path / "link"
    source.write_text("x")
    link.symlink_to("in.csv")
    for path in (source, link, tmp_path / "." / "in.csv"):
        with pytest.raises(InputError, match=r"--out .* is also an input"):
            check_outputs({"--out": path}, inputs=[source, "dahu", None], force=True)
    with pytest.raises(InputError, match=r"--plot .*: --out writes it too"):
        check_outputs({"--out": tmp_path / "new", "--plot": tmp_path / "." / "new"}, force=True)
    with pytest.raises(InputError, match="--report writes it too"):
        check_outputs({"--report": [tmp_path / "a.html", tmp_path / "a.html"]}, force=True)
    check_outputs(
        {"--out": Path("/dev/null"), "--plot": Path("/dev/null"), "--gantt": None}, inputs=["/dev/null"], force=False
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom lepaute.kit.files import whole_file\n"
        "with whole_file(Path(sys.argv[1], 'a')) as temporary:\n"
        "    temporary.write_text('half')\n    os.kill(os.getpid(), int(sys.argv[2]))\n"
    )
    (tmp_path / "a").write_text("old")
    assert run_python(program, str(tmp_path), str(int(number))).returncode == -number
    assert (tmp_path / "a").read_text() == "old"
    (tmp_path / "b.tmp").touch()
    (half,) = tmp_path.glob(".lepaute-*.tmp")
    remove_abandoned(tmp_path)
    assert half.exists(), "its maker may be about to lock it"
    os.utime(half, (0, 0))
    abandoned = tmp_path / ".lepaute-folder.tmp"
    (abandoned / "within").mkdir(parents=True)
    os.utime(abandoned, (0, 0))
    with scratch_file(tmp_path) as file, scratch_folder(tmp_path) as folder:
        for path in (file, folder):
            os.utime(path, (0, 0))
        remove_abandoned(tmp_path)  # as another process does
        assert file.exists()
        assert folder.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b.tmp"]


def test_the_next_command_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    half = tmp_path / ".lepaute-half.tmp"
    half.write_text("half")
    os.utime(half, (0, 0))
    write_atomic(tmp_path / "whole", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


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

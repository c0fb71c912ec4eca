"""The frame around every command: exit statuses, one line on standard error, nothing loaded in vain."""

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import typer
from support_limits import HANG_S, ran

from lepaute.cli import COMMANDS
from lepaute.cli.entry import OUT_OF_MEMORY, guarded
from lepaute.cli.main import main
from lepaute.errors import InputError

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a module in the place of the command `doctor`."""

    def put(**contents: object) -> None:
        module = ModuleType("lepaute.cli.doctor")
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, "lepaute.cli.doctor", module)

    return put


def test_an_error_of_the_user_is_one_line_and_status_2(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    def command(n: int = 0) -> None:
        raise InputError(f"N is {n};\n  a matrix has at least one row")

    install(command=command)
    assert main(["doctor"]) == 2
    assert capsys.readouterr() == ("", "lepaute: N is 0; a matrix has at least one row\n")


def test_a_defect_of_ours_is_status_70_and_a_private_file_with_its_traceback(install, capsys, tmp_path, monkeypatch):
    def command() -> None:
        raise ValueError("a \x1b[2Jbug")

    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))
    install(command=command)
    assert main(["doctor"]) == 70
    (kept,) = (tmp_path / "home").iterdir()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert str(kept) in captured.err
    assert "a \\x1b[2Jbug" in captured.err
    assert "ValueError: a" in kept.read_text()
    assert "in command" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert main(["doctor"]) == 70
    assert len({path.name for path in (tmp_path / "home").iterdir()}) == 2


def test_the_traceback_goes_to_the_temporary_folder_where_the_cache_cannot_be_written(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert guarded(lambda: 1 // 0) == 70
    (kept,) = tmp_path.glob("traceback-*")
    assert str(kept) in capsys.readouterr().err


REFUSALS = """ENAMETOOLONG ELOOP EDQUOT EIO ESTALE EFBIG ENXIO ENOSPC EROFS EMFILE ETXTBSY EHOSTUNREACH ECONNREFUSED
ETIMEDOUT EXDEV EMLINK ENODEV EBUSY EAGAIN ENOTSUP EINVAL"""
FORESEEN = [
    (RuntimeError("Symlink loop from '/a/b'"), "Symlink loop from '/a/b'"),
    (RecursionError("maximum recursion depth exceeded"), "nested too deep"),
    (TimeoutError("timed out"), "timed out"),
    (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates not allowed"), "'a\\udcff' is not text in UTF-8"),
    (UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"), "not text in UTF-8"),
    *(
        (OSError(code, os.strerror(code), "a\x1b[2J\udcff\nb"), f"lepaute: a\\x1b[2J\\udcff b: {os.strerror(code)}\n")
        for code in (getattr(errno, name) for name in REFUSALS.split())
    ),
]


@pytest.mark.parametrize(("error", "words"), FORESEEN)
def test_what_can_be_foreseen_is_one_line_and_status_2(error, words, capsys):
    def run() -> int:
        raise error

    assert guarded(run) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("libarrow.so.2600: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_too_little_memory_is_one_line_and_a_status_of_its_own(error, capsys):
    """Whatever the library calls it whose allocation failed, and whatever was made of that."""

    def run() -> int:
        try:
            raise error
        except Exception as cause:
            raise ValueError("no table") from cause

    assert guarded(run) == OUT_OF_MEMORY
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lepaute: there is not enough memory (")
    assert "()" not in line


def test_an_import_that_an_interrupt_broke_is_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy.core.multiarray failed to import") from None
        return 0

    assert guarded(run) == 130
    assert capsys.readouterr().err == "lepaute: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("redirection", "status", "complaint"),
    [
        (">&-", 2, "lepaute: standard output: Bad file descriptor\n"),
        ("> /dev/full", 2, "lepaute: standard output: No space left on device\n"),
        ("2>&-", 0, ""),
        ("<&- 2>&-", 0, ""),
        ("2> /dev/full", 0, ""),
        ("<&-", 0, ""),
    ],
)
def test_standard_streams_that_are_closed_or_full_are_no_traceback(redirection, status, complaint):
    for arguments in ("--help", "platform list"):
        result = ran(["sh", "-c", f'exec "$0" -m lepaute.cli.main {arguments} {redirection}', sys.executable])
        assert (result.returncode, result.stderr) == (status, complaint)


def test_an_ascii_terminal_gets_codes_in_the_place_of_characters(tmp_path: Path) -> None:
    (tmp_path / "Grüße.txt").touch()
    for setting in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        result = subprocess.run(
            [sys.executable, "-m", "lepaute.cli.main", "archive", "show", str(tmp_path / "Grüße.txt")],
            capture_output=True, check=False, env={**os.environ, **setting},
        )  # fmt: skip
        assert result.returncode == 2
        assert result.stderr.count(b"\n") == 1
        assert result.stderr.isascii()
        assert b"Traceback" not in result.stderr


def test_the_only_subcommand_of_a_command_keeps_its_name(install, refusal_of, output_of):
    app = typer.Typer()

    @app.command("hpl")
    def hpl(n: int) -> None:
        print("n is", n)

    install(command=app)
    assert output_of("doctor", "hpl", "7") == "n is 7\n"
    refusal_of("doctor", "7")
    assert "missing command" in refusal_of("doctor")


def test_the_help_of_the_program_loads_neither_typer_nor_a_command() -> None:
    code = (
        "import sys; from lepaute.cli.main import main; main(['--help']); "
        "print([m for m in sys.modules if m in ('typer', 'pydantic', 'numpy', 'rich')], file=sys.stderr)"
    )
    result = ran([sys.executable, "-c", code], check=True)
    assert result.stderr == "[]\n"
    assert all(f"  {command.name} " in result.stdout for command in COMMANDS)


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = (
        "import sys; from lepaute.cli.entry import guarded\n"
        "def many():\n    for i in range(100000): print(i)\n    return 0\n"
        "sys.exit(guarded(many))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.readline()
        child.stdout.close()
        complaints = child.stderr.read()
        assert child.wait(timeout=HANG_S) == 141  # 128 + SIGPIPE, as a shell reports it
    assert complaints == b""


def test_debugging_lets_errors_of_the_user_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPAUTE_DEBUG", "1")

    def run() -> int:
        raise InputError("N is 0")

    with pytest.raises(InputError):
        guarded(run)


@pytest.mark.parametrize("command", ["", "doctor", "predict hpl", "emulate hpl", "trace"])
def test_help_of_a_command_is_what_its_option_prints(command, output_of):
    words = command.split()
    assert output_of("help", *words) == output_of(*words, "--help")


def test_a_full_disk_is_named_where_the_system_names_no_file(monkeypatch, tmp_path, capsys):
    import shutil

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: type("Usage", (), {"free": 3 << 10}))

    def run() -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert guarded(run) == 2
    expected = f"lepaute: No space left on device: {tmp_path} has 3 KiB left; make room there\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(("name", "application"), [("run.parquet", "trace"), ("HPL.dat", "hpl")])
def test_a_file_in_the_place_of_an_application_says_whose_it_is(name, application, tmp_path, monkeypatch, refusal_of):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    assert refusal_of("predict", name).endswith(f"name its application: lepaute predict {application} {name}\n")

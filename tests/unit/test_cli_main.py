"""The frame around every command: exit statuses, one line on standard error, nothing loaded in vain."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import typer

from lepaute.cli import main as dispatcher
from lepaute.cli.entry import guarded
from lepaute.cli.main import COMMANDS, main
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


def test_a_missing_file_is_named_in_one_line(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(command=lambda: Path("/nowhere/raw.csv").read_text())
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "lepaute: /nowhere/raw.csv: No such file or directory\n"


def test_a_defect_of_ours_keeps_its_traceback(install: Install) -> None:
    def command() -> None:
        raise ValueError("a bug")

    install(command=command)
    with pytest.raises(ValueError, match="a bug"):
        main(["doctor"])


def test_the_subject_that_failed_is_status_1_without_a_word(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise typer.Exit(1)

    install(command=command)
    assert main(["doctor"]) == 1
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_is_one_line_and_status_130(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise KeyboardInterrupt

    install(command=command)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "lepaute: interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["doktor"], "there is no command 'doktor'; did you mean 'doctor'? 'lepaute --help' lists them"),
        (["--verbose"], "there is no option '--verbose'; 'lepaute --help' lists them"),
        (["doctor", "--n"], "option '--n' requires an argument; see 'lepaute doctor --help'"),
        (["doctor", "--m", "1"], "no such option: --m"),
    ],
)
def test_a_command_line_that_cannot_be_is_one_line_and_status_2(
    install: Install, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    def command(n: int = 0) -> None:
        raise AssertionError(n)

    install(command=command)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"lepaute: {complaint}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_only_subcommand_of_a_command_keeps_its_name(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()

    @app.command("hpl")
    def hpl(n: int) -> None:
        print("n is", n)

    install(app=app)
    assert main(["doctor", "hpl", "7"]) == 0
    assert capsys.readouterr().out == "n is 7\n"
    assert main(["doctor", "7"]) == 2
    assert main(["doctor"]) == 2
    assert "missing command" in capsys.readouterr().err


def test_every_command_of_the_list_has_a_module_that_runs() -> None:
    for command in COMMANDS:
        assert main([command.name, "--help"]) == 0, command.name


def test_the_help_of_the_program_loads_neither_typer_nor_a_command() -> None:
    code = (
        "import sys; from lepaute.cli.main import main; main(['--help']); "
        "print([m for m in sys.modules if m in ('typer', 'pydantic', 'numpy', 'rich')], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr == "[]\n"
    assert all(f"  {command.name} " in result.stdout for command in COMMANDS)


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = (
        "import sys; from lepaute.cli.entry import guarded\n"
        "def many():\n    for i in range(100000): print(i)\n    return 0\n"
        "sys.exit(guarded(many))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        complaints = child.stderr.read()
        assert child.wait(timeout=30) == 141  # 128 + SIGPIPE, as a shell reports it
    assert complaints == b""


def test_debugging_lets_errors_of_the_user_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPAUTE_DEBUG", "1")

    def run() -> int:
        raise InputError("N is 0")

    with pytest.raises(InputError):
        guarded(run)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import lepaute

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lepaute {lepaute.__version__}\n"
    assert dispatcher.installed_version() == lepaute.__version__

"""What a shell offers when the tab key is pressed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support_limits import ran

from lepaute.cli import COMMANDS, commands
from lepaute.cli.main import main


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["__complete", *words]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pla",), ["platform"]),
        (("help", "pla"), ["platform"]),
        (("help", "platform", "sh"), ["show"]),
        (("-",), ["--help", "--version"]),
        (("predict", ""), ["hpl", "stencil", "trace"]),
        (("predict", "hpl", "--pf"), ["--pfact"]),
        (("predict", "hpl", "--pfact", ""), ["crout", "left", "right"]),
        (("predict", "hpl", "-p", "stam"), ["stampede-like"]),
        (("predict", "hpl", "--swap", "=", "mi"), ["mix"]),  # bash's three words for --swap=mi
        (("predict", "hpl", "--swap", "="), ["binary-exchange", "mix", "spread-roll"]),
        (("emulate", "-p", "stam"), ["stampede-like"]),  # of the program, the subcommand that is meant
        (("completion", ""), ["bash", "fish", "zsh"]),
        (("platform", "show", "stam"), ["stampede-like"]),
        (("trace", "show", ""), []),  # files, which the shell knows
        (("nothing", ""), []),
        (("predict", "nothing", ""), []),
        (("help", "trace", "show", ""), []),
    ],
)
def test_what_fits_is_offered(words: tuple[str, ...], expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys, *words) == expected


def test_every_command_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys) == offered(capsys, "") == sorted([*(command.name for command in COMMANDS), "help"])


def test_bash_completes_by_the_script_that_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    command = tmp_path / "lepaute"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m lepaute.cli.main "$@"\n')
    command.chmod(0o755)
    words = f"COMP_WORDS=(lepaute trace sh) COMP_CWORD=2; . {script}; _lepaute; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = ran(["bash", "-c", f"PATH={tmp_path}:$PATH; {words}"], check=True)
    assert (done.stdout, done.stderr) == ("show\n", "")


@pytest.mark.parametrize("shell", commands.SCRIPTS)
def test_the_shell_itself_understands_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=commands.SCRIPTS[shell], text=True, check=True)

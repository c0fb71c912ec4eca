"""Bad input at the command line: one clear line on standard error, exit status 2, nothing on standard output."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support_limits import HANG_S


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lepaute.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env={**os.environ, **environment},
        check=False,
    )


def assert_one_line(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def predict(path: Path | str, *more: str) -> subprocess.CompletedProcess[str]:
    return run("predict", "hpl", "-p", str(path), "--n", "1000", *more)


def test_a_grid_larger_than_the_machine_is_refused() -> None:
    assert_one_line(predict("dahu", "--grid", "64x64"), "4096 ranks", "dahu")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--n", "0"), ("n is 0",)),
        (("--n", "1.5"), ("n is '1.5'",)),
        (("--n", "many"), ("n is 'many'",)),
        (("--n", "1000", "--grid", "8"), ("grid is '8'",)),
        (("--n", "1000", "--runs", "0"), ("runs is 0",)),
        (("--n", "1000", "--bcast", "7"), ("bcast is '7'",)),
        (("--n", "1000", "--set", "network.flow_factor=fast"), ("flow_factor",)),
        (("--n", "1000", "--set", "network.flow=bound"), ("flow",)),
        (("--n", "1000", "--nbb", "3"), ("--nbb",)),
    ],
)
def test_parameters_that_cannot_be_are_refused(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_one_line(run("predict", "hpl", "-p", "dahu", *arguments), *words)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    from lepaute.archive import ArchiveWriter

    path = tmp_path / "calibration.zip"
    with ArchiveWriter(path, {"kind": "calibration", "created": "2026-11-21T00:00:00+00:00"}) as writer:
        writer.add_bytes("observations/note.txt", b"0123456789" * 100)
    return path


@pytest.mark.parametrize("missing", ["mpicc", "mpirun"])
def test_a_missing_mpi_is_named_with_the_command_that_installs_it(missing: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("mpicc", "mpirun", "ar", "gcc"):
        found = shutil.which(tool)
        if tool != missing and found:
            (tools / tool).symlink_to(found)
    result = run(
        "verify", "hpl", "-p", "dahu", "--n", "100", "--grid", "1x1", "--output-dir", str(tmp_path / "out"),
        PATH=str(tools), LEPAUTE_HOME=str(tmp_path / "home"),
    )  # fmt: skip
    assert_one_line(result, missing, "apt-get install")


def test_a_missing_compiler_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("mpicc", "mpirun", "ar"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    result = run("verify", "hpl", "-p", "dahu", "--n", "100", "--grid", "1x1", "--output-dir", str(tmp_path / "out"),
                 PATH=str(tools), LEPAUTE_HOME=str(tmp_path / "home"))  # fmt: skip
    assert_one_line(result, "compiler", "apt-get install")


def test_a_missing_blas_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    # A compiler that does not find -lopenblas, as on a machine without it: everything else is the real one.
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "gcc").write_text(
        '#!/bin/sh\nfor word in "$@"; do\n'
        '[ "$word" = -lopenblas ] && { echo "ld: cannot find -lopenblas" >&2; exit 1; }\n'
        f'done\nexec {shutil.which("gcc")} "$@"\n'
    )
    (tools / "gcc").chmod(0o755)
    result = run("verify", "hpl", "-p", "dahu", "--n", "100", "--grid", "1x1", "--output-dir", str(tmp_path / "out"),
                 PATH=f"{tools}:{os.environ['PATH']}", LEPAUTE_HOME=str(tmp_path / "home"),
                 OMPI_CC=str(tools / "gcc"))  # fmt: skip
    assert_one_line(result, "libopenblas", "apt-get install")

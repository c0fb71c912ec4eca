"""What a machine lacks for a verification: one line on standard error, exit status 2, nothing on standard output."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from support_limits import ran

COMPILER_WITHOUT_BLAS = """#!/bin/sh
for word in "$@"; do
[ "$word" = -lopenblas ] && { echo "ld: cannot find -lopenblas" >&2; exit 1; }
done
exec %s "$@"
"""


def assert_named_with_its_package(folder: Path, name: str, **environment: str) -> None:
    verify = ["verify", "hpl", "-p", "dahu", "--n", "100", "--grid", "1x1", "--output", str(folder / "out")]
    result = ran(
        [sys.executable, "-m", "lepaute.cli.main", *verify],
        env={**os.environ, "LEPAUTE_HOME": str(folder / "home"), **environment},
    )
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert name in line
    assert "apt-get install" in line


@pytest.mark.parametrize(
    ("there", "missing"),
    [(("mpirun", "ar", "gcc"), "mpicc"), (("mpicc", "ar", "gcc"), "mpirun"), (("mpicc", "mpirun", "ar"), "compiler")],
)
def test_a_missing_tool_is_named_with_the_command_that_installs_it(there, missing, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in there:
        (tools / tool).symlink_to(str(shutil.which(tool)))
    assert_named_with_its_package(tmp_path, missing, PATH=str(tools))


def test_a_missing_blas_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    # A compiler that does not find -lopenblas, as on a machine without it: everything else is the real one.
    compiler = tmp_path / "bin" / "gcc"
    compiler.parent.mkdir()
    compiler.write_text(COMPILER_WITHOUT_BLAS % shutil.which("gcc"))
    compiler.chmod(0o755)
    path = f"{compiler.parent}:{os.environ['PATH']}"
    assert_named_with_its_package(tmp_path, "libopenblas", PATH=path, OMPI_CC=str(compiler))

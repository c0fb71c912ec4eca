"""The programs of examples/emulation, built for a real MPI or for SMPI, and run without Lepaute."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support_limits import HANG_S, ran

EXAMPLES = Path(__file__).parents[2] / "examples" / "emulation"
#: Folder of the example: its program.
PROGRAMS = {"halo": "halo", "cg": "cg", "fft": "fft", "summa_fortran": "summa"}
#: A run of a second or less on two ranks.
ARGUMENTS = {
    "halo": ("300", "40"), "cg": ("60", "400"), "fft": ("256", "2"), "summa_fortran": ("301", "64", "1", "2"),
}  # fmt: skip
COMPILERS = {"real": ("mpicc", "mpif90"), "smpi": ("smpicc", "smpiff")}

#: Two nodes of two cores. The numbers are those of no machine.
TWO_NODES = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="two" prefix="node-" radical="0-1" suffix="" speed="1Gf" core="2" bw="1GBps" lat="1us"/>
</platform>
"""


def built(example: str, kind: str, folder: Path) -> Path:
    """The program of an example, built by its own Makefile in a copy of its folder; skips where a compiler is missing.

    kind : "real" or "smpi", whose compilers the Makefile is given
    """
    cc, fc = COMPILERS[kind]
    needed = fc if example == "summa_fortran" else cc
    if not compiles(needed):
        pytest.skip(f"{needed} is not here, or has no compiler")
    place = folder / f"{example}-{kind}"
    shutil.copytree(EXAMPLES / example, place, ignore=shutil.ignore_patterns(PROGRAMS[example]))
    # The real compilers are what the Makefile takes by itself.
    words = ["make", "-s", "-C", str(place)] + ([] if kind == "real" else [f"CC={cc}", f"FC={fc}"])
    done = ran(words)
    assert done.returncode == 0, done.stderr
    return place / PROGRAMS[example]


def compiles(compiler: str) -> bool:
    """Whether a compiler of MPI is here and has a compiler behind it."""
    if shutil.which(compiler) is None:
        return False
    # SMPI's, asked for its version, compiles nothing into the file `.o`, and its compiler has this name.
    words = ["gfortran" if compiler == "smpiff" else compiler, "--version"]
    if shutil.which(words[0]) is None:
        return False
    return subprocess.run(words, capture_output=True, timeout=HANG_S, check=False).returncode == 0


def run(
    program: Path, kind: str, ranks: int, arguments: tuple[str, ...], *options: str
) -> "subprocess.CompletedProcess[str]":
    """A run under mpirun or smpirun. options: of smpirun."""
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1"}
    if kind == "real":
        words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    else:
        platform, hosts = program.parent / "two.xml", program.parent / "hosts"
        platform.write_text(TWO_NODES)
        hosts.write_text("node-0:2\nnode-1:2\n")
        words = ["smpirun", "-np", str(ranks), "-platform", str(platform), "-hostfile", str(hosts)]
        words += ["--cfg=smpi/privatization:dlopen", "--log=root.thresh:error", *options]
    return ran(
        ["timeout", "-k", "1", str(HANG_S), *words, str(program), *arguments],
        env={**os.environ, **environment},
        timeout=HANG_S + 5,
    )


def values(output: str) -> dict[str, float]:
    """What a program printed as `name: number`, with or without a unit behind."""
    pairs = re.findall(r"^([a-z_ ]+): +([-+.\dEe]+)(?: s)?$", output, re.MULTILINE)
    return {name: float(number) for name, number in pairs}

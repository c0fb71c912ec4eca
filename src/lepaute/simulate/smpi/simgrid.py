"""SimGrid as it is installed here, and what its Debian package is called."""

import functools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem

INSTALL = "apt-get install libsimgrid-dev gfortran g++"
_OLDEST = (3, 32)


@dataclass(frozen=True, slots=True)
class SimGrid:
    """The programs of SimGrid; smpimain runs a program that one of the compilers has built.

    version : such as "3.32"
    """

    version: str
    smpimain: Path
    smpicc: Path
    smpicxx: Path
    smpif90: Path


@functools.cache
def find_simgrid() -> SimGrid:
    """SimGrid of this machine; raises EnvironmentProblem where it is missing or too old."""
    smpirun = _program("smpirun")
    text = smpirun.read_text(encoding="utf-8", errors="replace")
    # smpirun is a script around smpimain, which has no folder of its own on PATH.
    main = re.search(r'"(/[^"\s]*/smpimain)"', text)
    if main is None or not Path(main[1]).is_file():
        raise EnvironmentProblem(f"{smpirun} names no smpimain; install SimGrid again: {INSTALL}")
    version_text = subprocess.run([smpirun, "-version"], capture_output=True, text=True, timeout=30, check=False).stdout
    numbers = re.search(r"(\d+)\.(\d+)", version_text)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
        version = version_text.strip() or "of unknown version"
        raise EnvironmentProblem(f"SimGrid is {version!r}; Lepaute needs 3.32 or later: {INSTALL}")
    programs = [_program(name) for name in ("smpicc", "smpicxx", "smpif90")]
    return SimGrid(numbers[0], Path(main[1]), *programs)


def _program(name: str) -> Path:
    path = shutil.which(name)
    if path is None:
        raise EnvironmentProblem(
            f"SimGrid's {name} is missing (Debian package libsimgrid-dev); to emulate, install it: {INSTALL}"
        )
    return Path(path)

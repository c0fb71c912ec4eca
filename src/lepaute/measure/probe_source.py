"""Where the C sources of the probes are, and how they are compiled."""

from pathlib import Path

from lepaute.errors import EnvironmentProblem

#: Of our own C files. No -march=native: a probe calls libraries, its own loops are not what is measured.
C_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")


def probe_source() -> Path:
    """The folder of the C sources: that of a source checkout, else the copy inside the installed package.

    Raises EnvironmentProblem where neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parents[1] / "probes", package / "_probes"):
        if (folder / "probe_common.h").is_file():
            return folder
    raise EnvironmentProblem("the sources of the probes are missing from this installation; install lepaute again")

"""Programs that are built here and run on nodes: whether they can, and why not."""

import platform
import re

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_launcher import LAUNCHER_PACKAGE, MPIRUN_OF_NODES
from lepaute.measure.nodes.channel import Channel
from lepaute.measure.nodes.results import Result

#: Of the loader: the library that a program needs and the node lacks.
_LIBRARY = re.compile(r"error while loading shared libraries: (\S+?):")
_VERSION = re.compile(r"version `([\w.]+)' not found")
#: Beginnings of libraries' names, and the Debian packages that hold them.
_PACKAGES = {
    "libopenblas": "libopenblas0",
    "libmpi": LAUNCHER_PACKAGE,
    "libopen-": LAUNCHER_PACKAGE,
    "libhwloc": "libhwloc15",
}


def check_architecture(channel: Channel) -> None:
    """Raises EnvironmentProblem where a node is of another architecture than this machine."""
    architecture = platform.machine()
    if channel.hello.machine != architecture:
        raise EnvironmentProblem(
            f"{channel.name} is a {channel.hello.machine} and its programs are built here, on a {architecture}; "
            "start this from a machine like the nodes"
        )


def check_same_place(first: Channel, other: Channel) -> None:
    """Raises EnvironmentProblem where two machines do not have the folder of the programs at the same place."""
    if first.hello.boot != other.hello.boot and first.folder != other.folder:
        raise EnvironmentProblem(
            f"the folders of temporary files differ ({first.folder} on {first.name}, {other.folder} on {other.name}); "
            "set TMPDIR alike"
        )


def why_not(trial: Result) -> str:
    """Why a program did not start, and what to do about it."""
    text = trial.stderr + trial.stdout
    if trial.returncode is None and trial.argv[0] == str(MPIRUN_OF_NODES.path):
        return f"{trial.argv[0]} is missing; install it there: apt-get install {LAUNCHER_PACKAGE}"
    if missing := _LIBRARY.search(text):
        name = missing[1]
        package = next((package for start, package in _PACKAGES.items() if name.startswith(start)), None)
        remedy = f"install it there: apt-get install {package}" if package else "install it there"
        return f"{name} is missing, which programs built here use; {remedy}"
    if missing := _VERSION.search(text):
        return (
            f"programs built here need {missing[1]}, and the system there is older; "
            "start this from a machine with the nodes' system"
        )
    return f"a program built here does not start: {trial.complaint()}"

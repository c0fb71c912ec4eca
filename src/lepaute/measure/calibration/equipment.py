"""The probes on the nodes: copied there, and seen to start."""

import platform
import re

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_launcher import LAUNCHER_PACKAGE, MPIRUN_OF_NODES
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Result
from lepaute.measure.probes import Probes

_START_S = 60.0
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


def equip(nodes: Nodes, probes: Probes, *, built_there: bool) -> None:
    """Puts the probes into the folder of the experiment on each node, and sees that they start.

    built_there: the node is this machine, where what builds the probes has seen to all that they need

    Raises EnvironmentProblem, one line, where a node is of another architecture or lacks a library or mpirun.
    """
    architecture = platform.machine()
    for channel in nodes.channels:
        if channel.hello.machine != architecture:
            raise EnvironmentProblem(
                f"{channel.name} is a {channel.hello.machine} and the probes are built here, on a {architecture}; "
                "calibrate from a machine like the nodes"
            )
    for program in probes.on_nodes:
        nodes.put(program, program.name)
    if built_there:
        return
    trials = nodes.run(f"./{probes.dgemm.name}", "--help", timeout_s=_START_S, check=False)
    _check(list(trials.values()))
    start = MPIRUN_OF_NODES.start(1, use_scheduler=False)
    words = (*start.argv, f"./{probes.p2p.name}", "--help")
    trials = nodes.run(*words, environment=start.environment, timeout_s=_START_S, check=False)
    _check(list(trials.values()))


def _check(trials: list[Result]) -> None:
    for trial in trials:
        if not trial.ok:
            raise EnvironmentProblem(f"{trial.node}: {why_not(trial)}")


def why_not(trial: Result) -> str:
    """Why a probe did not start, and what to do about it."""
    text = trial.stderr + trial.stdout
    if trial.returncode is None and trial.argv[0] == str(MPIRUN_OF_NODES.path):
        return f"{trial.argv[0]} is missing; install it there: apt-get install {LAUNCHER_PACKAGE}"
    if missing := _LIBRARY.search(text):
        name = missing[1]
        package = next((package for start, package in _PACKAGES.items() if name.startswith(start)), None)
        remedy = f"install it there: apt-get install {package}" if package else "install it there"
        return f"the probes need {name}, which is missing; {remedy}"
    if missing := _VERSION.search(text):
        return (
            f"the probes need {missing[1]}, and the system there is older than here; "
            "calibrate from a machine with the nodes' system"
        )
    return f"the probes do not start: {trial.complaint()}"

"""The probes on the nodes: copied there, and seen to start."""

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Result, check_architecture, why_not
from lepaute.measure.probes import Probes

_START_S = 60.0


def equip(nodes: Nodes, probes: Probes, *, built_there: bool) -> None:
    """Puts the probes into the folder of the experiment on each node, and sees that they start.

    built_there: the node is this machine, where what builds the probes has seen to all that they need

    Raises EnvironmentProblem, one line, where a node is of another architecture or lacks a library or mpirun.
    """
    for channel in nodes.channels:
        check_architecture(channel)
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

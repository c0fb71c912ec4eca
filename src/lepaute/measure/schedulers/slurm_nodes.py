"""Nodes of Slurm as an administrator sees them: in service or not, why, and draining them."""

from dataclasses import dataclass

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.node_sets import check_node_name

#: A health check is ended by Slurm after 60 s.
_ANSWER_S = 15.0
#: States in which a node takes no new jobs; Slurm adds signs such as * for a node that does not answer.
_OUT = ("drain", "drng", "down", "fail", "maint", "not_responding")


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """state : as `sinfo` writes it, such as idle or drained*; reason : of its state, "" where there is none."""

    name: str
    state: str
    reason: str

    @property
    def out_of_service(self) -> bool:
        return any(word in self.state for word in _OUT)


def slurm_nodes(partition: str | None = None) -> dict[str, SlurmNode]:
    """The nodes of a partition, or all; raises EnvironmentProblem where Slurm does not answer, InputError for none."""
    argv = ["sinfo", "--noheader", "--Node", "--format=%N|%T|%E"]
    if partition is not None:
        argv.append(f"--partition={partition}")
    answer = run_command(argv, what="the nodes of Slurm", timeout_s=_ANSWER_S).stdout
    nodes = {}
    for line in answer.splitlines():
        name, state, reason = (part.strip() for part in f"{line}||".split("|", 2))
        nodes[name] = SlurmNode(name, state.lower(), "" if reason.rstrip("|") == "none" else reason.rstrip("|"))
    if not nodes:
        where = f"partition {partition[:60]}" if partition else "Slurm"
        raise InputError(f"{where} has no nodes; `sinfo` lists the partitions")
    return nodes


def drain_slurm_node(name: str, reason: str) -> None:
    """Lets running jobs end; raises EnvironmentProblem where Slurm refuses, or somebody drained the node meanwhile."""
    check_node_name(name)
    now = slurm_nodes().get(name)
    if now is None or now.out_of_service:
        raise EnvironmentProblem(f"{name} is {now.state if now else 'no node of Slurm'} now")
    words = ["scontrol", "update", f"nodename={name}", "state=drain", f"reason={' '.join(reason.split())[:200]}"]
    run_command(words, what=f"draining {name}", timeout_s=_ANSWER_S)

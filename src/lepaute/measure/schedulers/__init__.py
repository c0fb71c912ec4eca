"""Where nodes come from: this machine, a list of hosts, or a batch system. One module a scheduler.

nodes = scheduler("slurm").acquire(Request(count=2, walltime_s=600), tell=print)
try:
    ... subprocess.Popen(nodes.nodes[0].argv(["uname", "-a"])) ...
finally:
    nodes.release()

The same class says how idle nodes are tested, workers of a study are submitted, and nodes are drained.
"""

from importlib import import_module

from lepaute.errors import InputError
from lepaute.measure.schedulers.types import (
    Allocation,
    BatchSystem,
    NodeAddress,
    Plan,
    RankLaunch,
    Request,
    Scheduler,
    Tell,
)

__all__ = [
    "SCHEDULERS",
    "Allocation",
    "NodeAddress",
    "Plan",
    "RankLaunch",
    "Request",
    "Scheduler",
    "Tell",
    "batch_system",
    "default_scheduler",
    "names_with",
    "scheduler",
]

#: Name, and where its class is. Another scheduler is a module and a line here.
_CLASSES = {
    "local": "hosts.LocalScheduler",
    "ssh": "hosts.SshScheduler",
    "slurm": "slurm.SlurmScheduler",
    "oar": "oar.OarScheduler",
}
SCHEDULERS = tuple(_CLASSES)


def scheduler(name: str) -> Scheduler:
    """The scheduler of that name; raises InputError, which lists them, for another one."""
    if name not in _CLASSES:
        raise InputError(f"unknown scheduler {name[:40]!r}; choose one of {', '.join(SCHEDULERS)}")
    module, _, class_name = _CLASSES[name].partition(".")
    made: Scheduler = getattr(import_module(f"lepaute.measure.schedulers.{module}"), class_name)()
    return made


def default_scheduler(nodes: str | None) -> str:
    """The scheduler where none is named: ssh for a node set, else this machine."""
    return "ssh" if nodes else "local"


def names_with(ability: str) -> tuple[str, ...]:
    """The schedulers that have `idle_tests` or `worker_jobs`."""
    return tuple(name for name in SCHEDULERS if getattr(scheduler(name), ability) is not None)


def batch_system(name: str, partition: str | None, account: str | None, qos: str | None) -> BatchSystem:
    """For tests of idle nodes; raises InputError for a scheduler without them, or an option that it does not have."""
    tests = scheduler(name).idle_tests if name in SCHEDULERS else None
    if tests is None:
        raise InputError(f"--scheduler is {name[:40]!r}; it is {' or '.join(names_with('idle_tests'))}")
    return tests(partition, account, qos)

"""Where nodes come from: this machine, a list of hosts, or a batch system. One module a scheduler.

nodes = scheduler("slurm").acquire(Request(count=2, walltime_s=600), tell=print)
try:
    ... subprocess.Popen(nodes.nodes[0].argv(["uname", "-a"])) ...
finally:
    nodes.release()
"""

from importlib import import_module

from lepaute.errors import InputError
from lepaute.measure.schedulers.request import Request
from lepaute.measure.schedulers.types import (
    Allocation,
    Given,
    NodeAddress,
    Plan,
    RankLaunch,
    Scheduler,
    Tell,
)

__all__ = [
    "SCHEDULERS",
    "Allocation",
    "Given",
    "NodeAddress",
    "Plan",
    "RankLaunch",
    "Request",
    "Scheduler",
    "Tell",
    "default_scheduler",
    "scheduler",
]

#: Name, and the class in the module of that name. Another scheduler is a module and a line here.
_CLASSES = {
    "local": "LocalScheduler",
    "ssh": "SshScheduler",
    "slurm": "SlurmScheduler",
    "oar": "OarScheduler",
    "grid5000": "Grid5000Scheduler",
}
SCHEDULERS = tuple(_CLASSES)


def scheduler(name: str) -> Scheduler:
    """The scheduler of that name; raises InputError, which lists them, for another one."""
    if name not in _CLASSES:
        raise InputError(f"unknown scheduler {name[:40]!r}; choose one of {', '.join(SCHEDULERS)}")
    made: Scheduler = getattr(import_module(f"lepaute.measure.schedulers.{name}"), _CLASSES[name])()
    return made


def default_scheduler(nodes: str | None) -> str:
    """The scheduler where none is named: ssh for a node set, else this machine."""
    return "ssh" if nodes else "local"

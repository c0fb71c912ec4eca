"""The batch systems that tests of idle nodes know. Another one is a module and a line here."""

from importlib import import_module

from lepaute.errors import InputError
from lepaute.measure.idle_nodes.batch import BatchSystem

_CLASSES = {"slurm": "SlurmTests", "oar": "OarTests"}
BATCH_SYSTEMS = tuple(_CLASSES)


def batch_system(name: str, partition: str | None, account: str | None, qos: str | None) -> BatchSystem:
    """The batch system of that name; raises InputError for another one, or an option that it does not have.

    partition: also the queue of OAR; account: also the project of OAR
    """
    if name not in _CLASSES:
        raise InputError(f"--scheduler is {name[:40]!r}; it is {' or '.join(BATCH_SYSTEMS)}")
    made: BatchSystem = getattr(import_module(f"lepaute.measure.idle_nodes.{name}"), _CLASSES[name])(
        partition, account, qos
    )
    return made

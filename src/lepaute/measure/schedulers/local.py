"""This machine as the only node: what runs where nobody says otherwise."""

import re
import socket

from lepaute.measure.schedulers.types import Allocation, Given, NodeAddress, Plan, Request, Tell

_USED = ("walltime_s",)  # there is nothing to reserve, and no harm in saying for how long


class LocalScheduler:
    """One node, named after the host; programs are started directly."""

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        request.refuse_all_but("local", *_USED)
        name = local_name()
        tell(f"runs here, on {name}")
        return Given((NodeAddress(name),), {"scheduler": "local"})

    def plan(self, request: Request) -> Plan:
        request.refuse_all_but("local", *_USED)
        return Plan((f"start programs here, on {local_name()}",))


def local_name() -> str:
    """This host's name, with what cannot be in the name of a node replaced."""
    return node_name(socket.gethostname())


def node_name(host: str) -> str:
    """The nearest valid name of a node."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", host)[:250].strip("-._") or "localhost"

"""This machine as the only node: the default."""

import re
import socket

from lepaute.measure.schedulers.request import Request
from lepaute.measure.schedulers.types import Allocation, Given, NodeAddress, Plan, Scheduler, Tell


class LocalScheduler(Scheduler):
    """One node, named after the host; programs are started directly."""

    supports = ("walltime_s",)  # accepted and ignored: nothing is reserved
    on_this_machine = True

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        (name,) = self.known_nodes(request)
        tell(f"running on this machine, {name}")
        return Given((NodeAddress(name),), {"scheduler": "local"})

    def plan(self, request: Request) -> Plan:
        return Plan((f"start programs on this machine, {self.known_nodes(request)[0]}",))

    def known_nodes(self, request: Request) -> tuple[str, ...]:
        request.refuse_all_but(self.supports, "local")
        return (node_name(socket.gethostname()),)


def node_name(host: str) -> str:
    """The nearest valid name of a node."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", host)[:250].strip("-._") or "localhost"

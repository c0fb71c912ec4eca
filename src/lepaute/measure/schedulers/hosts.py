"""Hosts that nobody has to reserve: this machine, the default, and a set of hosts that are reached by ssh."""

import re
import shlex
import socket
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.node_sets import fold_node_set, parse_node_set
from lepaute.kit.text import counted
from lepaute.measure.schedulers.types import Allocation, NodeAddress, Plan, RankLaunch, Request, Scheduler, Tell

_SSH_SETTINGS = (
    *("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3"),
    # A user's master connection outlives ours, and the number of its sessions is limited (MaxSessions).
    *("ControlMaster=no", "ControlPath=none", "ForwardX11=no", "ForwardAgent=no", "ClearAllForwardings=yes"),
    *("RequestTTY=no", "EscapeChar=none", "PermitLocalCommand=no"),
)


class LocalScheduler(Scheduler):
    """One node, named after the host; programs are started directly."""

    supports = ()  # nothing is reserved
    on_this_machine = True

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        (name,) = self.known_nodes(request)
        tell(f"running on this machine, {name}")
        return Allocation((NodeAddress(name),), {"scheduler": "local"})

    def plan(self, request: Request) -> Plan:
        return Plan((f"start programs on this machine, {self.known_nodes(request)[0]}",))

    def known_nodes(self, request: Request) -> tuple[str, ...]:
        request.refuse_all_but(self.supports, "local")
        return (node_name(socket.gethostname()),)


def node_name(host: str) -> str:
    """The nearest valid name of a node."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", host)[:250].strip("-._") or "localhost"


class SshScheduler(Scheduler):
    """The hosts of `nodes`, which are reserved already; ssh's own configuration says how they are reached."""

    supports = ("nodes", "ssh_config")

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        names = self.known_nodes(request)
        tell(f"{counted(len(names), 'node')} by ssh: {fold_node_set(names)}")
        addresses = tuple(NodeAddress(name, ssh_prefix(name, request.ssh_config), joined=True) for name in names)
        return Allocation(addresses, {"scheduler": "ssh", "nodes": request.nodes})

    def plan(self, request: Request) -> Plan:
        return Plan(tuple(shlex.join(ssh_prefix(name, request.ssh_config)) for name in self.known_nodes(request)))

    def known_nodes(self, request: Request) -> tuple[str, ...]:
        request.refuse_all_but(self.supports, "ssh")
        if request.nodes is None:
            raise InputError("ssh needs the nodes' names; give them such as --nodes node[1-4]")
        request.check_ssh_config()
        return parse_node_set(request.nodes)

    def rank_launch(self, request: Request) -> RankLaunch:
        config = request.ssh_config
        return RankLaunch(remote_shell=() if config is None else ("ssh", "-F", str(config.absolute())))


def ssh_prefix(host: str, config: Path | None = None, *, user: str | None = None) -> tuple[str, ...]:
    """The words that make ssh run a command on a host that carries our protocol on standard input and output.

    Never asks anything (BatchMode), and ends within about a minute when the connection is lost silently. Keys of
    hosts are checked as the user's configuration says. `--` stands after the host since ssh reads options there too.
    """
    return (
        "ssh",
        "-T",
        *(("-F", str(config.absolute())) if config is not None else ()),
        *(("-l", user) if user is not None else ()),
        *(word for setting in _SSH_SETTINGS for word in ("-o", setting)),
        host,
        "--",
    )

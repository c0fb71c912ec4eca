"""Hosts that are reached by ssh: a node set names them, ssh's own configuration says how."""

import shlex
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.node_sets import fold_node_set, parse_node_set
from lepaute.measure.schedulers.request import Request
from lepaute.measure.schedulers.types import Allocation, Given, NodeAddress, Plan, RankLaunch, Scheduler, Tell


class SshScheduler(Scheduler):
    """The hosts of `nodes`, which are reserved already."""

    supports = ("nodes", "ssh_config", "walltime_s")

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        addresses = _addresses(request)
        names = tuple(address.name for address in addresses)
        tell(f"{len(names)} {'node' if len(names) == 1 else 'nodes'} by ssh: {fold_node_set(names)}")
        return Given(addresses, {"scheduler": "ssh", "nodes": request.nodes})

    def plan(self, request: Request) -> Plan:
        return Plan(tuple(shlex.join(address.prefix) for address in _addresses(request)))

    def known_nodes(self, request: Request) -> tuple[str, ...]:
        return tuple(address.name for address in _addresses(request))

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
        *(("-F", str(config)) if config is not None else ()),
        *(("-l", user) if user is not None else ()),
        *ssh_options(),
        host,
        "--",
    )


def ssh_options() -> tuple[str, ...]:
    """What every connection is made with; oarsh takes the same."""
    settings = (
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=3",
        # A user's master connection outlives ours, and the number of its sessions is limited (MaxSessions).
        "ControlMaster=no",
        "ControlPath=none",
        "ForwardX11=no",
        "ForwardAgent=no",
        "ClearAllForwardings=yes",
        "RequestTTY=no",
        "EscapeChar=none",
        "PermitLocalCommand=no",
    )
    return tuple(word for setting in settings for word in ("-o", setting))


def _addresses(request: Request) -> tuple[NodeAddress, ...]:
    request.refuse_all_but(SshScheduler.supports, "ssh")
    if request.nodes is None:
        raise InputError("ssh needs the nodes' names; give them such as --nodes node[1-4]")
    if request.ssh_config is not None and not request.ssh_config.is_file():
        raise InputError(f"{request.ssh_config}: no such file; give --ssh-config a configuration file for ssh")
    config = None if request.ssh_config is None else request.ssh_config.absolute()
    names = parse_node_set(request.nodes)
    return tuple(NodeAddress(name, ssh_prefix(name, config), joined=True) for name in names)

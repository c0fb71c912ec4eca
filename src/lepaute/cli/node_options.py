"""Options that say on which nodes something runs: the same for all commands that measure."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lepaute.measure.schedulers.types import Request

NodeSet = Annotated[str | None, typer.Option("--nodes", help="A node set such as node[1-32].")]
SchedulerName = Annotated[
    str | None,
    typer.Option("--scheduler", help="local, ssh, slurm, oar or grid5000; ssh where --nodes is given, else local."),
]
Count = Annotated[int | None, typer.Option("--count", help="How many nodes the scheduler shall choose.", min=1)]
Walltime = Annotated[
    str | None, typer.Option("--walltime", help="For how long: seconds, or h:mm:ss; an hour unless given.")
]
Queue = Annotated[str | None, typer.Option("--queue", help="Partition of Slurm, queue of OAR.")]
Account = Annotated[str | None, typer.Option("--account", help="Account or project that pays.")]
Constraint = Annotated[str | None, typer.Option("--constraint", help="Slurm's constraint, OAR's properties.")]
JobNumber = Annotated[str | None, typer.Option("--job", help="An allocation that exists already.")]
Site = Annotated[str | None, typer.Option("--site", help="Of Grid'5000.")]
Cluster = Annotated[str | None, typer.Option("--cluster", help="Of Grid'5000.")]
Image = Annotated[str | None, typer.Option("--image", help="System to deploy on Grid'5000's nodes.")]
SshConfig = Annotated[Path | None, typer.Option("--ssh-config", help="A configuration file for ssh.")]
PythonThere = Annotated[str | None, typer.Option("--python", help="Python 3.9 or newer on the nodes.")]


def scheduler_of(scheduler: str | None, nodes: str | None) -> str:
    """The scheduler that is meant."""
    return scheduler or ("ssh" if nodes else "local")


def request_of(
    *,
    nodes: str | None,
    count: int | None,
    walltime: str | None,
    queue: str | None,
    account: str | None,
    constraint: str | None,
    job: str | None,
    site: str | None,
    cluster: str | None,
    image: str | None,
    ssh_config: Path | None,
) -> "Request":
    """What the options ask of a scheduler. Raises InputError for a walltime that is none."""
    from lepaute.measure.schedulers.types import Request

    return Request(
        nodes=nodes,
        count=count,
        walltime_s=seconds_of(walltime) if walltime is not None else None,
        queue=queue,
        account=account,
        site=site,
        cluster=cluster,
        image=image,
        properties=constraint,
        job=job,
        ssh_config=ssh_config,
    )


def seconds_of(text: str) -> float:
    """Seconds of 90, 1:30 (minutes), or 2:00:00; raises InputError for anything else."""
    from lepaute.errors import InputError

    parts = text.split(":")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() for part in parts) or not int("".join(parts)):
        raise InputError(f"--walltime is {text!r}; give seconds, or h:mm:ss such as 2:00:00")
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return float(seconds)

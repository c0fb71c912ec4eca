"""Options that say on which nodes something runs: the same for all commands that measure."""

from typing import Annotated

import typer

from lepaute.measure.schedulers import SCHEDULERS

SchedulerName = Annotated[
    str | None,
    typer.Option("--scheduler", help=f"One of {', '.join(SCHEDULERS)}; unless given, ssh with --nodes and else local."),
]
PythonOnNodes = Annotated[str | None, typer.Option("--python", help="Python 3.9 or newer on the nodes.")]

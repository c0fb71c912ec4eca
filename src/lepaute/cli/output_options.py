"""The option that all commands which write files have."""

from typing import Annotated

import typer

FORCE_HELP = "replace files that are there"
Force = Annotated[bool, typer.Option("--force", help=FORCE_HELP)]

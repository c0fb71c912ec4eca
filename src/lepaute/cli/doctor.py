"""`lepaute doctor`: what is installed, what is missing, what would disturb a measurement."""

from typing import Annotated

import typer


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Tells what is installed, what is missing and the command that installs it, and what would disturb a measurement.

    Exit status 2 when something is missing, 0 otherwise: warnings do not hinder a calibration.
    """
    from lepaute.cli.progress import progress_bar
    from lepaute.measure.doctor import examine, something_missing

    with progress_bar() as tell:
        checks = examine(tell)
    if as_json:
        import json

        print(json.dumps({"checks": [check.to_dict() for check in checks]}, indent=1))
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from lepaute.kit.printable import printable

        table = Table(box=None, pad_edge=False)
        for title in ("", "what", "found", "what to do"):
            table.add_column(title, overflow="fold")
        colour = {"ok": "green", "warning": "yellow", "missing": "red"}
        for check in checks:
            table.add_row(
                Text(check.status, style=colour[check.status]),
                *(Text(printable(text)) for text in (check.name, check.found, check.remedy)),
            )
        console = Console()
        # Into a pipe Rich would fold everything into 80 columns.
        console.print(table, width=None if console.is_terminal else 140)
    raise typer.Exit(2 if something_missing(checks) else 0)

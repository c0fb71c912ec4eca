"""`lepaute doctor`: what is installed, what is missing, what would disturb a measurement."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lepaute.cli.options import AsJson
from lepaute.cli.terminal import json_text, progress_bar
from lepaute.kit.printable import printable
from lepaute.kit.tables import text_table

if TYPE_CHECKING:
    from lepaute.measure.doctor import Check


def command(as_json: AsJson = False) -> None:
    """Tells what is installed, what is missing and the command that installs it, and what would disturb a measurement.

    Exit status 2 when something is missing, 0 otherwise: warnings do not hinder a calibration.
    """
    from lepaute.measure.doctor import examine, something_missing

    with progress_bar() as tell:
        checks = examine(tell)
    if as_json:
        print(json_text({"checks": [check.to_dict() for check in checks]}))
    else:
        _print_table(checks)
    raise typer.Exit(2 if something_missing(checks) else 0)


def _print_table(checks: "Sequence[Check]") -> None:
    titles = ("", "what", "found", "what to do")
    rows = [(check.status, *(printable(text) for text in (check.name, check.found, check.remedy))) for check in checks]
    if not sys.stdout.isatty():
        print(text_table(titles, rows, left=None))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    colour = {"ok": "green", "warning": "yellow", "missing": "red"}
    for status, *texts in rows:
        table.add_row(Text(status, style=colour[status]), *map(Text, texts))
    Console().print(table)

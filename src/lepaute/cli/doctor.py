"""`lepaute doctor`: what is installed, what is missing, what would disturb a measurement."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lepaute.cli.options import AsJson
from lepaute.cli.terminal import json_text, progress_bar
from lepaute.kit.printable import printable, terminal_columns
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, folded

if TYPE_CHECKING:
    from lepaute.measure.doctor import Check


def command(as_json: AsJson = False) -> None:
    """Tells what is installed, what is missing and the command that installs it, and what would disturb a measurement.

    Exit status 2 when something is missing, 0 otherwise: warnings do not prevent a calibration.
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
    titles, width = ("status", "what", "found", "what to do"), terminal_columns()
    print(folded(_sentence(checks), width, 2))
    rows = [(check.status, *(printable(text) for text in (check.name, check.found, check.remedy))) for check in checks]
    print(shown_table(titles, rows, width, left=range(len(titles))))


def _sentence(checks: "Sequence[Check]") -> str:
    """Whether a calibration can be made here, and what is missing or would disturb it."""
    named = {status: [check.name for check in checks if check.status == status] for status in ("missing", "warning")}
    missing, warnings = named["missing"], named["warning"]
    answer = f"Not ready, missing: {', '.join(missing)}" if missing else "Ready: nothing is missing"
    return f"{answer}; {counted(len(warnings), 'warning')}: {', '.join(warnings)}" if warnings else answer

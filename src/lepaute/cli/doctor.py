"""`lepaute doctor`: what is installed, what is missing, what would disturb a measurement."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lepaute.cli.options import AsJson, Details
from lepaute.cli.terminal import Meaning, json_text, progress_bar, say
from lepaute.kit.printable import printable
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute.measure.doctor import Check


def command(details: Details = False, as_json: AsJson = False) -> None:
    """Tells what is installed, what is missing and the command that installs it, and what would disturb a measurement.

    Exit status 2 when something is missing, else 0. Of warnings, only one of the extra `fit` prevents a calibration.
    """
    from lepaute.measure.doctor import examine

    with progress_bar() as tell:
        checks = examine(tell)
    if as_json:
        print(json_text({"checks": [check.to_dict() for check in checks]}))
    else:
        _print_checks(checks, details=details)
    raise typer.Exit(2 if any(check.status == "missing" for check in checks) else 0)


def _print_checks(checks: "Sequence[Check]", *, details: bool) -> None:
    """What is missing and what would disturb first, each with its remedy; the rest as a number, or with details."""
    meanings: dict[str, Meaning] = {"missing": "bad", "warning": "doubtful"}
    there = {check.status for check in checks}
    say(_sentence(checks), 2, next((meaning for status, meaning in meanings.items() if status in there), "good"))
    for status, meaning in meanings.items():
        for check in checks:
            if check.status == status:
                problem = f"  {status:<8} {check.name}: {printable(check.found)}"
                say(f"{problem}\n{'':11}{printable(check.remedy)}", 11, meaning, status)
    later, fine = ([check for check in checks if check.status == status] for status in ("later", "ok"))
    lines = [f"  {len(fine)} ok; --details"]
    if details:
        lines = [f"  ok       {check.name}: {printable(check.found)}" for check in fine]
    lines = [*(f"  later    {check.name}: {printable(check.found)}" for check in later), *lines]
    lines += [f"  optional {check.name}: {printable(check.remedy)}" for check in fine if check.remedy]
    say("\n".join(lines), 11)


def _sentence(checks: "Sequence[Check]") -> str:
    """Whether a calibration can be made here, and what is missing or would disturb it."""
    missing, warnings = ([check.name for check in checks if check.status == of] for of in ("missing", "warning"))
    ready = "Ready to predict, not to calibrate" if "extras" in warnings else "Ready: nothing is missing"
    answer = f"Not ready, {len(missing)} missing: {', '.join(missing)}" if missing else ready
    return f"{answer}; {counted(len(warnings), 'warning')}: {', '.join(warnings)}" if warnings else answer

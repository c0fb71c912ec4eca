"""Commands without --json, each with the reason; and what is wrong with an answer of one that has it."""

import json
from typing import Any, NoReturn

#: Of what writes a file or passes on a program's output, another command prints what there is to know.
WITHOUT = {
    "completion": "prints a script, for a shell to read",
    "design picture": "draws a picture; what it shows: design show --json",
    "emulate compilers": "prints a folder, for PATH",
    "examples": "copies files, or lists their folders",
    "record": "passes on what the program prints; what was recorded: trace show --json",
    "study schema": "prints JSON, whatever is asked",
    "trace convert": "writes a trace and prints nothing; what is in it: trace show --json",
    "trace gantt": "draws a picture and prints nothing; what it shows: trace show --json",
    "trace otf2": "writes files for another program and prints nothing; what is in the trace: trace show --json",
    "trace perfetto": "writes a file for another program and prints nothing; what is in the trace: trace show --json",
}


def object_in(text: str) -> dict[str, Any]:
    """The one JSON object that a text is; raises ValueError for any other text, and for NaN and infinities."""
    found = json.loads(text, parse_constant=_refused)
    if not isinstance(found, dict):
        raise ValueError(f"a {type(found).__name__}, which is no object")
    return found


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def wrong_json(answer: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    """Of a command line with --json, beside the same without: its status, and what it prints."""
    wrong = []
    if answer["status"] != usual["status"]:
        wrong.append(f"status {answer['status']} with --json, {usual['status']} without")
    # A refusal is one line on standard error; some commands have an answer whose status is 2.
    if answer["stdout"] or answer["status"] == 0:
        try:
            object_in(answer["stdout"])
        except ValueError as problem:
            wrong.append(f"standard output is not one JSON object ({problem}): {answer['stdout'][:200]!r}")
    return wrong

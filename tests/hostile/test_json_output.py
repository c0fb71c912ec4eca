"""Every command has --json, or a reason not to; what it prints then is one JSON object and nothing else.

`test_hostile_values.py` runs all commands with and without it, on command lines of which some end before they have an
answer: here those are run that have one without programs, nodes and measuring. The rest is in `end_to_end`, `fit` in
`unit/test_fit_report.py`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hostile.cases import commands, write_store
from hostile.json_output import WITHOUT, object_in

from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace


def test_every_command_has_json_or_a_reason_not_to() -> None:
    has = {name: any("--json" in parameter.opts for parameter in each.params) for name, each in commands().items()}
    assert {name for name, there in has.items() if not there} == set(WITHOUT)


def _workspace(folder: Path) -> list[str]:
    Workspace.create(folder / "x.zip", RunState(run_id="r", nodes=["n1"], name="e")).close()
    return ["archive", "close", "x.work", "--force"]


def _event(folder: Path) -> list[str]:
    write_store(folder)
    words = ["--store", str(folder / "written" / "store"), "--date", "2023-11-21", "--author", "me"]
    return ["watch", "events", "add", "--node", "1", "--reason", "why", *words]


def _events(folder: Path) -> list[str]:
    write_store(folder)
    return ["watch", "events", "import", "--store", str(folder / "written" / "store"), "--events", "events.csv"]


ANSWERED: dict[str, Callable[[Path], list[str]]] = {
    "archive close": _workspace,
    "watch events add": _event,
    "watch events import": _events,
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ANSWERED)
def test_json_is_one_object_with_the_exit_status_of_the_text(command, tmp_path, monkeypatch, output_of):
    monkeypatch.chdir(tmp_path)
    words = ANSWERED[command](tmp_path)
    force = ["--force"] if any("--force" in param.opts for param in commands()[command].params) else []
    object_in(output_of(*words, *force, "--json"))
    assert not output_of(*words, *force).startswith("{")

"""Values from JSON objects and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lepaute.errors import InputError
from lepaute.kit.json_values import ABSENT_IF_NONE, from_json, to_json
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace


@dataclass(frozen=True)
class Inner:
    size: int = 0
    share: float | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner = Inner()
    all: tuple[Inner, ...] = ()
    by_name: Mapping[str, int] = field(default_factory=dict)
    end: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    more: Mapping[str, Any] = field(default_factory=dict)


WHOLE = {"name": "a", "inner": {"size": 1, "share": 0.5}, "all": [{"size": 2, "share": None}], "by_name": {"x": 3}}


def test_an_object_becomes_a_value_and_the_same_object_again() -> None:
    value = from_json(Outer, {**WHOLE, "unknown": [1, {"b": 2}]})
    assert value == Outer("a", Inner(1, 0.5), (Inner(2),), {"x": 3}, more={"unknown": [1, {"b": 2}]})
    assert to_json(value) == {**WHOLE, "unknown": [1, {"b": 2}]}
    assert to_json(from_json(Outer, {**WHOLE, "end": "e"})) == {**WHOLE, "end": "e"}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "f.json: is not a JSON object"),
        ({}, "f.json: has no name"),
        ({"name": 3}, "f.json: name is 3; it must be text"),
        ({"name": "a", "inner": 3}, "inner is 3; it must be an object"),
        ({"name": "a", "inner": {"size": True}}, "size is True; it must be an integer"),
        ({"name": "a", "inner": {"size": 1.5}}, "size is 1.5; it must be an integer"),
        ({"name": "a", "all": {}}, "all is {}; it must be a list"),
        ({"name": "a", "inner": {"share": 10**400}}, "share is 10+; it must be a number of 64 bits"),
        ({"name": "a", "by_name": {"x": "y"}}, "by_name is .*; it must be an integer"),
        ({"name": "a", "end": 1}, "end is 1; it must be text"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(document: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        from_json(Outer, document, "f.json")


def test_a_damaged_state_of_a_run_is_refused_by_file_and_field(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "x.zip", RunState(run_id="r", nodes=["n"])).close()
    state = tmp_path / "x.work" / "state.json"
    state.write_text(state.read_text().replace('["n"]', "7"))
    with pytest.raises(InputError, match=r"x.work/state.json: nodes is 7; it must be a list"):
        Workspace.reopen(tmp_path / "x.work")

"""Tests of nodes through OAR, against commands that answer as tests/data/oar says; no OAR was there to ask."""

import json
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.schedulers.oar import OarTests

_DATA = Path(__file__).parents[1] / "data" / "oar"
#: By node and resource in OAR 2; a licence is a resource without a node.
_OAR2 = {
    "chetemi-3.lille.example": {"1": {"network_address": "chetemi-3.lille.example", "state": "Alive"}},
    "chetemi-4.lille.example": {
        "2": {"network_address": "chetemi-4.lille.example", "state": "Alive"},
        "3": {"network_address": "chetemi-4.lille.example", "state": "Alive"},
    },
    "chetemi-5.lille.example": {
        "4": {"network_address": "chetemi-5.lille.example", "state": "Alive"},
        "5": {"network_address": "chetemi-5.lille.example", "state": "Suspected"},
    },
    "": {"6": {"network_address": "", "state": "Alive"}},
}
_OAR3 = [resource for node in _OAR2.values() for resource in node.values()]


@pytest.fixture
def oar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with OAR's commands, which comes first in PATH; what they are called with is in NAME.words."""
    answers = {"oarnodes": "nodes.json", "oarstat": "jobs.json", "oarsub": "submitted.txt", "oardel": "deleted.txt"}
    for name, answer in answers.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/{name}.words\ncat {tmp_path}/{answer}\n")
        program.chmod(0o755)
    (tmp_path / "nodes.json").write_text(json.dumps(_OAR2))
    (tmp_path / "jobs.json").write_text((_DATA / "running.json").read_text())
    (tmp_path / "submitted.txt").write_text((_DATA / "submitted.txt").read_text())
    (tmp_path / "deleted.txt").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@pytest.mark.parametrize("answer", [_OAR2, _OAR3])
def test_a_node_is_idle_if_all_of_it_is_alive_and_no_job_has_it(oar: Path, answer: object) -> None:
    (oar / "nodes.json").write_text(json.dumps(answer))
    assert OarTests().idle() == {
        "chetemi-3.lille.example": False,  # of job 36627
        "chetemi-4.lille.example": True,
        "chetemi-5.lille.example": False,
    }


def test_a_test_is_a_besteffort_job_of_one_node(oar: Path) -> None:
    tests = OarTests(partition="admin", account="care")
    job = tests.submit("chetemi-4.lille.example", ["lepaute", "run", "a b.py"], oar / "x.log", 1800)
    assert job == "36627"
    words = (oar / "oarsub.words").read_text().splitlines()
    assert "--type=besteffort" in words
    assert "--resource=/nodes=1,walltime=00:30:00" in words
    assert "--property=network_address = 'chetemi-4.lille.example'" in words
    assert {"--queue=admin", "--project=care", f"--stdout={oar}/x.log"} <= set(words)
    assert words[-1] == "lepaute run 'a b.py'"
    tests.cancel(job)
    assert (oar / "oardel.words").read_text().split() == ["36627"]


def test_states_are_of_our_jobs_that_have_not_ended(oar: Path) -> None:
    tests = OarTests()
    assert tests.states(["36627", "1"]) == {"36627": "running"}
    assert tests.states([]) == {}
    (oar / "jobs.json").write_text((_DATA / "waiting.json").read_text())
    assert tests.states(["36627"]) == {"36627": "pending"}
    (oar / "jobs.json").write_text((_DATA / "error.json").read_text())
    assert tests.states(["36627"]) == {}


def test_answers_that_are_none_are_refused(oar: Path) -> None:
    (oar / "nodes.json").write_text("oarnodes: no database")
    with pytest.raises(EnvironmentProblem, match="oarnodes did not print JSON"):
        OarTests().idle()
    (oar / "nodes.json").write_text("[]")
    with pytest.raises(InputError, match="OAR has no nodes"):
        OarTests().idle()
    (oar / "submitted.txt").write_text("no")
    with pytest.raises(EnvironmentProblem, match="no job id"):
        OarTests().submit("n1", ["x"], oar / "x.log", 60)

"""What Slurm answers rarely, and the farm's never does; the real one is asked in tests/end_to_end."""

from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.schedulers import Request, scheduler


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose lines `squeue` answers with, one a call."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr("lepaute.measure.schedulers.slurm._POLL_S", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    file = tmp_path / "states"
    scripts = {"squeue": f"head -n 1 {file}; sed -i 1d {file}", "scontrol": "printf 'n1\\nn2\\n'"}
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return file


def test_nodes_that_are_being_booted_are_waited_for(states: Path) -> None:
    states.write_text("CONFIGURING|n[1-2]\nCONFIGURING|n[1-2]\nRUNNING|n[1-2]\n")
    allocation = scheduler("slurm").acquire(Request(job="12"), print)
    assert [node.name for node in allocation.nodes] == ["n1", "n2"]
    assert states.read_text() == ""


@pytest.mark.parametrize("answer", ["PENDING|\n", "COMPLETING|n1\n", "RUNNING|\n", ""])
def test_a_job_that_does_not_run_has_no_nodes(states: Path, answer: str) -> None:
    states.write_text(answer)
    with pytest.raises(EnvironmentProblem, match="Slurm job 12 is"):
        scheduler("slurm").acquire(Request(job="12"), print)


def test_a_name_that_no_node_can_have_is_refused_wherever_it_comes_from(states: Path) -> None:
    states.write_text("RUNNING|x\n")
    (states.parent / "scontrol").write_text("#!/bin/sh\necho -oProxyCommand=x\n")
    with pytest.raises(InputError, match="is not a valid node name"):
        scheduler("slurm").acquire(Request(job="12"), print)


def test_without_slurm_the_missing_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="salloc cannot be started"):
        scheduler("slurm").acquire(Request(), print)

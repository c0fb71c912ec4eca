"""A study on the nodes of a real Slurm gives what this process gives, whatever happens to its jobs."""

import threading
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from support_limits import HANG_S
from support_study import configurations, trials

from lepaute.study.pools import DaskPool
from lepaute.study.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.nodes]


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a node of these tests has."""
    monkeypatch.setenv("DASK_JOBQUEUE__SLURM__MEMORY", "256MiB")
    import dask

    dask.config.refresh()


def test_workers_are_jobs_and_a_cancelled_job_is_no_failure(slurm: SlurmFarm, tmp_path: Path) -> None:
    asked = trials(150)
    with Session(configurations()) as session:
        expected = session(asked)
    ours = configurations()
    began = threading.Event()
    seen: list[str] = []

    def canceller() -> None:
        assert began.wait(HANG_S)
        seen.extend(slurm.jobs())
        if seen:
            slurm.run("scancel", seen[0])

    thread = threading.Thread(target=canceller)
    thread.start()
    pool = DaskPool(ours, scheduler="slurm", workers=2, folder=tmp_path)
    with Session(ours, pool=pool, progress=lambda _, __: began.set()) as session:
        outcomes = session(asked)
        thread.join()
    assert seen
    assert outcomes == expected
    assert list((tmp_path / "jobs").iterdir()), "the output of jobs"

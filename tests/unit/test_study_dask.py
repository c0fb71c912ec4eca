"""Processes that simulate: the same results, whatever happens to them."""

import os
import signal
import threading
import time

import psutil
import pytest
from long_tests import long_but
from support_limits import HANG_S
from support_study import Murderous, configurations, trials

from lepaute.errors import InputError
from lepaute.study.pools import DaskPool
from lepaute.study.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.nodes]


@pytest.mark.parametrize("workers", long_but([1, 2], 2))
def test_workers_give_the_results_of_this_process_and_none_outlives_its_session(workers: int) -> None:
    asked = trials(20)
    with Session(configurations()) as session:
        expected = session(asked)
    ours = configurations()
    with Session(ours, pool=DaskPool(ours, workers=workers)) as session:
        assert session(asked) == expected
        assert session.simulated == len(asked)
        started = workers_below_us()
        assert started
    _, alive = psutil.wait_procs(started, timeout=HANG_S)
    assert not alive, f"{os.getpid()}: {alive}"


def workers_below_us() -> list[psutil.Process]:
    """Processes of workers: those of Python's spawn that are no resource tracker."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "spawn_main" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def test_a_killed_worker_is_replaced_and_its_trials_run_again() -> None:
    asked = trials(100)
    with Session(configurations()) as session:
        expected = session(asked)
    ours = configurations()
    killed: list[int] = []
    began, over = threading.Event(), threading.Event()

    def killer() -> None:
        assert began.wait(HANG_S)
        for worker in workers_below_us():
            if over.is_set():
                return
            worker.send_signal(signal.SIGKILL)
            killed.append(worker.pid)
            time.sleep(0.5)

    thread = threading.Thread(target=killer)
    thread.start()
    pool = DaskPool(ours, workers=2)
    with Session(ours, pool=pool, progress=lambda _, __: began.set()) as session:
        outcomes = session(asked)
        over.set()
        thread.join()
    assert killed
    assert outcomes == expected


@pytest.mark.long
def test_a_trial_that_kills_its_workers_is_named_and_the_others_have_results() -> None:
    ours = Murderous()
    asked = trials(2)
    with Session(ours, pool=DaskPool(ours, workers=2)) as session:
        outcomes = session(asked)
    refused = [outcome for outcome in outcomes if outcome.refusal]
    assert {outcome.trial.point["nb"] for outcome in refused} == {128}
    assert len(refused) == 4
    assert "it killed every worker that simulated it (at nb=128, scenario=base, seed 1)" in str(refused[0].refusal)
    with Session(configurations()) as session:
        expected = {outcome.trial: outcome for outcome in session(asked)}
    assert all(expected[outcome.trial] == outcome for outcome in outcomes if not outcome.refusal)


def test_an_unknown_scheduler_and_no_workers_are_refused() -> None:
    with pytest.raises(InputError, match="the scheduler is 'lsf'; it is one of local, slurm"):
        DaskPool(configurations(), scheduler="lsf")
    with pytest.raises(InputError, match="workers is 0"):
        DaskPool(configurations(), workers=0)

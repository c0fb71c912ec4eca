"""How far a run has come, told within the run, and its end where nobody wants it any longer."""

import threading

import pytest
from support_limits import HANG_S

from lepaute.errors import SimulationError
from lepaute.simulate import Hpl, predict
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native
from lepaute.simulate.platform import load_platform
from lepaute.simulate.tasks import Task, run_tasks

SECONDS = Hpl(n=60_000, p=8, q=8)  # of which some tenths pass


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("hpl", [Hpl(n=1000, p=2, q=3), Hpl(n=128, p=1, q=1), Hpl(n=200_000, p=4, q=8, depth=0)])
def test_the_share_done_grows_from_nothing_to_nearly_all(hpl: Hpl, sampled: bool) -> None:
    behaviour = hpl.on()
    steps = round(behaviour.simulated_share("sampled" if sampled else "full") * hpl.steps)
    shares = [behaviour.share_done(begun, sampled=sampled) for begun in range(0, hpl.ranks * steps + 1, 7)]
    shares.append(behaviour.share_done(hpl.ranks * steps, sampled=sampled))
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert 0.4 < shares[-1] <= 1.0  # all steps have begun; half of the last, and the solve, are left


def test_progress_moves_within_one_run_and_ends_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lepaute.simulate.tasks.TELL_EVERY_S", 0.01)
    shares: list[float] = []
    predict(SECONDS, load_platform("dahu"), runs=1, fidelity="full", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert sum(0.05 < share < 0.95 for share in shares) >= 3


def test_a_run_counts_each_step_of_each_rank() -> None:
    simulator = Native().on(Conditions(load_platform("dahu")))
    progress = simulator.progress_of(SECONDS)
    simulator.run(SECONDS, 1, first=True, progress=progress)
    assert progress.core.begun_steps == SECONDS.steps * SECONDS.ranks


def test_a_cancelled_run_ends_at_once() -> None:
    hpl = Hpl(n=2_000_000, p=16, q=16)  # minutes
    simulator = Native().on(Conditions(load_platform("dahu"), fidelity="full"))
    progress = simulator.progress_of(hpl)
    threading.Timer(0.2, progress.cancel).start()
    with pytest.raises(SimulationError, match="cancelled"):
        simulator.run(hpl, 1, first=True, progress=progress)


class Endless:
    """A task that ends when it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def share_done(self) -> float:
        return 0.5

    def cancel(self) -> None:
        self.cancelled.set()


def test_an_interrupt_cancels_what_runs() -> None:
    endless = Endless()
    ended = threading.Event()

    def work() -> None:
        if endless.cancelled.wait(HANG_S):
            ended.set()

    def interrupt(share: float) -> None:
        assert share == 0.5
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks([Task("endless", 1.0, work, endless)], interrupt)
    assert ended.wait(HANG_S)

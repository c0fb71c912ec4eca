"""A session simulates what is not known yet, once, and keeps results as they come."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
import support_study
from support_disk import small_disk
from support_limits import wait_until
from support_study import configurations, evaluated, trials

import lepaute as lp
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.study.evaluation import Point, Trial
from lepaute.study.results import Results
from lepaute.study.session import Session
from lepaute.watch.store import open_store


def test_outcomes_are_those_of_predict_in_the_order_of_the_trials() -> None:
    asked = trials(3)[::-1]
    with Session(configurations()) as session:
        outcomes = session(asked)
    assert [outcome.trial for outcome in outcomes] == asked
    hpl = lp.Hpl(n=1000, nb=64, p=2, q=4)
    prediction = lp.predict(hpl, "dahu", runs=3)
    ours = [outcome for outcome in outcomes if outcome.trial.point == Point({"nb": 64, "scenario": "base"})][::-1]
    assert [outcome["time_s"] for outcome in ours] == [run.time_s for run in prediction.run_list]
    assert [outcome["rate_gflops"] for outcome in ours] == [run.rate for run in prediction.run_list]
    assert ours[0].extrapolated == prediction.extrapolated_share
    assert ours[0]["cost"] == ours[0]["time_s"]
    repeated = lp.predict(hpl, "dahu", runs=1, repeat=2).time_s.mean
    with Session(configurations()) as session:
        (again,) = session([Trial(Point({"nb": 64, "scenario": "base"}), 1, repeat=2)])
    assert again["time_s"] == repeated


def test_a_session_does_not_begin_what_is_more_than_its_budget() -> None:
    with Session(configurations(), most=7) as session:
        with pytest.raises(InputError, match="8 simulations are needed and the budget is 7"):
            session(trials(2))
        assert session.simulated == 0
        session(trials(1))
        with pytest.raises(InputError, match="8 simulations are needed"):
            session(trials(2))


def test_a_simulation_is_run_once_whichever_study_asks(where: str) -> None:
    with open_store(where) as store, Session(configurations(), Results(store)) as session:
        first = session(trials(2))
        assert (session.simulated, session.reused) == (8, 0)
    other = support_study.TEXT.replace("base: {}", "as_it_is: {}").replace("[64, 128]", "[128, 96]")
    with open_store(where) as store, Session(configurations(other), Results(store)) as session:
        grown = session(trials(3, other))
        assert (session.simulated, session.reused) == (8, 4), "three runs of nb 96, the third one of nb 128"
        assert len(store.simulations()) == 16
    times = {(outcome.trial.seed, outcome["time_s"]) for outcome in first if outcome.trial.point["nb"] == 128}
    assert times <= {(outcome.trial.seed, outcome["time_s"]) for outcome in grown}
    with open_store(where) as store:
        rows = store.simulations()
    assert rows["refusal"].eq("").all()
    assert rows["energy_j"].isna().all(), "the platform does not say what a node draws"
    assert '"name"' not in rows["about"][0]
    assert '"nb":' in rows["about"][0]


def test_results_come_back_from_the_store_bit_for_bit(where: str) -> None:
    with open_store(where) as store, Session(configurations(), Results(store)) as session:
        before = session(trials(3))
    with open_store(where) as store, Session(configurations(), Results(store)) as session:
        assert session(trials(3)) == before
        assert session.simulated == 0


def wait_for_more(process: "subprocess.Popen[bytes]", store: Path, than: int) -> None:
    """Until the store has more results, or the process has ended."""

    def has_more() -> bool:
        return (store / "store.json").exists() and count(store) > than

    wait_until(lambda: process.poll() is not None or has_more(), "a further result")


@pytest.mark.slow
def test_a_killed_study_loses_only_what_was_not_written_and_continues_to_the_same_results(tmp_path: Path) -> None:
    runs, order = 60, "3k"
    store = tmp_path / "store"
    argv = [sys.executable, support_study.__file__, str(store), str(runs), order]
    kept = 0
    for _ in range(2):
        process = subprocess.Popen(argv)
        wait_for_more(process, store, kept)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = count(store)
    text = support_study.TEXT.replace("n: 1k", f"n: {order}")
    outcomes, simulated, reused = evaluated(store, runs, text)
    assert reused == kept > 0
    assert simulated + reused == 4 * runs == count(store)
    with Session(configurations(text)) as session:
        assert session(trials(runs, text)) == outcomes


def count(store: Path) -> int:
    with open_store(store) as opened:
        return len(opened.simulations())


def test_a_full_disk_is_one_line_and_the_store_stays_whole(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place):
        with open_store(place / "store") as store:
            store.add_simulations(pandas.DataFrame(rows(1)))
        (place / "ballast").write_bytes(b"x" * max(0, free_bytes(place) - 8192))
        with open_store(place / "store") as store:
            session = Session(configurations(), Results(store))
            with pytest.raises(EnvironmentProblem, match="cannot be written") as caught:
                session(trials(5))
            assert "\n" not in str(caught.value)
        (place / "ballast").unlink()
        assert count(place / "store") == 1
        _, simulated, _ = evaluated(place / "store", 5)
        assert simulated == 20


def rows(number: int) -> list[dict[str, object]]:
    text = {"about": "{}", "platform_sha256": "", "refusal": "", "version": "", "seed": 1, "repeat": 0}
    reals = dict.fromkeys(("time_s", "rate_gflops", "energy_j", "extrapolated", "sampling_sd", "cpu_s"), 1.0)
    return [{"key": f"{at}", **text, **reals} for at in range(number)]


def free_bytes(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize

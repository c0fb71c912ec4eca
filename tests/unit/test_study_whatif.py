"""What if: each scenario against the base; a session simulates what is not known yet, once."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas
import pytest
import support_study
from support_disk import small_disk
from support_limits import wait_until
from support_study import configurations, evaluated, trials

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Outcome, Point, Trial
from lepaute.study.results import Results
from lepaute.study.running import run_study
from lepaute.study.schema import Study, study_of
from lepaute.study.session import Estimate, Session
from lepaute.study.whatif import WhatIfAnswer, whatif
from lepaute.watch.store import open_store

BASE = {"application": {"name": "hpl", "n": 1000, "grid": "2x4"}, "platform": "dahu"}


def study(**changes: object) -> Study:
    scenarios = {"base": {}, "half": {"scale.bandwidth": 0.5}}
    return study_of({"question": "whatif", "base": BASE, "scenarios": scenarios, "runs": 4, **changes})


def answer_of(asked: Study, time_s: Callable[[Trial], float], seen: list[Trial] | None = None) -> WhatIfAnswer:
    """The answer on made-up times."""

    def evaluate(trials: Sequence[Trial]) -> list[Outcome]:
        if seen is not None:
            seen.extend(trials)
        return [Outcome(trial, {"time_s": time_s(trial)}) for trial in trials]

    return whatif(asked, Configurations(asked), evaluate)


def test_what_all_runs_of_a_seed_have_in_common_cancels() -> None:
    answer = answer_of(study(), lambda trial: trial.seed * (1.1 if trial.point["scenario"] == "half" else 1.0))
    (comparison,) = answer.comparisons
    found = comparison.differences["time_s"]
    assert found.ratio == pytest.approx(1.1)
    assert found.is_told_apart
    assert answer.told_apart == 1
    assert "10 % more" in answer.text


def test_the_base_and_the_others_have_other_noise_unless_it_is_to_be_the_same() -> None:
    seen: list[Trial] = []
    answer_of(study(), lambda _: 1.0, seen)
    assert {(trial.point["scenario"], trial.repeat) for trial in seen} == {("base", 0), ("half", 0), ("base", 1)}
    seen.clear()
    answer_of(study(whatif={"same_noise": True}, runs=1), lambda _: 1.0, seen)
    assert {(trial.point["scenario"], trial.repeat) for trial in seen} == {("base", 0), ("half", 0)}


def test_each_level_takes_the_best_of_the_factors_that_are_to_be_chosen() -> None:
    asked = study(
        factors={"grid": {"path": "application.grid", "levels": ["1x8", "2x4"]}}, whatif={"best_of": ["grid"]}
    )
    times_s = {("base", "2x4"): 1.0, ("base", "1x8"): 2.0, ("half", "1x8"): 1.5, ("half", "2x4"): 3.0}
    answer = answer_of(asked, lambda trial: times_s[str(trial.point["scenario"]), str(trial.point["grid"])])
    (comparison,) = answer.comparisons
    assert comparison.reference.point["grid"] == "2x4"
    assert comparison.other.point["grid"] == "1x8"
    assert not comparison.same_geometry
    assert "ranks on other CPUs, so that errors of single CPUs do not cancel" in answer.text


def test_machines_of_other_models_are_compared_by_runs_that_have_nothing_in_common() -> None:
    asked = study(scenarios={"base": {}, "other": {"platform": "dahu-2019-04"}})
    (comparison,) = answer_of(asked, lambda trial: float(trial.seed)).comparisons
    assert not comparison.shared
    found = comparison.differences["time_s"]
    assert found.low < 0.5, "seed 1 against seed 2, ..., 4 against 1"
    assert found.high > 2.0


def test_a_wanted_precision_takes_as_many_runs_as_it_needs() -> None:
    def noisy(trial: Trial) -> float:
        return 1.0 + 0.05 * ((trial.seed * 7919 + trial.repeat * 104729) % 17) / 17.0

    few = answer_of(study(), noisy)
    more = answer_of(study(budget={"precision": 4.0}), noisy)
    assert few.runs == 4
    assert more.runs > 4


def test_a_refused_scenario_is_told_and_the_others_are_compared() -> None:
    asked = study(scenarios={"base": {}, "large": {"application.grid": "100x100"}, "half": {"scale.bandwidth": 0.5}})
    run = run_study(asked, runs=2, scheduler="threads")
    assert "10000 ranks do not fit" in run.text
    assert run.simulated == 4


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.yaml"
    path.write_text(support_study.TEXT)
    return path


def test_the_command_answers_keeps_everything_and_continues(file, capsys, refusal_of):
    assert main(["study", "whatif", str(file), "--runs", "2"]) == 0
    out, err = capsys.readouterr()
    assert "against base" in out
    assert "net.results: 8 simulations (36 more to judge them), 0 known before" in err
    assert "holds results of a study already; continue it with --resume" in refusal_of("study", "whatif", file)
    assert main(["study", "whatif", str(file), "--runs", "3", "--resume", "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["simulated"], answer["reused"]) == (4, 8)
    assert answer == json.loads(Path("net.results/answer.json").read_text())
    rows = list(csv.DictReader(Path("net.results/results.csv").read_text().splitlines()))
    assert len(rows) == 12
    assert {row["scenario"] for row in rows} == {"base", "half"}
    with open_store("net.results/store") as store:
        rows_of_trials = [row for row in store.simulations()["about"] if "drawn" not in json.loads(row)]
        assert len(rows_of_trials) == 18  # the base twice, and those that judge the points
    again = lp.study.run(Path("net.results/study.yaml"), folder=None, scheduler="threads")
    assert again.to_dict() == answer | {"simulated": 12, "reused": 0, "further_simulations": 38}


@pytest.mark.slow
@pytest.mark.nodes
@pytest.mark.long
def test_a_study_on_workers_that_is_killed_and_continued_gives_the_files_of_one_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(support_study.TEXT.replace("n: 1k", "n: 2k"))
    argv = [sys.executable, "-m", "lepaute.cli.main", "study", "whatif", "net.yaml", "--runs", "12", "--resume"]
    process = subprocess.Popen([*argv, "--workers", "2"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    store = tmp_path / "net.results" / "store"
    wait_until(lambda: process.poll() is not None or written(store), "a first result")
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = written(store)
    assert kept
    done = subprocess.run([*argv, "--workers", "2"], cwd=tmp_path, capture_output=True, check=True)
    assert re.search(rf"{48 - kept} simulations( \(.*\))?, {kept} known before", done.stderr.decode())
    run_study(tmp_path / "net.yaml", folder=tmp_path / "here", runs=12, scheduler="threads")
    assert (tmp_path / "here/results.csv").read_bytes() == (tmp_path / "net.results/results.csv").read_bytes()


def written(store: Path) -> int:
    if not (store / "store.json").exists():
        return 0
    with open_store(store) as opened:
        return len(opened.simulations())


def test_where_no_change_can_be_shown_the_largest_is_an_interval_and_no_change() -> None:
    three = study(scenarios={"base": {}, "half": {"scale.bandwidth": 0.5}, "third": {"scale.bandwidth": 0.3}})
    answer = answer_of(three, lambda trial: 10.0 + ((3 * trial.seed + 7 * len(str(trial.point["scenario"]))) % 5))
    (size,) = {pair.differences["time_s"].bounds() for pair in answer.comparisons if pair.other.level == "third"}
    assert answer.told_apart == 0
    assert answer.sentence == (
        f"None of 2 changes can be told from base: the largest seems to be third (time {size}, 95 %); more runs would "
        "hardly decide"
    )
    assert answer.further is None


def test_the_runs_that_would_tell_a_change_are_those_that_tell_it() -> None:
    def varies(trial: Trial) -> float:
        """6 % slower, give or take 2 %."""
        return 1.0 if trial.point["scenario"] == "base" else 1.06 + 0.02 * (1 if trial.seed % 2 else -1)

    few = answer_of(study(runs=2), varies)
    (change,) = few.comparisons[0].differences.values()
    assert few.sentence.startswith("half cannot be told from base: time ")
    assert few.text.splitlines()[0].endswith(f"; --runs {change.enough} would decide.")
    assert few.further.simulations == 2 * (change.enough - 2)
    more = answer_of(study(runs=change.enough + change.enough % 2), varies)
    assert more.sentence.startswith("half matters: time 6.0 % more (95 %: ")
    assert more.further is None


def test_only_what_can_be_told_from_the_base_is_said_to_change_the_response() -> None:
    asked = study(scenarios={"base": {}, "half": {"scale.bandwidth": 0.5}, "third": {"scale.bandwidth": 0.3}})

    def varies(trial: Trial, third: float) -> float:
        """Half differs alike on all machines; a third does or does not, by the machine."""
        return {"base": 1.0, "half": 1.1, "third": third + 0.3 * (trial.seed % 2)}[str(trial.point["scenario"])]

    one, both = (answer_of(asked, partial(varies, third=third)) for third in (0.95, 3.0))
    assert one.sentence == "half matters: time 10 % more in all runs; 1 other cannot be told from base"
    assert both.sentence.startswith("2 of 2 changes matter, third most: time 2")


def test_small_changes_are_called_little_whether_they_are_shown_or_not() -> None:
    shown = answer_of(study(), lambda trial: 1.02 if trial.point["scenario"] == "half" else 1.0)
    assert shown.sentence == "half matters little: time 2.0 % more in all runs"
    within = answer_of(study(), lambda trial: 1.0 + 0.002 * (trial.seed % 2) * (trial.point["scenario"] == "half"))
    assert within.sentence.startswith("half matters little: time differs by 0.")


def test_what_is_not_comparable_is_not_told_apart_by_a_study_either() -> None:
    asked = study(scenarios={"base": {}, "small": {"application.nb": 32}})

    def evaluated(trials: Sequence[Trial], effect: float) -> list[Outcome]:
        found = []
        for trial in trials:
            small = trial.point["scenario"] == "small"
            time_s = (2.0 if small else 1.0) * (effect if trial.drawn == "extrapolated" else 1.0)
            found.append(Outcome(trial, {"time_s": time_s}, 0.9 if small else 0.0))
        return found

    usual, doubtful = (
        whatif(asked, Configurations(asked), partial(evaluated, effect=effect)) for effect in (1.01, 1.5)
    )
    assert usual.told_apart == 1
    (comparison,) = doubtful.comparisons
    assert comparison.differences["time_s"].is_told_apart
    assert doubtful.told_apart == 0
    assert "not comparable, at small extrapolation alone makes its time uncertain by ± 79.5 %" in doubtful.sentence
    assert doubtful.to_dict()["comparisons"][0]["comparable"] is False


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


def test_what_is_known_already_is_what_will_be_known_before(where: str) -> None:
    judged = [Trial(Point({"nb": 64, "scenario": "base"}), seed, repeat=1) for seed in (1, 2)]
    for runs, known_before in ((2, 0), (3, 8)):
        with open_store(where) as store, Session(configurations(), Results(store)) as session:
            _, known, _ = session.missing(trials(runs) + judged)
            session(trials(runs) + judged)
            assert (known, session.reused, session.simulated) == (known_before, known_before, 4 * runs - known_before)


def test_a_limit_of_time_is_announced_with_what_it_is_too_short_for() -> None:
    known = Estimate(40, 40, 40, 40, 0, 2, 1.0, 80.0, study_share=0.5, trials=trials(10))
    assert known.within(None) == known.within(80.0) == known.text
    assert known.within(60.0).endswith("; budget.seconds ends it after about 60 s")
    assert known.within(6.0).endswith("after about 44 s")  # 40 s judge, 4 s are one run of ten


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


@pytest.mark.slow
def test_a_killed_study_loses_only_what_was_not_written_and_continues_to_the_same_results(tmp_path: Path) -> None:
    runs, order = 60, "3k"
    store = tmp_path / "store"
    argv = [sys.executable, support_study.__file__, str(store), str(runs), order]
    kept = 0

    def has_more() -> bool:
        return process.poll() is not None or ((store / "store.json").exists() and count(store) > kept)

    for _ in range(2):
        process = subprocess.Popen(argv)
        wait_until(has_more, "a further result")
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

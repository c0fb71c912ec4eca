"""A verification says by how much the machine has become slower since it was calibrated, and shows both errors."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support_verify import PROGRAM, measured, predicted, silent

from lepaute.errors import EnvironmentProblem
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.sentinel import duration_of
from lepaute.measure.verify.campaign import Case, Plan, RecordedRun, run_cases
from lepaute.measure.verify.comparison import compare, run_table
from lepaute.measure.verify.machine import guard_of, lag_of_campaign, machine_drift, readings_of, time_without_drift
from lepaute.measure.verify.plot import plot
from lepaute.measure.verify.report import show
from lepaute.measure.verify.seal import RunJournal, seal_predictions, sealed_coretype, sealed_lag_s
from lepaute.measure.verify.verification import Verification
from lepaute.simulate import Hpl
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.schema import Sentinel
from lepaute.stats.disturbance import sentinel_causes

SENTINEL = Sentinel(m=1024, n=1024, k=128, duration_s=0.005, relative_error=0.001, ended="2026-11-22T20:00:00+00:00")
CASES = [Case(hpl, predicted(hpl)) for hpl in (Hpl(n=2000), Hpl(n=4000), Hpl(n=8000))]


def campaign(levels: list[float], time_s: float = 1.0, cases: list[Case] | None = None) -> list[RecordedRun]:
    """Two runs of each case on a machine whose sentinels are slower by these shares, one after the other."""
    readings = iter([levels[0], *levels])  # the first one is run twice
    watch = lambda: 0.005 * (1 + next(readings))  # noqa: E731
    return run_cases(cases or CASES, Plan(2, 1), lambda *_: measured(time_s), silent, watch=watch)


def verification(levels: list[float], time_s: float, folder: Path) -> Verification:
    runs = campaign(levels, time_s)
    frame = run_table(CASES, runs, SENTINEL)
    drift = machine_drift(readings_of(frame), SENTINEL)
    seal = seal_predictions(CASES, Plan(2, 1), PROGRAM, folder)
    return Verification(CASES, seal, runs, compare(CASES, frame), frame, drift)


def test_a_sentinel_is_run_before_the_first_run_and_after_each() -> None:
    runs = campaign([0.00, 0.01, 0.02, 0.03, 0.02, 0.01, 0.00])
    assert [run.sentinel_before_s for run in runs] == pytest.approx([0.005 * (1 + x / 100) for x in (0, 1, 2, 3, 2, 1)])
    assert [run.sentinel_after_s for run in runs] == pytest.approx([0.005 * (1 + x / 100) for x in (1, 2, 3, 2, 1, 0)])
    assert readings_of(run_table(CASES, runs, SENTINEL)) == pytest.approx(
        [0.005 * (1 + x / 100) for x in (0, 1, 2, 3, 2, 1, 0)]
    )


def test_a_slower_machine_is_told_and_its_drift_taken_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = [0.06, 0.062, 0.058, 0.061, 0.06, 0.059, 0.06]
    found = verification(levels, 1.06, tmp_path)
    assert found.drift.significant
    assert found.drift.sentence.startswith("This machine is 6.00 % (95 %: 5.")
    assert " %) slower than when it was calibrated (53.7 -> 50.6 Gflop/s a core, 7 sentinels)." in found.drift.sentence
    # Predicted 1.0, measured 1.06 on a machine that is 6 % slower: outside as sealed, right without the drift.
    assert found.table["error_percent"].tolist() == pytest.approx([-5.66] * 3, abs=0.01)
    assert found.table["inside_interval"].tolist() == [False] * 3
    assert found.table["error_without_drift_percent"].abs().max() < 0.2
    assert found.table["inside_without_drift"].tolist() == [True] * 3
    show(found.table, found.run_table, sys.stdout, found.drift)
    text = capsys.readouterr().out
    assert "With that taken out: 6 of 6 runs and 3 of 3 means inside their 95 % prediction intervals" in text
    assert "0 of 6 runs and 0 of 3 means inside their 95 % prediction intervals" in text
    record = found.to_dict()
    assert record["machine_drift"]["significant"] is True
    assert record["verifications"][0]["drift_percent"] == pytest.approx(6.0, abs=0.2)
    assert record["verifications"][0]["measured"][0]["sentinel_before_s"] > 0.005
    json.dumps(record, allow_nan=False)
    plot(found.table, found.run_table, tmp_path / "one.png", "title", "foot")
    assert (tmp_path / "one.png").stat().st_size > 20_000


def test_a_machine_that_is_as_fast_as_before_is_not_told_of_a_drift(tmp_path: Path) -> None:
    found = verification([0.004, -0.003, 0.002, 0.0, 0.003, -0.002, 0.001], 1.0, tmp_path)
    assert not found.drift.significant
    assert "No change of the machine's speed since its calibration" in found.drift.sentence


def test_a_run_across_a_change_of_the_machine_is_marked_and_made_again() -> None:
    runs = campaign([0.0, 0.0, 0.3, 0.3, 0.3, 0.3], cases=CASES[:1])  # the third one is confirmed by the fourth
    assert [run.disturbed for run in runs] == [False, True, False]
    assert runs[1].causes == ("sentinels: the machine was 30 % slower after the run than before",)
    assert (runs[2].case, runs[2].repeat, runs[2].attempt) == (runs[1].case, runs[1].repeat, 1)


def test_a_hiccup_of_a_sentinel_is_no_change_of_the_machine() -> None:
    runs = campaign([0.0, 0.4, 0.01, 0.0, 0.0], cases=CASES[:1])
    assert not any(run.disturbed for run in runs)
    assert [run.sentinel_after_s for run in runs] == pytest.approx([0.005 * 1.01, 0.005])


def test_a_machine_slower_than_in_the_campaign_until_then_is_a_cause_beyond_its_known_scatter() -> None:
    assert sentinel_causes(1.2, 1.2, [1.0] * 6) == (
        "sentinels: the machine was 20 % slower than in the campaign until then",
    )
    assert sentinel_causes(1.2, 1.2, [1.0] * 5) == ()  # too few to know the campaign
    assert sentinel_causes(0.8, 0.8, [1.0] * 9) == ()  # the earlier ones were the slow ones
    assert sentinel_causes(1.06, 1.0, [1.0] * 9) == ()  # what machines do all the time
    assert sentinel_causes(1.0, 0.85, []) == ("sentinels: the machine was 15 % faster after the run than before",)
    quiet, scattered = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99], [0.9, 1.1, 0.95, 1.05, 0.9, 1.1]
    assert sentinel_causes(1.12, 1.12, quiet) == ()  # no slow state by the rule of calibrations: below 15 %
    assert len(sentinel_causes(1.2, 1.2, quiet)) == 1
    assert sentinel_causes(1.2, 1.2, scattered) == ()
    assert len(sentinel_causes(1.0, 1.2, quiet)) == 1  # between before and after
    assert len(sentinel_causes(1.0, 1.12, quiet[:5])) == 1


def test_a_resumed_campaign_knows_its_sentinels(tmp_path: Path) -> None:
    seal = seal_predictions(CASES, Plan(2, 1), PROGRAM, tmp_path)
    runs = campaign([0.0, 0.01, 0.0, 0.02, 0.0, 0.01, 0.0])
    journal = RunJournal(tmp_path, seal)
    for run in runs[:4]:
        journal.add(run)
    journal.close()
    finished = RunJournal(tmp_path, seal).finished
    assert finished == runs[:4]
    levels = iter([0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    again = run_cases(
        CASES, Plan(2, 1), lambda *_: measured(1.0), silent, finished, watch=lambda: 0.005 * (1 + next(levels))
    )
    # The sentinels of the finished runs are the campaign's: these two are half as fast.
    assert [run.disturbed for run in again[4:6]] == [True, True]
    assert not any(run.disturbed for run in again[7:])


def test_the_moving_of_messages_does_not_become_slower() -> None:
    assert time_without_drift(1.05, 0.5, 1.1) == pytest.approx(1.0)
    assert time_without_drift(1.1, 1.0, 1.1) == pytest.approx(1.0)
    assert time_without_drift(1.1, 0.0, 1.1) == 1.1


def test_a_drift_is_told_of_a_still_machine_once_in_a_hundred_campaigns() -> None:
    rng = np.random.default_rng(1)
    told = 0
    for _ in range(1000):
        # The calibration's mean is wrong by its error, as is each sentinel: 1 %, so that 1 % is often reached.
        reference = SENTINEL.model_copy(
            update={"duration_s": 0.005 * (1 + 0.004 * rng.normal()), "relative_error": 0.004}
        )
        found = machine_drift(list(0.005 * (1 + 0.01 * rng.normal(size=12))), reference)
        told += found.significant
    assert told <= stats.binom.ppf(0.999, 1000, 0.01)


def test_the_lag_is_that_of_the_middle_of_the_campaign() -> None:
    platform = override(load_platform("dahu"), {"sentinel": json.dumps(SENTINEL.model_dump(mode="json"))})
    ended = datetime(2026, 11, 22, 20, 0, 0, tzinfo=UTC)
    hpls = [Hpl(n=8000, q=2)]
    rate = 0.8 * SENTINEL.gflops * 1e9 * 2
    campaign_s = 4 * (hpls[0].flop_count / rate + 1.5)
    lag_s = lag_of_campaign(platform, hpls, 4, ended + timedelta(seconds=100))
    assert lag_s == pytest.approx(100 + campaign_s / 2, abs=1)
    assert lag_of_campaign(platform, hpls, 4, ended - timedelta(days=1)) == pytest.approx(campaign_s / 2, abs=1)
    assert lag_of_campaign(load_platform("dahu"), hpls, 4) == 0.0
    guard = guard_of(platform, Path("probe"), None)
    assert (guard.size, guard.calls, guard.cores) == ((1024, 1024, 128), 60, 32)
    assert guard_of(load_platform("dahu"), Path("probe"), None) is None


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (sealed_coretype, None, None),
        (sealed_coretype, '{"program": {"coretype": "Zen"}}', "Zen"),
        (sealed_coretype, '{"program": {"coretype": null}}', None),
        (sealed_coretype, '{"program": {"coretype": 3}}', None),
        (sealed_lag_s, None, None),
        (sealed_lag_s, '{"predictions": [{"parameters": {"lag_s": 90.0}}]}', 90.0),
        *((sealed_lag_s, text, None) for text in ("{", "[]", '{"predictions": []}', '{"predictions": [{}]}')),
    ],
)
def test_what_was_sealed_is_read_back(read, text, value, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "predictions.json").write_text(text)
    assert read(tmp_path) == value


def test_raw_files_give_the_mean_over_cores_without_the_slowest_twentieth() -> None:
    def raw(*durations: float) -> str:
        rows = "".join(f"{i},dgemm,1,{value}\n" for i, value in enumerate(durations))
        return "#@clock_cost_s=0.1\n#@blas_core=Zen\ndesign_row,kernel,start_s,duration_s\n" + rows

    assert duration_of([raw(*[1.1] * 19, 9.0), raw(2.1, 2.1, 2.1)]) == pytest.approx(1.5)
    for nothing in ([], [raw()]):
        with pytest.raises(EnvironmentProblem, match="left no rows"):
            duration_of(nothing)


def watched(readings: list[float | BaseException], kept: list[RecordedRun]) -> list[RecordedRun]:
    """Two runs of one case, with these sentinels, or with what they raise."""
    made = iter(readings)

    def watch() -> float:
        if isinstance(reading := next(made), BaseException):
            raise reading
        return reading

    return run_cases(CASES[:1], Plan(2, 1), lambda *_: measured(1.0), silent, keep=kept.append, watch=watch)


LATE = EnvironmentProblem("the sentinel did not finish within 60 s and was stopped")


def test_a_sentinel_that_fails_marks_the_run_before_it_and_the_campaign_goes_on() -> None:
    kept: list[RecordedRun] = []
    # The first one is run twice; the one after the first run fails, so two more precede the second one.
    runs = watched([1.0, 1.0, LATE, LATE, 1.0, 1.0, 1.0, 1.0], kept)
    assert runs == kept
    assert [run.disturbed for run in runs] == [True, False, False]
    assert runs[0].causes == (f"sentinels: the one after the run failed: {LATE}",)
    assert (runs[0].sentinel_before_s, runs[0].sentinel_after_s, runs[1].sentinel_before_s) == (1.0, None, 1.0)
    assert (runs[2].repeat, runs[2].attempt) == (runs[0].repeat, 1)
    assert readings_of(run_table(CASES[:1], runs, SENTINEL)) == [1.0]


def test_three_sentinels_that_fail_in_a_row_end_the_campaign_and_lose_no_run() -> None:
    kept: list[RecordedRun] = []
    with pytest.raises(EnvironmentProblem, match=r"^3 sentinels failed in a row, .* 60 s and was stopped; the runs"):
        watched([1.0, 1.0, LATE, LATE, LATE], kept)
    assert [run.disturbed for run in kept] == [True]


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), NodeLost("node-2 is lost")])
def test_a_run_is_kept_where_the_campaign_ends_during_the_sentinel_after_it(problem: BaseException) -> None:
    kept: list[RecordedRun] = []
    with pytest.raises(type(problem)):
        watched([1.0, 1.0, problem], kept)
    assert [(run.disturbed, run.sentinel_after_s) for run in kept] == [(True, None)]


def test_a_run_whose_sentinel_failed_is_read_back_from_the_journal(tmp_path: Path) -> None:
    seal = seal_predictions(CASES[:1], Plan(2, 1), PROGRAM, tmp_path)
    journal = RunJournal(tmp_path, seal)
    runs = watched([1.0, 1.0, LATE, 1.0, 1.0, 1.0, 1.0], [])
    for run in runs:
        journal.add(run)
    journal.close()
    assert RunJournal(tmp_path, seal).finished == runs

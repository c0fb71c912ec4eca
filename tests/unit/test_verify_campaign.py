"""The order of a campaign, the seal of its predictions, and the table that comes of it."""

import hashlib
import io
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support_verify import PROGRAM, measured, predicted, silent

from lepaute.errors import InputError
from lepaute.measure.verify.campaign import Case, Plan, run_cases
from lepaute.measure.verify.comparison import compare, decision_of, one_sided, run_table, sentence, within
from lepaute.measure.verify.plot import plot
from lepaute.measure.verify.real_run import RealRun
from lepaute.measure.verify.report import run_lines, show, warning_lines
from lepaute.measure.verify.seal import RunJournal, Seal, held, seal_predictions, sealed_before
from lepaute.measure.verify.verification import Verification, check_unused
from lepaute.simulate import Hpl
from lepaute.simulate.prediction.prediction import SimulationFigures


def case_of(hpl: Hpl, times_s: list[float]) -> Case:
    return Case(hpl, predicted(hpl, times_s))


CASES = [case_of(Hpl(n=n, q=q), [0.99, 1.0, 1.01]) for n in (2000, 4000) for q in (1, 2)]


def order_of(seed: int) -> list[int]:
    return [run.case for run in run_cases(CASES, Plan(3, seed), lambda _hpl, _limit: measured(1.0), silent)]


def test_every_case_runs_as_often_as_planned_in_an_order_that_only_the_seed_decides():
    assert Counter(order_of(7)) == {0: 3, 1: 3, 2: 3, 3: 3}
    assert order_of(7) == order_of(7)
    assert order_of(7) != order_of(8)
    assert order_of(7) != sorted(order_of(7))


def test_a_disturbed_run_is_made_again_later_and_all_its_rows_are_kept():
    # The second run that is made is disturbed, once.
    made = []

    def once(hpl: Hpl, _limit: float) -> RealRun:
        made.append(hpl)
        return measured(1.0, cpu_share=0.5 if len(made) == 2 else 1.0)

    runs = run_cases(CASES, Plan(2, 1), once, silent)
    assert len(runs) == 2 * len(CASES) + 1
    assert [run.disturbed for run in runs].count(True) == 1
    first, again = runs[1], runs[-1]
    assert (again.case, again.repeat, again.attempt) == (first.case, first.repeat, 1)
    assert made[-1] == CASES[first.case].hpl


def test_runs_are_made_again_no_longer_than_the_planned_ones_took_those_of_cases_without_any_first():
    def once(hpl: Hpl, _limit: float) -> RealRun:
        return measured(100.0, cpu_share=1.0 if hpl == CASES[0].hpl else 0.5)

    runs = run_cases(CASES, Plan(2, 1), once, silent)
    planned = 2 * len(CASES)
    assert [bool(run.attempt) for run in runs] == [False] * planned + [True] * planned

    def once_a_case(hpl: Hpl, _limit: float) -> RealRun:
        made.append(hpl)
        return measured(100.0, cpu_share=1.0 if made.count(hpl) == 2 and hpl != CASES[0].hpl else 0.5)

    made: list[Hpl] = []
    again = [run for run in run_cases(CASES, Plan(2, 1), once_a_case, silent) if run.attempt]
    assert [run.case for run in again[:2]] == [0, 0]


@pytest.mark.parametrize("disturbed", [(), (2,), (1, 2, 9, 10, 11, 12)])
def test_a_resumed_campaign_makes_the_missing_runs_in_the_order_of_a_whole_one(disturbed):
    def once(made):
        def run(hpl: Hpl, _limit: float) -> RealRun:
            made.append(hpl)
            return measured(1.0, cpu_share=0.5 if len(made) in disturbed else 1.0)

        return run

    whole_campaign = run_cases(CASES, Plan(2, 1), once([]), silent)
    for finished in range(len(whole_campaign) + 1):
        kept = []
        made = list(whole_campaign[:finished])
        runs = run_cases(CASES, Plan(2, 1), once(made), silent, whole_campaign[:finished], kept.append)
        keys = [(run.order, run.case, run.repeat, run.attempt, run.disturbed) for run in runs]
        assert keys == [(run.order, run.case, run.repeat, run.attempt, run.disturbed) for run in whole_campaign]
        assert kept == runs[finished:]


def test_a_run_whose_line_was_lost_is_made_again_and_no_other(tmp_path):
    seal = seal_predictions(CASES, Plan(2, 1), PROGRAM, tmp_path)
    journal = RunJournal(tmp_path, seal)
    runs = run_cases(CASES, Plan(2, 1), lambda _hpl, _limit: measured(1.0), silent, (), journal.add)
    journal.close()
    lines = journal.path.read_bytes().splitlines(keepends=True)
    lines[3] = b"\0" * (len(lines[3]) - 1) + b"\n"  # what a machine that loses its power may leave
    journal.path.write_bytes(b"".join(lines) + b'{"order":')
    again = RunJournal(tmp_path, seal)
    assert again.finished == runs[:3] + runs[4:]
    made = []
    run_cases(CASES, Plan(2, 1), lambda _hpl, _limit: measured(1.0), silent, again.finished, made.append)
    assert [(run.case, run.repeat) for run in made] == [(runs[3].case, runs[3].repeat)]


def test_runs_of_other_predictions_are_refused(tmp_path):
    first = seal_predictions(CASES, Plan(1, 1), PROGRAM, tmp_path)
    journal = RunJournal(tmp_path, first)
    run_cases(CASES, Plan(1, 1), lambda _hpl, _limit: measured(1.0), silent, (), journal.add)
    journal.close()
    second = seal_predictions(CASES, Plan(2, 1), PROGRAM, tmp_path)
    with pytest.raises(InputError, match="runs of other predictions"):
        RunJournal(tmp_path, second)


@pytest.mark.parametrize(
    ("cases", "plan", "difference"),
    [
        (CASES[:3], Plan(2, 1), "it has 4 predictions, this one 3"),
        (CASES, Plan(3, 1), "its plan.repeats is 2, this one has 3"),
        ([*CASES[:3], case_of(Hpl(n=9, q=2), [0.99, 1.0, 1.01])], Plan(2, 1), "predictions[3].parameters.n is 4000"),
        ([case_of(CASES[0].hpl, [1.0]), *CASES[1:]], Plan(2, 1), "predictions[0].time_s.low"),
    ],
)
def test_a_campaign_of_other_predictions_cannot_be_resumed(cases, plan, difference, tmp_path):
    seal_predictions(CASES, Plan(2, 1), PROGRAM, tmp_path)
    with pytest.raises(InputError) as refusal:
        sealed_before(cases, plan, PROGRAM, tmp_path)
    assert difference in str(refusal.value)
    assert "another --output" in str(refusal.value)


def test_the_sealed_predictions_come_back_with_their_own_figures_of_the_simulation(tmp_path):
    seal = seal_predictions(CASES, Plan(2, 1), PROGRAM, tmp_path)
    other = SimulationFigures(wall_s=7.0, peak_rss_bytes=7, engine_bytes=7, messages=0)
    slower = [replace(case, prediction=replace(case.prediction, simulation=other)) for case in CASES]
    assert sealed_before(slower, Plan(2, 1), PROGRAM, tmp_path) == (CASES, seal)
    assert sealed_before(CASES, Plan(2, 1), PROGRAM, tmp_path / "new") is None


def test_predictions_that_were_changed_after_they_were_sealed_are_refused(tmp_path):
    seal = seal_predictions(CASES, Plan(2, 1), PROGRAM, tmp_path)
    seal.path.write_text(seal.path.read_text().replace('"mean": 1.0', '"mean": 1.1'))
    with pytest.raises(InputError, match="the sealed file was changed"):
        sealed_before(CASES, Plan(2, 1), PROGRAM, tmp_path)
    with pytest.raises(InputError, match="the sealed file was changed"):
        seal.check()


def test_a_folder_with_results_is_not_used_again_and_one_that_is_in_use_neither(tmp_path):
    check_unused(tmp_path / "new")
    with held(tmp_path / "new"):
        check_unused(tmp_path / "new")
        with pytest.raises(InputError, match="another verification is running in this folder"), held(tmp_path / "new"):
            pass
    assert not (tmp_path / "new").exists()  # nothing came into it
    (tmp_path / "results.csv").write_text("n\n")
    with pytest.raises(InputError, match=r"holds results.csv of an earlier verification: .*--resume"):
        check_unused(tmp_path)


def test_a_hanging_run_gets_a_limit_far_above_its_prediction():
    limits = []

    def once(_hpl: Hpl, limit_s: float) -> RealRun:
        limits.append(limit_s)
        return measured(1.0)

    run_cases(CASES[:1], Plan(1, 1), once, silent)
    assert limits == [pytest.approx(300.0 + 10.0)]


def test_the_seal_is_the_hash_of_the_file_and_covers_predictions_plan_and_rule(tmp_path):
    seal = seal_predictions(CASES, Plan(4, 9), PROGRAM, tmp_path / "new")
    data = seal.path.read_bytes()
    assert hashlib.sha256(data).hexdigest() == seal.sha256
    # The format that `sha256sum -c` reads: hash, two spaces, name.
    assert (tmp_path / "new/predictions.sha256").read_text() == f"{seal.sha256}  predictions.json\n"
    content = json.loads(data)
    assert content["plan"] == {"repeats": 4, "order_seed": 9}
    assert content["disturbance_rule"]["minimum_cpu_share"] == 0.97
    assert content["created"] == seal.created
    assert [p["time_s"]["mean"] for p in content["predictions"]] == [pytest.approx(1.0)] * 4
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["predictions.json", "predictions.sha256"]


def whole(times_s: dict[int, list[float]], disturbed: dict[int, list[float]], cases: list[Case] = CASES[:2]):
    """A verification whose runs took these times, by case; a case may have disturbed ones too."""
    queues = [
        [measured(t, 0.5) for t in disturbed.get(case, [])] + [measured(t) for t in times_s.get(case, [])]
        for case in range(len(cases))
    ]
    by_hpl = {id(case.hpl): queue for case, queue in zip(cases, queues, strict=True)}
    repeats = max(map(len, times_s.values())) if times_s else 1
    runs = run_cases(cases, Plan(repeats, 1), lambda hpl, _limit: by_hpl[id(hpl)].pop(0), silent)
    frame = run_table(cases, runs)
    return compare(cases, frame), frame, runs


def test_error_interval_and_half_width_are_those_worked_out_by_hand():
    table, _, _ = whole({0: [1.02, 1.00], 1: [0.79, 0.81]}, {})
    first, second = table.to_dict("records")
    # Prediction 0.99, 1.00, 1.01: mean 1, sd of the logarithms 0.0100005; Student t(0.975, 2) = 4.30265; half-width of
    # the logarithms 4.30265 * 0.0100005 * sqrt(1 + 1/3) = 0.049686, their mean -3.3e-5: 0.95150 .. 1.05090.
    assert first["half_width_percent"] == pytest.approx(4.9703, abs=1e-4)
    assert first["measured_time_s"] == pytest.approx(1.01)
    assert first["measured_sd_s"] == pytest.approx(0.02 / math.sqrt(2))
    assert first["error_percent"] == pytest.approx(100 * (1.0 - 1.01) / 1.01)
    assert first["inside_interval"] is True
    assert second["error_percent"] == pytest.approx(25.0)  # 1.0 against 0.8
    assert second["inside_interval"] is False


def test_single_runs_are_counted_in_the_interval_of_one_run_and_their_mean_in_that_of_means():
    # Runs of one day differ as much as all do: the mean of four lies within half of 0.9515 .. 1.0509.
    case = replace(CASES[0], sd_on_one_day=0.0100005)
    table, _, _ = whole({0: [0.93, 1.02, 1.03, 1.04]}, {}, [case])
    (row,) = table.to_dict("records")
    assert (row["n_inside"], row["n_counting"]) == (3, 4)
    assert [row["mean_low_s"], row["mean_high_s"]] == pytest.approx([0.97544, 1.02514], abs=1e-4)
    assert row["inside_interval"] is True
    assert sentence(table).startswith("3 of 4 runs and 1 of 1 mean inside their 95 % prediction intervals; ")
    table, _, _ = whole({0: [1.03, 1.03, 1.03, 1.03]}, {}, [case])
    (row,) = table.to_dict("records")
    assert (row["n_inside"], row["inside_interval"]) == (4, False)


def test_disturbed_runs_stay_out_of_the_mean_but_in_the_mean_of_all():
    table, frame, _ = whole({0: [1.0, 1.0], 1: [1.0, 1.0]}, {0: [2.0]})
    first, second = table.to_dict("records")
    assert (first["n_runs"], first["n_disturbed"], first["measured_time_s"]) == (3, 1, 1.0)
    assert first["measured_all_time_s"] == pytest.approx(4.0 / 3.0)
    assert (first["inside_interval"], first["inside_interval_all"]) == (True, False)
    assert (second["n_runs"], second["n_disturbed"]) == (2, 0)
    assert len(frame) == 5


def test_a_case_with_disturbed_runs_only_is_judged_by_them_and_says_so():
    table, frame, _ = whole({}, {0: [2.0] * 4}, CASES[:1])
    (row,) = table.to_dict("records")
    assert row["only_disturbed"]
    assert row["measured_time_s"] == 2.0
    assert decision_of(row).to_dict()["weaknesses"] == [
        {"cause": "disturbed", "text": "every run was disturbed by other load"}
    ]
    assert [within(table, limit).status("against") for limit in (0.0, 9.0)] == [3, 3], "whatever its error is"
    verification = Verification(CASES[:1], Seal(Path(), "0" * 64, ""), [], table, frame)
    assert (verification.to_dict()["decision"], verification.decision.state("for")) == ("unknown", "unable")
    assert "every run was disturbed" in run_lines(table, frame)


def test_cases_of_which_every_run_was_disturbed_are_told_apart_from_the_others():
    table, _, _ = whole({1: [1.0], 2: [1.0]}, {0: [2.0] * 4}, CASES[:3])
    assert sentence(table).splitlines()[1:] == [
        "Every run of 1 case was disturbed by other load. "
        "The other 2: 2 of 2 runs inside their 95 % prediction intervals; error +0.0 % (N ≥ 4000)."
    ]
    table, _, _ = whole({}, {0: [2.0] * 4}, CASES[:1])
    nothing, counts = sentence(table).splitlines()
    assert nothing.endswith("was disturbed, so nothing is verified: close other programs and run it again.")
    assert counts.startswith("0 of 4 runs and 0 of 1 mean inside")


@pytest.mark.parametrize(
    ("times_s", "said", "inside"),
    [([0.5, 1.0, 2.0], "so inside says little", True), ([0.99, 1.0, 1.01], "", True), ([1.0], "use --runs 10", None)],
)
def test_an_interval_that_holds_nearly_any_run_or_none_at_all_is_told(times_s, said, inside):
    table, _, _ = whole({0: [1.0]}, {}, [case_of(Hpl(n=2000), times_s)])
    assert table["inside_interval"].tolist() == [inside]
    assert said in sentence(table)
    assert ("says little" in sentence(table)) == ("says little" in said)


def test_the_sentence_counts_cases_and_averages_the_errors_of_large_ones():
    table, _, _ = whole({0: [1.0], 1: [1.0], 2: [1.02], 3: [0.8]}, {}, CASES)
    # Errors for N = 4000: -1.96 % and +25 %: mean absolute 13.48 %.
    assert sentence(table) == (
        "3 of 4 runs inside their 95 % prediction intervals; mean absolute error 13.5 % "
        "(predicted relative to measured, N ≥ 4000)."
    )


@pytest.mark.parametrize(
    ("measured_s", "said"),
    [
        ([1.05, 1.02, 1.04, 1.10], "All 4 predictions are too short, by 2.0 to 9.1 %"),
        ([0.95, 0.98, 0.96, 0.90], "All 4 predictions are too long, by 2.0 to 11.1 %"),
        ([1.05, 1.02, 1.04, 0.99], ""),
    ],
)
def test_errors_to_one_side_are_told_whatever_the_intervals_hold(measured_s, said):
    table, _, _ = whole({case: [time_s] for case, time_s in enumerate(measured_s)}, {}, CASES)
    _, *more = sentence(table).splitlines()
    assert [line[: len(said)] for line in more] == ([said] if said else [])
    if said:
        assert "would do so in 12 % of campaigns" in more[0]  # 2 / 2^4


def test_two_errors_to_one_side_say_nothing():
    assert one_sided([1.0, 2.0]) is None
    assert one_sided([1.0, 2.0, 0.0]) is None
    found = one_sided([-1.0, -2.0, -6.0])
    assert found.to_dict() == {
        "cases": 3, "side": "too short", "least_percent": 1.0, "mean_percent": 3.0, "largest_percent": 6.0,
        "chance": 0.25,
    }  # fmt: skip


def test_the_report_shows_every_run_and_brackets_the_disturbed_ones(capsys):
    table, frame, _ = whole({0: [1.01], 1: [1.0]}, {1: [2.0]})
    show(table, frame, sys.stdout)
    text = capsys.readouterr().out
    assert "1.010" in text
    assert "(2.000)" in text
    assert "was on its core for only 1.000 of 2.000 s" in text
    assert text.startswith(sentence(table))  # the answer first


def test_warnings_that_are_alike_are_told_once_and_many_are_cut():
    def warned(*texts: str, case: Case = CASES[0]) -> Case:
        return replace(case, prediction=replace(case.prediction, warnings=texts))

    assert warning_lines([warned("a"), warned("a", "b")], "predictions.json") == [
        "warning (N = 2000, 1x1): a",
        "warning (N = 2000, 1x1): b",
    ]
    outside = [f"{share} % of {name} time is outside" for share, name in ((1, "dgemm"), (40, "dtrsm"), (3, "dgemm"))]
    (line,) = warning_lines([warned(outside[0]), warned(*outside[1:], case=CASES[1])], "predictions.json")
    assert line == f"warning ({CASES[1].label}): 40 % of dtrsm time is outside (and 2 more like it, of dgemm)"
    many = warning_lines([warned(*"abcdefgh")], "predictions.json")
    assert len(many) == 6
    assert many[-1] == "and 3 more warnings in predictions.json"


def words_of(monkeypatch, table, frame, path, **more) -> list[str]:
    """All text of the picture that `plot` draws."""
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    figures = []
    saved = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *words, **options: figures.append(self) or saved(self, *words, **options)
    )
    plot(table, frame, path, "title", "foot", **more)
    return list(dict.fromkeys(text.get_text() for text in figures[0].findobj(Text)))


def test_many_cases_are_drawn_as_predicted_against_measured(tmp_path, monkeypatch):
    cases = [case_of(Hpl(n=1000 + n, q=q), [0.99, 1.0]) for n in range(96) for q in (1, 2)]
    table, frame, _ = whole({case: [1.0 + (case == 0)] for case in range(191)}, {191: [2.0] * 4}, cases)
    words = words_of(monkeypatch, table, frame, tmp_path / "many.png")
    assert {"predicted = measured", "grid 1 × 1", "grid 1 × 2", "hollow: outside"} <= set(words)
    assert "grey: every run disturbed by other load" in words
    assert not [word for word in words if word.startswith("1,0")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_table_fits_on_a_terminal_of_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    cases = [case_of(Hpl(n=20000, p=8, q=16), [0.08512, 0.09112, 0.0987]) for _ in range(2)]
    table, frame, _ = whole({0: [0.08888, 0.09234], 1: [0.11111, 0.12345]}, {}, cases)
    terminal = Terminal()
    show(table, frame, terminal)
    assert "…" not in terminal.getvalue()
    assert "2/2" in terminal.getvalue()

"""Campaigns whose runs are chosen one at a time: what counts, what is kept, where an interrupted one goes on."""

from pathlib import Path

import pytest
from support_verify import PROGRAM, measured, predicted, silent

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.verify.campaign import Plan
from lepaute.measure.verify.real_run import RealRun
from lepaute.measure.verify.verification import ChosenRuns, chosen_runs
from lepaute.simulate import Hpl

HPLS = [Hpl(n=2000, nb=nb) for nb in (64, 128)]


class Table:
    """A site whose runs take the given times; a share of the CPU below 1 is a disturbance."""

    def __init__(self, *runs: tuple[float, float]) -> None:
        self._runs, self.made = list(runs), []

    def check(self, hpl: Hpl) -> None:
        if hpl.n > 5000:
            raise InputError("too large")

    def run(self, hpl: Hpl, _timeout_s: float) -> RealRun:
        if not self._runs:
            raise EnvironmentProblem("the machine went away")
        time_s, share = self._runs.pop(0)
        self.made.append(hpl.nb)
        return measured(time_s, share)

    def watch(self, _guard: object) -> float:
        raise AssertionError("there is no sentinel")


def campaign(folder: Path, site: Table, hpls: "list[Hpl]" = HPLS, **more: bool):  # type: ignore[no-untyped-def]
    return chosen_runs(hpls, PROGRAM, Plan(3, 1), predicted, folder, site, silent, **more)


def test_predictions_are_sealed_before_the_first_run_and_each_run_is_kept_as_it_ends(tmp_path: Path) -> None:
    site = Table((1.0, 1.0), (1.1, 1.0), (1.2, 1.0))
    with campaign(tmp_path, site) as lent:
        assert lent.seal.path.is_file()
        assert site.made == []
        assert (lent.run(1), lent.run(0), lent.run(1)) == (1.0, 1.1, 1.2)
        assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 3
        assert [(run.case, run.repeat) for run in lent.runs] == [(1, 0), (0, 0), (1, 1)]
    assert site.made == [128, 64, 128]


def test_a_disturbed_run_is_made_again_and_only_its_undisturbed_attempt_counts(tmp_path: Path) -> None:
    with campaign(tmp_path, Table((9.0, 0.5), (8.0, 0.5), (1.0, 1.0))) as lent:
        assert lent.run(0) == 1.0
        assert [run.disturbed for run in lent.runs] == [True, True, False]
        assert lent.warnings == [
            "2 of 3 real runs were disturbed as seen by off core 2; 0 of those that count had no undisturbed repetition"
        ]


def test_where_every_attempt_is_disturbed_their_median_counts_and_is_told(tmp_path: Path) -> None:
    with campaign(tmp_path, Table((1.0, 0.5), (1.2, 0.5), (1.4, 0.5), (90.0, 0.5))) as lent:
        assert lent.run(0) == pytest.approx(1.3)
        assert "; 1 of those that count had" in lent.warnings[0]


def test_an_interrupted_campaign_goes_on_where_it_was_and_runs_nothing_twice(tmp_path: Path) -> None:
    def choose(lent: ChosenRuns) -> list[float]:
        return [lent.run(0), lent.run(1), lent.run(0), lent.run(1)]

    first, second = Table((1.0, 1.0), (9.0, 0.5)), Table((1.1, 1.0), (1.2, 1.0), (1.3, 1.0))
    with pytest.raises(EnvironmentProblem, match="went away") as raised, campaign(tmp_path, first) as lent:
        choose(lent)
    assert any("--resume" in note for note in raised.value.__notes__)
    with pytest.raises(InputError, match="--resume"), campaign(tmp_path, second) as lent:
        pass
    with campaign(tmp_path, second, resume=True) as lent:
        assert choose(lent) == [1.0, 1.1, 1.2, 1.3]
    assert first.made + second.made == [64, 128, 128, 64, 128]


def test_a_case_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too large"), campaign(tmp_path, Table(), [Hpl(n=6000)]):
        pass
    assert list(tmp_path.iterdir()) == []

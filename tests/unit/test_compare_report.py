"""The page of a comparison in a real browser, and how far repetitions of a benchmark differ."""

import json
from html import unescape
from pathlib import Path

import numpy as np
import pandas
import pytest
from support.one_run import one_run_values, stopped_mean
from support_comparisons import campaign

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.kit.report.svg import Axis
from lepaute.measure.archive import Archive
from lepaute.measure.compare.comparison import archives
from lepaute.measure.compare.report import write_report
from lepaute.measure.compare.resampling import TRIALS, SampleMeans, normalised, resampled_trials, sample_means
from lepaute.measure.compare.wording import sentence

HOSTILE = '<img src=x onerror="alert(1)">&'
SIZES = (0, 8, 100_000)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    path = tmp_path_factory.mktemp("archive") / "c.zip"
    return campaign(path, ("openmpi", HOSTILE), sizes=SIZES, calls_each=30, blocks=11)


@pytest.fixture(scope="module")
def page_file(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(archives(archive), path)
    return path


def test_the_page_says_every_verdict_with_its_stars_and_where_it_comes_from(archive: Archive, page_file: Path) -> None:
    text = unescape(page_file.read_text()).replace("\u00a0", " ")
    found = archives(archive)
    assert len(found.verdicts) == 2 * len(SIZES)
    for row in found.verdicts:
        assert sentence(row, found.left, found.right) in text
    # The clearest of 2^10 arrangements, two-sided; half of six rows are as clear: p = 0.0039.
    assert text.count("<td>**</td>") == sum(row.stars == "**" for row in found.verdicts) == len(SIZES)
    assert archive.id in text
    assert "lepaute compare openmpi '<img src=x onerror=" in text, "the command, with the name as a shell takes it"
    assert "calls of trials" in text
    assert "performance guidelines" in text.lower()


def test_the_command_writes_a_page_and_data_that_say_the_same(archive, tmp_path, capsys, refusal_of):
    page = tmp_path / "r.html"
    assert main(["compare", str(archive.path), "--report", str(page), "--json"]) == 0
    told = capsys.readouterr()
    assert f"wrote {page}" in told.err
    assert page.read_text().startswith("<!doctype html>")
    content = json.loads(told.out)
    assert len(content["rows"]) == 2 * len(SIZES)
    assert content["archives"][0]["id"] == archive.id
    assert isinstance(content["rows_that_depend_on_the_summary"], list)
    for words, message in (
        ((str(archive.path), "--report", str(tmp_path / "r.txt")), "the name must end in .html"),
        ((str(archive.path), "--report", str(archive.path)), "the name must end in .html"),
        (("openmpi", "mpich", "--measure-only", "--force", "--report", str(page)), "leave out --report"),
        (("openmpi", "mpich", "a=mpich", "--force", "--report", str(page)), "name them with --left and --right"),
    ):
        assert message in refusal_of("compare", *words)


def test_means_of_few_skewed_calls_are_not_normal_and_those_of_many_are_nearer() -> None:
    rng = np.random.default_rng(1)
    skewed = _means_of(np.exp(rng.normal(0, 1.5, 4000)))
    normal = _means_of(rng.normal(10, 1, 4000))
    assert [one.observations for one in skewed] == [30, 500]
    assert not skewed[0].is_normal
    # The skewness of a mean of n falls as 1 / sqrt(n): here by a factor of 4.
    assert abs(skewed[1].skewness) < 0.6 * abs(skewed[0].skewness)
    assert min(one.p_value for one in normal) > 0.001
    assert _means_of(np.ones(99)) == ()
    assert all(mean.is_normal for mean in _means_of(np.ones(100)))


def _means_of(durations_s: np.ndarray) -> tuple[SampleMeans, ...]:
    calls = pandas.DataFrame({"duration_s": durations_s})
    calls = calls.assign(library="a", operation="Bcast", form="blocking", size_bytes=8)
    return sample_means(calls, "duration_s")


def test_an_axis_of_few_decades_has_numbers_all_the_same() -> None:
    assert [text for _, text in Axis("", 0.9, 60.0, log=True).ticks()] == ["1", "2", "5", "10", "20", "50"]
    assert [text for _, text in Axis("", 800.0, 2e4, log=True).ticks()] == ["1 k", "2 k", "5 k", "10 k", "20 k"]
    assert [text for _, text in Axis("", 0.98, 1.22, log=True).ticks()] == ["1", "1.05", "1.1", "1.15", "1.2"]
    assert [text for _, text in Axis("", 1.0, 1e5, log=True).ticks()] == ["1", "100", "10 k"]
    assert Axis("", 1.0, 2.0, numbered=False).ticks() == []


def test_trials_are_divided_by_the_least() -> None:
    assert normalised([3.0, 2.0, 5.0]).tolist() == [1.5, 1.0, 2.5]
    for values in ([], [1.0, 0.0], [1.0, float("nan")]):
        with pytest.raises(InputError, match="above 0"):
            normalised(values)


def test_the_stopping_rule_of_skampi_takes_at_least_so_many_calls_and_no_more_than_it_needs() -> None:
    assert stopped_mean(np.array([1.0] * 8 + [100.0])) == 1.0, "equal calls: the error is 0 after the least number"
    # One call of 100 among ones: the error of the mean stays at 99 to 100 % of it, whatever follows.
    assert stopped_mean(np.array([100.0] + [1.0] * 99)) == pytest.approx(1.99)
    noisy = np.random.default_rng(2).uniform(0, 2, 10_000)
    until = stopped_mean(noisy)
    counts = [n for n in range(8, 200) if np.std(noisy[:n], ddof=1) / np.sqrt(n) <= 0.1 * noisy[:n].mean()]
    assert until == pytest.approx(noisy[: counts[0]].mean())


def test_osu_takes_the_mean_of_the_ranks_and_intel_the_slowest_one_without_calls_to_warm_up() -> None:
    raw = pandas.DataFrame(
        [
            {"mpirun": 0, "operation": "Bcast", "form": "blocking", "size_bytes": 8, "call": call, "rank": rank}
            | {"start_ns": 1000, "end_ns": 1000 + ns}
            for rank, durations in enumerate(((900, 10, 20), (900, 30, 40)))
            for call, ns in zip((-1, 0, 1), durations, strict=True)
        ]
    )
    calls = pandas.DataFrame(
        {"mpirun": 0, "operation": "Bcast", "form": "blocking", "size_bytes": 8, "global_s": [30e-9, 50e-9]}
    )
    (row,) = one_run_values(raw, calls, "global_s").to_dict("records")
    assert row["osu_s"] == pytest.approx(25e-9)  # of 15 and 35
    assert row["intel_s"] == pytest.approx(35e-9)
    assert row["skampi_s"] == pytest.approx(40e-9)  # fewer calls than the rule takes at least: all


def test_means_of_more_mpiruns_repeat_more_closely() -> None:
    """The logarithms of mpiruns differ by 0.1: thirty trials of one by about 4.1 deviations, of 25 by a fifth of it."""
    rng = np.random.default_rng(5)
    mpiruns = np.exp(rng.normal(0, 0.1, 2000))
    one, many = (np.mean([resampled_trials(mpiruns, n, rng).max() - 1 for _ in range(50)]) for n in (1, 25))
    assert len(resampled_trials(mpiruns, 1, rng)) == TRIALS
    assert one == pytest.approx(np.exp(0.41) - 1, rel=0.15)
    assert many == pytest.approx(0.41 / 5, rel=0.15)

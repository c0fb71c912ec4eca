"""Two libraries by what their benchmarks print, the page of a comparison, and how far repetitions differ."""

import gzip
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pandas
import pytest
from support.one_run import one_run_values, stopped_mean
from support_comparisons import campaign
from support_pages import text_of
from support_probes import written

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.kit.report.svg import Axis
from lepaute.measure.archive import Archive
from lepaute.measure.compare.benchmark_output import INTEL, OSU, named_output, outputs, read_output
from lepaute.measure.compare.comparison import archives
from lepaute.measure.compare.report import write_report
from lepaute.measure.compare.resampling import TRIALS, SampleMeans, normalised, resampled_trials, sample_means
from lepaute.measure.compare.wording import sentence

DATA = Path(__file__).resolve().parents[1] / "data" / "duration_tables"

OSU_TEXT = Path(__file__).parents[1].joinpath("data", "texts", "osu_with_warnings.txt").read_text()
INTEL_TEXT = Path(__file__).parents[1].joinpath("data", "texts", "imb_several.txt").read_text()


def repeated(path: Path, factor: float, runs: int, seed: int) -> Path:
    """The output of a benchmark that ran so often: times differ between runs by 1 %."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(runs):
        lines += ["# OSU MPI Broadcast Latency Test v7.4", "# Size       Avg Latency(us)"]
        lines += [f"{size:<10d}{factor * (10 + size / 1000) * np.exp(rng.normal(0, 0.01)):18.2f}" for size in (1, 4096)]
    return written(path, "\n".join(lines) + "\n")


def test_rows_of_osu_are_read_with_mpis_names_and_rates_as_the_time_of_a_message(tmp_path: Path) -> None:
    output = read_output(written(tmp_path / "osu.txt", OSU_TEXT))
    assert (output.suite, output.version) == (OSU, "7.4")
    rows = [(mean.operation, mean.form, mean.size_bytes, mean.run, mean.calls, mean.mean_s) for mean in output.means]
    assert rows == [
        ("Bcast", "blocking", 1, 0, 1000, pytest.approx(4.34e-6)),
        ("Bcast", "blocking", 1048576, 0, 100, pytest.approx(1234.56e-6)),
        ("Alltoallv", "nonblocking", 1, 0, 0, pytest.approx(4.89e-6)),
        ("Latency", "blocking", 0, 0, 0, pytest.approx(0.56e-6)),
        ("Barrier", "blocking", 0, 0, 0, pytest.approx(12.3e-6)),
        ("Bandwidth", "rate", 268435456, 0, 0, pytest.approx(268435456 / 12254.16e6)),
        ("Allreduce (CUDA)", "blocking", 4, 0, 0, pytest.approx(12.46e-6)),
        ("Bcast", "blocking", 1, 1, 0, pytest.approx(4.36e-6)),
    ]


def test_rows_of_intel_with_their_ranks_and_outputs_of_real_runs_are_read(tmp_path: Path) -> None:
    output = read_output(written(tmp_path / "imb.txt", INTEL_TEXT))
    assert (output.suite, output.version) == (INTEL, "2021.3")
    rows = [(mean.operation, mean.form, mean.size_bytes, mean.ranks, mean.mean_s) for mean in output.means]
    assert rows == [
        ("Alltoall", "blocking", 1, 2, pytest.approx(3.36e-6)),
        ("Alltoall", "blocking", 1, 4, pytest.approx(4.36e-6)),
        ("Barrier", "blocking", 0, 4, pytest.approx(22.94e-6)),
        ("Allreduce", "nonblocking", 4, 4, pytest.approx(2.2e-6)),
    ]
    assert {mean.run for mean in output.means} == {0}
    assert output.notes == (
        "line 8 of 0 bytes, for which nothing is called, left out",
        "the time is t_pure[usec]; t_ovrl[usec] has what was computed meanwhile, too",
    )
    assert len(read_output(DATA / "osu_latency.txt").means) >= 20
    assert {mean.operation for mean in read_output(DATA / "imb_mpi1.txt").means} == {"PingPong", "Allreduce"}
    assert {(mean.operation, mean.form) for mean in read_output(DATA / "osu_bandwidth.txt").means} == {
        ("Bandwidth", "rate")
    }


def test_one_run_of_each_library_shows_no_difference_however_large(tmp_path: Path) -> None:
    left, right = repeated(tmp_path / "a.txt", 1, 1, 1), repeated(tmp_path / "b.txt", 3, 1, 2)
    found = outputs(left, right)
    assert [row.outcome for row in found.verdicts] == ["untested", "untested"]
    assert "b took 2.9" in found.answer, "what was seen is said, though it is not tested"
    assert [row.ratio for row in found.verdicts] == pytest.approx([3, 3], rel=0.1)
    assert any("no difference can be shown" in line for line in found.warnings)
    assert any("do not say how many ranks" in line for line in found.warnings)
    assert found.to_dict()["ranks"] is None


def test_repeated_runs_are_compared_as_mpiruns_are(tmp_path: Path) -> None:
    left, right = repeated(tmp_path / "a.txt", 1, 10, 1), repeated(tmp_path / "b.txt", 1.2, 10, 2)
    found = outputs(left, right, left_label="old", right_label="new")
    assert [(row.outcome, row.left_mpiruns) for row in found.verdicts] == [("left faster", 10)] * 2
    # Of the C(20, 10) arrangements the two clearest; of two rows both are as clear.
    assert found.verdicts[0].p_corrected == pytest.approx(2 / 184_756)
    assert all(row.low < 1.2 < row.high for row in found.verdicts)
    assert not any("no difference can be shown" in line for line in found.warnings)
    write_report(found, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "lepaute compare old=a.txt new=b.txt" in page
    assert "there is nothing to filter" in page


def test_rows_of_several_numbers_of_ranks_are_kept_apart(tmp_path: Path) -> None:
    left = written(tmp_path / "a.txt", INTEL_TEXT)
    found = outputs(left, written(tmp_path / "b.txt", INTEL_TEXT.replace("3.36", "4.36")))
    assert {row.operation for row in found.verdicts} == {
        *("Alltoall, 2 ranks", "Alltoall, 4 ranks", "Barrier, 4 ranks", "Allreduce, 4 ranks")
    }
    assert any("follow each other without a synchronisation" in line for line in found.warnings)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("4.34  ", "4.3x  "), r"osu.txt:6: '4.3x' is not a number; the file is damaged"),
        (("4.60 ", "nan  "), r"osu.txt:6: "),
        (("1000\n", "9" * 5000 + "\n"), r"osu.txt:6: "),
        (("4.34  ", "-4.34 "), r"osu.txt:6: "),
        (("1200.00           1300.00         100", ""), r"osu.txt:7: has 2 columns where the heading has 5"),
        (("# OSU", "# OTHER"), "is no output of the OSU micro-benchmarks or the Intel MPI Benchmarks"),
        (("# OSU MPI Latency", "# Intel(R) MPI Benchmarks 2021.3"), "has output of both"),
    ],
)
def test_damaged_outputs_end_with_the_line_that_is_wrong(damage, message, tmp_path, refusal_of):
    bad = written(tmp_path / "osu.txt", OSU_TEXT.replace(*damage))
    good = written(tmp_path / "good.txt", OSU_TEXT)
    with pytest.raises(InputError, match=message):
        read_output(bad)
    refusal_of("compare", good, bad)


def test_log_lines_among_the_rows_are_skipped_and_said_and_a_compressed_output_is_read(tmp_path: Path) -> None:
    left, right = repeated(tmp_path / "a.txt", 1, 8, 1), repeated(tmp_path / "b.txt", 1.5, 8, 2)
    plain = outputs(left, right)
    row = next(line for line in left.read_text().splitlines() if line[:1].isdigit())
    logged = left.read_text().replace(row, f"{row}\n2024-01-05 10:00:01 node1 kernel: create_qp failed", 1)
    number = logged.splitlines().index(row) + 2
    left.write_bytes(gzip.compress(logged.encode()))
    found = outputs(left, right)
    assert found.verdicts == plain.verdicts
    assert found.warnings[0] == f"a.txt: line {number} skipped, as something else wrote there"


def test_the_command_takes_outputs_and_refuses_what_does_not_go_together(tmp_path, json_of, output_of, refusal_of):
    left, right = repeated(tmp_path / "openmpi.txt", 1, 8, 1), repeated(tmp_path / "mpich.txt", 1.5, 8, 2)
    assert "openmpi is faster" in output_of("compare", left, right)
    assert json_of("compare", f"A={left}", f"B={right}", "--json")["left"] == "A"
    intel = written(tmp_path / "imb.txt", INTEL_TEXT)
    latency = DATA / "osu_latency.txt"
    copy = written(tmp_path / "copy.txt", left.read_text())
    for words, message in (
        ((left, intel), "time in different ways"),
        ((left, "openmpi"), "cannot be mixed"),
        ((left,), "two outputs of benchmarks are compared"),
        ((left, right, "--left", "A"), "leave out --left"),
        ((left, copy), "are the same output"),
        ((left, latency), "no benchmark and size in common"),
        ((f"A={left}", f"A={right}"), "both outputs are called A"),
    ):
        assert message in refusal_of("compare", *words)


def test_one_run_each_has_its_ratio_and_the_spread_that_is_printed(tmp_path, output_of):
    title = "# OSU MPI Broadcast Latency Test v7.4\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n"
    left = written(tmp_path / "a.txt", title + "8       10.00     8.00   20.00\n64     10.00     9.00   11.00\n")
    right = written(tmp_path / "b.txt", title + "8      240.00   200.00  280.00\n64     10.10     9.50   12.00\n")
    found = outputs(left, right)
    assert [found.sentence(row) for row in found.verdicts] == [
        "b took 24 times as long (by minima and maxima 10 to 35): one run each: not tested",
        "b took 1.01 times as long (by minima and maxima 0.86 to 1.33): one run each: not tested",
    ]
    assert found.answer.startswith("in both rows b took 1.01 to 24.0 times as long as a; not tested: one run each; ")
    assert found.to_dict()["rows"][0]["spread"] == [10.0, 35.0]
    found.write_report(tmp_path / "r.html")
    page = text_of((tmp_path / "r.html").read_text())
    assert "24 (by minima and maxima 10 to 35)–one run each: not tested" in page
    assert not re.search(r"p ≤ 0|Hodges|medians over mpiruns|with 95 % intervals", page)
    said = output_of("compare", left, right)
    assert re.search(r"8 B +10.0 µs +240 µs +24 \(by minima and maxima 10 to 35\)$", said, re.MULTILINE)
    assert not re.search("verdict|mpiruns", said)


def test_rates_are_compared_as_rates(tmp_path, output_of):
    """The ratio is of times as everywhere: half of the rate takes twice as long."""
    paths = []
    for name, rate in (("a", 12000), ("b", 6000)):
        rows = [f"4096 {rate * factor:.1f}" for factor in (0.98, 0.99, 1, 1.01, 1.02)]
        text = "\n".join(f"# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n{row}" for row in rows)
        paths.append(str(written(tmp_path / f"{name}.txt", text)))
    said = output_of("compare", *paths)
    assert re.search(r"Bandwidth +4 KiB +12,000 MB/s +6000 MB/s +2\.000 \(1\.9\d+ to 2\.\d+\) +a is faster", said)
    row = outputs(*paths).to_dict()["rows"][0]
    assert (row["ratio"], row["left_Bps"], row["right_Bps"]) == pytest.approx((2, 12e9, 6e9))


def test_libraries_are_no_outputs(tmp_path: Path) -> None:
    wrapper = written(tmp_path / "mpicc", "#!/bin/sh\n")
    wrapper.chmod(0o755)
    assert named_output(str(wrapper)) is None
    assert named_output("openmpi") is None
    assert named_output(f"old={tmp_path}") is None
    assert named_output("a.zip") is None
    assert named_output("x\0y") is None


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
    assert [text for _, text in Axis("", 0.5, 5e6, log=True, of_memory=True).ticks()][:3] == ["1 B", "16 B", "256 B"]
    assert [text for _, text in Axis("", 0.0, 15e3).ticks()] == ["0", "5000", "10 k", "15 k"]


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

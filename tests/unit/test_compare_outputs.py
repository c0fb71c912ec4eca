"""Two libraries by what the OSU and Intel MPI benchmarks print: rows, repeated runs, and what cannot be told."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.measure.compare.benchmark_output import INTEL, OSU, named_output, outputs, read_output
from lepaute.measure.compare.report import write_report

DATA = Path(__file__).resolve().parents[1] / "data" / "duration_tables"

OSU_TEXT = Path(__file__).parents[1].joinpath("data", "texts", "osu_with_warnings.txt").read_text()
INTEL_TEXT = Path(__file__).parents[1].joinpath("data", "texts", "imb_several.txt").read_text()


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


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


def test_rows_of_intel_are_read_with_their_ranks(tmp_path: Path) -> None:
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


def test_outputs_of_real_runs_are_read() -> None:
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
    right = written(tmp_path / "b.txt", INTEL_TEXT.replace("3.36", "4.36"))
    found = outputs(left, right)
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


def test_one_run_each_has_its_ratio_and_the_spread_that_is_printed(tmp_path: Path) -> None:
    title = "# OSU MPI Broadcast Latency Test v7.4\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n"
    left = written(tmp_path / "a.txt", title + "8       10.00     8.00   20.00\n64     10.00     9.00   11.00\n")
    right = written(tmp_path / "b.txt", title + "8      240.00   200.00  280.00\n64     10.10     9.50   12.00\n")
    found = outputs(left, right)
    assert [found.sentence(row) for row in found.verdicts] == [
        "b took 24 times as long (by minima and maxima 10 to 35): one run each: not tested",
        "b took 1.01 times as long (by minima and maxima 0.86 to 1.33): one run each: not tested",
    ]
    assert found.answer.startswith("of 2 rows, b took 1.01 to 24.0 times as long, none is tested: one run each; ")
    assert found.to_dict()["rows"][0]["spread"] == [10.0, 35.0]
    found.write_report(tmp_path / "r.html")
    assert "24 (by minima and maxima 10 to 35)" in (tmp_path / "r.html").read_text()


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

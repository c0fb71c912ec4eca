"""Comparisons in CI: baselines, gates, files for servers; and guidelines of performance."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
from support_comparisons import World, campaign

from lepaute.cli.compare_text import answer_of
from lepaute.cli.main import main
from lepaute.measure.compare.guidelines import check_guidelines, sizes_for
from lepaute.measure.compare.verdicts import verdicts
from lepaute.measure.compare.wording import gate
from lepaute.measure.fit import segment
from lepaute.measure.fit.duration_tables import read_durations
from lepaute.measure.fit.segment_report import sentence

DAY = 24


def test_what_a_gate_says_it_would_have_seen_it_sees_four_times_in_five() -> None:
    rng = np.random.default_rng(12)
    seen = trials = 0
    for _ in range(30):
        state = rng.bit_generator.state
        quiet = gate(verdicts(World().summaries(rng, 1, 6, 2), "a", "b"), "b", 0.02)
        smallest = quiet.smallest_seen(quiet.rows[0][1])
        assert 0.02 < smallest < 0.3
        rng.bit_generator.state = state
        rng.normal(size=7)  # other noise
        world = World(effect=float(np.log1p(smallest)))
        trials += 1
        seen += gate(verdicts(world.summaries(rng, 1, 6, 2), "a", "b"), "b", 0.02).status() == 1
    assert 0.6 * trials <= seen


def test_a_build_is_compared_with_its_baseline_and_fewer_days_fail_none(tmp_path, capsys, refusal_of):
    days = [str(campaign(tmp_path / f"d{day}.zip", ("mpi", "other"), session=DAY * day).path) for day in range(5)]
    build, baseline = str(tmp_path / "new.zip"), [word for day in days for word in ("--baseline", day)]
    campaign(Path(build), ("x", "mpi"), session=DAY * 9)  # 35 % slower in Bcast
    limit = ["--right", "mpi", "--fail-if-slower", "5%"]
    assert main(["compare", build, *baseline, *limit]) == 1
    printed = capsys.readouterr()
    assert "mpi is slower by more than 5 % in 1 row: Bcast of 8 B; smallest slowdown" in printed.err
    assert "against 5 days of baselines" in printed.out
    assert main(["compare", build, *baseline[:6], *limit]) == 0
    why = "this cannot fail a build: 3 days of baselines, and 4 are needed; mpi is not shown"
    assert why in capsys.readouterr().err
    assert main(["compare", build, *baseline[:6], *limit, "--strict"]) == 3
    again = str(campaign(tmp_path / "again.zip", ("mpi", "other"), session=1).path)
    assert main(["compare", build, *baseline[:6], "--baseline", again, *limit]) == 0
    assert main(["compare", build, days[0], *baseline]) == 2
    assert "name that of the baseline with --left" in refusal_of("compare", build, *baseline)
    loud = [
        str(campaign(tmp_path / f"l{day}.zip", ("mpi", "x"), session=DAY * day, disturbed=True).path) for day in (1, 2)
    ]
    assert "all mpiruns of its days were disturbed; give archives of quiet days" in refusal_of(
        "compare", build, "--baseline", loud[0], "--baseline", loud[1], "--right", "mpi"
    )
    missing = str(tmp_path / "measured.zip")
    assert "quiet days" in refusal_of("compare", "x=openmpi", "--baseline", loud[0], "-o", missing)
    assert not Path(missing).exists()  # refused before anything is measured
    page = tmp_path / "r.html"
    assert main(["compare", build, *baseline, "--right", "mpi", "--report", str(page)]) == 0
    assert "by Student" in page.read_text()


def test_campaigns_that_were_not_in_turns_cannot_fail_a_build(tmp_path, capsys):
    last_week, now = tmp_path / "a.zip", tmp_path / "b.zip"
    campaign(last_week, ("mpi", "x"))
    campaign(now, ("y", "mpi"), session=DAY * 7, blocks=12)  # 35 % slower, by the library or the day
    words = [str(last_week), str(now), "--left", "mpi (a)", "--right", "mpi (b)", "--fail-if-slower", "5%"]
    assert main(["compare", *words]) == 0
    assert "this cannot fail a build: the libraries were not measured in turns; mpi (b) is" in capsys.readouterr().err
    assert main(["compare", *words, "--strict"]) == 3


def test_files_for_ci_have_every_row_and_what_fails_first(tmp_path, capsys):
    path, junit, summary = tmp_path / "c.zip", tmp_path / "j.xml", tmp_path / "s.md"
    lacking = {"lacking": {"Scan (blocking)": "the library has no MPI_Scan"}}
    campaign(path, blocks=12, about={"libraries": [{"label": "openmpi"}, {"label": "mpich", **lacking}]})
    words = ["compare", str(path), "--fail-if-slower", "20%", "--junit", str(junit), "--markdown", str(summary)]
    assert main([*words, "--annotations"]) == 5
    missing, slower = [line for line in capsys.readouterr().err.splitlines() if line.startswith("::error title=mpich")]
    assert "::Scan is missing in mpich" in missing
    assert "::Bcast of 8 B: " in slower
    suite = ElementTree.parse(junit).getroot()[0]
    assert [suite.get(key) for key in ("tests", "errors", "failures", "skipped")] == ["3", "1", "1", "0"]
    assert [(case.get("name"), [part.tag for part in case]) for case in suite.findall("testcase")] == [
        ("Scan", ["error", "system-out"]),
        ("Allreduce of 8 B", ["system-out"]),
        ("Bcast of 8 B", ["failure", "system-out"]),
    ]
    first, *rows = summary.read_text().splitlines()
    assert first.startswith("### Scan is missing in mpich; of 2 rows, openmpi is faster in 1")
    assert next(row for row in rows if row.startswith("| :x:")).startswith("| :x: | Bcast | 8 B |")
    assert main([*words, "--force"]) == 5
    assert summary.read_text().count("### Scan is missing") == 2
    page = summary.read_text()
    campaign(tmp_path / "d.zip", ("a|b`<img>", "b"))
    assert main(["compare", str(tmp_path / "d.zip"), "--markdown", str(summary)]) == 0
    assert "a\\|b\\`\\<img\\>" in summary.read_text()[len(page) :]


def status(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["compare", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_pipeline_stops_where_a_row_is_shown_to_be_slower_by_more_than_allowed(tmp_path, capsys):
    path = tmp_path / "c.zip"
    campaign(path, blocks=12)  # the second library takes 35 % longer for Bcast, and as long for Allreduce
    code, _, said = status(capsys, path, "--fail-if-slower", "20%")
    assert (code, said.partition(";")[0]) == (1, "mpich is slower by more than 20 % in 1 row: Bcast of 8 B")
    code, _, said = status(capsys, path, "--fail-if-slower", "60%")
    assert (code, said.partition(";")[0]) == (0, "mpich is slower by more than 60 % in none of 2 rows")
    assert "; smallest slowdown that would be seen with a chance of 80 %: " in said


def test_what_is_undecided_is_said_and_has_a_status_of_its_own_where_that_is_wanted(tmp_path, capsys):
    many, few = (tmp_path / f"{blocks}.zip" for blocks in (12, 4))
    for path in (many, few):
        campaign(path, blocks=int(path.stem))
    for path, share, options, wanted, words in (
        (many, "35%", (), 0, "undecided: 1 row: Bcast"),
        (many, "35%", ("--strict",), 3, "undecided: 1 row: Bcast"),
        (few, "5%", (), 3, "not tested: 2 rows: Allreduce"),
    ):
        code, _, said = status(capsys, path, "--fail-if-slower", share, *options)
        assert code == wanted, said
        assert f"mpich is not shown to be slower by more than {share[:-1]} %; {words}" in said


def test_rows_are_slower_undecided_or_neither() -> None:
    rng = np.random.default_rng(4)
    slow = verdicts(World(effect=0.2, of_mpirun=0.005).summaries(rng, 2, 2, 4), "a", "b")
    assert len(gate(slow, "b", 0.05).of("for")) == 2
    assert len(gate(slow, "b", 0.5).of("against")) == 2
    equal = verdicts(World(of_mpirun=0.1).summaries(rng, 2, 2, 4), "a", "b")
    assert gate(equal, "b", 0.01).decision.answer == "undecided"
    assert gate((), "b", 0.01).decision.status("for") == 3, "of no row nothing is known"


def test_several_libraries_stand_in_one_table_beside_the_first(tmp_path, capsys):
    path = tmp_path / "c.zip"
    campaign(path, ("plain", "slow", "other"), blocks=12)
    code, table, _ = status(capsys, path)
    assert code == 0
    answers, (heading, *rows) = table.splitlines()[:2], table.splitlines()[-3:]
    assert heading.split() == ["operation", "size", "plain", "slow", "other"]
    assert [row.split()[0] for row in rows] == ["Allreduce", "Bcast"]
    assert [answer.split(",")[1] for answer in answers] == [" plain is faster in 1", " plain is faster in 0"]
    found = json.loads(status(capsys, path, "--left", "other", "--json")[1])
    assert found["reference"] == "other"
    assert [one["right"] for one in found["comparisons"]] == ["plain", "slow"]
    assert status(capsys, path, "--csv", tmp_path / "r.csv")[0] == 2


def test_reports_are_rows_a_table_for_latex_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.zip"
    campaign(path, ("open_mpi", "mpich"), blocks=12)
    tables = ("--csv", tmp_path / "r.csv", "--latex", tmp_path / "r.tex")
    for name, others in (("r.png", tables), ("r.svg", ()), ("r.pdf", ())):
        code, _, said = status(capsys, path, "--plot", tmp_path / name, *others)
        assert code == 0, said
    table = (tmp_path / "r.tex").read_text()
    assert r"operation & size & open\_mpi & mpich &" in table
    assert table.count(r"\\") == 3
    assert (tmp_path / "r.csv").read_text().count("\n") == 3
    heads = {"r.png": b"\x89PNG", "r.svg": b"<?xml", "r.pdf": b"%PDF"}
    assert all((tmp_path / name).read_bytes().startswith(head) for name, head in heads.items())


def measured(times_s: dict[tuple[str, int], float], mpiruns: int = 12) -> pandas.DataFrame:
    rng = np.random.default_rng(4)
    return pandas.DataFrame(
        [
            {"library": "a", "block": mpirun, "mpirun": mpirun, "operation": operation, "form": "blocking"}
            | {"size_bytes": size, "median_s": time_s * np.exp(common + rng.normal(0, 0.02))}
            for mpirun in range(mpiruns)
            for common in [rng.normal(0, 0.3)]
            for (operation, size), time_s in times_s.items()
        ]
    )


@pytest.mark.parametrize(
    ("times_s", "ranks", "mock_up"),
    [
        ({("Allreduce", 64): 9e-6, ("Reduce", 64): 3e-6, ("Bcast", 64): 4e-6}, 4, "Reduce + Bcast"),
        ({("Barrier", 0): 9e-6, ("Allreduce", 8): 3e-6}, 4, "Allreduce"),
        ({("Allgather", 8): 9e-6, ("Gather", 8): 2e-6, ("Bcast", 32): 3e-6}, 4, "Gather + Bcast"),
        ({("Alltoall", 8): 9e-6, ("Scatter", 8): 2e-6}, 4, "Scatter from each rank"),
        ({("Bcast", 8): 9e-6, ("Bcast", 64): 3e-6}, 4, "Bcast(64)"),
    ],
)
def test_a_violation_names_the_mock_up_that_is_faster_and_what_it_would_save(times_s, ranks, mock_up):
    tested = check_guidelines(measured(times_s), "a", ranks)
    assert [(each.mock_up, each.is_violated) for each in tested if each.is_violated] == [(mock_up, True)]
    (operation, size), cost_s = next(iter(times_s)), tested[0].excess_s
    assert answer_of(tested, "a").startswith(f"a violates 1 of {len(tested)} performance guideline")
    assert f"{operation}{f' of {size} B' if size else ''} takes " in answer_of(tested, "a")
    assert cost_s > 0


def test_a_library_that_keeps_them_and_too_few_mpiruns_are_said_and_sizes_hold_blocks_of_all_ranks() -> None:
    kept = {("Allreduce", 64): 5e-6, ("Reduce", 64): 3e-6, ("Bcast", 64): 4e-6}
    tested = check_guidelines(measured(kept), "a", 4)
    assert answer_of(tested, "a") == "a is not shown to violate any of 2 performance guidelines"
    few = answer_of(check_guidelines(measured(kept, 3), "a", 4), "a")
    assert few == "nothing can be shown of 2 guidelines by 3 undisturbed mpiruns of a: 6 are needed"
    assert answer_of((), "a").startswith("no guideline can be tested of a")
    assert sizes_for(4) == "8,32,512,2048,32768,131072"


def test_the_command_judges_each_library_of_an_archive(tmp_path, capsys, output_of):
    path = tmp_path / "c.zip"
    campaign(path, sizes=(8, 64), blocks=12)
    assert output_of("compare", "--guidelines", path, "--left", "openmpi").startswith(
        "Openmpi is not shown to violate any of 2 performance guidelines"
    )
    assert main(["compare", "--guidelines", str(path), "--left", "mpich", "--json"]) == 0
    assert {one["mock_up"] for one in json.loads(capsys.readouterr().out)["guidelines"]} == {
        "Allreduce(64)",
        "Bcast(64)",
    }
    campaign(tmp_path / "d.zip", disturbed=True)
    assert output_of("compare", "--guidelines", tmp_path / "d.zip", "--details").startswith(
        "7 of 7 mpiruns of openmpi were disturbed: no guideline is tested"
    )
    assert main(["compare", "--guidelines", str(path), str(path)]) == 2
    assert main(["compare", "--guidelines", str(path), "--margin", "3%"]) == 2


def test_a_size_that_takes_longer_than_a_larger_one_is_the_answer_of_segment(tmp_path: Path) -> None:
    rows = [(2**power, 10 + 2**power / 1e4) for power in range(17)]
    rows[15] = (2**15, 20 * rows[16][1])
    path = tmp_path / "osu.txt"
    lines = [f"{size} {time:.2f}" for size, time in rows]
    path.write_text("\n".join(["# OSU MPI Allreduce Latency Test v7.4", "# Size   Avg Latency(us)", *lines]))
    (table,) = read_durations(path)
    said = sentence(table, segment(table.x, table.duration_s))
    assert said.startswith("32 KiB takes 20.0 times as long as 64 KiB; ")
    assert "no breakpoint" not in said

"""A pipeline that stops where a library became slower, and several libraries beside a reference."""

import json
from pathlib import Path

import numpy as np
import pytest
from support_comparisons import World, campaign

from lepaute.cli.main import main
from lepaute.measure.compare.verdicts import verdicts
from lepaute.measure.compare.wording import gate


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
    for options, refused in (
        (("--strict",), "--strict is about --fail-if-slower"),
        (("--fail-if-slower", "-1%"), "--fail-if-slower"),
        (("--correction", "none"), "--correction is 'none'; it must be one of fdr, holm"),
    ):
        code, _, said = status(capsys, path, *options)
        assert code == 2
        assert refused in said


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
    for option, name in (("csv", "r.csv"), ("latex", "r.tex"), ("plot", "r.png"), ("plot", "r.svg"), ("plot", "r.pdf")):
        code, _, said = status(capsys, path, f"--{option}", tmp_path / name)
        assert code == 0, said
    table = (tmp_path / "r.tex").read_text()
    assert r"operation & size & open\_mpi & mpich &" in table
    assert table.count(r"\\") == 3
    assert (tmp_path / "r.csv").read_text().count("\n") == 3
    heads = {"r.png": b"\x89PNG", "r.svg": b"<?xml", "r.pdf": b"%PDF"}
    assert all((tmp_path / name).read_bytes().startswith(head) for name, head in heads.items())
    code, _, said = status(capsys, path, "--report", tmp_path / "r.txt")
    assert (code, "the name must end in .html" in said) == (2, True)

"""`lepaute trace`: what each command writes, and one line for what cannot be."""

from pathlib import Path

import pytest
from oracles.traces_by_hand import exchange, hpl_like

from lepaute.cli.main import main
from lepaute.simulate.trace import write_trace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_trace(hpl_like(ranks=4, steps=6), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_show_names_the_run_and_its_calls(file, output_of):
    told = output_of("trace", "show", file)
    assert told.startswith("HPL N = 384, NB = 64, 4 × 1, recorded: 96 calls in 26.9 s on 4 ranks\n")
    assert "steps:    0 to 5" in told
    assert any(line.split()[:3] == ["dgemm", "kernel", "24"] for line in told.splitlines())


def test_each_command_writes_its_file(file, tmp_path, output_of, json_of):
    assert main(["trace", "gantt", str(file), "-o", str(tmp_path / "g.png"), "--ranks", "0,2-3", "--steps", "1:2"]) == 0
    output_of("trace", "perfetto", file, "-o", tmp_path / "p.json")
    assert json_of("trace", "breakdown", file, "--json", "--plot", tmp_path / "b.png")["all"][
        "compute"
    ] == pytest.approx(6 * (1 + 4 * 3))
    assert {path.name for path in tmp_path.iterdir()} == {"t.parquet", "g.png", "p.json", "b.png"}


def test_compare_exits_with_1_where_it_was_asked_for_sameness_and_finds_none(file, tmp_path, capsys, output_of):
    write_trace(hpl_like(ranks=4, steps=5), tmp_path / "other.parquet")
    both = [str(file), str(tmp_path / "other.parquet")]
    assert main(["trace", "compare", str(file), str(file), "--same"]) == 0
    output_of("trace", "compare", *both)
    assert main(["trace", "compare", *both, "--same", "--plot", str(tmp_path / "c.png")]) == 1
    told = capsys.readouterr()
    assert told.err == "warning: the traces are from different runs: n: 384 and 320\n"
    assert "order of calls: differs on 4 ranks, first" in told.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["gantt", "FILE", "-o", "g.png", "--ranks", "3-1"], "--ranks is '3-1'; a range must increase, such as 1-3"),
        (["gantt", "FILE", "-o", "g.png", "--ranks", "9"], "rank 9 is not in the trace; it holds 0-3"),
        (["gantt", "FILE", "-o", "g.png", "--steps", "1", "--from", "0"], "give either --steps, or --from and --to"),
        (["gantt", "FILE"], "missing option '--output' / '-o'; see"),
        (["perfetto", "FILE", "-o", "none/p.json"], "--output none/p.json: there is no folder none"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(file, monkeypatch, refusal_of, words, complaint):
    monkeypatch.chdir(file.parent)
    line = refusal_of("trace", *(str(file) if word == "FILE" else word for word in words))
    assert line.startswith(f"lepaute: {complaint}")
    assert {path.name for path in file.parent.iterdir()} == {"t.parquet"}


def test_an_empty_trace_is_shown_and_refused_for_a_picture(tmp_path, refusal_of, output_of):
    whole = exchange()
    write_trace(whole.where(whole.rank > 9), tmp_path / "t.parquet")
    for command in ("show", "breakdown"):
        output_of("trace", command, tmp_path / "t.parquet")
    refusal = refusal_of("trace", "gantt", tmp_path / "t.parquet", "-o", tmp_path / "g.png")
    assert refusal == "lepaute: the trace is empty: nothing to draw\n"

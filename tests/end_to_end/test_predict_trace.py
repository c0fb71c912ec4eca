"""`lepaute predict hpl` with a trace: files, what is chosen, what is told."""

import json
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.simulate import tracing
from lepaute.simulate.trace import read_trace

SMALL = ["predict", "hpl", "-p", "dahu", "--n", "1500", "--grid", "2x2", "--runs", "2"]


def test_one_command_writes_the_trace_its_picture_and_perfetto_s_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--trace", "t.parquet", "--gantt", "t.png", "--perfetto", "t.json", "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert [line.partition(":")[0] for line in err.splitlines()] == ["t.parquet", "t.json", "t.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.json", "t.parquet", "t.png"]
    assert Path("t.png").read_bytes().startswith(b"\x89PNG")

    trace = read_trace(Path("t.parquet"))
    assert trace.ranks == [0, 1, 2, 3]
    assert trace.end_s.max() == pytest.approx(answer["runs"][0]["time_s"])
    told = trace.metadata
    assert (told["source"], told["application"], told["seed"], told["ranks"]) == ("simulation", "hpl", 1, 4)
    assert (told["platform"], told["platform_sha256"]) == (answer["platform"], answer["platform_sha256"])
    assert (told["parameters"], told["nodes"], told["version"]) == (answer["parameters"], [0] * 4, answer["version"])
    assert len(told["all_ranks"]["step_s"]) == 12

    events = json.loads(Path("t.json").read_text())["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    assert len(calls) == len(trace)
    assert {"dgemm", "MPI_Send", "MPI_Recv", "MPI_Iprobe", "pdfact", "pdupdate", "bcast", "pdtrsv"} <= {
        call["name"] for call in calls
    }
    messages = [event for event in events if event["ph"] == "s"]
    assert len(messages) == answer["simulation"]["messages"]


def test_the_trace_of_a_large_run_is_a_part_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tracing, "MAX_ROWS", 6000)
    assert main([*SMALL, "--trace", "t.parquet"]) == 0
    told = capsys.readouterr().err.splitlines()[0]
    assert "tracing 3 of 4 ranks (--trace-ranks chooses others), steps " in told
    trace = read_trace(Path("t.parquet"))
    assert trace.ranks == [0, 1, 2]
    assert len(trace) < 12_000
    assert main([*SMALL, "--trace", "t.parquet", "--force", "--trace-ranks", "3", "--trace-steps", "0-11"]) == 0
    assert "tracing" not in capsys.readouterr().err
    assert read_trace(Path("t.parquet")).ranks == [3]


def test_a_prediction_says_where_the_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--details"]) == 0
    where, after = (
        line.split(None, 1)
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(("  where", "          communication"))
    )
    assert where[0] == "where"
    assert where[1].startswith("computing ")
    assert "dgemm" in where[1]
    assert after[0] == "communication"
    assert "waiting for the other side" in after[1]
    shares = [float(text[1].split()[0 if text is after else 1]) for text in (where, after)]
    assert sum(shares) == pytest.approx(100.0, abs=0.11)

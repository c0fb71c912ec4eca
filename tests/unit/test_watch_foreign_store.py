"""Data from elsewhere in a store, added twice or refused; and what HPL prints as values."""

import datetime as dt
import os
import re
import time
from pathlib import Path

import pandas as pd
import pytest
from support_factors import calibration
from support_watch import MAPPING

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.watch import open as open_watch
from lepaute.watch.foreign import FORMATS, read_foreign
from lepaute.watch.judging.judge import judge
from lepaute.watch.store import open_store

DATA = Path(__file__).parents[1] / "data" / "watch"
GRID5000 = Path(__file__).parents[2] / "examples" / "watch" / "grid5000.yaml"
FILES = {
    "reframe": (DATA / "foreign" / "reframe_results.db", None),
    "hpl": (DATA / "foreign" / "hpccoutf.txt", None),
    "csv": (DATA / "three_nodes.csv", GRID5000),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_added_again_adds_nothing(kind: str, tmp_path: Path) -> None:
    path, mapping = FILES[kind]
    more = {"node": "n1"} if kind == "hpl" else {}
    values = read_foreign(path, kind, mapping=mapping, **more)
    with open_store(tmp_path / "store") as store:
        assert store.add_values(values) == len(values)
        assert store.add_values(read_foreign(path, mapping=mapping, **more)) == 0
        kept = store.values()
        assert len(kept) == len(values)
        assert (kept["state"] == "failed").sum() == (values["state"] == "failed").sum()
        assert set(kept["archive"]) == {""}


def test_values_of_a_mapped_file_are_tested() -> None:
    tests = judge(read_foreign(DATA / "three_nodes.csv", mapping=GRID5000), factors=["cpu_power_W"], windows=[1])
    assert len(tests) == 536
    assert (tests["missing"] == 0).sum() > 500


DAY_S = 86_400.0


def table(path: Path, *rows: str) -> Path:
    (path.parent / "mapping.yaml").write_text(MAPPING)
    path.write_text("\n".join(["node,cpu,job,date,a,b", *rows]) + "\n")
    return path


def refusal(folder: Path, *files: Path) -> str:
    """Of an ingest into a new store, which stays empty."""
    mapping = folder / "mapping.yaml"
    with lp.watch.open(folder / "store") as watch:
        with pytest.raises(InputError) as refused:
            watch.ingest(files, mapping=mapping if mapping.exists() else None)
        assert watch.store.values().empty
        assert watch.store.archives().empty
    return str(refused.value)


def test_a_file_with_a_job_of_the_future_is_refused_with_the_job_and_its_date(tmp_path: Path) -> None:
    ahead_s = time.time() + 300 * DAY_S
    date = dt.datetime.fromtimestamp(int(ahead_s), dt.UTC).strftime("%Y-%m-%d %H:%M")
    good = table(tmp_path / "good.csv", "1,0,7,86400,1,2")
    wrong = table(tmp_path / "wrong.csv", "1,0,8,172800,1,2", f"1,0,9,{ahead_s},1,2")
    said = refusal(tmp_path, good, wrong)
    assert said.startswith(f"{wrong}: job 9 starts in the future, at {date} UTC")
    assert "correct the date, or set the clock of this machine" in said


def test_clocks_may_differ_by_a_day(tmp_path: Path) -> None:
    file = table(tmp_path / "day.csv", f"1,0,7,{time.time() + DAY_S - 60},1,2")
    with lp.watch.open(tmp_path / "store") as watch:
        assert watch.ingest([file], mapping=tmp_path / "mapping.yaml").values == 2


def test_an_archive_of_the_future_is_refused_with_its_date(tmp_path: Path) -> None:
    start = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    phases = [{"name": "run", "start": start.isoformat(), "duration_s": 60.0, "status": "done"}]
    path = calibration(tmp_path / "a.zip", phases=phases)
    assert f"{path}: job" in (said := refusal(tmp_path, path))
    assert f"{start:%Y-%m-%d %H:%M} UTC" in said
    assert "measure again" in said


def test_two_files_with_other_values_of_one_job_are_named(tmp_path: Path) -> None:
    one = table(tmp_path / "one.csv", "1,0,7,86400,1,2", "2,0,7,86400,1,2")
    other = table(tmp_path / "other.csv", "2,0,8,86400,1,2", "2,0,7,86400,1,3")
    said = refusal(tmp_path, one, other)
    assert re.match(rf"{one} and {other}: b_W of node '2', cpu 0, job 7 is in both, and not the same; leave", said)


OUTPUTS = Path(__file__).parents[1] / "data"
LINE = "WR12R2C2        2000   128     1     2               0.09              5.998e+01"
DEFAULT_HEADING = "T/V                N    NB     P     Q               Time                 Gflops"
START = "HPL_pdgesv() start time Mon Sep  7 07:24:05 2026\n\nHPL_pdgesv() end time   Mon Sep  7 07:24:06 2026\n"
PASSED = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.14792654e-03 ...... PASSED"


def read(folder: Path, text: str, node: str = "n1") -> pd.DataFrame:
    (folder / "HPL.out").write_text(text)
    return read_foreign(folder / "HPL.out", "hpl", cluster="c", node=node)


def refusal_of_output(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as error:
        read(folder, text)
    return str(error.value).replace(str(folder), "")


def test_a_column_more_before_n_does_not_shift_the_others(tmp_path: Path) -> None:
    """AMD's SWP: 1915.7 Gflop/s in 628.07 s; by position the rate would be the time."""
    published = (OUTPUTS / "hpl_out/amd_swp_column.out").read_text()
    for text in (published, published.replace("WRC06R3C38 ", "WRC06R3C38c")):
        assert list(read(tmp_path, text)["value"]) == [pytest.approx(1.9157e12, rel=1e-4)]
    other = published.replace(" 211 ", " 212 ")
    assert set(read(tmp_path, other)["stratum"]) != set(read(tmp_path, published)["stratum"])
    without_heading = "".join(line for line in published.splitlines(keepends=True) if "SWP" not in line)
    assert ":5: 1 s and 628.07 Gflop/s are not of one run with N = 211" in refusal_of_output(tmp_path, without_heading)
    no_rate = published.replace("Gflops", "Tflops")
    assert ":6: the heading above the result has 'Gflops' not exactly once" in refusal_of_output(tmp_path, no_rate)


@pytest.mark.parametrize(
    "prefix", ["", "0: ", "[1,0]<stdout>:", "HPL.out:47:", "2026-01-02T03:04:05Z ", "n1 | ", "  47\t"]
)
def test_what_launchers_grep_and_loggers_put_before_a_line_does_not_matter(tmp_path: Path, prefix: str) -> None:
    lines = f"{DEFAULT_HEADING}\n{LINE}\n{START}".splitlines()
    assert len(read(tmp_path, "\n".join(prefix + line for line in lines))) == 1


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (f"HPL_AI   {LINE}", ":1: is a result of HPL_AI, which computes in mixed precision and is not comparable"),
        (f"a.out:HPL_AI   {LINE}", ":1: is a result of HPL_AI"),
        (f"HPL-MxP-NVIDIA 24.9.0  -- NVIDIA accelerated\n{LINE}", ":2: is a result of HPL-MxP"),
        (f"rocHPL-MxP 1.0\n{LINE}", ":2: is a result of rocHPL-MxP"),
        (f"HPL_XY   {LINE}", ":1: 'HPL_XY' stands before the result; that program's results are not known"),
        ("{0}\n" + LINE.replace("WR12R2C2", "XR12R2C2"), ":2: 'XR12R2C2' stands where HPL has its code"),
        ("{0}\n" + LINE.replace("WR12R2C2", "HPL_XY WQ3 "), ":2: 'WQ3' stands where HPL has its code"),
        (LINE.replace("0.09", "0.19"), ":1: 0.19 s and 5.998e+01 Gflop/s are not of one run with N = 2000"),
    ],
)
def test_results_of_programs_that_are_not_known_are_refused_by_name(tmp_path: Path, lines: str, problem: str) -> None:
    assert problem in refusal_of_output(tmp_path, lines.format(DEFAULT_HEADING) + f"\n{START}")


def test_results_without_a_date_take_the_one_given_or_the_file_s(tmp_path, capsys):
    text = (OUTPUTS / "hpl_out/nvidia_no_date.out").read_text()
    assert "HPL.out:5: the result has no date" in refusal_of_output(tmp_path, text)
    file = tmp_path / "HPL.out"
    os.utime(file, (1e9, 1e9))
    words = ["watch", "ingest", str(file), "--node", "n", "--cluster", "c", "--json", "--store"]
    for option, date_s in ((["--date", "2026-01-31T07:24"], 1769844240.0), (["--file-date"], 1e9)):
        assert main([*words, str(tmp_path / option[0]), *option]) == 0
        with open_watch(tmp_path / option[0]) as watch:
            assert list(watch.store.values()["started_s"]) == [date_s]
    capsys.readouterr()
    for options, problem in (
        (["--date", "31.1.2026"], "--date: the date is '31.1.2026'; it must be written as"),
        (["--date", "2026-01-31", "--file-date"], "--date and --file-date are both given"),
        (["--date", "2999-01-31"], "which is not of the years 1970 to 2199"),
    ):
        assert main([*words, str(tmp_path / "none"), *options]) == 2
        assert problem in capsys.readouterr().err
    (tmp_path / "night.zip").touch()
    assert main([*words, str(tmp_path / "none"), "--date", "2026-01-31", str(tmp_path / "night.zip")]) == 2
    assert "night.zip: --node is for files of other programs" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    file.write_text(f"{LINE}\n{START}")
    dated = read_foreign(file, node="n", date_s=1e9)
    assert list(dated["started_s"]) != [1e9]  # a date in the file is the right one
    assert dated.attrs["omitted"] == ["1 date that is given, of a result with its own"]
    with pytest.raises(InputError, match="a date is given, and results of reframe have their own"):
        read_foreign(OUTPUTS / "watch/foreign/reframe_results.db", file_date=True)


def test_a_failed_residual_check_is_a_failed_job(tmp_path: Path) -> None:
    second = START.replace("07:24:05", "08:00:00")
    values = read(tmp_path, f"{LINE}\n{START}\n{PASSED.replace('PASSED', 'FAILED')}\n{LINE}\n{second}\n{PASSED}\n")
    assert list(values["state"]) == ["failed", "done"]
    assert values["value"].isna().tolist() == [True, False]


def test_runs_of_other_sizes_or_parameters_are_other_strata_and_a_file_that_grew_keeps_its_jobs(tmp_path: Path) -> None:
    first = f"SWAP   : Mix (threshold = 64)\n{LINE}\n{START}"
    later = START.replace("Sep  7", "Sep  8")
    same = read(tmp_path, f"{first}{LINE}\n{later}")
    assert same["stratum"].nunique() == 1
    assert same["job"].nunique() == 2
    pd.testing.assert_frame_equal(same[:1], read(tmp_path, first))
    for line in (LINE.replace("12R2C2", "11R2C2"), LINE.replace(" 128 ", "  64 ")):
        assert read(tmp_path, f"{first}{line}\n{later}")["stratum"].nunique() == 2
    assert read(tmp_path, f"{first}SWAP   : Binary-exchange\n{LINE}\n{later}")["stratum"].nunique() == 2


def test_hpl_is_recognised_and_needs_its_node(tmp_path: Path) -> None:
    assert len(read_foreign(OUTPUTS / "watch/foreign/hpccoutf.txt", "HPL", node="n1")) == 1
    (tmp_path / "log").write_text(f"mpirun ...\n[1,0]<stdout>:{LINE}\n[1,0]<stdout>:{START}")
    assert len(read_foreign(tmp_path / "log", node="n[1-4]")) == 1
    with pytest.raises(InputError, match="HPL does not say on which node it ran; give the node"):
        read_foreign(tmp_path / "log")


def test_what_is_no_dated_result_of_a_run_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"HPL\.out:47: the result has no date, which HPL prints from version 2"):
        read_foreign(OUTPUTS / "hpl_out/HPL.out", node="n1")  # HPL 2.0
    assert (
        refusal_of_output(tmp_path, "") == "/HPL.out: has no value of any factor; give results of benchmarks that ran"
    )
    assert refusal_of_output(tmp_path, f"HPL, predicted by Lepaute 0.1\n{LINE}\n").startswith(
        "/HPL.out:1: holds predictions"
    )
    zero = LINE.replace("5.998e+01", "0.000e+00").replace("0.09", "0.00")
    assert refusal_of_output(tmp_path, f"\n{zero}\n{START}").startswith("/HPL.out:2: time and rate are zero")
    huge = LINE.replace("5.998e+01", "5.998e+999").replace("0.09", "0.00")
    assert ":1: Gflops is '5.998e+999', no such number" in refusal_of_output(tmp_path, f"{huge}\n{START}")
    assert ":1: the result has no date" in refusal_of_output(tmp_path, f"{LINE}\n{START.replace('Sep  7', 'Feb 31')}")
    assert ":1: the result has no date" in refusal_of_output(tmp_path, f"{LINE}\n{LINE}\n{START}")

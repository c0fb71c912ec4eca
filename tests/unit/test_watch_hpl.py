"""HPL's output as values to watch: a real hpccoutf.txt (HPCC 1.5.0), and lines as HPL 2.3 and NVIDIA print them."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.watch.foreign import read_foreign

DATA = Path(__file__).parents[1] / "data"
LINE = "WR12R2C2        2000   128     1     2               0.09              5.998e+01"
START = "HPL_pdgesv() start time Mon Sep  7 07:24:05 2026\n\nHPL_pdgesv() end time   Mon Sep  7 07:24:06 2026\n"
PASSED = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.14792654e-03 ...... PASSED"


def read(folder: Path, text: str, node: str = "n1") -> pd.DataFrame:
    (folder / "HPL.out").write_text(text)
    return read_foreign(folder / "HPL.out", "hpl", cluster="c", node=node)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as error:
        read(folder, text)
    return str(error.value).replace(str(folder), "")


def test_a_real_file_of_hpcc_has_the_time_of_its_section() -> None:
    values = read_foreign(DATA / "watch/foreign/hpccoutf.txt", node="n1")
    assert len(values) == 1
    row = values.iloc[0]
    assert (row["factor"], row["state"], row["node"], row["cpu"]) == ("hpl_rate_flops", "done", "n1", -1)
    assert row["value"] == pytest.approx(3.043e8, rel=1e-12)  # four digits of the rate, two of the time
    assert row["started_s"] == 1795419522.0


def test_a_result_of_hpl_2_3_is_dated_by_its_start(tmp_path: Path) -> None:
    values = read(tmp_path, f"{LINE}\n{START}\n{PASSED}\n")
    assert list(values["started_s"]) == [dt.datetime(2026, 9, 7, 7, 24, 5, tzinfo=dt.UTC).timestamp()]
    assert list(values["value"]) == [pytest.approx(59.98e9)]


def test_nvidias_code_of_the_algorithms_is_read(tmp_path: Path) -> None:
    line = "WC0           571392  1024     4     8        98.05       1.268e+06 ( 3.964e+04)"
    assert list(read(tmp_path, f"{line}\n\n{START}")["value"]) == [pytest.approx(1.268e15, rel=1e-3)]


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
    (tmp_path / "log").write_text(f"mpirun ...\n[1,0]<stdout>:{LINE}\n[1,0]<stdout>:{START}")
    assert len(read_foreign(tmp_path / "log", node="n[1-4]")) == 1
    with pytest.raises(InputError, match="HPL does not say on which node it ran; give the node"):
        read_foreign(tmp_path / "log")


def test_what_is_no_dated_result_of_a_run_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"HPL\.out:47: the result has no date: HPL prints one from version 2\.1 on"):
        read_foreign(DATA / "hpl_out/HPL.out", node="n1")  # HPL 2.0
    assert refusal(tmp_path, "") == "/HPL.out: has no value of any factor; give results of benchmarks that ran"
    assert refusal(tmp_path, f"HPL, predicted by Lepaute 0.1\n{LINE}\n").startswith("/HPL.out:1: holds predictions")
    zero = LINE.replace("5.998e+01", "0.000e+00").replace("0.09", "0.00")
    assert refusal(tmp_path, f"\n{zero}\n{START}") == "/HPL.out:2: 0.00 s and 0.000e+00 Gflop/s are no result of a run"
    huge = LINE.replace("5.998e+01", "5.998e+999").replace("0.09", "0.00")
    assert "has no value of any factor" in refusal(tmp_path, f"{huge}\n{START}")
    assert ":1: the result has no date" in refusal(tmp_path, f"{LINE}\n{START.replace('Sep  7', 'Feb 31')}")
    assert ":1: the result has no date" in refusal(tmp_path, f"{LINE}\n{LINE}\n{START}")

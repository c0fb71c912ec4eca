"""The published daily models of dgemm as factor values: what validation and replay read."""

import gzip
from pathlib import Path

from support.watch_data import MODEL_FACTORS, published_daily_models

from lepaute.watch.judging.judge import judge
from lepaute.watch.values import check_values

HEADER = (
    "node,cpu,date,start_time_unix_s,jobid,intercept,mnk,intercept_residual,mnk_residual,tvalue_mnk,"
    "tvalue_mnk_residual,avg_gflops,expfile_hash\n"
)


def daily_file(path: Path, first_day: int, days: int) -> Path:
    rows = [
        f"13,{cpu},2019-11-{first_day + day:02d},{1.5731e9 + 86_400 * (first_day + day)},{1_890_000 + first_day + day},"
        f"2.4e-06,{7.6e-11 + 1e-13 * (day % 3)},4e-07,2e-12,400,13,25.5,{first_day + day}abc\n"
        for day in range(days)
        for cpu in (0, 1)
    ]
    with gzip.open(path, "wt") as file:
        file.write(HEADER + "".join(rows))
    return path


def test_two_files_become_one_table_in_si_units_and_one_stratum(tmp_path: Path) -> None:
    slow, good = daily_file(tmp_path / "a.csv.gz", 1, 4), daily_file(tmp_path / "b.csv.gz", 5, 2)
    table = check_values(published_daily_models(slow, good))
    assert len(table) == 6 * 2 * len(MODEL_FACTORS)  # jobs, processors
    assert set(table["stratum"]) == {""}  # though each day has another hash of its file of sizes
    assert set(table["cluster"]) == {"dahu"}
    assert set(table.loc[table["factor"] == "dgemm_rate_flops", "value"]) == {25.5e9}  # 25.5 Gflop/s
    # the five days before a job are its reference, though they are in the other file
    assert judge(table, factors=["dgemm_mnk_s"], windows=(1,))["n"].max() == 5

"""Factors of archives whose observations are made up: values, processors, jobs, strata, and what is absent."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from support_factors import (
    CALL_S,
    RATE_S,
    SIZES,
    START_S,
    calibration,
    dgemm_rows,
    experiment,
    machine,
    metadata,
    samples,
)
from support_fit import message_rows, sentinel_rows

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.watch.factors import MODEL_FACTORS, factors_of, strata_of, why_strata_differ
from lepaute.watch.judging.judge import judge

DESIGN = "#@generator=x\n#@columns=kind:text,m:int,n:int,k:int\ndesign_row,kind,m,n,k\n" + "".join(
    f"{row},dgemm,{m},{n},{k}\n" for row, (m, n, k) in enumerate(SIZES)
)


def values(path: Path, cluster: str = "c") -> pandas.DataFrame:
    return factors_of(Archive.open(path), cluster)


def value(table: pandas.DataFrame, factor: str, node: str = "n1", cpu: int = 0) -> float:
    (found,) = table.loc[(table["factor"] == factor) & (table["node"] == node) & (table["cpu"] == cpu), "value"]
    return float(found)


def stratum(table: pandas.DataFrame, factor: str) -> str:
    (found,) = table.loc[table["factor"] == factor, "stratum"].unique()
    return str(found)


def expected_rate(socket: int) -> float:
    flop = sum(2.0 * m * n * k for m, n, k in SIZES)
    return flop / sum(RATE_S[socket] * m * n * k + CALL_S for m, n, k in SIZES)


def test_performance_is_the_work_of_all_calls_over_their_time_for_each_processor(tmp_path: Path) -> None:
    table = values(calibration(tmp_path / "a.zip", dgemm_rows(slower={("n2", 1): 1.1})))
    for node, cpu, slower in (("n1", 0, 1.0), ("n1", 1, 1.0), ("n2", 0, 1.0), ("n2", 1, 1.1)):
        assert value(table, "dgemm_rate_flops", node, cpu) == pytest.approx(expected_rate(cpu) / slower)
    at_size = 2.0 * 2048**3 / (RATE_S[0] * 2048**3 + CALL_S)
    assert value(table, "dgemm_2048_rate_flops") == pytest.approx(at_size)
    assert set(table["state"]) == {"done"}
    assert set(table["started_s"]) == {START_S}  # of the phase run, not of the wait for nodes
    assert set(table["cluster"]) == {"c"}


def test_the_fit_of_the_residuals_is_that_of_the_deviation_between_calls_of_a_size(tmp_path: Path) -> None:
    # The two cores of a processor differ by 2 % of every duration: sd of two values is their difference / sqrt 2.
    kernels = dgemm_rows()
    kernels.loc[kernels["cpu"] >= 2, "duration_s"] *= 1.02
    table = values(calibration(tmp_path / "a.zip", kernels))
    assert value(table, "dgemm_mnk_residual_s") == pytest.approx(RATE_S[0] * 0.02 / np.sqrt(2.0))


def test_of_attempts_that_were_made_again_only_the_last_counts(tmp_path: Path) -> None:
    once = values(calibration(tmp_path / "a.zip"))
    again = values(calibration(tmp_path / "b.zip", dgemm_rows(attempts=2)))
    assert value(again, "dgemm_rate_flops") == pytest.approx(value(once, "dgemm_rate_flops"))
    assert stratum(again, "dgemm_rate_flops") == stratum(once, "dgemm_rate_flops")


def test_only_the_probe_with_all_cores_busy_and_the_usual_content_counts(tmp_path: Path) -> None:
    own = dgemm_rows()
    others = [
        dgemm_rows(seed=2).assign(
            active_cores=1, active_socket_cores=1, duration_s=lambda rows: rows["duration_s"] / 3
        ),
        dgemm_rows(seed=3).assign(probe="hpl_steps_1x1", duration_s=lambda rows: rows["duration_s"] * 3),
        dgemm_rows(seed=4).assign(probe="dgemm_content", content="constant"),
        dgemm_rows(seed=5).assign(threads=2, duration_s=lambda rows: rows["duration_s"] / 2),
    ]
    for number, rows in enumerate(others, start=1):
        rows["start_s"] += 1000.0 * number
    table = values(calibration(tmp_path / "a.zip", pandas.concat([own, *others], ignore_index=True)))
    assert value(table, "dgemm_rate_flops") == pytest.approx(expected_rate(0))


def test_sentinels_and_messages_of_a_calibration_are_factors(tmp_path: Path) -> None:
    messages = message_rows().assign(host="n1", peer="n2", link="remote", distance="")
    sentinels = sentinel_rows([0.0] * 10, error=0.0).assign(host="n1", active_cores=2)
    table = values(calibration(tmp_path / "a.zip", tables={"p2p": messages, "sentinels": sentinels}))
    # calls of 5 ms that scatter by up to a few per cent above it
    assert value(table, "sentinel_rate_flops") == pytest.approx(2 * 1024 * 1024 * 128 / 5e-3, rel=0.02)
    # half of a round trip of 2 (1 us + size / 8 GB/s), 8 % longer in the mean
    assert value(table, "network_latency_s", "n1", -1) == pytest.approx(1e-6, rel=0.1)
    assert value(table, "network_bandwidth_B_per_s", "n1", -1) == pytest.approx(8e9 / 1.08, rel=0.05)
    assert value(table, "network_latency_s", "n2", -1) == value(table, "network_latency_s", "n1", -1)
    lost = table[(table["node"] == "n2") & (table["factor"] == "sentinel_rate_flops")]
    assert set(lost["state"]) == {"missing"}


def steps(before: float, inside: float, after: float) -> Any:
    """Another value before minute 2, in minutes 2 to 4, and after them."""
    return lambda since: np.where(since < 120, before, np.where(since <= 240, inside, after))


def monitored(duration_s: float = 600.0, offset_s: float = 0.0, **changed: Any) -> pandas.DataFrame:
    columns = {
        **{f"frequency_core{pu}_hz": steps(3e9, 2e9 + 1e8 * (pu % 2) + 1e7 * (pu // 2), 1e9) for pu in range(4)},
        "temperature_coretemp_package_id_0_celsius": steps(40, 65, 70),
        "temperature_coretemp_package_id_1_celsius": steps(41, 75, 80),
        "temperature_coretemp_core_0_celsius": 99.0,
        "power_package0_watt": steps(50, 125, 130),
        "power_package1_watt": steps(50, 126, 130),
        "power_dram0_watt": steps(5, 12, 13),
        "power_psys_watt": steps(200, 400, 410),
        "load1": 4.0,
    }
    return samples(duration_s, offset_s=offset_s, **{**columns, **changed})


def test_monitoring_is_averaged_over_minutes_2_to_4_of_the_test_by_processor(tmp_path: Path) -> None:
    table = values(experiment(tmp_path / "a.zip", monitoring={"n1": monitored()}))
    found = {(row.factor, row.cpu): row.value for row in table.itertuples()}
    assert found == pytest.approx(
        {
            ("mean_frequency_Hz", 0): 2.005e9,  # of threads 0 and 2
            ("mean_frequency_Hz", 1): 2.105e9,
            ("mean_temperature_degC", 0): 65.0,
            ("mean_temperature_degC", 1): 75.0,
            ("cpu_power_W", 0): 125.0,
            ("cpu_power_W", 1): 126.0,
            ("dram_power_W", 0): 12.0,
            ("node_power_W", -1): 400.0,
        }
    )


def test_the_window_goes_by_the_clock_of_the_node(tmp_path: Path) -> None:
    ahead = {"clock.json": b'[{"node": "n1", "offset_s": 300.0, "error_s": 0.001}]'}
    path = tmp_path / "a.zip"
    with ArchiveWriter(path, metadata("experiment", ["n1"])) as archive:
        for name, data in ahead.items():
            archive.add_bytes(name, data)
        archive.add_table("monitoring/n1.parquet", monitored(offset_s=300.0))
    assert value(values(path), "cpu_power_W") == pytest.approx(125.0)


def test_of_a_resumed_run_the_window_is_that_of_its_longest_part(tmp_path: Path) -> None:
    begun, again = "2026-11-21T08:14:33+00:00", "2026-11-21T09:14:33+00:00"
    phases = [
        {"name": "run", "start": begun, "duration_s": 100.0, "status": "interrupted"},
        {"name": "run", "start": again, "duration_s": 600.0, "status": "done"},
    ]
    table = values(experiment(tmp_path / "a.zip", monitoring={"n1": monitored()}, phases=phases))
    assert value(table, "cpu_power_W") == pytest.approx(125.0)
    assert set(table["started_s"]) == {START_S - 3600.0}


@pytest.mark.parametrize(
    ("duration_s", "power_W", "window"),
    [
        (240.0, 125.0, "minutes 2 to 4"),
        (180.0, 125.0, "from minute 2 to the end, before minute 4"),
        (60.0, 50.0, "second half of a run that is over by minute 2"),
    ],
)
def test_a_shorter_test_has_what_there_is_of_the_window_and_another_stratum(tmp_path, duration_s, power_W, window):
    path = experiment(tmp_path / "a.zip", monitoring={"n1": monitored(duration_s)}, duration_s=duration_s)
    assert value(values(path), "cpu_power_W") == pytest.approx(power_W)
    assert {conditions["window"] for conditions in strata_of(Archive.open(path)).values()} == {window}


def test_a_sensor_that_gave_nothing_in_the_window_is_missing(tmp_path: Path) -> None:
    broken = monitored(power_package0_watt=steps(50, np.nan, 130), power_dram0_watt=None)
    table = values(experiment(tmp_path / "a.zip", monitoring={"n1": broken}))
    lost = table[table["state"] == "missing"]
    assert set(zip(lost["factor"], lost["cpu"], strict=True)) == {("cpu_power_W", 0), ("dram_power_W", 0)}
    assert lost["value"].isna().all()


def own_rows(**columns: Any) -> pandas.DataFrame:
    m, n, k = np.array(SIZES).T
    duration = RATE_S[0] * (m * n * k).astype(float) + CALL_S
    frame = pandas.DataFrame({"m": m, "n": n, "k": k, "node": "n1", "cpu": 2, "duration_s": duration})
    return frame.assign(**columns)


@pytest.mark.parametrize(
    ("table", "columns"), [("dgemm_today", {}), ("calls", {"kernel": "dgemm"}), ("calls", {"kind": "dgemm"})]
)
def test_calls_of_dgemm_that_an_experiment_recorded_are_factors(tmp_path, table, columns):
    found = values(experiment(tmp_path / "a.zip", {table: own_rows(**columns)}))
    assert value(found, "dgemm_rate_flops") == pytest.approx(expected_rate(0))


def test_memory_and_disk_are_factors_where_they_were_measured(tmp_path: Path) -> None:
    memory = pandas.DataFrame(
        [
            (
                size, stride, width, unroll, 1e9,
                1e9 / (2e10 if size == 1024 else 1e10 if (stride, width) == (1, 16) else 5e9),
            )
            for size in (1024, 1 << 27)
            for stride in (1, 8)
            for width in (8, 16)
            for unroll in (1, 8)
        ],
        columns=["size_bytes", "stride", "element_bytes", "unroll", "read_bytes", "duration_s"],
    ).assign(node="n1", cpu=1)  # fmt: skip
    disk = pandas.DataFrame({"operation": ["write", "write", "read"], "size_bytes": [4e6, 6e6, 9e6]})
    tables = {"observations": memory, "disk": disk.assign(node="n1", duration_s=[0.04, 0.06, 0.03])}
    found = values(experiment(tmp_path / "a.zip", tables))
    # the largest buffer, stride 1, 16 bytes, unrolled 8 times
    assert value(found, "memory_bandwidth_B_per_s", cpu=1) == pytest.approx(1e10)
    assert value(found, "disk_write_B_per_s", cpu=-1) == pytest.approx(1e8)
    assert value(found, "disk_read_B_per_s", cpu=-1) == pytest.approx(3e8)


def test_the_job_is_the_one_that_was_submitted_for_the_run_alone(tmp_path: Path) -> None:
    own = calibration(tmp_path / "a.zip", scheduler={"scheduler": "slurm", "job": "4711", "submitted": True})
    shared = calibration(tmp_path / "b.zip", scheduler={"scheduler": "slurm", "job": "4711", "submitted": False})
    assert set(values(own)["job"]) == {"4711"}
    assert set(values(shared)["job"]) == {Archive.open(shared).id}  # else two runs in it would be one job


#: What changes, and why it is another stratum; "" where it is the same.
STRATA: dict[str, tuple[Any, str]] = {
    "another day": ({"created": "2027-01-01T00:00:00+00:00"}, ""),
    "another order and seed": ({"kernels": dgemm_rows(seed=9), "seed": 9}, ""),
    "other kernels of the same BLAS": (
        {
            "machines": dict.fromkeys(
                ("n1", "n2"), machine("OpenBLAS 0.3.21 DYNAMIC_ARCH Haswell MAX_THREADS=64", "Haswell")
            )
        },
        "",
    ),
    "a node less": ({"kernels": dgemm_rows(["n1"]), "nodes": ["n1"]}, ""),
    "a variable of somebody's": ({"variables": {"LANG": "C"}}, ""),
    "a size more": ({"kernels": dgemm_rows(sizes=[*SIZES, (100, 100, 100)])}, "sizes of dgemm: 18 of "),
    "a size twice": ({"kernels": dgemm_rows(sizes=[*SIZES, SIZES[0]])}, "sizes of dgemm: 18 of "),
    "another content": ({"kernels": dgemm_rows(content="random", warm=0)}, "sizes of dgemm: 18 of "),
    "another BLAS": (
        {"machines": {n: machine("OpenBLAS 0.3.26 DYNAMIC_ARCH SkylakeX MAX_THREADS=64") for n in ("n1", "n2")}},
        "BLAS: OpenBLAS 0.3.21 DYNAMIC_ARCH MAX_THREADS=64 -> OpenBLAS 0.3.26",
    ),
    "chosen kernels": (
        {"variables": {"OPENBLAS_CORETYPE": "Haswell"}},
        "variable OPENBLAS_CORETYPE: (none) -> Haswell",
    ),
    "another version": ({"lepaute_version": "0.2.0"}, "Lepaute: 0.1.0 -> 0.2.0"),
    "a setting": ({"settings": {"control": {"turbo": False}}}, "control turbo: (none) -> false"),
}


@pytest.mark.parametrize(("changed", "why"), STRATA.values(), ids=STRATA.keys())
def test_what_measures_otherwise_is_another_stratum_and_one_line_says_why(tmp_path, changed, why):
    before, after = calibration(tmp_path / "a.zip"), calibration(tmp_path / "b.zip", **changed)
    same = stratum(values(before), "dgemm_rate_flops") == stratum(values(after), "dgemm_rate_flops")
    lines = why_strata_differ(Archive.open(before), Archive.open(after), "dgemm_rate_flops")
    assert (same, len(lines)) == (not why, bool(why))
    assert "".join(lines).startswith(why)


def test_another_script_parameter_or_design_is_another_stratum(tmp_path: Path) -> None:
    rows = {"dgemm": own_rows()}
    one = experiment(tmp_path / "a.zip", rows, design=DESIGN)
    for number, changed in enumerate(
        [
            {"script": "import lepaute as lp\n"},
            {"parameters": {"repetitions": 3}},
            {"design": DESIGN.replace("2048", "1024")},
        ]
    ):
        other = experiment(tmp_path / f"b{number}.zip", rows, **{"design": DESIGN, **changed})  # type: ignore[arg-type]
        same = stratum(values(other), "dgemm_rate_flops") == stratum(values(one), "dgemm_rate_flops")
        assert same == ("design" in changed)  # the rows that were measured count, which are the same here


def test_nodes_that_failed_were_aborted_or_are_missing_have_a_row_for_each_factor(tmp_path: Path) -> None:
    path = calibration(
        tmp_path / "a.zip",
        dgemm_rows(["n1", "n2"]),
        ["n1", "n2", "n3"],
        status="failed",
        failure={"phase": "run", "type": "CommandFailed", "message": "probe-dgemm: killed", "node": "n2"},
        lost_nodes=[{"node": "n3", "when": "", "why": "the connection ended", "phase": "run"}],
    )
    table = values(path)
    assert {node: set(rows["state"]) for node, rows in table.groupby("node")} == {
        "n1": {"aborted"}, "n2": {"failed"}, "n3": {"missing"}
    }  # fmt: skip
    assert table["value"].isna().all()  # also of n1, which was measured: its run did not end
    for node in ("n1", "n2", "n3"):
        assert set(table[(table["node"] == node) & (table["factor"] == "dgemm_rate_flops")]["cpu"]) == {0, 1}
    # the strata are those that were measured, so that it is seen what is absent
    assert len(set(table.loc[table["factor"] == "dgemm_rate_flops", "stratum"])) == 1


def test_a_run_that_failed_before_it_measured_has_rows_of_what_its_design_would_have_given(tmp_path: Path) -> None:
    failed = {
        "status": "failed",
        "failure": {"phase": "setup", "type": "CommandFailed", "message": "gcc: exit status 1", "node": "n1"},
        "phases": [{"name": "setup", "start": "2026-11-21T09:14:33+00:00", "duration_s": 3.0, "status": "failed"}],
    }
    table = values(experiment(tmp_path / "a.zip", design=DESIGN, **failed))
    assert set(table["state"]) == {"failed"}
    assert set(table["factor"]) == {"dgemm_rate_flops", "dgemm_2048_rate_flops", *MODEL_FACTORS}
    assert set(table["cpu"]) == {0, 1}  # as the node's environment tells
    assert set(table["stratum"]) == {""}  # nothing was measured with which it could be compared
    assert len(table) == 2 * 10
    assert values(experiment(tmp_path / "b.zip", **failed)).empty


def test_a_node_that_left_no_rows_of_what_the_others_measured_is_missing(tmp_path: Path) -> None:
    table = values(calibration(tmp_path / "a.zip", dgemm_rows(["n1"]), ["n1", "n2"]))
    lost = table[(table["node"] == "n2") & (table["factor"] == "dgemm_rate_flops")]
    assert list(lost["state"]) == ["missing", "missing"]


@pytest.mark.slow
def test_another_file_of_sizes_raises_no_alarm_though_the_rate_is_another(tmp_path: Path) -> None:
    small = [(m, n, k) for m, n, k in SIZES if m * n * k < 5e6]

    def day(number: int, sizes: list[tuple[int, int, int]]) -> pandas.DataFrame:
        start = f"2026-11-{number + 1:02d}T09:00:00+00:00"
        phases = [{"name": "run", "start": start, "duration_s": 600.0, "status": "done"}]
        kernels = dgemm_rows(["n1"], sizes, noise=0.001, seed=number)
        return values(calibration(tmp_path / f"{number}.zip", kernels, ["n1"], phases=phases))

    table = pandas.concat([day(number, SIZES if number < 6 else small) for number in range(9)], ignore_index=True)
    rates = table[(table["factor"] == "dgemm_rate_flops") & (table["cpu"] == 0)]["value"]
    assert rates.iloc[8] < 0.99 * rates.iloc[0]  # calls that are short cost more in proportion; days differ by 0.1 %
    tests = judge(table, factors=["dgemm_rate_flops"], windows=(1,))
    assert list(tests.loc[tests["cpu"] == 0, "n"]) == [0, 1, 2, 3, 4, 5, 0, 1, 2]
    mixed = judge(table.assign(stratum=""), factors=["dgemm_rate_flops"], windows=(1,))
    assert mixed["p_value"].min() < 1e-4 < tests["p_value"].min()

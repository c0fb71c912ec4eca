"""Factors of archives that `lepaute run` and `lepaute calibrate` wrote on this machine."""

from pathlib import Path

import pandas
import pytest
from support_run import run_lepaute

from lepaute.measure.archive import Archive
from lepaute.watch.factors import MODEL_FACTORS, factors_of, why_strata_differ
from lepaute.watch.store import open_store

SCRIPT = """
import os
import time

import numpy as np

import lepaute as lp


class Daily(lp.Job):
    def design(self):
        sizes = {"kind": ["dgemm"], "m": [64, 128, 256], "n": [64, 128], "k": [64, 128]}
        return lp.design.full_factorial(sizes, blocks=2, seed=self.seed)

    def run(self):
        (node,) = self.nodes.names
        for row in self.rows():
            if "fail" in self.parameters and row["design_row"] == 12:
                self.nodes.run("false")
            a, b = np.ones((row["m"], row["k"])), np.ones((row["k"], row["n"]))
            begun_s = time.perf_counter()
            a @ b
            self.record("dgemm", node=node, cpu=0, duration_s=time.perf_counter() - begun_s)
        for _ in range(3):
            begun_s = time.perf_counter()
            with open("written.bin", "wb") as file:
                file.write(b"x" * (1 << 20))
                file.flush()
                os.fsync(file.fileno())
            took_s = time.perf_counter() - begun_s
            self.record("disk", node=node, operation="write", size_bytes=1 << 20, duration_s=took_s)
"""


@pytest.mark.nodes
@pytest.mark.slow
def test_runs_of_one_script_have_one_stratum_and_a_failed_one_its_absence(tmp_path: Path) -> None:
    (tmp_path / "daily.py").write_text(SCRIPT)
    for name, options in (("a", ()), ("b", ("--seed", 2)), ("c", ("--set", "fail=1"))):
        run_lepaute("run", "daily.py", "-o", f"{name}.zip", "--monitor", 0, *options, folder=tmp_path)
    with open_store(tmp_path / "store") as store:
        archives = sorted(tmp_path.glob("?.*zip"))
        store.ingest(archives, cluster="here", values_of=lambda archive: factors_of(archive, "here"))
        values = store.values()
    first, second, failed = (values[values["archive"] == Archive.open(path).id] for path in archives)
    assert set(first["factor"]) >= {"dgemm_rate_flops", "disk_write_B_per_s", *MODEL_FACTORS}
    assert (first["state"] == "done").all()
    assert (first.loc[first["factor"].isin(["dgemm_rate_flops", "disk_write_B_per_s"]), "value"] > 0).all()
    # another seed is another order of the same sizes
    assert set(second["stratum"]) == set(first["stratum"])
    assert set(failed["state"]) == {"failed"}
    assert set(failed["factor"]) >= {"dgemm_rate_flops", *MODEL_FACTORS}
    assert failed["value"].isna().all()


@pytest.mark.machine
@pytest.mark.slow
def test_a_quick_calibration_gives_rates_messages_and_coefficients(quick_calibration: Path) -> None:
    table = factors_of(Archive.open(quick_calibration / "calibration.zip"), "here")
    found = {str(row.factor): float(row.value) for row in table.itertuples() if row.state == "done"}
    assert found.keys() >= {"dgemm_rate_flops", "sentinel_rate_flops", *MODEL_FACTORS}
    assert found.keys() >= {"loopback_latency_s", "loopback_bandwidth_B_per_s"}
    assert min(found["dgemm_rate_flops"], found["loopback_latency_s"]) > 0


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.long  # 70 s of both cores
def test_two_quick_calibrations_of_a_machine_have_one_stratum(tmp_path: Path) -> None:
    archives = []
    for name in ("a.zip", "b.zip"):
        run_lepaute("calibrate", "--quick", "-o", f"{name}.yaml", "--archive", name, folder=tmp_path)
        archives.append(Archive.open(tmp_path / name))
    both = pandas.merge(*(factors_of(archive, "here") for archive in archives), on=["node", "cpu", "factor"])
    assert (both["stratum_x"] == both["stratum_y"]).all()
    assert why_strata_differ(*archives, "dgemm_rate_flops") == ()

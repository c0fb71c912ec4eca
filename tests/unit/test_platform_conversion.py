"""The script that makes the shipped platforms from the reference data (which tests do not read)."""

import gzip
import importlib.util
import sys
from math import exp, log
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "convert_reference_platforms.py"


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    return loaded(SCRIPT)


@pytest.fixture(scope="module")
def calibrations() -> ModuleType:
    return loaded(SCRIPT.with_name("dgemm_calibrations.py"))


@pytest.fixture(scope="module")
def network(convert: ModuleType) -> ModuleType:
    assert convert  # puts the checkout on the path of modules
    return loaded(SCRIPT.with_name("dahu_network.py"))


def loaded(script: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(specification)
    sys.modules[script.stem] = module  # data classes look their module up
    specification.loader.exec_module(module)
    return module


def test_large_messages_inside_an_idle_node_cost_half_of_a_measured_ping_pong(network, tmp_path):
    # there and back at 10 GB/s up to 8 MB, which the caches hold, and at 4 GB/s above; the nominal rate is 20 GB/s
    nominal = [{"above_bytes": start, "latency_s": 0.0, "bandwidth_Bps": 2e10} for start in (0, 64_000)]
    sizes = [70_000 * 2 ** (step / 4) for step in range(48)]
    rows = [(size, 2 * size / (1e10 if size < 8e6 else 4e9) * wobble) for size in sizes for wobble in (0.98, 1.0, 1.02)]
    table = tmp_path / "pingpong.csv"
    table.write_text("size,duration\n" + "".join(f"{size:.0f},{seconds}\n" for size, seconds in rows), encoding="utf-8")
    small, *large = network.ping_pong_segments(table, nominal)
    assert small == nominal[0]
    for size in (100_000, 5_000_000, 20_000_000, 200_000_000):
        piece = network.in_force(large, size - 1)
        expected = size / (1e10 if size < 8e6 else 4e9)
        assert piece["latency_s"] + size / piece["bandwidth_Bps"] == pytest.approx(expected, rel=0.03)


def test_the_default_of_dgemm_is_the_default_row_or_else_the_mean_of_the_cpus(convert: ModuleType) -> None:
    def row(cpu_id: int, mnk: float) -> dict[str, str]:
        columns = [f"{name}{kind}" for name in ("intercept", "mnk", "mn", "mk", "nk") for kind in ("", "_residual")]
        node, cpu = divmod(cpu_id, 2) if cpu_id >= 0 else (-1, -1)
        return dict.fromkeys(columns, "0.5") | {
            "cpu_id": str(cpu_id), "node": str(node), "cpu": str(cpu), "mnk": repr(mnk)
        }  # fmt: skip

    cpus = [row(2, 1.0), row(3, 2.0)]
    piece = convert.dgemm_model(cpus)["pieces"][0]
    assert piece["mean"]["mnk"] == 1.5
    assert [row[:3] for row in piece["per_cpu"]["rows"]] == [[1, 0, 1.0], [1, 1, 2.0]]
    assert convert.dgemm_model([*cpus, row(-1, 9.0)])["pieces"][0]["mean"]["mnk"] == 9.0


def test_what_calibrations_differ_by_is_the_sd_of_their_mean_logarithms(calibrations, tmp_path):
    # Two CPUs and models of one term each: the whole and the narrow update cost the same a unit, and the calibrations
    # are 1, e^0.01, ... e^0.05; one of them has a CPU more, which does not count.
    folder = tmp_path / "dahu" / "kernels"
    folder.mkdir(parents=True)
    header = "model,cpu_id,intercept,mnk,mn,mk,nk"
    tables: dict[str, list[str]] = {}
    for number, source in enumerate(calibrations.CALIBRATIONS.values()):
        file, _, model = source.partition(":")
        cpus = [2, 3, *([9] if number == 1 else [])]
        tables.setdefault(file, [header]).extend(
            f"{model},{cpu},0,{1e-10 * exp(0.01 * number)!r},0,0,0" for cpu in cpus
        )
    for file, lines in tables.items():
        (folder / file).write_text("\n".join(lines), encoding="utf-8")
    found = calibrations.spread(tmp_path)
    assert found.whole == pytest.approx(0.01 * 3.5**0.5)  # of 0 to 5: 17.5 / 5
    assert found.narrow == pytest.approx(0.0, abs=1e-12)


def test_a_fixed_k_counts_by_its_own_jobs_and_a_shuffled_one_by_the_model_of_one_job(calibrations, tmp_path):
    folder = tmp_path / "experiment" / "randomizing_sizes" / "fixing_K"
    folder.mkdir(parents=True)
    rows = [("128", 1.0e-10), ("256", 1.08e-10), ("512", 1.06e-10), ("shuffled", 1.03e-10)]
    lines = ["node,cpu,exp_kind,intercept,mnk,mn,mk,nk", *(f"5,0,{kind},0,{mnk!r},0,0,0" for kind, mnk in rows)]
    with gzip.open(folder / "dgemm_agr_data.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    found = calibrations.large_k(tmp_path)
    assert (found.ratio, found.shuffled, found.ratio_512) == pytest.approx((1.08, 1.0, 1.06))
    assert found.relative_sd == pytest.approx(log(1.08) / 2**0.5)

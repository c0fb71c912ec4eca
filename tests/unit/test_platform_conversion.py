"""The script that makes the shipped platforms from the reference data (which tests do not read)."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "convert_reference_platforms.py"


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    specification = importlib.util.spec_from_file_location("convert_reference_platforms", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_it_says_where_the_reference_data_are_missing_and_writes_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, str(SCRIPT), "--reference", str(tmp_path / "none"), "--output", str(tmp_path / "out")]
    finished = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 2
    assert f"the reference data are not at {tmp_path / 'none'}" in finished.stderr
    assert not (tmp_path / "out").exists()


def test_segments_begin_where_a_factor_an_overhead_or_a_protocol_does(convert: ModuleType) -> None:
    link_class = {
        "link": {"bandwidth_Bps": 10.0},
        "bandwidth_factor": [{"above_bytes": 0, "factor": 0.5}, {"above_bytes": 100, "factor": 0.8}],
        "latency_factor": [{"above_bytes": 0, "factor": 2.0}],
        "overheads": {
            "send": [
                {"above_bytes": 0, "intercept_s": 1.0, "per_byte_s": 0.1},
                {"above_bytes": 50, "intercept_s": 2.0, "per_byte_s": 0.2},
            ]
        },
    }
    segments = convert.segments(link_class, 3.0, {"eager_max_bytes": 50, "detached_max_bytes": 200})
    assert [(s["above_bytes"], s["protocol"], s["latency_s"], s["bandwidth_Bps"], s["send"]) for s in segments] == [
        (0, "eager", 6.0, 5.0, [1.0, 0.1]),
        (50, "detached", 6.0, 5.0, [2.0, 0.2]),
        (100, "detached", 6.0, 8.0, [2.0, 0.2]),
        (200, "rendezvous", 6.0, 8.0, [2.0, 0.2]),
    ]


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

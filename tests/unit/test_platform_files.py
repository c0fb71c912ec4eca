"""Platform files: what is read, refused and written; and the script that makes those that are shipped."""

import gzip
import importlib.util
import sys
from math import exp, log
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from lepaute.errors import InputError, PlatformError
from lepaute.simulate.platform import load_platform, override, shipped_names
from lepaute.simulate.platform.io import parse_platform, platform_text
from lepaute.simulate.platform.schema import json_schema

DATA = Path(__file__).parent.parent / "data" / "platforms"
SMALL = DATA / "small.yaml"
BAD = sorted((DATA / "bad").glob("*.yaml"))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_in_the_words_that_its_first_line_gives(path: Path) -> None:
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    with pytest.raises(PlatformError) as caught:
        load_platform(path)
    assert str(caught.value).replace(str(path), path.name) == expected


def test_numbers_without_a_dot_are_numbers_and_the_constant_term_needs_no_quotes() -> None:
    small = load_platform(SMALL)
    # written {mnk: 2e-10, 1: 1e-6}: PyYAML reads two texts and the integer 1
    assert small.kernels[0].pieces[0].mean == {"mnk": 2e-10, "1": 1e-6}
    assert small.network.remote.segments[1].latency_s == 5e-6


def test_what_is_left_out_has_the_stated_default() -> None:
    small = load_platform(SMALL)
    first = small.kernels[0].pieces[0]
    assert (first.noise.kind, first.noise.sd, first.covariance, first.per_cpu) == ("none", {}, None, None)
    assert small.network.flow_factor == "bound"
    assert small.network.costs.model_dump() == {
        "iprobe_s": 2e-7, "test_s": 0.0, "wtime_s": 0.0, "iprobe_looks_first": False,
    }  # fmt: skip
    assert small.topology.kind == "switch"
    assert small.network.remote.segments[0].receive == (0.0, 0.0)


def test_a_kernel_is_found_by_name_and_threads() -> None:
    small = load_platform(SMALL)
    assert small.kernel("dgemm") is small.kernels[0]
    assert small.kernel("dgemm", threads=2) is None
    assert small.kernel("dtrsm") is None


def test_the_measured_blas_kernels_are_part_of_a_platform_and_of_its_digest() -> None:
    small = load_platform(SMALL)
    assert small.blas is None
    measured = override(small, {"blas": "{core: SkylakeX, coretype_env: SkylakeX}"})
    text = platform_text(measured)
    assert "\nblas: {core: SkylakeX, coretype_env: SkylakeX}\nnodes:" in text
    assert parse_platform(text) == measured
    assert measured.sha256 != small.sha256
    assert "coretype_env" not in platform_text(override(small, {"blas": "{core: Zen}"}))
    with pytest.raises(PlatformError, match="blas"):
        override(small, {"blas": "{coretype_env: Zen}"})


def test_a_mistyped_name_gets_the_nearest_one_and_the_list() -> None:
    with pytest.raises(PlatformError) as caught:
        load_platform("dahu-2020-1")
    assert "no file is named 'dahu-2020-1' (did you mean dahu-2020-01?); shipped platforms: dahu, dahu-2019-04," in str(
        caught.value
    )


def test_fields_can_be_replaced() -> None:
    small = load_platform(SMALL)
    changed = override(
        small, {"network.flow_factor": "scale", "network.remote.segments[0].latency_s": "3e-6", "days": "null"}
    )
    assert changed.network.flow_factor == "scale"
    assert changed.network.remote.segments[0].latency_s == 3e-6
    assert changed.days is None
    assert small.network.flow_factor == "bound"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("network.flow_facto", r"no field network.flow_facto \(did you mean flow_factor\?\); it has flow_factor,"),
        ("network.remote.segments[7].latency_s", r"no field network.remote.segments\[7\].*it has \[0\], \[1\]"),
        ("name.first", "no field name.first"),
        ("", "no field"),
    ],
)
def test_a_field_that_does_not_exist_cannot_be_replaced(field: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        override(load_platform(SMALL), {field: "1"})


@pytest.mark.parametrize("name", shipped_names())
def test_the_json_schema_names_every_field_of_the_shipped_files(name: str) -> None:
    jsonschema.validate(load_platform(name).model_dump(mode="json"), json_schema())


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

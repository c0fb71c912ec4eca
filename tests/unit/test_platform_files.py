"""Platform files: what is read, refused and written; those that are shipped, and the script that makes them."""

import gzip
import importlib.util
import sys
from math import exp, log
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from lepaute.errors import InputError, PlatformError
from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.platform.io import load_platform, override, parse_platform, shipped_names
from lepaute.simulate.platform.kernel_model import UPDATE, mean_s
from lepaute.simulate.platform.plausibility import unmodelled
from lepaute.simulate.platform.schema import Platform, json_schema, platform_text

DATA = Path(__file__).parent.parent / "data" / "platforms"
SMALL = DATA / "small.yaml"
BAD = sorted((DATA / "bad").glob("*.yaml"))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_in_the_words_that_its_first_line_gives(path: Path) -> None:
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    with pytest.raises(PlatformError) as caught:
        load_platform(path)
    assert str(caught.value).replace(str(path), path.name) == expected


def test_numbers_without_a_dot_are_numbers_and_what_is_left_out_has_the_stated_default() -> None:
    small = load_platform(SMALL)
    # written {mnk: 2e-10, 1: 1e-6}: PyYAML reads two texts and the integer 1
    assert small.kernels[0].pieces[0].mean == {"mnk": 2e-10, "1": 1e-6}
    assert small.network.remote.segments[1].latency_s == 5e-6
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
        tables.setdefault(file, [header]).extend(f"{model},{cpu},0,{1e-10 * exp(0.01 * number)},0,0,0" for cpu in cpus)
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


#: Not of HPL, or what a run of it pays once.
UNNEEDED = frozenset({"sweep", "first_touch"})

DAHU = ["dahu-2019-04", "dahu-2019-07", "dahu-2019-10", "dahu-2020-01", "dahu-2020-01-loaded"]


def dgemm_s(platform: Platform, node: int, cpu: int, m: int, n: int, k: int) -> float:
    """Mean duration of a dgemm on a cpu, written out."""
    table = platform.kernel("dgemm").pieces[-1].per_cpu
    row = next(row for row in table.rows if row[:2] == (node, cpu))
    terms = {"mnk": m * n * k, "mn": m * n, "mk": m * k, "nk": n * k, "1": 1}
    return sum(value * terms[name] for name, value in zip(table.columns, row, strict=True) if name in terms)


def rate_gflops(platform: Platform, node: int, cpu: int) -> float:
    return 2e-9 * 7000 * 7000 * 128 / dgemm_s(platform, node, cpu, 7000, 7000, 128)


def test_dahu_means_the_model_of_january_2020() -> None:
    assert load_platform("dahu").sha256 == load_platform("dahu-2020-01").sha256


@pytest.mark.parametrize("name", DAHU)
def test_a_dahu_platform_has_the_machine_of_the_published_runs(name: str) -> None:
    platform = load_platform(name)
    nodes = platform.nodes
    assert (nodes.count, nodes.first_number, nodes.cores, nodes.cpus) == (32, 1, 32, 2)
    assert [nodes.cpu_of_core(core) for core in (0, 1, 2, 31)] == [0, 1, 0, 1]
    assert platform.network.flow_factor == "bound"
    assert platform.network.loopback.shared is False
    model = platform.kernel("dgemm")
    table = model.pieces[-1].per_cpu
    assert {row[:2] for row in table.rows} == {(node, cpu) for node in range(1, 33) for cpu in (0, 1)}
    assert model.pieces[-1].noise.kind == "half-normal"


@pytest.mark.parametrize(
    ("name", "mean", "low", "high"),
    [  # Gflop/s of one core for M = N = 7000, K = 128: mean, minimum and maximum over CPUs, from the published summary
        ("dahu-2019-04", 29.038, 24.221, 29.747),
        ("dahu-2019-07", 29.652, 27.777, 30.134),
        ("dahu-2019-10", 28.847, 23.639, 31.178),
        ("dahu-2020-01", 29.467, 26.681, 31.546),
    ],
)
def test_dgemm_runs_at_the_published_rates(name: str, mean: float, low: float, high: float) -> None:
    platform = load_platform(name)
    rates = [rate_gflops(platform, node, cpu) for node in range(1, 33) for cpu in (0, 1)]
    assert sum(rates) / 64 == pytest.approx(mean, abs=2e-3)
    assert min(rates) == pytest.approx(low, abs=2e-3)
    assert max(rates) == pytest.approx(high, abs=2e-3)


@pytest.mark.parametrize(("name", "slow"), [("dahu-2019-04", True), ("dahu-2019-10", True), ("dahu-2020-01", False)])
def test_nodes_13_to_16_are_slow_when_their_cooling_failed(name: str, slow: bool) -> None:
    platform = load_platform(name)
    hot = [rate_gflops(platform, node, cpu) for node in range(13, 17) for cpu in (0, 1)]
    others = [rate_gflops(platform, node, cpu) for node in range(1, 33) if not 13 <= node <= 16 for cpu in (0, 1)]
    ratio = (sum(hot) / len(hot)) / (sum(others) / len(others))
    assert (ratio < 0.93) == slow, ratio


def test_an_unknown_cpu_has_the_default_row_which_leaves_the_slow_nodes_out() -> None:
    model = load_platform("dahu-2019-04").kernel("dgemm")
    assert model.pieces[-1].mean == {"mnk": 6.8645e-11, "mn": -1.793648e-10, "mk": 1.604311e-09, "nk": 2.922754e-09,
                                    "1": 5.249134e-07}  # fmt: skip


@pytest.mark.parametrize("name", ["dahu-2020-01", "dahu-2020-01-loaded"])
def test_an_update_with_k_of_256_is_slower_by_the_published_ratio(name: str) -> None:
    large, _, last = load_platform(name).kernel("dgemm").pieces

    def update_s(mean: dict[str, float], k: int) -> float:
        """All updates of N = 250,000 on a grid of 32 x 32."""
        sides = [left / 32 for left in range(250_000 - k, 0, -k)]
        terms = ({"mnk": s * s * k, "mn": s * s, "mk": s * k, "nk": s * k, "1": 1.0} for s in sides)
        return sum(mean[term] * value for sizes in terms for term, value in sizes.items())

    # 6.91 % over the four CPUs of nodes 5 and 6, 0.1 % less for steps twice as long
    assert update_s(large.mean, 256) / update_s(last.mean, 128) == pytest.approx(1.069, abs=2e-3)
    assert large.where == {"k": (193, 1_000_000)}
    assert large.range == {"m": (108, 15493), "n": (108, 15493), "k": (256, 512)}
    assert last.range == {"m": (168, 15493), "n": (168, 15493), "k": (128, 128)}
    ratios = [a[2] / b[2] for a, b in zip(large.per_cpu.rows, last.per_cpu.rows, strict=True)]
    assert max(ratios) - min(ratios) < 1e-6  # assumed: the same for all CPUs


@pytest.mark.parametrize("name", DAHU)
def test_kernels_may_be_off_by_what_calibrations_differ_by_and_say_where_that_is_from(name: str) -> None:
    platform = load_platform(name)
    dgemm = platform.kernel("dgemm")
    assert dgemm.discrepancy_relative_sd == 0.02  # six calibrations of seven CPUs: 1.99 %
    assert dgemm.discrepancy_source.startswith("six published calibrations of the same 7 CPUs")
    own = {tuple(piece.where or ()): piece.discrepancy_relative_sd for piece in dgemm.pieces}
    large = {("k",): 0.035} if "2020" in name else {}
    assert own == {("n",): 0.067, (): None} | large
    for model in platform.kernels:
        costs = any(model.pieces[0].mean.values())
        assert (model.discrepancy_relative_sd, model.discrepancy_source is not None) == (0.02 * costs, costs)


def test_the_small_kernels_are_the_whole_published_table() -> None:
    platform = load_platform("dahu")
    means = {model.kernel: model.pieces[0].mean for model in platform.kernels if model.kernel != "dgemm"}
    assert len(means) == 24
    assert (means["dtrsm"], means["dgemv"]) == ({"mnk": 5.44554e-11}, {"mn": 1.278804e-09})
    assert (means["idamax"], means["dtrsv"]) == ({"n": 6.052262e-10}, {"1": 2.438651e-05})
    assert means["dlaswp04T"] == {"mn": 8.498957e-09}
    assert means["dlaswp00N"] == {"1": 0.0}  # known, and costs nothing: no warning that it is not modelled
    assert "dlocswp" not in means


def test_the_optimistic_network_has_twice_the_latency_of_a_link_and_the_loaded_one_that_of_a_route() -> None:
    network = load_platform("dahu-2019-04").network
    assert network.node_link.bandwidth_Bps == 1.25e10
    remote = {segment.above_bytes: segment for segment in network.remote.segments}
    large = [64000, 149941, 618266, 35590131, 37544433, 208315211, 298694745]
    assert list(remote) == [0, 8133, 15831, 33956, *large]
    # published: 5.16 us below 64 kB; above, ping-pongs between nodes up to 1 GB: 11.65 GB/s, less above 36 MB
    assert remote[33956].latency_s == pytest.approx(5.16104e-6, rel=1e-5)
    assert (remote[64000].latency_s, remote[64000].bandwidth_Bps) == pytest.approx((12.0422e-6, 7.63863e9), rel=1e-5)
    assert remote[618266].bandwidth_Bps == pytest.approx(11.6502e9, rel=1e-5)
    assert remote[35590131].bandwidth_Bps == pytest.approx(4.87844e9, rel=1e-5)
    # measured by a ping-pong, where 18.1 GB/s without latency is the nominal rate
    inside = {segment.above_bytes: segment for segment in network.loopback_segments if segment.above_bytes >= 64000}
    assert inside[64000].bandwidth_Bps == pytest.approx(1.69734e10, rel=1e-5)
    assert inside[64000].latency_s == pytest.approx(3.40265e-6, rel=1e-5)
    assert network.loopback_segments[-1].bandwidth_Bps == pytest.approx(5.21507e9, rel=1e-5)
    assert [segment.protocol for segment in network.remote.segments] == ["eager"] * 4 + ["rendezvous"] * 7
    assert network.costs.wtime_s == 0  # the published file has none: 5 us a call had been measured and removed
    network = load_platform("dahu-2020-01-loaded").network
    at_64_kb = next(segment for segment in network.remote.segments if segment.above_bytes == 64000)
    assert at_64_kb.latency_s == pytest.approx(176.148e-6, rel=1e-5)  # not 352
    assert at_64_kb.bandwidth_Bps == pytest.approx(3.954e9, rel=1e-3)
    # inside a node: breakpoints of the factors and of the overheads together
    starts = [segment.above_bytes for segment in network.loopback_segments]
    assert starts == [0, 8000, 15798, 16000, 64000, 6000000, 36900419, 42672591, 160097505]
    at_16_kb = network.loopback_segments[3]
    assert at_16_kb.latency_s == pytest.approx(65.022e-6, rel=1e-4)  # from the latency factor that begins here
    assert at_16_kb.send[0] == pytest.approx(288.855e-6, rel=1e-4)  # from the overhead that began at 15798


@pytest.mark.parametrize("name", DAHU)
def test_days_come_from_the_daily_calibrations_of_the_same_state(name: str) -> None:
    days = load_platform(name).days
    slow = name in ("dahu-2019-04", "dahu-2019-10")
    assert ("dgemm_daily_slownodes" if slow else "dgemm_daily_good") in days.source
    assert days.degrees_of_freedom == (23 if slow else 21)  # dates - 1
    assert 0.002 < days.common_relative_sd < 0.02
    assert 0.002 < days.cpu_relative_sd < 0.02


def test_stampede_like_has_the_published_network_and_an_assumed_rate() -> None:
    platform = load_platform("stampede-like")
    for segment in platform.network.remote.segments:
        assert (segment.latency_s, segment.bandwidth_Bps) == (1.04e-05, 0.795 * 7e9)
    model = platform.kernel("dgemm")
    # 345.6 Gflop/s of two processors and 1073.6 of the accelerator
    assert platform.nodes.peak_flops_per_core == pytest.approx(1419.2e9)
    assert 2 / model.pieces[0].mean["mnk"] == pytest.approx(0.8 * 1419.2e9)


@pytest.mark.parametrize("name", ["stampede-like", "exascale-like"])
def test_kernels_that_nobody_measured_scale_with_dgemm_and_say_what_they_may_be_off_by(name: str) -> None:
    platform, core = load_platform(name), load_platform("dahu")
    rate, measured = dgemm_rate(platform), dgemm_rate(core)
    for model in platform.kernels:
        assert model.discrepancy_relative_sd > 0.0
        other = core.kernel(model.kernel)
        if model.kernel == "dgemm" or other is None or not any(other.pieces[0].mean.values()):
            continue
        scaled_s = mean_s(other, *UPDATE) * measured / rate
        if name == "stampede-like":
            # a core of 1.1 Tflop/s had the dtrsm of one of 29 Gflop/s, and HPL took twice its time
            assert mean_s(model, *UPDATE) == pytest.approx(scaled_s, rel=1e-5)
        elif model.kernel != "dtrsm":  # at half of dgemm's rate
            # the memory, and the start of a kernel; dgemm has that start too, so its rate is a little lower
            assert mean_s(model, *UPDATE) > 0.95 * scaled_s
    assert (
        unmodelled(platform, [kernel for kernel in KERNELS if not kernel.endswith("glue") and kernel not in UNNEEDED])
        == []
    )
    assert len(platform.assumed) == 3

"""The shipped platforms: figures of the published models that a reader can look up."""

import pytest

from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.platform import Platform, load_platform
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.platform.kernel_model import UPDATE, mean_s
from lepaute.simulate.platform.plausibility import unmodelled

#: Not of HPL, or what a run of it pays once.
UNNEEDED = frozenset({"sweep", "first_touch"})

DAHU = ["dahu-2019-04", "dahu-2019-07", "dahu-2019-10", "dahu-2020-01", "dahu-2020-01-loaded"]


def dgemm_s(platform: Platform, node: int, cpu: int, m: int, n: int, k: int) -> float:
    """Mean duration of a dgemm on a cpu, written out."""
    model = platform.kernel("dgemm")
    table = model.pieces[-1].per_cpu
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
    model = load_platform(name).kernel("dgemm")
    large, _, last = model.pieces

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


def test_the_optimistic_network_has_a_route_latency_of_one_link_times_two() -> None:
    network = load_platform("dahu-2019-04").network
    assert network.node_link.bandwidth_Bps == 1.25e10
    assert [segment.above_bytes for segment in network.remote.segments] == [0, 8133, 15831, 33956, 64000]
    last = network.remote.segments[-1]
    # published: above 64 kB 12.33 GB/s and 12.9 us between nodes
    assert last.bandwidth_Bps == pytest.approx(12334938853.4, rel=1e-9)
    assert last.latency_s == pytest.approx(12.9249e-6, rel=1e-5)
    # measured by a ping-pong, where 18.1 GB/s without latency is the nominal rate
    inside = {segment.above_bytes: segment for segment in network.loopback_segments if segment.above_bytes >= 64000}
    assert inside[64000].bandwidth_Bps == pytest.approx(1.69734e10, rel=1e-5)
    assert inside[64000].latency_s == pytest.approx(3.40265e-6, rel=1e-5)
    assert network.loopback_segments[-1].bandwidth_Bps == pytest.approx(5.21507e9, rel=1e-5)
    assert [segment.protocol for segment in network.remote.segments] == ["eager"] * 4 + ["rendezvous"]
    assert network.costs.wtime_s == 0  # the published file has none: 5 us a call had been measured and removed


def test_the_loaded_network_has_latencies_of_a_route_as_fitted() -> None:
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

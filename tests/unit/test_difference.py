"""Differences of two predictions, and when a machine is distrusted: what cancels, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

import lepaute as lp
from lepaute.errors import InputError
from lepaute.kit.text import significant
from lepaute.measure.experiment.distrust import WITNESS, Verdict, mark, monitored, verdicts
from lepaute.simulate import Layers
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.prediction.comparing import Difference
from lepaute.stats.intervals import median_of_runs, prediction_interval

SMALL = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
HPL = lp.Hpl(n=600, nb=64, p=2, q=2)
LARGER = lp.Hpl(n=900, nb=64, p=2, q=2)
BASE = ["predict", "hpl", "-p", str(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")]
BASE += ["--n", "600", "--nb", "64", "--grid", "2x2", "--runs", "3"]


def test_the_day_and_the_coefficients_of_a_cpu_are_the_same_whatever_runs_on_it() -> None:
    # one rank only computes; day and discrepancy are factors of all that it does
    platform = override(SMALL, {"kernels[0].discrepancy_relative_sd": "0.1", "days.cpu_relative_sd": "0.1"})
    layers = Layers(coefficients=False, noise=False)
    small, large = (
        lp.predict(lp.Hpl(n=n, nb=64, p=1, q=1), platform, runs=4, layers=layers, repeat=repeat)
        for repeat, n in enumerate((1500, 3000))
    )
    times_s = [run.time_s for run in small.run_list]
    assert max(times_s) / min(times_s) > 1.1
    found = lp.difference(small, large)
    assert found.high / found.low < 1.02  # messages of the rank to itself have no day


def test_the_ratio_is_that_of_the_stated_times_and_its_interval_holds_the_noise_of_two_runs() -> None:
    platform, quiet = override(SMALL, {"days.run_relative_sd": "0.05"}), Layers(noise=False)
    one, other = (
        lp.predict(HPL, platform, runs=5, settings=settings, layers=quiet) for settings in ({}, {"scale.dgemm": 0.98})
    )
    found = lp.difference(one, other)
    assert found == lp.difference(one, other)  # the reference is simulated once more, and once
    ratios = [b.time_s / a.time_s for a, b in zip(one.run_list, other.run_list, strict=True)]
    assert found.ratio == pytest.approx(median_of_runs(ratios))
    apart = lp.difference(lp.predict(HPL, platform, runs=5, repeat=1, layers=quiet), other)
    assert (found.shared, found.run_noise, apart.shared) == (True, True, True)
    assert found.high / found.low == pytest.approx(apart.high / apart.low, rel=1e-12)
    assert prediction_interval(ratios).ends[0] > found.low  # without noise there is next to nothing between them


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (lambda: lp.predict(LARGER, SMALL, runs=3, repeat=1), "differ in runs, 2 and 3"),
        (lambda: lp.predict(LARGER, SMALL, runs=2, seed=9, repeat=1), "differ in first seed, 1 and 9"),
        (lambda: lp.predict(LARGER, SMALL, runs=2, layers=Layers(days=False), repeat=1), "differ in layers, all and"),
        (
            lambda: lp.predict(lp.Stencil(cells=(8, 8, 8), grid=(1, 1, 1), cell_time_s=1e-8), SMALL, runs=2),
            "the applications are HPL and ",
        ),
    ],
)
def test_what_does_not_compare_is_refused_in_one_line(other, told) -> None:
    with pytest.raises(InputError) as caught:
        lp.difference(lp.predict(HPL, SMALL, runs=2), other())
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_platform_with_other_kernels_shares_no_errors_and_one_with_another_network_does() -> None:
    reference = lp.predict(HPL, SMALL, runs=12)
    slower = override(SMALL, {"network.remote.segments[0].latency_s": "2e-6"})
    assert lp.difference(reference, lp.predict(HPL, slower, runs=12, repeat=1)).shared
    refitted = override(SMALL, {"kernels[0].discrepancy_relative_sd": "0.1"})
    assert not lp.difference(reference, lp.predict(HPL, refitted, runs=12, repeat=1)).shared


def test_the_command_tells_each_difference(output_of):
    lines = output_of(*BASE, "--against", "nb=32", "--against", "grid=1x4", "--against", "platform=dahu").splitlines()
    assert sum(line.startswith("nb 32 against 64: ") for line in lines) == 1
    assert sum(line.startswith("grid 1x4 against 2x2: ") for line in lines) == 1
    (platform,) = [line for line in lines if line.startswith("platform dahu-2020-01 against small: ")]
    assert re.search(r", [0-9.]+ m?s \(95 %: .*; models fitted apart, so that no errors cancel", platform)
    assert sum("caveat" in line for line in lines) <= 1  # of all together


def test_the_mapping_and_fields_of_the_platform_can_be_what_changes(json_of):
    given = [*BASE, "--json", "--against", "mapping=random", "--against", "scale.bandwidth=0.1"]
    mapped, slower = json_of(*given)["differences"]
    assert (mapped["field"], mapped["value"], mapped["against"]) == ("mapping", "random", "sequential")
    assert (slower["field"], slower["value"]) == ("scale.bandwidth", "0.1")
    assert slower["ratio"]["mean"] > 1.0


def sheet(name: str, **given: float) -> Platform:
    return platform_from(DataSheet(2, 2, 4, link_Bps=12.5e9, name=name, **given), load_platform("dahu"))  # type: ignore[arg-type]


def compared(one: Platform, other: Platform) -> Difference:
    return lp.difference(lp.predict(LARGER, one, runs=4), lp.predict(LARGER, other, runs=4, repeat=1))


def test_guesses_that_two_data_sheets_share_are_drawn_in_common() -> None:
    fast, slow = sheet("fast", dgemm_flops=45e9), sheet("slow", dgemm_flops=40e9)
    found, apart = compared(fast, slow), compared(sheet("a", peak_flops=60e9), sheet("b", peak_flops=50e9))
    assert found.shared
    assert found.high / found.low > 1.04  # the days of two machines are not one: 1 % each
    assert not compared(load_platform("dahu"), slow).shared  # one of them was measured
    assert not apart.shared  # which share of a nominal peak dgemm reaches differs from core to core


NOON = 1_700_049_600.0  # 2023-11-15 12:00:00 UTC


def reference(count: int = 80, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """One value every 30 s from noon on, 2 s ± 0.3 %."""
    return NOON + 30.0 * np.arange(count), 2.0 * (1 + 0.003 * np.random.default_rng(seed).normal(size=count))


def samples(count: int = 480, **changed: object) -> dict[str, list[object]]:
    """A quiet node, one sample every 5 s from noon on; `changed`: column -> values."""
    times = [NOON + 5.0 * i for i in range(count)]
    quiet: dict[str, list[object]] = {
        "time_s": list(times),
        "monotonic_s": [t - NOON + 7.0 for t in times],
        "temperature_package_celsius": [60.0] * count,
        "other_users_cpu_s": [0.01 * i for i in range(count)],  # housekeeping of root's
        "other_users": ["0:systemd 0.01"] * count,
        "frequency_core0_hz": [2.0e9] * count,
        "frequency_core1_hz": [1.0e9] * count,  # idle
    }
    return quiet | changed  # type: ignore[operator]


def changed(value: object, usual: object, places: range, count: int = 480) -> list[object]:
    return [value if i in places else usual for i in range(count)]


def test_a_quiet_node_a_slewed_clock_and_the_ticks_of_the_kernel_get_no_verdict() -> None:
    assert verdicts({"node1": reference()}, {"node1": samples()}) == []
    assert verdicts({}, {}) == []
    assert verdicts({"node1": ([], [])}, {"node1": {}}) == []
    assert list(monitored("node1", {"time_s": []})) == []
    # one sample an hour, and the kernel's fastest correction: 1.8 s in between
    hours = [3600.0 * i for i in range(480)]
    slewed = samples(time_s=[NOON + h * (1 + 499e-6) for h in hours], monotonic_s=hours)
    assert list(monitored("node1", slewed)) == []
    assert list(monitored("node1", samples(time_s=[NOON + 5.0 * i + 0.004 * (i % 2) for i in range(480)]))) == []
    assert list(monitored("n", samples(other_users_cpu_s=busy(0.05, range(480))))) == []
    fast = [0.1 * i for i in range(480)]  # ten samples a second, each with two ticks of a hundredth: 0.2 cores
    ticks = samples(time_s=fast, monotonic_s=fast, other_users_cpu_s=[0.02 * (i % 2) for i in range(480)])
    assert list(monitored("n", ticks)) == []


def test_a_step_is_named_with_its_size_date_chance_and_temperature() -> None:
    dates, durations = reference()
    durations[40:] *= 1.062  # from 12:20:00 on; the last value before is of 12:19:30
    warmer = changed(69.0, 60.0, range(236, 480))  # from 12:19:40 on
    (step,) = verdicts({"node3": (dates, durations)}, {"node3": samples(temperature_package_celsius=warmer)})
    assert (step.node, step.kind, step.start_s, step.end_s) == ("node3", "step", NOON + 1170, NOON + 1200)
    assert step.message.startswith("node3: the reference kernel became 6.")
    assert "% slower between 12:19:30 and 12:20:00 UTC (p < 0.000001), " in step.message
    assert step.message.endswith(", temperature package +9 K meanwhile")


def test_a_drift_is_named_and_is_no_step() -> None:
    dates, durations = reference()
    (found,) = verdicts({"node1": (dates, durations * np.linspace(1, 1.05, 80))}, {})
    assert (found.kind, found.start_s, found.end_s) == ("drift", dates[0], dates[-1])
    assert "from 12:00:00 to 12:39:30 UTC the reference kernel became" in found.message
    assert "slower gradually" in found.message


def test_heat_is_named_while_it_lasts() -> None:
    celsius = changed(80.0, 60.0, range(100, 121))
    celsius[110] = None  # a sensor that did not answer once
    (found,) = monitored("node1", samples(temperature_package_celsius=celsius))
    assert (found.kind, found.start_s, found.end_s) == ("temperature", NOON + 500, NOON + 600)
    assert found.message == (
        "node1: temperature package reached 80 °C (usually up to 60 °C) from 12:08:20 to 12:10:00 UTC"
    )
    # a start in the cold is no reason, neither is a load that comes again, nor are 10 K
    assert list(monitored("node1", samples(temperature_package_celsius=changed(30.0, 60.0, range(400))))) == []
    assert list(monitored("node1", samples(temperature_package_celsius=changed(85.0, 50.0, range(0, 480, 8))))) == []
    assert list(monitored("node1", samples(temperature_package_celsius=changed(70.0, 60.0, range(20))))) == []
    # always too hot is: nothing rises above its median
    assert [v.kind for v in monitored("node1", samples(temperature_package_celsius=[95.0] * 480))] == ["temperature"]


def busy(cores: float, places: range, period_s: float = 5.0) -> list[object]:
    """The counter of CPU time where others use that many cores in the samples at `places`."""
    return np.cumsum([cores * period_s * (i in places) for i in range(480)]).tolist()


def test_another_user_and_time_that_the_hypervisor_took_are_named_from_the_sample_before_on() -> None:
    users = samples(
        other_users_cpu_s=busy(1.5, range(100, 103)),
        other_users=changed("1001:make -j 1.30; 1000:python 0.20", "0:sshd 0.01", range(100, 103)),
    )
    (found,) = monitored("node1", users)
    assert (found.kind, found.start_s, found.end_s) == ("other user", NOON + 495, NOON + 510)
    assert found.message == "node1: 1000:python, 1001:make -j used up to 1.5 cores from 12:08:15 to 12:08:30 UTC"
    (found,) = monitored("n", samples(steal_share=changed(0.05, 0.015, range(100, 103))))
    assert (found.kind, found.start_s, found.end_s) == ("stolen time", NOON + 495, NOON + 510)
    assert found.message == "n: the hypervisor took up to 5.0 % of the CPU time from 12:08:15 to 12:08:30 UTC"
    assert WITNESS[found.kind] == "steal"


@pytest.mark.parametrize(("jump_s", "way"), [(2.5, "forward"), (-0.02, "back")])
def test_a_clock_that_was_set_is_named(jump_s: float, way: str) -> None:
    times = [NOON + 5.0 * i + (jump_s if i >= 50 else 0.0) for i in range(480)]
    (found,) = monitored("node1", samples(time_s=times))
    assert (found.kind, found.start_s, found.end_s) == ("clock step", NOON + 245, NOON + 250 + jump_s)
    assert f"the clock was set {way} by {significant(abs(jump_s))} s" in found.message


def test_a_slow_clock_is_throttling_only_where_it_is_hot() -> None:
    slow = changed(1.5e9, 2.0e9, range(200, 210))
    assert list(monitored("node1", samples(frequency_core0_hz=slow))) == []
    hot = changed(96.0, 60.0, range(200, 210))
    found = list(monitored("node1", samples(frequency_core0_hz=slow, temperature_package_celsius=hot)))
    assert [v.kind for v in found] == ["temperature", "throttling"]
    assert "the fastest core was down to 1.50 GHz (usually 2.00 GHz) while hot" in found[1].message


def test_rows_get_the_troubles_of_their_node_at_their_date() -> None:
    found = [
        Verdict("a", "step", 10.0, 12.0, ""),
        Verdict("a", "step", 20.0, 22.0, ""),
        Verdict("a", "other user", 5.0, 11.0, ""),
        Verdict("a", "temperature", 21.0, 30.0, ""),
        Verdict("b", "clock step", 1.0, 2.0, ""),
    ]
    rows = [(4.9, ""), (5.0, "other user"), (10.0, "other user"), (10.5, "other user; step"), (11.5, "step")]
    rows += [
        (12.0, "segment 2 of 3"),
        (21.0, "segment 2 of 3; step; temperature"),
        (22.0, "segment 3 of 3; temperature"),
    ]
    rows += [(31.0, "segment 3 of 3")]
    assert mark([t for t, _ in rows], ["a"] * len(rows), found) == [text for _, text in rows]
    assert mark([1.5, 1.5, 3.0], ["b", "c", "b"], found) == ["clock step", "", ""]


def test_failed_runs_of_the_reference_kernel_say_nothing() -> None:
    dates, durations = reference()
    durations[40:] *= 1.062
    (clean,) = verdicts({"a": (dates, durations)}, {})
    broken = [*durations.tolist(), float("nan"), 0.0, -1.0]
    (step,) = verdicts({"a": ([*dates.tolist(), dates[50] + 1, dates[60] + 1, float("inf")], broken)}, {})
    assert step == clean
    with pytest.raises(InputError, match="a has 1 dates and 0 durations"):
        verdicts({"a": ([1.0], [])}, {})

"""Differences of two predictions: what cancels, what does not, and what is refused."""

import re
from math import nan
from pathlib import Path

import pytest

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate import Layers
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.prediction.comparing import Difference, what_narrows
from lepaute.stats.intervals import median_of_runs, prediction_interval

SMALL = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
HPL = lp.Hpl(n=600, nb=64, p=2, q=2)
LARGER = lp.Hpl(n=900, nb=64, p=2, q=2)
BASE = ["predict", "hpl", "-p", str(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")]
BASE += ["--n", "600", "--nb", "64", "--grid", "2x2", "--runs", "3"]


def with_run_effect(relative_sd: float) -> Platform:
    return override(SMALL, {"days.run_relative_sd": str(relative_sd)})


def test_run_zero_of_a_day_is_the_run_of_its_seed_and_others_differ_in_their_noise() -> None:
    first, again, second = (lp.predict(HPL, SMALL, runs=2, repeat=repeat).run_list for repeat in (0, 0, 1))
    assert first == again == lp.predict(HPL, SMALL, runs=2).run_list
    assert all(one.time_s != other.time_s for one, other in zip(first, second, strict=True))


def test_without_draws_of_single_runs_all_runs_of_a_day_are_the_same() -> None:
    quiet = Layers(noise=False)
    one, other = (lp.predict(HPL, SMALL, runs=3, repeat=repeat, layers=quiet) for repeat in (0, 5))
    assert [run.time_s for run in one.run_list] == [run.time_s for run in other.run_list]
    found = lp.difference(one, other)
    assert (found.ratio, found.low, found.high, found.run_noise) == (1.0, 1.0, 1.0, False)


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
    platform, quiet = with_run_effect(0.05), Layers(noise=False)
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


def test_a_difference_in_words() -> None:
    found = Difference(1.0312, 1.012, 1.05, True, True)
    assert found.text == "3.1 % slower (95 %: 1.2 to 5.0 % slower)"
    assert found.in_words() == "3.1 % more (95 %: 1.2 to 5.0 % more)"
    assert Difference(0.9, 0.85, 0.96, True, True).text == "10.0 % faster (95 %: 4.0 to 15.0 % faster)"
    told = "cannot be told apart (95 %: 2.0 % faster to 0.1 % slower)"
    assert Difference(0.99, 0.98, 1.001, True, True).text == told
    assert Difference(2.0, nan, nan, True, True).text == "100 % slower (one run: no interval)"
    assert Difference(1.1, 1.1, 1.1, True, False).text == "10 % slower in all runs"
    assert Difference(11.0, 6.89, 16.28, True, True).in_words() == "1000 % more (95 %: 590 to 1530 % more)"


def test_the_command_tells_each_difference(output_of):
    lines = output_of(*BASE, "--against", "nb=32", "--against", "grid=1x4", "--against", "platform=dahu").splitlines()
    assert sum(line.startswith("nb 32 against 64: ") for line in lines) == 1
    assert sum(line.startswith("grid 1x4 against 2x2: ") for line in lines) == 1
    (platform,) = [line for line in lines if line.startswith("platform dahu-2020-01 against small: ")]
    assert "; models fitted apart, so that no errors cancel" in platform


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("=3", "--against '=3': write FIELD=VALUE"),
        ("nb=64", "--against nb=64: nb has that value already"),
        ("nb=x", "--against nb=x: --nb is 'x'; it must be a whole number"),
        ("nb=0", "--against nb=0: nb is 0"),
        ("color=red", "--against color=red: HPL has no parameter 'color'; give n, nb, grid, "),
        ("grid=9x9", "--against grid=9x9: 81 ranks"),
        ("swap=zig", "--against swap=zig: swap is 'zig'"),
        ("mapping=zig", "--against mapping=zig: mapping is 'zig'; it is sequential or random"),
        ("mapping=sequential", "--against mapping=sequential: that is the mapping already"),
        ("scale.bandwidth=0", "--against scale.bandwidth=0: "),
        ("scale.zig=2", "--against scale.zig=2: "),
    ],
)
def test_a_field_or_value_that_cannot_be_is_refused_in_one_line(given, told, refusal_of):
    assert refusal_of(*BASE, "--against", given).startswith(f"lepaute: {told}")


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


def test_what_would_narrow_a_difference_is_said() -> None:
    close = compared(sheet("fast", dgemm_flops=45e9), sheet("slow", dgemm_flops=44.9e9))
    assert not close.is_told_apart
    assert re.fullmatch(
        r"cannot be told apart \(95 %: .*\); --runs 30 would narrow this by \d+\.\d %; a calibration instead of what "
        "is assumed would narrow it further",
        close.text,
    )
    many = [1.0 + 0.01 * (at % 3) for at in range(30)]
    assert what_narrows(many, assumed=False) == what_narrows([1.0], assumed=False) == ""
    assert what_narrows(many[:5], assumed=False) != ""
    # Nothing is gained where the error that all runs share makes the interval.
    assert what_narrows(many[:5], 0.5, assumed=False) == ""

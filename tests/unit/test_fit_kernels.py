"""Kernels from their calls, and what `lepaute.fit.segment` and `segment_jointly` promise about single cases."""

import dataclasses

import numpy as np
import pandas
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit import segment, segment_jointly
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import group_errors, kernel_model, quality_row
from lepaute.measure.fit.observations.calls import Calls, calls_by_kernel, glue_calls, pooled_observations
from lepaute.measure.fit.variability.days import block_effects, discrepancy_relative_sd

CLOCK_S = 2e-8


def calls(kernel: str, seed: int, count: int = 2000, blocks: int = 5, block_sd: float = 0.0, noise: float = 0.05):
    """Calls inside steps on two cores, core 1 ten per cent slower; duration 3e-11 mnk or 2e-10 mn, and 1e-7."""
    rng = np.random.default_rng(seed)
    m, n = np.floor(10 ** rng.uniform(1, 3.5, (2, count)))
    k = np.full(count, 128.0)
    cpu, block = rng.integers(0, 2, count), rng.integers(0, blocks, count)
    effect = np.exp(block_sd * rng.normal(size=blocks))[block]
    work = 3e-11 * m * n * k if kernel.startswith("dgemm") else 2e-10 * m * n
    duration = (work + 1e-7) * np.where(cpu == 1, 1.1, 1.0) * effect * (1 + noise * np.abs(rng.normal(size=count)))
    return Calls(
        kernel, m, n, k if kernel.startswith("dgemm") else 0 * k, duration, cpu, block, np.zeros(count, dtype=np.int64),
        np.ones(count, dtype=bool), np.zeros(count, dtype=bool), ("hpl_steps_1x1",),
    )  # fmt: skip


def observations(rows: list[tuple[object, ...]], **columns: object) -> pandas.DataFrame:
    """Rows of (kernel, m, n, k, start_s, duration_s, position)."""
    frame = pandas.DataFrame(rows, columns=["kernel", "m", "n", "k", "start_s", "duration_s", "position"])
    defaults = {"design_row": 0, "rank": 0, "cpu": 0, "block": 0, "probe": "hpl_steps_1x1", "clock_cost_s": CLOCK_S}
    return frame.assign(**{**defaults, **columns})


@pytest.mark.parametrize("kernel", ["dgemm", "dgemm_nn"])
def test_dgemm_has_a_model_a_core_and_the_others_one_for_all(kernel):
    measured = calls(kernel, 1)
    fitted = fit_kernel(measured)
    assert all(sorted(piece.own) == [0, 1] for piece in fitted.pieces)
    # The same calls on either core; single coefficients are less sure than what they predict together.
    fast, slow = (fitted.predict(dataclasses.replace(measured, cpu=np.full(len(measured), at))).sum() for at in (0, 1))
    assert slow / fast == pytest.approx(1.1, rel=0.01)
    assert all(not piece.own for piece in fit_kernel(calls("dger", 1)).pieces)


def test_a_step_in_the_cost_of_an_element_makes_a_piece_and_an_update_of_few_rows_another():
    # A copy that leaves the cache beyond 1000 columns and then costs four times as much.
    base = calls("dlacpy", 2)
    stepped = dataclasses.replace(base, duration_s=base.duration_s * np.where(base.n > 1000, 4.0, 1.0))
    fitted = fit_kernel(stepped)
    errors, _ = group_errors(stepped, fitted)
    assert len(fitted.pieces) >= 2
    assert np.max(np.abs(errors)) < 0.05
    base = calls("dgemm_nn", 11)
    short = dataclasses.replace(base, duration_s=base.duration_s * np.where(base.m <= 2000, 1.05, 1.0))
    fitted = fit_kernel(short)
    errors, _ = group_errors(short, fitted)
    bounds = [piece.region.where for piece in fitted.pieces]
    assert bounds == [{"n": (0, 128)}, {"m": (0, 2000)}, None]
    assert np.max(np.abs(errors)) < 0.01


def test_first_steps_are_reported_and_neither_they_nor_calls_timed_alone_move_a_model():
    base = calls("dger", 3)
    cold = np.arange(len(base)) < 600
    mixed = dataclasses.replace(base, cold=cold, duration_s=base.duration_s * np.where(cold, 3.0, 1.0))
    fitted = fit_kernel(mixed)
    warm = mixed.where(~cold)
    assert fitted.predict(warm).sum() == pytest.approx(warm.duration_s.sum(), rel=0.01)
    assert quality_row(mixed, fitted, 0.0).cold_excess == pytest.approx(2.0, abs=0.15)
    base = calls("dgemm", 4)
    alone = np.arange(len(base)) < 1000
    mixed = dataclasses.replace(base, in_context=~alone, duration_s=base.duration_s * np.where(alone, 2.0, 1.0))
    inside = mixed.where(~alone)
    assert fit_kernel(mixed).predict(inside).sum() == pytest.approx(inside.duration_s.sum(), rel=0.01)


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_few_calls_give_a_product_and_a_constant_that_hold_elsewhere(count):
    errors = []
    for seed in range(40):
        few, others = calls("dlacpy", seed, count=count), calls("dlacpy", 100 + seed, count=500)
        fitted = fit_kernel(few)
        assert set(fitted.pieces[0].pooled.terms) <= {"mn", "1"}
        assert fitted.pieces[0].pooled.mean[0] > 0
        assert f"only {count} calls" in fitted.note
        assert str(fitted.form).startswith("M-1")
        errors.append(np.log(fitted.predict(others).sum() / others.duration_s.sum()))
    # A constant would be off by the ratio of the sizes, a factor of several; noise and the law of small calls are not.
    assert np.median(np.abs(errors)) < (0.7 if count < 4 else 0.25)


def test_one_interruption_does_not_make_a_short_kernel_slow():
    base = calls("dlacpy", 6, count=400)
    duration = base.duration_s.copy()
    duration[7] += 20 * duration.sum()
    fitted = fit_kernel(dataclasses.replace(base, duration_s=duration)).settled(0.01)
    # The machine loses 1 %; a twentieth of this kernel's own excess of 2000 % counts as well.
    assert fitted.predict(base).sum() < 2.3 * base.duration_s.sum()


def test_a_kernel_becomes_a_valid_model_of_a_platform():
    measured = calls("dgemm", 7)
    model = kernel_model(fit_kernel(measured), 0.02, (((1.0, 0.01),), 0.0), {0: (1, 0), 1: (1, 1)})
    piece = model.pieces[-1]
    assert piece.where is None
    assert piece.noise.kind == "half-normal"
    assert [row[:2] for row in piece.per_cpu.rows] == [(1.0, 0.0), (1.0, 1.0)]
    assert model.discrepancy_relative_sd == 0.02


@pytest.mark.parametrize("planted", [0.02, 0.1])
def test_the_spread_between_blocks_is_recovered(planted):
    # Little noise: a block's sum rests on a few large calls, whose scatter would pass for an effect of the core.
    measured = calls("dgemm", 8, count=6000, blocks=40, block_sd=planted, noise=0.005)
    effects = block_effects([(measured, fit_kernel(measured))])
    assert effects.sd.block_degrees_of_freedom == 39
    # The sample deviation of 40 effects is within a third of the planted one but once in ten thousand.
    assert effects.sd.block_sd == pytest.approx(planted, rel=0.45)
    assert np.hypot(effects.sd.launch_sd, effects.sd.process_sd) < 0.3 * planted


def test_steps_of_other_options_in_each_block_tell_nothing_of_the_block_or_the_processes():
    steps, options = calls("dgemm", 12, blocks=5, noise=0.005), calls("dgemm", 13, count=400, blocks=5, noise=0.005)
    off = np.array([0.8, 1.3, 1.0, 0.7, 1.2])[options.block]
    joined = {
        field.name: np.concatenate([getattr(steps, field.name), getattr(options, field.name)])
        for field in dataclasses.fields(Calls)
        if isinstance(getattr(steps, field.name), np.ndarray)
    }
    joined["duration_s"][len(steps) :] *= off
    joined["probe"][len(steps) :] = 1
    both = dataclasses.replace(steps, **joined, probes=("hpl_steps_1x1", "hpl_steps_options"))
    kernel = fit_kernel(steps)
    mine, alone = block_effects([(both, kernel)]), block_effects([(steps, kernel)])
    assert mine.sd == alone.sd


def test_one_block_has_no_spread():
    measured = calls("dgemm", 9, blocks=1)
    assert block_effects([(measured, fit_kernel(measured))]) is None
    assert discrepancy_relative_sd(measured, fit_kernel(measured), None) == 0.0


def test_a_right_model_has_next_to_no_discrepancy_and_a_wrong_one_has_it():
    right = calls("dgemm", 10, count=4000)
    assert discrepancy_relative_sd(right, fit_kernel(right), None) < 0.01
    # A cost that no polynomial of the terms describes: a third more for every other power of two of m.
    wrong = dataclasses.replace(right, duration_s=right.duration_s * np.where(np.log2(right.work()) > 24, 1.0, 1.5))
    assert discrepancy_relative_sd(wrong, fit_kernel(wrong), None) > 0.02


def test_the_scatter_of_few_large_calls_and_effects_of_processes_are_no_discrepancy():
    few = calls("dgemm", 11, count=400, blocks=100)
    # Classes of one call have the error of that call, 3 %, and no residual about their own mean.
    assert discrepancy_relative_sd(few, fit_kernel(few), None) < 0.01
    many = calls("dgemm", 12, count=4000, blocks=8, noise=0.005)
    process = np.exp(0.05 * np.random.default_rng(12).normal(size=(8, 2)))[many.block, many.cpu]
    slowed = dataclasses.replace(many, duration_s=many.duration_s * process)
    fitted = fit_kernel(slowed)
    assert discrepancy_relative_sd(slowed, fitted, None) > 0.03
    assert discrepancy_relative_sd(slowed, fitted, block_effects([(slowed, fitted)])) < 0.02


def test_glue_is_the_phase_less_its_kernels_and_the_clock_which_is_subtracted_of_these_too():
    rows = [
        ("dgemm", 100, 2, 2, 10.0, 3e-6 + CLOCK_S, 1),
        ("dscal", 0, 100, 0, 10.1, 1e-6 + CLOCK_S, 1),
        ("dcopy_contiguous", 0, 100, 0, 10.15, 5e-7 + CLOCK_S, 1),  # no model: stays in the glue
        ("pdfact", 100, 128, 0, 9.9, 0.3, 1),
        ("dtrsm", 128, 10, 128, 11.0, 1e-3, 1),  # outside
        ("pdupdate", 100, 10, 128, 10.9, 0.2, 1),
    ]
    table = pooled_observations([observations(rows)])
    glue = glue_calls(table)
    # Three timed calls: one clock inside the stamps of each, one outside; the phase has its own.
    assert glue["pdfact_glue"].duration_s == pytest.approx([0.3 - 4e-6 - 7 * CLOCK_S], abs=1e-12)
    assert glue["pdupdate_glue"].duration_s == pytest.approx([0.2 - 1e-3 - 2 * CLOCK_S], abs=1e-12)
    assert glue["pdfact_glue"].m.tolist() == [100.0]
    table = pooled_observations([observations([("dgemm", 1, 1, 1, 0.0, 1e-6, 0), ("pdfact", 1, 1, 0, 0.0, 1.0, 0)])])
    kernels = calls_by_kernel(table)
    assert list(kernels) == ["dgemm"]
    assert kernels["dgemm"].duration_s == pytest.approx([1e-6 - CLOCK_S])
    assert kernels["dgemm"].cold.tolist() == [True]
    rows = [("dgemm_nn", 2000, 1500, 128, 1.0, 1e-2, 0), ("dgemm_nn", 2000, 100, 128, 1.1, 1e-3, 0)]
    rows += [("dlaswp00N", 128, 20000, 2000, 1.2, 1e-2, 0)]
    kernels = calls_by_kernel(pooled_observations([observations(rows)]))
    assert kernels["dgemm_nn"].cold.tolist() == [False, True]
    assert kernels["dlaswp00N"].cold.tolist() == [True]


def three_regimes(seed: int, noise: float = 0.03):
    rng = np.random.default_rng(seed)
    x = 10 ** rng.uniform(0, 6, 400)
    y = np.where(x < 1e3, 1e-6 + 1e-9 * x, np.where(x < 1e5, 5e-6 + 2e-10 * x, 6e-5 + 1e-10 * x))
    return x, y * (1 + noise * rng.normal(size=400))


@pytest.mark.parametrize("objective", ["ordinary", "weighted", "log"])
def test_a_line_without_noise_has_no_breakpoint_and_its_own_coefficients(objective):
    x = np.geomspace(1, 1e8, 120)
    fitted = segment(x, 2e-6 + 3e-10 * x, objective=objective)
    assert fitted.breakpoints == ()
    assert fitted.segments[0].intercept == pytest.approx(2e-6, rel=1e-6)
    assert fitted.segments[0].slope == pytest.approx(3e-10, rel=1e-9)


def test_a_segment_ends_at_its_breakpoint_and_given_ones_are_moved_to_the_size_below():
    x = np.arange(1.0, 21.0)
    y = np.where(x <= 10, 1.0, 100.0)
    line = segment(x, y, objective="ordinary", n_breakpoints=1)
    assert line.breakpoints == (10.0,)
    assert line.predict([10.0, 11.0]) == pytest.approx([1.0, 100.0])
    x = np.arange(1.0, 41.0)
    y = np.where(x <= 20, 1 + x, 100 + 2 * x)
    fitted = segment(x, y, breakpoints=[20.7])
    assert fitted.breakpoints == (20.0,)
    assert [line.slope for line in fitted.segments] == pytest.approx([1, 2])


def test_every_further_breakpoint_is_listed_with_what_it_gains():
    x, y = three_regimes(7)
    fitted = segment(x, y, most_breakpoints=6)
    assert [len(candidate.breakpoints) for candidate in fitted.candidates] == list(range(7))
    left = [candidate.residual for candidate in fitted.candidates]
    assert fitted.gains == pytest.approx([before / after for before, after in zip(left[:-1], left[1:], strict=True)])
    assert min(fitted.gains[:2]) > 5
    assert max(fitted.gains[2:]) < 1.2
    assert fitted.table().count("<- chosen") == 1


@pytest.mark.parametrize(
    ("places", "number", "message"),
    [([3.0, 2.0], None, "increase"), ([0.5], None, "segment 1 .* holds no point"), ("abc", None, ""), ([5], 1, ""),
     ([10.2, 10.6], None, "segment 2 .* holds no point"), ([float("nan")], None, "finite")],
)  # fmt: skip
def test_given_breakpoints_that_make_no_segments_or_contradict_their_number_are_refused(places, number, message):
    x = np.arange(1.0, 41.0)
    with pytest.raises(FitError, match=message):
        segment(x, x, breakpoints=places, n_breakpoints=number)


def test_pieces_without_slope_find_the_levels_of_a_staircase():
    rng = np.random.default_rng(9)
    x = np.geomspace(1e3, 1e8, 150)
    level = np.where(x < 32e3, 50.0, np.where(x < 1e6, 20.0, 8.0))
    fitted = segment(x, level * rng.lognormal(0, 0.03, 150), shape="constant")
    assert [line.intercept for line in fitted.segments] == pytest.approx([50, 20, 8], rel=0.02)
    assert all(line.slope == 0 for line in fitted.segments)
    assert fitted.breakpoints == (x[x < 32e3].max(), x[x < 1e6].max())


def test_repeated_sizes_count_by_their_number():
    x = np.array([1.0, 2, 3, 4, 4, 4, 4])
    y = np.array([1.0, 2, 3, 8, 8, 8, 8])
    spread = np.array([1.0, 2, 3, 4, 5, 6, 7])
    weighted = segment(x, y, objective="ordinary", n_breakpoints=0).segments[0]
    slope, intercept = np.polyfit(x, y, 1)
    assert (weighted.intercept, weighted.slope) == pytest.approx((intercept, slope))
    assert weighted.n_points == 7
    assert segment(spread, y, objective="ordinary", n_breakpoints=0).segments[0].n_points == 7


def test_a_minimum_length_of_segments_is_kept():
    x, y = three_regimes(10)
    bounds = [-np.inf, *segment(x, y, n_breakpoints=8, least_points=30).breakpoints, np.inf]
    counts = [np.sum((x > low) & (x <= high)) for low, high in zip(bounds[:-1], bounds[1:], strict=True)]
    assert min(counts) >= 30


def test_beyond_500_sizes_the_logarithm_still_finds_the_very_size():
    rng = np.random.default_rng(11)
    x = np.unique(10 ** rng.uniform(0, 7, 3000))
    y = np.where(x < 1e4, 1e-6 + 1e-9 * x, 3e-5 + 2e-10 * x) * rng.lognormal(0, 0.02, len(x))
    assert segment(x, y).breakpoints == (x[x < 1e4].max(),)


def test_series_that_share_breakpoints_find_together_what_one_alone_does_not_see():
    rng = np.random.default_rng(12)
    series = []
    for jump, noise in ((3.0, 0.01), (1.05, 0.05)):
        x = np.unique(np.round(10 ** rng.uniform(0, 7, 150)))
        y = np.where(x <= 65536, 1e-6 + 1e-9 * x, jump * (1e-6 + 1e-9 * x)) * rng.lognormal(0, noise, len(x))
        series.append((x, y))
    assert segment(*series[1]).breakpoints == ()
    together = segment_jointly(series)
    assert len(together.breakpoints) == 1
    below = max(float(x[x <= 65536].max()) for x, _ in series)
    assert below <= together.breakpoints[0] <= min(float(x[x > 65536].min()) for x, _ in series)
    assert [len(one.segments) for one in together.series] == [2, 2]
    assert together.gains[0] > together.gains[1]


def test_more_breakpoints_than_the_points_allow_is_an_error_that_says_so():
    with pytest.raises(FitError, match="do not allow 5 breakpoints"):
        segment([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], n_breakpoints=5)
    with pytest.raises(FitError, match="do not allow 9 common breakpoints"):
        segment_jointly([three_regimes(1), ([1, 2, 3], [1, 2, 3])], n_breakpoints=9)


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ([], [], {}, "at least 3"),
        ([1, 2], [1, 2], {}, "at least 3"),
        ([1, 2, 3], [1, 2], {}, "same length"),
        ([1, 2, 3], [1, 2, float("nan")], {}, "finite"),
        ([1, 2, float("inf")], [1, 2, 3], {}, "finite"),
        ([1, 2, 3], [1, 0, 2], {}, "y > 0"),
        ([1, 2, 3], [1, -1, 2], {}, "y > 0"),
        ([-1, 2, 3], [1, 1, 2], {}, "x >= 0"),
        ([0, 2, 3], [1, 1, 2], {"objective": "weighted"}, "x > 0"),
        ([7, 7, 7], [1, 1, 2], {}, "more than one size"),
        (["a", "b", "c"], [1, 1, 2], {}, "vectors of numbers"),
        ([1, 2, 3], [1, 1, 2], {"objective": "relative"}, "ordinary, weighted or log"),
        ([1, 2, 3], [1, 1, 2], {"shape": "parabola"}, "line or constant"),
        ([1, 2, 3], [1, 1, 2], {"n_breakpoints": -1}, "at least 0"),
        ([1, 2, 3], [1, 1, 2], {"least_points": 0}, "least_points is 0"),
    ],
)
def test_unusable_points_and_options_are_refused(x, y, options, message):
    with pytest.raises(FitError, match=message):
        segment(x, y, **options)


@pytest.mark.parametrize("objective", ["log", "ordinary", "weighted"])
@pytest.mark.parametrize("n", [3, 4, 6, 8, 20])
def test_few_points_are_not_cut_into_pairs_that_a_line_meets_exactly(objective, n):
    rng = np.random.default_rng(n)
    x = np.arange(1.0, n + 1.0)
    noise = 0.02 * rng.normal(size=n) * (10.0 if objective == "ordinary" else x)
    assert segment(x, x + noise, objective=objective).breakpoints == ()


def test_seven_sizes_prove_no_breakpoint_say_how_many_do_and_name_one_that_they_are_too_few_for():
    x = 2.0 ** np.arange(7)
    fitted = segment(x, np.where(x > 4, 5e-6, 1e-6) * (1 + 0.01 * np.sin(x)))
    assert fitted.breakpoints == ()
    assert fitted.notes == ("7 distinct sizes cannot prove a breakpoint: measure 8 at least",)
    # The residual falls by three quarters: among 200 sizes that would be a breakpoint, among nine it may be chance.
    rng = np.random.default_rng(3)
    x = 2.0 ** np.arange(9)
    notes = []
    for _ in range(200):
        y = np.where(x > 16, 1.25e-6, 1e-6) * rng.lognormal(0, 0.05, 9)
        notes += segment(x, y).notes
    assert any("a first breakpoint, near 16, would divide the residual by" in note for note in notes)
    assert any("which 9 sizes do not prove: measure more sizes around it" in note for note in notes)


def test_a_piece_that_no_further_size_checks_is_named():
    x, y = 2.0 ** np.arange(23), np.ones(23)
    y[11:13], y[13:] = 3.0, 9.0
    fitted = segment(x, y * (1 + 0.001 * np.cos(x)), n_breakpoints=2)
    assert fitted.breakpoints == (1024.0, 4096.0)
    assert fitted.notes == (
        "the piece up to 4096 rests on 2 distinct sizes, which a line meets whatever they are: "
        "measure more sizes there",
    )


def correlated(seed: int, *, shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """200 sizes with one jump, measured one after the other by a machine whose speed lasts."""
    rng = np.random.default_rng(seed)
    x = np.sort(np.floor(10 ** rng.uniform(1, 6, 200)))
    x = rng.permutation(x) if shuffled else x
    speed = rng.normal(size=200)
    for i in range(1, 200):
        speed[i] = 0.8 * speed[i - 1] + 0.6 * speed[i]
    return x, (1e-6 + 1e-9 * x + 5e-6 * (x > 2e4)) * np.exp(0.03 * speed)


def test_sizes_that_were_measured_in_their_order_on_a_machine_that_wanders_are_named():
    # A correlation of 0.8 is eight to ten standard errors from 0 with 200 points.
    for seed in range(5):
        assert any(
            "measure the sizes in random order" in note for note in segment(*correlated(seed, shuffled=False)).notes
        )
        assert not any("random order" in note for note in segment(*correlated(seed, shuffled=True)).notes)


def test_no_coefficient_of_the_logarithmic_objective_is_negative():
    x = np.geomspace(1, 1e6, 60)
    falling = segment(x, 1e-3 / np.log(x + 2), n_breakpoints=2)
    assert all(line.intercept >= 0 and line.slope >= 0 for line in falling.segments)


def test_jointly_one_series_is_cut_as_alone():
    x, y = three_regimes(13)
    assert segment_jointly([(x, y)]).breakpoints == segment(x, y).breakpoints

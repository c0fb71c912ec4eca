import dataclasses

import numpy as np
import pandas
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import group_errors, kernel_model, quality_row
from lepaute.measure.fit.observations.calls import Calls, calls_by_kernel, glue_calls, pooled_observations
from lepaute.measure.fit.variability.days import block_effects, discrepancies, discrepancy_relative_sd

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
    fast, slow = (
        fitted.predict(dataclasses.replace(measured, cpu=np.full(len(measured), cpu))).sum() for cpu in (0, 1)
    )
    assert slow / fast == pytest.approx(1.1, rel=0.01)
    assert all(not piece.own for piece in fit_kernel(calls("dger", 1)).pieces)


def test_a_step_in_the_cost_of_an_element_makes_a_piece():
    # A copy that leaves the cache beyond 1000 columns and then costs four times as much.
    base = calls("dlacpy", 2)
    stepped = dataclasses.replace(base, duration_s=base.duration_s * np.where(base.n > 1000, 4.0, 1.0))
    fitted = fit_kernel(stepped)
    errors, _ = group_errors(stepped, fitted)
    assert len(fitted.pieces) >= 2
    assert np.max(np.abs(errors)) < 0.05


def test_an_update_of_few_rows_has_a_piece_of_its_own():
    base = calls("dgemm_nn", 11)
    short = dataclasses.replace(base, duration_s=base.duration_s * np.where(base.m <= 2000, 1.05, 1.0))
    fitted = fit_kernel(short)
    errors, _ = group_errors(short, fitted)
    bounds = [piece.region.where for piece in fitted.pieces]
    assert bounds == [{"n": (0, 128)}, {"m": (0, 2000)}, None]
    assert np.max(np.abs(errors)) < 0.01


def test_first_steps_are_not_fitted_but_reported():
    base = calls("dger", 3)
    cold = np.arange(len(base)) < 600
    mixed = dataclasses.replace(base, cold=cold, duration_s=base.duration_s * np.where(cold, 3.0, 1.0))
    fitted = fit_kernel(mixed)
    warm = mixed.where(~cold)
    assert fitted.predict(warm).sum() == pytest.approx(warm.duration_s.sum(), rel=0.01)
    assert quality_row(mixed, fitted, 0.0).cold_excess == pytest.approx(2.0, abs=0.15)


def test_calls_timed_alone_do_not_move_a_model_that_has_enough_calls_of_the_application():
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


def test_a_kernel_called_in_one_block_alone_is_no_better_known_than_the_others():
    wrong, single = calls("dgemm", 10, count=4000), calls("dlaswp06N", 9, blocks=1)
    wrong = dataclasses.replace(wrong, duration_s=wrong.duration_s * np.where(np.log2(wrong.work()) > 24, 1.0, 1.5))
    fitted = [(measured, fit_kernel(measured)) for measured in (wrong, single)]
    known, taken = discrepancies(fitted, None)
    assert known == taken > 0.02
    assert discrepancies(fitted[1:], None) == [0.0]


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


def test_glue_is_the_phase_less_its_kernels_and_the_clock():
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


def test_glue_ignores_other_rows_of_the_design_and_runs_with_messages():
    rows = [("dgemm", 1, 1, 1, 10.0, 1e-3, 1), ("pdfact", 1, 1, 0, 9.9, 0.3, 1)]
    frame = observations(rows, design_row=[1, 2])
    assert glue_calls(pooled_observations([frame]))["pdfact_glue"].duration_s == pytest.approx([0.3 - CLOCK_S])
    assert glue_calls(pooled_observations([observations(rows, probe="hpl_steps_2x1")])) == {}


def test_glue_does_not_mix_the_attempts_of_a_run():
    # Both attempts of one row of a design, with stamps of two clocks that happen to overlap.
    rows = [("pdfact", 1, 1, 0, 9.9, 0.3, 1), ("pdfact", 1, 1, 0, 9.95, 0.2, 1), ("dgemm", 1, 1, 1, 10.0, 1e-3, 1)]
    glue = glue_calls(pooled_observations([observations(rows, attempt=[0, 1, 0])]))
    assert glue["pdfact_glue"].duration_s == pytest.approx([0.3 - 1e-3 - 2 * CLOCK_S, 0.2 - CLOCK_S])


def test_the_clock_is_subtracted_and_phases_are_no_kernels():
    table = pooled_observations([observations([("dgemm", 1, 1, 1, 0.0, 1e-6, 0), ("pdfact", 1, 1, 0, 0.0, 1.0, 0)])])
    kernels = calls_by_kernel(table)
    assert list(kernels) == ["dgemm"]
    assert kernels["dgemm"].duration_s == pytest.approx([1e-6 - CLOCK_S])
    assert kernels["dgemm"].cold.tolist() == [True]


def test_the_forms_of_a_product_and_of_a_triangular_solve_are_kernels_apart():
    rows = [(name, 128, 10, 128, 1.0, 1e-3, 1) for name in ("dgemm", "dgemm_nn", "dtrsm", "dtrsm_left")]
    kernels = calls_by_kernel(pooled_observations([observations([*rows, ("pdupdate", 100, 10, 128, 0.9, 0.2, 1)])]))
    assert {name: len(found) for name, found in kernels.items()} == dict.fromkeys([row[0] for row in rows], 1)


def test_blocks_of_two_archives_do_not_meet():
    frame = observations([("dgemm", 1, 1, 1, 0.0, 1e-6, 1)] * 2, block=[0, 1])
    assert pooled_observations([frame, frame])["block"].tolist() == [0, 1, 2, 3]


def test_durations_that_are_not_numbers_are_refused():
    broken = dataclasses.replace(calls("dger", 1), duration_s=np.full(2000, np.nan))
    with pytest.raises(FitError, match="not finite"):
        fit_kernel(broken)


def test_streamed_products_of_a_first_step_are_as_good_as_any():
    rows = [("dgemm_nn", 2000, 1500, 128, 1.0, 1e-2, 0), ("dgemm_nn", 2000, 100, 128, 1.1, 1e-3, 0)]
    rows += [("dlaswp00N", 128, 20000, 2000, 1.2, 1e-2, 0)]
    kernels = calls_by_kernel(pooled_observations([observations(rows)]))
    assert kernels["dgemm_nn"].cold.tolist() == [False, True]
    assert kernels["dlaswp00N"].cold.tolist() == [True]

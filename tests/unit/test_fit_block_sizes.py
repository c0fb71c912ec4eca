"""Which model a kernel gets, and what a fit says of dgemm at block sizes between those that were measured."""

# ruff: noqa: ARG005 - the lambdas all take the same arguments
import dataclasses
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.measure.design import dgemm_design, hpl_step_design
from lepaute.measure.fit.kernels.form import SHAPES, Form, form_of, requested_form, requested_forms
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import kernel_model
from lepaute.measure.fit.kernels.polynomial import fit_polynomial
from lepaute.measure.fit.kernels.regions import regions_of
from lepaute.measure.fit.kernels.selection import noise_scores, select
from lepaute.measure.fit.numeric import Floats, Mode
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate.platform.kernel_model import MEANS as PLATFORM_MEANS

SECONDS_PER_FLOP = 1 / 40e9
NBS = (64, 128, 256)
Law = Callable[[Floats], Floats]


def saturating(k0: float) -> Law:
    """Time of a product over that at the full rate, by its depth: the rate is k / (k + k0) of the full one."""
    return lambda k: 1.0 + k0 / k


def shapes(seed: int, nbs: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The products of the steps of one design: updates in chunks and whole, and the halves of the panels."""
    result = []
    for _, m, n, nb, chunks, steps in hpl_step_design(seed, rows=24, nbs=nbs, max_n=8000).rows:
        for step in range(1, int(steps)):  # the first is on cold caches
            rows, columns = int(m) // 2 - step * int(nb) // 2, int(n) + 1 - (step + 1) * int(nb)
            parts = [int(nb)] * int(chunks) + [columns - int(chunks) * int(nb)]
            result += [(rows, part, int(nb)) for part in parts if part > 0]
            width = int(nb) // 2
            while width >= 2:
                result += [(rows, width, width)] * (int(nb) // (2 * width))
                width //= 2
    return [shape for shape in result if min(shape) > 0]


def measured(law: Law, nbs: tuple[int, ...] = NBS, kernel: str = "dgemm", blocks: int = 3) -> Calls:
    """A calibration of two cores: steps of these block sizes, and products of all shapes measured alone."""
    rng = np.random.default_rng(20261122)
    parts = []
    for block in range(blocks):
        for cpu in (0, 1):
            steps = np.array(shapes(10 * block + cpu, nbs), dtype=float)
            alone = dgemm_design(100 + 10 * block + cpu, products=20, product_range=(1e3, 3e8), most=(4000, 4000, 2048))
            products = np.array([row[1:] for row in alone.rows], dtype=float)
            for probe, sizes in ((0, steps), (1, products)):
                process = np.exp(0.01 * rng.normal())
                parts.append(
                    np.column_stack(
                        [sizes, np.full((len(sizes), 3), (cpu, block, probe)), _times(law, sizes, probe, rng) * process]
                    )
                )
    m, n, k, cpu, block, probe, duration_s = np.vstack(parts).T
    whole = (cpu.astype(np.int64), block.astype(np.int64), probe.astype(np.int64))
    return Calls(
        kernel, m, n, k, duration_s, *whole, probe == 0, np.zeros(len(m), dtype=bool), ("hpl_steps_1x1", "dgemm")
    )


def _times(law: Law, sizes: Floats, probe: int, rng: np.random.Generator) -> Floats:
    """Durations with call noise; a product measured alone takes four per cent longer, the panel is less efficient."""
    m, n, k = sizes.T
    mean = 2.0 * m * n * k * SECONDS_PER_FLOP * law(k) * (1.0 + 8.0 / n) + 4e-7
    result: Floats = mean * (1.04 if probe == 1 else 1.0) * (1.0 + 0.02 * np.abs(rng.normal(size=len(m))))
    return result


def error_at(fitted: FittedKernel, law: Law, nb: int) -> float:
    """Relative error of the sum of all updates of a run of 4000 columns on two process rows."""
    left = np.arange(4000 - nb, nb, -nb, dtype=float)
    count = len(left)
    zeros = np.zeros(count, dtype=np.int64)
    sizes = (left / 2, left, np.full(count, float(nb)))
    flags = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    calls = Calls(fitted.kernel, *sizes, np.zeros(count), zeros, zeros, zeros, *flags, ("hpl_steps_1x1",))
    mean = 2.0 * sizes[0] * sizes[1] * nb * SECONDS_PER_FLOP * law(sizes[2]) * (1.0 + 8.0 / left) * 1.016
    return float(fitted.predict(calls).sum() / mean.sum() - 1.0)


@pytest.mark.parametrize(("kernel", "k0"), [("dgemm", 0.0), ("dgemm_nn", 4.0), ("dgemm", 16.0), ("dgemm_nn", 64.0)])
def test_a_rate_that_saturates_with_the_depth_is_known_between_the_block_sizes(kernel: str, k0: float) -> None:
    law = saturating(k0)
    fitted, _ = select(measured(law, kernel=kernel), {})
    for nb in (64, 96, 128, 160, 192, 256):
        # The processes differ by one per cent; between block sizes no more error comes in.
        assert abs(error_at(fitted, law, nb)) < 0.02, nb


@pytest.mark.parametrize("depth", [30.0, 60.0])
def test_a_rate_of_another_law_is_known_within_four_per_cent(depth: float) -> None:
    def law(k: Floats) -> Floats:
        return 1.0 / (1.0 - np.exp(-k / depth))

    fitted, _ = select(measured(law), {})
    errors = [error_at(fitted, law, nb) for nb in (64, 96, 128, 160, 192, 256)]
    assert np.max(np.abs(errors)) < 0.04


def test_updates_of_all_block_sizes_share_pieces_and_the_panel_has_its_own() -> None:
    bounds = [region.where for region in regions_of(measured(saturating(16.0)))]
    depths = {"k": (64.0, 256.0)}
    shallower = {"k": (0.0, 63.0)}
    assert bounds[3:] == [{"n": (0.0, 256.0)} | depths, {"m": (0.0, 2000.0)} | depths, depths, shallower, None]
    # One block size, as in earlier calibrations: from the depth of its panel's recursion on.
    bounds = [region.where for region in regions_of(measured(saturating(16.0), nbs=(128,)))]
    depths = {"k": (65.0, 128.0)}
    assert bounds[3:] == [{"n": (0.0, 128.0)} | depths, {"m": (0.0, 2000.0)} | depths, depths, {"k": (0.0, 64.0)}, None]


def test_wide_products_of_small_blocks_measured_alone_count_as_extrapolated_in_an_application() -> None:
    """Alone, their operands are cold, which doubles the time of a shallow product; deep ones compute."""
    fitted = fit_kernel(measured(saturating(16.0)))
    (shallow,) = [piece for piece in fitted.pieces if piece.region.where == {"k": (0.0, 63.0)}]
    octaves = [box for box in shallow.ranges if box["k"][0] <= 32.0 <= box["k"][1]]
    assert octaves
    assert all(box["n"][1] <= 64.0 for box in octaves)
    assert fitted.pieces[-1].range["k"][1] > 256.0


def test_long_updates_that_leave_the_caches_do_not_follow_the_many_short_and_narrow_ones() -> None:
    def cached(calls: Calls) -> Floats:
        return 1.0 - 0.08 * ((calls.n <= 256) | (calls.m <= 2000))

    calls = measured(saturating(8.0))
    calls = replace(calls, duration_s=calls.duration_s * np.where(calls.k >= 64, cached(calls), 1.0))
    fitted, _ = select(calls, {})
    long = calls.where((calls.k >= 64) & (calls.n > 256) & (calls.m > 2000) & calls.in_context)
    assert fitted.predict(long).sum() == pytest.approx(long.duration_s.sum(), rel=0.015)


def test_updates_that_cost_more_beyond_some_thousand_columns_are_cut_there() -> None:
    """As where a matrix has more columns than a core can hold the addresses of."""

    def more(calls: Calls) -> Floats:
        return 1.0 + 0.10 * (calls.n > 4500)

    plain = measured(saturating(8.0), blocks=8)
    calls = replace(plain, duration_s=plain.duration_s * more(plain))
    edges = [region.where["n"][1] for region in regions_of(calls) if region.where and set(region.where) == {"n", "k"}]
    assert any(3500 < edge < 5000 for edge in edges)
    fitted = fit_kernel(calls)
    for low, high in ((2500, 4000), (5500, 8000)):
        part = calls.where((calls.k >= 64) & (calls.n > low) & (calls.n < high) & (calls.m > 2000) & calls.in_context)
        assert fitted.predict(part).sum() == pytest.approx(part.duration_s.sum(), rel=0.02)
    assert not any(region.where and 3500 < region.where.get("n", (0, 0))[1] < 5000 for region in regions_of(plain))


def test_copies_are_right_at_every_size_of_the_matrix_though_few_are_large() -> None:
    """An element costs from 1 to 14 ns, by the rows that the trailing matrix has left."""
    rng = np.random.default_rng(3)
    count = 170
    rows = np.floor(10 ** rng.uniform(2, 3.9, count))
    nb, n = rng.choice([64.0, 128.0, 256.0], count), np.floor(rows * rng.uniform(0.3, 1.0, count))
    element_s = np.select([rows < 600, rows < 2000], [1e-9, 5e-9], 14e-9)
    duration_s = nb * n * element_s * (1 + 0.1 * np.abs(rng.normal(size=count))) + 1e-7
    zeros = np.zeros(count, dtype=np.int64)
    flags = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    blocks = np.arange(count) % 3
    calls = Calls("dlaswp01T", nb, n, rows, duration_s, zeros, blocks, zeros, *flags, ("hpl_steps_column",))
    fitted = fit_kernel(calls)
    # Cuts fall between two sizes of a few tens: what is left is the step itself.
    for low, high in ((100, 500), (800, 1800), (2500, 8000)):
        part = calls.where((rows > low) & (rows < high))
        assert fitted.predict(part).sum() == pytest.approx(part.duration_s.sum(), rel=0.5)


def test_rows_permuted_in_a_u_that_is_not_transposed_do_not_move_the_model_of_those_in_the_matrix() -> None:
    rng = np.random.default_rng(1)
    nb, count = rng.choice([64.0, 128.0, 256.0], 400), 400
    inside_u = np.arange(count) < 200
    n = np.floor(10 ** rng.uniform(1, 3.5, count))
    leading = np.where(inside_u, nb, np.maximum(512.0, n))
    duration_s = nb * n * np.where(inside_u, 1e-10, 5e-10) * (1 + 0.03 * np.abs(rng.normal(size=count))) + 1e-7
    zeros = np.zeros(count, dtype=np.int64)
    flags = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    calls = Calls(
        "dlaswp00N", nb, n, leading, duration_s, zeros, zeros + np.arange(count) % 3, zeros, *flags, ("hpl_steps_1x1",)
    )
    fitted = fit_kernel(calls)
    for mine in (inside_u, ~inside_u):
        part = calls.where(mine)
        assert fitted.predict(part).sum() == pytest.approx(part.duration_s.sum(), rel=0.02)


PLACES = {0: (1, 0), 1: (1, 1)}


def calls(
    kernel: str,
    mean_s: Callable[..., np.ndarray],
    *,
    seed: int = 1,
    noise: Callable[..., np.ndarray] | None = None,
    count: int = 3000,
    blocks: int = 5,
) -> Calls:
    """Calls inside steps of HPL on two cores, with noise of mean 0: 3 % half-normal unless another is given."""
    rng = np.random.default_rng(seed)
    m, n, k = np.floor(10 ** rng.uniform(1, 3, (3, count)))
    cpu = rng.integers(0, 2, count)
    mean = mean_s(m, n, k, cpu)
    half_normal = (np.abs(rng.normal(size=count)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    scatter = 0.03 * mean * half_normal if noise is None else noise(rng, mean, half_normal)
    return Calls(
        kernel, m, n, k if kernel == "dgemm" else 0 * k, mean + scatter, cpu, np.sort(rng.integers(0, blocks, count)),
        np.zeros(count, dtype=np.int64), np.ones(count, dtype=bool), np.zeros(count, dtype=bool), ("hpl_steps_1x1",),
    )  # fmt: skip


MEANS = {
    "M-0": lambda m, n, k, cpu: 5e-6 + 0 * m,
    "M-1": lambda m, n, k, cpu: 2e-10 * m * n + 1e-6,
    "M-2": lambda m, n, k, cpu: 2e-10 * m * n + 4e-8 * m + 2e-8 * n + 1e-6,
    "M'": lambda m, n, k, cpu: np.where(n > 200, 8e-10, 2e-10) * m * n + 1e-6,
}


@pytest.mark.slow
@pytest.mark.parametrize("mean", MEANS)
def test_the_mean_that_made_the_calls_is_selected(mean: str) -> None:
    fitted, selection = select(calls("dlacpy", MEANS[mean]), {})
    assert fitted.form.mean == mean, selection
    assert not fitted.form.per_core
    assert [candidate.mean for candidate in selection.means] == ["M-0", "M-1", "M-2", "M'"]


@pytest.mark.slow
def test_cores_that_differ_get_a_model_each_and_those_that_do_not_share_one() -> None:
    def of_core(m, n, k, cpu):
        return 3e-11 * m * n * k * np.where(cpu == 1, 1.1, 1.0) + 1e-6

    differ, _ = select(calls("dgemm", of_core), {})
    alike, selection = select(calls("dgemm", lambda m, n, k, cpu: 3e-11 * m * n * k + 1e-6), {})
    assert (differ.form.per_core, alike.form.per_core) == (True, False)
    assert [candidate.error for candidate in selection.levels.values()] == pytest.approx([0.03, 0.03], rel=0.1)


NOISES = {
    "N-0": lambda rng, mean, z: 1e-4 * mean * rng.normal(size=len(mean)),
    "N-1": lambda rng, mean, z: 2e-6 * z,
    "N-2": lambda rng, mean, z: 0.05 * mean * z,
    "N'": lambda rng, mean, z: 0.05 * mean * np.where(rng.random(len(mean)) < 0.2, 1.8, -0.45) + 0.01 * mean * z,
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_that_made_the_calls_is_selected(noise: str) -> None:
    def mean_s(m, n, k, cpu):
        return 2e-10 * m * n + 1e-5

    fitted, selection = select(calls("dlacpy", mean_s, seed=2, noise=NOISES[noise]), {})
    assert fitted.form.noise == noise, selection.noises
    assert (selection.modes is not None) == (noise == "N'")
    model = kernel_model(fitted, 0.0, ((), 0.0), PLACES, selection.modes)
    kind = {"N-0": "none", "N-1": "half-normal", "N-2": "half-normal", "N'": "mixture"}[noise]
    assert {piece.noise.kind for piece in model.pieces} == {kind}
    assert model.form == str(fitted.form)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_constant_spread_of_each_core_is_selected_where_cores_have_models_of_their_own(seed: int) -> None:
    drawn = calls(
        "dgemm", lambda m, n, k, cpu: 3e-13 * m * n * k * (1 + 0.1 * cpu) + 1e-4, seed=seed, noise=lambda *_: 0
    )
    z = np.random.default_rng(seed).normal(size=len(drawn))
    half_normal = (np.abs(z) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    noisy = dataclasses.replace(drawn, duration_s=drawn.duration_s + 2e-6 * (1 + 4 * drawn.cpu) * half_normal)
    scores = noise_scores(fit_kernel(noisy, form=Form("M-1", True, "N-2")), noisy)
    assert scores.best == "N-1", scores


@pytest.mark.parametrize("noise_terms", [("1",), ("mnk", "mn", "mk", "nk", "1")])
def test_the_spread_of_few_calls_is_corrected_for_the_coefficients_of_the_mean_alone(noise_terms) -> None:
    variances = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        m, n = np.floor(10 ** rng.uniform(1.5, 3, (2, 24)))
        k, duration_s = np.full(24, 128.0), 1e-3 * (1 + 0.05 * rng.normal(size=24))
        fit = fit_polynomial(("1",), m, n, k, duration_s, sd_terms=noise_terms, growth=1.0)
        variances.append(np.mean(fit.deviation(m, n, k) ** 2))
    assert np.mean(variances) == pytest.approx(5e-5**2, rel=0.08)  # 24 calls: 0.3 each, so 0.02 of the mean


def _mean(modes: list[Mode]) -> float:
    return sum(mode.weight * mode.mean for mode in modes) / sum(mode.weight for mode in modes)


def test_a_mixture_has_the_shares_and_places_of_its_modes() -> None:
    fitted, selection = select(calls("dlacpy", MEANS["M-1"], noise=NOISES["N'"]), {})
    assert selection.modes is not None
    # Each is skew, and may itself be the sum of several normal ones.
    low, high = ([mode for mode in selection.modes if (mode.mean > 1) == above] for above in (False, True))
    assert sum(mode.weight for mode in high) == pytest.approx(0.2, abs=0.03)
    apart = _mean(high) - _mean(low)
    assert apart / (1.8 + 0.45) == pytest.approx(1 / 0.92, rel=0.1)  # in units of the whole's sigma
    assert fitted.form.noise == "N'"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["M-0/N-0", "M-1/N-1", "M-2-H/N-2", "M'-H/N'", "M'/N-1"])
def test_a_form_that_is_asked_for_is_the_one_that_is_fitted(text: str) -> None:
    measured = calls("dlacpy", MEANS["M'"])
    fitted, selection = select(measured, requested_forms([text]))
    assert str(fitted.form) == text == str(selection.form)
    model = kernel_model(fitted, 0.0, ((), 0.0), PLACES, selection.modes)
    assert model.form == text
    assert (model.pieces[-1].per_cpu is not None) == fitted.form.per_core


def test_a_constant_standard_deviation_makes_sums_scatter_as_measured() -> None:
    measured = calls("dlacpy", MEANS["M-1"])
    polynomial, constant = (fit_kernel(measured, form=Form("M-1", False, noise)) for noise in ("N-2", "N-1"))
    assert np.sum(constant.deviation(measured) ** 2) == pytest.approx(np.sum(polynomial.deviation(measured) ** 2))
    assert np.ptp(constant.deviation(measured)) == 0.0


@pytest.mark.slow
def test_a_process_that_was_slower_as_a_whole_does_not_hide_the_shape() -> None:
    base = calls("dlacpy", MEANS["M'"], count=6000)
    effect = np.exp(0.2 * np.random.default_rng(5).normal(size=(5, 2)))[base.block, base.cpu]
    assert select(dataclasses.replace(base, duration_s=base.duration_s * effect), {})[0].form.mean == "M'"


def test_forms_are_read_as_they_are_written() -> None:
    assert form_of("M'-H/N-2") == Form("M'", True, "N-2")
    assert str(form_of("M-1/N'")) == "M-1/N'"
    wanted = requested_forms(["M-1/N-1", "dgemm=M'-H/N-2", "dtrsm=auto"])
    assert requested_form("dgemm", wanted) == Form("M'", True, "N-2")
    assert requested_form("dger", wanted) == Form("M-1", False, "N-1")
    assert requested_form("dgemm", requested_forms(["M-1/N-1", "auto"])) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [("M-3/N-1", "not a kernel model"), ("dgemv2=M-1/N-1", "not a kernel of platforms"), ("", "not a kernel model")],
)
def test_what_is_no_form_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as refused:
        requested_forms([text])
    assert "\n" not in str(refused.value)


def test_every_shape_that_a_platform_can_name_can_be_fitted() -> None:
    """In the same order: the simplest that is good enough is taken."""
    assert tuple(SHAPES) == PLATFORM_MEANS

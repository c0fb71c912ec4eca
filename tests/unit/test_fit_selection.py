"""Which member of the family a kernel gets: planted ones come back."""

# ruff: noqa: ARG005 - the lambdas all take the same arguments

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.measure.fit.kernels.form import (
    SHAPES,
    Form,
    form_of,
    means_of,
    plain_mean,
    requested_form,
    requested_forms,
)
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import kernel_model
from lepaute.measure.fit.kernels.polynomial import fit_polynomial
from lepaute.measure.fit.kernels.selection import noise_scores, select
from lepaute.measure.fit.mixtures import Mode
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate.platform.kernel_model import MEANS as PLATFORM_MEANS

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


def test_with_one_block_stretches_of_successive_calls_are_the_folds() -> None:
    fitted, selection = select(calls("dlacpy", MEANS["M-2"], blocks=1), {})
    assert fitted.form.mean == "M-2"
    assert selection.note == ""


@pytest.mark.slow
def test_a_process_that_was_slower_as_a_whole_does_not_hide_the_shape() -> None:
    base = calls("dlacpy", MEANS["M'"], count=6000)
    effect = np.exp(0.2 * np.random.default_rng(5).normal(size=(5, 2)))[base.block, base.cpu]
    assert select(dataclasses.replace(base, duration_s=base.duration_s * effect), {})[0].form.mean == "M'"


def test_few_calls_are_fitted_without_a_selection() -> None:
    fitted, selection = select(calls("dlacpy", MEANS["M-1"], count=30), {})
    assert "too few" in selection.note
    assert (fitted.form.mean, fitted.form.noise) == ("M-1", "N-2")


@pytest.mark.slow
def test_the_selection_is_the_same_every_time() -> None:
    measured = calls("dlacpy", MEANS["M'"], count=6000)
    one, other = select(measured, {})[1], select(measured, {})[1]
    assert one == other


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


def test_means_that_would_be_the_same_are_not_tried_twice() -> None:
    assert means_of("dscal") == ("M-0", "M-1", "M'")
    assert means_of("pdupdate_glue") == ("M-0", "M'")
    assert plain_mean("dscal", "M'", 1) == "M-1"
    assert plain_mean("dgemm", "M'", 1) == "M-2"
    assert plain_mean("dgemm", "M'", 3) == "M'"


def test_every_shape_that_a_platform_can_name_can_be_fitted() -> None:
    """In the same order: the simplest that is good enough is taken."""
    assert tuple(SHAPES) == PLATFORM_MEANS

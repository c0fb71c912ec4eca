"""Coefficients of single cores or sockets: the error of one of them, and of all together, holds as promised."""

from typing import Literal

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats

from lepaute.measure.fit.kernels.form import Form
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import common_relative_sd, kernel_model
from lepaute.measure.fit.kernels.polynomial import design_matrix
from lepaute.measure.fit.observations.calls import Calls
from lepaute.measure.fit.variability.days import block_effects, process_effects

TERMS = ("mnk", "mn", "mk", "nk", "1")
MEAN = np.array([2.5e-11, 1.0e-9, 3.0e-10, 4.0e-10, 1.0e-6])
CORES, SOCKETS, BLOCKS, LAUNCHES, CALLS = 8, 2, 5, 2, 50
REPETITIONS = 100
#: Effects of a block, of a launch and of a process, relative.
BLOCK, LAUNCH, PROCESS = 0.01, 0.01, 0.01


def sizes(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [np.floor(10 ** rng.uniform(1.5, 3.2, count)) for _ in range(3)]


APPLICATION = design_matrix(TERMS, *sizes(np.random.default_rng(1), 20_000)).sum(axis=0)


def calibrated(rng: np.random.Generator) -> Calls:
    """In each block two launches of a process on every core; the second socket is 5 % slower."""
    launch = np.repeat(np.arange(BLOCKS * LAUNCHES), CORES)
    cpu = np.tile(np.arange(CORES), BLOCKS * LAUNCHES)
    effect = (BLOCK * rng.normal(size=BLOCKS))[launch // LAUNCHES]
    effect += (LAUNCH * rng.normal(size=BLOCKS * LAUNCHES))[launch] + PROCESS * rng.normal(size=len(cpu))
    call = np.repeat(np.arange(len(cpu)), CALLS)
    mnk = sizes(rng, len(call))
    socket = (cpu * SOCKETS // CORES)[call]
    duration_s = (design_matrix(TERMS, *mnk) @ MEAN) * (1 + 0.05 * socket) * np.exp(effect[call])
    duration_s *= 1 + 0.03 * rng.normal(size=len(call))
    yes, zero = np.ones(len(call), dtype=bool), np.zeros(len(call), dtype=np.int64)
    return Calls(
        "dgemm_nn", *mnk, duration_s, cpu[call], (launch // LAUNCHES)[call], zero, yes, ~yes, ("hpl_steps_1x1",),
        launch=launch[call], share=np.ones(len(call)), socket=socket,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("level", long_but(["cpu", "socket"], "socket"))
def test_the_error_of_one_and_of_all_together_holds(level: Literal["cpu", "socket"]) -> None:
    rng = np.random.default_rng(20261122)
    form = Form("M-2", level == "cpu", "N-2", per_socket=level == "socket")
    units = CORES if level == "cpu" else SOCKETS
    socket = np.arange(units) * SOCKETS // units
    true_s = (1 + 0.05 * socket) * float(APPLICATION @ MEAN)
    errors, claimed = [], []
    for _ in range(REPETITIONS):
        calls = calibrated(rng)
        kernel = fit_kernel(calls, form=form)
        effects = block_effects([(calls, kernel)])
        assert effects is not None
        kernel = kernel.with_effects(process_effects(effects))
        common = common_relative_sd(kernel, calls)
        places = {unit: (1, unit) for unit in range(units)}
        piece = kernel_model(kernel, common, ((), 0.0), places).pieces[-1]
        assert piece.per_cpu is not None
        assert piece.covariance is not None
        assert piece.per_cpu.columns[:7] == ("node", level, *TERMS)
        assert piece.covariance.terms == TERMS
        fitted_s = np.array([row[2:7] for row in piece.per_cpu.rows]) @ APPLICATION
        own_s2 = float(APPLICATION @ np.array(piece.covariance.matrix) @ APPLICATION)
        # As a simulation draws them: the own errors apart, the common one once.
        common_s = common * true_s.mean()
        errors.append((fitted_s[0] - true_s[0], fitted_s.mean() - true_s.mean()))
        claimed.append((np.sqrt(own_s2 + common_s**2), np.sqrt(own_s2 / units + common_s**2)))
    hits = np.sum(np.abs(errors) <= 1.959964 * np.array(claimed), axis=0)
    assert np.all(hits >= stats.binom.ppf(1e-3, REPETITIONS, 0.95)), hits
    assert np.all(np.median(claimed, axis=0) < 2.0 * np.std(errors, axis=0))

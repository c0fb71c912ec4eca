"""Laws of the fits: the same data written differently, busy neighbours, and any processor."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_fit import kernel_rows, sentinel_rows, write_calibration
from support_limits import ran

from lepaute.measure.fit import segment
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.polynomial import design_matrix, fit_polynomial
from lepaute.measure.fit.numeric import independent_columns, normal_equations
from lepaute.measure.fit.observations.calibrations import NodeShape
from lepaute.measure.fit.observations.calls import Calls
from lepaute.measure.fit.variability.crowding import Crowding, crowding_of, increase, relieved, with_size_error
from lepaute.measure.fit.variability.days import block_effects
from lepaute.stats.algebra import nonnegative_solution, solution

TERMS = ("mnk", "mn", "m", "1")
seeds = st.integers(0, 2**32 - 1)


def calls(seed: int, count: int = 120):
    rng = np.random.default_rng(seed)
    mnk = [10 ** rng.uniform(0.5, 3.0, count) for _ in range(3)]
    mean = design_matrix(TERMS, *mnk) @ np.array([3e-11, 2e-10, 1e-9, 5e-7])
    return mnk, mean * (1 + 0.05 * np.abs(rng.normal(size=count))), mean


@settings(max_examples=20)
@given(seeds, st.sampled_from([1e-6, 1e-3, 1e3, 1e9]))
def test_a_fit_depends_neither_on_the_order_of_the_calls_nor_on_the_unit_of_time(seed, unit):
    (m, n, k), y, _ = calls(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    one, shuffled = fit_polynomial(TERMS, m, n, k, y), fit_polynomial(TERMS, m[order], n[order], k[order], y[order])
    np.testing.assert_allclose(one.predict(m, n, k), shuffled.predict(m, n, k), rtol=1e-6)
    other = fit_polynomial(TERMS, m, n, k, y * unit)
    np.testing.assert_allclose(one.mean * unit, other.mean, rtol=1e-6, atol=1e-9 * unit * np.abs(one.mean).min())
    np.testing.assert_allclose(one.sd * unit, other.sd, rtol=1e-4, atol=1e-6 * unit * np.abs(one.sd).max())


@settings(max_examples=20)
@given(seeds)
def test_coefficients_come_back_without_noise_and_with_it_the_sum_but_for_the_noise_of_the_sum(seed):
    (m, n, k), y, mean = calls(seed, 400)
    np.testing.assert_allclose(fit_polynomial(TERMS, m, n, k, mean).predict(m, n, k), mean, rtol=1e-5)
    fit = fit_polynomial(TERMS, m, n, k, y)
    # |Z| has standard deviation 0.603; a few large calls are most of the sum, so its noise is not small.
    noise_of_sum = 0.05 * 0.603 * float(np.sqrt(np.sum(mean**2)))
    assert abs(fit.predict(m, n, k).sum() - y.sum()) < 5 * noise_of_sum


@settings(max_examples=25)
@given(seeds, st.integers(1, 4))
def test_nonnegative_solution_is_the_free_one_where_that_is_positive_and_never_negative(seed, columns):
    rng = np.random.default_rng(seed)
    x, weight = rng.uniform(0.1, 1, (40, columns)), rng.uniform(0.1, 1, 40)
    y = x @ rng.uniform(-1, 2, columns) + 0.1 * rng.normal(size=40)
    gram, moment = normal_equations(x, y, weight)
    free, bounded = solution(gram, moment), nonnegative_solution(gram, moment)
    assert np.all(bounded >= 0)
    if np.all(free > 0):
        np.testing.assert_allclose(bounded, free, rtol=1e-6, atol=1e-9)

    def objective(b: np.ndarray) -> float:
        return float(b @ gram @ b - 2 * b @ moment)

    # No better point with one coefficient moved, in the directions allowed.
    for i in range(columns):
        for step in (1e-3, -1e-3):
            moved = bounded.copy()
            moved[i] = max(0.0, moved[i] + step)
            assert objective(moved) >= objective(bounded) - 1e-9


def test_a_constant_parameter_leaves_out_the_later_of_two_equal_terms():
    m, n = 10 ** np.random.default_rng(1).uniform(1, 3, (2, 50))
    x = design_matrix(("mnk", "mn", "m", "1"), m, n, np.full(50, 128.0))
    assert independent_columns(x / x.max(axis=0), np.ones(50)).tolist() == [0, 2, 3]  # mn = mnk / 128


OBJECTIVES = st.sampled_from(["ordinary", "weighted", "log"])


def two_regimes(seed: int):
    rng = np.random.default_rng(seed)
    x = np.round(10 ** rng.uniform(0, 6, 150))  # small sizes occur more than once
    return x, np.where(x < 1e4, 1 + 1e-4 * x, 10 + 1e-5 * x) * rng.lognormal(0, 0.05, 150)


@settings(max_examples=20)
@given(seeds, OBJECTIVES, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_segments_depend_neither_on_units_nor_on_the_order_of_the_rows(seed, objective, x_unit, y_unit):
    x, y = two_regimes(seed)
    one = segment(x, y, objective=objective)
    order = np.random.default_rng(seed).permutation(len(x))
    shuffled = segment(x[order], y[order], objective=objective)
    assert (one.breakpoints, one.segments, one.gains) == (shuffled.breakpoints, shuffled.segments, shuffled.gains)
    other = segment(x * x_unit, y * y_unit, objective=objective)
    assert np.searchsorted(np.sort(x), one.breakpoints).tolist() == (
        np.searchsorted(np.sort(x * x_unit), other.breakpoints).tolist()
    )
    assert other.predict(x * x_unit) == pytest.approx(one.predict(x) * y_unit, rel=1e-6)


@settings(max_examples=10)
@given(seeds, OBJECTIVES)
def test_measuring_everything_twice_changes_no_line_and_a_further_breakpoint_never_leaves_more(seed, objective):
    x, y = two_regimes(seed)
    one = segment(x, y, objective=objective)
    left = [candidate.residual for candidate in one.candidates]
    assert all(after <= before * (1 + 1e-9) for before, after in zip(left[:-1], left[1:], strict=True))
    twice = segment(np.tile(x, 2), np.tile(y, 2), objective=objective)
    assert one.breakpoints == twice.breakpoints
    assert twice.predict(x) == pytest.approx(one.predict(x), rel=1e-9)
    assert [line.n_points * 2 for line in one.segments] == [line.n_points for line in twice.segments]


@pytest.mark.parametrize("seed", range(12))
def test_small_calls_do_not_decide_how_large_ones_scatter(seed):
    rng = np.random.default_rng(seed)
    m, n = np.floor(10 ** rng.uniform(0, 3.6, (2, 600)))
    n[:40] = 1.0  # the smallest: next to nothing but the constant
    k = np.full(600, 128.0)
    mean = 3.3e-11 * m * n * k + 2e-6
    process = np.exp(0.02 * rng.normal(size=15))[rng.integers(0, 15, 600)]
    fit = fit_polynomial(("mnk", "mn", "mk", "nk", "1"), m, n, k, mean * process * (1 + 0.03 * rng.normal(size=600)))
    large = mean > np.quantile(mean, 0.9)
    found = float(np.median(fit.deviation(m[large], n[large], k[large]) / mean[large]))
    # sqrt(0.02^2 + 0.03^2) = 0.036 of the mean; the sixty largest calls know it to a tenth.
    assert 0.7 * 0.036 < found < 1.5 * 0.036


@pytest.mark.parametrize("share", [0.4, 0.6, 0.95])
def test_calls_of_which_the_clock_sees_no_time_are_a_fit_with_their_sum(share):
    """Ticks of 10 ns, and calls that take a few: most durations are 0, and so is their median."""
    rng = np.random.default_rng(1)
    n = rng.integers(1, 4, 960).astype(float)
    duration_s = np.where(rng.random(960) < share, 0.0, 1e-8)
    fit = fit_polynomial(("n", "1"), 0 * n, n, 256 + 0 * n, duration_s)
    assert fit.terms == ("n", "1")
    assert fit.predict(0 * n, n, 256 + 0 * n).sum() == pytest.approx(duration_s.sum(), rel=0.05)


PROBE = ("hpl_steps_1x1",)
CORES, BLOCKS, CALLS = 8, 5, 40


def measured(
    factors: dict[float, float],
    rng: np.random.Generator,
    *,
    noise: float = 0.02,
    process: float = 0.0,
    small: float = 1.0,
) -> Calls:
    """Calls of a swap of 128 rows and n columns, 2 ns an element, times the factor of their load.

    factors : by share of the other cores; where it is 1 all cores compute, otherwise one core in turn
    process : relative sd of what whole processes differ by; small: further factor of small calls at full load
    """
    parts = []
    for share, factor in factors.items():
        for block in range(BLOCKS):
            for cpu in range(CORES) if share == 1.0 else [block % CORES]:
                n = rng.uniform(500, 5000, CALLS)
                own = 1.0 + 0.03 * cpu / CORES  # cores differ, and that is no crowding
                duration = 2e-9 * 128 * n * factor * own * np.exp(process * rng.normal())
                duration = duration * (1.0 + noise * rng.normal(size=CALLS))
                duration = np.where((share == 1.0) & (n < 2000), small * duration, duration)
                parts.append(np.column_stack([n, duration, np.full((CALLS, 3), [cpu, block, share])]))
    table = np.concatenate(parts)
    count = len(table)
    launch = np.where(table[:, 4] == 1.0, table[:, 3], 100 + 10 * table[:, 3] + 1000 * table[:, 4])
    yes, no = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    return Calls(
        "dlaswp00N", np.full(count, 128.0), table[:, 0], np.zeros(count), table[:, 1], table[:, 2].astype(int),
        table[:, 3].astype(int), np.zeros(count, dtype=np.int64), yes, no, PROBE, launch=launch.astype(int),
        share=table[:, 4],
    )  # fmt: skip


def test_the_increase_at_full_load_is_found_and_loads_off_the_line_have_rows_that_need_not_rise() -> None:
    calls = measured({0.0: 1.0, 1.0: 1.3}, np.random.default_rng(1))
    found = crowding_of(calls)
    # 200 calls alone with noise of 2 %: known to 0.14 %; five times that.
    assert found.rows == ((1.0, pytest.approx(0.3, abs=0.01)),)
    assert crowding_of(relieved(calls, found.rows)).rows[0][1] == pytest.approx(0.0, abs=1e-3)
    calls = measured({0.0: 1.0, 0.4: 1.25, 1.0: 1.3}, np.random.default_rng(2))
    rows = crowding_of(calls).rows
    assert rows == ((0.4, pytest.approx(0.25, abs=0.01)), (1.0, pytest.approx(0.3, abs=0.01)))
    rows = crowding_of(measured({0.0: 1.0, 0.5: 1.2, 1.0: 1.1}, np.random.default_rng(3))).rows
    assert rows[0][1] > rows[1][1]


@pytest.mark.slow
def test_loads_on_the_line_get_rows_as_often_as_the_test_says() -> None:
    # 200 kernels whose processes differ by 2 %, two loads in between on the line: 5 % of them are taken for off it.
    rng = np.random.default_rng(4)
    loads = {0.0: 1.0, 0.3: 1.09, 0.6: 1.18, 1.0: 1.3}
    tables = sum(len(crowding_of(measured(loads, rng, process=0.02)).rows) > 1 for _ in range(200))
    assert tables <= 21  # 99.9 % of Binomial(200, 0.05)


@pytest.mark.slow
def test_the_error_holds_the_factor_of_lower_loads_at_the_nominal_coverage() -> None:
    # 200 kernels: the factor of a core alone lies in its 95 % interval in 179 or more (0.1 % of Binomial(200, 0.95)).
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(200):
        found = crowding_of(measured({0.0: 1.0, 1.0: 1.2}, rng, process=0.02))
        inside += abs(np.log((1.0 + found.rows[0][1]) / 1.2)) <= 1.96 * found.relative_sd
    assert inside >= 179


def test_contention_that_depends_on_the_size_widens_the_error_of_lower_loads() -> None:
    rng = np.random.default_rng(6)
    sds = []
    for small in (1.0, 0.8):
        calls = measured({0.0: 1.0, 1.0: 1.3}, rng, small=small)
        found = crowding_of(calls)
        alone = relieved(calls, found.rows)
        kernel = fit_kernel(alone)
        sds.append(with_size_error(found, alone, kernel, block_effects([(alone, kernel)])).relative_sd)
    assert sds[0] < 0.01
    assert sds[1] > 0.05


def test_too_few_calls_under_one_of_the_loads_tell_nothing() -> None:
    calls = measured({0.0: 1.0, 1.0: 1.3}, np.random.default_rng(7))
    few = calls.where((calls.shares() == 1.0) | (np.arange(len(calls)) < 15))
    assert crowding_of(few) == Crowding()
    assert crowding_of(calls.where(calls.shares() == 1.0)) == Crowding()


def test_without_an_idle_socket_the_increase_is_taken_to_be_in_proportion() -> None:
    found = crowding_of(measured({0.5: 1.15, 1.0: 1.3}, np.random.default_rng(8)))
    assert found.rows == ((1.0, pytest.approx(0.3, abs=0.02)),)


def test_the_increase_is_linear_between_rows_and_constant_beyond() -> None:
    shares = np.array([0.0, 0.2, 0.4, 0.5, 1.0])
    assert increase(((0.4, 0.2), (0.6, 0.3)), shares) == pytest.approx([0.0, 0.1, 0.2, 0.25, 0.3])


def test_a_share_is_of_the_other_cores_of_the_socket_or_of_the_node_where_threads_span_sockets() -> None:
    node = NodeShape((0, 0, 0, 0, 1, 1, 1, 1))
    core, active, on_socket, threads = np.array(
        [[0, 1, 1, 1], [4, 8, 4, 1], [0, 4, 2, 2], [0, 8, 4, 4], [0, 8, 4, 8], [2, 6, 3, 3], [5, 3, 2, 1]]
    ).T
    # Alone; full; two of two threads on a socket of four; a whole socket; the whole node; across sockets; one of three.
    expected = [0.0, 1.0, 0.0, 0.0, 0.0, 3 / 5, 1 / 3]
    assert node.shares(core, active, on_socket, threads) == pytest.approx(expected, abs=1e-6)


FIT = """
import json, sys, threadpoolctl
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models
platform, _ = platform_and_models(Archive.open(sys.argv[1]), "x")
blas = sorted({pool.get("architecture") for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"})
print(json.dumps({"platform": platform.model_dump(mode="json"), "blas": blas}))
"""
WITHIN = 1e-9
CONSTANT = ("daxpy", "dcopy", "dscal", "idamax", "dlocswp")


def fitted(archive: Path, **environment: str) -> dict[str, Any]:
    done = ran([sys.executable, "-c", FIT, str(archive)], env={**os.environ, **environment}, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def old_processor() -> dict[str, str]:
    """What makes BLAS, NumPy and the C library compute as on a processor of 2004: without AVX and fused operations."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", [])),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }


def comparable(key: str, value: Any) -> Any:
    """Covariances as standard deviations and correlations, and no number that is rounding."""
    if key == "matrix":
        covariance = np.array(value)
        sd = np.sqrt(np.diag(covariance))
        unit = np.where(sd > 0, sd, 1.0)
        return {"sd": sd.tolist(), "one plus correlation": (1 + covariance / np.outer(unit, unit)).tolist()}
    return 1 - value if key == "r_squared" else value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of everything in a document."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(comparable(key, each), f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for place, each in enumerate(value):
            yield from leaves(each, f"{path}[{place}]")
    else:
        yield path, value


def rows() -> pandas.DataFrame:
    """Calls of which two models are equal up to rounding: those of CONSTANT take as long, and scatter as much, whatever
    their size; of the others, m is twice n."""
    table = kernel_rows(calls=400, kernels=("dgemm", "dtrsm", "dlaswp01T", *CONSTANT))
    constant = table["kernel"].isin(CONSTANT)
    scatter = table["duration_s"] / (2.5e-11 * table["m"] * table["n"] * 128 + 1e-6)
    table.loc[~constant, "n"] = table.loc[~constant, "m"] // 2
    size = table["m"] * table["n"] * 128 * (1 + (table["m"] > 300))
    table["duration_s"] = scatter * np.where(constant, 2e-6, 2.5e-11 * size + 1e-6)
    return table


@pytest.mark.slow
def test_an_archive_fits_to_the_same_platform_on_another_processor(tmp_path: Path) -> None:
    archive = write_calibration(tmp_path / "c.zip", rows(), sentinels=sentinel_rows(0.02 * np.sin(np.arange(20))))
    here, there = fitted(archive), fitted(archive, **old_processor())
    if here["blas"] == there["blas"]:
        pytest.skip(f"BLAS has one kind of kernels here, {here['blas']}")
    ours, others = (dict(leaves(each["platform"])) for each in (here, there))
    assert len(ours) > 500
    assert ours.keys() == others.keys()
    apart = {
        path: (value, others[path])
        for path, value in ours.items()
        if not (
            abs(value - others[path]) <= WITHIN * abs(value)
            if isinstance(value, float) and others[path] is not None
            else value == others[path]
        )
    }
    assert not apart

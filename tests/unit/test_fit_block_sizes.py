"""Block sizes between those that were measured: what a fit says of dgemm there."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lepaute.measure.design import dgemm_design, hpl_step_design
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.regions import regions_of
from lepaute.measure.fit.kernels.selection import select
from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.observations.calls import Calls

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

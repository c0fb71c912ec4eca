"""Crowding: what busy neighbours cost a kernel, from calls under several loads."""

import numpy as np
import pytest

from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.observations.calibrations import NodeShape
from lepaute.measure.fit.observations.calls import Calls
from lepaute.measure.fit.variability.crowding import Crowding, crowding_of, increase, relieved, with_size_error
from lepaute.measure.fit.variability.days import block_effects

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


def test_the_increase_at_full_load_is_found_and_relieved() -> None:
    calls = measured({0.0: 1.0, 1.0: 1.3}, np.random.default_rng(1))
    found = crowding_of(calls)
    # 200 calls alone with noise of 2 %: known to 0.14 %; five times that.
    assert found.rows == ((1.0, pytest.approx(0.3, abs=0.01)),)
    assert crowding_of(relieved(calls, found.rows)).rows[0][1] == pytest.approx(0.0, abs=1e-3)


def test_a_load_in_between_that_is_off_the_line_has_a_row_of_its_own() -> None:
    calls = measured({0.0: 1.0, 0.4: 1.25, 1.0: 1.3}, np.random.default_rng(2))
    rows = crowding_of(calls).rows
    assert rows == ((0.4, pytest.approx(0.25, abs=0.01)), (1.0, pytest.approx(0.3, abs=0.01)))


def test_a_table_need_not_rise() -> None:
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

"""The plan of a calibration: which cores compute at once, what each block measures, and how long it takes."""

import collections
import itertools

import numpy as np
import pytest

from lepaute.measure.layout import ALL, HALF, ONE, ONE_A_SOCKET, Layout, active, loads, made_up_layout, places
from lepaute.measure.plan import FULL, QUICK, PlannedRun, Scale, calibration_s, plan, room

#: Nodes from the smallest to the largest of today, with 4 GB a core.
NODES = ("1x2", "1x4", "1x8", "1x16", "2x8", "2x16", "2x32", "2x64")
GB_A_CORE = 4 << 30


def layout_of(text: str) -> Layout:
    return made_up_layout(text, range(256))


def planned(text: str, scale: Scale = FULL, threads: tuple[int, ...] = (1,), seed: int = 1) -> list[PlannedRun]:
    layout = layout_of(text)
    cores = len(layout.cores)
    return plan(scale, seed, layout, room(scale, GB_A_CORE * cores, cores), threads=threads)


@pytest.mark.parametrize(
    ("text", "threads", "expected"),
    [
        ("1x2", 1, (ONE, ALL)),
        ("1x3", 1, (ONE, ALL)),
        ("1x4", 1, (ONE, HALF, ALL)),
        ("2x1", 1, (ONE, ALL)),  # one a socket is all
        ("2x2", 1, (ONE, ONE_A_SOCKET, ALL)),
        ("2x16", 1, (ONE, ONE_A_SOCKET, HALF, ALL)),
        ("1x2", 2, (ALL,)),
        ("2x16", 8, (ONE, ALL)),
    ],
)
def test_the_loads_are_those_that_differ_on_the_node(text: str, threads: int, expected: tuple[str, ...]) -> None:
    assert loads(layout_of(text), threads) == expected


def test_processes_of_several_threads_lie_on_consecutive_cores_of_a_socket_as_long_as_it_has_so_many() -> None:
    assert places(layout_of("2x4"), 3) == ((0, 1, 2), (4, 5, 6))
    assert places(layout_of("2x4"), 6) == ((0, 1, 2, 3, 4, 5),)
    assert places(layout_of("2x2"), 1) == ((0,), (1,), (2,), (3,))


def test_as_many_cores_compute_as_a_load_says_and_on_every_socket_as_many() -> None:
    layout, rng = layout_of("2x8"), np.random.default_rng(1)
    for load, each in ((ONE_A_SOCKET, 1), (HALF, 4), (ALL, 8)):
        cores = [core for (core,) in active(layout, load, 1, 0, rng)]
        assert cores == sorted(set(cores))
        assert [layout.active_beside(socket[0], cores) for socket in layout.sockets] == [each, each]


def test_another_core_is_alone_in_each_block_until_all_had_their_turn() -> None:
    alone = [active(layout_of("1x5"), ONE, 1, block, np.random.default_rng(3))[0][0] for block in range(10)]
    assert sorted(alone[:5]) == list(range(5))
    assert alone[5:] == alone[:5]


@pytest.mark.parametrize("text", NODES)
def test_every_block_measures_every_core_under_full_load_one_core_alone_and_a_load_in_between(text: str) -> None:
    layout, runs = layout_of(text), planned(text)
    cores = tuple(core.number for core in layout.cores)
    assert {run.load for run in runs if run.probe == "dgemm"} == set(loads(layout))
    between = len(loads(layout)) > 2
    for block in range(FULL.blocks):
        mine = [run for run in runs if run.block == block]
        assert len({run.name for run in mine}) == len(mine)
        for probe in ("dgemm", "dgemm_content", "hpl_steps_1x1"):
            by_load = {run.load: run for run in mine if run.probe == probe}
            assert {ONE, ALL} <= set(by_load) <= set(loads(layout))
            assert len(by_load) == 2 + between
            assert by_load[ALL].cores == cores
            assert len({by_load[load].ranks for load in by_load}) == len(by_load)
        for probe in ("hpl_steps_column", "hpl_steps_options", "ring"):
            assert [run.cores for run in mine if run.probe == probe] == [cores]


def test_messages_go_between_cores_of_every_distance_and_other_ones_in_each_block() -> None:
    pairs = collections.defaultdict(set)
    for run in planned("2x16"):
        if run.probe == "p2p":
            pairs[run.name].add(run.cores)
            assert f"p2p_{layout_of('2x16').distance(*run.cores)}" == run.name
    assert {name: len(drawn) for name, drawn in pairs.items()} == dict.fromkeys(
        ("p2p_same-l3", "p2p_other-socket"), FULL.blocks
    )
    assert {run.name for run in planned("1x2") if run.probe == "p2p"} == {"p2p_same-l3"}


def test_each_number_of_threads_has_its_own_runs_of_kernels_and_messages_are_measured_once() -> None:
    runs = [run for run in planned("2x16", threads=(1, 8)) if run.block == 0]
    eight = {run.name: run for run in runs if run.threads == 8}
    assert {name: run.ranks for name, run in eight.items()} == {
        "dgemm_one_8_threads": 1, "dgemm_all_8_threads": 4, "hpl_steps_1x1_one_8_threads": 1,
        "hpl_steps_1x1_all_8_threads": 4, "hpl_steps_column_8_threads": 4,
    }  # fmt: skip
    assert all(len(run.cores) == 8 * run.ranks for run in eight.values())
    assert collections.Counter(run.probe for run in runs)["ring"] == 1
    # All cores as one process: there is one load, and no column.
    whole = [run.name for run in planned("1x2", threads=(1, 2)) if run.threads == 2 and run.block == 0]
    assert sorted(whole) == ["dgemm_all_2_threads", "hpl_steps_1x1_all_2_threads"]


def test_all_processes_together_stay_within_two_fifths_of_the_memory() -> None:
    for text, memory_bytes in itertools.product(("1x2", "2x16", "2x64"), (8 << 30, 64 << 30)):
        layout = layout_of(text)
        cores = len(layout.cores)
        for run in plan(FULL, 1, layout, room(FULL, memory_bytes, cores)):
            if run.most_bytes is not None:
                taken = run.ranks * run.most_bytes
            elif run.probe.startswith("hpl_steps"):
                column = 1 if run.probe == "hpl_steps_1x1" else run.ranks
                # A block more than the largest matrix that is fitted.
                sizes = ((int(str(m)) / column - 256, int(str(n)) - 256) for _, m, n, *_ in run.design.rows)
                taken = max(8 * run.ranks * m * n for m, n in sizes)
            else:
                continue
            assert taken <= 0.4 * memory_bytes * 1.01, run.name


def test_the_time_does_not_depend_on_the_number_of_cores_and_is_bounded() -> None:
    """Cores work in parallel; with more loads to measure each of those between has fewer rows."""
    full, quick = (
        {text: calibration_s(planned(text, scale), gflops=60.0) for text in NODES} for scale in (FULL, QUICK)
    )
    assert full["1x2"] < 145  # `make demo` has five minutes for this and 36 real runs, which take two
    middle = (max(full.values()) + min(full.values())) / 2
    assert all(abs(time_s - middle) < 0.1 * middle for time_s in full.values()), full
    assert max(full.values()) < 600
    assert max(quick.values()) < 60, quick

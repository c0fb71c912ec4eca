"""What the generators of designs put into their tables."""

import collections
import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
from support_hpl_counts import simulated

from lepaute import _core
from lepaute.errors import DesignError
from lepaute.measure.design import dgemm_design, hpl_step_design, p2p_design
from lepaute.measure.design.dgemm import HPL_TUPLES
from lepaute.measure.design.hpl_step import FEWEST_RUNS, StepOptions, drawn_step_options
from lepaute.measure.fit.observations.calls import FIRST_TOUCH, MODELLED, PHASES
from lepaute.simulate.apps.hpl.parameters import Hpl


def test_the_dgemm_design_holds_the_fixed_tuples_besides_the_drawn_ones() -> None:
    triples = [row[1:] for row in dgemm_design(3).rows]
    assert set(HPL_TUPLES) <= set(triples)
    # 60 products; a triple has 6 orders, or fewer where sizes repeat or an order exceeds the bound of k.
    assert 150 <= len(triples) - len(HPL_TUPLES) <= 360


def test_fixed_tuples_beyond_the_bounds_are_left_out() -> None:
    design = dgemm_design(3, products=5, product_range=(1e3, 1e6), most=(1000, 1000, 1000))
    assert all(max(row[1:]) <= 1000 for row in design.rows)  # type: ignore[type-var]
    assert (1000, 1000, 128) in [row[1:] for row in design.rows]
    assert design.header["fixed"] == str(sum(max(triple) <= 1000 for triple in HPL_TUPLES))


def test_a_whole_dgemm_design_takes_about_a_second_on_a_core() -> None:
    for seed in range(5):
        flops = sum(2 * m * n * k for _, m, n, k in dgemm_design(seed).rows)  # type: ignore[operator, misc]
        assert 0.5 < flops / 50e9 < 2.0  # seconds at 50 Gflop/s: five blocks on two cores must stay under 20 s


def test_the_p2p_design_has_the_counts_asked_for_and_unsized_operations_have_no_size() -> None:
    design = p2p_design(1, counts={"recv": 7, "wtime": 3})
    assert collections.Counter(row[0] for row in design.rows) == {"recv": 7, "wtime": 3}
    assert all(size == 0 for operation, size in design.rows if operation == "wtime")


def test_a_default_design_of_steps_takes_a_few_seconds_and_holds_both_ends() -> None:
    for seed in range(5):
        rows = list(hpl_step_design(seed))
        seconds = sum(int(r["m"]) * int(r["n"]) * (int(r["steps"]) * 2 * int(r["nb"]) / 50e9 + 2e-9) for r in rows)
        assert 2.0 < seconds < 8.0
        sizes = {int(row["m"]) for row in rows}
        assert max(sizes) == 8000
        assert min(sizes) <= 512
        assert collections.Counter(row["nb"] for row in rows) == {64: 8, 128: 8, 256: 8}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (partial(hpl_step_design, 1, **wrong), "need rows, ranks and NB >= 1")
            for wrong in ({"rows": 0}, {"nbs": (64, 0)}, {"nbs": ()}, {"nbs": (64, 128), "max_n": 255})
        ),
        *((partial(hpl_step_design, 1, steps=steps), "need rows, ranks") for steps in ((0, 1), (3, 2))),
        (partial(dgemm_design, 1, products=3, product_range=(1e3, 1e9), most=(10, 10, 10)), "raise the bounds or"),
        (partial(p2p_design, 1, counts={"bcast": 1}), "operation bcast; known are recv, isend"),
    ],
)
def test_designs_that_cannot_be_are_refused_with_what_to_do(make: Any, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        make()


def test_many_impossible_block_sizes_are_refused_in_a_short_line() -> None:
    with pytest.raises(DesignError) as refused:
        hpl_step_design(1, nbs=range(100_000))
    assert len(str(refused.value)) < 400


def test_a_rank_of_a_long_process_column_has_the_work_of_one_of_two() -> None:
    two, sixteen = hpl_step_design(4).rows, hpl_step_design(4, ranks=16).rows
    assert [(kind, m * 8, *rest) for kind, m, *rest in two] == list(sixteen)  # type: ignore[operator]
    assert hpl_step_design(4, ranks=1).rows == two


def test_runs_with_options_of_hpl_and_those_with_the_defaults_call_every_kernel() -> None:
    def called(options: StepOptions, p: int) -> set[str]:
        hpl = Hpl(n=96, nb=24, p=p, q=1, depth=0, **{**dataclasses.asdict(options), "equil": bool(options.equil)})
        return {name for name, use in simulated(hpl).kernels.items() if use.calls}

    of_hpl = set(_core.kernel_names()) - {"sweep", FIRST_TOUCH}  # the stencil's, and what a run does once
    default = called(StepOptions(), 1) | called(StepOptions(), 3)
    for seed in range(5):
        for runs in (FEWEST_RUNS, 5):
            drawn = drawn_step_options(np.random.default_rng(seed), runs)
            assert default.union(*(called(options, 3) for options in drawn)) == of_hpl


def test_a_fit_knows_every_kernel_that_hpl_calls() -> None:
    assert MODELLED | {FIRST_TOUCH, *PHASES.values()} == set(_core.kernel_names()) - {"sweep"}


def test_levels_of_the_options_come_equally_often() -> None:
    drawn = drawn_step_options(np.random.default_rng(1), 12)
    for name in ("l1", "pfact", "rfact", "ndiv", "equil"):
        assert len(set(collections.Counter(getattr(options, name) for options in drawn).values())) == 1, name
    assert set(collections.Counter((options.u, options.swap) for options in drawn).values()) == {4}

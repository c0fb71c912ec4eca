"""What the generators of designs put into their tables."""

import collections
import dataclasses

import numpy as np
from support_hpl_counts import simulated

from lepaute import _core
from lepaute.measure.design import hpl_step_design, p2p_design
from lepaute.measure.design.hpl_step import MIN_RUNS, StepOptions, drawn_step_options
from lepaute.measure.fit.observations.calls import FIRST_TOUCH, MODELLED, PHASES
from lepaute.simulate.apps.hpl.parameters import Hpl


def test_the_p2p_design_has_the_counts_asked_for_and_unsized_operations_have_no_size() -> None:
    design = p2p_design(1, counts={"recv": 7, "wtime": 3})
    assert collections.Counter(row[0] for row in design.rows) == {"recv": 7, "wtime": 3}
    assert all(size == 0 for operation, size in design.rows if operation == "wtime")


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
        for runs in (MIN_RUNS, 5):
            drawn = drawn_step_options(np.random.default_rng(seed), runs)
            assert default.union(*(called(options, 3) for options in drawn)) == of_hpl


def test_a_fit_knows_every_kernel_that_hpl_calls() -> None:
    assert MODELLED | {FIRST_TOUCH, *PHASES.values()} == set(_core.kernel_names()) - {"sweep"}

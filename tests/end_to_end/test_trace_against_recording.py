"""A simulated HPL beside the real one, call by call: the same kernels and messages, in the same order and sizes.

The simulation gets the pivots of the real matrix (tests/data/hpl_pivots.csv), which decide which rows are swapped. What
is left to differ is how often a rank looks for a panel, and durations.
"""

from pathlib import Path

import pytest
from long_tests import long_but
from oracles.recorded_hpl import recorded_hpl

from lepaute import _core
from lepaute.simulate import Hpl, Layers
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform import load_platform
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.tracing import trace_of_run

pytestmark = pytest.mark.machine

N, NB = 500, 64
#: What only one side knows: copies within small arrays, and what a rank does between kernels.
ONE_SIDED = {"dcopy_contiguous", "pdfact_glue", "pdupdate_glue"}
RUNS = {
    "row": Hpl(n=N, nb=NB, p=1, q=2),
    "column": Hpl(n=N, nb=NB, p=2, q=1),
    "grid": Hpl(n=N, nb=NB, p=2, q=2),
    "grid without look-ahead": Hpl(n=N, nb=NB, p=2, q=2, depth=0),
    "three rows, left and Crout": Hpl(n=N, nb=NB, p=3, q=1, pfact="left", rfact="crout", nbmin=4),
    "two panels ahead": Hpl(
        n=N, nb=NB, p=3, q=2, depth=2, bcast="1ring-modified", pfact="right", rfact="left", swap="mix"
    ),
    "long broadcast and rolls": Hpl(
        n=N, nb=NB, p=2, q=2, bcast="long", swap="spread-roll", l1="no-transposed", u="no-transposed"
    ),
    "long-modified broadcast": Hpl(n=N, nb=NB, p=1, q=3, bcast="long-modified"),
}


def simulated(hpl: Hpl) -> Trace:
    rows = (Path(__file__).resolve().parent.parent / "data" / "hpl_pivots.csv").read_text().splitlines()
    pivots = next(row.partition(",")[2] for row in rows if row.startswith(f"{hpl.n},"))
    parameters = hpl.on().core_parameters()
    parameters.pivot_rows = [int(pivot) for pivot in pivots.split()]
    machine = machine_of(load_platform("dahu"), 1)
    ranks = list(range(hpl.ranks))
    result = _core.simulate_hpl(parameters, machine, Layers().to_core(), ranks, 1, ranks)
    return trace_of_run(result, {"application": "hpl", "parameters": hpl.parameters(), "ranks": hpl.ranks})


@pytest.mark.parametrize("name", long_but(list(RUNS), "grid", "two panels ahead", "long broadcast and rolls"))
def test_every_call_of_the_real_hpl_is_simulated_in_its_order_and_size(name: str, tmp_path: Path) -> None:
    hpl = RUNS[name]
    recorded, _ = recorded_hpl(hpl, tmp_path)
    found = compare_traces(recorded, simulated(hpl))
    assert found.ranks == tuple(range(hpl.ranks))
    assert {name for name, _, _, _ in found.one_side} <= ONE_SIDED
    assert found.first == ()
    assert found.first_size == ()
    for one in found.classes:
        assert one.left_calls == one.right_calls == one.same_sizes, one.name
    assert sum(one.left_calls for one in found.classes) > 1000 * hpl.ranks

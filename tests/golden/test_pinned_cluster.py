"""A hypothetical cluster and runs on it, pinned to the last bit: draws are the same on every machine.

Whoever means to change them writes the new figures here, and says in the changelog why they changed.
"""

from lepaute.platform import load_platform, override
from lepaute.platform.populations import population_of
from lepaute.simulate import Hpl, predict
from lepaute.simulate.synthesis import synthesize

HPL = Hpl(n=6000, nb=128, p=4, q=16)
FIRST = (6.628481764133964e-11, 2.346351563283155e-06, 1.9495406485261756e-12)
LAST = (9.38352059863477e-11, 2.705038003525859e-06, 1.077762186754135e-11)
TIMES_S = (0.18569569460968133, 0.18439197890907177, 0.18452074079838462)
DRAWN_TIMES_S = (0.18713218859385067, 0.18708427733348573, 0.1876680915785784)


def test_a_synthetic_cluster_and_its_runs_are_what_they_were() -> None:
    dahu = load_platform("dahu-2019-04")
    cluster = synthesize(dahu, population_of(dahu), nodes=20, spatial=2.0, temporal=0.5, seed=3)
    table = cluster.kernels[0].pieces[0].per_cpu
    assert table is not None
    assert table.rows[0][2:] == FIRST
    assert table.rows[-1][2:] == LAST
    assert tuple(run.time_s for run in predict(HPL, cluster, runs=3).run_list) == TIMES_S


def test_runs_that_draw_nodes_and_days_are_what_they_were() -> None:
    dahu = override(load_platform("dahu-2019-04"), {"population.draw": "nodes-and-days"})
    assert tuple(run.time_s for run in predict(HPL, dahu, runs=3).run_list) == DRAWN_TIMES_S

"""A hypothetical cluster and runs on it, pinned to the last bit: draws are the same on every machine.

Whoever means to change them writes the new figures here, and says in the changelog why they changed.
"""

from lepaute.simulate import Hpl, predict
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.population import population_of

HPL = Hpl(n=6000, nb=128, p=4, q=16)
FIRST = (6.628560122069975e-11, 2.346583167550724e-06, 1.9560801454464317e-12)
LAST = (9.383572976563847e-11, 2.7047015165606737e-06, 1.093696349916261e-11)
TIMES_S = (0.19916226742116352, 0.2046314966568305, 0.192405430708864)
DRAWN_TIMES_S = (0.19843383179435162, 0.20534757826450625, 0.1921659776693398)


def test_a_synthetic_cluster_and_its_runs_are_what_they_were() -> None:
    dahu = load_platform("dahu-2019-04")
    cluster = synthesize(dahu, population_of(dahu), nodes=20, spatial=2.0, temporal=0.5, seed=3)
    table = cluster.kernels[0].pieces[0].per_cpu
    assert table.rows[0][2:] == FIRST
    assert table.rows[-1][2:] == LAST
    assert tuple(run.time_s for run in predict(HPL, cluster, runs=3).run_list) == TIMES_S


def test_runs_that_draw_nodes_and_days_are_what_they_were() -> None:
    dahu = override(load_platform("dahu-2019-04"), {"population.draw": "nodes-and-days"})
    assert tuple(run.time_s for run in predict(HPL, dahu, runs=3).run_list) == DRAWN_TIMES_S

"""Where real runs are made, as the command line says it, and how nodes count together."""

import pytest

from lepaute.cli.verify_site import spread, where_of
from lepaute.errors import InputError
from lepaute.measure.machine_load import Load
from lepaute.measure.schedulers import Request
from lepaute.measure.verify.node_site import sum_of
from lepaute.measure.verify.real_run import NodeLoad, disturbances
from lepaute.simulate.platform import load_platform


def where(scheduler: str | None = None, ranks_per_node: int | None = None, **request: object):
    return where_of(scheduler, Request(**request), None, ranks_per_node, other_machine=False)


def test_what_was_calibrated_is_verified_and_this_machine_needs_no_names() -> None:
    slurm = where("slurm", count=2, walltime_s=60.0)
    on = slurm.on(("n3", "n7"))
    assert (on.request.nodes, on.request.count, on.request.walltime_s) == ("n[3,7]", None, 60.0)
    assert where().on(("host",)).request == Request()


def test_ranks_are_spread_over_the_first_cores_of_each_node_in_turn() -> None:
    dahu = load_platform("dahu")
    assert spread(dahu, 2, 3, 4).cores(dahu, 6, 4) == [0, 4, 8, 32, 36, 40]
    with pytest.raises(InputError, match=r"a node of dahu.* has 32 cores"):
        spread(dahu, 2, 9, 4)


def test_each_node_is_judged_by_itself_and_the_sum_is_told() -> None:
    quiet, busy = Load(10.0, 32, 320.0, 0.1, 0.0), Load(10.5, 32, 320.0, 20.0, 0.0)
    whole = sum_of([quiet, busy])
    assert (whole.wall_s, whole.cores, whole.others_cpu_s) == (10.5, 64, 20.1)
    # 20 s of 64 x 10.5 s are within 3 %; of the node's own 32 x 10.5 s they are not.
    assert whole.disturbances() == ()
    (cause,) = disturbances((), whole, (NodeLoad("a", quiet), NodeLoad("b", busy)))
    assert cause == "cpu: other processes used 20.00 s of CPU in 10.50 s on b"

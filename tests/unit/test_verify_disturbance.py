"""The rule that tells disturbed runs."""

from dataclasses import fields

import pytest

from lepaute.measure.machine_load import Load
from lepaute.measure.verify.real_run import RankLoad, disturbances

QUIET = Load(wall_s=1.0, cores=2, own_cpu_s=1.5, others_cpu_s=0.0, steal_s=0.0)


def rank(wall_s: float, cpu_s: float) -> RankLoad:
    return RankLoad(0, 0, wall_s, cpu_s, voluntary_switches=0, involuntary_switches=0)


def machine(**changes: float) -> Load:
    return Load(**{**{field.name: getattr(QUIET, field.name) for field in fields(Load)}, **changes})


@pytest.mark.parametrize(
    ("ranks", "load", "cause"),
    [
        ((rank(0.920, 0.9199), rank(0.920, 0.9197)), QUIET, None),
        # A rank has its core for 0.97 * 1.000 - 0.005 = 0.965 at least; one tick of a 250 Hz kernel is 5 % of 0.08 s.
        ((rank(1.0, 0.966),), QUIET, None),
        ((rank(1.0, 0.964),), QUIET, "off core: rank 0 was on its core for only"),
        ((rank(0.080, 0.076),), QUIET, None),
        # 3 % of 2 cores * 1 s is 0.06 s, plus 0.03 s of granularity; a run may keep its core beside a neighbour.
        ((), machine(others_cpu_s=0.08), None),
        ((), machine(others_cpu_s=0.10), "cpu: other processes"),
        ((rank(1.0, 1.0),), machine(others_cpu_s=1.0), "cpu: other processes"),
        ((), machine(steal_s=0.06), "steal: the hypervisor"),
        ((), machine(others_cpu_s=-0.04), None),  # ticks that missed our own processes
    ],
)
def test_what_takes_more_than_its_share_disturbs_a_run(ranks, load, cause):
    found = disturbances(ranks, load)
    assert len(found) == (cause is not None)
    assert all(text.startswith(cause) for text in found)


def test_the_rule_never_sees_the_duration_that_is_verified():
    # Ten times slower, all shares the same: the verdict must not change.
    for factor in (1.0, 10.0):
        load = Load(wall_s=factor, cores=2, own_cpu_s=1.9 * factor, others_cpu_s=0.0, steal_s=0.0)
        assert disturbances((rank(factor, factor),), load) == ()

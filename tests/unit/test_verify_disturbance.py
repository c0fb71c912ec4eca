"""The rule that tells disturbed runs."""

from dataclasses import fields

from lepaute.measure.machine_load import Load
from lepaute.verify.disturbance import RankLoad, disturbances, rule

QUIET = Load(wall_s=1.0, cores=2, own_cpu_s=1.5, others_cpu_s=0.0, steal_s=0.0)


def rank(wall_s: float, cpu_s: float) -> RankLoad:
    return RankLoad(0, 0, wall_s, cpu_s, voluntary_switches=0, involuntary_switches=0)


def machine(**changes: float) -> Load:
    return Load(**{**{field.name: getattr(QUIET, field.name) for field in fields(Load)}, **changes})


def test_a_quiet_run_is_not_disturbed():
    assert disturbances((rank(0.920, 0.9199), rank(0.920, 0.9197)), QUIET) == ()


def test_a_rank_that_lost_its_core_for_more_than_three_per_cent_disturbs_the_run():
    # 0.97 * 1.000 - 0.005 = 0.965
    assert disturbances((rank(1.0, 0.966),), QUIET) == ()
    assert len(disturbances((rank(1.0, 0.964),), QUIET)) == 1


def test_one_clock_tick_does_not_disturb_a_run_of_a_tenth_of_a_second():
    # One tick of a 250 Hz kernel is 4 ms: 5 % of 0.08 s.
    assert disturbances((rank(0.080, 0.076),), QUIET) == ()


def test_load_of_others_disturbs_beyond_three_per_cent_of_the_machine_and_the_granularity():
    # 3 % of 2 cores * 1 s is 0.06 s, plus 0.03 s of granularity.
    assert disturbances((), machine(others_cpu_s=0.08)) == ()
    assert "other processes" in disturbances((), machine(others_cpu_s=0.10))[0]


def test_a_neighbour_on_the_other_core_disturbs_a_run_that_kept_its_own():
    assert len(disturbances((rank(1.0, 1.0),), machine(others_cpu_s=1.0))) == 1


def test_stolen_time_disturbs():
    assert "hypervisor" in disturbances((), machine(steal_s=0.06))[0]


def test_ticks_that_missed_our_own_processes_do_not_disturb():
    assert disturbances((), machine(others_cpu_s=-0.04)) == ()


def test_the_rule_never_sees_the_duration_that_is_verified():
    # Ten times slower, all shares the same: the verdict must not change.
    for factor in (1.0, 10.0):
        load = Load(wall_s=factor, cores=2, own_cpu_s=1.9 * factor, others_cpu_s=0.0, steal_s=0.0)
        assert disturbances((rank(factor, factor),), load) == ()


def test_every_constant_of_the_rule_is_recorded():
    assert rule() == {
        "minimum_cpu_share": 0.97,
        "cpu_time_tolerance_s": 0.005,
        "most_others_share": 0.03,
        "most_steal_share": 0.01,
        "granularity_s": 0.03,
        "most_sentinel_change": 0.1,
        "fewest_sentinels": 6,
    }

"""The rules that tell disturbed probes and runs, blind to durations."""

from dataclasses import fields

import pytest

from lepaute.measure.machine_load import Load, Sample, disturbance_warnings, load_between
from lepaute.measure.node_agent.facts import parse_stat
from lepaute.measure.verify.real_run import RankLoad, disturbances

# user nice system idle iowait irq softirq steal guest guest_nice, in ticks
STAT = "cpu  1000 10 200 9999 55 3 7 40 500 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"


def test_busy_time_leaves_out_idle_waiting_and_stolen_time_and_counts_guests_once() -> None:
    # 1000 + 10 + 200 + 3 + 7 ticks; the guests' 500 are part of the user's 1000
    assert parse_stat(STAT, 100) == (12.2, 0.4)


def test_load_of_others_is_busy_time_less_our_own() -> None:
    load = load_between(Sample(10.0, 100.0, 1.0, 5.0), Sample(14.0, 107.0, 1.5, 9.0), cores=2)
    assert load == Load(wall_s=4.0, cores=2, own_cpu_s=4.0, others_cpu_s=3.0, steal_s=0.5)


def test_a_quiet_probe_is_not_disturbed_and_ticks_do_not_make_it_so() -> None:
    assert Load(2.0, 2, 2.0, 0.04, 0.0).disturbances() == ()
    assert Load(0.1, 2, 0.1, 0.03, 0.03).disturbances() == ()  # granularity of /proc/stat in a short run
    assert Load(2.0, 2, 2.0, -0.03, 0.0).disturbances() == ()


def test_where_our_own_time_is_known_otherwise_the_rest_of_the_busy_time_is_that_of_others() -> None:
    load = Load(wall_s=2.0, cores=4, own_cpu_s=0.1, others_cpu_s=2.4, steal_s=0.0)
    assert load.disturbances()
    # Two ranks that another node's mpirun has started poll for all of the two seconds on one core each.
    known = load.with_own(2.0)
    assert (known.own_cpu_s, known.others_cpu_s) == (2.0, pytest.approx(0.5))
    assert known.disturbances()
    assert not load.with_own(2.4).disturbances()


def test_the_line_of_an_archive_says_which_witness_spoke() -> None:
    both = (
        "cpu: other processes used 0.50 s of CPU in 2.00 s on a",
        "steal: the hypervisor took 0.20 s of CPU in 2.00 s",
    )
    told = disturbance_warnings([[both, ()], [both[:1]], [()]], "mpiruns", "mpiruns.json")
    assert told == [
        "2 of 3 mpiruns were disturbed as seen by cpu 2, steal 1 (mpiruns.json): 1 repeated, "
        "1 without an undisturbed attempt"
    ]
    assert disturbance_warnings([[True]], "mpiruns", "x")[0].startswith(
        "1 of 1 mpiruns were disturbed by other load (x)"
    )


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

"""How much slower a node is than it was, what is done about it, and what it costs an HPL."""

import datetime as dt
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pandas
import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.measure.schedulers.types import NodeState
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.core import per_cpu_coefficients
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.components import with_cpu_factors
from lepaute.simulate.prediction.node_cost import CpuFactors, grids_within, node_cost
from lepaute.watch.changelog import Changelog, Event, NodeSet
from lepaute.watch.drains import SETTLED_S, Verdict, limit_of, verdict_of
from lepaute.watch.node_state import node_state

DAY_S = 86400.0
START = dt.date(2026, 3, 1)
START_S = dt.datetime.combine(START, dt.time(), dt.UTC).timestamp()
FACTOR = "dgemm_rate_flops"


def history(levels: list[float], factor: str = FACTOR, stratum: str = "s") -> pd.DataFrame:
    """A job a day on two CPUs, the second 2 % faster; one per cent up, one down in turn."""
    rows = [
        ("c", "7", cpu, f"j{day}", START_S + DAY_S * day + 3600.0, stratum, factor, level * wiggle * (1 + 0.02 * cpu))
        for day, level in enumerate(levels)
        for wiggle in [1.01 if day % 2 else 0.99]
        for cpu in (0, 1)
    ]
    names = ["cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "value"]
    return pd.DataFrame(rows, columns=names).assign(state="done", archive="")


def event(day: int) -> Event:
    return Event(START + dt.timedelta(days=day), NodeSet("c", "7"), "platform", "why")


def test_the_latest_jobs_are_compared_with_all_before_in_rates_and_durations() -> None:
    state = node_state(history([100.0] * 10 + [80.0] * 4), "c", "7", FACTOR, latest=4)
    assert (state.n, state.r, state.degrees_of_freedom) == (10, 4, 12)
    for cpu in (0, 1):
        mean, low, high = state.slowdown(cpu)
        assert mean == pytest.approx(1.25)
        assert 1.0 < low < 1.25 < high
    durations = node_state(history([1.0] * 8 + [1.25] * 4, "dgemm_s"), "c", "7", "dgemm_s", latest=4)
    assert durations.slowdown(0)[0] == pytest.approx(1.25)


def test_a_date_says_where_the_state_now_begins_and_the_reference_with_the_last_event_before() -> None:
    values = history([100.0] * 6 + [80.0] * 12)
    log = Changelog((event(6),))
    state = node_state(values, "c", "7", FACTOR, changelog=log, since_s=START_S + 6 * DAY_S)
    assert (state.n, state.r) == (6, 12)
    assert state.slowdown(0)[0] == pytest.approx(1.25)
    with pytest.raises(InputError, match="0 job"):  # nothing is left to compare with
        node_state(values, "c", "7", FACTOR, changelog=log, latest=12)
    values = history([50.0] * 5 + [100.0] * 8 + [80.0] * 4)
    state = node_state(values, "c", "7", FACTOR, changelog=Changelog((event(5),)), latest=4)
    assert state.n == 8
    assert state.slowdown(0)[0] == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("factor", "node", "days", "since_day", "words"),
    [
        (FACTOR, "7", 7, None, "2 job"),
        (FACTOR, "7", 12, 50, "no job since"),
        (FACTOR, "8", 12, None, "no value"),
        ("power_W", "7", 12, None, "does not say how long"),
        ("dgemm_s", "7", 12, None, "no row has the factor"),
    ],
)
def test_what_cannot_be_compared_is_refused(factor, node, days, since_day, words):
    since_s = None if since_day is None else START_S + DAY_S * since_day
    with pytest.raises(InputError, match=words):
        node_state(history([100.0] * days), "c", node, factor, since_s=since_s)


def test_the_errors_of_the_two_cpus_are_correlated_as_their_days_are() -> None:
    rng = np.random.default_rng(5)
    values = history([100.0] * 200)
    shared = np.repeat(rng.normal(0.0, 0.01, 200), 2)
    values["value"] = values["value"] * np.exp(shared)
    covariance = np.array(node_state(values, "c", "7", FACTOR).log_covariance)
    assert covariance[0, 1] / covariance[0, 0] > 0.9
    assert exp(covariance[0, 0] ** 0.5) - 1 < 0.02


NOW_S = 1e9
ROW = {"node": "n1", "cpu": 0, "factor": "dgemm_rate_flops", "stratum": "", "before": 100.0, "size": -0.1}
REGRESSED, WELL = pandas.DataFrame([ROW]), pandas.DataFrame([ROW]).iloc[:0]
FREE = NodeState(out_of_service=False)
OURS = NodeState(out_of_service=True, reason="lepaute: dgemm_rate_flops -10 %")
THEIRS = NodeState(out_of_service=True, reason="new disk")
ASKED = ("requested", NOW_S - 5000)
DRAINED = ("drained", NOW_S - SETTLED_S - 1)


def values(*jobs: tuple[float, float]) -> pandas.DataFrame:
    """(start before now, value) of each job."""
    rows = [{**ROW, "state": "done", "started_s": NOW_S - ago_s, "value": value} for ago_s, value in jobs]
    return pandas.DataFrame(rows)


OLD, CONFIRMING, DENYING = (1e5, 90.0), (1000.0, 90.5), (1000.0, 99.0)


@pytest.mark.parametrize(
    ("jobs", "actions", "scheduler", "verdict"),
    [
        ([OLD], [], FREE, Verdict.REQUEST),
        ([OLD], [], None, Verdict.REQUEST),
        ([OLD], [ASKED], FREE, Verdict.WAITING),
        ([OLD, CONFIRMING], [ASKED], FREE, Verdict.DRAIN),
        ([OLD, DENYING], [ASKED], FREE, Verdict.REQUEST),
        # of several jobs since then the latest counts
        ([OLD, (2000.0, 90.0), DENYING], [ASKED], FREE, Verdict.REQUEST),
        ([OLD, CONFIRMING], [ASKED, ("failed", NOW_S - 10)], FREE, Verdict.DRAIN),
        # what was asked for before the last regression was over confirms nothing
        ([OLD, CONFIRMING], [ASKED, ("closed", NOW_S - 10)], FREE, Verdict.REQUEST),
        ([OLD, CONFIRMING], [ASKED], THEIRS, Verdict.TAKEN),
        ([OLD], [], THEIRS, Verdict.TAKEN),
        ([OLD, CONFIRMING], [ASKED, DRAINED], OURS, Verdict.DRAINED),
        ([OLD, CONFIRMING], [ASKED, DRAINED], THEIRS, Verdict.TAKEN),
        ([OLD, CONFIRMING], [ASKED, DRAINED], FREE, Verdict.RESUMED),
        ([OLD, CONFIRMING], [ASKED, ("drained", NOW_S - 1)], FREE, Verdict.DRAINED),
        ([OLD, CONFIRMING], [ASKED, DRAINED, ("resumed", NOW_S - 1)], FREE, Verdict.RESUMED),
        ([OLD, CONFIRMING], [ASKED, DRAINED, ("resumed", NOW_S - 1)], OURS, Verdict.RESUMED),
    ],
)
def test_a_regressed_node(jobs, actions, scheduler, verdict):
    assert verdict_of(REGRESSED, values(*jobs), actions, scheduler, NOW_S) is verdict
    assert verdict_of(WELL, values(*jobs), actions, scheduler, NOW_S) is Verdict.HEALTHY


def test_a_node_without_values_is_unknown() -> None:
    assert verdict_of(WELL, values(OLD).iloc[:0], [], FREE, NOW_S) is Verdict.UNKNOWN
    failed = values(OLD, DENYING).assign(state="failed", value=float("nan"))
    assert verdict_of(WELL, failed, [], FREE, NOW_S) is Verdict.UNKNOWN
    assert verdict_of(REGRESSED, failed, [], FREE, NOW_S) is Verdict.REQUEST


def test_a_limit_is_a_number_or_a_share_rounded_down() -> None:
    assert [limit_of(text, "--most")(50) for text in ("3", "5%", "1.9%", "0", "100%")] == [3, 2, 0, 0, 50]
    for text in ("-1", "101%", "many", "", "nan%", "٣"):
        with pytest.raises(InputError, match="--most is"):
            limit_of(text, "--most")


SMALL = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
HPL = Hpl(n=300, nb=32, p=2, q=2)
EXACT = ((0.0, 0.0), (0.0, 0.0))


def alike(nodes: int) -> Platform:
    """Nodes that are all alike, with enough computing to be what HPL waits for."""
    return override(SMALL, {"nodes.count": str(nodes), "kernels[0].pieces[1].per_cpu": "null"})


def factors(first: float, second: float) -> CpuFactors:
    return CpuFactors((0, 1), (log(first), log(second)), EXACT, 10)


def dgemm(platform: Platform) -> dict:
    return per_cpu_coefficients(platform.kernel("dgemm").pieces[-1])


def test_the_cpus_of_one_node_take_a_factor_times_as_long_and_with_one_what_they_took() -> None:
    rows = dgemm(with_cpu_factors(SMALL, 1, {0: 2.0, 1: 3.0}))
    # cpu 0 has a row of its own; cpu 1 has the common coefficients, one of which is no column of the table
    assert rows[1, 0] == ({"mnk": 2.2e-10, "mn": 0.0, "1": 4e-6}, {"mnk": 2e-12})
    assert rows[1, 1] == ({"mnk": 3 * 1e-10, "mn": -3 * 1e-10, "1": 3 * 2e-6}, {"mnk": 3e-12})
    assert rows[2, 1] == ({"mnk": 9e-11, "mn": 0.0, "1": 2e-6}, {"mnk": 2e-12})
    same = with_cpu_factors(SMALL, 2, {0: 1.0, 1: 1.0})
    assert same.kernels != SMALL.kernels
    assert [run.time_s for run in predict(HPL, same).run_list] == [run.time_s for run in predict(HPL, SMALL).run_list]


@pytest.mark.parametrize(
    ("node", "given", "words"),
    [(3, {0: 1.1}, "no node 3"), (1, {2: 1.1}, "CPUs 0 to 1"), (1, {0: 0.0}, "above 0"), (0, {}, "it has 1 to 2")],
)
def test_what_the_platform_does_not_have_is_refused(node: int, given: dict[int, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_cpu_factors(SMALL, node, given)


def test_a_job_of_computing_alone_takes_as_much_longer_as_its_node_and_the_slowest_one_is_named() -> None:
    # One rank, and noise and days off: all that is left besides dgemm is far below a tenth of the time.
    hpl = Hpl(n=1500, nb=64, p=1, q=1)
    cost = node_cost(hpl, alike(2), 2, factors(1.2, 1.0), runs=2, layers=Layers.only())
    assert cost.slowdown.ratio == pytest.approx(1.2, abs=0.02)
    assert cost.without is None
    assert cost.gain is None
    assert (cost.nodes, cost.spare_nodes) == (1, 1)
    slow = with_cpu_factors(alike(8), 2, {0: 1.3, 1: 1.3})
    small = Hpl(n=300, nb=32, p=2, q=4)
    assert node_cost(small, slow, 3, factors(1.1, 1.0), runs=2).slowest == 2
    assert node_cost(small, slow, 3, factors(1.0, 1.5), runs=2).slowest == 3
    # node 2 is not in this job
    assert node_cost(Hpl(n=300, nb=32, p=1, q=2), slow, 3, factors(1.1, 1.0), runs=2).slowest == 3


def test_the_job_without_the_node_runs_on_the_nodes_that_are_left_on_the_grid_that_is_given() -> None:
    cost = node_cost(Hpl(n=600, nb=32, p=2, q=4), alike(4), 2, factors(4.0, 4.0), runs=4)
    assert (cost.without.nodes, cost.without.application.ranks) == (3, 6)
    assert cost.gain.high < 1.0, "a node four times as slow is better left out"
    found = cost.to_dict()
    assert found["without_node"]["grid"] == [2, 3]
    assert found["as_now_against_as_calibrated"]["shared_errors"] is True
    cost = node_cost(Hpl(n=300, nb=32, p=2, q=4), alike(4), 2, factors(2.0, 2.0), runs=2, grid_without=(1, 5))
    assert cost.without is not None
    assert cost.to_dict()["without_node"]["grid"] == [1, 5]
    with pytest.raises(InputError, match="there are 6 ranks"):
        node_cost(Hpl(n=300, nb=32, p=2, q=4), alike(4), 2, factors(2.0, 2.0), runs=2, grid_without=(2, 4))


@pytest.mark.parametrize(
    ("ranks", "like", "expected"),
    [
        (480, (16, 32), (20, 24)),  # 15 nodes of 32 cores: all of them, and nearly square
        (992, (32, 32), (31, 32)),
        (7, (2, 4), (1, 7)),  # nothing nearer to square leaves at most a tenth idle
        (6, (4, 2), (3, 2)),  # lies as the first grid does
        (1, (1, 2), (1, 1)),
    ],
)
def test_the_grid_of_fewer_ranks_leaves_few_idle_and_is_near_to_square(ranks, like, expected):
    assert grids_within(ranks, like)[0] == expected


def test_factors_are_drawn_with_the_errors_of_their_estimate() -> None:
    covariance = ((4e-4, 3e-4), (3e-4, 4e-4))
    few = CpuFactors((0, 1), (log(1.1), 0.0), covariance, 8)
    draws = np.log([list(few.drawn(seed).values()) for seed in range(4000)])
    # Student's t of 8 degrees: variance 8/6 of the scale's; of 4000 draws the sd is known to 2 %
    assert draws.mean(axis=0) == pytest.approx([log(1.1), 0.0], abs=4 * 0.02 / sqrt(4000) * 1.2)
    assert draws.std(axis=0) == pytest.approx([0.02 * sqrt(8 / 6)] * 2, rel=0.08)
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(0.75, abs=0.05)
    assert few.drawn(3) == few.drawn(3)

"""How long a prediction will take: events by formula, costs from measurements."""

import pytest

from lepaute.simulate import Hpl, predict
from lepaute.simulate.apps.hpl.work import (
    estimated_run_s,
    events_of,
    events_of_run,
    events_of_steps,
    exchange_messages,
    simulated_steps,
)
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native, simulate
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import override
from lepaute.simulate.prediction.predicting import simulate_one
from lepaute.simulate.tasks import estimated_wall_s


def test_an_exchange_has_the_messages_that_the_real_hpl_was_counted_to_send():
    # P log2 P for powers of two; 3, 5 and 7 ranks: 2 + 3, 8 + 3 and 8 + 9, from counts of the real program.
    assert [exchange_messages(p) for p in (1, 2, 4, 8, 3, 5, 7)] == [0, 2, 8, 24, 5, 11, 17]


@pytest.mark.parametrize(
    "hpl",
    [
        Hpl(n=4000, p=4, q=4), Hpl(n=4000, p=4, q=4, depth=0), Hpl(n=4000, p=8, q=1), Hpl(n=4000, p=7, q=3, nb=100),
        Hpl(n=4000, p=3, q=8, bcast="1ring-modified"), Hpl(n=4000, p=2, q=24, nb=64, depth=2),
        Hpl(n=4000, p=8, q=8, bcast="long"), Hpl(n=4000, p=7, q=3, swap="spread-roll"),
        Hpl(n=4000, p=8, q=8, swap="mix", bcast="long-modified"),
    ],
)  # fmt: skip
def test_the_formula_counts_the_messages_of_the_engine(hpl):
    counted = predict(hpl, load_platform("dahu"), runs=1).simulation.messages
    messages = events_of(hpl) - hpl.steps * hpl.ranks  # what is left are point-to-point messages
    assert messages == pytest.approx(counted, rel=0.05)


class Truth:
    """An engine whose events cost what is said; `measure` is what an estimate calls."""

    def __init__(self, event_s, start_s=0.0):
        self.event_s, self.start_s, self.measured_s = event_s, start_s, []

    def measure(self, small, _whole, trial_steps=0):
        steps = simulated_steps(small, trial_steps=trial_steps)
        events = events_of_steps(small, steps, solve=trial_steps == 0)
        self.measured_s.append(self.start_s + self.event_s * events)
        return self.measured_s[-1]


@pytest.mark.parametrize(
    ("hpl", "runs", "cores", "start_s", "fidelity"),
    [
        (Hpl(n=100_000, p=32, q=32), 10, 2, 0.05, "full"),
        (Hpl(n=24_000_000, nb=1024, p=256, q=294), 1, 1, 0.5, "sampled"),
        (Hpl(n=1000, p=32, q=32), 1000, 1, 0.0, "full"),
    ],
)
def test_the_costs_of_events_and_of_the_start_are_found_again(hpl, runs, cores, start_s, fidelity):
    truth = Truth(5e-7, start_s)
    (run_s,) = estimated_run_s([hpl], runs, cores, truth.measure, fidelity)
    events = events_of_steps(hpl, simulated_steps(hpl, sampled=fidelity == "sampled"), solve=True)
    assert run_s == pytest.approx(start_s + truth.event_s * events, rel=0.05)
    assert sum(truth.measured_s) < 0.03 * runs / cores * run_s + 0.1 or fidelity == "sampled"


def test_what_is_quick_is_not_measured():
    assert estimated_run_s([Hpl(n=1000, p=2, q=2)], runs=10, cores=2, measure=None) is None


def test_runs_on_several_cores_take_at_least_the_longest_of_them():
    assert estimated_wall_s([1.0, 1.0], runs=4, cores=2) == pytest.approx(4.0)
    assert estimated_wall_s([9.0, 1.0], runs=1, cores=4) == pytest.approx(9.0)


def test_a_long_broadcast_and_a_spread_roll_swap_have_more_messages():
    def others(hpl):
        return events_of(hpl) - hpl.n * exchange_messages(hpl.p)  # without those that look for pivots

    plain = others(Hpl(n=10_000, p=8, q=8))
    assert others(Hpl(n=10_000, p=8, q=8, bcast="long")) > 1.5 * plain
    assert others(Hpl(n=10_000, p=8, q=8, swap="spread-roll")) > 1.5 * plain
    # mix: binary exchange up to the threshold in columns, spread-roll above it.
    wide = Hpl(n=10_000, p=8, q=8, swap="mix", swap_threshold=64)
    assert others(wide) > others(Hpl(n=10_000, p=8, q=8, swap="mix", swap_threshold=5000)) == plain


@pytest.mark.parametrize(
    "hpl", [Hpl(n=4000, p=4, q=4), Hpl(n=4010, p=7, q=3, swap="mix"), Hpl(n=300, p=2, q=9, depth=0)]
)
def test_the_events_of_all_steps_and_the_solve_is_that_of_the_run(hpl):
    steps = simulated_steps(hpl)
    assert steps == list(range(hpl.steps))
    whole, by_step = events_of(hpl), events_of_steps(hpl, steps, solve=True)
    assert by_step == pytest.approx(whole)


@pytest.mark.parametrize("depth", [0, 1, 16])
@pytest.mark.parametrize(("steps", "q"), [(484, 1), (500, 9), (1000, 37), (1100, 300)])
def test_the_steps_announced_are_those_that_a_sampled_run_simulates(steps, q, depth):
    # Blocks of one column and a single process row: steps cost next to nothing.
    hpl = Hpl(n=steps, nb=1, p=1, q=q, depth=depth)
    sampling = simulate_one(hpl, override(load_platform("dahu"), {"nodes.count": "32"}), fidelity="sampled").sampling
    announced = [len(simulated_steps(hpl, sampled=True, further=further)) for further in (False, True)]
    assert (steps if sampling is None else sampling.simulated_steps) in announced
    assert hpl.simulated_share("sampled") == announced[0] / steps


@pytest.mark.parametrize(
    ("platform", "hpl", "further"),
    [
        ("dahu", Hpl(n=100_000, nb=96, p=8, q=8), False),
        ("stampede-like", Hpl(n=250_000, nb=256, p=15, q=16), True),  # equal nodes
    ],
)
def test_where_ranks_wait_in_waves_a_sampled_run_goes_back_for_further_windows(platform, hpl, further):
    sampling = simulate_one(hpl, load_platform(platform), fidelity="sampled").sampling
    fewer, more = (len(simulated_steps(hpl, sampled=True, further=further)) for further in (False, True))
    assert fewer < 0.8 * more
    assert sampling.simulated_steps == (more if further else fewer)
    # Half-way by the ratio is what is announced.
    each = [events_of_steps(hpl, simulated_steps(hpl, sampled=True, further=one), solve=True) for one in (False, True)]
    announced = events_of_run(hpl, sampled=True)
    assert announced**2 == pytest.approx(each[0] * each[1])
    assert each[1] / announced < 1.3


def test_of_long_runs_on_large_grids_a_round_or_so_of_the_process_columns_is_simulated():
    hpl = Hpl(n=24_000_000, nb=512, p=224, q=336)  # 46,875 steps
    assert abs(len(simulated_steps(hpl, sampled=True)) - 320) <= 336 // 2
    assert hpl.simulated_share("full") == 1.0
    # Hardly any whole round to leave out: every step is simulated, whatever the fidelity is called.
    assert Hpl(n=300 * 128, p=1, q=336).simulated_share("sampled") == 1.0


def test_the_messages_announced_are_those_of_a_trial():
    # Pivots of 6 steps, their swaps, broadcasts and turns, counted by formula and by the engine.
    hpl = Hpl(n=40_000, p=8, q=8)
    steps = simulated_steps(hpl, trial_steps=5)
    assert len(steps) == 6
    simulator = Native().on(Conditions(load_platform("dahu")))
    machine, cores = simulator._machine(hpl), simulator._core_of_rank(hpl)
    counted = simulate(hpl, machine, simulator._layers, cores, 1, trial_steps=5).messages
    turns = len(steps) * hpl.ranks
    assert events_of_steps(hpl, steps, solve=False) - turns == pytest.approx(counted, rel=0.05)

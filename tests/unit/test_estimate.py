"""How long a prediction will take: events by formula, costs from measurements."""

import pytest

from lepaute.platform import load_platform
from lepaute.platform.io import override
from lepaute.simulate import Hpl, predict
from lepaute.simulate.apps.hpl.estimate import (
    EventCosts,
    estimated_run_s,
    exchange_messages,
    sampled_steps,
    turns_of,
    work_of,
)
from lepaute.simulate.apps.hpl.parameters import WINDOWS
from lepaute.simulate.estimate import estimated_wall_s
from lepaute.simulate.predicting import simulate_one


def test_an_exchange_has_the_messages_that_the_real_hpl_was_counted_to_send():
    # P log2 P for powers of two; 3, 5 and 7 ranks: 2 + 3, 8 + 3 and 8 + 9, from counts of the real program.
    assert [exchange_messages(p) for p in (1, 2, 4, 8, 3, 5, 7)] == [0, 2, 8, 24, 5, 11, 17]


@pytest.mark.parametrize(
    "hpl",
    [
        Hpl(n=4000, p=4, q=4),
        Hpl(n=4000, p=4, q=4, depth=0),
        Hpl(n=4000, p=8, q=1),
        Hpl(n=4000, p=7, q=3, nb=100),
        Hpl(n=4000, p=3, q=8, bcast="1ring-modified"),
        Hpl(n=4000, p=2, q=24, nb=64, depth=2),
        Hpl(n=4000, p=8, q=8, bcast="long"),
        Hpl(n=4000, p=7, q=3, swap="spread-roll"),
        Hpl(n=4000, p=8, q=8, swap="mix", bcast="long-modified"),
    ],
)
def test_the_formula_counts_the_messages_of_the_engine(hpl):
    counted = predict(hpl, load_platform("dahu"), runs=1).simulation.messages
    messages = work_of(hpl).events - turns_of(hpl)  # what is left are point-to-point messages
    assert messages == pytest.approx(counted, rel=0.05)


def test_costs_that_grow_with_the_number_of_ranks_are_found_again():
    truth = EventCosts(pivot_s=4e-8, other_s=5e-7, ranks=64, growth=0.3)
    hpl = Hpl(n=100_000, p=32, q=32)
    measured = []

    def measure(small, whole):
        assert whole == hpl
        measured.append(truth.run_s(small))
        return measured[-1]

    (run_s,) = estimated_run_s([hpl], runs=10, cores=2, measure=measure)
    assert run_s == pytest.approx(truth.run_s(hpl), rel=0.02)
    assert sum(measured) < 0.03 * 10 / 2 * run_s + 0.1


def test_several_combinations_are_measured_once_and_told_apart():
    truth = EventCosts(pivot_s=4e-8, other_s=5e-7, ranks=64)
    hpls = [Hpl(n=n, p=16, q=16) for n in (10_000, 50_000, 200_000)]
    calls = []

    def measure(small, whole):
        calls.append(small)
        return truth.run_s(small)

    assert estimated_run_s(hpls, runs=10, cores=2, measure=measure) == pytest.approx(
        [truth.run_s(hpl) for hpl in hpls], rel=0.02
    )
    assert len(calls) <= 7


def test_what_is_quick_is_not_measured():
    assert estimated_run_s([Hpl(n=1000, p=2, q=2)], runs=10, cores=2, measure=None) is None


def test_runs_on_several_cores_take_at_least_the_longest_of_them():
    assert estimated_wall_s([1.0, 1.0], runs=4, cores=2) == pytest.approx(4.0)
    assert estimated_wall_s([9.0, 1.0], runs=1, cores=4) == pytest.approx(9.0)


def test_a_long_broadcast_and_a_spread_roll_swap_have_more_messages():
    plain = work_of(Hpl(n=10_000, p=8, q=8)).others
    assert work_of(Hpl(n=10_000, p=8, q=8, bcast="long")).others > 1.5 * plain
    assert work_of(Hpl(n=10_000, p=8, q=8, swap="spread-roll")).others > 1.5 * plain
    # mix: binary exchange up to the threshold in columns, spread-roll above it.
    wide = Hpl(n=10_000, p=8, q=8, swap="mix", swap_threshold=64)
    narrow = Hpl(n=10_000, p=8, q=8, swap="mix", swap_threshold=5000)
    assert work_of(wide).others > work_of(narrow).others == plain


@pytest.mark.parametrize("depth", [0, 1, 16])
@pytest.mark.parametrize(("steps", "q"), [(484, 1), (500, 3), (500, 9), (500, 40), (1000, 37), (2540, 64), (1100, 300)])
def test_the_steps_of_a_sampled_run_are_those_that_the_engine_counts(steps, q, depth):
    # Blocks of one column and a single process row: steps cost next to nothing.
    hpl = Hpl(n=steps, nb=1, p=1, q=q, depth=depth)
    sampling = simulate_one(hpl, override(load_platform("dahu"), {"nodes.count": "32"}), fidelity="sampled").sampling
    assert sampled_steps(hpl, WINDOWS) == (steps if sampling is None else sampling.simulated_steps)
    assert hpl.simulated_share("sampled") == sampled_steps(hpl, WINDOWS) / steps


def test_a_sampled_run_simulates_the_whole_rounds_of_process_columns_that_windows_do_not_fit_into():
    # 224 x 336 ranks, 46,875 steps: five windows are 240 steps, and up to 335 more stand at the end.
    hpl = Hpl(n=24_000_000, nb=512, p=224, q=336)
    assert 240 < sampled_steps(hpl, WINDOWS) < 240 + 336
    assert hpl.simulated_share("full") == 1.0
    # Just too short to save half: every step is simulated, whatever the fidelity is called.
    assert Hpl(n=300 * 128, p=1, q=336).simulated_share("sampled") == 1.0


def test_an_event_costs_more_on_more_ranks_than_were_measured():
    costs = EventCosts(pivot_s=0.0, other_s=5e-7, ranks=1024)
    small, large = Hpl(n=100_000, p=32, q=32), Hpl(n=100_000, p=128, q=128)
    an_event_s = [costs.run_s(hpl) / work_of(hpl).others for hpl in (small, large)]
    assert an_event_s[1] > 2.0 * an_event_s[0]
    assert an_event_s[0] == pytest.approx(5e-7)

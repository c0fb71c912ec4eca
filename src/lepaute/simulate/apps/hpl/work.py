"""What simulating a run of HPL consists of, step by step, and how long it will take, estimated before it starts.

The engine's time goes into the pivot exchanges of the panels, which it takes column by column, and into everything that
a rank does once a step: row swaps, broadcasts, updates. Both are counted by formula. What an event costs is measured
here and now: some steps of the very run are simulated, on all its ranks, since an event costs the more the less of the
state of all ranks fits into the caches.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod, sqrt
from typing import TYPE_CHECKING, Protocol

from lepaute.kit.later import later
from lepaute.simulate.tasks import ROUGH_EVENT_S, WORTH_MEASURING_S

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate.apps.hpl.parameters import Hpl
else:
    _core = later("lepaute._core")

#: What a message of the pivot exchanges costs, relative to other events, about.
PIVOT_WEIGHT = 0.05


def exchange_messages(ranks: int) -> int:
    """Messages of one exchange of all with all: ip2 log2 ip2, and 3 for each rank beyond a power of 2."""
    rounds = ranks.bit_length() - 1
    return (rounds << rounds) + 3 * (ranks - (1 << rounds))


def swapping(last: int, q: int) -> float:
    """Process columns that still have columns to swap, summed over the `last` steps of a run."""
    full = max(0, last - q)
    rest = last - full
    return full * q + rest * (rest + 1) / 2


def events_of(hpl: "Hpl") -> float:
    """Messages and turns of the ranks of one run, by formula.

    Each step has NB exchanges for pivots, a swap in each process column that still has columns, and a broadcast in each
    process row; within 3 % of the engine's own count of messages.
    """
    steps, q = hpl.steps, hpl.q
    last = last_exchanging(hpl)
    swaps = (swapping(steps, q) - swapping(last, q)) * spread_roll_messages(hpl.p)
    swaps += swapping(last, q) * exchange_messages(hpl.p)
    return swaps + steps * each_step(hpl) + solve_messages(hpl) + hpl.n * exchange_messages(hpl.p)


def events_of_steps(hpl: "Hpl", steps: Sequence[int], *, solve: bool) -> float:
    """The events of some steps of a run, and of the triangular solve."""
    return sum(events_of_step(hpl, step) for step in steps) + (solve_messages(hpl) if solve else 0.0)


def events_of_step(hpl: "Hpl", step: int, pivot_weight: float = 1.0) -> float:
    """The events of one step; each of the pivot exchanges counts as so many."""
    left = hpl.steps - step  # steps, this one counted
    exchange = exchange_messages(hpl.p)
    swap = exchange if left <= last_exchanging(hpl) else spread_roll_messages(hpl.p)
    return pivot_weight * min(hpl.nb, hpl.n - step * hpl.nb) * exchange + min(left, hpl.q) * swap + each_step(hpl)


def last_exchanging(hpl: "Hpl") -> int:
    """Steps at the end of the run whose swaps are binary exchanges: the mixed swap has no more columns there."""
    mixed = min(hpl.steps, hpl.threshold * hpl.q // hpl.nb)
    return {"binary-exchange": hpl.steps, "spread-roll": 0, "mix": mixed}[hpl.swap]


def spread_roll_messages(p: int) -> int:
    return (p - 1) * (p + 1)


def each_step(hpl: "Hpl") -> float:
    """Events that every step has: broadcast, turns of the ranks, and with look-ahead the swap of the next panel."""
    p, q = hpl.p, hpl.q
    ahead = 0
    if hpl.depth:
        rolled = hpl.swap == "spread-roll" or (hpl.swap == "mix" and hpl.threshold < hpl.nb)
        ahead = spread_roll_messages(p) if rolled else exchange_messages(p)
    return float(p * broadcast(hpl.bcast, q)[0] + hpl.ranks + ahead)


@lru_cache(maxsize=64)
def broadcast(word: str, q: int) -> tuple[int, bool]:
    """Messages of a broadcast along a row, and whether they are pieces of the panel, for which nobody probes."""
    return _core.hpl_broadcast(word, q)


def solve_messages(hpl: "Hpl") -> float:
    return float(hpl.steps * (hpl.p - 1 + min(1, hpl.q - 1)))


def simulated_steps(hpl: "Hpl", *, sampled: bool = False, trial_steps: int = 0, further: bool = False) -> list[int]:
    """The steps that the core simulates; further: with the windows that it goes back for where it is uncertain."""
    steps: list[int] = _core.hpl_simulated_steps(hpl.core_parameters(sampled=sampled, trial_steps=trial_steps), further)
    return steps


def events_of_run(hpl: "Hpl", *, sampled: bool) -> float:
    """The events of one run, sampled or in full.

    Whether a sampled run goes back for further windows is not known beforehand: half-way, by the ratio.
    """
    if not sampled:
        return events_of(hpl)
    steps = (simulated_steps(hpl, sampled=True, further=further) for further in (False, True))
    return sqrt(prod(events_of_steps(hpl, windows, solve=True) for windows in steps))


def share_done(hpl: "Hpl", begun: float, *, sampled: bool) -> float:
    """The share of a run's work that is behind when its ranks have begun so many of its simulated steps on average.

    With the further windows of a sampled run: without them it ends earlier.
    """
    behind = _work_behind(hpl, sampled)
    at = min(max(0.0, begun - 0.5), len(behind) - 1.5)  # a step that has begun is half done, on average
    whole = int(at)
    work = behind[whole] + (at - whole) * (behind[whole + 1] - behind[whole])
    return min(1.0, work / (behind[-1] + solve_messages(hpl)))


@lru_cache(maxsize=64)
def _work_behind(hpl: "Hpl", sampled: bool) -> list[float]:
    """The events of all steps before each of the simulated ones, and of all."""
    steps = simulated_steps(hpl, sampled=sampled, further=True)
    return list(accumulate((events_of_step(hpl, step, PIVOT_WEIGHT) for step in steps), initial=0.0))


def edge_ranks(hpl: "Hpl") -> tuple[int, ...]:
    """The ranks of the first process row and of the first process column."""
    by_row = hpl.pmap == "row"
    row = (column if by_row else column * hpl.p for column in range(hpl.q))
    column = (row * hpl.q if by_row else row for row in range(hpl.p))
    return tuple(sorted({*row, *column}))


def rows_of(hpl: "Hpl", ranks: Sequence[int], steps: Sequence[int]) -> float:
    of_column = [0] * hpl.q
    for rank in ranks:
        of_column[rank % hpl.q if hpl.pmap == "row" else rank // hpl.p] += 1
    rounds = hpl.p.bit_length() - 1
    panel = hpl.nb * (9 + 3 * rounds)  # of each column: kernels, and three calls a round of the pivot exchange
    swap = 3 * (rounds if hpl.swap == "binary-exchange" else hpl.p + rounds)
    total = 0.0
    for step in steps:
        pieces = 1.0 + (hpl.n - step * hpl.nb) / (hpl.nb * hpl.q)  # of an update, with a probe after each
        total += of_column[step % hpl.q] * panel + len(ranks) * (10 + swap + 4 * pieces)
    return total


#: Of the measurements, but for the first two, which always take place; the share is of the prediction.
MIN_BUDGET_S, MAX_BUDGET_S, BUDGET_SHARE = 0.1, 2.0, 0.03
#: Of the first measurement, then twice as many: what the first two steps of a run differ by tells nothing, since most
#: ranks wait for the first panel (75,264 ranks: 0.2 us an event in the place of 0.7).
FIRST_STEPS = 2
MORE = 4  # times the steps of the measurement before


class Measure(Protocol):
    """Simulates a run of `small`, on cores like those of `whole`; returns the seconds of one core that it took.

    trial_steps : only so many of its steps, 0: all
    """

    def __call__(self, small: "Hpl", whole: "Hpl", trial_steps: int = 0) -> float: ...


def estimated_run_s(
    hpls: Sequence["Hpl"], runs: int, cores: int, measure: Measure, fidelity: str = "full"
) -> list[float] | None:
    """Seconds that one core takes for a run of each of `hpls`; None where all together are too short to matter.

    More and more steps of the largest are simulated until that has taken its share. An event costs what the longest two
    measurements differ by: at the start of a run, ranks are near to each other, and their events cost less.
    """
    events = [events_of_run(hpl, sampled=hpl.is_sampled(fidelity, traced=False)) for hpl in hpls]
    if sum(events) * ROUGH_EVENT_S * runs / cores < WORTH_MEASURING_S:
        return None
    heaviest = max(hpls, key=events_of)
    steps, spent_s, before, before_s = FIRST_STEPS, 0.0, 0.0, 0.0
    while True:
        simulated = simulated_steps(heaviest, trial_steps=steps)
        counted, took_s = events_of_steps(heaviest, simulated, solve=False), measure(heaviest, heaviest, steps)
        event_s = (took_s - before_s) / (counted - before) if took_s > before_s else took_s / counted
        start_s = max(0.0, took_s - counted * event_s)
        run_s = [start_s * hpl.ranks / heaviest.ranks + event_s * all_ for hpl, all_ in zip(hpls, events, strict=True)]
        spent_s += took_s
        share_s = BUDGET_SHARE * sum(run_s) * runs / cores
        more = steps * (MORE if steps > FIRST_STEPS else 2)
        is_spent = spent_s + took_s * more / steps > min(MAX_BUDGET_S, max(MIN_BUDGET_S, share_s))
        if len(simulated) == heaviest.steps or (steps > FIRST_STEPS and is_spent):
            return run_s
        steps, before, before_s = more, counted, took_s

"""How long a prediction of HPL will take, estimated before it starts.

The engine's time goes into the pivot exchanges of the panels, which it takes column by column, and into everything that
a rank does once a step: row swaps, broadcasts, updates. Both are counted by formula; what one of each costs here is
measured in a few tiny simulations of the same kind, on this machine, now.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lepaute.simulate import estimate

if TYPE_CHECKING:
    from lepaute.simulate.apps.hpl.parameters import Hpl

#: Of the measurements; the share is of the prediction, if it were simulated in full.
LEAST_BUDGET_S, MOST_BUDGET_S, BUDGET_SHARE = 0.1, 2.0, 0.03
PIVOT_S = 0.01  # for the cost of a pivot message, about
MOST_GROWTH = 1.0  # of the exponent with which the cost of an event grows with the number of ranks
#: Beyond the ranks that were measured: an event costs 1.8 times as much with 4096 ranks as with 1024 (exascale-like,
#: N = 1,300,000, NB = 512), since the state of more ranks fits into no cache.
LEAST_GROWTH = 0.4
SMALLEST_GRID = 32  # ranks of the first measurement, about
MOST_NB = 128  # of the measurements: larger blocks mean more pivots and no more of anything else


class Work(NamedTuple):
    """Events of a run: messages of the pivot exchanges, and the other messages and turns of the ranks."""

    pivots: float
    others: float

    @property
    def events(self) -> float:
        return self.pivots + self.others


class EventCosts(NamedTuple):
    """Seconds an event of each kind costs; that of others is for `ranks` ranks and grows as ranks ** growth.

    Beyond `ranks` it grows by LEAST_GROWTH at least.
    """

    pivot_s: float
    other_s: float
    ranks: int
    growth: float = 0.0

    def run_s(self, hpl: "Hpl") -> float:
        """Seconds that one core takes to simulate one run."""
        work = work_of(hpl)
        growth = max(self.growth, LEAST_GROWTH) if hpl.ranks > self.ranks else self.growth
        other_s = self.other_s * math.pow(hpl.ranks / self.ranks, growth)
        return work.pivots * self.pivot_s + work.others * other_s


def exchange_messages(ranks: int) -> int:
    """Messages of one exchange of all with all: ip2 log2 ip2, and 3 for each rank beyond a power of 2."""
    rounds = ranks.bit_length() - 1
    return (rounds << rounds) + 3 * (ranks - (1 << rounds))


def turns_of(hpl: "Hpl") -> float:
    return float(hpl.steps * hpl.ranks)


def work_of(hpl: "Hpl") -> Work:
    """The events of one run, by formula.

    Each step has NB exchanges for pivots, a swap in each process column that still has columns, and a broadcast in each
    process row; within 3 % of the engine's own count of messages.
    """
    steps, p, q = hpl.steps, hpl.p, hpl.q
    exchange, spread_roll = exchange_messages(p), (p - 1) * (p + 1)
    # A mixed swap takes binary exchange in the last steps, in which no more than the threshold's columns are left.
    last = {"binary-exchange": steps, "spread-roll": 0, "mix": min(steps, hpl.threshold * q // hpl.nb)}[hpl.swap]
    swaps = (swapping(steps, q) - swapping(last, q)) * spread_roll + swapping(last, q) * exchange
    if hpl.depth:  # the next panel is swapped on its own
        rolled = hpl.swap == "spread-roll" or (hpl.swap == "mix" and hpl.threshold < hpl.nb)
        swaps += steps * (spread_roll if rolled else exchange)
    a_row = {"long": (q - 1) * (q + 1), "long-modified": (q - 1) * (q - 1)}.get(hpl.bcast, q - 1)
    solve = steps * (p - 1 + min(1, q - 1))
    others = swaps + steps * p * a_row + solve + turns_of(hpl)
    return Work(pivots=float(hpl.n * exchange), others=float(others))


def sampled_steps(hpl: "Hpl") -> int:
    """Steps that a sampled run simulates; all where that would not save half (core/apps/hpl/sampling.cpp)."""
    from lepaute import _core

    return _core.hpl_simulated_steps(hpl.core_parameters(sampled=True))


def swapping(last: int, q: int) -> float:
    """Process columns that still have columns to swap, summed over the `last` steps of a run."""
    full = max(0, last - q)
    rest = last - full
    return full * q + rest * (rest + 1) / 2


def estimated_run_s(
    hpls: Sequence["Hpl"], runs: int, cores: int, measure: Callable[["Hpl", "Hpl"], float]
) -> list[float] | None:
    """Seconds that one core takes for a run of each of `hpls`; None where all together are too short to matter.

    measure : simulates a run of a smaller problem in the place of a given one, returns the seconds of one core it took
    """

    def total_s(costs: EventCosts) -> float:
        return sum(costs.run_s(hpl) for hpl in hpls) * runs / cores

    if total_s(EventCosts(estimate.ROUGH_EVENT_S, estimate.ROUGH_EVENT_S, 1)) < estimate.WORTH_MEASURING_S:
        return None
    heaviest = max(hpls, key=lambda hpl: work_of(hpl).events)
    costs = measured_costs(
        heaviest,
        lambda small: measure(small, heaviest),
        lambda costs: min(MOST_BUDGET_S, max(LEAST_BUDGET_S, BUDGET_SHARE * total_s(costs))),
    )
    return [costs.run_s(hpl) for hpl in hpls]


def measured_costs(
    hpl: "Hpl", measure: Callable[["Hpl"], float], budget_s: Callable[[EventCosts], float]
) -> EventCosts:
    """What events cost in runs like `hpl`: measured on one process column, then on ever larger grids of its shape.

    The grids end with that of `hpl`, or before the one whose measurement would exceed what is left of the budget, which
    depends on the costs known so far. The cost then is taken to go on growing as between the last two grids.
    """
    nb = min(hpl.nb, MOST_NB)
    column = replace(hpl, nb=nb, q=1, n=nb)
    measure(column)  # the first run of a process is slow
    pivot_s = 0.0
    if hpl.p > 1:
        columns = int(PIVOT_S / estimate.ROUGH_EVENT_S / exchange_messages(hpl.p))
        column = replace(column, n=max(8, min(4 * nb, columns)))
        pivot_s = measure(column) / work_of(column).events
    spent_s = 0.0
    costs = EventCosts(pivot_s, 10.0 * estimate.ROUGH_EVENT_S, 1)
    for rung, small in enumerate(ladder(hpl, nb)):
        work = work_of(small)
        if rung > 0 and spent_s + costs.run_s(small) > budget_s(costs):
            break
        took_s = measure(small)
        spent_s += took_s
        other_s = max(took_s - work.pivots * pivot_s, 0.1 * took_s) / work.others
        growth = 0.0
        if rung > 0:
            growth = math.log(other_s / costs.other_s) / math.log(small.ranks / costs.ranks)
        costs = EventCosts(pivot_s, other_s, small.ranks, min(MOST_GROWTH, max(0.0, growth)))
    return costs


def ladder(hpl: "Hpl", nb: int) -> list["Hpl"]:
    """Problems on grids of the shape of that of `hpl`, from some ranks to all of them, with work for each rank."""
    grids = [(hpl.p, hpl.q)]
    while (p := grids[-1][0]) * (q := grids[-1][1]) > SMALLEST_GRID:
        grids.append((max(1, p // 2), max(1, q // 2)))
    return [replace(hpl, nb=nb, p=p, q=q, n=min(hpl.n, 2 * nb * max(p, q, 8))) for p, q in reversed(grids)]

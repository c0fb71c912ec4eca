"""What simulating a run of HPL consists of, step by step, and how long it will take, estimated before it starts.

The engine's time goes into the pivot exchanges of the panels, which it takes column by column, and into everything that
a rank does once a step: row swaps, broadcasts, updates. Both are counted by formula. What one of each costs is measured
here and now: some steps of the very run are simulated, on all its ranks, since an event costs the more the less of the
state of all ranks fits into the caches.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lepaute.simulate.tasks import ROUGH_EVENT_S, WORTH_MEASURING_S

if TYPE_CHECKING:
    from lepaute.simulate.apps.hpl.parameters import Hpl

#: What a message of the pivot exchanges costs, relative to other events, about.
PIVOT_WEIGHT = 0.05


class Work(NamedTuple):
    """Events of a run: messages of the pivot exchanges, and the other messages and turns of the ranks."""

    pivots: float
    others: float

    @property
    def events(self) -> float:
        return self.pivots + self.others

    @property
    def weight(self) -> float:
        """In units of what an event costs that is no pivot message."""
        return PIVOT_WEIGHT * self.pivots + self.others


def exchange_messages(ranks: int) -> int:
    """Messages of one exchange of all with all: ip2 log2 ip2, and 3 for each rank beyond a power of 2."""
    rounds = ranks.bit_length() - 1
    return (rounds << rounds) + 3 * (ranks - (1 << rounds))


def swapping(last: int, q: int) -> float:
    """Process columns that still have columns to swap, summed over the `last` steps of a run."""
    full = max(0, last - q)
    rest = last - full
    return full * q + rest * (rest + 1) / 2


def work_of(hpl: "Hpl") -> Work:
    """The events of one run, by formula.

    Each step has NB exchanges for pivots, a swap in each process column that still has columns, and a broadcast in each
    process row; within 3 % of the engine's own count of messages.
    """
    steps, q = hpl.steps, hpl.q
    last = last_exchanging(hpl)
    swaps = (swapping(steps, q) - swapping(last, q)) * spread_roll_messages(hpl.p)
    swaps += swapping(last, q) * exchange_messages(hpl.p)
    others = swaps + steps * each_step(hpl) + solve_messages(hpl)
    return Work(pivots=float(hpl.n * exchange_messages(hpl.p)), others=float(others))


def work_of_steps(hpl: "Hpl", steps: Sequence[int], *, solve: bool) -> Work:
    """The events of some steps of a run, and of the triangular solve."""
    works = [work_of_step(hpl, step) for step in steps]
    others = sum(work.others for work in works) + (solve_messages(hpl) if solve else 0.0)
    return Work(sum(work.pivots for work in works), others)


def work_of_step(hpl: "Hpl", step: int) -> Work:
    """The events of one step."""
    left = hpl.steps - step  # steps, this one counted
    exchange = exchange_messages(hpl.p)
    swap = exchange if left <= last_exchanging(hpl) else spread_roll_messages(hpl.p)
    width = min(hpl.nb, hpl.n - step * hpl.nb)
    return Work(float(width * exchange), float(min(left, hpl.q) * swap + each_step(hpl)))


def last_exchanging(hpl: "Hpl") -> int:
    """Steps at the end of the run whose swaps are binary exchanges: the mixed swap has no more columns there."""
    mixed = min(hpl.steps, hpl.threshold * hpl.q // hpl.nb)
    return {"binary-exchange": hpl.steps, "spread-roll": 0, "mix": mixed}[hpl.swap]


def spread_roll_messages(p: int) -> int:
    return (p - 1) * (p + 1)


def each_step(hpl: "Hpl") -> float:
    """Events that every step has: broadcast, turns of the ranks, and with look-ahead the swap of the next panel."""
    p, q = hpl.p, hpl.q
    a_row = {"long": (q - 1) * (q + 1), "long-modified": (q - 1) * (q - 1)}.get(hpl.bcast, q - 1)
    ahead = 0
    if hpl.depth:
        rolled = hpl.swap == "spread-roll" or (hpl.swap == "mix" and hpl.threshold < hpl.nb)
        ahead = spread_roll_messages(p) if rolled else exchange_messages(p)
    return float(p * a_row + hpl.ranks + ahead)


def solve_messages(hpl: "Hpl") -> float:
    return float(hpl.steps * (hpl.p - 1 + min(1, hpl.q - 1)))


def simulated_steps(hpl: "Hpl", *, sampled: bool = False, trial_steps: int = 0, further: bool = False) -> list[int]:
    """The steps that the core simulates; further: with the windows that it goes back for where it is uncertain."""
    from lepaute import _core

    parameters = hpl.core_parameters(sampled=sampled, trial_steps=trial_steps)
    steps: list[int] = _core.hpl_simulated_steps(parameters, further)
    return steps


def work_of_run(hpl: "Hpl", *, sampled: bool) -> Work:
    """The events of one run, sampled or in full.

    Whether a sampled run goes back for further windows is not known beforehand: half-way, by the ratio.
    """
    if not sampled:
        return work_of(hpl)
    least, most = (
        work_of_steps(hpl, simulated_steps(hpl, sampled=True, further=further), solve=True) for further in (False, True)
    )
    return Work(sqrt(least.pivots * most.pivots), sqrt(least.others * most.others))


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
    """The weight of all steps before each of the simulated ones, and of all."""
    steps = simulated_steps(hpl, sampled=sampled, further=True)
    return list(accumulate((work_of_step(hpl, step).weight for step in steps), initial=0.0))


def edge_ranks(hpl: "Hpl") -> tuple[int, ...]:
    """The ranks of the first process row and of the first process column."""
    by_row = hpl.pmap == "row"
    row = (column if by_row else column * hpl.p for column in range(hpl.q))
    column = (row * hpl.q if by_row else row for row in range(hpl.p))
    return tuple(sorted({*row, *column}))


def rows_of(hpl: "Hpl", ranks: Sequence[int], steps: Sequence[int]) -> float:
    """Rows of a trace of these ranks and steps, about."""
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
LEAST_BUDGET_S, MOST_BUDGET_S, BUDGET_SHARE = 0.1, 2.0, 0.03
PIVOT_S = 0.01  # for the cost of a pivot message, about
MOST_COLUMNS = 512  # of a panel that is measured for it
#: Of the first measurement, then twice as many: what the first two steps of a run differ by tells nothing, since most
#: ranks wait for the first panel (75,264 ranks: 0.2 us an event in the place of 0.7).
FIRST_STEPS = 2
MORE = 4  # times the steps of the measurement before


class Measure(Protocol):
    """Simulates a run of `small`, on cores like those of `whole`; returns the seconds of one core that it took.

    trial_steps : only so many of its steps, 0: all
    """

    def __call__(self, small: "Hpl", whole: "Hpl", trial_steps: int = 0) -> float: ...


class EventCosts(NamedTuple):
    """Seconds an event of each kind costs, and those that a run of `ranks` ranks takes besides."""

    pivot_s: float
    other_s: float
    start_s: float = 0.0
    ranks: int = 1

    def run_s(self, hpl: "Hpl", *, sampled: bool = False) -> float:
        """Seconds that one core takes to simulate one run."""
        return self.start_s * hpl.ranks / self.ranks + self.work_s(work_of_run(hpl, sampled=sampled))

    def work_s(self, work: Work) -> float:
        return work.pivots * self.pivot_s + work.others * self.other_s


class Trial(NamedTuple):
    """Some steps of a run, and the seconds that they took, with the start of the run."""

    work: Work
    took_s: float


def estimated_run_s(
    hpls: Sequence["Hpl"], runs: int, cores: int, measure: Measure, fidelity: str = "full"
) -> list[float] | None:
    """Seconds that one core takes for a run of each of `hpls`; None where all together are too short to matter."""
    sampled = [hpl.is_sampled(fidelity, traced=False) for hpl in hpls]

    def each_s(costs: EventCosts) -> list[float]:
        return [costs.run_s(hpl, sampled=its) for hpl, its in zip(hpls, sampled, strict=True)]

    def total_s(costs: EventCosts) -> float:
        return sum(each_s(costs)) * runs / cores

    if total_s(EventCosts(ROUGH_EVENT_S, ROUGH_EVENT_S)) < WORTH_MEASURING_S:
        return None
    heaviest = max(hpls, key=lambda hpl: work_of(hpl).events)

    def budget_s(costs: EventCosts) -> float:
        return min(MOST_BUDGET_S, max(LEAST_BUDGET_S, BUDGET_SHARE * total_s(costs)))

    return each_s(measured_costs(heaviest, measure, budget_s))


def measured_costs(hpl: "Hpl", measure: Measure, budget_s: Callable[[EventCosts], float]) -> EventCosts:
    """What events cost in runs like `hpl`, from more and more of its steps until the budget is spent.

    The budget depends on the costs known so far. An event costs what the longest two trials differ by: at the start of
    a run, ranks are near to each other, and their events cost less.
    """
    pivot_s = measured_pivot_s(hpl, measure)
    steps, spent_s = FIRST_STEPS, 0.0
    costs: EventCosts | None = None
    before = Trial(Work(0.0, 0.0), 0.0)
    while True:
        simulated = simulated_steps(hpl, trial_steps=steps)
        trial = Trial(work_of_steps(hpl, simulated, solve=False), measure(hpl, hpl, steps))
        costs = costs_of(hpl, pivot_s, before, trial)
        spent_s += trial.took_s
        if len(simulated) == hpl.steps:
            return costs
        more = steps * (MORE if steps > FIRST_STEPS else 2)
        if steps > FIRST_STEPS and spent_s + trial.took_s * more / steps > budget_s(costs):
            return costs
        steps, before = more, trial


def measured_pivot_s(hpl: "Hpl", measure: Measure) -> float:
    """Seconds for each pivot message, with the kernels of the panel: what two panels of a process column differ by."""
    if hpl.p == 1:
        return 0.0
    columns = max(8, min(MOST_COLUMNS, int(PIVOT_S / ROUGH_EVENT_S / exchange_messages(hpl.p))))
    narrow = replace(hpl, nb=2 * columns, q=1, n=columns)
    wide = replace(narrow, n=2 * columns)
    measure(narrow, hpl)  # the first run of a process is slow
    more_s = measure(wide, hpl) - measure(narrow, hpl)
    return max(0.0, more_s) / (work_of(wide).pivots - work_of(narrow).pivots)


def costs_of(hpl: "Hpl", pivot_s: float, before: Trial, trial: Trial) -> EventCosts:
    """The costs that two trials tell, the second of more steps; `before` may be of none."""

    def other_s(work: Work, took_s: float) -> float:
        return max(took_s - work.pivots * pivot_s, 0.1 * took_s) / work.others

    more = Work(trial.work.pivots - before.work.pivots, trial.work.others - before.work.others)
    took_s = trial.took_s - before.took_s
    costs = EventCosts(pivot_s, other_s(*(more, took_s) if took_s > 0.0 else trial), ranks=hpl.ranks)
    return costs._replace(start_s=max(0.0, trial.took_s - costs.work_s(trial.work)))

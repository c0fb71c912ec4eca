"""How long a prediction of HPL will take, estimated before it starts.

The engine's time goes into the pivot exchanges of the panels, which it takes column by column, and into everything that
a rank does once a step: row swaps, broadcasts, updates. Both are counted by formula (work.py). What one of each costs
is measured here and now: some steps of the very run are simulated, on all its ranks, since an event costs the more the
less of the state of all ranks fits into the caches.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lepaute.simulate import estimate
from lepaute.simulate.apps.hpl.work import Work, exchange_messages, simulated_steps, work_of, work_of_run, work_of_steps

if TYPE_CHECKING:
    from lepaute.simulate.apps.hpl.parameters import Hpl

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

    if total_s(EventCosts(estimate.ROUGH_EVENT_S, estimate.ROUGH_EVENT_S)) < estimate.WORTH_MEASURING_S:
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
    columns = max(8, min(MOST_COLUMNS, int(PIVOT_S / estimate.ROUGH_EVENT_S / exchange_messages(hpl.p))))
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

"""How HPL behaves, by the core's program or by its own code, and how long simulating it takes.

The engine's time goes into the pivot exchanges of the panels, which it takes column by column, and into everything that
a rank does once a step: row swaps, broadcasts, updates. Both are counted by formula. What an event costs is measured
here and now: some steps of the very run are simulated, on all its ranks, since an event costs the more the less of the
state of all ranks fits into the caches.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.later import later
from lepaute.simulate.apps.hpl.parameters import Hpl
from lepaute.simulate.behaviour import Behaviour, Kernels
from lepaute.simulate.tasks import ROUGH_EVENT_S, WORTH_MEASURING_S

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate.apps.hpl import emulation
    from lepaute.simulate.smpi.emulate import Options
else:
    emulation, _core = later("lepaute.simulate.apps.hpl.emulation"), later("lepaute._core")

#: Steps x ranks up to which fidelity `auto` simulates every step.
FULL_BELOW = 8_000_000
#: Budget of the measurements, but for the first two, which always take place; the share is of the prediction.
_MIN_BUDGET_S, _MAX_BUDGET_S, _BUDGET_SHARE = 0.1, 2.0, 0.03
#: Of the first measurement, then twice as many: what the first two steps of a run differ by tells nothing, since most
#: ranks wait for the first panel (75,264 ranks: 0.2 us an event in the place of 0.7).
_FIRST_STEPS = 2
_MORE = 4  # times the steps of the measurement before
#: What a message of the pivot exchanges costs, relative to other events, about.
_PIVOT_WEIGHT = 0.05


class HplBehaviour(Behaviour):
    application: Hpl

    @property
    def events(self) -> float:
        return events_of(self.application)

    @property
    def kernels(self) -> Kernels:
        """With look-ahead, it computes between probes, unless nobody probes for the panel."""
        hpl = self.application
        return Kernels(probing=hpl.depth > 0 and hpl.q > 1 and not broadcast(hpl.bcast, hpl.q)[1])

    @property
    def draws(self) -> frozenset[str]:
        return frozenset({"pivots"} if self.application.pivots == "random" and self.application.p > 1 else ())

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        parameters = super().core_parameters()
        parameters.sampled, parameters.trial_steps = sampled, trial_steps
        return parameters

    def emulation(self, seed: int) -> "tuple[Path | None, Sequence[str], Options]":
        return None, emulation.arguments_of(self.application, seed), emulation.hpl_options()

    def is_sampled(self, fidelity: str, *, traced: bool = False) -> bool:
        """Where it is long; a traced run in full unless sampling is asked for."""
        if fidelity == "auto":
            return not traced and self.application.steps * self.application.ranks > FULL_BELOW
        return fidelity == "sampled"

    def simulated_share(self, fidelity: str) -> float:
        if not self.is_sampled(fidelity):
            return 1.0
        return len(simulated_steps(self.application, sampled=True)) / self.application.steps

    def share_done(self, begun_steps: int, *, sampled: bool) -> float:
        """With the further windows of a sampled run: without them it ends earlier."""
        behind = _work_behind(self.application, sampled)
        begun = begun_steps / self.application.ranks
        at = min(max(0.0, begun - 0.5), len(behind) - 1.5)  # a step that has begun is half done, on average
        whole = int(at)
        work = behind[whole] + (at - whole) * (behind[whole + 1] - behind[whole])
        return min(1.0, work / (behind[-1] + _solve_messages(self.application)))

    def trace_ranks(self) -> tuple[int, ...]:
        """The ranks of the first process row and of the first process column."""
        hpl, by_row = self.application, self.application.pmap == "row"
        row = (column if by_row else column * hpl.p for column in range(hpl.q))
        column = (row * hpl.q if by_row else row for row in range(hpl.p))
        return tuple(sorted({*row, *column}))

    def trace_rows(self, ranks: Sequence[int], steps: Sequence[int]) -> float:
        hpl = self.application
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

    def estimated_run_s(
        self, applications: Sequence[Hpl], runs: int, cores: int, measure: Callable[..., float], fidelity: str
    ) -> list[float] | None:
        """More and more steps of the largest are simulated until that has taken its share.

        An event costs what the longest two measurements differ by: at the start, ranks are near and events cost less.
        """
        events = [events_of_run(hpl, sampled=hpl.on().is_sampled(fidelity)) for hpl in applications]
        if sum(events) * ROUGH_EVENT_S * runs / cores < WORTH_MEASURING_S:
            return None
        heaviest = max(applications, key=events_of)
        steps, spent_s, before, before_s = _FIRST_STEPS, 0.0, 0.0, 0.0
        while True:
            simulated = simulated_steps(heaviest, trial_steps=steps)
            counted, took_s = events_of_steps(heaviest, simulated, solve=False), measure(heaviest, steps)
            event_s = (took_s - before_s) / (counted - before) if took_s > before_s else took_s / counted
            start_s = max(0.0, took_s - counted * event_s)
            run_s = [
                start_s * hpl.ranks / heaviest.ranks + event_s * all_
                for hpl, all_ in zip(applications, events, strict=True)
            ]
            spent_s += took_s
            share_s = _BUDGET_SHARE * sum(run_s) * runs / cores
            more = steps * (_MORE if steps > _FIRST_STEPS else 2)
            is_spent = spent_s + took_s * more / steps > min(_MAX_BUDGET_S, max(_MIN_BUDGET_S, share_s))
            if len(simulated) == heaviest.steps or (steps > _FIRST_STEPS and is_spent):
                return run_s
            steps, before, before_s = more, counted, took_s


def exchange_messages(ranks: int) -> int:
    """Messages of one exchange of all with all: ip2 log2 ip2, and 3 for each rank beyond a power of 2."""
    rounds = ranks.bit_length() - 1
    return (rounds << rounds) + 3 * (ranks - (1 << rounds))


def _swapping(last: int, q: int) -> float:
    """Process columns that still have columns to swap, summed over the `last` steps of a run."""
    full = max(0, last - q)
    rest = last - full
    return full * q + rest * (rest + 1) / 2


def events_of(hpl: Hpl) -> float:
    """Messages and turns of the ranks of one run, by formula.

    Each step has NB exchanges for pivots, a swap in each process column that still has columns, and a broadcast in each
    process row; within 3 % of the engine's own count of messages.
    """
    steps, q = hpl.steps, hpl.q
    last = _last_exchanging(hpl)
    swaps = (_swapping(steps, q) - _swapping(last, q)) * _spread_roll_messages(hpl.p)
    swaps += _swapping(last, q) * exchange_messages(hpl.p)
    return swaps + steps * _each_step(hpl) + _solve_messages(hpl) + hpl.n * exchange_messages(hpl.p)


def events_of_steps(hpl: Hpl, steps: Sequence[int], *, solve: bool) -> float:
    """The events of some steps of a run, and of the triangular solve."""
    return sum(_events_of_step(hpl, step) for step in steps) + (_solve_messages(hpl) if solve else 0.0)


def _events_of_step(hpl: Hpl, step: int, pivot_weight: float = 1.0) -> float:
    """The events of one step; each of the pivot exchanges counts as this many."""
    left = hpl.steps - step  # steps, this one counted
    exchange = exchange_messages(hpl.p)
    swap = exchange if left <= _last_exchanging(hpl) else _spread_roll_messages(hpl.p)
    return pivot_weight * min(hpl.nb, hpl.n - step * hpl.nb) * exchange + min(left, hpl.q) * swap + _each_step(hpl)


def _last_exchanging(hpl: Hpl) -> int:
    """Steps at the end of the run whose swaps are binary exchanges: the mixed swap has no more columns there."""
    mixed = min(hpl.steps, hpl.threshold * hpl.q // hpl.nb)
    return {"binary-exchange": hpl.steps, "spread-roll": 0, "mix": mixed}[hpl.swap]


def _spread_roll_messages(p: int) -> int:
    return (p - 1) * (p + 1)


def _each_step(hpl: Hpl) -> float:
    """Events that every step has: broadcast, turns of the ranks, and with look-ahead the swap of the next panel."""
    p, q = hpl.p, hpl.q
    ahead = 0
    if hpl.depth:
        rolled = hpl.swap == "spread-roll" or (hpl.swap == "mix" and hpl.threshold < hpl.nb)
        ahead = _spread_roll_messages(p) if rolled else exchange_messages(p)
    return float(p * broadcast(hpl.bcast, q)[0] + hpl.ranks + ahead)


@lru_cache(maxsize=64)
def broadcast(word: str, q: int) -> tuple[int, bool]:
    """Messages of a broadcast along a row, and whether they are pieces of the panel, for which nobody probes."""
    return _core.hpl_broadcast(word, q)


def _solve_messages(hpl: Hpl) -> float:
    return float(hpl.steps * (hpl.p - 1 + min(1, hpl.q - 1)))


def simulated_steps(hpl: Hpl, *, sampled: bool = False, trial_steps: int = 0, further: bool = False) -> list[int]:
    """The steps that the core simulates; further: with the windows that it goes back for where it is uncertain."""
    parameters = hpl.on().core_parameters(sampled=sampled, trial_steps=trial_steps)
    steps: list[int] = _core.hpl_simulated_steps(parameters, further)
    return steps


def events_of_run(hpl: Hpl, *, sampled: bool) -> float:
    """The events of one run, sampled or in full.

    Whether a sampled run goes back for further windows is not known beforehand: half-way, by the ratio.
    """
    if not sampled:
        return events_of(hpl)
    steps = (simulated_steps(hpl, sampled=True, further=further) for further in (False, True))
    return sqrt(prod(events_of_steps(hpl, windows, solve=True) for windows in steps))


@lru_cache(maxsize=64)
def _work_behind(hpl: Hpl, sampled: bool) -> list[float]:
    """The events of all steps before each of the simulated ones, and of all."""
    steps = simulated_steps(hpl, sampled=sampled, further=True)
    return list(accumulate((_events_of_step(hpl, step, _PIVOT_WEIGHT) for step in steps), initial=0.0))

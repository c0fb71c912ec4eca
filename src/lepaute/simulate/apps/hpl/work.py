"""What simulating a run of HPL consists of, step by step: messages of the pivot exchanges, and everything else."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

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

"""Many tests at once: which are significant, and how wide intervals of these have to be.

Which streams are said to have changed, a batch of evidence a day, so that few of the alarms are false.

The rule is e-LOND (Xu & Ramdas, Online multiple testing with e-values, AISTATS 2024) with a batch a day, in the manner
of e-BH (Wang & Ramdas, Journal of the Royal Statistical Society B 84, 2022): hypothesis i, "stream i did not change
since its last event", gets the share gamma(i) of the level alpha when it is first seen, and is rejected on the day when

    E(i) >= 1 / (alpha gamma(i) (R + k)),

R the alarms of earlier days and k those of this day, the largest number for which this holds for k streams. A rejection
counts for no more than alpha gamma(i) E(i) divided by the alarms there are in the end, so the expected share of false
alarms is at most alpha times the sum of gamma, in any dependence, as long as the mean of E at an alarm is at most 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from math import fsum

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from lepaute.errors import InputError
from lepaute.stats.robust import robust_sd, row_medians
from lepaute.stats.student import SD_OF_MAD

Floats = npt.NDArray[np.float64]

#: The promised expected share of false alarms among alarms, over the whole life of a watch.
LEVEL = 0.05
#: Fewer values say nothing of their spread by themselves: it is taken for this, worth this many values.
MIN_SPREAD, USUAL_SPREAD, PRIOR_WEIGHT = 8, 0.03, 4
_SIMULATED = 20_000


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values corrected for their number, in the same order: Holm, Scandinavian Journal of Statistics 6 (1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [1.0] * len(p_values)
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - position) * p_values[index]))
        corrected[index] = highest
    return tuple(corrected)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number m, in the same order: min over j >= i of p(j) m / j.

    Taking those of at most q for real makes the expected share of false ones among them at most q where the tests are
    independent or depend on each other positively, as rows that share their mpiruns do. Source: Benjamini & Hochberg,
    Journal of the Royal Statistical Society B 57 (1995); for the dependence Benjamini & Yekutieli (2001), theorem 1.2.
    Raises InputError for what is no probability.
    """
    return _stepped_up(p_values, 1.0)


def benjamini_yekutieli(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number m, in the same order: min over j >= i of p(j) m (1 + 1/2 + ... + 1/m) / j.

    Taking those of at most q for real makes the expected share of false ones among them at most q, under any dependence
    of the tests; where nothing is real, the chance of any. Source: Benjamini & Yekutieli, Annals of Statistics 29
    (2001), theorem 1.3. Raises InputError for what is no probability.
    """
    return _stepped_up(p_values, fsum(1 / i for i in range(1, len(p_values) + 1)))


def _stepped_up(p_values: Sequence[float], factor: float) -> tuple[float, ...]:
    if not all(0 <= p <= 1 for p in p_values):
        raise InputError("a p-value is not between 0 and 1")
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    raised = np.minimum(1.0, p[order] * factor * len(p) / np.arange(1, len(p) + 1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return tuple(corrected.tolist())


def selected_level(selected: int, count: int, level: float) -> float:
    """The level for what is said about each of the `selected` of `count` that a test at `level` chose.

    At this one, further tests in each of them, or intervals, are wrong for a share of at most `level` of the selected:
    level * selected / (count (1 + 1/2 + ... + 1/count)), under any dependence. Source: Benjamini & Bogomolov, Journal
    of the Royal Statistical Society B 76 (2014); for intervals Benjamini & Yekutieli, JASA 100 (2005).
    """
    return level * selected / (count * fsum(1 / i for i in range(1, count + 1))) if count else level


@dataclass(frozen=True, slots=True)
class Alarm:
    """`evidence` E and the smallest evidence that would have been enough on that day."""

    stream: str
    day: str
    evidence: float
    enough: float


@dataclass(slots=True)
class OnlineFdr:
    """The hypotheses so far in the order in which they appeared, and the verdicts, which never change.

    first_batch : hypotheses of the first day; half of the level is theirs, the rest is for those that come later
    last_day    : ISO date of the last batch, "" before the first
    """

    level: float = LEVEL
    first_batch: int = 0
    last_day: str = ""
    order: dict[str, int] = field(default_factory=dict)
    alarms: dict[str, Alarm] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"the level of false discoveries is {self.level!r}; it must lie between 0 and 1")

    def alarms_of_day(self, day: str, evidence: Mapping[str, float]) -> list[Alarm]:
        """The alarms of this day, by name of the stream. A day that was judged gives what it gave.

        day      : ISO date; evidence : E of each stream that has a value on it, by a name that also says since which
        event: after an event it is another hypothesis
        What comes in for a day up to the last one judged changes no verdict; it counts in the evidence of later days.
        Raises InputError for evidence that is none, and for a day that is no ISO date.
        """
        try:
            day = date.fromisoformat(day).isoformat()
        except ValueError as error:
            raise InputError(f"{day!r} is no date; give it as 2026-11-23") from error
        for name, value in evidence.items():
            if not value >= 0:
                raise InputError(f"the evidence of {name} on {day} is {value!r}; it must be a number >= 0")
        if day <= self.last_day:
            return [alarm for _, alarm in sorted(self.alarms.items()) if alarm.day == day]
        for name in sorted(evidence.keys() - self.order.keys()):
            self.order[name] = len(self.order)
        if not self.first_batch:
            self.first_batch = len(self.order)
        self.last_day = day
        found = self._rejected({name: e for name, e in evidence.items() if name not in self.alarms})
        enough = len(self.alarms) + len(found)
        new = [Alarm(name, day, evidence[name], 1 / (self.share(name) * enough)) for name in sorted(found)]
        self.alarms.update({alarm.stream: alarm for alarm in new})
        return new

    def share(self, stream: str) -> float:
        """alpha gamma of a hypothesis: 1 / (2 K) of alpha for the K of the first day, K / (2 i (i + 1)) afterwards."""
        i, first = self.order[stream], self.first_batch
        return self.level * (1 / (2 * first) if i < first else first / (2 * i * (i + 1)))

    def _rejected(self, evidence: Mapping[str, float]) -> list[str]:
        before = len(self.alarms)
        if not evidence:
            return []
        # less is not enough even if all of these were alarms; no share is larger than that of the first day
        large = 0.999 * 2 * self.first_batch / (self.level * (before + len(evidence)))
        # alarms that a stream needs besides its own to be one
        needed = sorted((1 / (e * self.share(name)), name) for name, e in evidence.items() if e >= large)
        count = max((k for k, (need, _) in enumerate(needed, 1) if need <= before + k), default=0)
        return [name for _, name in needed[:count]]


def outlier_p_values(size: Floats, usual: float = USUAL_SPREAD) -> Floats:
    """Of each value, the chance that any of them is as far from the others if all are normal; shape (n,).

    Distances from the median of all, in median absolute deviations, are compared with simulated ones; a third of the
    values may be unlike the others. Of fewer than MIN_SPREAD each is compared with the others by Student's t, over
    their own spread, and over one moderated by the usual one (Smyth, Statistical Applications in Genetics and Molecular
    Biology 3, 2004), which tells more of very few, if it is no larger; twice the smaller of both chances counts.
    """
    if len(size) >= MIN_SPREAD:
        off = np.abs(size - np.median(size))
        if not (spread := robust_sd(off, 0.0)):
            return np.ones(len(size))
        largest = _largest_distances(len(size))
        return np.asarray((1 + len(largest) - np.searchsorted(largest, off / spread)) / (1 + len(largest)))
    chances = []
    for at in range(len(size)):
        others = np.delete(size, at)
        squares, chance = float(((others - others.mean()) ** 2).sum()), 1.0
        off = abs(size[at] - others.mean()) / np.sqrt(1 + 1 / len(others))
        for weight in (0, PRIOR_WEIGHT):
            degrees, variance = weight + len(size) - 2, weight * usual**2 + squares
            if degrees and variance:
                chance = min(chance, 2 * float(stdtr(degrees, -off / np.sqrt(variance / degrees))))
        chances.append(min(1.0, 2 * chance * len(size)))
    return np.array(chances)


@lru_cache(maxsize=64)
def _largest_distances(machines: int) -> Floats:
    """Of simulated groups of normal levels, the largest distance from the median in deviations, ascending."""
    rng = np.random.default_rng((20261123, machines))
    largest: list[Floats] = []
    at_once, tried = max(1, 200_000 // machines), max(2000, min(_SIMULATED, 4_000_000 // machines))
    for start in range(0, tried, at_once):
        x = rng.normal(size=(min(at_once, tried - start), machines))
        x = np.abs(x - row_medians(x)[:, None])
        largest.append(x.max(axis=1) / (SD_OF_MAD * row_medians(x)))
    return np.sort(np.concatenate(largest))

"""Control variates: what is known of many draws without simulating them takes the luck out of the few that are.

The logarithm x of what a run takes is nearly linear in some controls c of its draws (how many times as long its
computing and its messages take under them), x = a + b'c + e, and the distribution of c is known from many further
draws, which cost next to nothing. So b comes from the simulated runs, the part b'c of the spread from all draws, and
the runs have to tell the spread of e alone.
Source: Lavenberg & Welch, Management Science 27 (1981), sections 2 and 3; here for a further run, not the mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from lepaute.stats.student import NORMAL_975

#: A control that spreads less, or whose runs do so once the earlier controls are taken out, tells nothing.
MIN_SD, MIN_SHARE = 1e-4, 1e-3
#: F statistic (1 and R - 2 - earlier degrees of freedom) from which on a control counts: one in 30 would by chance.
MIN_F = 6.0
#: Degrees of freedom that are left for e: below, Student's quantile costs more than a control saves.
MIN_FREEDOM = 6
#: Fewer runs have no controls.
MIN_CONTROLLED = MIN_FREEDOM + 2

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Controls:
    """runs: the controls of each simulated run, logarithms; draws: of further draws from the same distribution."""

    runs: Rows
    draws: Rows

    def first(self, count: int) -> "Controls":
        """Of the first `count` runs."""
        return self if count >= len(self.runs) else Controls(self.runs[:count], self.draws)

    def minus(self, other: "Controls") -> "Controls":
        """Those of the ratio of two values that were simulated with the same seeds: the differences, and the first one
        of `other`, to which the two may react differently."""
        runs, draws = (
            tuple((*(x - y for x, y in zip(one, two, strict=True)), *two[:1]) for one, two in zip(*both, strict=True))
            for both in ((self.runs, other.runs), (self.draws, other.draws))
        )
        return Controls(runs, draws)

    def shifted(self) -> "Controls":
        """Each run and draw with the controls of the next one: nothing in common with those of the same number."""
        return Controls((*self.runs[1:], *self.runs[:1]), (*self.draws[1:], *self.draws[:1]))


def controls_of_ratio(reference: Controls | None, other: Controls | None, *, shared: bool = True) -> Controls | None:
    """Of value / value of the reference, run by run; None unless both have controls.

    shared : whether a run of both sees the same errors; else that of the reference is divided by the next one
    """
    if reference is None or other is None:
        return None
    return (other if shared else other.shifted()).minus(reference)


def controls_of_mean(all_controls: Sequence[Controls | None]) -> Controls | None:
    """Of the geometric mean, run by run, of values with these controls; None unless all have some."""
    known = [controls for controls in all_controls if controls is not None]
    if not known or len(known) < len(all_controls):
        return None
    runs, draws = (
        tuple(
            tuple(fsum(column) / len(of_one) for column in zip(*of_one, strict=True))
            for of_one in zip(*of_all, strict=True)
        )
        for of_all in ([each.runs for each in known], [each.draws for each in known])
    )
    return Controls(runs, draws)


@dataclass(frozen=True, slots=True)
class Adjusted:
    """What is left of the runs, and what their controls explain.

    logs      : of the runs as if the controls of each were at their mean
    below, above : how far the 2.5 % and 97.5 % quantiles of what the controls explain are from its mean, >= 0
    estimated : coefficients that the runs had to tell
    widening  : variance of the estimated mean and coefficients, in variances of e: 1/R without controls
    explained : at each of the draws, about its mean; empty without controls
    """

    logs: list[float]
    below: float
    above: float
    estimated: int
    widening: float
    explained: tuple[float, ...] = ()

    @property
    def variance(self) -> float:
        """Of what the controls explain: that of the normal distribution with these quantiles."""
        sd = (self.below + self.above) / (2.0 * NORMAL_975)
        return sd * sd


def adjusted(logs: Sequence[float], controls: Controls | None) -> Adjusted:
    """The logarithms of R >= 2 runs and their controls, the most important one first."""
    count = len(logs)
    left, widening = list(logs), 1.0 / count
    directions: list[_Direction] = []
    explained = [0.0] * (len(controls.draws) if controls else 0)
    for number in range(len(controls.runs[0]) if controls else 0):
        assert controls is not None
        if count - 2 - len(directions) < MIN_FREEDOM:
            break
        runs = [row[number] for row in controls.runs]
        draws = [row[number] for row in controls.draws]
        direction = _Direction.of(runs, draws, directions)
        if direction is None:
            continue
        b = fsum(u * log for u, log in zip(direction.runs, logs, strict=True)) / direction.square
        rest = [e - b * (u - direction.offset) for e, u in zip(left, direction.runs, strict=True)]
        freedom = count - 2 - len(directions)
        if b * b * direction.square <= MIN_F * _square(rest) / freedom:
            continue
        directions.append(direction)
        left = rest
        explained = [sum_ + b * u for sum_, u in zip(explained, direction.draws, strict=True)]
        of_draws = fsum(u * u for u in direction.draws) / len(draws)
        widening += (direction.offset * direction.offset + of_draws) / direction.square
    below, above = _reach(sorted(explained)) if directions else (0.0, 0.0)
    return Adjusted(left, below, above, len(directions), widening, tuple(explained) if directions else ())


@dataclass(frozen=True, slots=True)
class _Direction:
    """A control without what the earlier ones have in common with it among the runs (Gram and Schmidt).

    runs, draws : about the mean of either;  square : of the runs, summed
    offset : of the mean of the draws from that of the runs
    """

    runs: list[float]
    draws: list[float]
    offset: float
    square: float

    @classmethod
    def of(cls, runs: Sequence[float], draws: Sequence[float], earlier: "Sequence[_Direction]") -> "_Direction | None":
        """None for a control that tells nothing."""
        mean, mean_of_draws = fsum(runs) / len(runs), fsum(draws) / len(draws)
        u, v, offset = [x - mean for x in runs], [x - mean_of_draws for x in draws], mean_of_draws - mean
        whole = fsum(x * x for x in u)
        if fsum(x * x for x in v) < MIN_SD * MIN_SD * len(v):
            return None
        for each in earlier:
            share = fsum(x * y for x, y in zip(u, each.runs, strict=True)) / each.square
            u = [x - share * y for x, y in zip(u, each.runs, strict=True)]
            v = [x - share * y for x, y in zip(v, each.draws, strict=True)]
            offset -= share * each.offset
        square = fsum(x * x for x in u)
        return cls(u, v, offset, square) if square > MIN_SHARE * whole > 0.0 else None


def _square(values: Sequence[float]) -> float:
    """The sum of the squared distances from the mean."""
    mean = fsum(values) / len(values)
    return fsum((x - mean) * (x - mean) for x in values)


def _reach(ordered: Sequence[float]) -> tuple[float, float]:
    """Distances of the 2.5 % and 97.5 % quantiles from the mean 0."""
    count = len(ordered)
    low, high = ordered[int(0.025 * count)], ordered[count - 1 - int(0.025 * count)]
    return max(0.0, -low), max(0.0, high)

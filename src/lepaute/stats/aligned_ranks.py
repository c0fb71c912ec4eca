"""Two samples in blocks: the Wilcoxon-Mann-Whitney test of aligned ranks, exact, and the Hodges-Lehmann shift.

What all values of a block have in common (a disturbance, a drift of the machine) is taken off as the block's median;
then all values are ranked together, and the sum of the ranks of one sample is compared with what the labels would give
if they were exchanged within blocks (Hodges & Lehmann, Annals of Mathematical Statistics 33, 1962: aligned ranks).
Where there is one block this is the test of Wilcoxon (1945) and of Mann and Whitney (1947); where each block has one
value of either sample it is nearly that of Wilcoxon's signed ranks (a pair counts r - 1/2 where that counts r). The
distribution is exact where the labels within blocks were drawn at random; ties get mean ranks and stay exact.

The interval of the shift holds all shifts that the two-sided test does not reject, and the estimate is the shift at
which the sum of the ranks equals its expectation (Hodges & Lehmann, ibid. 34, 1963).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, erfc, inf, prod, sqrt

import numpy as np
import numpy.typing as npt

from lepaute.errors import InputError
from lepaute.stats.expanding import Booleans, Floats, Integers

Condition = Callable[[float], bool]

#: Where its exact distribution takes more additions, the rank sum is taken as normal, with its exact mean and variance.
MAX_ADDITIONS = 20_000_000
_HALVINGS, _HALVINGS_NEARBY = 40, 14
#: Values of either sample in a block. One would be nearest in time, but n pairs have no p-value below 2^(1 - n).
BLOCK = 4


@dataclass(frozen=True, slots=True)
class RankTest:
    """p-values of three alternatives: the second sample is shifted, is lower, is higher; 1 where nothing can differ."""

    two_sided: float
    lower: float
    higher: float


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the second sample lies above the first, in the unit of the values; the interval may be infinite."""

    estimate: float
    low: float
    high: float


def block_sizes(values: int) -> tuple[int, ...]:
    """How many of this many values of either sample are in each block: BLOCK, or evenly a few more."""
    blocks = max(1, values // BLOCK)
    return tuple(values // blocks + (number < values % blocks) for number in range(blocks))


def least_p_of(second: npt.ArrayLike, blocks: npt.ArrayLike) -> float:
    """The two-sided p-value of the clearest difference in these blocks; arguments as of `aligned_rank_test`."""
    labels, of_second = np.asarray(blocks), np.asarray(second, dtype=np.bool_)
    ways = (comb(len(block), int(block.sum())) for block in (of_second[labels == name] for name in np.unique(labels)))
    return min(1.0, 2 / prod(ways))


def values_to_decide(level: float) -> int:
    """The least number of values of either sample whose clearest difference has a two-sided p-value of `level`.

    Raises InputError for a level that is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"the level is {level!r}; it must lie between 0 and 1, such as 0.05")
    ways = ((values, prod(comb(2 * size, size) for size in block_sizes(values))) for values in itertools.count(1))
    return next(values for values, count in ways if 2 / count <= level)


def aligned_rank_test(values: npt.ArrayLike, second: npt.ArrayLike, blocks: npt.ArrayLike) -> RankTest:
    """Tests that both samples have one distribution in each block.

    values : shape (n,), finite; second : of each, whether it belongs to the second sample; blocks : of each, any labels
    Blocks of one sample alone say nothing and are left out. Raises InputError for values or shapes that cannot be.
    """
    return _Samples(values, second, blocks).test(0.0)


def aligned_shift(
    values: npt.ArrayLike, second: npt.ArrayLike, blocks: npt.ArrayLike, confidence: float = 0.95
) -> Shift:
    """The Hodges-Lehmann estimate of the second sample's shift, and the interval of what the test does not reject.

    Arguments and errors as `aligned_rank_test`; a confidence that is not between 0 and 1 is an InputError.
    """
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence!r}; it must lie between 0 and 1, such as 0.95")
    samples = _Samples(values, second, blocks)
    if samples.size == 0:
        return Shift(np.nan, -inf, inf)
    miss = (1 - confidence) / 2
    # Taking a shift off the second sample lowers its ranks: all three quantities fall as the shift grows.
    excess, tails = cache(samples.excess), cache(lambda shift: samples.normal_tails(samples.ranks(shift)))
    centre_low = samples.first_where(lambda shift: excess(shift) <= 0)
    centre_high = samples.first_where(lambda shift: excess(shift) < 0)
    low = samples.first_where(lambda shift: samples.test(shift).higher > miss, lambda shift: tails(shift)[1] > miss)
    high = samples.first_where(lambda shift: samples.test(shift).lower <= miss, lambda shift: tails(shift)[0] <= miss)
    return Shift((centre_low + centre_high) / 2, low, high)


class _Samples:
    """The values of both samples that blocks can compare, sorted by block."""

    def __init__(self, values: npt.ArrayLike, second: npt.ArrayLike, blocks: npt.ArrayLike) -> None:
        every = np.asarray(values, dtype=np.float64)
        of_second = np.asarray(second, dtype=np.bool_)
        if every.ndim != 1 or every.shape != of_second.shape or not np.isfinite(every).all():
            raise InputError("two samples need finite values of shape (n,), and as many labels")
        _, block = np.unique(np.asarray(blocks), return_inverse=True)
        if block.shape != every.shape:
            raise InputError(f"{len(every)} values have {block.size} blocks; each needs one")
        both = [number for number in range(block.max(initial=-1) + 1) if len(set(of_second[block == number])) == 2]
        places = [np.flatnonzero(block == number) for number in both]
        order = np.concatenate([np.zeros(0, dtype=np.int64), *places])
        ends = np.cumsum([0, *(len(place) for place in places)])
        self.blocks = [slice(int(a), int(b)) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        self.values: Floats = every[order]
        self.second: Booleans = of_second[order]
        self.size = len(order)
        self.starts: Integers = ends[:-1]
        self.sizes: Integers = np.diff(ends)
        self.chosen = np.array([np.count_nonzero(self.second[block]) for block in self.blocks], dtype=np.int64)
        #: Of each block, where all have as many values.
        self.length = int(self.sizes[0]) if len(set(self.sizes.tolist())) == 1 else 0
        #: By ranks, which stay as they are over a range of shifts.
        self._tests: dict[bytes, RankTest] = {}
        # Beyond such shifts every value of one sample lies above all of the other.
        self.reach = 2.0 * float(np.ptp(self.values)) + 1.0 if self.size else 0.0

    def ranks(self, shift: float) -> Integers:
        """Twice the ranks of the aligned values, whole numbers where values are equal, too."""
        moved = np.where(self.second, self.values - shift, self.values)
        if self.length:
            table = moved.reshape(-1, self.length)
            ordered, half = np.sort(table, axis=1), self.length // 2
            medians = (ordered[:, self.length - 1 - half] + ordered[:, half]) / 2
            return _double_ranks((table - medians[:, None]).ravel())
        return _double_ranks(np.concatenate([moved[block] - np.median(moved[block]) for block in self.blocks]))

    def excess(self, shift: float) -> float:
        """The rank sum of the second sample less its expectation, when its values are lowered by a shift."""
        ranks = self.ranks(shift)
        sums = np.add.reduceat(ranks, self.starts)
        return float(ranks[self.second].sum()) - float((self.chosen * sums / self.sizes).sum())

    def test(self, shift: float) -> RankTest:
        if self.size == 0:
            return RankTest(1.0, 1.0, 1.0)
        ranks = self.ranks(shift)
        key = ranks.tobytes()
        if key not in self._tests:
            self._tests[key] = self._test(ranks)
        return self._tests[key]

    def _test(self, ranks: Integers) -> RankTest:
        seen = int(ranks[self.second].sum())
        chances = _distribution([ranks[block] for block in self.blocks], [self.second[block] for block in self.blocks])
        if chances is None:
            lower, higher = self.normal_tails(ranks)
        else:
            lower, higher = (min(1.0, float(side.sum())) for side in (chances[: seen + 1], chances[seen:]))
        return RankTest(min(1.0, 2 * min(lower, higher)), lower, higher)

    def normal_tails(self, ranks: Integers) -> tuple[float, float]:
        """The p-values of both sides with a normal distribution of the rank sum, which is quick."""
        means = np.add.reduceat(ranks, self.starts) / self.sizes
        squares = np.add.reduceat((ranks - np.repeat(means, self.sizes)) ** 2, self.starts)
        of_block = self.chosen * (self.sizes - self.chosen) / self.sizes * squares / (self.sizes - 1)
        sd = sqrt(float(of_block.sum()))
        excess = int(ranks[self.second].sum()) - float((self.chosen * means).sum())
        return (_above(-excess, sd), _above(excess, sd)) if sd > 0.0 else (1.0, 1.0)

    def first_where(self, condition: Condition, nearly: Condition | None = None) -> float:
        """The least shift at which a condition that stays true is true; infinite where it always or never is.

        nearly : a quicker condition, which becomes true nearby
        """
        low, high = -self.reach, self.reach
        if condition(low):
            return -inf
        if not condition(high):
            return inf
        halvings = _HALVINGS
        if nearly is not None and not nearly(low) and nearly(high):
            near = _bisected(nearly, low, high, _HALVINGS)
            step = self.reach / 256
            if not condition(near - step) and condition(near + step):
                low, high, halvings = near - step, near + step, _HALVINGS_NEARBY
        return _bisected(condition, low, high, halvings)


def _bisected(condition: Condition, low: float, high: float, halvings: int) -> float:
    for _ in range(halvings):
        middle = (low + high) / 2
        if condition(middle):
            high = middle
        else:
            low = middle
    return high


def _double_ranks(values: Floats) -> Integers:
    ordered = np.sort(values)
    below, upto = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return np.asarray(below + upto + 1, dtype=np.int64)


def _distribution(ranks: Sequence[Integers], second: Sequence[Booleans]) -> Floats | None:
    """The chance of each rank sum, from 0 up, when labels are exchanged within blocks; None if it takes too long."""
    chosen = [int(np.count_nonzero(one)) for one in second]
    tops = [int(np.sort(one)[-count:].sum()) for one, count in zip(ranks, chosen, strict=True)]
    additions = sum(len(one) * count * top for one, count, top in zip(ranks, chosen, tops, strict=True))
    additions += sum(
        min(comb(len(one), count), top) for one, count, top in zip(ranks, chosen, tops, strict=True)
    ) * sum(tops)
    if additions > MAX_ADDITIONS:
        return None
    chances = np.ones(1)
    for one, count, top in zip(ranks, chosen, tops, strict=True):
        # the share of the subsets of `count` of these ranks that have each sum from 0 to `top`
        ways = np.zeros((count + 1, top + 1))
        ways[0, 0] = 1.0
        for rank in one:
            ways[1:, rank:] += ways[:-1, : top + 1 - rank].copy()
        shares: Floats = ways[count] / comb(len(one), count)
        result = np.zeros(len(chances) + len(shares) - 1)
        for total in np.flatnonzero(shares):
            result[total : total + len(chances)] += shares[total] * chances
        chances = result
    return chances


def _above(value: float, sd: float) -> float:
    """The chance of an excess of at least this much; ranks are doubled, half a step is 1."""
    return 0.5 * erfc((value - 1) / sd / sqrt(2))

"""Evidence that the level of a stream changed, one value a day: an e-process, which may be looked at on every day.

E(t) is a martingale of mean at most 1 where nothing changes, so that P(it ever reaches 1 / a) <= a (Ville's inequality;
Ramdas, Grünwald, Vovk & Shafer, Statistical Science 38, 2023). Looking daily needs no correction, and one hypothesis is
one stream between two events, not one day. Steps, for each new value x(t) of a stream:

1. its innovation: x(t) less rho x(t - 1), less what a regression on the earlier values predicts of that: the level, and
   the response of this machine to the effect that the day has on all. rho errs upwards, since correlation that is left
   makes false alarms and too much taken off only costs power;
2. z: that, over the scale so far and the error of the prediction. The regression and the scale grow with winsorised
   innovations, so that neither a spike nor the first days of a new level inflates them;
3. f(z) = t(z - D) / t(z) over its mean, t the density of Student's t with 4 degrees of freedom: the likelihood ratio of
   a shift by D. Its mean is at most 1 for the noise that is promised, normal or t with 4 degrees of freedom, over a
   scale with its degrees of freedom. Far beyond D it falls again, so that a spike or two count for little; z is cut
   off at FURTHEST, lest a far slower level count for as little. First z is reduced by the least change of concern;
4. the product of these factors from day tau on is the evidence for a change at tau; E is their mean over all tau with
   weights that sum to 1, over both directions and over the shifts D (the mixture of Shiryaev and Roberts).

Streams of a group share what they can: rho, and the variance, by Smyth's moderation (Statistical Applications in
Genetics and Molecular Biology 3, 2004): the group's variance is worth the more values of one's own, the more alike the
machines are. Where the noise is not white or the scale is estimated, steps 1 to 3 are approximate;
tests/promises/test_alarms.py counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import chdtri, digamma, gammaln, ndtr, stdtrit

from lepaute import _core
from lepaute.errors import InputError
from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.stats.group_effects import LONG_RUN, MIN_PEERS

#: Shifts that are looked for, in standard deviations of an innovation; those between are found by their neighbours.
SHIFTS = np.array([0.5, 1.0, 2.0, 4.0, 10.0])
FURTHEST = 15.0  # where innovations are cut off
#: What a likelihood ratio is of: a shift of the level, in standard deviations, and a scatter this many times as wide.
Alternative = tuple[float, float]
UPWARDS: tuple[Alternative, ...] = tuple((float(shift), 1.0) for shift in SHIFTS)
#: Of Student's t, heavy-tailed noise, and what a scale that is estimated by winsorised values is to that of t.
TAIL_DEGREES, HEAVY_SCALE = 4, 1.2
#: The group's variance is worth at most this many values of one's own.
MAX_PRIOR_DEGREES = 40.0
#: Innovations further out than this move level and scale as if they were there; for a scale that rests on few values,
#: as far out in Student's t as this is in the normal distribution: else a scale that is small by chance would last.
WINSOR = 2.0
_WINSORS = -stdtrit(np.arange(1, 501), float(ndtr(-WINSOR)))  # for 1, 2, ... degrees of freedom
#: A value this near to the median of its group, in scales, is that median, of which nothing is left: it counts for the
#: scale as half of one, or small groups of an odd number seem to scatter less than they do.
AT_MEDIAN, MEDIAN_WORTH = 1e-9, 0.5
#: The root mean square of a standard normal variable winsorised at WINSOR times itself.
NORMAL_SCALE = 0.945
#: Fewer earlier values say nothing.
FEWEST = 3
#: While a stream's CUSUM, the largest product of its factors since any day, is this large for a shift of LARGE standard
#: deviations or more, its level and scale learn nothing, lest a change hide its own evidence; only once the level rests
#: on this many values. Smaller shifts may be a season.
SUSPICIOUS, LARGE, MIN_LEVEL = 100.0, 4.0, 10
#: Differences of neighbours count up to this many times the bound of innovations: a step is in one difference to the
#: last value, but in two to the one before, and would pass for correlation.
DIFFERENCE_BOUND = 1.75
#: Correlation of neighbours before any value is seen, worth this many values; never above the last.
PRIOR_RHO, PRIOR_VALUES, MAX_RHO = 0.6, 20, 0.9
#: After an event scale and correlation of before are worth at most this many values.
KEPT_VALUES = 50
#: Days: as many again have half of the weight of a change.
HALF_WEIGHT_DAYS = 50
#: How strongly a machine responds to what is common: 1, give or take this at first; worth so many machines.
RESPONSE_SPREAD, PRIOR_MACHINES = 0.2, 5
#: Values that make up the level from which common effects are reckoned.
ANCHOR_VALUES = 10
#: Values that a mean remembers: of a machine, and of what is common to many, which also follows seasons.
MACHINE_MEMORY, COMMON_MEMORY = 200, 20
#: Evidence beyond this is as good.
MOST = 1e250
_COUNTS = ("count", "tests")
_NOTHING = ("last", "before_last", "origin")
#: What a restart leaves as it is, but for its worth.
_LASTING = ("near", "far", "pairs", "scale_sum", "scale_count")
#: Shapes of the fields, but for the number of streams.
_SHAPES: Mapping[str, tuple[int, ...]] = {
    "expected": (3,),
    "last_common": (2,),
    "squares": (3, 3),
    "cross": (3,),
    **dict.fromkeys(("products", "largest", "origin", "anchor", "last", "before_last", "last_value", *_LASTING), ()),
}


def factors(
    z: Floats, degrees: Integers, alternatives: tuple[Alternative, ...] = UPWARDS, reduced: Floats | None = None
) -> Floats:
    """f(z) for each alternative, shape (values, len(alternatives)), 1 for NaN; degrees of freedom of the scale of each.

    reduced : where it is given, both directions, upwards first, each of a z that is reduced by that
    """
    columns, inverse = _columns(alternatives, reduced is not None)
    off = np.zeros(z.shape) if reduced is None else reduced
    return _core.likelihood_ratios(z.clip(-FURTHEST - off, FURTHEST + off), off, degrees, columns, inverse, HEAVY_SCALE)


@lru_cache(maxsize=8)
def _columns(alternatives: tuple[Alternative, ...], both: bool) -> tuple[Floats, Floats]:
    """The alternatives as the core has them, and the inverse means of their ratios."""
    inverse = 1 / means_of(alternatives)
    signs = (1.0, -1.0) if both else (1.0,)
    columns = [(sign, float(both), *alternative) for sign in signs for alternative in alternatives]
    return np.array(columns), np.concatenate([inverse] * len(signs), axis=1)


@lru_cache(maxsize=4)
def means_of(alternatives: tuple[Alternative, ...] = UPWARDS, most: int = 64) -> Floats:
    """The larger mean of t((z - D) / w) / (w t(z)) under both kinds of noise, over estimated scales.

    Row d - 1 for a scale with d degrees of freedom, the last one for all further ones; a column each alternative.
    """
    # on a grid that is fine in the middle and reaches far into the tails
    grid = np.linspace(-13.0, 13.0, 1041)
    z, step = np.sinh(grid), np.cosh(grid) * (grid[1] - grid[0])
    constant = gammaln((TAIL_DEGREES + 1) / 2) - gammaln(TAIL_DEGREES / 2) - 0.5 * np.log(TAIL_DEGREES * np.pi)
    log_t = constant - (TAIL_DEGREES + 1) / 2 * np.log1p((HEAVY_SCALE * z) * (HEAVY_SCALE * z) / TAIL_DEGREES)
    heavy = HEAVY_SCALE * np.exp(log_t) * step
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * step
    edges = np.linspace(0, 1, 25) ** 4  # of scales, which are finer where they are small
    scales, share = (edges[1:] + edges[:-1]) / 2, np.diff(edges)[:, None]
    rows = np.empty((most, len(alternatives)))
    for degrees in range(1, most + 1):
        if degrees > 16 and degrees % 8:  # hardly other than the one before
            rows[degrees - 1] = rows[degrees - 2]
            continue
        tail = min(degrees, TAIL_DEGREES)
        u = HEAVY_SCALE * (z / np.sqrt(chdtri(degrees, 1 - scales) / degrees)[:, None]).clip(-FURTHEST, FURTHEST)
        at = 1 + u**2 / tail
        for i, (shift, width) in enumerate(alternatives):
            ratio = (at / (1 + ((u - HEAVY_SCALE * shift) / width) ** 2 / tail)) ** ((tail + 1) / 2) / width
            rows[degrees - 1, i] = max(1.0, *((share * ratio * each).sum() for each in (normal, heavy)))
    return rows


def moderated(variance: Floats, degrees: Floats, groups: Integers) -> tuple[Floats, Floats]:
    """The common variance of the streams of a group, and the degrees of freedom that it is worth: 0 below MIN_PEERS.

    The spread of their log variances beyond chance tells how alike they are, taken one standard error larger.
    """
    usable = (degrees >= 1) & (variance > 0)
    half = np.maximum(degrees, 1.0) / 2
    weight = usable.astype(np.float64)
    size = int(groups.max()) + 1

    def mean(values: Floats) -> Floats:
        sums = np.bincount(groups, weights=np.where(usable, values, 0.0), minlength=size)
        return np.asarray(sums / np.maximum(peers, 1.0), dtype=np.float64)

    peers = np.bincount(groups, weights=weight, minlength=size)
    with np.errstate(divide="ignore"):
        log_variance = np.log(np.where(usable, variance, 1.0)) - _of_halves(digamma, half) + np.log(half)
    centre = mean(log_variance)
    squares = mean((log_variance - centre[groups]) ** 2) * peers / np.maximum(peers - 1, 1.0)
    chance = mean(_of_halves(_trigamma, half))
    spread = np.maximum(squares - chance, 0.0) + squares * np.sqrt(2 / np.maximum(peers - 1, 1.0))
    worth = np.where(peers >= MIN_PEERS, np.minimum(MAX_PRIOR_DEGREES, 2 / np.maximum(spread, 1e-9) + 1), 0.0)
    prior = np.exp(centre + digamma(np.maximum(worth, 1.0) / 2) - np.log(np.maximum(worth, 1.0) / 2))
    return prior[groups], worth[groups]


def _moderated_correlation(seen: Floats, pairs: Floats, groups: Integers) -> tuple[Floats, Floats, Floats]:
    """The correlation that the streams of a group have in common, how many pairs of values it is worth, and all pairs.

    seen  : that of each stream, by `pairs` pairs of neighbours; its variance by chance is about 2 / pairs
    All of shape (streams,), worth 0 for fewer than MIN_PEERS; as in `moderated`, the spread that chance does not
    explain counts, one standard error larger than it looks.
    """
    size = int(groups.max()) + 1
    usable = pairs > 0
    all_pairs: Floats = np.bincount(groups, weights=pairs, minlength=size).astype(np.float64)
    peers = np.bincount(groups, weights=usable, minlength=size)
    mean = np.bincount(groups, weights=pairs * seen, minlength=size) / np.maximum(all_pairs, 1.0)
    off = np.where(usable, (seen - mean[groups]) ** 2, 0.0)
    squares = np.bincount(groups, weights=off, minlength=size) / np.maximum(peers - 1, 1.0)
    chance = 2 * peers / np.maximum(all_pairs, 1.0)
    spread = np.maximum(squares - chance, 0.0) + squares * np.sqrt(2 / np.maximum(peers - 1, 1.0))
    alike = np.where(peers >= MIN_PEERS, np.minimum(2 / np.maximum(spread, 1e-9), all_pairs), 0.0).astype(np.float64)
    return mean[groups], alike[groups], all_pairs[groups]


def _of_halves(function: Callable[[Floats], Floats], x: Floats) -> Floats:
    """The function of each, from a table where all are whole or half numbers, as degrees of freedom mostly are."""
    twice = (2 * x).astype(np.int64)
    if not len(x) or twice.max() > len(x) or (twice != 2 * x).any():
        return function(x)
    return function(np.maximum(np.arange(twice.max() + 1), 1) / 2)[twice]


def _trigamma(x: Floats) -> Floats:
    """For x >= 1/2, to 1e-6: SciPy's takes milliseconds for some thousand streams."""
    below = 1 / x**2 + 1 / (x + 1) ** 2 + 1 / (x + 2) ** 2 + 1 / (x + 3) ** 2
    far = 1 / (x + 4)
    return np.asarray(below + far + far**2 / 2 + far**3 / 6 - far**5 / 30, dtype=np.float64)


@dataclass(slots=True)
class ChangeEvidence:
    """What the past of each stream says, shape (streams,) but for `products`.

    least_rho : neighbours are correlated by so much at least
    widened   : by which factor an innovation has to be larger than it seems, for a wander that neighbours do not show
    count     : values so far; tests: those that were judged
    origin    : the first value
    anchor    : mean of the first ANCHOR_VALUES values without common effects, from which those of later days are
                reckoned: a level that goes on learning would let levels and common effect drift against each other
    expected  : level less origin, and responses to quick and slow part of the common effect, (streams, 3)
    spread    : of these two responses among the machines of a group, shape (streams, 2)
    last, before_last : the latest two values, less what is expected of the common effect, NaN before there are such
    last_value, last_common : the latest value less the origin, and the common effect that belongs to it, (streams, 2)
    squares, cross : sums of products of the regressors, shape (streams, 3, 3), and with the values, (streams, 3)
    near, far, pairs  : winsorised sums of squared differences to the last value and to the one before, and their count
    scale_sum, scale_count : winsorised squares of innovations
    products  : sum over tau of weight times product of factors, shape (streams, PRODUCTS), upwards first
    largest   : the CUSUM of each shift, upwards first, shape (streams, DIRECTED)
    """

    DIRECTED: ClassVar[int] = 2 * len(SHIFTS)
    PRODUCTS: ClassVar[int] = DIRECTED

    memory: int
    least_rho: float
    widened: Floats
    spread: Floats
    count: Integers
    tests: Integers
    origin: Floats
    anchor: Floats
    expected: Floats
    last: Floats
    before_last: Floats
    last_value: Floats
    last_common: Floats
    squares: Floats
    cross: Floats
    near: Floats
    far: Floats
    pairs: Floats
    scale_sum: Floats
    scale_count: Floats
    products: Floats
    largest: Floats

    @classmethod
    def start(cls, streams: int, memory: int = MACHINE_MEMORY, least_rho: float = 0.0) -> Self:
        """Streams of which nothing is known, neighbours correlated by least_rho at least."""
        if streams < 1 or memory < FEWEST:
            raise InputError(f"{streams} streams with a memory of {memory} values; give at least 1 and {FEWEST}")
        arrays: dict[str, Any] = {name: np.zeros((streams, *shape)) for name, shape in _SHAPES.items()}
        arrays |= {name: np.zeros(streams, np.int64) for name in _COUNTS}
        arrays |= {name: np.zeros((streams, n)) for name, n in (("products", cls.PRODUCTS), ("largest", cls.DIRECTED))}
        spread = np.full((streams, 2), RESPONSE_SPREAD)
        state = cls(memory=memory, least_rho=least_rho, widened=np.ones(streams), spread=spread, **arrays)
        state.restart(np.arange(streams))
        return state

    def restart(self, streams: Integers) -> None:
        """Begins these streams anew after an event: level and evidence go, scale and correlation stay."""
        for name in (*_COUNTS, *_SHAPES):
            if name not in _LASTING:
                getattr(self, name)[streams] = np.nan if name in _NOTHING else 0
        self.expected[streams, 1:] = 1.0
        for sums, count in ((("near", "far"), "pairs"), (("scale_sum",), "scale_count")):
            worth = KEPT_VALUES / np.maximum(getattr(self, count)[streams], KEPT_VALUES)
            for name in (*sums, count):
                getattr(self, name)[streams] *= worth

    def forget_neighbours(self, streams: Booleans) -> None:
        """What comes next differs from the latest values for another reason than noise: no correlation is learned."""
        self.last[streams] = self.before_last[streams] = np.nan

    def put(self, streams: Integers, other: Self) -> None:
        """Takes these streams from another state, which is of them alone."""
        for each in fields(self):
            if isinstance(values := getattr(self, each.name), np.ndarray):
                values[streams] = getattr(other, each.name)

    def directions(self) -> Integers:
        """1 where the evidence is of a larger level, -1 if of a smaller one, shape (streams,)."""
        up, down = np.split(self.products[:, : self.DIRECTED], 2, axis=1)
        return np.where(up.sum(axis=1) >= down.sum(axis=1), 1, -1).astype(np.int64)

    def levels(self) -> Floats:
        """The level of each stream without a common effect, NaN before its first value."""
        return self.origin + self.expected[:, 0]

    def deviations(self, values: Floats) -> Floats:
        """Values less the first ones without common effects; NaN if there is no value, or none before it."""
        return np.where(self.count > 0, values - self.anchor, np.nan)

    def residuals(self, values: Floats, groups: Integers, common: Floats) -> tuple[Floats, Floats, Floats]:
        """What level and response do not explain of values beside these common effects; of streams scale and `rho`.

        NaN if there is no value, or none before it; the scale NaN if it rests on too few.
        """
        explained = self.levels() + (self.expected[:, 1:] * common).sum(axis=1)
        return (
            np.where(self.count > 0, values - explained, np.nan),
            np.where(self.scale_count >= FEWEST, self._scale(groups)[0], np.nan),
            self.rho(groups),
        )

    def rho(self, groups: Integers | None = None) -> Floats:
        """An upper estimate of the correlation of neighbours, from differences, which a step hardly touches.

        With `groups`, what the streams of a group have in common counts as far as they are alike.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            # E (x(t) - x(t-2))^2 / E (x(t) - x(t-1))^2 = 1 + rho
            seen = np.clip(np.where(self.near > 0, self.far / self.near - 1, 0.0), -MAX_RHO, MAX_RHO)
        common, alike = np.zeros(seen.shape), np.zeros(seen.shape)
        if groups is not None:
            common, alike, pairs = _moderated_correlation(seen, self.pairs, groups)
            common = (pairs * np.maximum(common, 0.0) + PRIOR_VALUES * PRIOR_RHO) / (pairs + PRIOR_VALUES)
        elsewhere = np.where(alike > 0, common, PRIOR_RHO)
        weight = np.maximum(alike, PRIOR_VALUES)
        shrunk = (self.pairs * np.maximum(seen, 0.0) + weight * elsewhere) / (self.pairs + weight)
        margin = 1 / np.sqrt(self.pairs + alike + 1)
        return np.asarray(np.clip(shrunk + margin, self.least_rho, MAX_RHO), dtype=np.float64)

    def widening(self, wander: Floats, groups: Integers) -> Floats:
        """By what innovations have to be larger where streams wander, too, with such a variance, shape (streams,).

        The long-run variance of a wander over that of an innovation, which it adds to; 1 for a wander of 0.
        """
        scale, _ = self._scale(groups)
        added = LONG_RUN * wander * (1 - self.rho(groups)) ** 2
        relative = np.divide(added, scale**2, out=np.zeros(wander.shape), where=scale > 0)
        return np.asarray(np.sqrt(1 + relative), dtype=np.float64)

    def update(
        self, values: Floats, groups: Integers | None = None, common: Floats | None = None, least: Floats | None = None
    ) -> None:
        """Takes a value of each stream, NaN if there is none; shape (streams,).

        groups : numbers from 0 of streams with noise alike, such as the machines of a cluster: what their scale and
                 correlation have in common is pooled
        common : the quick and the slow part of the effect of this day, as `CommonEffect` has them, shape (streams, 2);
                 taken off as each stream responds to them
        least  : changes up to this, in the unit of the values, are none; 0 by default
        Raises InputError for another number of values, and for infinite ones.
        """
        if values.shape != self.origin.shape or np.isinf(values).any():
            raise InputError(f"{values.size} values for {self.origin.size} streams; give a finite one or NaN for each")
        seen = ~np.isnan(values)
        known = seen & (self.count > 0)
        shared = np.zeros((len(values), 2)) if common is None else common
        self.origin = np.where(seen & ~known, values, self.origin)
        value = np.where(seen, values - self.origin, 0.0)
        rho = self.rho(groups)
        scale, degrees = self._scale(groups)
        y, x, error, innovation = _core.innovations(
            *self._regressions(scale), value, known, rho, self.last_value, shared, self.last_common
        )
        unit = scale * np.sqrt(error)
        tested = known & (self.count >= FEWEST) & (unit > 0)
        if tested.any():
            per_unit = np.divide(NORMAL_SCALE, unit * self.widened, out=np.full(unit.shape, np.nan), where=tested)
            reduced = np.zeros(values.shape) if least is None else least * (1 - rho) * per_unit
            self._multiply(tested, innovation * per_unit, reduced, degrees)
        limit = np.where(
            (self.scale_count >= FEWEST - 1) & (unit > 0), _WINSORS[np.minimum(degrees, 500) - 1] * unit, np.inf
        )
        kept = np.clip(innovation, -limit, limit)
        learns = seen & ~self._held()
        # the posterior variances of both responses, shape (streams, 2)
        variance = _core.learn(*self._regressions(scale), learns, y - innovation + kept, x, float(self.memory))
        scaled = known & learns
        worth = scaled.astype(np.float64)
        if common is not None and groups is not None:
            self._learn_spread(groups, variance)
            worth[self._is_common(values, groups, shared, scale)] *= MEDIAN_WORTH
        self.scale_sum += np.where(scaled, kept**2 / error, 0.0)
        self.scale_count += worth
        response = self.expected[:, 1] * shared[:, 0] + self.expected[:, 2] * shared[:, 1]
        self._learn_differences(value - response, seen, DIFFERENCE_BOUND * limit)
        self.last_value = np.where(seen, value, self.last_value)
        self.last_common = np.where(seen[:, None], shared, self.last_common)
        self.count = self.count + seen
        anchoring = seen & (self.count <= ANCHOR_VALUES)
        step = (values - (shared[:, 0] + shared[:, 1]) - self.anchor) / np.maximum(self.count, 1)
        self.anchor = np.where(anchoring, self.anchor + step, self.anchor)

    def evidence(self) -> Floats:
        """E of each stream, shape (streams,): 1 before anything was judged."""
        return self.evidence_so_far() + HALF_WEIGHT_DAYS / (HALF_WEIGHT_DAYS + self.tests)

    def evidence_so_far(self) -> Floats:
        """E of each stream without the weight of changes that are still to come."""
        return np.asarray(self.products.mean(axis=1), dtype=np.float64)

    def _held(self) -> Booleans:
        """Streams that are not to learn; a level that follows seasons always does."""
        large = self.largest[:, np.tile(SHIFTS >= LARGE, 2)].max(axis=1) >= SUSPICIOUS
        return np.asarray(large & (self.count >= MIN_LEVEL) & (self.memory >= MACHINE_MEMORY), dtype=np.bool_)

    def _is_common(self, values: Floats, groups: Integers, common: Floats, scale: Floats) -> Booleans:
        """Streams whose value is itself the median of its group, alone."""
        off = np.abs(values - self.anchor - common.sum(axis=1))
        middle = off <= AT_MEDIAN * scale
        return np.asarray(middle & (np.bincount(groups, middle)[groups] == 1), dtype=np.bool_)

    def _regressions(self, scale: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, float]:
        """What the core takes first."""
        return self.squares, self.cross, self.expected, self.spread, scale, self.scale_count, float(FEWEST)

    def _learn_spread(self, groups: Integers, variance: Floats) -> None:
        """A step of EM (Dempster, Laird & Rubin, Journal of the Royal Statistical Society B 39, 1977) a round.

        The spread's square is the mean over a group's machines of what responses are off 1 by, squared, and of their
        posterior variances; without a common effect these are the square of the spread, and it stays. Of machines whose
        scale is known: before, nothing holds a response back where the effect is small.
        """
        size = int(groups.max()) + 1
        off = (self.expected[:, 1:] - 1) ** 2 + variance
        known = (self.count > 0) & (self.scale_count >= FEWEST)
        machines = np.bincount(groups, weights=known, minlength=size)
        for part in range(2):
            sums = np.bincount(groups, weights=np.where(known, off[:, part], 0.0), minlength=size)
            learned = np.sqrt((sums + PRIOR_MACHINES * RESPONSE_SPREAD**2) / (machines + PRIOR_MACHINES))[groups]
            informed = self.squares[:, part + 1, part + 1] > 0
            self.spread[:, part] = np.where(informed, learned, self.spread[:, part])

    def _scale(self, groups: Integers | None) -> tuple[Floats, Integers]:
        variance = self.scale_sum / np.maximum(self.scale_count, 1)
        degrees = np.maximum(self.scale_count - 1, 1.0)
        if groups is None:
            return np.sqrt(variance), degrees.astype(np.int64)
        prior, worth = moderated(variance, np.maximum(self.scale_count - 1, 0.0), groups)
        return np.sqrt((worth * prior + degrees * variance) / (worth + degrees)), (degrees + worth).astype(np.int64)

    def _multiply(self, tested: Booleans, z: Floats, reduced: Floats, degrees: Integers) -> None:
        """z, reduced : NaN if nothing is tested"""
        begun = HALF_WEIGHT_DAYS + self.tests
        ratios = factors(z, degrees, UPWARDS, reduced)
        self._accumulate(tested, HALF_WEIGHT_DAYS / (begun * (begun + 1)), ratios)

    def _accumulate(self, tested: Booleans, weight: Floats | Booleans, ratios: Floats) -> None:
        """weight : of a change on this day; ratios : of each of the products, those of shifts first"""
        self.products += np.where(tested, weight, 0)[:, None]
        self.products *= ratios
        np.minimum(self.products, MOST, out=self.products)
        begun = np.where(tested[:, None], np.maximum(self.largest, 1.0), self.largest)
        self.largest = np.minimum(begun * ratios[:, : self.DIRECTED], MOST)
        self.tests += tested

    def _learn_differences(self, values: Floats, seen: Booleans, limit: Floats) -> None:
        both = seen & ~np.isnan(self.before_last)
        near, far = np.abs(values - self.last), np.abs(values - self.before_last)
        self.near += np.where(both, np.minimum(near, limit) ** 2, 0.0)
        self.far += np.where(both, np.minimum(far, limit) ** 2, 0.0)
        self.pairs += both
        self.before_last = np.where(seen, self.last, self.before_last)
        self.last = np.where(seen, values, self.last)

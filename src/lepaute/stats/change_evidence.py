"""Evidence that the level of a stream changed, one value a day: an e-process, which may be looked at on every day.

E(t) is a martingale of mean at most 1 where nothing changes, so that P(it ever reaches 1 / a) <= a (Ville's inequality;
Ramdas, Grünwald, Vovk & Shafer, Statistical Science 38, 2023). Looking daily needs no correction, and one hypothesis is
one stream between two events, not one day. Steps, for each new value x(t) of a stream:

1. its deviation from the mean of the earlier values, less rho times that of the value before: what the past does not
   predict. rho errs upwards, since correlation that is left makes false alarms and too much taken off only costs power;
2. z: that, over its scale so far. Mean and scale grow with winsorised values, so that neither a spike nor the first
   days of a new level inflates them;
3. exp(+- theta clip(z) - kappa) has mean at most 1 for the noise that is promised (normal, or Student's t with 4
   degrees of freedom; the degrees of freedom of a young scale included). z is clipped: without that, the mean would be
   infinite for a heavy tail, and one spike would be a change;
4. the product of these factors from day tau on is the evidence for a change at tau; E is their mean over all tau with
   weights that sum to 1, over both directions and over four theta (the mixture of Shiryaev and Roberts).

Where the normal or t noise is not white, steps 1 and 2 are approximate; tests/promises/test_alarms.py counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr, stdtrit

from lepaute.errors import InputError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

#: Changes of 0.25 to 2 standard deviations of an innovation and more are looked for.
THETAS = np.array([0.25, 0.5, 1.0, 2.0])
#: z counts as no more than this. One day then multiplies the evidence by exp(7) at most: a spike alone is no alarm.
CLIP = 6.0
#: Values further than this many scales from the mean move mean and scale as if they were there; for a scale that rests
#: on few values, as far out in Student's t as this is in the normal distribution: a scale that is too small by chance
#: would otherwise hold fast to itself and to a wrong level.
WINSOR = 2.0
#: The root mean square of a standard normal variable winsorised at WINSOR times itself, and that of t(4) over it.
NORMAL_SCALE, HEAVY_SCALE = 0.945, 1.2
#: Fewer earlier values say nothing.
FEWEST = 3
#: Correlation of neighbours before any value is seen, worth so many values; never above the last.
PRIOR_RHO, PRIOR_VALUES, MOST_RHO = 0.6, 20, 0.9
#: Days: as many again have half of the weight of a change.
HALF_WEIGHT_DAYS = 50
#: The scale of all streams of a group is worth so many values of one's own.
POOLED_VALUES = 20
FEWEST_PEERS = 5
#: How strongly a machine responds to what is common: 1, give or take this, until it has shown its own, 0 to 2.
RESPONSE_SPREAD, MOST_RESPONSE = 0.2, 2.0
#: Values that a mean remembers: of a machine, and of what is common to many, which also follows seasons.
MACHINE_MEMORY, COMMON_MEMORY = 200, 20
_MOST = 1e250
_COUNTS = ("count", "tests")


@dataclass(slots=True)
class ChangeEvidence:
    """What the past of each stream says, shape (streams,) but for `products`; plain numbers, so it can be stored.

    count     : values so far; tests: those that were judged
    level, common : winsorised mean, and that of the common effect, which belongs to it
    last, before_last : the latest two values without the common effect, NaN before there are such
    last_deviation    : of the latest value from what was expected
    near, far : winsorised sums of squared differences to the last value and to the one before, and their counts
    scale_sum, scale_count : winsorised squares of innovations
    shared_own, shared_shared : sums of products of centred common effects with values, and with themselves
    products  : sum over tau of weight times product of factors, shape (streams, 2 len(THETAS))
    """

    memory: int
    count: Integers
    tests: Integers
    level: Floats
    common: Floats
    last: Floats
    before_last: Floats
    last_deviation: Floats
    near: Floats
    far: Floats
    scale_sum: Floats
    scale_count: Floats
    shared_own: Floats
    shared_shared: Floats
    products: Floats

    @classmethod
    def start(cls, streams: int, memory: int = MACHINE_MEMORY) -> "ChangeEvidence":
        """Streams of which nothing is known."""
        if streams < 1 or memory < FEWEST:
            raise InputError(f"{streams} streams with a memory of {memory} values; give at least 1 and {FEWEST}")
        nothing = ("last", "before_last", "last_deviation")
        arrays: dict[str, Any] = {
            name: np.zeros(streams, np.int64)
            if name in _COUNTS
            else np.full(streams, np.nan if name in nothing else 0.0)
            for name in cls.__slots__
            if name not in ("memory", "products")
        }
        return cls(memory=memory, products=np.zeros((streams, 2 * len(THETAS))), **arrays)

    def deviations(self, values: Floats) -> Floats:
        """Values less what their stream has without a common effect, 0 for a first one, NaN where there is none."""
        without = self.level - self.response() * self.common
        return np.where(self.count > 0, values - without, np.where(np.isnan(values), np.nan, 0.0))

    def rho(self, groups: Integers | None = None) -> Floats:
        """An upper estimate of the correlation of neighbours, from differences, which a step hardly touches.

        With `groups`, that of all streams of a group together.
        """
        near, far, pairs = self.near, self.far, np.maximum(self.count - 2.0, 0.0)
        if groups is not None:
            _, group = np.unique(groups, return_inverse=True)
            near, far, pairs = (
                np.asarray(np.bincount(group, weights=each)[group], dtype=np.float64) for each in (near, far, pairs)
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            # E (x(t) - x(t-2))^2 / E (x(t) - x(t-1))^2 = 1 + rho
            seen = np.clip(np.where(near > 0, far / near - 1, 0.0), 0.0, MOST_RHO)
        shrunk = (pairs * seen + PRIOR_VALUES * PRIOR_RHO) / (pairs + PRIOR_VALUES)
        return np.asarray(np.minimum(MOST_RHO, shrunk + 1 / np.sqrt(pairs + 1)), dtype=np.float64)

    def response(self) -> Floats:
        """By how much a stream moves where the median of its group moves by 1, shape (streams,)."""
        noise = self.scale_sum / np.maximum(self.scale_count, 1) / RESPONSE_SPREAD**2
        most_likely = (self.shared_own + noise) / np.where(noise > 0, self.shared_shared + noise, 1.0)
        return np.asarray(np.where(noise > 0, np.clip(most_likely, 0.0, MOST_RESPONSE), 1.0), dtype=np.float64)

    def update(self, values: Floats, groups: Integers | None = None, common: Floats | None = None) -> Floats:
        """Takes a value of each stream, NaN where there is none, and gives E of each so far, shape (streams,).

        common : `common_effect` of this day, shape (streams,), which is taken off as each stream responds to it
        groups : numbers of streams with noise alike, such as the machines of a cluster: their scale and
                 correlation are pooled
        Raises InputError for another number of values, and for infinite ones.
        """
        if values.shape != self.level.shape or np.isinf(values).any():
            raise InputError(f"{values.size} values for {self.level.size} streams; give a finite one or NaN for each")
        seen = ~np.isnan(values)
        rho = self.rho(groups)
        known = seen & (self.count > 0)
        response = self.response()
        moved = response * (common - self.common) if common is not None else np.zeros(values.shape)
        deviation = np.where(known, values - moved - self.level, 0.0)
        innovation = np.where(known, deviation - rho * np.nan_to_num(self.last_deviation), 0.0)
        own = np.sqrt(self.scale_sum / np.maximum(self.scale_count, 1))
        scale, degrees = self._scale(own, groups)
        tested = known & (self.count >= FEWEST) & (scale > 0)
        if tested.any():
            self._multiply(tested, innovation[tested] / scale[tested] * NORMAL_SCALE, degrees[tested])
        limit = np.where((self.scale_count >= FEWEST - 1) & (scale > 0), _winsor(degrees) * scale, np.inf)
        # of a deviation, whose scale is that of the innovation over root (1 - rho^2)
        kept = np.clip(deviation, -2 * limit, 2 * limit)
        gain = 1.0 / np.minimum(self.count + 1.0, self.memory)
        if common is not None:
            self._learn_response(known, kept + moved, np.where(known, common - self.common, 0.0), gain)
            self.common = np.where(self.count > 0, self.common + gain * known * (common - self.common), common)
        self.level = np.where(known, self.level + gain * (kept + moved), np.where(seen, values, self.level))
        self.scale_sum += np.where(known, np.minimum(np.abs(innovation), limit) ** 2, 0.0)
        self.scale_count += known
        self._learn_differences(values - (response * common if common is not None else 0.0), seen, limit)
        self.last_deviation = np.where(known, deviation, np.where(seen, 0.0, self.last_deviation))
        self.count = self.count + seen
        return self.evidence()

    def evidence(self) -> Floats:
        """E of each stream: 1 before anything was judged."""
        left = HALF_WEIGHT_DAYS / (HALF_WEIGHT_DAYS + self.tests)
        return np.asarray(self.products.mean(axis=1) + left, dtype=np.float64)

    def _scale(self, own: Floats, groups: Integers | None) -> tuple[Floats, Integers]:
        count = self.scale_count
        degrees = np.maximum(count - 1, 1)
        if groups is None:
            return own, degrees.astype(np.int64)
        pooled = own.copy()
        for group in np.unique(groups):
            peers = (groups == group) & (count >= 1)
            if peers.sum() >= FEWEST_PEERS:
                common = float((own[peers] ** 2).mean())
                inside = groups == group
                share = POOLED_VALUES / (POOLED_VALUES + count[inside])
                pooled[inside] = np.sqrt(share * common + (1 - share) * own[inside] ** 2)
                worth = min(POOLED_VALUES, int(count[peers].sum()))
                degrees[inside] = count[inside] + worth - 1
        return pooled, np.maximum(degrees, 1).astype(np.int64)

    def _multiply(self, tested: Booleans, z: Floats, degrees: Integers) -> None:
        begun = HALF_WEIGHT_DAYS + self.tests[tested].astype(np.float64)
        weight = HALF_WEIGHT_DAYS / (begun * (begun + 1))
        push = np.clip(z, -CLIP, CLIP)[:, None] * np.concatenate([THETAS, -THETAS])
        factor = np.exp(push - log_mean_factors(int(degrees.max()))[degrees - 1])
        self.products[tested] = np.minimum((self.products[tested] + weight[:, None]) * factor, _MOST)
        self.tests[tested] += 1

    def _learn_response(self, known: Booleans, value: Floats, common: Floats, gain: Floats) -> None:
        """Welford's update of centred products; value and common less their means."""
        self.shared_own += np.where(known, (1 - gain) * common * value, 0.0)
        self.shared_shared += np.where(known, (1 - gain) * common**2, 0.0)

    def _learn_differences(self, values: Floats, seen: Booleans, limit: Floats) -> None:
        both = seen & ~np.isnan(self.before_last)
        near, far = np.abs(values - self.last), np.abs(values - self.before_last)
        self.near += np.where(both, np.minimum(near, 4 * limit) ** 2, 0.0)
        self.far += np.where(both, np.minimum(far, 4 * limit) ** 2, 0.0)
        self.before_last = np.where(seen, self.last, self.before_last)
        self.last = np.where(seen, values, self.last)

    def as_json(self) -> dict[str, object]:
        """Numbers and lists; `from_json` makes the same state of them, bit by bit."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "memory"}
        return {
            "memory": self.memory,
            **{
                name: [None if isnan(value) else value for value in array.tolist()]
                if array.ndim == 1
                else array.tolist()
                for name, array in fields.items()
            },
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> "ChangeEvidence":
        """Raises InputError where a field is missing."""
        try:
            arrays: dict[str, Any] = {
                name: np.array(stored[name], dtype=np.int64 if name in _COUNTS else np.float64)
                for name in cls.__slots__
                if name != "memory"
            }
            return cls(memory=int(str(stored["memory"])), **arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"this is no stored evidence: {error}; judge the observations again") from error


def _winsor(degrees: Integers) -> Floats:
    """WINSOR for a scale with these degrees of freedom: the quantile of Student's t as far out."""
    return np.asarray(-stdtrit(degrees, float(ndtr(-WINSOR))), dtype=np.float64)


@lru_cache(maxsize=8)
def _table(most: int) -> Floats:
    z = np.linspace(-200.0, 200.0, 20_001)
    step = z[1] - z[0]

    def density(degrees: float) -> Floats:
        constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
        return np.asarray(np.exp(constant - (degrees + 1) / 2 * np.log1p(z * z / degrees)), dtype=np.float64)

    def means(degrees: int, heaviness: int, unit: float) -> Floats:
        weights = density(heaviness) * step
        # what lies beyond the grid, a few per mille for one degree of freedom, is clipped like its ends
        weights[[0, -1]] += max(0.0, 1 - float(weights.sum())) / 2
        # a scale may be too small by its standard error
        push = np.clip(z / unit * (1 + 1 / np.sqrt(2 * (degrees + 4))), -CLIP, CLIP)
        return np.array([float((np.exp(theta * push) * weights).sum()) for theta in THETAS])

    rows = [np.log(np.maximum(means(d, d, 1.0), means(d, min(d, 4), HEAVY_SCALE))) for d in range(1, most + 1)]
    return np.array([np.concatenate([row, row]) for row in rows])


def log_mean_factors(degrees: int) -> Floats:
    """kappa, row d - 1 for a scale with d degrees of freedom up to `degrees`, a column each theta and direction."""
    size = 64
    rows = _table(size)
    if degrees <= size:
        return rows
    return np.concatenate([rows, np.broadcast_to(rows[-1], (degrees - size, rows.shape[1]))])


def common_effect(deviations: Floats, groups: Integers) -> Floats:
    """For each stream, the median deviation of its group on this day: what all share; 0 for fewer than FEWEST_PEERS.

    It is taken off the values before these are judged, and is a stream of its own: a change there is a platform event.
    """
    shared = np.zeros_like(deviations)
    for group in np.unique(groups):
        inside = groups == group
        here = deviations[inside]
        if np.isfinite(here).sum() >= FEWEST_PEERS:
            shared[inside] = np.nanmedian(here)
    return shared

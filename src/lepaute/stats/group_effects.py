"""What the machines of a group share day by day, beyond what all of a fleet share: how large it is, and who is a group.

A deviation of machine i on day t is R(t) + e(i, t), with R the effect of its group. It is predicted by the median of
the deviations of the *others* of the group, times a share: the regression of deviations on these medians, about
s^2 / (s^2 + v) for an effect of variance s^2 and medians with an error of variance v. So neither a machine's own
change nor a broken neighbour is taken off. Deviations have shape (days, streams), NaN if there is no value. A group
is a number from 0 of each stream, shape (streams,), -1 for none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from lepaute import _core
from lepaute.kit.later import later
from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.stats.student import SD_OF_MAD

if TYPE_CHECKING:
    from scipy.cluster import hierarchy
else:
    hierarchy = later("scipy.cluster.hierarchy")  # 0.2 s that most days do without

#: Days over which the slow part of a common effect is a mean: a season, not the weather.
SLOW_DAYS = 15
#: Others without whom nothing is said of a machine's group; fewer streams than MIN_PEERS say nothing of each other.
MIN_OTHERS = 2
MIN_PEERS = MIN_OTHERS + 1
#: Nodes and streams of a group that is found.
MIN_NODES, MIN_STREAMS = 2, 3
#: One-sided, of taking a share that is none for one.
LEVEL = 0.01
#: Stretches of days that count as independent.
BLOCKS = 8
#: Groups are sought in means of this many days: what wanders slowly is what matters.
MEAN_DAYS = 5
#: Means of every second stretch without which no group is sought, and numbers of groups that are tried.
MIN_MEANS = 4
_PASSES = 2
#: Of the days that groups are made of, what the others of a node's group explain at least.
MIN_SHARE = 0.25
_COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: In robust standard deviations of a stream: what is further out counts as if it were there.
FAR = 3.0
#: Means of this many rounds, in which it shows whether a part of a fleet shifted: a large shift at once.
WINDOWS = (1, 2, 4, 8, 16)
#: Both parts have this many streams at least, and this share of them: fewer hardly move the median of all.
MIN_IN_PART, MIN_PART = 4, 0.1
#: So many standard deviations within a part between their means: halves of normal values have 2.7, of uniform ones 3.5.
SEPARATION = 4.0


def medians(deviations: Floats, group: Integers, order: Integers | None = None) -> tuple[Floats, Floats]:
    """The median of each group, shape (..., groups), and of the others of its group for each stream, (..., streams).

    deviations : shape (..., streams); NaN if fewer than MIN_OTHERS, of a group one more, have a value
    order : of the streams by deviation, for each day, where it is known
    """
    values = np.ascontiguousarray(deviations.reshape(-1, deviations.shape[-1]))
    ranking = np.zeros((0, 0), np.int64) if order is None else order
    groups = int(group.max(initial=0)) + 1
    whole, others = _core.group_medians(values, group, ranking, groups, MIN_OTHERS)
    return whole.reshape(*deviations.shape[:-1], groups), others.reshape(deviations.shape)


class PartialShifts:
    """Who of each fleet shifted together, while the others, who alone tell what a day does to all, did not.

    fleet : of each stream, numbers from 0; shifted : shape (streams,); rounds : in which that shows, the latest ones
    The streams of a fleet are cut in two where the sum of squares within is smallest, by means over the latest rounds
    of what their levels and responses do not explain. Both parts are told apart if they are separated by SEPARATION.
    The part that shifted is the other one than that whose effect is likelier by the effects before.
    """

    def __init__(self, fleet: Integers) -> None:
        self.fleet = fleet
        self.fleets = int(fleet.max(initial=0)) + 1
        self.shifted = np.zeros(len(fleet), np.bool_)
        self.rounds = np.ones(self.fleets, np.int64)
        self.residuals = np.full((WINDOWS[-1], len(fleet)), np.nan)
        self.effects = np.full((WINDOWS[-1], self.fleets, 2), np.nan)  # and what they were slowly
        self.moves = np.zeros((2, self.fleets))  # sum and number of squares of effects less what they were slowly

    def put(self, fleets: Integers, other: "PartialShifts") -> None:
        """Takes these fleets from another one, which is of them alone."""
        streams = np.isin(self.fleet, fleets)
        self.shifted[streams], self.residuals[:, streams] = other.shifted, other.residuals
        self.effects[:, fleets], self.moves[:, fleets] = other.effects, other.moves
        self.rounds[fleets] = other.rounds

    def restart(self, streams: Integers) -> None:
        """Their levels begin anew."""
        self.shifted[streams] = False
        self.residuals[:, streams] = np.nan

    def take(self, residuals: Floats, scale: Floats, rho: Floats, effect: Floats, slow: Floats) -> bool:
        """Whether others have shifted than in the round before.

        residuals, scale, rho : of each stream, what is not explained beside these effects, NaN for none, the scale of
            its innovations, NaN if it is not known, and the correlation of neighbours
        effect, slow : of each fleet, in this round, and what it was slowly before
        """
        self.residuals = np.concatenate([residuals[None], self.residuals[:-1]])
        self.effects = np.concatenate([np.stack([effect, slow], axis=1)[None], self.effects[:-1]])
        before = self.shifted
        self.shifted = np.zeros(len(residuals), np.bool_)
        for number in range(self.fleets):
            streams = np.flatnonzero(self.fleet == number)
            if len(streams) >= 2 * MIN_IN_PART:
                self._cut(number, streams, scale[streams], float(rho[streams].mean()))
        self.moves += np.where(np.isfinite(effect), [(effect - slow) ** 2, np.ones(self.fleets)], 0.0)
        return bool((before != self.shifted).any())

    def _cut(self, number: int, streams: Integers, scale: Floats, rho: float) -> None:
        usual = float(np.median(scale)) if np.isfinite(scale).all() else float(np.nanmedian([*scale, np.inf]))
        if not 0 < usual < np.inf:
            return
        for rounds in WINDOWS:
            values = self.residuals[:rounds, streams]
            seen = np.isfinite(values)
            count = seen.sum(axis=0)
            inside = np.flatnonzero(2 * count >= rounds)
            means = np.where(seen, values, 0.0).sum(axis=0)[inside] / count[inside]
            upper = _upper_part(means, usual * min((1 - rho**2) ** -0.5, 1 / (1 - rho) / rounds**0.5))
            if upper is None:
                continue
            effects, slow = self.effects[:rounds, number, 0].mean(), self.effects[rounds - 1, number, 1]
            square, times = self.moves[:, number]
            variance = (square + usual**2) / (times + 1)
            costs = [
                (effects + means[part].mean() - slow) ** 2 / (2 * variance) - np.log(part.sum())
                for part in (upper, ~upper)
            ]
            self.shifted[streams[inside[upper if costs[0] > costs[1] else ~upper]]] = True
            self.rounds[number] = rounds
            return


@dataclass(slots=True)
class CommonEffect:
    """What the machines of each group have in common, day by day: the median of their deviations.

    It is taken off the values before these are judged, and is a stream of its own: a change there is a platform event.
    groups : of each stream, numbers from 0, shape (streams,)
    effect, slow : of each group, the latest effect and its slow part; 0 before there are enough machines
    here  : whether enough of its machines had a value on the latest day
    parts : the machines that shifted together, which do not count
    """

    groups: Integers
    effect: Floats = field(init=False)
    slow: Floats = field(init=False)
    days: Floats = field(init=False)
    here: Booleans = field(init=False)
    parts: PartialShifts = field(init=False)

    def __post_init__(self) -> None:
        self.parts = PartialShifts(self.groups)
        self.effect, self.slow, self.days = np.zeros((3, self.parts.fleets))
        self.here = np.zeros(self.parts.fleets, np.bool_)

    def take(
        self, deviations: Floats, residuals: Callable[[Floats], tuple[Floats, Floats, Floats]] | None = None
    ) -> Floats:
        """Quick and slow part of the effect of a day, by its `deviations`, of each stream, shape (streams, 2).

        residuals : by such parts, `ChangeEvidence.residuals`; without, all machines count
        Where too few machines have a value, the effect is what it was before.
        """
        found = medians(np.where(self.parts.shifted, np.nan, deviations), self.groups)[0]
        if residuals is not None:
            effect = np.where(np.isfinite(found), found, self.effect)
            trial = np.stack([effect - self.slow, self.slow], axis=1)[self.groups]
            if self.parts.take(*residuals(trial), effect, self.slow):
                found = medians(np.where(self.parts.shifted, np.nan, deviations), self.groups)[0]
        self.here = np.isfinite(found)
        self.effect = np.where(self.here, found, self.effect)
        self.days += self.here
        gain = self.here / np.clip(self.days, 1.0, SLOW_DAYS)
        self.slow = self.slow + gain * (self.effect - self.slow)
        return np.stack([self.effect - self.slow, self.slow], axis=1)[self.groups]

    def put(self, groups: Integers, other: "CommonEffect") -> None:
        """Takes these groups from another one, which is of them alone."""
        for name in ("effect", "slow", "days", "here"):
            getattr(self, name)[groups] = getattr(other, name)
        self.parts.put(groups, other.parts)


def _upper_part(values: Floats, scale: float) -> Booleans | None:
    """The larger values, where they are a part that is told apart from the others; scale : of a value, at least."""
    least = max(MIN_IN_PART, int(np.ceil(MIN_PART * len(values))))
    if len(values) < 2 * least or float(np.var(values)) < MIN_PART * (1 - MIN_PART) * (SEPARATION * scale) ** 2:
        return None
    order = np.argsort(values)
    x = values[order] - values.mean()
    below = np.arange(least, len(x) - least + 1)
    sums, squares = np.cumsum(x), np.cumsum(x * x)
    low, high = sums[below - 1] / below, (sums[-1] - sums[below - 1]) / (len(x) - below)
    within = squares[-1] - below * low**2 - (len(x) - below) * high**2
    best = int(within.argmin())
    cut = int(below[best])
    parts = x[:cut], x[cut:]
    spread = max(scale, float(np.sqrt(np.mean([np.var(part, ddof=1) for part in parts]))))
    if high[best] - low[best] < SEPARATION * spread:
        return None
    upper = np.zeros(len(x), np.bool_)
    upper[order[cut:]] = True
    return upper


def limited(deviations: Floats) -> tuple[Floats, Floats]:
    """The deviations, far ones drawn in, and the robust standard deviation of each stream, 0 if there is none."""
    ranked = np.sort(np.abs(deviations), axis=0)  # NaN last
    count = np.isfinite(deviations).sum(axis=0)
    middle = np.minimum(np.maximum(count - 1, 0) // 2, len(ranked) - 1)
    scale = np.where(count > 0, SD_OF_MAD * ranked[middle, np.arange(ranked.shape[1])], 0.0)
    return np.clip(deviations, -FAR * scale, FAR * scale), scale


def others_on_days(deviations: Floats, group: Integers, order: Integers | None = None) -> Floats:
    """For each day and stream the median of the others of its group, NaN if there are too few."""
    return medians(deviations, group, order)[1]


def share_of(deviations: Floats, group: Integers, level: float = LEVEL) -> float:
    """The share of the medians of others that is taken off, in [0, 1]: 0 if it is not above 0 at this level."""
    return _share_by(deviations, others_on_days(deviations, group), level)[0]


def _share_by(
    deviations: Floats, others: Floats, level: float = LEVEL, drawn_in: tuple[Floats, Floats] | None = None
) -> tuple[float, float]:
    """The share by medians of others, and the sum of squares that it explains, in variances of a stream.

    drawn_in : `limited` deviations, where they are known
    """
    x, scale = limited(deviations) if drawn_in is None else drawn_in
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(np.isfinite(x) & np.isfinite(others) & (scale > 0), 1 / scale**2, 0.0)
    x, o = np.nan_to_num(x), np.nan_to_num(others)
    products, squares = (weight * x * o).sum(axis=1), (weight * o * o).sum(axis=1)
    days = np.flatnonzero(squares > 0)
    total = float(squares.sum())
    if len(days) < 2 * BLOCKS:
        return 0.0, 0.0
    share = float(products.sum()) / total
    rest = [float((products[part] - share * squares[part]).sum()) for part in np.array_split(days, BLOCKS)]
    error = float(np.sqrt(np.square(rest).sum() * BLOCKS / (BLOCKS - 1))) / total
    if share <= stdtrit(BLOCKS - 1, 1 - level) * error:
        return 0.0, 0.0
    return min(share, 1.0), share * float(products.sum())


def found_groups(deviations: Floats, node: Integers, changed: Booleans) -> tuple[Integers, float]:
    """Groups of whole nodes whose machines wander together, and their share; none and 0 if nothing shows any.

    node : number of each stream's node, from 0; changed : streams whose level seems to have changed, which say nothing:
    a fault of several nodes is no group
    Groups come from every second stretch of MEAN_DAYS, and which of the numbers of groups is right, if any, from the
    others, so that no group explains the days that it was made of.
    """
    nothing: Integers = np.full(len(node), -1, np.int64)
    stretch = np.arange(len(deviations)) // MEAN_DAYS
    asked = np.where(changed, np.nan, deviations)
    seen = asked[stretch % 2 == 0]
    if len(seen) < MIN_MEANS * MEAN_DAYS or int(node.max()) < 2 * MIN_NODES - 1:
        return nothing, 0.0
    seen, left = limited(seen)[0], asked[stretch % 2 == 1]
    tried = list(_cuts(_likeness(seen, node), node))
    best, share, most = nothing, 0.0, 0.0
    order, drawn_in = np.argsort(left, axis=1), limited(left)
    for group in tried:
        if _share_by(left, others_on_days(left, group, order), drawn_in=drawn_in)[0] == 0:
            continue
        better = group
        for _ in range(_PASSES):
            better = _reassigned(seen, node, better, MIN_SHARE)
        its_share, gain = _share_by(left, others_on_days(left, better, order), LEVEL / len(tried), drawn_in)
        if gain > most:
            best, share, most = better, its_share, gain
    for _ in range(_PASSES if share > 0 else 0):
        best = _reassigned(deviations, node, best, share / 2)
    return (best, share) if best.max() >= 0 else (best, 0.0)


def _reassigned(deviations: Floats, node: Integers, group: Integers, share: float) -> Integers:
    """Each node in the group whose others explain most of it, by all days; in none for less than a share."""
    x, scale = limited(deviations)
    x = np.nan_to_num(x / np.where(scale > 0, scale, np.inf))
    whole, others = medians(deviations, group)
    best, most = np.full(len(node), -1, np.int64), np.zeros(len(node))
    for number in range(whole.shape[-1]):
        effect = np.nan_to_num(np.where(group == number, others, whole[:, [number]]))
        products, squares = (x * effect * scale).sum(axis=0), np.square(effect).sum(axis=0)
        products, squares = (np.bincount(node, weights=each)[node] for each in (products, squares))
        gain = np.divide(np.maximum(products, 0.0) ** 2, squares, out=np.zeros(len(node)), where=squares > 0)
        better = (gain > most) & (products >= share * squares)
        best, most = np.where(better, number, best), np.where(better, gain, most)
    return _drop_small_groups(best, node)


def _drop_small_groups(group: Integers, node: Integers) -> Integers:
    number = np.full(len(group), -1, np.int64)
    for each in np.unique(group[group >= 0]):
        inside = group == each
        if inside.sum() >= MIN_STREAMS and len(np.unique(node[inside])) >= MIN_NODES:
            number[inside] = number.max() + 1
    return number


def _likeness(deviations: Floats, node: Integers) -> Floats:
    """Correlations of the nodes' means over MEAN_DAYS, shape (nodes, nodes); 0 if nothing is known of a pair."""
    days = len(deviations) // MEAN_DAYS * MEAN_DAYS
    nodes = int(node.max()) + 1
    parts = deviations[:days].reshape(-1, MEAN_DAYS, len(node))
    order = np.argsort(node, kind="stable")
    starts = np.flatnonzero(np.diff(node[order], prepend=-1))
    sums, number = np.zeros((nodes, len(parts))), np.zeros((nodes, len(parts)))
    sums[node[order[starts]]] = np.add.reduceat(np.nansum(parts, axis=1).T[order], starts, axis=0)
    number[node[order[starts]]] = np.add.reduceat(np.isfinite(parts).sum(axis=1).T[order], starts, axis=0)
    means, count = (sums / np.maximum(number, 1)).T, number.T
    here = (count > 0).astype(np.float64)
    means -= here * (means.sum(axis=0) / np.maximum(here.sum(axis=0), 1))
    products, squares = means.T @ means, np.square(means).T @ here
    return np.asarray(products / np.sqrt(np.maximum(squares * squares.T, 1e-300)), dtype=np.float64)


def _cuts(likeness: Floats, node: Integers) -> Iterator[Integers]:
    """Groups of streams by average linkage, for each number of groups that is tried and leaves any."""
    nodes = len(likeness)
    distance = np.clip(1 - (likeness + likeness.T) / 2, 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(distance[np.triu_indices(nodes, 1)], method="average")
    for count in _COUNTS:
        if MIN_NODES * count > nodes:
            return
        group = _drop_small_groups(hierarchy.fcluster(tree, count, criterion="maxclust")[node].astype(np.int64), node)
        if group.max() > 0 or (group.max() == 0 and (group < 0).any()):
            yield group


#: Half of mean squared differences over these days: of the first, noise of neighbours is gone, of the second a wander.
NEAR_DAYS, FAR_DAYS = (6, 7, 8), (15, 16, 17, 18)
#: Of a wander, the correlation of neighbours that is assumed, the largest that is promised; and its long-run variance.
WANDER_RHO = 0.9
LONG_RUN = (1 + WANDER_RHO) / (1 - WANDER_RHO)


def hidden_wander(deviations: Floats, rho: Floats, level: float = LEVEL) -> float:
    """The variance of a wander under the noise of a fleet, in variances of a stream; 0 if none shows at this level.

    rho : of each stream, the correlation of neighbours that is known of, shape (streams,)
    A mixture of noise and wander has hardly any correlation of neighbours, but differences that go on growing with the
    days between: here by how much more than neighbours of that correlation would have, a value a stream. The mean is
    that without the largest and smallest quarter, as some may have changed; tested as Yuen does, Biometrika 61, 1974.
    """
    x, scale = limited(deviations)
    chosen = scale > 0
    x, rho = x[:, chosen] / scale[chosen], rho[chosen]

    def off(days: tuple[int, ...]) -> Floats:
        """Half of the mean square of the differences, and how many they are."""
        parts = [np.square(x[lag:] - x[:-lag]) / 2 for lag in days if lag < len(x)]
        every = np.concatenate([np.zeros((0, x.shape[1])), *parts])
        count = np.isfinite(every).sum(axis=0)
        return np.where(count > 0, np.nansum(every, axis=0) / np.maximum(count, 1), np.nan)

    near, far, neighbours = off(NEAR_DAYS), off(FAR_DAYS), off((1,))
    of_neighbours = neighbours / (1 - rho) * (rho ** np.mean(NEAR_DAYS) - rho ** np.mean(FAR_DAYS))
    excess = far - near - of_neighbours
    excess = np.sort(excess[np.isfinite(excess)])
    cut = len(excess) // 4
    count = len(excess) - 2 * cut
    if count < MIN_STREAMS:
        return 0.0
    kept = excess[cut : cut + count]
    mean = float(kept.mean())
    spread = float(np.clip(excess, kept[0], kept[-1]).std(ddof=1)) * np.sqrt(len(excess) - 1)
    if mean <= stdtrit(count - 1, 1 - level) * spread / np.sqrt(count * (count - 1)):
        return 0.0
    return mean / float(WANDER_RHO ** np.mean(NEAR_DAYS) - WANDER_RHO ** np.mean(FAR_DAYS))

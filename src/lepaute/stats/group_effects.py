"""What the machines of a group share day by day, beyond what all of a fleet share: how large it is, and who is a group.

A deviation of machine i on day t is R(t) + e(i, t), with R the effect of its group. It is predicted by the median of the
deviations of the *others* of the group, times a share: the regression of deviations on these medians, about
s^2 / (s^2 + v) for an effect of variance s^2 and medians with an error of variance v. So neither a machine's own change
nor a broken neighbour is taken off. Deviations have shape (days, streams), NaN where there is no value. A group is a
number from 0 of each stream, shape (streams,), -1 for none.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

#: Others without whom nothing is said of a machine's group.
FEWEST_OTHERS = 2
#: Nodes and streams of a group that is found.
FEWEST_NODES, FEWEST_STREAMS = 2, 3
#: One-sided, of taking a share that is none for one.
LEVEL = 0.01
#: Stretches of days that count as independent.
BLOCKS = 8
#: Groups are sought in means of so many days: what wanders slowly is what matters.
MEAN_DAYS = 5
#: Means of every second stretch without which no group is sought, and numbers of groups that are tried.
FEWEST_MEANS = 5
_COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: In robust standard deviations of a stream: what is further out counts as if it were there.
FAR = 3.0


def members_of(group: Integers) -> Integers:
    """The streams of each group, shape (groups, most of a group), -1 where there are no more."""
    sizes = np.bincount(group[group >= 0], minlength=1)
    members: Integers = np.full((len(sizes), max(int(sizes.max()), 1)), -1, np.int64)
    order = np.argsort(group, kind="stable")[int((group < 0).sum()) :]
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members[group[order], place] = order
    return members


def medians(deviations: Floats, members: Integers) -> tuple[Floats, Floats]:
    """Of a day: the median of each group, shape (groups,), and of the others of its group for each stream.

    deviations : shape (streams,); NaN where fewer than FEWEST_OTHERS, of a group one more, have a value
    """
    values = np.where(members >= 0, deviations[members], np.nan)
    others = np.full(deviations.shape, np.nan)
    whole = _median(values, FEWEST_OTHERS + 1)
    width = members.shape[1]
    without = np.repeat(values[:, None, :], width, axis=1)
    without[:, np.arange(width), np.arange(width)] = np.nan
    of_others = _median(without, FEWEST_OTHERS)
    others[members[members >= 0]] = of_others[members >= 0]
    return whole, others


def _median(values: Floats, fewest: int) -> Floats:
    """Along the last axis, of those that are there; NaN for fewer than so many."""
    ranked = np.sort(values, axis=-1)  # NaN last
    count = np.isfinite(values).sum(axis=-1)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[-1] - 1)
    pair = np.take_along_axis(ranked, np.stack([low, high], axis=-1), axis=-1)
    return np.asarray(np.where(count >= fewest, pair.mean(axis=-1), np.nan), dtype=np.float64)


def limited(deviations: Floats) -> tuple[Floats, Floats]:
    """The deviations, far ones drawn in, and the robust standard deviation of each stream, 0 where there is none."""
    spread = 1.4826 * _median(np.abs(deviations).T, FEWEST_OTHERS)
    scale = np.nan_to_num(spread)
    return np.clip(deviations, -FAR * scale, FAR * scale), scale


def others_on_days(deviations: Floats, group: Integers) -> Floats:
    """For each day and stream the median of the others of its group, NaN where there are too few."""
    members = members_of(group)
    return np.array([medians(day, members)[1] for day in deviations]).reshape(deviations.shape)


def share_of(deviations: Floats, group: Integers, level: float = LEVEL) -> float:
    """The share of the medians of others that is taken off, in [0, 1]: 0 where it is not above 0 at this level."""
    return share_by(deviations, others_on_days(deviations, group), level)[0]


def share_by(deviations: Floats, others: Floats, level: float = LEVEL) -> tuple[float, float]:
    """The share by medians of others, and the sum of squares that it explains, in variances of a stream."""
    x, scale = limited(deviations)
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


def found_groups(deviations: Floats, node: Integers) -> tuple[Integers, float]:
    """Groups of whole nodes whose machines wander together, and their share; none and 0 where nothing shows any.

    node : number of each stream's node, from 0
    Groups come from every second stretch of MEAN_DAYS, and which of the numbers of groups is right, if any, from the
    others, so that no group explains the days that it was made of.
    """
    nothing: Integers = np.full(len(node), -1, np.int64)
    stretch = np.arange(len(deviations)) // MEAN_DAYS
    seen = deviations[stretch % 2 == 0]
    if len(seen) < FEWEST_MEANS * MEAN_DAYS or int(node.max()) < 2 * FEWEST_NODES - 1:
        return nothing, 0.0
    tried = list(_cuts(_likeness(limited(seen)[0], node), node))
    best, share, most = nothing, 0.0, 0.0
    left = deviations[stretch % 2 == 1]
    for group in tried:
        its_share, gain = share_by(left, others_on_days(left, group), LEVEL / len(tried))
        if gain > most:
            best, share, most = group, its_share, gain
    return best, share


def _likeness(deviations: Floats, node: Integers) -> Floats:
    """Correlations of the nodes' means over MEAN_DAYS, shape (nodes, nodes); 0 where nothing is known of a pair."""
    days = len(deviations) // MEAN_DAYS * MEAN_DAYS
    nodes = int(node.max()) + 1
    x = np.nan_to_num(deviations[:days]).reshape(-1, MEAN_DAYS, len(node)).sum(axis=1)
    count = np.isfinite(deviations[:days]).reshape(-1, MEAN_DAYS, len(node)).sum(axis=1).astype(np.float64)
    of_node = np.zeros((len(node), nodes))
    of_node[np.arange(len(node)), node] = 1.0
    count = count @ of_node
    means = np.divide(x @ of_node, count, out=np.zeros(count.shape), where=count > 0)
    here = (count > 0).astype(np.float64)
    means -= here * (means.sum(axis=0) / np.maximum(here.sum(axis=0), 1))
    products, squares = means.T @ means, np.square(means).T @ here
    return np.asarray(products / np.sqrt(np.maximum(squares * squares.T, 1e-300)), dtype=np.float64)


def _cuts(likeness: Floats, node: Integers) -> Iterator[Integers]:
    """Groups of streams by average linkage, for each number of groups that is tried and leaves any."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    nodes = len(likeness)
    distance = np.clip(1 - (likeness + likeness.T) / 2, 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average")
    for count in _COUNTS:
        if FEWEST_NODES * count > nodes:
            return
        label = fcluster(tree, count, criterion="maxclust") - 1
        kept = np.bincount(label) >= FEWEST_NODES
        kept &= np.bincount(label[node], minlength=len(kept)) >= FEWEST_STREAMS
        if kept.sum() < 1 or (kept.sum() == 1 and kept[label].all()):
            continue
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        yield number[label[node]].astype(np.int64)

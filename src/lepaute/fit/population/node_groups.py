"""Which nodes are alike: a Gaussian mixture over nodes, whose number of groups is chosen by BIC; deterministic.

The CPUs of a node belong to one group, and are independent draws from it. Means and covariances are found by
expectation maximisation with the conjugate prior of Fraley & Raftery (Journal of Classification 24, 2007, section 3.2),
which keeps the covariance of a group of few CPUs from collapsing. Everything is done in whitened coordinates, so units
do not matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lepaute.fit.numeric.arrays import Floats, Integers

MOST_GROUPS = 4
#: Nodes, below which there is nothing to be said about groups.
LEAST_NODES = 6
ITERATIONS = 200
TOLERANCE = 1e-8
#: Directions with less than this share of the variance are rounding.
NEGLIGIBLE = 1e-9
#: Weight of the prior of a mean, in observations (Fraley & Raftery's default).
MEAN_PRIOR = 0.01


@dataclass(frozen=True, slots=True)
class Mixture:
    """Groups of nodes, the largest first.

    group_of_node : shape (nodes,)
    bic           : of the best mixture with 1, 2, ... groups; lower is better; NaN where there was none
    """

    group_of_node: Integers
    bic: tuple[float, ...]

    @property
    def groups(self) -> int:
        return int(self.group_of_node.max()) + 1


@dataclass(frozen=True, slots=True)
class _State:
    """A mixture in whitened coordinates: weights (g,), means (g, p), covariances (g, p, p); responsibilities (n, g)."""

    weight: Floats
    mean: Floats
    covariance: Floats
    share: Floats
    log_likelihood: float
    objective: float


def groups_of_nodes(node: Integers, centres: Floats, most: int = MOST_GROUPS) -> Mixture:
    """The groups that the nodes fall in.

    node : shape (CPUs,), from 0, the node of each cpu;  centres : shape (CPUs, p), mean coefficients of each
    Candidates have 1 to `most` groups, of one covariance or each of its own; BIC counts CPUs as observations. A
    candidate with a group to which no node belongs most likely is left out.
    """
    nodes = int(node.max()) + 1
    z = _whitened(centres)
    single = Mixture(np.zeros(nodes, dtype=np.int64), (float("nan"),))
    if z.shape[1] == 0 or nodes < LEAST_NODES:
        return single
    best: tuple[float, Integers] | None = None
    scores = []
    for groups in range(1, min(most, nodes // 2) + 1):
        lowest = float("nan")
        for alike in (True, False) if groups > 1 else (True,):
            state = _best(z, node, groups, alike)
            label = np.argmax(state.share, axis=1)
            if len(np.unique(label)) < groups:
                continue
            score = -2.0 * state.log_likelihood + _parameters(groups, z.shape[1], alike) * np.log(len(z))
            lowest = float(np.fmin(lowest, score))
            if best is None or score < best[0]:
                best = (float(score), label)
        scores.append(lowest)
    assert best is not None  # one group is always a candidate
    return Mixture(_by_size(best[1]), tuple(scores))


def _whitened(centres: Floats) -> Floats:
    """Uncorrelated coordinates of variance one, as many as have any spread."""
    centred = centres - centres.mean(axis=0)
    sd = np.sqrt(np.mean(centred**2, axis=0))
    spread = sd > 1e-12 * np.max(np.abs(centres), axis=0)
    scaled = centred[:, spread] / sd[spread]
    if scaled.shape[1] == 0 or len(scaled) < 3:
        return np.zeros((len(centres), 0))
    values, vectors = np.linalg.eigh(scaled.T @ scaled / len(scaled))
    kept = values > NEGLIGIBLE * values.max()
    whitened: Floats = scaled @ vectors[:, kept] / np.sqrt(values[kept])
    return whitened


def _parameters(groups: int, size: int, alike: bool) -> int:
    return groups - 1 + groups * size + (1 if alike else groups) * size * (size + 1) // 2


def _best(z: Floats, node: Integers, groups: int, alike: bool) -> _State:
    """The best of the states that expectation maximisation reaches from all starts."""
    states = [_maximised(z, node, start, alike) for start in _starts(z, node, groups)]
    return max(states, key=lambda state: state.objective)


def _starts(z: Floats, node: Integers, groups: int) -> Iterator[Floats]:
    """First responsibilities (nodes, groups): nodes cut along each coordinate, at the widest gaps and in equal parts;
    and around nodes far from each other."""
    nodes = int(node.max()) + 1
    if groups == 1:
        yield np.ones((nodes, 1))
        return
    mean = np.column_stack([np.bincount(node, column) / np.bincount(node) for column in z.T])
    for column in (*mean.T, np.sqrt(np.sum(mean**2, axis=1))):
        order = np.argsort(column, kind="stable")
        gaps = np.diff(column[order])
        widest = np.sort(np.argsort(-gaps, kind="stable")[: groups - 1]) + 1
        equal = [nodes * part // groups for part in range(1, groups)]
        for cuts in (widest, equal):
            label = np.zeros(nodes, dtype=np.int64)
            for cut in cuts:
                label[order[cut:]] += 1
            yield np.eye(groups)[label]
    chosen = [int(np.argmin(np.sum(mean**2, axis=1)))]
    while len(chosen) < groups:
        chosen.append(int(np.argmax(_distances(mean, chosen).min(axis=1))))
    yield np.eye(groups)[np.argmin(_distances(mean, chosen), axis=1)]


def _distances(mean: Floats, chosen: list[int]) -> Floats:
    distances: Floats = np.sum((mean[:, None, :] - mean[chosen][None]) ** 2, axis=2)
    return distances


def _maximised(z: Floats, node: Integers, share: Floats, alike: bool) -> _State:
    state = _step(z, node, share, alike)
    for _ in range(ITERATIONS):
        following = _step(z, node, state.share, alike)
        if following.objective < state.objective + TOLERANCE * len(z):
            return max(state, following, key=lambda one: one.objective)
        state = following
    return state


def _step(z: Floats, node: Integers, share: Floats, alike: bool) -> _State:
    """The maximum of the posterior for these responsibilities, and the responsibilities that follow from it."""
    (_, size), groups = z.shape, share.shape[1]
    of_cpu = share[node]
    count = of_cpu.sum(axis=0)
    weight = np.maximum(share.mean(axis=0), 1e-12)
    average = (of_cpu.T @ z) / np.maximum(count, 1e-12)[:, None]
    mean = (count / (count + MEAN_PRIOR))[:, None] * average  # the prior's mean is 0, that of all
    prior = np.eye(size) / groups ** (2.0 / size)
    pull = count * MEAN_PRIOR / (count + MEAN_PRIOR)
    second = ((of_cpu[:, :, None] * z[:, None, :]).reshape(len(z), -1).T @ z).reshape(groups, size, size)
    outer = average[:, :, None] * average[:, None, :]
    scatter = second - (count - pull)[:, None, None] * outer
    freedom = size + 2.0
    if alike:
        pooled = (prior + scatter.sum(axis=0)) / (freedom + len(z) + size + 2.0)
        covariance = np.repeat(pooled[None], groups, axis=0)
    else:
        covariance = (prior[None] + scatter) / (freedom + count + size + 2.0)[:, None, None]
    _, log_determinant = np.linalg.slogdet(covariance)
    inverse = np.linalg.inv(covariance)
    centred = z[None] - mean[:, None, :]
    square = np.sum((centred @ inverse) * centred, axis=2)
    log_density = (-0.5 * (square + log_determinant[:, None] + size * np.log(2 * np.pi))).T
    of_mean = MEAN_PRIOR * np.sum((mean[:, None, :] @ inverse)[:, 0] * mean, axis=1) + log_determinant
    of_covariance = (freedom + size + 1) * log_determinant + np.einsum("ij,gji->g", prior, inverse)
    log_prior = -0.5 * float(np.sum(of_mean) + (of_covariance[0] if alike else np.sum(of_covariance)))
    of_node = np.column_stack([np.bincount(node, column) for column in log_density.T]) + np.log(weight)
    highest = of_node.max(axis=1, keepdims=True)
    total = highest[:, 0] + np.log(np.sum(np.exp(of_node - highest), axis=1))
    likelihood = float(np.sum(total))
    return _State(weight, mean, covariance, np.exp(of_node - total[:, None]), likelihood, likelihood + log_prior)


def _by_size(label: Integers) -> Integers:
    """Labels renumbered: the largest group is 0; of equal ones, that with the first node."""
    used, first, count = np.unique(label, return_index=True, return_counts=True)
    order = np.lexsort((first, -count))
    place = {int(used[old]): new for new, old in enumerate(order)}
    return np.array([place[int(one)] for one in label], dtype=np.int64)

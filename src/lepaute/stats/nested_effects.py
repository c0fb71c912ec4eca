"""Variances of effects that are nested: of a block, of a launch in it, of a process in a launch.

By moments, for any number of processes in a launch and of launches in a block: the sums of squares between blocks,
between launches and between processes are set equal to their expectations (Henderson's first method, Biometrics 9,
1953, with the kinds of processes taken off; for balanced data, the analysis of variance).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NestedEffects:
    """Standard deviations of the three effects, and the degrees of freedom that each rests on.

    An effect that the data cannot tell from the one below it is 0 here, and part of that of the wider group: processes
    that were all started by themselves, or one launch a block.
    """

    block_sd: float
    launch_sd: float
    process_sd: float
    block_degrees_of_freedom: int
    launch_degrees_of_freedom: int
    process_degrees_of_freedom: int


def nested_effects(
    values: Floats,
    block: Integers,
    launch: Integers,
    kind: Integers,
    scatter: Floats | None = None,
    weight: Floats | None = None,
) -> NestedEffects:
    """Splits the variation of `values` between processes of the same kind; all arrays of shape (processes,).

    kind    : what differs lastingly, such as a core in a probe: only differences from the mean of a kind count
    scatter : variances of the errors of the single values, which are no effects of processes; 0 by default
    weight  : by which processes count in the sums of squares, on any scale; all alike by default. The variances are
              unbiased with any weights where they are the same for all processes; where they are not, they are those of
              processes as the weights choose them
    The sum of the three variances, that of a single process, is unbiased; a negative estimate of the variance of a
    wider group is set to 0 at the cost of the narrower ones, so that the sum stays. Where `scatter` explains the whole
    sum, its standard error is left: few values cannot show that processes are alike.
    Raises ValueError with fewer than two blocks, or where no kind occurs twice.
    """
    block, launch, kind = (np.unique(each, return_inverse=True)[1].astype(np.int64) for each in (block, launch, kind))
    process = np.arange(len(values))
    blocks, launches, kinds = (int(each.max(initial=-1)) + 1 for each in (block, launch, kind))
    if blocks < 2 or len(values) == kinds:
        raise ValueError("there are no two blocks to compare")
    weight = np.ones(len(values)) if weight is None else weight / np.mean(weight)
    scatter = np.zeros(len(values)) if scatter is None else scatter
    size = np.bincount(kind, weight)
    rest = values - (np.bincount(kind, weight * values) / size)[kind]
    layers = [block, launch, process]
    known = [True, launches > blocks, len(values) > launches]
    used = [layer for layer, is_known in zip(layers, known, strict=True) if is_known]
    expected = np.array([[_expected(one, other, kind, weight) for other in used] for one in used])
    weighted = weight * rest
    squares = np.array([np.sum(np.bincount(layer, weighted) ** 2 / np.bincount(layer, weight)) for layer in used])
    squares -= np.array([_expected(one, process, kind, weight, scatter) for one in used])
    solved = np.zeros(3)
    solved[known] = np.linalg.lstsq(expected, squares, rcond=1e-9)[0]
    variances: list[float] = []
    left = max(0.0, float(solved.sum()))
    for within in (solved[0], solved[0] + solved[1], np.inf):
        variances.append(float(np.clip(within - sum(variances), 0.0, left)))
        left -= variances[-1]
    alike, alike_launches = _alike(weight), _alike(np.bincount(launch, weight).astype(np.float64))
    free = len(values) - kinds
    groups = len({tuple(sorted(kind[members])) for members in _members(launch)})
    own = max(1.0, alike * (free - launches + groups))
    error = float(np.sum(weight * rest**2)) / free * float(np.sqrt(2.0 / (alike * free)))
    mean_scatter = float(np.average(scatter, weights=weight))
    if mean_scatter > 0.0 and free > 1 and error > sum(variances):
        # Scatter that would explain everything leaves what the variance of a process is uncertain by.
        variances[2] += error - sum(variances)
        own = alike * free
    block_variance, launch_variance, process_variance = variances
    least, most = blocks - 1, max(1.0, alike_launches * (launches - blocks - groups + 1))
    # The variance of launches is what that of their means has beyond the processes' share: known the less, the larger
    # this is (Satterthwaite 1946, Biometrics Bulletin 2), but no less than that of blocks, nor with fewer than three.
    of_means = launch_variance + (process_variance + mean_scatter) * launches / len(values)
    share = launch_variance / of_means if of_means > 0 else 1.0
    of_values = process_variance + mean_scatter
    own_share = process_variance / of_values if of_values > 0 else 1.0
    return NestedEffects(
        float(np.sqrt(block_variance)),
        float(np.sqrt(launch_variance)),
        float(np.sqrt(process_variance)),
        least,
        int(max(min(max(least, 3), most), most * share**2)),
        int(max(min(max(least, 3), own), own * own_share**2)),
    )


def _expected(one: Integers, other: Integers, kind: Integers, weight: Floats, variance: Floats | None = None) -> float:
    """What effects of the groups `other`, of unit variance or of these, shape (groups,), add to the sum of squares
    between the groups `one`, with the means of the kinds taken off: |N^-1/2 (Z' Y - Z' W D^-1 W' Y) S^1/2|^2 with the
    weighted indicators Z, Y and W of the groups and the kinds, and diagonal N and D, their sums."""
    others = int(other.max()) + 1
    variance = np.ones(others) if variance is None else variance
    z, y = _sums(one, kind, weight), _sums(other, kind, weight)
    sums, size = np.bincount(one, weight), np.bincount(kind, weight)
    both, position = np.unique(one * others + other, return_inverse=True)
    plain = float(np.sum(np.bincount(position, weight) ** 2 * variance[both % others] / sums[both // others]))
    crossed = float(np.sum((weight * variance[other] / sums[one])[:, None] * z[one] * y[other] / size))
    within = (z / sums[:, None]).T @ z / size
    return plain - 2.0 * crossed + float(np.sum(within * ((y * variance[:, None]).T @ y / size).T))


def _alike(weight: Floats) -> float:
    """Share of the values that would say as much if all weighed the same (Kish 1965, Survey Sampling, 11.2)."""
    return float(np.sum(weight) ** 2 / np.sum(weight**2)) / len(weight)


def _sums(group: Integers, kind: Integers, weight: Floats) -> Floats:
    result: Floats = np.zeros((int(group.max()) + 1, int(kind.max()) + 1))
    np.add.at(result, (group, kind), weight)
    return result


def _members(group: Integers) -> list[Integers]:
    order = np.argsort(group, kind="stable").astype(np.int64)
    return list(np.split(order, np.cumsum(np.bincount(group))[:-1]))

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
    values: Floats, block: Integers, launch: Integers, kind: Integers, scatter: float = 0.0
) -> NestedEffects:
    """Splits the variation of `values` between processes of the same kind; all arrays of shape (processes,).

    kind    : what differs lastingly, such as a core in a probe: only differences from the mean of a kind count
    scatter : mean variance of the errors of single values, which is no effect of a process
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
    size = np.bincount(kind)
    rest = values - (np.bincount(kind, values) / size)[kind]
    layers = [block, launch, process]
    known = [True, launches > blocks, len(values) > launches]
    used = [layer for layer, is_known in zip(layers, known, strict=True) if is_known]
    expected = np.array([[_expected(one, other, kind, size) for other in used] for one in used])
    squares = np.array([float(np.sum(np.bincount(layer, rest) ** 2 / np.bincount(layer))) for layer in used])
    squares -= scatter * np.array([_expected(one, process, kind, size) for one in used])
    solved = np.zeros(3)
    solved[known] = np.linalg.lstsq(expected, squares, rcond=1e-9)[0]
    variances: list[float] = []
    left = max(0.0, float(solved.sum()))
    for within in (solved[0], solved[0] + solved[1], np.inf):
        variances.append(float(np.clip(within - sum(variances), 0.0, left)))
        left -= variances[-1]
    free = len(values) - kinds
    groups = len({tuple(sorted(kind[members])) for members in _members(launch)})
    own = max(1, free - launches + groups)
    error = float(np.sum(rest**2)) / free * float(np.sqrt(2.0 / free))
    if scatter > 0.0 and free > 1 and error > sum(variances):
        # Scatter that would explain everything leaves what the variance of a process is uncertain by.
        variances[2] += error - sum(variances)
        own = free
    block_variance, launch_variance, process_variance = variances
    least, most = blocks - 1, max(1, launches - blocks - groups + 1)
    # The variance of launches is what that of their means has beyond the processes' share: known the less, the larger
    # this is (Satterthwaite 1946, Biometrics Bulletin 2), but no less than that of blocks, nor with fewer than three.
    of_means = launch_variance + (process_variance + scatter) * launches / len(values)
    share = launch_variance / of_means if of_means > 0 else 1.0
    of_values = process_variance + scatter
    own_share = process_variance / of_values if of_values > 0 else 1.0
    return NestedEffects(
        float(np.sqrt(block_variance)),
        float(np.sqrt(launch_variance)),
        float(np.sqrt(process_variance)),
        least,
        max(min(max(least, 3), most), int(most * share**2)),
        max(min(max(least, 3), own), int(own * own_share**2)),
    )


def _expected(one: Integers, other: Integers, kind: Integers, size: Integers) -> float:
    """What a unit of variance of the effect of the groups `other` adds to the sum of squares between the groups `one`,
    with the means of the kinds taken off: |N^-1/2 Z' (I - W D^-1 W') Y|^2 with the indicators Z, Y and W."""
    z, y, members = _counts(one, kind), _counts(other, kind), np.bincount(one)
    both, count = np.unique(one * (int(other.max()) + 1) + other, return_counts=True)
    plain = float(np.sum(count**2 / members[both // (int(other.max()) + 1)]))
    crossed = float(np.sum((z[one] * y[other]) / size / members[one][:, None]))
    return plain - 2.0 * crossed + float(np.sum(((z / members[:, None]).T @ z / size) * (y.T @ y / size).T))


def _counts(group: Integers, kind: Integers) -> Floats:
    result: Floats = np.zeros((int(group.max()) + 1, int(kind.max()) + 1))
    np.add.at(result, (group, kind), 1.0)
    return result


def _members(group: Integers) -> list[Integers]:
    order = np.argsort(group, kind="stable").astype(np.int64)
    return list(np.split(order, np.cumsum(np.bincount(group))[:-1]))

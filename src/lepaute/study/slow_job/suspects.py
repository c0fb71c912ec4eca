"""Which pieces of a slow run take longer than chance explains: groups of pieces, each tested against the usual runs.

Computing of a node, a core or a call site, and messages of a link, are held against the other nodes, cores, sites or
links of the same run: what all have in common on a day is no excuse for, and no charge against, any of them. What takes
longer everywhere is tested as it is, after the groups that stand out have been taken away. Student's test of a further
run, one-sided, with variances moderated where at least five groups are alike (`stats.change_evidence.moderated`); all
groups together have the level (Bonferroni).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray
from scipy.special import stdtr

from lepaute.stats.change_evidence import moderated
from lepaute.study.slow_job.course import ASLEEP, CALL, COLLECTIVE, COMPUTE, MESSAGE, NO_CORE
from lepaute.study.slow_job.matching import Pieces

#: Chance that a run in which nothing has changed gets a suspect.
LEVEL = 0.05
#: Of the usual time of the ranks concerned: what takes less, usually and now, is not tested.
LEAST_SHARE = 0.005
#: Spreads of so few runs may be 0 by chance: the least, relative to the time of the group, or of the run.
LEAST_SPREAD, LEAST_WAITING_SPREAD = 0.001, 0.005
#: How many times as likely an explanation is than another one that it excludes: log 20.
LIKELIER = 3.0
MOST_SUSPECTS = 4
EVERYWHERE, SITE, NODE, RANK, LINK, OPERATION = ("everywhere", "call site", "node", "rank", "link", "operation")
_WAITS = (NO_CORE, ASLEEP)


@dataclass(frozen=True, slots=True)
class Group:
    """Pieces that one cause would make slower.

    part  : of a run (`course`);  axis : EVERYWHERE, SITE, ...;  name : of the site or operation
    place : nodes of the machine, or the rank; empty everywhere
    pieces: indices
    """

    part: str
    axis: str
    name: str
    place: tuple[int, ...]
    pieces: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A group that takes longer than chance explains.

    p_value : of its test, times the number of groups
    ratio   : of its time to the usual;  usual_s, extra_s : that, and what is more, of all its ranks together
    others  : groups that explain the same as well
    tests   : how many groups were tested
    """

    group: Group
    p_value: float
    ratio: float
    usual_s: float
    extra_s: float
    others: tuple[Group, ...]
    tests: int


def groups_of(pieces: Pieces, nodes: Sequence[int]) -> list[Group]:
    """All groups that may be tested; nodes: of each rank. Of groups with the same pieces the first stays."""
    node_of = numpy.array(nodes)[pieces.rank]
    groups: list[Group] = []
    seen: set[tuple[str, bytes]] = set()
    for group in _all_groups(pieces, node_of):
        key = group.pieces.tobytes()
        if len(group.pieces) and (group.part, key) not in seen:
            seen.add((group.part, key))
            groups.append(group)
    return groups


def _all_groups(pieces: Pieces, node_of: NDArray[Any]) -> Iterator[Group]:
    def among(part: str, rows: NDArray[Any], axis: str, values: NDArray[Any]) -> Iterator[Group]:
        for value in numpy.unique(values).tolist():
            yield Group(part, axis, "", (value,), rows[values == value])

    for part in (COMPUTE, COLLECTIVE):
        rows = numpy.flatnonzero(pieces.of(part))
        yield Group(part, EVERYWHERE, "", (), rows)
        for code in numpy.unique(pieces.what[rows]).tolist():
            axis = SITE if part == COMPUTE else OPERATION
            yield Group(part, axis, pieces.whats[code][1], (), rows[pieces.what[rows] == code])
    for part in (COMPUTE, *_WAITS):
        rows = numpy.flatnonzero(pieces.of(part))
        if part != COMPUTE:
            yield Group(part, EVERYWHERE, "", (), rows)
        yield from among(part, rows, NODE, node_of[rows])
        yield from among(part, rows, RANK, pieces.rank[rows])
    rows = numpy.flatnonzero(pieces.of(MESSAGE, CALL))
    yield Group(MESSAGE, EVERYWHERE, "", (), rows)
    rows = rows[pieces.link[rows, 0] >= 0]
    ends = pieces.link[rows]
    for low, high in numpy.unique(ends, axis=0).tolist():
        yield Group(MESSAGE, LINK, "", (low, high), rows[(ends[:, 0] == low) & (ends[:, 1] == high)])
    for node in numpy.unique(ends).tolist():
        yield Group(MESSAGE, NODE, "", (node,), rows[(ends == node).any(axis=1)])


@dataclass(frozen=True, slots=True)
class _Tests:
    """Of each group: p-value of one test, log likelihood ratio against chance, ratio and excess; all (groups,)."""

    p_value: NDArray[Any]
    evidence: NDArray[Any]
    ratio: NDArray[Any]
    usual_s: NDArray[Any]
    extra_s: NDArray[Any]


class _Sums:
    """Sums of the pieces of each group in each run, and of all that it is held against."""

    def __init__(self, pieces: Pieces, groups: Sequence[Group], weight_s: NDArray[Any]) -> None:
        self.groups, usual = groups, float(pieces.time_s[1:].mean())
        self.sums = numpy.array([weight_s[group.pieces].sum(axis=0) for group in groups])
        totals = {part: weight_s[pieces.of(part)].sum(axis=0) for part in (COMPUTE, COLLECTIVE, *_WAITS)}
        totals[MESSAGE] = weight_s[pieces.of(MESSAGE, CALL)].sum(axis=0)
        self.totals = numpy.array([totals[group.part] for group in groups])
        ranks = numpy.array([len(numpy.unique(pieces.rank[group.pieces])) for group in groups])
        self.times_s = ranks * usual
        self.is_wait = numpy.array([group.part in _WAITS for group in groups])
        self.contrasted = numpy.array([group.axis not in (EVERYWHERE, OPERATION) for group in groups]) & ~self.is_wait

    def statistics(self) -> NDArray[Any]:
        """Of each group in each run, shape (groups, 1 + usual): log of its time, over that of the others where there
        are others; of waits their share of the time."""
        mean = self.sums[:, 1:].mean(axis=1)
        log = _log(self.sums, mean)
        others = self.totals - self.sums
        has_others = self.contrasted & (others[:, 1:].mean(axis=1) > LEAST_SHARE * mean)
        log -= numpy.where(has_others[:, None], _log(others, others[:, 1:].mean(axis=1)), 0.0)
        return numpy.where(self.is_wait[:, None], self.sums / self.times_s[:, None], log)


def _log(sums: NDArray[Any], mean: NDArray[Any]) -> NDArray[Any]:
    least = 1e-6 * numpy.maximum(mean, 1e-9)[:, None]
    result: NDArray[Any] = numpy.log(numpy.maximum(sums, least) / numpy.maximum(mean, 1e-9)[:, None])
    return result


def _tested(pieces: Pieces, groups: Sequence[Group], weight_s: NDArray[Any]) -> _Tests:
    sums = _Sums(pieces, groups, weight_s)
    values = sums.statistics()
    usual = values[:, 1:]
    runs = usual.shape[1]
    families = {key: at for at, key in enumerate(dict.fromkeys((group.part, group.axis) for group in groups))}
    family = numpy.array([families[group.part, group.axis] for group in groups])
    degrees = numpy.full(len(groups), runs - 1.0)
    variance = usual.var(axis=1, ddof=1)
    prior, worth = moderated(variance, degrees, family)
    variance = (worth * prior + degrees * variance) / (worth + degrees)
    floor = numpy.where(sums.is_wait, LEAST_WAITING_SPREAD, LEAST_SPREAD)
    spread = numpy.sqrt(numpy.maximum(variance, floor**2) * (1.0 + 1.0 / runs))
    degrees = degrees + worth
    t = (values[:, 0] - usual.mean(axis=1)) / spread
    mean = sums.sums[:, 1:].mean(axis=1)
    extra = sums.sums[:, 0] - mean
    # Held against others that became faster, a group may look slow and be as ever.
    slower = (t > 0) & (extra > 0) & (sums.is_wait | (2 * _log(sums.sums[:, :1], mean)[:, 0] > values[:, 0]))
    slower &= extra >= LEAST_SHARE * sums.times_s
    p_value = numpy.where(slower, stdtr(degrees, -t), 1.0)
    evidence = numpy.where(slower, (degrees + 1) / 2 * numpy.log1p(t * t / degrees), 0.0)
    return _Tests(p_value, evidence, sums.sums[:, 0] / numpy.maximum(mean, 1e-12), mean, extra)


def suspects_of(pieces: Pieces, nodes: Sequence[int], level: float = LEVEL) -> list[Suspect]:
    """The groups that take longer than chance explains, the clearest first; at least two usual runs are needed.

    nodes : of each rank, its node
    level : chance that there is any where nothing has changed
    """
    if pieces.weight_s.shape[1] < 3:
        return []
    weight = pieces.weight_s.copy()
    groups = [group for group in groups_of(pieces, nodes) if _is_large(pieces, group)]
    suspects: list[Suspect] = []
    count = len(groups)
    while groups and len(suspects) < MOST_SUSPECTS:
        tests = _tested(pieces, groups, weight)
        best = int(tests.evidence.argmax())
        if tests.p_value[best] * count > level:
            break
        weight[groups[best].pieces, 0] = _as_usual(pieces, groups[best], weight)
        again = _tested(pieces, groups, weight)
        rivals = (tests.p_value * count <= level) & (tests.evidence > tests.evidence[best] - LIKELIER)
        rivals &= again.p_value * count > level
        others = [
            groups[at] for at in numpy.flatnonzero(rivals).tolist() if at != best and _excludes(groups[best], groups[at])
        ]
        p_value = min(1.0, float(tests.p_value[best]) * count)
        ratio, usual_s, extra_s = (float(values[best]) for values in (tests.ratio, tests.usual_s, tests.extra_s))
        suspects.append(Suspect(groups[best], p_value, ratio, usual_s, extra_s, tuple(others), count))
    return suspects


def _is_large(pieces: Pieces, group: Group) -> bool:
    """Whether the group takes so much of the time that it may matter, usually or now."""
    sums = pieces.weight_s[group.pieces].sum(axis=0)
    ranks = len(numpy.unique(pieces.rank[group.pieces]))
    return bool(max(sums[0], sums[1:].mean()) >= LEAST_SHARE * ranks * pieces.time_s[1:].mean())


def _as_usual(pieces: Pieces, group: Group, weight_s: NDArray[Any]) -> NDArray[Any]:
    """What the pieces of the group take usually, times what is different in this run with the others of their part."""
    rows = weight_s[group.pieces]
    others = numpy.setdiff1d(numpy.flatnonzero(pieces.of(group.part)), group.pieces)
    sums = weight_s[others].sum(axis=0)
    usual = sums[1:].mean() if len(others) else 0.0
    has_others = group.part not in _WAITS and usual > LEAST_SHARE * rows[:, 1:].mean(axis=1).sum()
    result: NDArray[Any] = rows[:, 1:].mean(axis=1) * (sums[0] / usual if has_others else 1.0)
    return result


def _excludes(chosen: Group, other: Group) -> bool:
    """Whether another group is another explanation: one that is a part of it, or of which it is one, is not."""
    common = len(numpy.intersect1d(chosen.pieces, other.pieces))
    return common < min(len(chosen.pieces), len(other.pieces))

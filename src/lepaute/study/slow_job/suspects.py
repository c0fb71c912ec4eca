"""Which pieces of a slow run take longer than chance explains: groups of pieces, each tested against the usual runs.

Computing of a node, a core or a call site, and messages of a link, are held against the other nodes, cores, sites or
links of the same run: what all have in common on a day is no excuse for, and no charge against, any of them. What takes
longer everywhere is tested as it is, after the groups that stand out have been taken away. Student's test of a further
run, one-sided, with variances moderated where at least five groups are alike (`stats.change_evidence.moderated`); all
groups together have the level (Bonferroni).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
from numpy.typing import NDArray
from scipy.special import stdtr

from lepaute.stats.change_evidence import moderated
from lepaute.study.slow_job.course import ASLEEP, CALL, COLLECTIVE, COMPUTE, MESSAGE, NO_CORE
from lepaute.study.slow_job.matching import Pieces

#: With fewer usual runs nothing is decided.
MIN_USUAL = 3
#: Chance that a run in which nothing has changed gets a suspect.
LEVEL = 0.05
#: Of the usual time of the ranks concerned: what takes less, usually and now, is not tested.
LEAST_SHARE = 0.005
#: Spreads of so few runs may be 0 by chance: the least, relative to the time of the group, or of the run.
MIN_SPREAD, MIN_WAITING_SPREAD = 0.001, 0.005
#: How many times as likely an explanation is than another one that it excludes: log 20.
LIKELIER = 3.0
#: Tests after each other, and suspects: ranks of which the same part takes longer are one.
MAX_ROUNDS, MAX_SUSPECTS = 12, 4
#: Of what is more in a group: what is in a smaller one within it, which then is named instead.
MAX_OF = 0.8
#: Of the time of all messages: those of a link or node that take more cannot be held against others.
NEARLY_ALL = 0.95
EVERYWHERE, SITE, NODE, RANK, LINK, OPERATION = ("everywhere", "call site", "node", "rank", "link", "operation")
_WAITS = (NO_CORE, ASLEEP)


@dataclass(frozen=True, slots=True)
class Group:
    """Pieces that one cause would make slower.

    part  : of a run (`course`);  axis : EVERYWHERE, SITE, ...;  name : of the site or operation
    place : nodes of the machine, or ranks; empty everywhere
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
    groups: dict[tuple[str, bytes], Group] = {}
    for group in _all_groups(pieces, node_of):
        if len(group.pieces):
            groups.setdefault((group.part, group.pieces.tobytes()), group)
    return list(groups.values())


def _all_groups(pieces: Pieces, node_of: NDArray[Any]) -> Iterator[Group]:
    def among(part: str, rows: NDArray[Any], axis: str, values: NDArray[Any]) -> Iterator[Group]:
        for value in numpy.unique(values).tolist():
            yield Group(part, axis, "", (value,), rows[values == value])

    for part, axis in ((COMPUTE, SITE), (COLLECTIVE, OPERATION)):
        rows = numpy.flatnonzero(pieces.of(part))
        codes = numpy.unique(pieces.what[rows]).tolist()
        named = [Group(part, axis, pieces.whats[code][1], (), rows[pieces.what[rows] == code]) for code in codes]
        everywhere = Group(part, EVERYWHERE, "", (), rows)
        yield from (named, [everywhere])[part == COMPUTE]
        yield from (named, [everywhere])[part != COMPUTE]
    rows = numpy.flatnonzero(pieces.of(COMPUTE))
    yield from among(COMPUTE, rows, NODE, node_of[rows])
    yield from among(COMPUTE, rows, RANK, pieces.rank[rows])
    for part in _WAITS:  # the ranks first: where only one of them waits, it is the rank that does
        rows = numpy.flatnonzero(pieces.of(part))
        yield from among(part, rows, RANK, pieces.rank[rows])
        yield from among(part, rows, NODE, node_of[rows])
        yield Group(part, EVERYWHERE, "", (), rows)
    yield from _of_messages(pieces)


def _of_messages(pieces: Pieces) -> Iterator[Group]:
    """By link and node, where these are not nearly all messages; and everywhere."""
    ends, touched = pieces.link, pieces.touched
    everywhere = numpy.flatnonzero(pieces.of(MESSAGE, CALL))
    chosen: list[tuple[str, tuple[int, ...], NDArray[Any]]] = [
        (LINK, (low, high), (ends == (low, high)).all(axis=1)) for low, high in numpy.unique(ends, axis=0).tolist()
    ]
    chosen += [(NODE, (node,), (ends == node).any(axis=1)) for node in numpy.unique(ends).tolist()]
    for axis, place, rows in chosen:
        group = Group(MESSAGE, axis, "", place, numpy.unique(touched[rows]))
        if pieces.weight_s[group.pieces].sum() < NEARLY_ALL * pieces.weight_s[everywhere].sum():
            yield group
    yield Group(MESSAGE, EVERYWHERE, "", (), everywhere)


@dataclass(frozen=True, slots=True)
class _Tests:
    """Of each group: p-value of one test, log likelihood ratio against chance, ratio and excess; all (groups,)."""

    p_value: NDArray[Any]
    evidence: NDArray[Any]
    ratio: NDArray[Any]
    usual_s: NDArray[Any]
    extra_s: NDArray[Any]


class _Sums:
    """Sums of the pieces of each group in each run, and of all that it is held against; pieces that are `out` are 0."""

    def __init__(self, pieces: Pieces, groups: Sequence[Group], out: NDArray[Any]) -> None:
        usual = float(pieces.time_s[1:].mean())
        weight_s = numpy.where(out[:, None], 0.0, pieces.weight_s)
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


def _tested(pieces: Pieces, groups: Sequence[Group], out: NDArray[Any]) -> _Tests:
    sums = _Sums(pieces, groups, out)
    values = sums.statistics()
    usual = values[:, 1:]
    runs = usual.shape[1]
    families = {key: at for at, key in enumerate(dict.fromkeys((group.part, group.axis) for group in groups))}
    family = numpy.array([families[group.part, group.axis] for group in groups])
    degrees = numpy.full(len(groups), runs - 1.0)
    variance = usual.var(axis=1, ddof=1)
    prior, worth = moderated(variance, degrees, family)
    variance = (worth * prior + degrees * variance) / (worth + degrees)
    floor = numpy.where(sums.is_wait, MIN_WAITING_SPREAD, MIN_SPREAD)
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
    """The groups that take longer than chance explains, the clearest first; none of fewer than MIN_USUAL usual runs.

    nodes : of each rank, its node
    level : chance that there is any where nothing has changed
    """
    if pieces.weight_s.shape[1] <= MIN_USUAL:
        return []
    out = numpy.zeros(len(pieces.rank), dtype=bool)
    groups = [group for group in groups_of(pieces, nodes) if _is_large(pieces, group)]
    suspects: list[Suspect] = []
    count = len(groups)
    for _ in range(MAX_ROUNDS if groups else 0):
        tests = _tested(pieces, groups, out)
        best = int(tests.evidence.argmax())
        if tests.p_value[best] * count > level:
            break
        clear = tests.p_value * count <= level
        best = _narrower(pieces, groups, tests, clear, _wider(pieces, groups, best, out, level))
        without = out.copy()
        without[groups[best].pieces] = True
        again = _tested(pieces, groups, without)
        rivals = clear & (tests.evidence > tests.evidence[best] - LIKELIER) & (again.p_value * count > level)
        others = [
            groups[at]
            for at in numpy.flatnonzero(rivals).tolist()
            if _excludes(pieces, groups[best], groups[at])
            and _explains(pieces, groups[at], groups[best], out, level / count)
        ]
        p_value = min(1.0, float(tests.p_value[best]) * count)
        ratio, usual_s, extra_s = (float(values[best]) for values in (tests.ratio, tests.usual_s, tests.extra_s))
        group = replace(groups[best], pieces=groups[best].pieces[~out[groups[best].pieces]])
        suspect = Suspect(group, p_value, ratio, usual_s, extra_s, tuple(others), count)
        out = without
        merged = [at for at, former in enumerate(suspects) if _are_ranks(former, suspect)]
        if merged:
            suspects[merged[0]] = _joined(suspects[merged[0]], suspect)
        elif len(suspects) < MAX_SUSPECTS:
            suspects.append(suspect)
        else:
            break
    return suspects


def _wider(pieces: Pieces, groups: Sequence[Group], chosen: int, out: NDArray[Any], level: float) -> int:
    """A group that holds the chosen one, where what else is in it is slower too, by half as much at least."""
    group = groups[chosen]
    without = out.copy()
    without[group.pieces] = True
    holders = [
        at
        for at, other in enumerate(groups)
        if other.part == group.part and len(other.pieces) > len(group.pieces) and _holds(pieces, other, group)
    ]
    if not holders:
        return chosen
    ratio = float(_tested(pieces, groups, out).ratio[chosen])
    tests = _tested(pieces, groups, without)
    slower = [at for at in holders if tests.p_value[at] <= level and tests.ratio[at] - 1 >= (ratio - 1) / 2]
    return min(slower, key=lambda at: len(groups[at].pieces), default=chosen)


def _narrower(pieces: Pieces, groups: Sequence[Group], tests: _Tests, clear: NDArray[Any], chosen: int) -> int:
    """The smallest group within the chosen one that stands out by itself and has most of what is more."""
    inside = [
        at
        for at, other in enumerate(groups)
        if clear[at]
        and other.part == groups[chosen].part
        and tests.extra_s[at] >= MAX_OF * tests.extra_s[chosen]
        and _holds(pieces, groups[chosen], other)
    ]
    return min(inside, key=lambda at: len(groups[at].pieces), default=chosen)


def _holds(pieces: Pieces, group: Group, other: Group) -> bool:
    """Whether nearly all of the time of another group is the group's, too."""
    seconds = pieces.weight_s[other.pieces].sum(axis=1)
    common = numpy.isin(other.pieces, group.pieces, assume_unique=True)
    return bool(seconds[common].sum() >= NEARLY_ALL * seconds.sum())


def _are_ranks(former: Suspect, suspect: Suspect) -> bool:
    groups = (former.group, suspect.group)
    return groups[0].part == groups[1].part and groups[0].axis == groups[1].axis == RANK


def _joined(former: Suspect, suspect: Suspect) -> Suspect:
    place = tuple(sorted((*former.group.place, *suspect.group.place)))
    group = replace(former.group, place=place, pieces=numpy.union1d(former.group.pieces, suspect.group.pieces))
    usual_s, extra_s = former.usual_s + suspect.usual_s, former.extra_s + suspect.extra_s
    ratio = 1.0 + extra_s / max(usual_s, 1e-12)
    return replace(former, group=group, usual_s=usual_s, extra_s=extra_s, ratio=ratio)


def _is_large(pieces: Pieces, group: Group) -> bool:
    """Whether the group takes so much of the time that it may matter, usually or now."""
    sums = pieces.weight_s[group.pieces].sum(axis=0)
    ranks = len(numpy.unique(pieces.rank[group.pieces]))
    return bool(max(sums[0], sums[1:].mean()) >= LEAST_SHARE * ranks * pieces.time_s[1:].mean())


def _explains(pieces: Pieces, group: Group, other: Group, out: NDArray[Any], level: float) -> bool:
    """Whether nothing of another group stands out by itself beside a group."""
    without = out.copy()
    without[group.pieces] = True
    return bool(_tested(pieces, [other], without).p_value[0] > level)


def _excludes(pieces: Pieces, chosen: Group, other: Group) -> bool:
    """Whether another group is another explanation: one that is a part of it, or of which it is one, is not."""
    return not (_holds(pieces, chosen, other) or _holds(pieces, other, chosen))

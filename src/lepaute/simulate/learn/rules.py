"""Rules for numbers, peers, conditions and communicators: the first of the grammar that holds at every observation.

A rule with k constants is taken where the observations have more than k distinct values of what it depends on. Others
that hold as well are kept as rivals where they part at larger numbers of ranks: a recording there would decide.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import gcd
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.learn.grammar import Layout, Rows, Term, group_terms, number_terms, peer_terms, predicates

#: So many rules that hold are compared with each other at larger numbers of ranks.
_RIVALS = 6
_PROBED = (2, 3, 4, 16, 64)


@dataclass(frozen=True)
class Rule:
    """text : an expression of Python;  values: distinct values that it explains;  rivals: other texts that hold as well
    decided_at : number of ranks at which a recording would decide between them, 0 without rivals
    optional : whether it may be None
    offsets : of a list of neighbours their places on the grid
    """

    text: str
    values: int = 1
    rivals: tuple[str, ...] = ()
    decided_at: int = 0
    optional: bool = False
    offsets: tuple[tuple[int, ...], ...] = ()
    layout: Layout | None = None
    periodic: bool = False


def _probe(rows: Rows) -> Rows:
    """Observations at larger numbers of ranks, with the parameters of the largest recording."""
    most = int(rows.size.max())
    size, rank = [], []
    for factor in _PROBED:
        ranks = most * factor
        chosen = sorted({0, 1, 2, ranks - 2, ranks - 1, *range(0, ranks, max(1, ranks // 37))})
        size += [ranks] * len(chosen)
        rank += chosen
    count = len(size)
    last = int(numpy.argmax(rows.size))
    parameters = {name: numpy.full(count, value[last]) for name, value in rows.parameters.items()}
    turns = {name: numpy.arange(count) * (3 + at) % 5 for at, name in enumerate(rows.turns)}
    return Rows(rows.layout, numpy.array(size), numpy.array(rank), parameters, turns, rows.constants)


def _with_rivals(
    rows: Rows,
    holding: Sequence[tuple[int, str]],
    values_at: "Iterable[tuple[int, NDArray[Any]]]",
    count: int,
    **more: Any,
) -> Rule:
    """The first rule that holds; values_at: places in the grammar and what they give at larger numbers of ranks."""
    probed = dict(values_at)
    (place, text), *others = holding
    rivals, decided_at = [], 0
    size = _probe(rows).size
    for at, rival in others:
        parts = at in probed and place in probed
        differ = numpy.flatnonzero(probed[at] != probed[place]) if parts else numpy.zeros(0, "int64")
        if len(differ):
            rivals.append(rival)
            decided_at = min(decided_at or 2**40, int(size[differ].min()))
    return Rule(text, count, tuple(rivals), decided_at, **more)


def _first(
    rows: Rows, grammar: Callable[[Rows], Iterable[Term]], holds: Callable[[Term], bool], count: int
) -> Rule | None:
    """The first term of a grammar that holds, with its rivals; None if none does."""
    holding = list(islice(((at, term) for at, term in enumerate(grammar(rows)) if holds(term)), _RIVALS))
    if not holding:
        return None
    probed = ((at, term.value) for at, term in enumerate(grammar(_probe(rows))) if len(holding) > 1)
    texts = [(at, term.text) for at, term in holding]
    return _with_rivals(rows, texts, probed, count, optional=holding[0][1].optional)


def find_number(rows: Rows, values: NDArray[Any]) -> Rule | None:
    """Rule for whole numbers; shape (observations,)."""
    values = numpy.rint(values).astype("int64")
    distinct = len(numpy.unique(values))
    if distinct == 1:
        return Rule(str(int(values[0])))
    fits = (
        (at, _proportional(term, divisor, values) or (_affine(term, values) if divisor is None else None))
        for at, term, divisor in rows.numbers
    )
    holding = list(islice(((at, *fit) for at, fit in fits if fit is not None), _RIVALS))
    if not holding:
        return None
    factors, last = {at: (factor, more) for at, factor, more, _ in holding}, holding[-1][0]
    holding.sort(key=lambda rule: (rule[1] != 1) + (rule[2] != 0))  # constants of a rule
    texts = [(at, text) for at, _, _, text in holding]

    def larger() -> Iterator[tuple[int, NDArray[Any]]]:
        for at, (term, divisor) in enumerate(islice(number_terms(_probe(rows)), last + 1)):
            if at in factors:
                factor, more = factors[at]
                value = factor * term.value if factor > 0 else term.value // -factor
                yield at, (value if divisor is None else value // numpy.maximum(divisor.value, 1)) + more

    return _with_rivals(rows, texts, larger() if len(texts) > 1 else (), distinct)


def _proportional(term: Term, divisor: Term | None, values: NDArray[Any]) -> tuple[int, int, str] | None:
    """Factor (negative: a divisor), constant and text, where values are a multiple of the term."""
    base, scaled = term.value, values if divisor is None else values * divisor.value
    some = base != 0
    if not some.any() or scaled[~some].any():
        return None
    at = int(numpy.argmax(some))
    numerator, denominator = int(scaled[at]), int(base[at])
    if numerator == 0 or (scaled * denominator != base * numerator).any():
        return None
    common = gcd(numerator, denominator)
    numerator, denominator = numerator // common, denominator // common
    if denominator > 1 and numerator > 1:
        return None
    if denominator > 1:
        if divisor is not None or (base % denominator).any():
            return None
        return -denominator, 0, f"{term.inner} // {denominator}"
    if divisor is None:
        return numerator, 0, term.scaled(numerator)
    text = str(numerator) if term.text == "1" else term.scaled(numerator)
    return numerator, 0, f"{text} // {divisor.inner}"


def _affine(term: Term, values: NDArray[Any]) -> tuple[int, int, str] | None:
    base = term.value
    low, high = int(base.argmin()), int(base.argmax())
    run, rise = int(base[high] - base[low]), int(values[high] - values[low])
    if run == 0 or rise <= 0 or rise % run:
        return None
    factor = rise // run
    more = int(values[low]) - factor * int(base[low])
    holds = (factor * base + more == values).all() and len(numpy.unique(base)) > 2
    return (factor, more, term.scaled(factor, more)) if holds else None


def find_peer(rows: Rows, peers: NDArray[Any]) -> Rule | None:
    """Rule for the rank at the other side, -1 where there is none."""
    some = peers >= 0
    distinct = len({*zip(rows.size[some].tolist(), rows.rank[some].tolist(), peers[some].tolist(), strict=True)})
    if not some.any() or (distinct < 2 and some.all()):
        return None
    offsets = numpy.unique((peers - rows.rank)[some])
    rings = numpy.unique(((peers - rows.rank) % rows.size)[some])
    back = numpy.unique(((rows.rank - peers) % rows.size)[some])
    plain = offsets.tolist() if len(offsets) == 1 else []
    around = [int(shifts[0]) for shifts in (rings, -back) if len(shifts) == 1 and shifts[0]]
    return _first(rows, lambda at: peer_terms(at, plain, around), lambda term: (term.value == peers).all(), distinct)


def find_predicate(rows: Rows, holds: NDArray[Any]) -> Rule | None:
    """Rule for where something happens: on which ranks, of how many."""
    return Rule("True") if holds.all() else _first(rows, predicates, lambda term: (term.value == holds).all(), 2)


def find_group(rows: Rows, members: Sequence[tuple[int, ...]]) -> Rule | None:
    """Rule for the colour by which all ranks are divided; members: of the communicator of every observation."""

    def divides(term: Term) -> bool:
        parts: dict[tuple[int, int], set[int]] = defaultdict(set)  # recordings may have the same number of ranks
        for size, rank, colour in zip(rows.size.tolist(), rows.rank.tolist(), term.value.tolist(), strict=True):
            parts[size, colour].add(rank)
        colours = zip(rows.size.tolist(), term.value.tolist(), members, strict=True)
        return all(tuple(sorted(parts[size, colour])) == group for size, colour, group in colours)

    return _first(rows, group_terms, divides, len(set(members)))


def find_neighbours(rows: Rows, lists: Sequence[tuple[int, ...]]) -> Rule | None:
    """Rule for all ranks that a rank has messages with, in order, as places on a grid, with ends or periodic."""
    layout = rows.layout if rows.layout.order else Layout((0,))
    placed = Rows(layout, rows.size, rows.rank, rows.parameters)
    for periodic in (False, True):
        offsets = _offsets(placed, lists, periodic=periodic)
        if offsets and _neighbours_hold(placed, lists, offsets, periodic=periodic):
            values = len(set(zip(rows.size.tolist(), rows.rank.tolist(), strict=True)))
            return Rule("neighbours", values, offsets=offsets, layout=layout, periodic=periodic)
    return None


def _offsets(rows: Rows, lists: Sequence[tuple[int, ...]], *, periodic: bool) -> tuple[tuple[int, ...], ...]:
    """Places of neighbours in the order that all ranks keep; none where there is no such order."""
    sides, at = rows.grid
    before: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for row, peers in enumerate(lists):
        shape, here = [int(side[row]) for side in sides], [int(coordinate[row]) for coordinate in at]
        if periodic and min(shape) < 3:
            continue  # both ways lead to the same rank
        path = []
        for peer in peers:
            quotient, there = peer, []
            for side in reversed(shape):
                there.append(quotient % side)
                quotient //= side
            step = [to - of for to, of in zip(reversed(there), here, strict=True)]
            if periodic:
                step = [(by + 1) % side - 1 for by, side in zip(step, shape, strict=True)]
            if any(abs(by) > 1 for by in step):
                return ()
            path.append(tuple(step))
        for place, offset in enumerate(path):
            before[offset].update(path[:place])
    ordered: list[tuple[int, ...]] = []
    waiting = sorted(before)
    while waiting:
        ready = [offset for offset in waiting if before[offset] <= set(ordered)]
        if not ready:
            return ()
        ordered.append(ready[0])
        waiting.remove(ready[0])
    return tuple(ordered)


def _neighbours_hold(
    rows: Rows, lists: Sequence[tuple[int, ...]], offsets: Sequence[tuple[int, ...]], *, periodic: bool
) -> bool:
    coordinates = rows.grid[1]
    columns = [
        rows.at([at + by for at, by in zip(coordinates, offset, strict=True)], periodic=periodic) for offset in offsets
    ]
    at_once = numpy.stack(columns, axis=1).tolist()
    return all(tuple(peer for peer in row if peer >= 0) == peers for row, peers in zip(at_once, lists, strict=True))


def is_stencil(offsets: Sequence[tuple[int, ...]]) -> int:
    """Points of the stencil whose neighbours, in the order of `Cartesian.neighbours`, these are; 0 for none."""
    dimensions = len(offsets[0])
    every = [offset for offset in product((-1, 0, 1), repeat=dimensions) if any(offset)]
    if list(offsets) == every:
        return int(3**dimensions)
    faces = [offset for offset in every if sum(map(abs, offset)) == 1]
    return 2 * dimensions + 1 if list(offsets) == faces else 0

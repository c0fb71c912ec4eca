"""The expressions that rules are made of: whole numbers of ranks, sides of a grid, parameters and iterations.

A term has its Python text and its values at all observations, so that what is checked is what the learnt file has.
Values at larger numbers of ranks tell where rules that hold in all recordings part.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from lepaute.simulate.apps.own.sides import balanced_sides

#: Names of iterations, the outermost loop first.
TURNS = ("i", "j", "k", "l", "m", "o", "p", "q")
_SIDES = {1: (("size",), ("rank",)), 2: (("py", "px"), ("y", "x")), 3: (("pz", "py", "px"), ("z", "y", "x"))}


class Term(NamedTuple):
    """text: an expression of Python;  tight: whether it needs no parentheses inside another one;  optional: whether it
    may be None, which is -1 in the values."""

    text: str
    value: NDArray[Any]
    tight: bool = True
    optional: bool = False

    @property
    def inner(self) -> str:
        return self.text if self.tight else f"({self.text})"

    def over(self, other: "Term") -> "Term":
        return Term(f"{self.inner} // {other.inner}", self.value // numpy.maximum(other.value, 1), False)

    def times(self, other: "Term") -> "Term":
        return Term(f"{self.inner} * {other.inner}", self.value * other.value, False)

    def scaled(self, factor: int, more: int = 0) -> str:
        """Text of factor times it, plus a constant."""
        text = self.text if factor == 1 else f"{factor} * {self.inner}"
        return text if not more else f"{text} {'+' if more > 0 else '-'} {abs(more)}"


@dataclass(frozen=True)
class Layout:
    """Ranks on a grid of balanced sides, the last dimension fastest.

    order : of the sides that MPI_Dims_create makes, largest first: (0, 1), or (1, 0) the other way round
    """

    order: tuple[int, ...] = ()

    @property
    def dimensions(self) -> int:
        return len(self.order)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of sides and coordinates."""
        return _SIDES.get(self.dimensions, ((), ()))

    def sides(self, ranks: int) -> tuple[int, ...]:
        sides = balanced_sides(ranks, self.dimensions) if self.order else ()
        return tuple(sides[at] for at in self.order)


LAYOUTS = (Layout(), Layout((0, 1)), Layout((1, 0)), *(Layout(order) for order in permutations(range(3))))


class Rows:
    """Observations: of every one the number of ranks, the rank, parameters and iterations.

    constants : parameters that are the same in all recordings: their parts on ranks may still tell sizes
    """

    def __init__(
        self,
        layout: Layout,
        size: NDArray[Any],
        rank: NDArray[Any],
        parameters: Mapping[str, NDArray[Any]],
        turns: Mapping[str, NDArray[Any]] | None = None,
        constants: Sequence[int] = (),
    ) -> None:
        self.layout, self.size, self.rank = layout, size.astype("int64"), rank.astype("int64")
        self.parameters, self.turns, self.constants = parameters, turns or {}, constants

    def __len__(self) -> int:
        return len(self.rank)

    @cached_property
    def grid(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Sides and coordinates by dimension."""
        known, which = numpy.unique(self.size, return_inverse=True)
        every = numpy.array([self.layout.sides(ranks) for ranks in known.tolist()], dtype="int64")
        sides = list(every.reshape(len(known), self.layout.dimensions)[which.reshape(-1)].T)
        quotient, coordinates = self.rank.copy(), []
        for side in reversed(sides):
            coordinates.append(quotient % side)
            quotient = quotient // side
        return sides, coordinates[::-1]

    def at(self, coordinates: Sequence[NDArray[Any]], *, periodic: bool) -> NDArray[Any]:
        """Ranks at coordinates; -1 beyond an end."""
        rank, outside = numpy.zeros(len(self), dtype="int64"), numpy.zeros(len(self), dtype=bool)
        for at, side in zip(coordinates, self.grid[0], strict=True):
            outside |= (at < 0) | (at >= side)
            rank = rank * side + at % side
        inside: NDArray[Any] = rank if periodic else numpy.where(outside, -1, rank)
        return inside

    def constant(self, number: int) -> Term:
        return Term(str(number), numpy.full(len(self), number))

    @cached_property
    def numbers(self) -> "list[tuple[int, Term, Term | None]]":
        """Terms of `number_terms` that are not the same at all observations, with their places."""
        terms = []
        for at, (term, divisor) in enumerate(number_terms(self)):
            ratio = term.value if divisor is None else term.value / numpy.maximum(divisor.value, 1)
            if (ratio != ratio[0]).any():
                terms.append((at, term, divisor))
        return terms

    @cached_property
    def counts(self) -> list[Term]:
        """Terms that are the same on all ranks: numbers of ranks, of sides, and their logarithms."""
        names, _ = self.layout.names
        terms = [Term("size", self.size), Term("levels", _levels(self.size))]
        terms += [Term(name, side) for name, side in zip(names, self.grid[0], strict=True)]
        terms += [Term(f"levels_{name[1:]}", _levels(side)) for name, side in zip(names, self.grid[0], strict=True)]
        return terms

    @cached_property
    def blocks(self) -> list[Term]:
        """Parts of a parameter on a rank: rounded down, up, and with one more for the first ranks."""
        names, coordinates = self.layout.names
        divisors = [(Term("size", self.size), Term("rank", self.rank))]
        divisors += [
            (Term(name, side), Term(at, coordinate))
            for name, side, at, coordinate in zip(names, self.grid[0], coordinates, self.grid[1], strict=True)
        ]
        terms = []
        named = [Term(f"self.{name}", value) for name, value in self.parameters.items()]
        for n in (*named, *(self.constant(value) for value in self.constants)):
            value = n.value
            for side, at in divisors:
                terms.append(n.over(side))
                terms.append(Term(f"-(-{n.text} // {side.text})", -(-value // side.value)))
                if side.text != "size":  # with points of both neighbours
                    terms.append(Term(f"{n.text} // {side.text} + 2", value // side.value + 2, False))
                more = (at.value < value % side.value).astype("int64")
                text = f"{n.text} // {side.text} + ({at.text} < {n.text} % {side.text})"
                terms.append(Term(text, value // side.value + more, False))
                if side.text != "size":  # without the points at the ends of the grid, which are given
                    ends = (at.value == 0).astype("int64") + (at.value == side.value - 1)
                    text = f"{text} - ({at.text} == 0) - ({at.text} == {side.text} - 1)"
                    terms.append(Term(text, value // side.value + more - ends, False))
        return terms

    @cached_property
    def factors(self) -> list[Term | None]:
        """What depends on iterations, none first."""
        terms: list[Term | None] = [None]
        for name, turn in reversed(list(self.turns.items())):
            terms += [Term(f"({name} + 1)", turn + 1), Term(f"2**{name}", 2 ** numpy.minimum(turn, 40))]
        return terms


def _levels(value: NDArray[Any]) -> NDArray[Any]:
    """Logarithm to base 2, rounded up."""
    levels: NDArray[Any] = numpy.ceil(numpy.log2(numpy.maximum(value, 1))).astype("int64")
    return levels


def number_terms(rows: Rows) -> Iterator[tuple[Term, Term | None]]:
    """Terms a number may be proportional to, simple ones first, and what they are divided by."""
    counts, parameters = rows.counts, [Term(f"self.{name}", value) for name, value in rows.parameters.items()]
    powers = [
        *parameters,
        *(Term(f"{n.text}**2", n.value**2) for n in parameters),
        *(Term(f"{n.text}**3", n.value**3) for n in parameters),
    ]
    squares = [Term(f"{count.text}**2", count.value**2) for count in counts[:1]]
    sides = [counts[0], *counts[2 : 2 + rows.layout.dimensions]]
    pairs = [side.times(other) for at, side in enumerate(sides) for other in sides[at:]]
    unit = rows.constant(1)
    base: list[tuple[Term, Term | None]] = [(term, None) for term in (*counts, *powers, *rows.blocks)]
    base += [(unit, divisor) for divisor in (*sides, *pairs)]
    base += [(power, divisor) for power in powers for divisor in (*sides, *pairs)]
    base += [(block.times(other), None) for at, block in enumerate(rows.blocks) for other in rows.blocks[at:]]
    lengths = [*parameters, *(rows.constant(value) for value in rows.constants)]
    volumes = [Term(f"{n.text}**{power}", n.value**power).over(counts[0]) for n in lengths for power in (2, 3)]
    base += [(term, None) for term in (*volumes, *(v.over(side) for v in volumes for side in sides[1:]))]
    base += [(side.times(other), None) for side in (*counts[:1], *sides) for other in (*parameters, *squares, *counts)]
    for factor in rows.factors:
        if factor is None:
            yield from base
            for name, turn in rows.turns.items():
                yield from ((Term(f"({count.text} - {name})", count.value - turn), None) for count in counts)
            continue
        yield factor, None
        yield unit, factor
        for term, divisor in base:
            yield term.times(factor), divisor
            yield term, factor if divisor is None else divisor.times(factor)


def peer_terms(rows: Rows, offsets: Sequence[int], rings: Sequence[int]) -> Iterator[Term]:
    """Ranks that a rank may send to; -1: none.

    offsets, rings : constants that the observations suggest, without and with modulo
    """
    rank, size = Term("rank", rows.rank), rows.size
    yield rows.constant(0)
    yield Term("size - 1", size - 1, False)
    names, coordinates = rows.layout.names
    for offset in rings:
        text = f"(rank {'+' if offset > 0 else '-'} {abs(offset)}) % size"
        yield Term(text, (rank.value + offset) % size)
    if rows.layout.dimensions > 1:
        yield from _on_grid(rows)
    for offset in offsets:
        value = rank.value + offset
        inside = f"rank + {offset} < size" if offset > 0 else f"rank >= {-offset}"
        text = f"rank {'+' if offset > 0 else '-'} {abs(offset)} if {inside} else None"
        yield Term(text, numpy.where((value >= 0) & (value < size), value, -1), False, True)
    steps = [(name, numpy.minimum(turn, 40)) for name, turn in reversed(list(rows.turns.items()))]
    for name, turn in steps:
        yield Term(name, turn)
        yield Term(f"{name} + 1", turn + 1, False)
        other = rank.value ^ 2**turn
        yield Term(f"rank ^ 2**{name}", other, False)
        for power, text in ((2**turn, f"2**{name}"), (turn + 1, f"{name} + 1"), (turn, name)):
            yield Term(f"(rank + {text}) % size", (rank.value + power) % size)
            back = text.replace(" + 1", " - 1")
            yield Term(f"(rank - {back}) % size", (rank.value - power) % size)
        yield Term(f"{name} + ({name} >= rank)", turn + (turn >= rank.value), False)
        yield Term(f"size // 2**({name} + 1) ^ rank", (size // 2 ** (turn + 1)) ^ rank.value, False)
        for dimension, (side, at) in enumerate(zip(rows.grid[0], rows.grid[1], strict=True)):
            if dimension == rows.layout.dimensions - 1 or rows.layout.dimensions == 2:
                halves = side // 2 ** (turn + 1), f"{names[dimension]} // 2**({name} + 1)"
                for bits, text in ((2**turn, f"2**{name}"), halves):
                    moved, texts = [*rows.grid[1]], [*coordinates]
                    moved[dimension], texts[dimension] = at ^ bits, f"{coordinates[dimension]} ^ {text}"
                    yield Term(f"here.rank_at(({', '.join(texts)}))", rows.at(moved, periodic=False), True, True)
    yield from (Term(f"rank ^ {bit}", rank.value ^ bit, False) for bit in (1, 2, 4))


def _on_grid(rows: Rows) -> Iterator[Term]:
    """Neighbours on a grid, with ends and periodic, and the transposed place."""
    sides, coordinates = rows.grid
    _, names = rows.layout.names
    offsets = sorted(product((-1, 0, 1), repeat=len(sides)), key=lambda offset: sum(map(abs, offset)))
    for offset in offsets[1:]:
        moved = [at + by for at, by in zip(coordinates, offset, strict=True)]
        for periodic in (False, True):
            yield Term(
                place_text(offset, names, periodic=periodic), rows.at(moved, periodic=periodic), True, not periodic
            )
    if len(sides) == 2:
        (y, x), (py, px) = coordinates, sides
        yield Term("x * py + y", x * py + y, False)
        wide = numpy.maximum(px // py, 1)  # a square of blocks that are as wide
        value = numpy.where(px % py == 0, (x // wide * py + y) * wide + x % wide, -1)
        yield Term("(x // (px // py) * py + y) * (px // py) + x % (px // py)", value, False)


def place_text(offset: Sequence[int], names: Sequence[str], *, periodic: bool) -> str:
    """Text of the rank so far away."""
    here = "ring" if periodic else "here"
    moves = [(dimension, by) for dimension, by in enumerate(offset) if by]
    if len(moves) == 1:
        return f"{here}.shift({moves[0][0]}, {moves[0][1]})"
    texts = (
        f"{name} {'+' if by > 0 else '-'} {abs(by)}" if by else name for name, by in zip(names, offset, strict=True)
    )
    return f"{here}.rank_at(({', '.join(texts)}))"


def predicates(rows: Rows) -> Iterator[Term]:
    """Conditions on a rank, simple ones first."""
    rank, size = rows.rank, rows.size
    basic = [
        Term("rank == 0", rank == 0),
        Term("rank > 0", rank > 0),
        Term("rank == size - 1", rank == size - 1),
        Term("rank < size - 1", rank < size - 1),
        Term("size > 1", size > 1),
        Term("rank % 2 == 0", rank % 2 == 0),
        Term("rank % 2 == 1", rank % 2 == 1),
    ]
    sides_names, names = rows.layout.names
    for side, at, side_name, name in zip(*rows.grid, sides_names, names, strict=True):
        basic += [
            Term(f"{name} == 0", at == 0),
            Term(f"{name} > 0", at > 0),
            Term(f"{name} == {side_name} - 1", at == side - 1),
            Term(f"{name} < {side_name} - 1", at < side - 1),
            Term(f"{side_name} > 1", side > 1),
            Term(f"{side_name} == 1", side == 1),
        ]
    if rows.layout.dimensions == 2:
        y, x = rows.grid[1]
        basic += [Term("y == x", y == x), Term("y != x", y != x)]
    basic += [Term("rank < size // 2", rank < size // 2), Term("rank >= size // 2", rank >= size // 2)]
    basic += [Term(f"size > {count}", size > count) for count in (2, 4, 8)]
    basic += [Term(f"rank == {number}", rank == number) for number in (1, 2, 3)]
    yield from basic
    for place, term in enumerate(basic):
        for other in basic[place + 1 :]:
            yield Term(f"{term.text} and {other.text}", term.value & other.value)
            yield Term(f"{term.text} or {other.text}", term.value | other.value)


def group_terms(rows: Rows) -> Iterator[Term]:
    """Colours of communicators that divide all ranks."""
    yield rows.constant(0)  # all ranks
    (sides, coordinates), (side_names, names) = rows.grid, rows.layout.names
    for count in range(1, len(sides)):
        for kept in combinations(range(len(sides)), count):
            value, text = coordinates[kept[0]], names[kept[0]]
            for at in kept[1:]:
                value, text = value * sides[at] + coordinates[at], f"({text}) * {side_names[at]} + {names[at]}"
            yield Term(text, value)
    for count in (2, 4, 8, 16):
        yield Term(f"rank // {count}", rows.rank // count)
        yield Term(f"rank % {count}", rows.rank % count)
    yield Term("rank // (size // 2)", rows.rank // numpy.maximum(rows.size // 2, 1))
    yield Term("rank % (size // 2)", rows.rank % numpy.maximum(rows.size // 2, 1))

"""Fractional factorial designs: some combinations, chosen so that the main effects can be estimated separately.

Of two-level factors a fraction 2^(k-p): an effect is a set of factors, kept as a bit mask; the product of two effects
is their exclusive or, since the square of a column of -1 and +1 is a column of ones. Box and Hunter, "The 2^(k-p)
fractional factorial designs", Technometrics 3 (1961). Of any other a balanced, nearly orthogonal subset.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from lepaute.errors import DesignError
from lepaute.measure.design.columns import shortened
from lepaute.measure.design.factors import factors_of
from lepaute.measure.design.generators import checked_size, combined, leveled
from lepaute.measure.design.sizes import Draws
from lepaute.measure.design.table import Design

_MAX_SUBSET_ROWS = 5000
_STARTS = 4
_MAX_SWAPS = 30_000
#: A search looks at this many words of defining relations at most.
_MAX_WORDS = 3_000_000
_MAX_FACTORS = 40
_MAX_GENERATORS = 14
_MAX_BASIC = 20
_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


def fractional(
    factors: Mapping[Any, Any],
    *,
    generators: Sequence[str] = (),
    count: int | None = None,
    replications: int = 1,
    blocks: int | None = None,
    seed: int,
) -> Design:
    """A fraction of the combinations of the levels.

    generators: of a two-level fraction 2^(k-p): `["d=a*b*c"]`, `["e=-a*b"]`
    count     : number of treatments. Where all factors have two levels and it is a power of two, the regular fraction
                of the highest resolution; else a subset in which levels are balanced and pairs of levels nearly so

    The header says `method` (regular or balanced), and of a regular fraction the resolution and the aliases, of a
    balanced one `pair_imbalance` (0: orthogonal). Raises DesignError for what cannot be.
    """
    checked = factors_of(factors)
    levels = leveled(checked)
    labels = [",".join(names) for names in sorted(checked)]
    sizes = [len(level.values) for level in levels]
    if isinstance(generators, str) or bool(generators) == (count is not None):
        raise DesignError(
            "a fraction needs either generators such as ['d=a*b*c'] (--generator) or a count of treatments (--count)"
        )
    two = all(size == 2 for size in sizes)
    if generators or (count is not None and two and type(count) is int and count > 0 and count & (count - 1) == 0):
        if not two:
            odd = next(label for label, size in zip(labels, sizes, strict=True) if size != 2)
            raise DesignError(f"{odd} does not have two levels; generators need two of each factor, else give count")
        fraction = parsed(labels, generators) if count is None else searched(labels, count)
        checked_size(2 ** (len(labels) - len(fraction.generators)), len(labels), replications, blocks or 1)
        rows = fraction.rows()
        about = {"method": "regular", **fraction.describe()}
    else:
        if type(count) is not int or not max(sizes) <= count <= min(math.prod(sizes), _MAX_SUBSET_ROWS):
            raise DesignError(
                f"count is {shortened(repr(count))}; give a number from {max(sizes)}, the most levels of a factor, to "
                f"{min(math.prod(sizes), _MAX_SUBSET_ROWS)}"
            )
        rows = _balanced_subset(sizes, count, Draws(seed, "subset"))
        about = {
            "method": "balanced",
            "runs": str(count),
            "fraction": f"{count}/{math.prod(sizes)}",
            "distinct": str(len(set(rows))),
            "pair_imbalance": f"{_imbalance_of(rows, sizes):.6g}",
        }
    treatments = [tuple(one.values[i] for one, i in zip(levels, row, strict=True)) for row in rows]
    return combined("fractional", checked, treatments, about, replications, blocks, seed)


def _balanced_subset(sizes: Sequence[int], runs: int, draws: Draws) -> list[tuple[int, ...]]:
    """`runs` rows of numbers of levels (`sizes` of each factor) in which each occurs equally often, to within one.

    Starts from shuffled balanced columns and swaps two entries of a column as long as the sum of squares of the counts
    of pairs (and of repeated rows) does not rise: the E(s^2) criterion for many levels. The best of a few starts.
    """
    whole = math.prod(sizes)
    if runs < whole < 2 * runs:
        # What remains of a balanced whole without a balanced subset is balanced too, and nothing in it is repeated.
        without = set(_balanced_subset(sizes, whole - runs, draws))
        rows = [row for row in product(*map(range, sizes)) if row not in without]
        if len(rows) == runs:
            return rows
    best = min((_improved(sizes, runs, draws) for _ in range(_STARTS)), key=lambda candidate: candidate[0])[1]
    return list(zip(*best, strict=True))


def _imbalance_of(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> float:
    """The largest difference, over all pairs of factors and of their levels, between how often the two levels occur
    together and how often they would if all pairs did equally often; 0 is an orthogonal array."""
    worst = 0.0
    for first, second in combinations(range(len(sizes)), 2):
        expected = len(rows) / (sizes[first] * sizes[second])
        counts = Counter((row[first], row[second]) for row in rows)
        missing = len(counts) < sizes[first] * sizes[second]
        worst = max(worst, *(abs(count - expected) for count in counts.values()), expected if missing else 0.0)
    return worst


def _improved(sizes: Sequence[int], runs: int, draws: Draws) -> tuple[int, list[list[int]]]:
    """The cost reached from one start, and the columns."""
    columns = [draws.shuffled([row % size for row in range(runs)]) for size in sizes]
    factors = range(len(sizes))
    pairs: dict[tuple[int, ...], Counter[tuple[int, ...]]] = {
        pair: Counter(zip(*(columns[place] for place in pair), strict=True)) for pair in combinations(factors, 2)
    }
    whole = Counter(zip(*columns, strict=True))
    for _ in range(min(_MAX_SWAPS, 40 * runs * len(sizes))):
        column, one, two = draws.below(len(sizes)), draws.below(runs), draws.below(runs)
        if columns[column][one] == columns[column][two]:
            continue
        if _swap(columns, pairs, whole, column, one, two) > 0:
            _swap(columns, pairs, whole, column, one, two)  # back
    return sum(count * count for counts in (*pairs.values(), whole) for count in counts.values()), columns


def _swap(
    columns: list[list[int]],
    pairs: dict[tuple[int, ...], Counter[tuple[int, ...]]],
    whole: Counter[tuple[int, ...]],
    column: int,
    one: int,
    two: int,
) -> int:
    """Swaps two entries of a column, keeps the counts right, and returns the change of the sum of their squares."""
    touched = [(pair, counts) for pair, counts in pairs.items() if column in pair]
    everything = tuple(range(len(columns)))
    change = 0
    for step in (-1, 1):
        for row in (one, two):
            for places, counts in (*touched, (everything, whole)):
                cell = tuple(columns[place][row] for place in places)
                change += 2 * step * counts[cell] + 1  # (c + step)^2 - c^2
                counts[cell] += step
        if step < 0:
            values = columns[column]
            values[one], values[two] = values[two], values[one]
    return change


@dataclass(frozen=True, slots=True)
class Word:
    """A signed product of factors: bit i of `mask` stands for factor i."""

    mask: int
    sign: int = 1

    def times(self, other: "Word") -> "Word":
        return Word(self.mask ^ other.mask, self.sign * other.sign)

    def text(self, names: Sequence[str]) -> str:
        factors = "*".join(name for place, name in enumerate(names) if self.mask >> place & 1)
        return ("-" if self.sign < 0 else "") + factors


@dataclass(frozen=True, slots=True)
class Fraction:
    """A regular fraction.

    names     : of the k factors
    generators: place of each generated factor to the word of other factors that gives its column
    """

    names: tuple[str, ...]
    generators: tuple[tuple[int, Word], ...]

    @property
    def defining(self) -> tuple[Word, ...]:
        """All 2^p - 1 words that equal the identity, the shortest first."""
        return _subgroup([Word(word.mask ^ 1 << place, word.sign) for place, word in self.generators])

    @property
    def resolution(self) -> int | None:
        """Length of the shortest word of the defining relation; None for a full design."""
        return min((word.mask.bit_count() for word in self.defining), default=None)

    def rows(self) -> list[tuple[int, ...]]:
        """The 2^(k-p) treatments, a 0 (first level) or 1 (second level) a factor."""
        generated = dict(self.generators)
        basic = [place for place in range(len(self.names)) if place not in generated]
        rows = []
        for levels in product((0, 1), repeat=len(basic)):
            row = [0] * len(self.names)
            for place, level in zip(basic, levels, strict=True):
                row[place] = level
            for place, word in self.generators:
                low = sum(1 - row[i] for i in basic if word.mask >> i & 1)  # factors at -1
                row[place] = int((-1) ** low * word.sign > 0)
            rows.append(tuple(row))
        return rows

    def describe(self) -> dict[str, str]:
        """Lines for a header: generators, defining relation, resolution, and which effects are aliased."""
        resolution = self.resolution
        if resolution is None:
            return {"fraction": "1/1", "resolution": "full", "aliases": "none"}
        return {
            "fraction": f"1/{2 ** len(self.generators)}",
            "resolution": _ROMAN[resolution] if resolution < len(_ROMAN) else str(resolution),
            "generators": "; ".join(f"{self.names[place]}={word.text(self.names)}" for place, word in self.generators),
            "defining_relation": _shortened("I", [word.text(self.names) for word in self.defining], "="),
            "aliases": _shortened("", self.aliases(), "; ") or "none among main effects and interactions of two",
        }

    def aliases(self) -> list[str]:
        """Main effects and interactions of two factors that are aliased: `a=b*c`, one text a class."""
        count = len(self.names)
        effects = [1 << i for i in range(count)] + [1 << i | 1 << j for i, j in combinations(range(count), 2)]
        classes = []
        done: set[int] = set()
        words = [word for word in self.defining if word.mask.bit_count() <= 4]  # longer ones alias nothing so short
        for effect in effects:
            if effect in done:
                continue
            same = [Word(effect), *(word.times(Word(effect)) for word in words)]
            short = sorted((w for w in same if 0 < w.mask.bit_count() <= 2), key=lambda w: (w.mask.bit_count(), w.mask))
            done |= {word.mask for word in short}
            if len(short) > 1:
                classes.append("=".join(word.text(self.names) for word in short))
        return classes


def parsed(names: Sequence[str], texts: Sequence[str]) -> Fraction:
    """The fraction with generators such as `d=a*b*c` or `e=-a*b`; raises DesignError with what is wrong."""
    generators = []
    generated: list[str] = []
    for text in texts:
        left, equals, right = (part.strip() for part in text.partition("="))
        factors = [factor.strip() for factor in right.removeprefix("-").split("*")]
        unknown = [factor for factor in (left, *factors) if factor not in names]
        if not equals or unknown or len(set(factors)) != len(factors) or left in factors or left in generated:
            raise DesignError(
                f"generator {text[:60]!r}; write NEW=FACTOR*FACTOR with names of factors, each once, such as "
                f"{names[-1]}={'*'.join(names[:-1][:3])}; the factors are {', '.join(names)}"
            )
        generated.append(left)
        mask = sum(1 << names.index(factor) for factor in factors)
        generators.append((names.index(left), Word(mask, -1 if right.startswith("-") else 1)))
    _check_numbers(len(names), len(generators))
    for place, word in generators:
        if any(word.mask >> other & 1 for other, _ in generators):
            raise DesignError(
                f"generator of {names[place]}: a generator multiplies factors that are not generated themselves"
            )
    return _checked(Fraction(tuple(names), tuple(generators)))


def searched(names: Sequence[str], runs: int) -> Fraction:
    """The fraction with `runs` rows of the highest resolution, then with the fewest words of that length.

    The last factors are generated by the first. Where there are too many sets of generators to look at all, they are
    chosen one after the other, products of odd numbers of factors first: with those alone every word is even, and the
    resolution at least IV, which exists for up to runs / 2 factors (Box and Hunter, as above).
    Raises DesignError when runs is no power of two, too few for that many factors, or the search would take too long.
    """
    count = len(names)
    base = runs.bit_length() - 1
    most = min(count, _MAX_BASIC)
    if runs != 1 << base or not count < runs or base > most:
        raise DesignError(
            f"{runs} runs of {count} factors with two levels; give a power of two above {count} and up to 2^{most}"
        )
    extra = count - base
    _check_numbers(count, extra)
    words = [mask for mask in range(1, 1 << base) if mask.bit_count() >= 2]
    if math.comb(len(words), extra) << extra <= _MAX_WORDS:
        best = min(combinations(words, extra), key=lambda masks: _badness(base, masks))
    else:
        odd = [mask for mask in words if mask.bit_count() % 2]
        candidates = odd if len(odd) >= extra else words
        if (extra * len(candidates)) << extra > _MAX_WORDS:
            raise DesignError(
                f"the generators of {count} factors in {runs} runs would take too long to search; name them, such as "
                f"{names[-1]}={'*'.join(names[:3])}"
            )
        best = ()
        for _ in range(extra):
            left = [mask for mask in candidates if mask not in best]
            best = min(((*best, mask) for mask in left), key=lambda masks: _badness(base, masks))
    return _checked(Fraction(tuple(names), tuple((base + i, Word(mask)) for i, mask in enumerate(best))))


def _badness(base: int, masks: Sequence[int]) -> tuple[int, int]:
    lengths = [word.mask.bit_count() for word in _subgroup([Word(m | 1 << base + i) for i, m in enumerate(masks)])]
    shortest = min(lengths, default=0)
    return -shortest, lengths.count(shortest)


def _subgroup(words: Sequence[Word]) -> tuple[Word, ...]:
    products = [Word(0)]
    for word in words:
        products += [word.times(other) for other in products]
    return tuple(sorted(products[1:], key=lambda word: (word.mask.bit_count(), word.mask)))


def _check_numbers(factors: int, generators: int) -> None:
    if factors > _MAX_FACTORS or generators > _MAX_GENERATORS:
        raise DesignError(
            f"{factors} factors and {generators} generators; at most {_MAX_FACTORS} and {_MAX_GENERATORS}"
        )


def _checked(fraction: Fraction) -> Fraction:
    if any(word.mask.bit_count() < 3 for word in fraction.defining):
        word = fraction.defining[0]
        raise DesignError(
            f"the generators make I={word.text(fraction.names)}: factors that always change together, or never; "
            "multiply others"
        )
    return fraction


def _shortened(first: str, texts: Sequence[str], separator: str) -> str:
    listed = [first, *texts[:500]] if first else list(texts[:500])
    more = [f"and {len(texts) - 500} more"] if len(texts) > 500 else []
    return separator.join([*listed, *more])

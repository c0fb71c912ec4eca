"""What a design holds: factors with their levels or ranges, replications, blocks, and whether the order is random."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from re import fullmatch

from lepaute.kit.text import counted
from lepaute.measure.design.columns import Value
from lepaute.measure.design.generators import BLOCK
from lepaute.measure.design.table import Design

MAX_LEVELS_LISTED = 12
#: What a regular fraction mixes, by its resolution.
MIXED = {
    "III": "main effects are mixed with interactions of two factors",
    "IV": "interactions of two factors are mixed with each other, main effects with those of three",
}


@dataclass(frozen=True, slots=True)
class FactorSummary:
    """One column.

    type        : int, real or text
    distinct    : how many different values
    empty       : rows in which the factor has no value
    counts      : of up to 12 levels, rows of each, in the order of the levels; else empty
    low, high   : smallest and largest number; None of texts
    with_order  : Spearman's rank correlation with the order of execution; None of texts and of a single value
    """

    name: str
    type: str
    distinct: int
    empty: int
    counts: tuple[tuple[Value, int], ...]
    low: Value
    high: Value
    with_order: float | None


@dataclass(frozen=True, slots=True)
class DesignSummary:
    """A design at a glance.

    treatments   : different rows, whatever their block
    replications : fewest and most rows of a treatment, in a block where there are blocks
    blocks       : how many; 0 if the design has none
    complete     : whether each block holds each treatment, as often as the others do
    fraction     : of a fractional design, which combinations and what they mix; else empty
    """

    rows: int
    factors: tuple[FactorSummary, ...]
    treatments: int
    replications: tuple[int, int]
    blocks: int
    complete: bool
    fraction: str = ""

    @property
    def sentence(self) -> str:
        """One line, as "60 rows of 6 treatments, each 2 times in each of 5 blocks" or "100 rows, all different"."""
        if self.fraction:
            return f"{self.fraction}; {counted(self.rows, 'row')}"
        if self.treatments == self.rows:
            return f"{counted(self.rows, 'row')}, all different"
        fewest, most = self.replications
        often = f"{fewest} to {most} times" if fewest < most else "once" if most == 1 else counted(most, "time")
        where = f" in each of {counted(self.blocks, 'block')}" if self.blocks and self.complete else ""
        apart = f"; {counted(self.blocks, 'block')}, not each with every treatment" if not where and self.blocks else ""
        return f"{counted(self.rows, 'row')} of {counted(self.treatments, 'treatment')}, each {often}{where}{apart}"


def summary_of(design: Design) -> DesignSummary:
    """The summary of any design, an empty one too."""
    factors = tuple(_factor(design, name) for name in design.columns)
    place = design.columns.index(BLOCK) if BLOCK in design.columns else None
    treatments = Counter(tuple(v for i, v in enumerate(row) if i != place) for row in design.rows)
    blocks = 0 if place is None else len({row[place] for row in design.rows})
    times = list(Counter(design.rows).values())
    held: dict[Value, Counter[tuple[Value, ...]]] = {}
    if place is not None:
        for row in design.rows:
            held.setdefault(row[place], Counter())[row[:place] + row[place + 1 :]] += 1
    complete = all(one == next(iter(held.values())) for one in held.values())
    replications = (min(times, default=0), max(times, default=0))
    return DesignSummary(
        len(design), factors, len(treatments), replications, blocks, complete, _fraction(design.header, treatments)
    )


def _fraction(header: Mapping[str, str], treatments: Collection[object]) -> str:
    """4 of 8 combinations; main effects are mixed with interactions of two factors (resolution III)"""
    stated = fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", header.get("fraction", ""))
    if stated is None or stated[1] == stated[2]:
        return ""
    resolution = header.get("resolution")
    of = int(stated[2]) * (len(treatments) if resolution is not None else 1)
    some = f"{len(treatments)} of {counted(of, 'combination')}"
    if resolution is None:
        return f"{some}, pairs of levels {'balanced' if header.get('pair_imbalance') == '0' else 'nearly balanced'}"
    mixed = MIXED.get(resolution, "no two of main effects and interactions of two factors are mixed")
    return f"{some}; {mixed} (resolution {resolution})"


def _factor(design: Design, name: str) -> FactorSummary:
    given = design.column(name)
    values = [value for value in given if value is not None]
    often = Counter(values)
    texts = all(isinstance(value, str) for value in values)
    levels = sorted(often, key=lambda v: (0.0, v) if isinstance(v, str) else (float(v or 0), ""))
    kind = "text" if texts and values else "real" if any(isinstance(v, float) for v in values) else "int"
    numbers: list[Value] = [] if texts else [*levels]
    return FactorSummary(
        name=name,
        type=next((c.type for c in design.schema if c.name == name and hasattr(c, "type")), kind),
        distinct=len(levels),
        empty=len(given) - len(values),
        counts=tuple((level, often[level]) for level in levels) if len(levels) <= MAX_LEVELS_LISTED else (),
        low=numbers[0] if numbers else None,
        high=numbers[-1] if numbers else None,
        with_order=_with_order(given) if len(numbers) > 1 else None,
    )


def _with_order(values: list[Value]) -> float:
    from scipy.stats import spearmanr

    numbers = [(order, float(value)) for order, value in enumerate(values) if value is not None]
    return float(spearmanr([order for order, _ in numbers], [number for _, number in numbers]).statistic)

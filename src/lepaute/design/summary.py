"""What a design holds: factors with their levels or ranges, replications, blocks, and whether the order is random."""

from collections import Counter
from dataclasses import dataclass

from lepaute.design.columns import Value
from lepaute.design.generators import BLOCK
from lepaute.design.table import Design

MOST_LEVELS_LISTED = 12


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
    blocks       : how many; 0 where the design has none
    complete     : whether each block holds each treatment, as often as the others do
    """

    rows: int
    factors: tuple[FactorSummary, ...]
    treatments: int
    replications: tuple[int, int]
    blocks: int
    complete: bool


def summary_of(design: Design) -> DesignSummary:
    """The summary of any design, an empty one too."""
    factors = tuple(_factor(design, name) for name in design.columns)
    place = design.columns.index(BLOCK) if BLOCK in design.columns else None
    treatments = Counter(tuple(v for i, v in enumerate(row) if i != place) for row in design.rows)
    cells = Counter(design.rows)
    blocks = 0 if place is None else len({row[place] for row in design.rows})
    times = list(cells.values())
    held: dict[Value, Counter[tuple[Value, ...]]] = {}
    if place is not None:
        for row in design.rows:
            held.setdefault(row[place], Counter())[row[:place] + row[place + 1 :]] += 1
    complete = all(one == next(iter(held.values())) for one in held.values())
    replications = (min(times, default=0), max(times, default=0))
    return DesignSummary(len(design), factors, len(treatments), replications, blocks, complete)


def _factor(design: Design, name: str) -> FactorSummary:
    given = design.column(name)
    values = [value for value in given if value is not None]
    counted = Counter(values)
    texts = all(isinstance(value, str) for value in values)
    levels = sorted(counted, key=lambda v: (0.0, v) if isinstance(v, str) else (float(v or 0), ""))
    kind = "text" if texts and values else "real" if any(isinstance(v, float) for v in values) else "int"
    numbers: list[Value] = [] if texts else [*levels]
    counts = tuple((level, counted[level]) for level in levels) if len(levels) <= MOST_LEVELS_LISTED else ()
    return FactorSummary(
        name=name,
        type=next((c.type for c in design.schema if c.name == name and hasattr(c, "type")), kind),
        distinct=len(levels),
        empty=len(given) - len(values),
        counts=counts,
        low=numbers[0] if numbers else None,
        high=numbers[-1] if numbers else None,
        with_order=_with_order(given) if len(numbers) > 1 else None,
    )


def _with_order(values: list[Value]) -> float:
    from scipy.stats import spearmanr

    numbers = [(order, float(value)) for order, value in enumerate(values) if value is not None]
    return float(spearmanr([order for order, _ in numbers], [number for _, number in numbers]).statistic)

"""What was measured how often, as a text: two runs with the same text measured the same mixture of sizes.

What counts is how often each combination was measured in proportion to the others: more cores or repetitions of all of
them change nothing, and neither does their order. One size more, or one twice as often, makes another mixture: a file
of sizes that was drawn anew moved the published performance by 3 %.
"""

from collections import Counter
from collections.abc import Sequence
from math import gcd, isnan
from typing import TYPE_CHECKING

from lepaute.watch.factors.stratum import fingerprint

if TYPE_CHECKING:
    import pandas as pd


def cells_text(frame: "pd.DataFrame", columns: Sequence[str]) -> str:
    """Number, range and fingerprint of the combinations of `columns` that occur, with their relative frequencies."""
    import pandas as pd

    if len(frame) == 0 or not columns:
        return "none"
    texts = {
        # cells that are no numbers may be anything, also lists
        name: frame[name] if pd.api.types.is_numeric_dtype(frame[name]) else frame[name].map(_plain)
        for name in columns
    }
    counts: Counter[str] = Counter()
    for key, count in pd.DataFrame(texts).value_counts(sort=False, dropna=False).items():
        counts["\t".join(map(_plain, key if isinstance(key, tuple) else (key,)))] += int(count)
    common = gcd(*counts.values())
    lines = sorted(f"{key}\t{count // common}" for key, count in counts.items())
    ranges = [_range(name, frame[name]) for name in columns if pd.api.types.is_numeric_dtype(frame[name])]
    return f"{len(lines)} of {', '.join(ranges or columns)} (sha256 {fingerprint([*columns, *lines])})"


def _plain(value: object) -> str:
    """A cell as text, the same whether a column of whole numbers was read as such or as floats."""
    import pandas as pd

    if value is None or value is pd.NA:
        return ""
    if isinstance(value, float):
        return "" if isnan(value) else str(int(value)) if value.is_integer() else str(value)
    return str(value)


def _range(name: str, column: "pd.Series[float]") -> str:
    known = column.dropna()
    low, high = (f"{float(value):.15g}" for value in ((known.min(), known.max()) if len(known) else (0, 0)))
    return f"{name} {low}" + (f" to {high}" if high != low else "")

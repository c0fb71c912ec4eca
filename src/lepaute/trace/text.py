"""Tables as text."""

from collections.abc import Sequence


def text_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns two blanks apart, the first to the left, the others to the right."""
    cells = [list(titles), *([str(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(titles))]
    lines = []
    for line in cells:
        first = line[0].ljust(widths[0])
        others = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        lines.append("  ".join((first, *others)).rstrip())
    return "\n".join(lines)


def seconds(value: float) -> str:
    """A duration with three digits and the unit that suits it."""
    if value == 0:
        return "0"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}" if abs(value) < 1000 * factor else f"{value / factor:.0f} {unit}"
    return f"{value * 1e9:.3g} ns"


def size(value: float) -> str:
    """A number of bytes with three digits and a decimal prefix."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} B"


def percent(share: float) -> str:
    """A share as per cent, one decimal."""
    return f"{100 * share:.1f} %"


def shortened(rows: Sequence[Sequence[object]], most: int) -> list[Sequence[object]]:
    """The first and the last rows, with a row of dots between where there are more than `most`."""
    if len(rows) <= most:
        return list(rows)
    head = most // 2
    dots = ["…", *[""] * (len(rows[0]) - 1)]
    return [*rows[:head], dots, *rows[-(most - head) :]]

"""Tables as lines of text."""

from collections.abc import Collection, Iterable, Sequence


def text_table(titles: Sequence[object], rows: Iterable[Sequence[object]], left: Collection[int] | None = (0,)) -> str:
    """Columns two blanks apart; those numbered in `left` (None: all) are set flush left, the others flush right."""
    cells = [[str(cell) for cell in line] for line in (titles, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if left is None or column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def shortened(rows: Sequence[Sequence[object]], most: int) -> list[Sequence[object]]:
    """The first and the last rows, with a row of dots between where there are more than `most`."""
    if len(rows) <= most:
        return list(rows)
    head = most // 2
    dots = ["…", *[""] * (len(rows[0]) - 1)]
    return [*rows[:head], dots, *rows[-(most - head) :]]

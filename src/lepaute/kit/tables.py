"""Tables as lines of text."""

from collections.abc import Collection, Iterable, Sequence

from lepaute.kit.printable import UNLIMITED
from lepaute.kit.text import folded

#: Columns of a terminal that are enough for a folded text.
MIN_FOLDED = 24


def text_table(titles: Sequence[object], rows: Iterable[Sequence[object]], left: Collection[int] | None = (0,)) -> str:
    """Columns two blanks apart; those numbered in `left` (None: all) are set flush left, the others flush right."""
    return shown_table(titles, rows, UNLIMITED - 1, range(len(titles)) if left is None else left)


def shown_table(
    titles: Sequence[object],
    rows: Iterable[Sequence[object]],
    width: int,
    left: Collection[int] = (0,),
    drop: Sequence[int] = (),
    keys: int = 1,
    note: str = "",
) -> str:
    """A table for where it is read, a line for each row.

    On a terminal of `width` columns it fits: columns of `drop` are left out, the first of these first, until it does,
    and named below, or told of by `note`; if that is not enough, columns that still do not fit follow as further
    tables, each with the first `keys`. A text of the last column is folded at blanks. Elsewhere (UNLIMITED) columns are
    aligned likewise, all in one table, and an empty cell is a dash, for programs that count them.
    """
    lines = [[str(cell) for cell in line] for line in (titles, *rows)]
    if not lines[0]:
        return ""
    if width >= UNLIMITED:
        lines, drop = [lines[0], *([cell or "-" for cell in line] for line in lines[1:])], ()
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown, dropped = list(range(len(titles))), list[str]()
    for column in drop:
        if _taken(widths, shown) <= width:
            break
        shown.remove(column)
        dropped.append(lines[0][column])
    least = [min(MIN_FOLDED, max(map(len, (*title.split(), *cells)))) for title, *cells in zip(*lines, strict=True)]
    blocks = _blocks(widths, least, shown, width, left, keys)
    texts = [_folded_table(lines, widths, block, width, left) for block in blocks]
    if dropped:
        left_out = f"columns left out: {', '.join(dropped)}; a wider terminal or a file has all"
        texts.append(folded(f"({note or left_out})", width))
    return "\n".join(texts)


def _taken(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[column] + 2 for column in columns) - 2


def _blocks(
    widths: Sequence[int], least: Sequence[int], columns: Sequence[int], width: int, left: Collection[int], keys: int
) -> list[list[int]]:
    """Columns of each table: the keys and as many as fit beside them; a last one of text may be folded, to `least`."""
    first, rest = list(columns[:keys]), columns[keys:]
    blocks = [[*first]]
    for column in rest:
        is_text = column == rest[-1] and column in left
        needed = _taken(widths, blocks[-1]) + 2 + (least[column] if is_text else widths[column])
        if len(blocks[-1]) > keys and needed > width:
            blocks.append([*first])
        blocks[-1].append(column)
    return blocks


def _folded_table(
    lines: Sequence[Sequence[str]], widths: Sequence[int], columns: Sequence[int], width: int, left: Collection[int]
) -> str:
    """One table, of which the last column is folded where it is too wide."""
    *before, last = columns
    begin = _taken(widths, before) + 2 if before else 0
    texts = []
    for line in lines:
        cells = [
            line[column].ljust(widths[column]) if column in left else line[column].rjust(widths[column])
            for column in before
        ]
        cell = line[last] if last in left or begin + widths[last] > width else line[last].rjust(widths[last])
        texts.append(folded("  ".join([*cells, cell]), width, begin).rstrip())
    return "\n".join(texts)


def shortened(rows: Sequence[Sequence[object]], most: int) -> list[Sequence[object]]:
    """The first and the last rows, with a row of dots between where there are more than `most`."""
    if len(rows) <= most:
        return list(rows)
    head = most // 2
    return [*rows[:head], ["…", *[""] * (len(rows[0]) - 1)], *rows[-(most - head) :]]

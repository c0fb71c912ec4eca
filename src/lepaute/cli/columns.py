"""Cells as columns of text."""

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]], left: tuple[int, ...] = (0,)) -> str:
    """Lines of cells as columns, two blanks apart; those numbered in `left` begin together, the others end together."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )

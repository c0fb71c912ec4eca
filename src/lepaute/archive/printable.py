"""Untrusted text on a terminal: no escape sequences, no line breaks, cut to its width."""

import unicodedata
from collections.abc import Iterator

#: Bounds the work on a text of which only the beginning is shown.
_MOST_LOOKED_AT = 20_000


def printable(text: str) -> str:
    """The text on one line; what is not printable (escapes, control characters, marks that turn the direction of
    writing) as its code, tabs as spaces."""
    if text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char == "\t" else char.encode("unicode_escape").decode()


def fitted(text: str, width: int) -> str:
    """`printable(text)`, its end replaced by "..." where it takes more than `width` columns."""
    visible = printable(text[:_MOST_LOOKED_AT])
    if len(text) <= _MOST_LOOKED_AT and columns(visible) <= width:
        return visible
    kept, used = [], 0
    for char in visible:
        used += _columns(char)
        if used > width - 3:
            break
        kept.append(char)
    return "".join(kept) + "..."[:width]


def wrapped(text: str, width: int, most_lines: int) -> list[str]:
    """The text's words in at most `most_lines` lines of `width` columns; the last one ends in "..." if it must."""
    words = [piece for word in printable(" ".join(text.split())).split(" ") for piece in _pieces(word, width)]
    lines: list[str] = []
    line = ""
    for number, word in enumerate(words):
        longer = f"{line} {word}" if line else word
        if columns(longer) <= width:
            line = longer
        elif len(lines) + 1 == most_lines:
            return [*lines, fitted(" ".join([line, *words[number : number + width]]), width)]
        else:
            lines.append(line)
            line = word
    return [*lines, line] if line else lines


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word in pieces that fit on a line each."""
    step = width if word.isascii() else max(1, width // 2)
    return (word[at : at + step] for at in range(0, max(1, len(word)), step))


def columns(text: str) -> int:
    """How many columns a printable text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1

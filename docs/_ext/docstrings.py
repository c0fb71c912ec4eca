"""Docstrings of the package as Markdown.

They are plain text with `code`, doctests, and lines that describe a name, in sections of numpydoc or without:

    ratio     : geometric mean over the runs
    low, high : 95 % prediction interval of that ratio,
        continued on an indented line
"""

import re
from collections.abc import Iterator

from markdown_text import dedented, escaped

_TITLE = re.compile(r"^(Parameters|Attributes|Returns|Yields|Raises|Examples|Notes)\n-{3,}$", re.MULTILINE)
_NAME = r"\**[A-Za-z_][\w.]*(?:\[\w*\])?(?:\(\w*\))?"
_ENTRY = re.compile(rf"^(`?{_NAME}(?:(?:, | \.\. ){_NAME})*`?)\s*: +(\S.*)$")


def markdown(docstring: str) -> Iterator[str]:
    """Lines of Markdown, without headings: sections have a line in bold type."""
    before, *sections = _TITLE.split(docstring.strip("\n"))
    yield from _blocks(before)
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        yield f"**{title}**"
        yield ""
        yield from _blocks(text)


def entries(docstring: str) -> dict[str, str]:
    """What the lines that describe names say of each; a line may describe several, and several may stand on it."""
    told: dict[str, str] = {}
    names: list[str] = []
    for line in docstring.splitlines():
        parts = re.split(r";  +(?=\S+ *:)", line.strip()) if not line.startswith("    ") else [line.strip()]
        for part in parts:
            if found := _ENTRY.match(part):
                names = re.split(r", ", found[1].strip("`"))
                told |= dict.fromkeys(names, found[2])
            elif names and line.startswith("    ") and part:
                told |= {name: f"{told[name]} {part}" for name in names}
            else:
                names = []
    return told


def summary(docstring: str) -> str:
    """The first sentence, for lists of names."""
    first = " ".join(docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.?!])\s|: >>> ", first)[0].rstrip(":")


def _blocks(text: str) -> Iterator[str]:
    for block in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = [line.rstrip() for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        if lines[0].lstrip().startswith(">>>"):
            yield from ("```pycon", *dedented(lines), "```", "")
        elif all(line.startswith("    ") for line in lines) or lines[0].startswith(("class ", "def ", "@", "with ")):
            yield from ("```text", *dedented(lines), "```", "")
        else:
            yield from _lines(lines)


def _lines(lines: list[str]) -> Iterator[str]:
    """Running text, descriptions of names, and doctests that directly follow a line of text."""
    prose = list[str]()
    entry: tuple[str, list[str]] | None = None
    for at, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            yield from (*_finished(prose, entry), "```pycon", *dedented(lines[at:]), "```", "")
            return
        if found := _ENTRY.match(line):
            yield from _finished(prose, entry)
            prose, entry = [], (found[1].strip("`"), [found[2]])
        elif entry is not None and line.startswith(" "):
            entry[1].append(line.strip())
        else:
            if entry is not None:
                yield from _finished(prose, entry)
                prose, entry = [], None
            prose.append(line.strip())
    yield from _finished(prose, entry)


def _finished(prose: list[str], entry: tuple[str, list[str]] | None) -> Iterator[str]:
    if prose:
        yield from (escaped(" ".join(prose)), "")
    if entry is not None:
        name, told = entry
        yield from (f"`{name}`", f": {escaped(' '.join(told))}", "")

"""Plain text of the package, such as help and docstrings, as Markdown."""

import re
from collections.abc import Iterable, Iterator, Sequence

#: Path below docs/reference -> text.
Pages = dict[str, str]

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_\[\]<>$#~|{}])")


def escaped(text: str) -> str:
    """The text with what Markdown would take for markup escaped, except for code between backticks."""
    return "".join(
        part if at % 2 else _SPECIAL.sub(r"\\\1", part).replace("\u00a0", " ")
        for at, part in enumerate(_CODE.split(text))
    )


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of plain text; one that is indented, or that begins with \\b, keeps its lines."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.replace("\b", "").strip("\n").splitlines()
        if "\b" in paragraph or all(line.startswith("    ") for line in lines):
            yield from ("```text", *(line.rstrip() for line in dedented(lines)), "```", "")
        else:
            yield from (escaped(" ".join(line.strip() for line in lines)), "")


def dedented(lines: Sequence[str]) -> list[str]:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[margin:] for line in lines]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of Markdown; cells are Markdown already."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(_in_cell(cell) for cell in row)} |"
    yield ""


def _in_cell(cell: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(cell.split()))

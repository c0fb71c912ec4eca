"""The pages of the documentation as programs: which of their blocks run, and whether the outputs they show are right.

A page is Markdown with fenced blocks, which run in order in one empty folder (`support_running_documents.py`):

- `console`: lines that start with `$ ` are commands (`> ` continues one); what follows is what they print
- `python`: all of a page in one interpreter; a `text` block directly after one is what it prints, not compared without
- any block after a comment `<!-- file: NAME -->` is written to that file

`...` alone on a line of an output stands for any lines. A comment directly before a block changes how it runs:
`<!-- run: machine -->` (needs compiler and MPI), `nodes`, `long`, `numbers differ` (measured: words alone are
compared), `output differs` (a verdict on what was measured: it prints something, and its exit status is 0),
`<!-- not run: REASON -->`; several are separated by `; `. Of an output that differs and ends with `...` a page keeps as
many lines as it has.

Numbers are compared within 2 %, whole numbers below 50 and all words exactly; what is different each time (digests,
versions, times of day, today's date, absolute paths, how long workers took) is not compared.
"""

import datetime
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]

#: What a block may need; the mark of its tests.
NEEDS = ("machine", "nodes", "long")
DIFFER = "numbers differ"
OTHER = "output differs"
RELATIVE_TOLERANCE = 0.02
ELIDED = "..."

FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*([^`\s]*)[^`]*$")
COMMENT = re.compile(r"^\s*<!--\s*((?:run|not run|file):.*?)\s*-->\s*$")
#: Written for a reader as if they ran.
UNCHECKED_SHELLS = ("bash", "sh", "shell", "shell-session")


class MalformedPage(ValueError):
    """A block of a page that says nothing that can be run; the text has page and line."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or the source of a Python block, and the output that the page shows in lines [first, last)."""

    code: str
    shown: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Block:
    """`line` is that of its fence, from 1. An output that no line of the page has room for has first = last = 0."""

    kind: Literal["console", "python", "file"]
    line: int
    indent: str
    steps: tuple[Step, ...]
    name: str = ""
    needs: frozenset[str] = frozenset()
    numbers_differ: bool = False
    output_differs: bool = False


@dataclass(slots=True)
class Page:
    """Of a file: its lines, and those of its blocks that run."""

    path: Path
    lines: list[str]
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    @property
    def copies_examples(self) -> bool:
        return any("lepaute examples " in step.code for block in self.blocks for step in block.steps)


@dataclass(frozen=True, slots=True)
class _Fenced:
    """A fenced block: contents are lines [first, last) of the page, counted from 0; marks as the comment has them."""

    word: str
    indent: str
    first: int
    last: int
    marks: tuple[str, ...]


def pages() -> list[Path]:
    """The pages that run, in the order in which people meet them."""
    docs = ROOT / "docs"
    folders = ("tutorials", "howto", "concepts", "reference", "evidence", "design")
    found = [ROOT / "README.md", docs / "index.md", docs / "start.md"]
    found += [page for folder in folders for page in sorted((docs / folder).rglob("*.md"))]
    reference = docs / "reference"  # what lies in folders there is generated from the package
    return [page for page in found if page.is_file() and reference not in page.parent.parents]


def read_page(path: Path) -> Page:
    """Raises MalformedPage."""
    page = Page(path, path.read_text(encoding="utf-8").splitlines())
    fenced = list(_fenced(page.lines))
    after = {block.first: following for block, following in itertools.zip_longest(fenced, fenced[1:])}
    for block in fenced:
        found = _block(page, block, after[block.first])
        if found is not None:
            page.blocks.append(found)
    return page


def _fenced(lines: list[str]) -> Iterator[_Fenced]:
    number, marks = 0, ""
    while number < len(lines):
        comment, opening = COMMENT.match(lines[number]), FENCE.match(lines[number])
        if comment:
            marks = f"{marks}; {comment[1]}" if marks else comment[1]
        elif opening:
            indent, fence, word = opening.groups()
            first = number + 1
            closing = re.compile(rf"^ *{re.escape(fence)}{fence[0]}*\s*$")
            number = next((at for at in range(first, len(lines)) if closing.match(lines[at])), len(lines))
            yield _Fenced(word, indent, first, number, tuple(filter(None, re.split(r";\s*", marks))))
            marks = ""
        else:
            marks = ""
        number += 1


def _block(page: Page, fenced: _Fenced, following: _Fenced | None) -> Block | None:
    """What a fenced block runs; None where it is there to be read."""
    where = f"{page.name}:{fenced.first}"
    needs, differ, name = set(), set(), ""
    for mark in fenced.marks:
        if mark.startswith("not run:"):
            return None
        if mark.startswith("file:"):
            name = mark.removeprefix("file:").strip()
            continue
        for word in mark.removeprefix("run:").split(","):
            if word.strip() not in (*NEEDS, DIFFER, OTHER):
                raise MalformedPage(f"{where}: {word.strip()!r} is none of: {', '.join((*NEEDS, DIFFER, OTHER))}")
            (needs if word.strip() in NEEDS else differ).add(word.strip())
    lines = [line.removeprefix(fenced.indent) for line in page.lines[fenced.first : fenced.last]]
    kind: Literal["console", "python", "file"]
    steps: tuple[Step, ...]
    if name:
        kind, steps = "file", (Step("".join(f"{line}\n" for line in lines), (), 0, 0),)
    elif fenced.word == "console":
        kind, steps = "console", _commands(lines, fenced.first, where)
    elif fenced.word == "python":
        kind, steps = "python", (_snippet(page, lines, fenced, following),)
    elif fenced.word in UNCHECKED_SHELLS:
        raise MalformedPage(f"{where}: a block of {fenced.word}: commands are in `console`, after `$ `, and run")
    elif fenced.marks:
        raise MalformedPage(f"{where}: a block of {fenced.word or 'no language'} does not run; take its comment away")
    else:
        return None
    return Block(kind, fenced.first, fenced.indent, steps, name, frozenset(needs), DIFFER in differ, OTHER in differ)


def _commands(lines: list[str], offset: int, where: str) -> tuple[Step, ...]:
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise MalformedPage(f"{where}: a block of console begins with a command, `$ COMMAND`")
    steps = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        code = [lines[start].removeprefix("$ ")]
        first = start + 1
        while first < end and (lines[first].startswith("> ") or code[-1].endswith("\\")):
            code.append(lines[first].removeprefix("> "))
            first += 1
        steps.append(Step("\n".join(code), tuple(lines[first:end]), offset + first, offset + end))
    return tuple(steps)


def _snippet(page: Page, lines: list[str], fenced: _Fenced, following: _Fenced | None) -> Step:
    code = "".join(f"{line}\n" for line in lines)
    if following is None or following.word != "text" or following.marks:
        return Step(code, (), 0, 0)
    if any(line.strip() for line in page.lines[fenced.last + 1 : following.first - 1]):
        return Step(code, (), 0, 0)
    shown = page.lines[following.first : following.last]
    return Step(code, tuple(line.removeprefix(following.indent) for line in shown), following.first, following.last)


def parts(page: Page) -> dict[str, list[Block]]:
    """Part of a page, which a test runs -> its blocks. `computing` has those that need nothing, each other part also
    those before it in the order of NEEDS, since their blocks may need files of these."""
    found = {}
    allowed: frozenset[str] = frozenset()
    for part in ("computing", *NEEDS):
        allowed |= {part}
        blocks = [block for block in page.blocks if block.needs <= allowed]
        if part == "computing":
            wanted = any(block.kind != "file" for block in blocks)
        else:
            wanted = any(part in block.needs for block in blocks)
        if wanted:
            found[part] = blocks
    return found


# Comparing

NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
DATE = r"\d{4}-\d\d-\d\d"
#: What is different each time, and what it is compared as.
MASKS = (
    (re.compile(r"\babout [\d.]+ \w+\b.*?\bworkers?\b"), "about DURATION"),
    (re.compile(rf"\b{DATE}[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d)?\b"), "TIME"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "DIGEST"),
    (re.compile(r"(?<![\w.])v?\d+\.\d+\.\d+(?:[.-]?(?:dev|post|a|b|rc)\d+)?(?:\+[\w.]+)?(?![\w.]*\d)"), "VERSION"),
    (re.compile(r"(?<![\w./])(?:/[\w.+~-]+){2,}/?"), "PATH"),
)
#: A measured number with its unit, which goes from us to ms as it grows.
MEASURED = re.compile(
    r"[-+−]?(?<![A-Za-z_])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
    r"(?: ?(?:[nuµmkKMGT]?(?:s|flops?|flop/s|B|B/s|bit/s|Hz)|[KMGT]iB(?:/s)?|min|h)(?![\w/]))?"
)
RULE = re.compile(r"([-─━═=])\1{2,}")


def as_compared(line: str, numbers_differ: bool = False) -> str:
    """A line of output without what is different each time."""
    for pattern, instead in MASKS:
        line = pattern.sub(instead, line)
    today = datetime.date.today()
    for day in (today, today - datetime.timedelta(1)):
        line = line.replace(day.isoformat(), "DATE")
    if numbers_differ:
        line = re.sub(r", [nµm]?s(?= )", ", s", re.sub(DATE, "DATE", line))  # the unit of a column
        line = re.sub(r"\d", "0", MEASURED.sub("N", line))
    return " ".join(RULE.sub(r"\1\1\1", line).split())


def same_line(shown: str, printed: str, numbers_differ: bool = False, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    shown, printed = as_compared(shown, numbers_differ), as_compared(printed, numbers_differ)
    if "DATE" in printed and not numbers_differ:  # what is dated today was dated another day when the page was written
        before, _, behind = (re.escape(part) for part in printed.partition("DATE"))
        shown = (
            re.sub(rf"(?<={before}){DATE}(?={behind})", "DATE", shown)
            if before
            else re.sub(DATE, "DATE", shown, count=1)
        )
    if shown == printed:
        return True
    dates = re.findall(DATE, shown) == re.findall(DATE, printed)
    words = NUMBER.sub("N", shown) == NUMBER.sub("N", printed)
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=False)
    return dates and words and all(close(a, b, tolerance) for a, b in pairs)


def close(shown: str, printed: str, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """Two numbers as printed: within the tolerance, or one unit in the last of the decimals that both have."""
    if shown == printed:
        return True
    one, other = float(shown.replace(",", "")), float(printed.replace(",", ""))
    decimals = [len(re.split("e", text)[0].partition(".")[2]) for text in (shown, printed)]
    last = 10.0 ** -min(decimals) if min(decimals) and "e" not in shown + printed and tolerance else 0.0
    return abs(one - other) <= max(tolerance * max(abs(one), abs(other)), 1.001 * last)


def matched(
    shown: tuple[str, ...], printed: list[str], numbers_differ: bool = False, tolerance: float = RELATIVE_TOLERANCE
) -> list[int | None] | None:
    """For each line shown the number of the printed line that it stands for, None for `...`; None where they differ.

    Blank lines at the end do not count. `...` stands for as few lines as let the rest match.
    """
    shown_lines, printed_lines = _without_blank_end(list(shown)), _without_blank_end(printed)
    # at[k]: printed lines that the first k lines shown can stand for, and the choice before; few lines, so all are kept
    reached: list[dict[int, int]] = [{0: 0}]
    for line in shown_lines:
        following: dict[int, int] = {}
        for count in sorted(reached[-1]):
            if line.strip() == ELIDED:
                for end in range(count, len(printed_lines) + 1):
                    following.setdefault(end, count)
            elif count < len(printed_lines) and same_line(line, printed_lines[count], numbers_differ, tolerance):
                following.setdefault(count + 1, count)
        reached.append(following)
    if len(printed_lines) not in reached[-1]:
        return None
    found: list[int | None] = []
    at = len(printed_lines)
    for line, choices in zip(reversed(shown_lines), reversed(reached), strict=False):
        at = choices[at]
        found.append(None if line.strip() == ELIDED else at)
    return found[::-1]


def _without_blank_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def unlike(block: Block, step: Step, printed: list[str], status: int) -> str | None:
    """What is wrong with a step that printed these lines; None where it is as the page says."""
    if block.output_differs and printed and not status:
        return None
    unseen = block.kind == "python" and not step.first  # no block shows what it prints
    place = "" if unseen or matched(step.shown, printed, block.numbers_differ) is not None else "prints"
    # An error is part of the page where its message is shown in full, or its status is asked for.
    hidden = any(line.strip() == ELIDED for line in step.shown) or not step.shown
    if not place and status and hidden and "$?" not in step.code:
        place = f"ends with status {status}, printing"
    if not place:
        return None
    text = "\n".join(f"    {line}" for line in printed) or "    (nothing)"
    page = "\n".join(f"    {line}" for line in step.shown) or "    (nothing)"
    return f"line {step.first or block.line}: {step.code.strip()}\n  {place}\n{text}\n  and the page has\n{page}"


# Rewriting


def rewritten(page: Page, outputs: dict[Step, list[str]]) -> Page:
    """The page with these outputs. Lines that differ by nothing but what is not compared stay as they are, and `...`
    stays where the lines around it still say which they are."""
    lines = list(page.lines)
    steps = [(block, step) for block in page.blocks for step in block.steps if step in outputs]
    for block, step in sorted(steps, key=lambda pair: -pair[1].first):
        if step.first == 0:
            continue
        new = [f"{block.indent}{line}".rstrip() for line in _shown_anew(block, step, outputs[step])]
        lines[step.first : step.last] = new
    return replace(page, lines=lines)


def _shown_anew(block: Block, step: Step, printed: list[str]) -> list[str]:
    shown = _without_blank_end(list(step.shown))
    if block.output_differs:
        begins = bool(shown) and shown[-1].strip() == ELIDED  # a page shows the first so many lines
        return [*printed[: len(shown) - 1], ELIDED] if begins else _without_blank_end(printed)
    if matched(step.shown, printed, block.numbers_differ, tolerance=0.0) is not None:
        return shown
    stands_for = matched(step.shown, printed, block.numbers_differ)
    if stands_for is None:
        return _without_blank_end(printed)
    return [
        line if at is None or same_line(line, printed[at], block.numbers_differ, 0.0) else printed[at]
        for line, at in zip(shown, stands_for, strict=True)
    ]

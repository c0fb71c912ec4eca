"""Lines of a learnt program made shorter: conditions joined, and statements that come again as functions."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

#: A function replaces so many lines or more, in all places together, and has so many statements at most.
_MIN_SAVED, _MOST_STATEMENTS = 12, 40
_MOST_FUNCTIONS = 24
_FOR = re.compile(r"for (\w+) in ")
_Statement = tuple[str, ...]  # a line, and those inside it


def shaped(lines: Sequence[str], name_of: Callable[[Sequence[str]], str]) -> tuple[list[str], list[str]]:
    """Functions, which use what is named before them, and the body, which uses them; name_of: of a function's lines."""
    body = _joined(_statements(lines))
    functions: list[str] = []
    names: Counter[str] = Counter()
    for _ in range(_MOST_FUNCTIONS):
        block = _most_repeated(body)
        if block is None:
            break
        inside = [line for statement in block for line in statement]
        name = name_of(inside)
        names[name] += 1
        name += f"_{names[name]}" if names[name] > 1 else ""
        for at in range(2):  # functions that have been made may have it, too
            parts = _statements(functions) if at else body
            parts = _replaced(parts, block, (f"yield from {name}()",))
            body, functions = (body, [line for part in parts for line in part]) if at else (parts, functions)
        functions = [f"def {name}():", *(f"    {line}" for line in inside), "", *functions]
    return functions, [line for statement in body for line in statement]


def _statements(lines: Sequence[str]) -> list[_Statement]:
    made: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and made:
            made[-1].append(line)
        else:
            made.append([line])
    return [tuple(statement) for statement in made]


def _inside(statement: _Statement) -> list[_Statement]:
    return _statements([line[4:] for line in statement[1:]])


def _with(head: str, body: Sequence[_Statement]) -> _Statement:
    return (head, *(f"    {line}" for statement in body for line in statement))


def _joined(statements: Sequence[_Statement]) -> list[_Statement]:
    """Conditions that follow each other joined, where they are the same; so are those of a partner."""
    made: list[_Statement] = []
    for statement in statements:
        head = statement[0]
        if head.startswith("other = ") and len(made) > 1 and made[-2][0] == head and made[-1][0].startswith("if other"):
            continue  # the partner of the condition before
        if made and head.startswith("if ") and made[-1][0] == head:
            made[-1] = _with(head, _joined([*_inside(made[-1]), *_inside(statement)]))
        else:
            made.append(_with(head, _joined(_inside(statement))) if len(statement) > 1 else statement)
    return made


def _levels(statements: list[_Statement]) -> Iterator[list[_Statement]]:
    yield statements
    for statement in statements:
        if len(statement) > 1:
            yield from _levels(_inside(statement))


def _most_repeated(statements: list[_Statement]) -> tuple[_Statement, ...] | None:
    """The sequence of statements that saves most lines as a function."""
    levels = list(_levels(statements))
    times = Counter(statement for level in levels for statement in level)
    numbers = {statement: at for at, statement in enumerate(times)}
    known = list(numbers)
    counts: Counter[tuple[int, ...]] = Counter()
    ends: dict[tuple[int, ...], int] = {}
    for number, level in enumerate(levels):
        codes = [numbers[statement] for statement in level]
        for at in range(len(level)):
            for end in range(at + 1, min(len(level), at + _MOST_STATEMENTS) + 1):
                last = level[end - 1]
                if times[last] == 1 or "me.split(" in last[0] or last[0].startswith("#"):
                    break
                block, place = tuple(codes[at:end]), number << 20
                if place + at >= ends.get(block, -1):  # not within itself
                    counts[block] += 1
                    ends[block] = place + end
    best, saved = None, _MIN_SAVED
    for codes_of, count in counts.items():
        if count > 1 and (saves := (count - 1) * sum(len(known[code]) for code in codes_of) - count - 2) > saved:
            block_of = tuple(known[code] for code in codes_of)
            if _stands_alone(block_of):
                best, saved = block_of, saves
    return best


def _stands_alone(block: Sequence[_Statement]) -> bool:
    """Whether it uses no iteration of a loop around it, and the partners that it names."""
    text = "\n".join(line for statement in block for line in statement)
    if block[0][0].startswith("if other") or block[-1][0].startswith("other = "):
        return False
    return set(re.findall(r"\b[ijklmopq]\b", text)) <= set(_FOR.findall(text))


def _replaced(statements: list[_Statement], block: tuple[_Statement, ...], by: _Statement) -> list[_Statement]:
    made: list[_Statement] = []
    at = 0
    while at < len(statements):
        if tuple(statements[at : at + len(block)]) == block:
            made.append(by)
            at += len(block)
            continue
        statement = statements[at]
        made.append(_with(statement[0], _replaced(_inside(statement), block, by)) if len(statement) > 1 else statement)
        at += 1
    return made

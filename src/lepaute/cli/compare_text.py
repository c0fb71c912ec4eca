"""A comparison in words: who is faster, what that rests on, a table of all rows, and what `--details` adds."""

from collections.abc import Callable, Sequence

from lepaute.cli.terminal import answer_text, details_text
from lepaute.compare.comparison import Comparison
from lepaute.compare.derived import derived_lines
from lepaute.compare.scaling import crossing_sentence, crossings
from lepaute.compare.setting import algorithms, setting_lines
from lepaute.compare.wording import change, operation_name, sentence, violation_sentence
from lepaute.kit.tables import shown_table
from lepaute.kit.text import exact_size, in_common_unit, seconds
from lepaute.measure.comparison.cases import name_of

MOST_VIOLATIONS, MOST_DERIVED = 5, 20


def answered_comparison(
    comparisons: "Sequence[Comparison]", facts: Sequence[tuple[str, str]], width: int, *, details: bool = False
) -> str:
    """The answers, what they rest on, and a table; facts: of what was just measured, what each is and its text."""
    answers = [f"{each.answer[:1].upper()}{each.answer[1:]}" for each in comparisons]
    before = [answer_text(answer, (), (), width) for answer in answers[:-1]]
    several = len({each.right for each in comparisons}) > 1
    table = _table_beside_reference(comparisons, width) if several else _table(comparisons, width)
    effects = _effects_table(comparisons, width)
    warnings = _distinct(comparisons, lambda each: each.warnings)
    found = [] if several else [line for each in comparisons for line in _consequences(each)]
    if comparisons[0].all_ranks:
        rights = list(dict.fromkeys(each.right for each in comparisons))
        of_each = [[each for each in comparisons if each.right == right] for right in rights]
        facts = [*facts, ("order", "; ".join(crossing_sentence(crossings(each), each) for each in of_each))]
    told = [*facts, ("ratio", comparisons[0].estimand)]
    told += [("with", "; ".join(lines)) for lines in (_distinct(comparisons, setting_lines),) if lines]
    if details:
        rest = [f"{name}: {text}" for name, text in told]
        rest += [*found, *(f"warning: {each}" for each in warnings)]
        return "\n".join([*before, details_text(answers[-1], "\n".join(rest), width), table, *effects])
    if found:
        more = f"; {len(found) - 1} more: --details" if len(found) > 1 else ""
        told.append(("also", f"{found[0]}{more}"))
    return "\n".join([*before, answer_text(answers[-1], told, warnings, width), table, *effects])


def _distinct(comparisons: "Sequence[Comparison]", lines_of: "Callable[[Comparison], Sequence[str]]") -> list[str]:
    return list(dict.fromkeys(line for comparison in comparisons for line in lines_of(comparison)))


def _table(comparisons: "Sequence[Comparison]", width: int) -> str:
    """A line a row: what it is, both times, the algorithms where one is known, and the verdict with its stars; of each
    number of ranks where there are several."""
    left, right = comparisons[0].left, comparisons[0].right
    places = {
        one: place for place, one in enumerate(dict.fromkeys(one.row for each in comparisons for one in each.verdicts))
    }
    found = [(places[one.row], each.ranks, one, each) for each in comparisons for one in each.verdicts]
    titles = ["operation", "size", "ranks", left, right, "algorithms", "verdict"]
    rows = [
        [
            operation_name(row),
            exact_size(row.size_bytes),
            str(ranks),
            row.left_s,
            row.right_s,
            algorithms(each, row),
            f"{sentence(row, left, right)} {row.stars}".rstrip(),
        ]
        for _, ranks, row, each in sorted(found, key=lambda one: one[:2])
    ]
    titles, rows = in_common_unit(titles, rows, (3, 4))
    kept = [
        place
        for place in range(7)
        if (place != 2 or len(comparisons) > 1) and (place != 5 or any(row[5] for row in rows))
    ]
    titles, rows = [titles[place] for place in kept], [[row[place] for place in kept] for row in rows]
    left_columns = [kept.index(place) for place in (0, 5, 6) if place in kept]
    return shown_table(titles, rows, width, left=left_columns, drop=(kept.index(5),) if 5 in kept else ())


def _effects_table(comparisons: "Sequence[Comparison]", width: int) -> list[str]:
    """A line a level of a factor, row and library; nothing where no factor was varied."""
    by_library = {
        (one.factor, one.level, one.library, one.operation, one.form, one.size_bytes, one.ranks): one
        for each in comparisons
        for one in each.effects
    }
    rows = [
        [
            f"{one.factor}: {one.level} / {one.reference}",
            name_of(one.operation, one.form),
            exact_size(one.size_bytes),
            *([str(one.ranks)] if comparisons[0].all_ranks else []),
            one.library,
            f"{one.change} {one.stars}".rstrip(),
        ]
        for one in by_library.values()
    ]
    if not rows:
        return []
    titles = ["factor", "operation", "size", *(["ranks"] if comparisons[0].all_ranks else []), "library", "time"]
    return ["", shown_table(titles, rows, width, left=(0, 1, len(titles) - 2, len(titles) - 1))]


def _table_beside_reference(comparisons: "Sequence[Comparison]", width: int) -> str:
    """Several libraries, each beside the reference, the left one of all; of each number of ranks where there are
    several."""
    rights = list(dict.fromkeys(each.right for each in comparisons))
    with_ranks = bool(comparisons[0].all_ranks)
    rows: dict[object, list[str]] = {}
    for comparison in comparisons:
        for row in comparison.verdicts:
            first = [operation_name(row), exact_size(row.size_bytes), *([str(comparison.ranks)] if with_ranks else [])]
            first.append(seconds(row.left_s))
            cells = rows.setdefault((*row.row, comparison.ranks), [*first, *["–"] * len(rights)])
            change_text = f"{seconds(row.right_s)}: {change(row)} {row.stars}".rstrip()
            cells[len(first) + rights.index(comparison.right)] = change_text
    titles = ["operation", "size", *(["ranks"] if with_ranks else []), comparisons[0].left, *rights]
    return shown_table(titles, rows.values(), width, left=range(len(titles)))


def _consequences(comparison: "Comparison") -> list[str]:
    """What is derived from several rows, and the performance guidelines that are violated."""
    derived = derived_lines(comparison)
    lines = derived[:MOST_DERIVED]
    if (more := len(derived) - MOST_DERIVED) > 0:
        lines.append(f"and {more} more such lines; see --report")
    violated = [guideline for guideline in comparison.guidelines if guideline.is_violated]
    lines += [f"{each.library}: {violation_sentence(each)}" for each in violated[:MOST_VIOLATIONS]]
    if (more := len(violated) - MOST_VIOLATIONS) > 0:
        lines.append(f"and {more} more performance guidelines are violated; see --json")
    return lines

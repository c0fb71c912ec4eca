"""A comparison in words: who is faster, what that rests on, a table of all rows, and what `--details` adds."""

from collections.abc import Callable, Sequence

from lepaute.cli.terminal import answer_text, details_text, json_text
from lepaute.kit.json_values import finite_json
from lepaute.kit.printable import terminal_columns
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, exact_size, seconds, significant
from lepaute.measure.archive import Archive
from lepaute.measure.compare.comparison import Comparison
from lepaute.measure.compare.derived import derived_lines
from lepaute.measure.compare.guidelines import SIGNIFICANT, Violation, check_guidelines
from lepaute.measure.compare.report import ranks_sentence
from lepaute.measure.compare.setting import algorithms, setting_lines
from lepaute.measure.compare.summaries import campaign_summaries
from lepaute.measure.compare.wording import amount, operation_name, outcome_words, ratio_text, violation_sentence
from lepaute.measure.comparison.cases import name_of

MAX_VIOLATIONS, MAX_DERIVED = 5, 20


def answered_comparison(
    comparisons: "Sequence[Comparison]", facts: Sequence[tuple[str, str]], width: int, *, details: bool = False
) -> str:
    """The answers, what they rest on, and a table; facts: of what was just measured, what each is and its text."""
    failed_first = sorted(comparisons, key=lambda each: not each.failures)
    answers = [f"{each.answer[:1].upper()}{each.answer[1:]}" for each in failed_first]
    before = [answer_text(answer, (), (), width) for answer in answers[:-1]]
    several = len({comparison.right for comparison in comparisons}) > 1
    table = _table_beside_reference(comparisons, width) if several else _table(comparisons, width)
    effects = _effects_table(comparisons, width)
    warnings = _distinct(comparisons, lambda each: each.warnings)
    found = [] if several else [line for comparison in comparisons for line in _derived_lines(comparison)]
    if comparisons[0].all_ranks:
        rights = list(dict.fromkeys(comparison.right for comparison in comparisons))
        of_each = [[comparison for comparison in comparisons if comparison.right == right] for right in rights]
        facts = [*facts, ("order", "; ".join(map(ranks_sentence, of_each)))]
    facts_shown = [*facts, *([] if comparisons[0].is_of_single_runs else [("ratio", comparisons[0].estimand)])]
    facts_shown += [("with", "; ".join(lines)) for lines in (_distinct(comparisons, setting_lines),) if lines]
    if details:
        rest = [f"{name}: {text}" for name, text in facts_shown]
        rest += [*found, *(f"warning: {warning}" for warning in warnings)]
        return "\n".join([*before, details_text(answers[-1], "\n".join(rest), width), table, *effects])
    if found:
        more = f"; {len(found) - 1} more: --details" if len(found) > 1 else ""
        facts_shown.append(("also", f"{found[0]}{more}"))
    return "\n".join([*before, answer_text(answers[-1], facts_shown, warnings, width), table, *effects])


def _distinct(comparisons: "Sequence[Comparison]", lines_of: "Callable[[Comparison], Sequence[str]]") -> list[str]:
    return list(dict.fromkeys(line for comparison in comparisons for line in lines_of(comparison)))


def _table(comparisons: "Sequence[Comparison]", width: int) -> str:
    """A line a row: what it is, ranks where they vary, both times, known algorithms, the verdict with its stars."""
    left, right = comparisons[0].left, comparisons[0].right
    every = dict.fromkeys(row.row for item in comparisons for row in item.verdicts)
    places = {row: place for place, row in enumerate(every)}
    placed = [(places[row.row], item.ranks, row, item) for item in comparisons for row in item.verdicts]
    titles = ["operation", "size", "ranks", left, right, f"{right} / {left}", "algorithms", "verdict"]
    rows: list[list[object]] = [
        [
            operation_name(row),
            exact_size(row.size_bytes),
            str(ranks),
            *(amount(row, time_s) for time_s in (row.left_s, row.right_s)),
            ratio_text(row),
            algorithms(each, row),
            f"{outcome_words(row, left, right)} {row.stars}".rstrip(),
        ]
        for _, ranks, row, each in sorted(placed, key=lambda known: known[:2])
    ]
    untold = {part for row in rows for part in str(row[7]).split(": ")} - {""}
    untold = {part for part in untold if not any(part in item.answer for item in comparisons)}
    needed = {2: len(comparisons) > 1, 6: any(row[6] for row in rows), 7: bool(untold)}
    kept = [place for place in range(8) if needed.get(place, True)]
    titles, rows = [titles[place] for place in kept], [[row[place] for place in kept] for row in rows]
    left_columns = [kept.index(place) for place in (0, 5, 6, 7) if place in kept]
    keys, drop = kept.index(3), (kept.index(6),) if 6 in kept else ()
    return shown_table(titles, rows, width, left=left_columns, drop=drop, keys=keys)


def _effects_table(comparisons: "Sequence[Comparison]", width: int) -> list[str]:
    """A line a level of a factor, row and library; nothing where no factor was varied."""
    by_library = {
        (row.factor, row.level, row.library, row.operation, row.form, row.size_bytes, row.ranks): row
        for item in comparisons
        for row in item.effects
    }
    ranks = ["ranks"] if comparisons[0].all_ranks else []
    rows = [
        [
            f"{effect.factor}: {effect.level} / {effect.reference}",
            name_of(effect.operation, effect.form),
            exact_size(effect.size_bytes),
            *([str(effect.ranks)] if ranks else []),
            effect.library,
            f"{ratio_text(effect)} {effect.stars}".rstrip(),
        ]
        for effect in by_library.values()
    ]
    if not rows:
        return []
    titles = ["factor", "operation", "size", *ranks, "library", "ratio of times"]
    return ["", shown_table(titles, rows, width, left=(0, 1, len(titles) - 2, len(titles) - 1))]


def _table_beside_reference(comparisons: "Sequence[Comparison]", width: int) -> str:
    """Several libraries, each beside the reference, the left one of all; by number of ranks where there are several."""
    rights = list(dict.fromkeys(each.right for each in comparisons))
    with_ranks = bool(comparisons[0].all_ranks)
    rows: dict[object, list[str]] = {}
    for comparison in comparisons:
        for row in comparison.verdicts:
            first = [operation_name(row), exact_size(row.size_bytes), *([str(comparison.ranks)] if with_ranks else [])]
            first.append(amount(row, row.left_s))
            cells = rows.setdefault((*row.row, comparison.ranks), [*first, *["–"] * len(rights)])
            change_text = f"{amount(row, row.right_s)}: {ratio_text(row)} {row.stars}".rstrip()
            cells[len(first) + rights.index(comparison.right)] = change_text
    titles = ["operation", "size", *(["ranks"] if with_ranks else []), comparisons[0].left, *rights]
    return shown_table(titles, rows.values(), width, left=range(len(titles)))


def _derived_lines(comparison: "Comparison") -> list[str]:
    """What is derived from several rows, and the performance guidelines that are violated."""
    derived = derived_lines(comparison)
    lines = derived[:MAX_DERIVED]
    if (more := len(derived) - MAX_DERIVED) > 0:
        lines.append(f"and {more} more such lines; see --report")
    violated = [guideline for guideline in comparison.guidelines if guideline.is_violated]
    lines += [f"{each.library}: {violation_sentence(each)}" for each in violated[:MAX_VIOLATIONS]]
    if (more := len(violated) - MAX_VIOLATIONS) > 0:
        lines.append(f"and {more} more performance guidelines are violated; see --json")
    return lines


def guidelines_answer(campaign: Archive, label: str, ranks: int, *, details: bool, as_json: bool) -> str:
    """What undisturbed mpiruns say of a library, and a table of what is violated, with details of all; or as JSON."""
    summaries = campaign_summaries(campaign)
    summaries = summaries[summaries["library"] == label]
    quiet = summaries[~summaries["disturbed"]]
    count = summaries["mpirun"].nunique()
    tested = () if quiet.empty and count else check_guidelines(quiet, label, ranks)
    none = f"{count} of {counted(count, 'mpirun')} of {label} were disturbed: no guideline is tested"
    answer = none if quiet.empty and count else answer_of(tested, label)
    if as_json:
        every = [{**finite_json(one), "violated": one.is_violated, "mock_up": one.mock_up} for one in tested]
        return json_text({"answer": answer, "library": label, "guidelines": every})
    titles = ["operation", "size", "mock-up", "times as long", "costs a call", ""]
    rows = [
        [
            each.operation,
            exact_size(each.size_bytes) if each.size_bytes else "",
            each.mock_up,
            ratio_text(each),
            seconds(each.excess_s),
            "violated" if each.is_violated else "not shown",
        ]
        for each in tested
        if each.is_violated or details
    ]
    width = terminal_columns()
    table = [shown_table(titles, rows, width, left=(0, 2, 3, 5))] if rows else []
    return "\n".join([answer_text(f"{answer[:1].upper()}{answer[1:]}", [], [], width), *table])


def answer_of(tested: Sequence[Violation], label: str) -> str:
    """How many guidelines are violated, and the one that costs most."""
    violated, mpiruns = [each for each in tested if each.is_violated], max((each.mpiruns for each in tested), default=0)
    if not tested:
        return f"no guideline can be tested of {label}: its operations and sizes do not belong together"
    if not violated and 2.0**-mpiruns * len(tested) > SIGNIFICANT:
        needed = next(count for count in range(1, 60) if 2.0**-count * len(tested) <= SIGNIFICANT)
        made = counted(mpiruns, "undisturbed mpirun")
        return f"nothing can be shown of {counted(len(tested), 'guideline')} by {made} of {label}: {needed} are needed"
    if not violated:
        return f"{label} is not shown to violate any of {counted(len(tested), 'performance guideline')}"
    worst = violated[0]
    size = f" of {exact_size(worst.size_bytes)}" if worst.size_bytes else ""
    of = f"{label} violates {len(violated)} of {counted(len(tested), 'performance guideline')}"
    times = f"{significant(worst.ratio)} times as long as {worst.mock_up}"
    return f"{of}; {worst.operation}{size} takes {times}, {seconds(worst.excess_s)} more a call"

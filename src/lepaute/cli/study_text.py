"""The answer of a study on a terminal: the sentence, what it rests on, its caveats in a line, and the table."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.cli.terminal import answer_text, details_text
from lepaute.kit.tables import shown_table
from lepaute.study.capacity import Front
from lepaute.study.sensitivity import Effects
from lepaute.study.tune import Tuned
from lepaute.study.whatif import WhatIfAnswer

if TYPE_CHECKING:
    from lepaute.study.running import StudyRun

#: Facts of an answer, and notes that many rows of a table have in common.
MAX_FACTS, MAX_NOTES = 5, 2


def answered_study(run: "StudyRun", width: int, *, details: bool = False) -> str:
    """A study that was run, in a terminal of `width` columns, or in a file."""
    facts, table = _facts_and_table(run, width, details=details)
    base = run.study.base
    subjects = {str(value): "" for name, value in base.application.items() if name in ("name", "class", "program")}
    fields = [f"{name} {value}" for name, value in base.application.items() if str(value) not in subjects]
    facts = [("run", f"{', '.join([*subjects, *fields])} on {base.platform}"), *facts]
    text = answer_text(run.first_line, facts[:MAX_FACTS], run.caveats, width)
    if details:
        rest = [*(f"{name}: {text}" for name, text in facts), *(f"warning: {caveat}" for caveat in run.caveats)]
        text = details_text(run.first_line, "\n".join(rest), width) if rest else run.first_line
    return f"{text}\n{table}" if table else text


def _facts_and_table(run: "StudyRun", width: int, *, details: bool) -> tuple[list[tuple[str, str]], str]:
    """What the first line rests on, and a table where there is one."""
    answer = run.answer
    if isinstance(answer, WhatIfAnswer):
        titles, rows = answer.table()
        rows, notes = (rows, []) if details else _without_common(rows)
        published = [] if answer.source is None else [("published", answer.source)]
        facts = [("from", answer.pairing), *(("rows", note) for note in notes), *published]
        return facts, shown_table(titles, rows, width, left=range(len(titles)))
    if isinstance(answer, Tuned):
        titles, ranked, more = answer.table()
        table = shown_table(titles, ranked, width, left=(len(titles) - 1,))
        facts = [(name, text.removeprefix("to decide: ")) for name, text in answer.facts]
        return facts, f"{table}\nand {more} more" if more > 0 else table
    if isinstance(answer, Effects):
        return [(term.name, answer.direction_of(term)) for term in answer.told_terms], ""
    if isinstance(answer, Front):
        titles, rows = answer.table()
        return answer.facts, shown_table(titles, rows, width, left=(0, len(titles) - 1))
    return [], ""


def _without_common(rows: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows, without the notes after the first semicolon of their last cells that several have, and these notes."""
    noted = [row[-1].split("; ") for row in rows]
    counts = Counter(part for first, *parts in noted for part in parts)
    common = [part for part, count in counts.most_common(MAX_NOTES) if count > 1]
    shorter = [
        (*row[:-1], "; ".join([first, *(part for part in parts if part not in common)]))
        for row, (first, *parts) in zip(rows, noted, strict=True)
    ]
    return shorter, [f"{part} ({counts[part]} of {len(rows)})" for part in common]

"""The comparison of MPI libraries on a terminal, or as JSON."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison

MOST_VIOLATIONS, MOST_DERIVED = 5, 20


def print_comparison(found: "Comparison", reports: Sequence[Path], *, as_json: bool) -> None:
    """Prints a comparison and writes its reports."""
    from lepaute.compare.derived import derived_lines
    from lepaute.compare.report import write_report
    from lepaute.compare.setting import setting_lines

    for path in reports:
        write_report(found, path)
        print(f"wrote {path}", file=sys.stderr)
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for line in setting_lines(found):
        print(line)
    print(_table(found))
    for line in (*_some(derived_lines(found)), *_violations(found)):
        print(line)
    print(f"{found.answer[:1].upper()}{found.answer[1:]}.")


def print_comparisons(found: "Sequence[Comparison]", *, as_json: bool) -> None:
    """Prints several libraries in one table, each beside the reference, the left one of all."""
    from lepaute.compare.setting import setting_lines
    from lepaute.compare.wording import change, operation_name, size_text
    from lepaute.kit.text import seconds

    if as_json:
        print(json.dumps({"reference": found[0].left, "comparisons": [one.to_dict() for one in found]}))
        return
    for warning in dict.fromkeys(line for one in found for line in one.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    for line in dict.fromkeys(line for one in found for line in setting_lines(one)):
        print(line)
    rows: dict[tuple[str, str, int], list[str]] = {}
    for number, one in enumerate(found):
        for verdict in one.verdicts:
            key = (verdict.operation, verdict.form, verdict.size_bytes)
            name, size = operation_name(verdict), size_text(verdict.size_bytes)
            cells = rows.setdefault(key, [name, size, seconds(verdict.left_s), *["–"] * len(found)])
            cells[3 + number] = f"{seconds(verdict.right_s)}: {change(verdict)} {verdict.stars}".rstrip()
    lines = [["operation", "size", found[0].left, *(one.right for one in found)], *rows.values()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for cells in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    for one in found:
        print(f"{one.answer[:1].upper()}{one.answer[1:]}.")


def _table(found: "Comparison") -> str:
    """A line a row: what it is, both times, the algorithms where one is known, and the verdict with its stars."""
    from lepaute.compare.setting import algorithms
    from lepaute.compare.wording import operation_name, sentence, size_text
    from lepaute.kit.text import seconds

    ran = [algorithms(found, one) for one in found.verdicts]
    lines = [("operation", "size", found.left, found.right, "algorithms", "")]
    for one, known in zip(found.verdicts, ran, strict=True):
        words = sentence(one, found.left, found.right)
        verdict = f"{words} {one.stars}".rstrip()
        times = seconds(one.left_s), seconds(one.right_s)
        lines.append((operation_name(one), size_text(one.size_bytes), *times, known, verdict))
    if not any(ran):
        lines = [(*line[:4], "", line[5]) for line in lines]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join(
            (
                line[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(line[1:4], widths[1:], strict=False)),
                *([line[4].ljust(widths[4])] if widths[4] else []),
                line[5],
            )
        ).rstrip()
        for line in lines
    )


def _some(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_DERIVED:
        return lines
    return [*lines[:MOST_DERIVED], f"and {len(lines) - MOST_DERIVED} more such lines; see --report"]


def _violations(found: "Comparison") -> list[str]:
    from lepaute.compare.wording import violation_sentence

    violated = [one for one in found.guidelines if one.is_violated]
    lines = [f"{one.library}: {violation_sentence(one)}" for one in violated[:MOST_VIOLATIONS]]
    if len(violated) > MOST_VIOLATIONS:
        lines.append(f"and {len(violated) - MOST_VIOLATIONS} more performance guidelines are violated; see --json")
    return lines

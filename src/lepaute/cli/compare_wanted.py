"""What `lepaute compare` makes of measurements: a comparison, rules for one library, or nothing; and its text."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.archive import Archive
    from lepaute.compare.comparison import Comparison
    from lepaute.compare.verdicts import Correction

#: Exit status where --strict wants to know and the measurements do not tell.
UNDECIDED = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command that are not about measuring; margin, most_slower: shares."""

    left: str | None
    right: str | None
    margin: float
    reports: Sequence[Path]
    tune: Path | None
    measure_only: bool
    as_json: bool
    correction: "Correction"
    primary: Sequence[str]
    most_slower: float | None = None
    strict: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        from lepaute.compare.report import check_name

        if not self.margin > 0:
            raise InputError(f"--margin is {100 * self.margin:g} %; it must be above 0, such as 2%")
        if self.most_slower is not None and self.most_slower < 0:
            raise InputError(f"--fail-if-slower is {100 * self.most_slower:g} %; it must be 0 or more, such as 5%")
        if self.strict and self.most_slower is None:
            raise InputError("--strict is about --fail-if-slower; give that, too")
        for path in self.reports:
            check_name(path)

    def made_of_files(self, words: Sequence[str]) -> bool:
        """Compares files that are given in the place of libraries, or writes rules from one; false for libraries.

        Raises InputError for a mixture, for files that cannot be compared, and for options that do not fit.
        """
        from lepaute.archive import Archive
        from lepaute.cli.compare_tuning import write_tuning

        if self.tune is not None:
            self._check_tuning(words)
            if not words[0].endswith(".zip"):
                return False
            check_outputs({"--tune": self.tune}, inputs=words, force=self.force)
            write_tuning(Archive.open(words[0]), self.tune)
            return True
        compared = compared_files(words, self)
        self._show(compared)
        return bool(compared)

    def check_measuring(self, libraries: Sequence[str], output: Path) -> None:
        """Raises InputError where what is wanted cannot come of measuring these libraries."""
        from lepaute.measure.comparison.libraries import named_libraries

        check_outputs({"--output": output, "--report": list(self.reports), "--tune": self.tune}, force=self.force)
        if self.reports and self.measure_only:
            raise InputError("--report is of a comparison, and --measure-only makes none; leave one of them out")
        if self.most_slower is not None and (self.measure_only or len(libraries) == 1):
            raise InputError("--fail-if-slower is of a comparison, and there is none; leave it out")
        if self.reports and len(libraries) != 2 and not (self.left and self.right):
            raise InputError("--report is of two libraries; name them with --left and --right")
        self._check_labels([each.label for each in named_libraries(libraries)])

    def _check_labels(self, labels: Sequence[str]) -> None:
        for option, label in (("--left", self.left), ("--right", self.right)):
            if label is not None and label not in labels:
                raise InputError(f"{option} is {label[:40]!r}; the libraries are called {', '.join(labels)}")

    def of_campaigns(self) -> dict[str, Any]:
        """Arguments of `compare.comparison.archives`."""
        from lepaute.measure.comparison.cases import rows_of

        return {
            "left": self.left,
            "right": self.right,
            "margin": self.margin,
            "correction": self.correction,
            "primary": rows_of(self.primary) or None,
        }

    def _check_tuning(self, libraries: Sequence[str]) -> None:
        if len(libraries) > 1:
            raise InputError(f"--tune is of one library, or of the archive of one; there are {len(libraries)}")
        if self.reports or self.measure_only or self.as_json or self.left or self.right:
            raise InputError(
                "--tune writes rules and compares no two libraries: leave out --report, --json, --left, --right and "
                "--measure-only"
            )

    def make_of_measured(self, campaign: "Archive") -> None:
        """Compares what was just measured, or writes rules from it."""
        from lepaute.archive.mpi_campaign import facts
        from lepaute.cli.compare_tuning import write_tuning

        if self.measure_only:
            return
        if self.tune is not None:
            write_tuning(campaign, self.tune)
        elif len(facts(campaign).labels) > 1:
            self._show(self.of_campaign(campaign))

    def of_campaign(self, campaign: "Archive") -> "list[Comparison]":
        """Of a campaign with more than two libraries, each with the reference: --left, or the first one."""
        from lepaute.archive.mpi_campaign import facts
        from lepaute.compare.comparison import archives

        labels = facts(campaign).labels
        if len(labels) <= 2 or self.right is not None:
            return [archives(campaign, **self.of_campaigns())]
        self._check_labels(labels)
        reference = self.left or labels[0]
        others = [label for label in labels if label != reference]
        if self.reports:
            raise InputError(f"--report is of two libraries; name one of {', '.join(others)} with --right")
        return [archives(campaign, **{**self.of_campaigns(), "left": reference, "right": label}) for label in others]

    def _show(self, found: "Sequence[Comparison]") -> None:
        """Raises typer.Exit: 1 where a library is slower than it may be, 3 where that is not known and is to be."""
        from lepaute.compare.verdicts import gate

        if len(found) == 1:
            print_comparison(found[0], self.reports, as_json=self.as_json)
        elif found:
            print_comparisons(found, as_json=self.as_json)
        if self.most_slower is None:
            return
        gates = [gate(one.verdicts, one.right, self.most_slower) for one in found]
        for one in gates:
            print(one.sentence, file=sys.stderr)
        if any(one.slower for one in gates):
            raise typer.Exit(1)
        if self.strict and any(one.undecided for one in gates):
            raise typer.Exit(UNDECIDED)


def compared_files(words: Sequence[str], wanted: "Wanted") -> "list[Comparison]":
    """The comparisons of the files that the words name; none where they name libraries.

    Raises InputError for a mixture, for files that cannot be compared, and where a report cannot be written.
    """
    from lepaute.archive import Archive
    from lepaute.compare.benchmark_output import named_output, outputs
    from lepaute.compare.comparison import archives

    printed = [one for word in words if (one := named_output(word)) is not None]
    campaigns = [word for word in words if word.endswith(".zip")]
    if not (printed or campaigns):
        return []
    if len(words) not in (len(printed), len(campaigns)):
        raise InputError(
            f"{' '.join(words)}: archives, outputs of benchmarks and libraries cannot be mixed; give one kind"
        )
    check_outputs(
        {"--report": list(wanted.reports)}, inputs=[*campaigns, *(path for _, path in printed)], force=wanted.force
    )
    if len(campaigns) == 1:
        return wanted.of_campaign(Archive.open(campaigns[0]))
    if campaigns:
        return [archives(*(Archive.open(name) for name in campaigns), **wanted.of_campaigns())]
    if len(printed) != 2 or wanted.left or wanted.right:
        raise InputError("two outputs of benchmarks are compared, in the order in which they are given: LEFT RIGHT")
    (left_label, left_file), (right_label, right_file) = printed
    found = outputs(
        left_file,
        right_file,
        left_label=left_label,
        right_label=right_label,
        margin=wanted.margin,
        correction=wanted.correction,
    )
    return [found]


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
    from lepaute.compare.wording import change, operation_name
    from lepaute.kit.text import exact_size, seconds

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
            name, size = operation_name(verdict), exact_size(verdict.size_bytes)
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
    from lepaute.compare.wording import operation_name, sentence
    from lepaute.kit.text import exact_size, seconds

    ran = [algorithms(found, one) for one in found.verdicts]
    lines = [("operation", "size", found.left, found.right, "algorithms", "")]
    for one, known in zip(found.verdicts, ran, strict=True):
        words = sentence(one, found.left, found.right)
        verdict = f"{words} {one.stars}".rstrip()
        times = seconds(one.left_s), seconds(one.right_s)
        lines.append((operation_name(one), exact_size(one.size_bytes), *times, known, verdict))
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

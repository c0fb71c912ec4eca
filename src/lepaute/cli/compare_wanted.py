"""What `lepaute compare` shall make of measurements: a comparison of two libraries, rules for one, or nothing."""

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
        from lepaute.compare.report.files import check_name

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
        from lepaute.cli.compare_files import compared_files
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
        from lepaute.cli.compare_text import print_comparison, print_comparisons
        from lepaute.compare.gate import gate

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

"""What `lepaute compare` shall make of measurements: a comparison of two libraries, rules for one, or nothing."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.archive import Archive


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command that are not about measuring; margin: a share."""

    left: str | None
    right: str | None
    margin: float
    reports: Sequence[Path]
    tune: Path | None
    measure_only: bool
    as_json: bool
    force: bool

    def __post_init__(self) -> None:
        from lepaute.report.files import check_report_name

        if not self.margin > 0:
            raise InputError(f"--margin is {100 * self.margin:g} %; it must be above 0, such as 2%")
        for path in self.reports:
            check_report_name(path)

    def made_of_files(self, words: Sequence[str]) -> bool:
        """Compares files that are given in the place of libraries, or writes rules from one; false for libraries.

        Raises InputError for a mixture, for files that cannot be compared, and for options that do not fit.
        """
        from lepaute.archive import Archive
        from lepaute.cli.compare_files import compared_files
        from lepaute.cli.compare_text import print_comparison
        from lepaute.cli.compare_tuning import write_tuning

        if self.tune is not None:
            self._check_tuning(words)
            if not words[0].endswith(".zip"):
                return False
            check_outputs({"--tune": self.tune}, inputs=words, force=self.force)
            write_tuning(Archive.open(words[0]), self.tune)
            return True
        compared = compared_files(words, self.left, self.right, self.margin, self.reports, force=self.force)
        if compared is not None:
            print_comparison(compared, self.reports, as_json=self.as_json)
        return compared is not None

    def check_measuring(self, libraries: Sequence[str], output: Path) -> None:
        """Raises InputError where what is wanted cannot come of measuring these libraries."""
        if self.reports and self.measure_only:
            raise InputError("--report is of a comparison, and --measure-only makes none; leave one of them out")
        if self.reports and len(libraries) != 2 and not (self.left and self.right):
            raise InputError("--report is of two libraries; name them with --left and --right")
        check_outputs({"--output": output, "--report": list(self.reports), "--tune": self.tune}, force=self.force)

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
        from lepaute.cli.compare_text import print_comparison
        from lepaute.cli.compare_tuning import write_tuning
        from lepaute.compare.comparison import archives

        labels = facts(campaign).labels
        if self.measure_only:
            return
        if self.tune is not None:
            write_tuning(campaign, self.tune)
        elif len(labels) == 2 or (self.left and self.right):
            found = archives(campaign, left=self.left, right=self.right, margin=self.margin)
            print_comparison(found, self.reports, as_json=self.as_json)
        else:
            words = f"lepaute compare {campaign.path} --left LABEL --right LABEL"
            print(f"to compare two of {', '.join(labels)}: {words}", file=sys.stderr)

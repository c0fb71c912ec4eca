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

    def check(self, libraries: Sequence[str], output: Path) -> bool:
        """Whether archives are given in the place of libraries. Raises InputError for options that do not fit."""
        from lepaute.report.files import check_report_name

        if not self.margin > 0:
            raise InputError(f"--margin is {100 * self.margin:g} %; it must be above 0, such as 2%")
        for path in self.reports:
            check_report_name(path)
        given = [name.endswith(".zip") for name in libraries]
        if any(given) and not all(given):
            raise InputError(f"{' '.join(libraries)}: archives and libraries cannot be mixed; give one kind of them")
        if self.tune is not None:
            self._check_tuning(libraries)
        elif not any(given):
            self._check_comparison(libraries)
        check_outputs(
            {"--output": None if any(given) else output, "--report": list(self.reports), "--tune": self.tune},
            inputs=libraries if any(given) else (),
        )
        return any(given)

    def _check_tuning(self, libraries: Sequence[str]) -> None:
        if len(libraries) > 1:
            raise InputError(f"--tune is of one library, or of the archive of one; there are {len(libraries)}")
        if self.reports or self.measure_only or self.as_json or self.left or self.right:
            raise InputError(
                "--tune writes rules and compares no two libraries: leave out --report, --json, --left, --right and "
                "--measure-only"
            )

    def _check_comparison(self, libraries: Sequence[str]) -> None:
        if self.reports and self.measure_only:
            raise InputError("--report is of a comparison, and --measure-only makes none; leave one of them out")
        if self.reports and len(libraries) != 2 and not (self.left and self.right):
            raise InputError("--report is of two libraries; name them with --left and --right")

    def make_of(self, campaigns: "Sequence[Archive]") -> None:
        """Compares archives that were given, or writes rules from them."""
        from lepaute.cli.compare_text import print_comparison
        from lepaute.cli.compare_tuning import write_tuning

        if self.tune is not None:
            write_tuning(campaigns[0], self.tune)
            return
        print_comparison(campaigns, self.left, self.right, self.margin, self.reports, as_json=self.as_json)

    def make_of_measured(self, campaign: "Archive") -> None:
        """As make_of of the archive that was just measured, where it has what is wanted."""
        from lepaute.archive.mpi_campaign import facts

        labels = facts(campaign).labels
        if self.measure_only:
            return
        if self.tune is not None or len(labels) == 2 or (self.left and self.right):
            self.make_of([campaign])
            return
        words = f"lepaute compare {campaign.path} --left LABEL --right LABEL"
        print(f"to compare two of {', '.join(labels)}: {words}", file=sys.stderr)

"""What can be fitted to an experiment that is no calibration: tests of its factors, and the memory hierarchy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import FitError
from lepaute.fit.factors import FactorTest, factor_tests

if TYPE_CHECKING:
    from lepaute.archive import Archive

_TABLES = "observations/"


@dataclass(frozen=True)
class Findings:
    """table: the observations that were looked at; factor_tests: of every factor that was varied in them."""

    table: str
    factor_tests: tuple[FactorTest, ...]


def is_experiment(archive: "Archive") -> bool:
    return archive.metadata.get("kind") == "experiment"


def findings(archive: "Archive") -> list[Findings]:
    """Of every table of observations that has durations. Raises FitError where there is none, or nothing varies."""
    found = []
    for name in archive.members():
        if not name.startswith(_TABLES) or not name.endswith(".parquet"):
            continue
        table = archive.table(name)
        if "duration_s" not in table.columns or len(table) == 0:
            continue
        if tests := factor_tests(table):
            found.append(Findings(name, tests))
    if not found:
        raise FitError(
            f"{archive.path}: no table of observations has durations (duration_s) under several levels of a factor; "
            "there is nothing to fit"
        )
    return found

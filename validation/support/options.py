"""The options that all scripts of this folder have, and where they read and write."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.evidence import EVIDENCE
from support.page import write_whole

if TYPE_CHECKING:
    import pandas

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    reference : the folder of the reference data
    output : where the pages stand; tables and pictures go into its folder data/
    quick : a few small cases, to see that the script works; nothing it shows is a result
    full : everything, where the script takes a subset by default
    summarise : no simulation: judge and draw again what the table of the last run holds
    own : values of the script's own options
    """

    reference: Path
    output: Path
    quick: bool
    full: bool
    summarise: bool
    own: argparse.Namespace = field(default_factory=argparse.Namespace)

    def data(self, name: str) -> Path:
        """A file of the reference data."""
        return self.reference / name

    def table(self, study: str) -> Path:
        """The table that a study writes, a row a case."""
        return self.output / "data" / f"{study}.csv"

    def write(self, name: str, frame: "pandas.DataFrame", digits: str | None = None) -> None:
        """Writes a table, whole; digits : such as %.4g."""
        write_whole(self.table(name), frame.to_csv(index=False, float_format=digits).encode())


def options_of(
    description: str | None,
    needs: Sequence[str] = (),
    has_subset: bool = False,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    has_quick: bool = True,
) -> Options:
    """The options of the command line; ends the program with status 2 and one line where reference data are missing.

    needs : files of the reference data, relative to its folder
    has_subset : whether --full means something
    own : the script's own options by name, or names, with the arguments of add_argument
    has_quick : whether --quick means something
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT.parent / "shared" / "reference"
    parser.add_argument("--reference", type=Path, default=default, help="the folder of the reference data")
    parser.add_argument("--output", type=Path, help="where the pages stand (docs/evidence; build/quick with --quick)")
    if has_quick:
        parser.add_argument("--quick", action="store_true", help="a few small cases, to see that the script works")
    parser.add_argument("--summarise", action="store_true", help="judge and draw the table of the last run again")
    if has_subset:
        parser.add_argument("--full", action="store_true", help="every case, not the subset")
    for name, how in (own or {}).items():
        parser.add_argument(*name.split(), **how)
    found = parser.parse_args()
    missing = [name for name in needs if not (found.reference / name).is_file()]
    if missing:
        print(
            f"{Path(sys.argv[0]).name}: no reference data: {found.reference / missing[0]} is not there, so nothing was "
            "validated; give their folder with --reference",
            file=sys.stderr,
        )
        sys.exit(2)
    quick = has_quick and found.quick
    output = found.output or (ROOT / "build" / "quick" if quick else EVIDENCE)
    return Options(found.reference, output, quick, has_subset and found.full, found.summarise, found)

"""HPL.dat and HPL.out as options of the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lepaute.kit.options import flag_of, option
from lepaute.simulate.application import Files

if TYPE_CHECKING:
    from lepaute.simulate.apps.hpl.parameters import Hpl
    from lepaute.simulate.prediction.prediction import Prediction


#: What to do where an option takes one value, and several were given.
SEVERAL = "several go into an HPL.dat, of which --dat takes all combinations"


def in_hpl_dat(option_name: str) -> bool:
    """Whether an option, such as --nb, is a list in HPL.dat."""
    from lepaute.simulate.apps.hpl.parameters import Hpl, places

    return option_name in {flag_of(Hpl, name) for name, dat in places() if dat.several}


@dataclass(frozen=True)
class HplFiles(Files):
    """HPL.dat and HPL.out."""

    input_option: ClassVar[str] = "--dat"
    several_in_file: ClassVar[str] = SEVERAL

    dat: Path | None = field(
        default=None, metadata=option("an HPL.dat: all its combinations, in the place of the options")
    )
    output: Path | None = field(default=None, metadata=option("results in the form of HPL.out", also=("-o",)))

    @property
    def decides(self) -> frozenset[str]:
        from lepaute.simulate.apps.hpl.parameters import places

        return frozenset(name for name, _ in places())

    @property
    def inputs(self) -> list[Path | None]:
        return [self.dat]

    @property
    def outputs(self) -> dict[str, Path | None]:
        return {"--output": self.output}

    def combinations(self, others: "Mapping[str, Any]") -> "list[Hpl] | None":
        if self.dat is None:
            return None
        from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat

        return read_hpl_dat(self.dat).combinations(**others)

    def report(self, predictions: "Sequence[Prediction]") -> str | None:
        from lepaute.simulate.apps.hpl.hpl_dat import HplDat, read_hpl_dat
        from lepaute.simulate.apps.hpl.hpl_out import report
        from lepaute.simulate.apps.hpl.parameters import Hpl

        runs = [each.application for each in predictions if isinstance(each.application, Hpl)]
        return report(HplDat.covering(runs) if self.dat is None else read_hpl_dat(self.dat), predictions)

    def write(self, predictions: "Sequence[Prediction]") -> None:
        from lepaute.kit.files import write_whole
        from lepaute.simulate.apps.hpl.hpl_out import caveat_lines

        if self.output is not None:
            write_whole(self.output, f"{self.report(predictions) or ''}{caveat_lines(predictions)}")

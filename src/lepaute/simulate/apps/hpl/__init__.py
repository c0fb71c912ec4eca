"""HPL, the High-Performance Linpack benchmark: its parameters, input and output files, and its simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.options import SHARE, option, option_field
from lepaute.simulate.application import GFLOPS, About, Files
from lepaute.simulate.apps.hpl.parameters import Hpl, places
from lepaute.simulate.apps.hpl.work import HplBehaviour

if TYPE_CHECKING:
    from lepaute.simulate.apps.hpl import hpl_dat, hpl_out
    from lepaute.simulate.platform import schema
    from lepaute.simulate.prediction import prediction
else:
    hpl_dat, hpl_out = later("lepaute.simulate.apps.hpl.hpl_dat"), later("lepaute.simulate.apps.hpl.hpl_out")

__all__ = ["Hpl", "HplFiles"]


@dataclass(frozen=True)
class HplFiles(Files):
    """HPL.dat, and results in the form of HPL.out."""

    input_option: ClassVar[str] = "--dat"

    dat: Path | None = field(default=None, metadata=option("an HPL.dat: all its combinations, instead of the options"))
    memory_fraction: float | None = option_field(
        None, "the n that takes this share of the memory of the ranks' nodes, as 0.8 or 80%, instead of --n", **SHARE
    )
    output: Path | None = field(default=None, metadata=option("results in the form of HPL.out", also=("-o",)))

    @property
    def decides(self) -> frozenset[str]:
        return frozenset(name for name, _ in places())

    @property
    def inputs(self) -> list[Path | None]:
        return [self.dat]

    @property
    def outputs(self) -> dict[str, Path | None]:
        return {"--output": self.output}

    def filled(self, values: "dict[str, Any]", platform: "Callable[[], schema.Platform]") -> "dict[str, Any]":
        if self.memory_fraction is None:
            return {}
        if self.dat is not None or values["n"] is not None:
            raise InputError(f"--memory-fraction and {'--dat' if self.dat else '--n'} both say n; give one of them")
        return {"n": Hpl.filling(platform(), self.memory_fraction, **values).n}

    def combinations(self, others: "Mapping[str, Any]") -> "list[Hpl] | None":
        if self.dat is None:
            return None
        return hpl_dat.read_hpl_dat(self.dat).combinations(**others)

    def report(self, predictions: "Sequence[prediction.Prediction]") -> str | None:
        runs = [each.application for each in predictions if isinstance(each.application, Hpl)]
        if self.dat is not None:
            return hpl_out.report(hpl_dat.read_hpl_dat(self.dat), predictions)
        return "\n".join(
            hpl_out.report(hpl_dat.HplDat.covering([run for run, _ in part]), [result for _, result in part])
            for part in hpl_dat.by_file(zip(runs, predictions, strict=True))
        )

    def write(self, predictions: "Sequence[prediction.Prediction]") -> None:
        if self.output is None:
            return
        from lepaute.kit.files import write_atomic

        write_atomic(self.output, f"{self.report(predictions) or ''}{hpl_out.caveat_lines(predictions)}")


Hpl.about = About(  # whose parts make and read runs, so that they stand above their class
    "HPL",
    "HPL",
    core="hpl",
    behaviour=HplBehaviour,
    rate=GFLOPS,
    files=HplFiles,
    several=tuple("grid" if name in ("p", "q") else name for name, _ in places()),
    fidelities=("auto", "full", "sampled"),
    names_mapping=True,
)

"""`emulate`: an MPI program's own code on a simulated machine, from Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.kit.numbers import path_of, texts, whole
from lepaute.simulate.apps.program import Program
from lepaute.simulate.layers import Layers
from lepaute.simulate.predicting import DEFAULT_RUNS, predict

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.mapping import Mapping
    from lepaute.simulate.prediction import Prediction
    from lepaute.simulate.smpi.emulate import Options


def emulate(
    program: str | Path,
    platform: "Platform | str | Path",
    *,
    ranks: int,
    arguments: Sequence[str] = (),
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    layers: Layers | None = None,
    mapping: "Mapping | None" = None,
    options: "Options | None" = None,
) -> "Prediction":
    """How long an MPI program will take: its code runs here, under SMPI, on the simulated platform.

    program  : built with the compilers of `lepaute emulate compilers`
    platform : a platform, the name of a shipped one, or a file
    options  : what is charged for the program's own code, what is folded, limits (`simulate.smpi.emulate.Options`)
    The others are those of `predict`. What the program prints is not shown; `lepaute emulate` shows it.
    Raises InputError for what does not fit, EnvironmentProblem where SimGrid is missing, SimulationError where the
    program fails.
    """
    ranks = whole(ranks, "ranks", 1, 2**31)
    application = Program(path_of(program, "the program"), texts(arguments, "arguments", '["16", "2"]'), ranks)
    if options is not None:
        application = Program(application.path, application.arguments, ranks, options=options)
    return predict(application, platform, runs=runs, seed=seed, layers=layers, mapping=mapping)

"""Any MPI program, as an application that SMPI emulates."""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from lepaute.errors import InputError
from lepaute.kit.numbers import of_type, path_of, texts, whole
from lepaute.kit.options import option_field
from lepaute.kit.text import ranks_text
from lepaute.simulate.application import About, Application
from lepaute.simulate.behaviour import Behaviour
from lepaute.simulate.conditions import Layers
from lepaute.simulate.engine import SimulatedRun
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.controls import DEFAULT_RUNS
from lepaute.simulate.prediction.predicting import predict, raise_warnings
from lepaute.simulate.prediction.prediction import Prediction
from lepaute.simulate.smpi.building import find_simgrid, resolve_program
from lepaute.simulate.smpi.emulate import Options
from lepaute.simulate.smpi.settings import ProgramSettings
from lepaute.simulate.smpi.warnings import program_warnings


class ProgramBehaviour(Behaviour):
    application: "Program"

    @property
    def draws(self) -> frozenset[str]:
        """Which algorithms its collective operations follow, unless that is an option; two ranks have no choice."""
        is_open = self.application.options.collectives is None and self.application.ranks > 2
        return frozenset({"collectives"} if is_open else ())

    @property
    def code(self) -> str:
        """SHA-256 of the program and of the files that its arguments name, its options, and the version of SimGrid."""
        program = self.application
        files = [path for path in (program.path, *map(Path, program.arguments)) if path.is_file()]
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        return hashlib.sha256(repr((digests, program.options, find_simgrid().version)).encode()).hexdigest()

    def emulation(self, seed: int) -> tuple[Path | None, Sequence[str], Options]:
        return self.application.path, self.application.arguments, self.application.options

    def warnings(self, run: SimulatedRun) -> list[str]:
        assert run.emulated is not None
        return program_warnings(run.emulated, self.platform, self.application.options)

    def details(self, run: SimulatedRun) -> dict[str, Any]:
        emulated = run.emulated
        assert emulated is not None
        return {
            "routines": {
                name: {"calls": use.calls, "time_s": use.time_s, "modelled": modelled}
                for modelled, uses in ((True, emulated.kernels), (False, emulated.fallback))
                for name, use in uses.items()
            },
            "computing_s": emulated.computing_s,
            "own_measured_s": emulated.own.measured_s,
            "own_charged_s": emulated.own.charged_s,
            "memory_share": emulated.slowdowns.memory_share if emulated.slowdowns else None,
            "unmodelled_share": emulated.unmodelled_share,
        }


@dataclass(frozen=True, slots=True)
class Program(Application):
    """One run of a program that was built with the compilers of `lepaute emulate compilers`.

    Raises InputError for a number of ranks below 1.
    """

    about: ClassVar[About] = About(
        "program",
        behaviour=ProgramBehaviour,
        parameter_kinds={
            "np": int,
            **dict.fromkeys(("arguments", "computing", "collectives"), str | None),
            "fold_bytes": int | None,
        },
        run_details={**dict.fromkeys(("program_s", "region_s", "value_s"), float), "collectives": str | None},
    )

    path: Path
    arguments: tuple[str, ...] = ()
    ranks: int = 1
    threads_per_rank: int = 1
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        path_of(self.path, "the program")
        if self.ranks < 1:
            raise InputError(f"ranks is {self.ranks}; a program has at least one rank")

    @property
    def title(self) -> str:
        return self.path.name

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def label(self) -> str:
        return ranks_text(self.ranks)

    def parameters(self) -> dict[str, Any]:
        return {
            "np": self.ranks,
            "arguments": list(self.arguments),
            "computing": self.options.computing,
            "collectives": self.options.collectives,
            "fold_bytes": self.options.folding.from_bytes,
        }


@dataclass(frozen=True, kw_only=True)
class ProgramRun(ProgramSettings):
    """A run of a program in the words of the command line, as a study file and `--against` have it."""

    program: Path = option_field(MISSING, "a program built with the compilers of 'lepaute emulate compilers'")
    np: int = option_field(1, "number of ranks", minimum=1)
    arguments: str = option_field("", "of the program, as a shell takes them")

    @property
    def application(self) -> Program:
        """Raises InputError for anything of it that cannot be."""
        try:
            words = shlex.split(self.arguments)
        except ValueError as error:
            raise InputError(f"arguments is {self.arguments[:80]!r}: {error}") from None
        return Program(resolve_program(self.program), tuple(words), self.np, options=self.for_engine())


def emulate(
    program: str | Path,
    platform: Platform | str | Path,
    *,
    ranks: int,
    arguments: Sequence[str] = (),
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    layers: Layers | None = None,
    mapping: Mapping | None = None,
    options: Options | None = None,
    repeat: int = 0,
    state: str = "undisturbed",
) -> Prediction:
    """How long an MPI program will take: its code runs here, under SMPI, on the simulated platform.

    What the program prints is not shown; `lepaute emulate` shows it.

    Parameters
    ----------
    program : built with the compilers of `lepaute emulate compilers`
    platform : a platform, the name of a shipped one, or a file
    ranks : number of MPI processes, `-np` of the command line
    arguments : of the program
    options : what is charged for the program's own code, what is folded, limits: `lepaute.Options`
    runs, seed, layers, mapping, repeat, state : as those of `lepaute.predict`

    Returns
    -------
    A `Prediction`, whose `time_s` is in seconds

    Raises
    ------
    InputError : for what does not fit
    EnvironmentProblem : where SimGrid is missing
    SimulationError : where the program fails

    Examples
    --------
    >>> import lepaute as lp
    >>> usual = lp.emulate("./solver", "dahu", ranks=64, arguments=["100"])  # doctest: +SKIP
    >>> slower = lp.emulate("./solver", "slower.yaml", ranks=64, arguments=["100"])  # doctest: +SKIP
    >>> lp.difference(usual, slower)  # doctest: +SKIP
    """
    ranks = whole(ranks, "ranks", 1, 2**31)
    application = Program(path_of(program, "the program"), texts(arguments, "arguments", '["16", "2"]'), ranks)
    if options is not None:
        application = replace(application, options=of_type(options, "options", Options, "a lepaute.Options"))
    prediction = predict(
        application, platform, runs=runs, seed=seed, layers=layers, mapping=mapping, repeat=repeat, state=state
    )
    raise_warnings(prediction)
    return prediction

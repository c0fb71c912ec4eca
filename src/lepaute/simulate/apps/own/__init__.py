"""Applications of one's own: a class in a file of the user's, whose `run` yields what a rank does.

values      grids and costs, what parameters and computing are made of
measured    what a recording tells of computing between two calls
recorded    costs of recordings, on other machines and numbers of ranks
rank        what `run(self, me)` has in `me`
laying      from the class to what the core runs, where the course of the ranks is known beforehand
stepping    the same step by step, where it depends on what messages bring
checking    whether it makes the calls of a recording
loading     the class that FILE.py:CLASS names
"""

import hashlib
import inspect
import re
import sys
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_type_hints

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.notebook import changed_fields
from lepaute.kit.numbers import of_type
from lepaute.kit.options import check_fields, option, option_field
from lepaute.kit.python_files import program_of
from lepaute.kit.quantities import whole_of
from lepaute.simulate import application as applications
from lepaute.simulate.apps.own.values import MOST, Grid, costs_of
from lepaute.simulate.behaviour import Kernels, LaidBehaviour

if TYPE_CHECKING:
    from lepaute.simulate.apps.own import checking, laying, rank, recorded
    from lepaute.simulate.engine import SimulatedRun
else:
    recorded = later("lepaute.simulate.apps.own.recorded")
    laying = later("lepaute.simulate.apps.own.laying")
    rank, checking = later("lepaute.simulate.apps.own.rank"), later("lepaute.simulate.apps.own.checking")

_LOCK = Lock()  # laying down is Python's work: one at a time
_MAY_BE_FIELDS = frozenset({"ranks", "threads_per_rank"})
_MAY_BE_DEFINED = _MAY_BE_FIELDS | {"name", "steps", "memory_bytes", "parameters", "recorded_on", "collectives", "run"}


@dataclass(frozen=True)
class OwnFiles(applications.Files):
    """Files that an application of one's own is held against."""

    check: Path | None = option_field(
        None, "a recording of the program; what differs first in calls, order, sizes or peers ends it", metavar="TRACE"
    )

    @property
    def inputs(self) -> list[Path | None]:
        return [self.check]

    def checked(self, application: applications.Application) -> tuple[bool, str] | None:
        if self.check is None:
            return None
        checked = checking.checked(application, self.check)  # type: ignore[arg-type]
        return checked.same, checked.text


class OwnBehaviour(LaidBehaviour):
    application: "Application"

    @cached_property
    def _costs(self) -> tuple[tuple[str, float, float, float, float], ...]:
        return costs_of(self.application)

    @cached_property
    def _recorded(self) -> "recorded.Recorded":
        return recorded.Recorded(self.application, self._platform)

    @property
    def kernels(self) -> Kernels:
        beyond = self._recorded.extrapolation
        return Kernels(
            self.laid().uses_kernels,
            (*self._costs, self.application.recorded_on, *beyond.values()),
            lambda: self._recorded.kernels(self._costs),
            tuple(name for name, seconds, error, _, _ in self._costs if seconds > 0.0 and error == 0.0),
            extrapolated=tuple(name for name, error in beyond.items() if error > 0.0),
        )

    def proviso(self, run: "SimulatedRun") -> str:
        return self._recorded.proviso

    @property
    def draws(self) -> frozenset[str]:
        varies = {
            "discrepancy": any(error > 0.0 for _, _, error, _, _ in self._costs),
            "noise": any(noise > 0.0 for _, _, _, noise, _ in self._costs),
            "course": self.laid().draws,
            **self._recorded.layers,
        }
        return frozenset(name for name, does in varies.items() if does)

    @property
    def code(self) -> str:
        """SHA-256 of its file, of one that was loaded from a command line or a study, and of what has been measured."""
        program, file_sha256 = program_of(type(self.application)), self.application.file_sha256
        if not file_sha256 or program is None:
            return ""
        rests = sorted(self.laid().reads.items()) if any(text.reads_late for text in program.texts()) else []
        return hashlib.sha256(repr((file_sha256, self._costs, sys.version_info[:2], rests)).encode()).hexdigest()

    def laid(self, seed: int = 1) -> "laying.Laid":
        """Operations that the core runs; of another seed only where `run` draws random numbers."""
        known: dict[int, laying.Laid] = vars(self.application).setdefault("_laid", {})
        with _LOCK:
            first = next(iter(known.values()), None)
            if first is None or (first.draws and seed not in known):
                while len(known) > 1:
                    known.pop(list(known)[-1])  # the first one tells what all have in common
                known[seed] = laying.Laying.laid_down(self.application, seed)
                return known[seed]
            return known[seed] if first.draws else first

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        laid = self.laid(seed)
        if not laid.asks:
            return laid.parameters
        from lepaute.simulate.apps.own.stepping import Stepping

        return Stepping(self.application, seed).begin()

    def warnings(self, run: "SimulatedRun") -> list[str]:
        return self.laid().caveats(self.application) + self._recorded.warnings


class Application(applications.Application):
    """An application of one's own: derive from it, and define fields and `run`.

    Annotated names are the parameters: int, float, str, bool and `lp.Grid`, with or without a default. They become
    options of `lepaute predict FILE.py:CLASS`; a line `name : text` of the docstring is the help of one. The number of
    ranks is the size of the only `lp.Grid`, or a field `ranks`. `lp.Cost` in class attributes say what computing costs.

    `run(self, me)` is a generator that each rank runs; it yields what the methods of `me` make (me.send, me.exchange,
    me.compute, me.allreduce, ...). It is gone through once before the simulation, unless it uses what a receive gives
    back: then it goes on step by step with the simulation, which is slower.

    Examples
    --------
    >>> import lepaute as lp
    >>> class Ring(lp.Application):
    ...     ranks: int = 4
    ...     work = lp.Cost(1e-3, error=0.1)
    ...
    ...     def run(self, me):
    ...         for _ in me.steps(10):
    ...             yield me.compute(self.work)
    ...             yield me.exchange([((me.rank + 1) % me.size, 8000), ((me.rank - 1) % me.size, 8000)])
    >>> round(lp.predict(Ring(), "dahu", runs=10).time_s.mean, 3) > 0.0
    True
    """

    about: ClassVar[applications.About] = applications.About("")  # of each class: __init_subclass__
    #: The platform, by name or file, that the costs are of; empty: not known; None: they are as given anywhere.
    recorded_on: ClassVar[str | None] = None
    #: MPI library whose rules choose algorithms of collective operations; None: the first ones of `ALGORITHMS`.
    collectives: ClassVar[Literal["openmpi", "mpich"] | None] = None
    #: Of one that was loaded from a command line or a study.
    file_sha256: ClassVar[str] = ""

    def __init_subclass__(cls, **further: Any) -> None:
        super().__init_subclass__(**further)
        hints = get_type_hints(cls)
        helps = dict(re.findall(r"^ *(\w+) : (.+)$", cls.__doc__ or "", re.MULTILINE))
        own = inspect.get_annotations(cls)
        if "__init__" in vars(cls):
            raise InputError(
                f"{cls.__name__}.__init__: leave it out; values come by field, and __post_init__ checks them"
            )
        for name in [*own, *(vars(cls).keys() - own.keys())]:
            is_field = name in own and ClassVar not in (hints[name], getattr(hints[name], "__origin__", None))
            is_taken = not name.startswith("_") and name in dir(Application)
            if is_taken and name not in (_MAY_BE_FIELDS if is_field else _MAY_BE_DEFINED):
                raise InputError(f"{cls.__name__}.{name}: that name has a meaning of its own; give it another one")
            if not is_field:
                continue
            default = cls.__dict__.get(name, MISSING)
            own[name] = hints[name]
            if isinstance(default, str) and hints[name] is Grid:
                default = Grid(default)
            setattr(
                cls, name, field(default=default, metadata=_option(cls.__name__, name, hints[name], default, helps))
            )
        cls.__annotations__ = own
        if cls.__repr__ is Application.__repr__:
            cls.__repr__ = changed_fields  # type: ignore[method-assign]
        dataclass(frozen=True, repr=False)(cls)
        cls.about = applications.About(
            cls.__name__,
            f"{cls.__name__} of {cls.__module__}",
            core="program",
            behaviour=OwnBehaviour,
            files=OwnFiles,
            several=tuple(name for name in cls.__dataclass_fields__ if hints[name] is Grid or name == "ranks"),  # type: ignore[attr-defined]
        )

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            if each.type is Grid:
                object.__setattr__(self, each.name, Grid(getattr(self, each.name)))
            elif each.type in (str, bool) and not isinstance(getattr(self, each.name), each.type):
                raise InputError(f"{each.name} is {getattr(self, each.name)!r:.80}; it must be a {each.type.__name__}")
        check_fields(self, largest=MOST)
        self._count_ranks()
        costs_of(self)

    def run(self, me: "rank.Me") -> Any:
        """Course of one rank: a generator that yields operations of `me`."""
        raise InputError(f"{type(self).__name__} has no run(self, me), which yields what a rank does")

    def _count_ranks(self) -> int:
        grids = [getattr(self, each.name) for each in fields(self) if each.type is Grid]  # type: ignore[arg-type]
        ranks = vars(self).get("ranks")
        if ranks is None and len(grids) == 1:
            ranks = grids[0].size
        if ranks is None:
            raise InputError(
                f"{type(self).__name__} has no number of ranks: give it one field of lp.Grid, or ranks: int"
            )
        if not 1 <= ranks <= 2**24:
            raise InputError(f"{type(self).__name__} has {ranks} ranks; there are 1 to {2**24}")
        return int(ranks)

    @property
    def ranks(self) -> int:
        return self._count_ranks()

    @property
    def steps(self) -> int:
        """The most steps that a rank goes through."""
        return OwnBehaviour(self, None).laid().steps

    @property
    def label(self) -> str:
        """n 104, iterations 50, 2 x 2 x 1: the number of ranks last."""
        grids = [each.name for each in fields(self) if each.type is Grid]  # type: ignore[arg-type]
        last = " x ".join(map(str, getattr(self, grids[0]))) if len(grids) == 1 else str(self.ranks)
        apart = {"ranks", *grids} if len(grids) == 1 else {"ranks"}
        said = [f"{each.name} {getattr(self, each.name)}" for each in fields(self) if each.name not in apart]  # type: ignore[arg-type]
        return ", ".join([*said, last])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_laid"}


def check(application: Application, recording: "str | PathLike[str]") -> "checking.Checked":
    """Whether an application of one's own makes the calls that a program has made: of each rank the same ones, in the
    same order, with the same peers, tags, sizes and communicators.

    MPI_Wait, MPI_Waitall and tests are the same where they end as many requests; MPI_Sendrecv is an irecv, an isend and
    a wait for both. Looks for messages that found nothing count as little as computing does, and what makes a
    communicator, such as MPI_Cart_create, where the application has no `split` for it.

    Parameters
    ----------
    application : one whose course does not depend on what messages bring
    recording : a trace of `lepaute record`, or of an emulation, of as many ranks

    Returns
    -------
    Checked : its text names the first difference: rank, call, what both sides do, and the line of the file

    Raises
    ------
    InputError : for another number of ranks, a recording with calls that no application of one's own has, the trace of
        a prediction, and for an application that goes on step by step

    Examples
    --------
    >>> import lepaute as lp
    >>> print(lp.check(Cg(grid="2x2x1"), "cg.parquet"))  # doctest: +SKIP
    """
    of_type(application, "application", Application, "one that derives from lepaute.Application")
    return checking.checked(application, recording)


def _option(owner: str, name: str, kind: Any, default: Any, helps: dict[str, str]) -> dict[str, Any]:
    about = helps.get(name, f"{name} of {owner}")
    if kind is Grid:
        return option(about, parse=Grid, default=None if default is MISSING else str(default))
    if kind is int:
        also = ("--np",) if name == "ranks" else ()
        return option(
            about, also=also, parse=partial(whole_of, name=name), default=None if default is MISSING else str(default)
        )
    if kind is bool:
        flag = name.replace("_", "-")
        return option(about, name=f"{flag}/--no-{flag}")
    if kind in (float, str):
        return option(about)
    raise InputError(f"{owner}.{name} is a {kind!r:.60}; a parameter is an int, a float, a str, a bool or an lp.Grid")

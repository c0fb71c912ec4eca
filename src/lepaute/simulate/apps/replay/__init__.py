"""A recorded run of an MPI program, replayed on any platform.

calls        what each MPI call is in a replay
collectives  of what a collective call consists
survey       what is to be known of all ranks of a recording first; rows: what each call is
laying       from the recording to what the core runs, which `operations` holds
own_code     how long the program's own code takes on another machine
behaviour    what all of this makes on a platform
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.notebook import changed_fields
from lepaute.kit.numbers import path_of, plain
from lepaute.kit.options import check_fields, option
from lepaute.simulate.application import About, Problem
from lepaute.simulate.apps.laid import LaidApplication
from lepaute.simulate.apps.replay.behaviour import ReplayBehaviour, recording_of

if TYPE_CHECKING:
    from lepaute.simulate import trace as traces
    from lepaute.simulate.apps.replay import own_code as own_codes
else:
    traces, own_codes = later("lepaute.simulate.trace"), later("lepaute.simulate.apps.replay.own_code")


def _bounds_of(text: str) -> tuple[float, float]:
    return own_codes.bounds_of(text)


Collectives = Literal["auto", "openmpi", "mpich"]


@dataclass(frozen=True)
class TraceReplay(LaidApplication):
    """A recorded run of an MPI program, replayed: each rank's calls in their order, on any platform.

    Messages, collective operations and BLAS calls that the platform has models of take its time. All other computing
    takes what it took in the recording times `own_code`: two bounds, of which 95 % of the runs draw a factor between.
    Without it they come from what `recorded_on`, a platform, and the target tell of their cores; an emulation's or a
    prediction's trace names that platform itself. Raises InputError for what cannot be.

    Examples
    --------
    >>> import lepaute as lp
    >>> lp.predict(lp.TraceReplay("run.parquet", own_code=(0.8, 1.0)), "dahu")  # doctest: +SKIP
    """

    about: ClassVar[About] = About(
        "trace", "a recorded run of an MPI program", core="program", behaviour=ReplayBehaviour
    )

    recording: Path = field(
        metadata=option(
            "a trace of lepaute record, emulate --trace or predict --trace, or of another program (trace convert)",
            metavar="TRACE",
            argument=True,
        )
    )
    own_code: tuple[float, float] | None = field(
        default=None,
        metadata=option(
            "time of the program's own code over that recorded: 0.9, or bounds as 0.8..1.0",
            name="own-code",
            metavar="LOW..HIGH",
            parse=_bounds_of,
        ),
    )
    recorded_on: str | None = field(
        default=None, metadata=option("the platform of the recording: a file, or the name of a shipped one")
    )
    collectives: Collectives = field(
        default="auto",
        metadata=option(
            "MPI library whose rules choose the algorithms of collective operations; auto: the recording's, else "
            "openmpi",
            choices=get_args(Collectives),
        ),
    )
    threads_per_rank: int = field(default=1, metadata=option("cores that each rank computes on", minimum=1))

    __repr__ = changed_fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "recording", path_of(self.recording, "the trace"))
        check_fields(self, largest=2**20)
        if self.own_code is not None:
            given = self.own_code
            numbers = list(map(plain, given)) if isinstance(given, tuple | list) else [plain(given)] * 2
            if len(numbers) != 2 or not all(type(number) in (int, float) for number in numbers):
                numbers = [0.0, 0.0]
            bounds = own_codes.checked_bounds((float(numbers[0]), float(numbers[1])), given)
            object.__setattr__(self, "own_code", bounds)
        if self.recorded_on is not None and not isinstance(self.recorded_on, str):
            raise InputError(f"recorded_on is {self.recorded_on!r:.80}; it is the name of a platform, or of its file")

    @property
    def trace(self) -> "traces.Trace":
        return traces.read_trace(self.recording)

    @property
    def ranks(self) -> int:
        return recording_of(self.recording).survey.ranks

    @property
    def label(self) -> str:
        """halo of run.parquet, 4: the number of ranks last."""
        program = recording_of(self.recording).survey.metadata.get("application", "a program")
        return f"{program} of {self.recording.name}, {self.ranks}"

    @property
    def unused(self) -> dict[str, str]:
        meets = recording_of(self.recording).survey.meetings
        return {} if meets else {"collectives": "the recording has no collective call"}

    @property
    def problem(self) -> Problem:
        return Problem(str(self.recording))

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"recording": str(self.recording)}

"""A recorded run of an MPI program, replayed on any platform.

calls        what each MPI call is in a replay
collectives  of what a collective call consists
laying       from the recording, of which all ranks are looked at first, to what the core runs; `operations` holds it
own_code     how long the program's own code takes on another machine
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from lepaute import _core
from lepaute.errors import InputError, LepauteError
from lepaute.kit.notebook import changed_fields
from lepaute.kit.numbers import path_of, plain
from lepaute.kit.options import check_fields, option
from lepaute.kit.text import exact_number, percent
from lepaute.simulate.application import About, Application, Problem
from lepaute.simulate.apps.own.laying import Laid
from lepaute.simulate.apps.own.values import kernel_of
from lepaute.simulate.apps.replay import own_code as own_codes
from lepaute.simulate.apps.replay.collectives import AUTO, CHOICES, LIBRARIES, MeasuredCalls, collectives_of, library_of
from lepaute.simulate.behaviour import Kernels, LaidBehaviour
from lepaute.simulate.engine import SimulatedRun
from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.kernel_model import models_of

#: Of computing, in the program's own code: less is not worth a word.
MIN_OWN_SHARE = 0.005


class _Recording:
    """A file, what is known of all of it, and what was laid down of it."""

    def __init__(self, path: Path) -> None:
        from lepaute.simulate.apps.replay.laying import Survey
        from lepaute.simulate.trace.reading import TraceParts, files_of

        self._parts = TraceParts(path)
        self.survey = Survey(self._parts, str(path))
        if not self.survey.metadata.get("ended_by"):
            self.survey.consistency.check_complete(self._parts)
        digest = hashlib.sha256()
        for each in files_of(path):
            with each.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)
        self.sha256 = digest.hexdigest()
        self._laid: dict[tuple[frozenset[str], str | MeasuredCalls], Laid] = {}
        self._lock = Lock()

    def laid(self, modelled: frozenset[str], library: str | MeasuredCalls) -> "Laid":
        """The program, where kernels of these names take the time of models."""
        from lepaute.simulate.apps.replay.laying import laid_down

        with self._lock:
            key = (modelled, library)
            if key not in self._laid:
                self._laid[key] = laid_down(self._parts, self.survey, *key)
            return self._laid[key]


def _recording_of(path: Path) -> _Recording:
    """Raises InputError if it cannot be replayed."""
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; `lepaute record -o` writes traces") from None
    return _recording(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _recording(path: Path, mtime_ns: int, size: int) -> _Recording:
    del mtime_ns, size  # another file of the same name is read again
    return _Recording(path)


class ReplayBehaviour(LaidBehaviour):
    application: "TraceReplay"

    @cached_property
    def recording(self) -> _Recording:
        return _recording_of(self.application.recording)

    @property
    def code(self) -> str:
        return self.recording.sha256

    def laid(self, seed: int = 1) -> "Laid":
        modelled = frozenset(KERNELS)  # kernels that take the time of the platform's models
        if self._platform is not None:
            modelled = frozenset(models_of(self.platform.kernels, KERNELS, self.application.threads_per_rank))
        library = self.library or LIBRARIES[(seed - 1) % len(LIBRARIES)]
        return self.recording.laid(modelled & self.recording.survey.names, library)

    @property
    def library(self) -> str | MeasuredCalls | None:
        """Library whose rules choose algorithms, or its measured calls; None where it is not known: runs follow them in
        turn, by seed."""
        chosen = self.application.collectives
        return library_of(self.application.recorded_with) if chosen == AUTO else chosen

    @property
    def kernels(self) -> Kernels:
        replay = self.application
        costs = (replay.own_code, replay.recorded_on, str(replay.recording))
        return Kernels(self.laid().uses_kernels, costs, lambda: [self._own_code()])

    @property
    def draws(self) -> frozenset[str]:
        is_open = isinstance(self.library, MeasuredCalls) or (self.library is None and self.laid().undecided)
        return frozenset(["own_code"] * (self.factor.relative_sd > 0.0) + ["collectives"] * bool(is_open))

    @property
    def approximated(self) -> tuple[str, ...]:
        laid, texts = self.laid(), []
        if names := ", ".join(laid.approximated):
            texts.append(f"exchanges of pairs, which post less at once, stand for a linear algorithm in {names}")
        if self.library is None and (names := ", ".join(laid.undecided)):
            recorded = self.recording.survey.metadata.get("mpi")
            unknown = f"those of {recorded:.40} are not known" if recorded else "no MPI library is named"
            texts.append(f"{names} by algorithms of Open MPI and MPICH, runs in turn, as {unknown} (--collectives)")
        if names := ", ".join(laid.by_rules):
            assert isinstance(self.library, MeasuredCalls)
            rules = self.library.rules
            texts.append(f"{names} by the rules of {rules}: {self.library} was not measured with such ranks and sizes")
        return tuple(texts)

    @cached_property
    def factor(self) -> own_codes.Factor:
        """Time of own code on the platform over that recorded."""
        replay, platform, metadata = self.application, self.platform, self.recording.survey.metadata
        if replay.own_code is not None:
            low, high = replay.own_code
            several = f"{exact_number(low)}" if low == high else f"{exact_number(low)} to {exact_number(high)}"
            return own_codes.Factor(low, high, f"{several} times as long as recorded, as given")
        if replay.recorded_on is not None:
            return self._between(replay.recorded_on)
        if (rate := metadata.get("flop_rate")) is not None:
            return own_codes.of_flops(float(rate), platform)
        name = metadata.get("platform")
        if name is None:
            return own_codes.of_anywhere("an unknown machine")
        if name == platform.name or metadata.get("platform_sha256") == platform.sha256:
            return own_codes.Factor(1.0, 1.0, "as recorded, on the same platform")
        try:
            return self._between(str(name))
        except LepauteError:
            return own_codes.of_anywhere(f"{name:.80}, which is not known here")

    def _between(self, recorded_on: str) -> own_codes.Factor:
        metadata = self.recording.survey.metadata
        length_s = max(map(float, metadata.get("ends_s") or ()), default=0.0)
        waiting_share = float(metadata.get("waiting_share") or 0.0)
        recorded = load_platform(recorded_on)
        return own_codes.between(recorded, self.platform, self.application.ranks, length_s, waiting_share)

    def _own_code(self) -> "_core.MachineKernel":
        """The program's own code, of which a unit is a second of the recording."""
        from lepaute.simulate.trace.table import COMPUTING

        kernel = kernel_of((COMPUTING, self.factor.middle, 0.0, 0.0, 0.0), self.platform)
        kernel.own_code_relative_sd = self.factor.relative_sd
        kernel.as_recorded = self.factor.same
        return kernel

    def proviso(self, run: "SimulatedRun") -> str:
        if self.factor.known or _own_share(run) <= MIN_OWN_SHARE:
            return ""
        times = f"{self.factor.low:g} to {self.factor.high:g} times as long as where it was recorded"
        return f"on {self.platform.name}, its own code taking {times}"

    def warnings(self, run: "SimulatedRun") -> list[str]:
        share, texts = _own_share(run), self.recording.survey.caveats
        if share > MIN_OWN_SHARE:
            part = "all" if share > 0.9995 else percent(share)
            texts.append(f"{part} of the computing is the program's own code, {self.factor.words}")
        return [*texts, *self.approximated]


def _own_share(run: "SimulatedRun") -> float:
    """Of computing, the program's own code."""
    from lepaute.simulate.trace.table import COMPUTING

    own = run.kernels.get(COMPUTING)
    return 0.0 if own is None else own.time_s / max(run.computing_s, 1e-300)


@dataclass(frozen=True)
class TraceReplay(Application):
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
            parse=own_codes.bounds_of,
        ),
    )
    recorded_on: str | None = field(
        default=None, metadata=option("the platform of the recording: a file, or the name of a shipped one")
    )
    collectives: str | MeasuredCalls = field(
        default=AUTO,
        metadata=option(
            "collective operations by the rules of openmpi or mpich; auto: the recording's library; where that is not "
            "known, runs take turns; or as a library of an archive of lepaute compare takes them",
            parse=collectives_of,
            metavar="auto|openmpi|mpich|FILE.zip[:LIBRARY]",
            complete=lambda: list(CHOICES),
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
        if not isinstance(self.collectives, MeasuredCalls) and self.collectives not in CHOICES:
            known = f"{', '.join(CHOICES)}, or what lp.compare.measured_calls() returns"
            raise InputError(f"collectives is {self.collectives!r:.80}; it must be one of {known}")

    @property
    def ranks(self) -> int:
        return _recording_of(self.recording).survey.ranks

    @property
    def recorded_with(self) -> str | None:
        """What the MPI library of the recording calls itself; None if that is not known."""
        return _recording_of(self.recording).survey.metadata.get("mpi")

    @property
    def operations(self) -> tuple[str, ...]:
        """Codes of the blocking collective operations that the recording has."""
        from lepaute.simulate.apps.replay.calls import CALLS
        from lepaute.simulate.trace.messages import BLOCKING_OF

        names = _recording_of(self.recording).survey.names & set(BLOCKING_OF.values())
        return tuple(sorted({CALLS[name].code for name in names}))

    @property
    def steps(self) -> int:
        """The most steps that a rank goes through."""
        return ReplayBehaviour(self, None).laid().steps

    @property
    def subject(self) -> str:
        metadata = _recording_of(self.recording).survey.metadata
        cut = f" up to its end by {metadata['ended_by']}" if "ended_by" in metadata else ""
        return f"{metadata.get('application', self.title)}{cut}"

    @property
    def label(self) -> str:
        """halo of run.parquet, 4: the number of ranks last."""
        program = _recording_of(self.recording).survey.metadata.get("application", "a program")
        return f"{program} of {self.recording.name}, {self.ranks}"

    @property
    def unused(self) -> dict[str, str]:
        meets = _recording_of(self.recording).survey.meetings
        return {} if meets else {"collectives": "the recording has no collective call"}

    @property
    def problem(self) -> Problem:
        return Problem(str(self.recording))

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"recording": str(self.recording), "collectives": str(self.collectives)}

"""How a recording behaves when it is replayed on a platform."""

import hashlib
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from lepaute.errors import InputError, LepauteError
from lepaute.kit.later import later
from lepaute.kit.text import exact_number, percent
from lepaute.simulate.apps.laid import LaidBehaviour
from lepaute.simulate.apps.own.values import kernel_of
from lepaute.simulate.behaviour import Kernels
from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.kernel_model import models_of

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate.apps.own.laying import Laid
    from lepaute.simulate.apps.replay import TraceReplay
    from lepaute.simulate.apps.replay import own_code as own_codes
    from lepaute.simulate.engine import SimulatedRun
else:
    own_codes = later("lepaute.simulate.apps.replay.own_code")


class Recording:
    """A file, what is known of all of it, and what was laid down of it."""

    def __init__(self, path: Path) -> None:
        from lepaute.simulate.apps.replay.survey import Survey
        from lepaute.simulate.trace.reading import TraceParts, files_of

        self._parts = TraceParts(path)
        self.survey = Survey(self._parts, str(path))
        self.survey.check_complete(self._parts)
        digest = hashlib.sha256()
        for each in files_of(path):
            with each.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
        self.sha256 = digest.hexdigest()
        self._laid: dict[tuple[frozenset[str], str], Laid] = {}
        self._lock = Lock()

    def laid(self, modelled: frozenset[str], collectives: str) -> "Laid":
        """The program, where kernels of these names take the time of models."""
        from lepaute.simulate.apps.replay.collectives import library_of
        from lepaute.simulate.apps.replay.laying import laid_down

        with self._lock:
            key = (modelled, library_of(self.survey.metadata.get("mpi")) if collectives == "auto" else collectives)
            if key not in self._laid:
                self._laid[key] = laid_down(self._parts, self.survey, *key)
            return self._laid[key]


def recording_of(path: Path) -> Recording:
    """Raises InputError where it cannot be replayed."""
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; `lepaute record -o` writes traces") from None
    return _recording(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _recording(path: Path, mtime_ns: int, size: int) -> Recording:
    del mtime_ns, size  # another file of the same name is read again
    return Recording(path)


class ReplayBehaviour(LaidBehaviour):
    application: "TraceReplay"

    @cached_property
    def recording(self) -> Recording:
        return recording_of(self.application.recording)

    @property
    def code(self) -> str:
        """SHA-256 of the recording."""
        return self.recording.sha256

    def laid(self, seed: int = 1) -> "Laid":
        modelled = frozenset(KERNELS)  # kernels that take the time of the platform's models
        if self._platform is not None:
            modelled = frozenset(models_of(self.platform.kernels, KERNELS, self.application.threads_per_rank))
        return self.recording.laid(modelled & self.recording.survey.names, self.application.collectives)

    @property
    def kernels(self) -> Kernels:
        replay = self.application
        costs = (replay.own_code, replay.recorded_on, str(replay.recording))
        return Kernels(self.laid().uses_kernels, costs, lambda: [self._own_code()])

    @property
    def own_draws(self) -> frozenset[str]:
        return frozenset({"own_code"} if self.factor.relative_sd > 0.0 else ())

    @property
    def approximated(self) -> tuple[str, ...]:
        names = ", ".join(self.laid().approximated)
        text = "Bruck's algorithm, which sends other messages, stands for recursive doubling or halving"
        return (f"{text} in {names}",) if names else ()

    @cached_property
    def factor(self) -> "own_codes.Factor":
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
            return own_codes.Factor(
                1.0, 1.0, "as long as recorded, on a machine that nothing tells of (--recorded-on, --own-code)"
            )
        if name == platform.name or metadata.get("platform_sha256") == platform.sha256:
            return own_codes.Factor(1.0, 1.0, "as recorded, on the same platform")
        try:
            return self._between(str(name))
        except LepauteError:
            return own_codes.Factor(
                1.0, 1.0, f"as long as recorded, on {name:.80}, which is not known here (--recorded-on, --own-code)"
            )

    def _between(self, recorded_on: str) -> "own_codes.Factor":
        length_s = max(map(float, self.recording.survey.metadata.get("ends_s") or ()), default=0.0)
        return own_codes.between(load_platform(recorded_on), self.platform, self.application.ranks, length_s)

    def _own_code(self) -> "_core.MachineKernel":
        """The program's own code, of which a unit is a second of the recording."""
        from lepaute.simulate.trace.table import COMPUTING

        kernel = kernel_of((COMPUTING, self.factor.middle, 0.0, 0.0, 0.0), self.platform)
        kernel.own_code_relative_sd = self.factor.relative_sd
        kernel.as_recorded = self.factor.same
        return kernel

    def warnings(self, run: "SimulatedRun") -> list[str]:
        from lepaute.simulate.trace.table import COMPUTING

        own, metadata = run.kernels.get(COMPUTING), self.recording.survey.metadata
        share = 0.0 if own is None else own.time_s / max(run.computing_s, 1e-300)
        texts = []
        if share > 0.005:
            part = "all" if share > 0.9995 else percent(share)
            texts.append(f"{part} of the computing is the program's own code, {self.factor.words}")
        omitted = ", ".join(map(str, metadata.get("omitted") or ()))
        texts += [f"{text} (the recording)" for text in metadata.get("warnings") or ()]
        texts += [f"{omitted} left out of the recording"] if omitted else []
        return [*texts, *self.approximated]

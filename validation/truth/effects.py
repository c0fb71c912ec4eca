"""What is common to many calls of a made-up machine: factors of processes, runs, days and cores, and slow changes."""

from dataclasses import dataclass, field

import numpy as np

from truth.kinds import Scatter

Floats = np.ndarray
#: Correlation time of the slow change inside a process, as a share of what the process takes.
WANDER_TIME = 0.25
GRID = 400
#: Periods of the drift, in lengths of the calibration.
PERIODS = (0.5, 2.0)


@dataclass(slots=True)
class Effects:
    """The factors of one machine; days and cores draw theirs when they are first asked for.

    period, phase : of the drift; time in lengths of the calibration
    """

    scatter: Scatter
    rng: np.random.Generator
    period: float = field(init=False)
    phase: float = field(init=False)
    _common: dict[int, float] = field(default_factory=dict)
    _of_core: dict[tuple[int, int, int], float] = field(default_factory=dict)
    _lasting: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        low, high = np.log(PERIODS)
        self.period = float(np.exp(self.rng.uniform(low, high)))
        self.phase = float(self.rng.uniform(0, 2 * np.pi))

    def start(self) -> float:
        """Logarithm of the factor of a start of mpirun on its kernels."""
        return self.scatter.run * float(self.rng.normal())

    def of_messages(self) -> float:
        """Factor of a start of mpirun on its messages."""
        return float(np.exp(self.scatter.message_run * self.rng.normal()))

    def process(self, day: int, node: int, core: int) -> float:
        """Logarithm of the factor of a new process on that core on that day."""
        draw = self.rng.normal
        common = self._common.setdefault(day, self.scatter.day * float(draw()))
        own = self._of_core.setdefault((day, node, core), self.scatter.core_day * float(draw()))
        lasting = self._lasting.setdefault((node, core), self.scatter.core * float(draw()))
        return common + own + lasting + self.scatter.process * float(draw())

    def drift(self, time: Floats) -> Floats:
        """Logarithm of the factor at a time, shape of time."""
        return self.scatter.drift * np.sin(2 * np.pi * time / self.period + self.phase)

    def wander(self) -> Floats:
        """Logarithm of the factor along one process, shape (GRID,), its parts equally long."""
        keep = float(np.exp(-1.0 / (GRID * WANDER_TIME)))
        steps = self.rng.normal(size=GRID)
        path = np.empty(GRID)
        path[0] = steps[0]
        for at in range(1, GRID):
            path[at] = keep * path[at - 1] + np.sqrt(1 - keep**2) * steps[at]
        return self.scatter.wander * path

"""The made-up machines: their kinds, the effects on them, and the law that archives and further runs follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lepaute.measure.fit.kernels.polynomial import design_matrix

#: Machines come in rounds: one of each kind alone, then so many combinations; after that many rounds only combinations.
COMBINATIONS, ROUNDS = 3, 14
MAX_COMBINED = 4


@dataclass(frozen=True, slots=True)
class Scatter:
    """Relative standard deviations of what varies, as factors exp(normal) on durations unless said otherwise.

    call             : of a single call, half-normal, in proportion to its mean; skewed where `uneven` is set
    process          : of each process, on all of its kernel calls
    run              : of each start of mpirun, common to its ranks; a probe of one process is a start of its own
    day, core_day    : of each day, common to all cores, and of each core
    core             : of each core, lasting
    drift            : amplitude of a sinusoid in time
    wander           : of a slow change inside each process (Ornstein-Uhlenbeck)
    outliers         : share of calls that take 3 to 10 times as long
    uneven           : the sd of a call is call * mean + UNEVEN_S, and the noise is exponential
    sorted           : rows of the designs in increasing order of size, levels of the content of operands in stretches
    few              : two blocks with as few rows as a quick calibration
    message, message_run, late_messages: sd of the logarithm of single messages; factor of a start of mpirun on the
                       network; share of messages that take 3 times as long
    """

    call: float = 0.03
    process: float = 0.003
    run: float = 0.0
    day: float = 0.0
    core_day: float = 0.0
    core: float = 0.0
    drift: float = 0.0
    wander: float = 0.0
    outliers: float = 0.0
    uneven: bool = False
    sorted: bool = False
    few: bool = False
    message: float = 0.05
    message_run: float = 0.0
    late_messages: float = 0.0


KINDS: dict[str, dict[str, float | bool]] = {
    "plain": {},
    "process": {"process": 0.02},
    "run": {"run": 0.03},
    "day": {"day": 0.02, "core_day": 0.015},
    "core": {"core": 0.03},
    "drift": {"drift": 0.02},
    "outliers": {"outliers": 0.02},
    "uneven": {"call": 0.02, "uneven": True},
    "unshuffled": {"sorted": True, "wander": 0.02},
    "few": {"few": True},
    "network": {"message": 0.3, "message_run": 0.1, "late_messages": 0.03},
}
#: The engine draws the noise of one kernel from one law: it cannot be both.
EXCLUSIVE = frozenset({"outliers", "uneven"})


def kinds_of(number: int, seed: int) -> tuple[str, ...]:
    """The kinds of the machine of that number, from 0; a combination is of 2 to MAX_COMBINED kinds, "plain" aside."""
    names = tuple(KINDS)
    in_round, position = divmod(number, len(names) + COMBINATIONS)
    if in_round < ROUNDS and position < len(names):
        return (names[position],)
    rng = np.random.default_rng([seed, number, 1])
    while True:
        count = int(rng.integers(2, MAX_COMBINED + 1))
        chosen = sorted(rng.choice(len(names) - 1, count, replace=False) + 1)
        kinds = tuple(names[at] for at in chosen)
        if not set(kinds) >= EXCLUSIVE:
            return kinds


def scatter_of(kinds: tuple[str, ...]) -> Scatter:
    """What all these kinds together vary."""
    return Scatter(**{name: value for kind in kinds for name, value in KINDS[kind].items()})


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


NB = 128
#: Seconds per unit of the term, of a machine of typical speed; pieces hold up to that k, the last one for all.
MEANS: Mapping[str, tuple[tuple[float, Mapping[str, float]], ...]] = {
    "dgemm": ((64, {"mnk": 6e-11, "mn": 2e-10, "1": 1e-6}), (np.inf, {"mnk": 3.3e-11, "mn": 2e-10, "1": 2e-6})),
    "dgemm_nn": ((np.inf, {"mnk": 3.2e-11, "mn": 2e-10, "1": 2e-6}),),
    "dtrsm": ((np.inf, {"mnk": 4e-11, "n": 2e-9, "1": 1e-6}),),
    "dtrsm_left": ((np.inf, {"mnk": 4e-11, "n": 2e-9, "1": 1e-6}),),
    "dlaswp00N": ((np.inf, {"mn": 5e-9, "1": 2e-6}),),
    "dlaswp01T": ((np.inf, {"mn": 3e-9, "1": 2e-6}),),
    "dlaswp02N": ((np.inf, {"mn": 2e-9, "1": 2e-6}),),
    "dlaswp03T": ((np.inf, {"mn": 3e-9, "1": 2e-6}),),
    "dlaswp04T": ((np.inf, {"mn": 4e-9, "1": 2e-6}),),
    "dgemv": ((np.inf, {"mn": 5e-10, "1": 1e-6}),),
}
#: Longer by this share when all cores of a node compute. Others are called only by ranks that compute together.
CROWDING = 0.03
CROWDED = frozenset({"dgemm_nn", "dtrsm_left", "dlaswp00N"})
UNEVEN_S = 0.4e-6
OUTLIERS = (3.0, 10.0)
BINS = 5
#: Messages: (latency, seconds per byte) of a link, those of calls inside it; gaps: factor on the bytes above the limit.
EAGER_BYTES = 4096
LINKS = {"local": (0.6e-6, 1 / 6e9), "remote": (6e-6, 1 / 1.5e9)}
SEND, RECEIVE = (0.2e-6, 1 / 20e9), (0.3e-6, 1 / 20e9)
RENDEZVOUS_S = 2.0
GAPS = 1.3
IPROBE_S, TEST_S, WTIME_S = 1e-7, 8e-8, 3e-8
LATE = 3.0


@dataclass(frozen=True, slots=True)
class Modes:
    """A mixture of normal distributions with mean 0 and variance 1: weight, mean, sd of each, shape (modes,)."""

    weight: Floats
    mean: Floats
    sd: Floats

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Independent variates, shape (count,)."""
        mode = rng.choice(len(self.weight), count, p=self.weight)
        return self.mean[mode] + self.sd[mode] * rng.normal(size=count)


@dataclass(frozen=True, slots=True)
class Law:
    """Of one machine.

    mean        : polynomials of each kernel by pieces of k, seconds
    growth      : factor of the means for outliers
    modes       : noise of a call in units of its sd, relative_sd * mean + constant_s
    link        : factor on latency and on seconds per byte of each link
    """

    mean: Mapping[str, tuple[tuple[float, Mapping[str, float]], ...]]
    growth: float
    modes: Modes
    relative_sd: float
    constant_s: float
    link: Mapping[str, tuple[float, float]]
    scatter: Scatter

    def mean_s(self, kernel: str, m: Floats, n: Floats, k: Floats) -> Floats:
        """Mean durations, without any effect; shape of m."""
        result = np.zeros(len(m))
        left = np.ones(len(m), dtype=bool)
        for highest, terms in self.mean[kernel]:
            here = left & (k <= highest)
            columns = design_matrix(tuple(terms), m[here], n[here], k[here])
            result[here] = self.growth * (columns @ np.array(list(terms.values())))
            left &= ~here
        return result

    def crowding(self, kernel: str) -> float:
        """How much longer a kernel takes when all cores of its node compute."""
        return CROWDING if kernel in CROWDED else 0.0

    def crowded_s(self, kernel: str, *sizes: Floats) -> Floats:
        """Mean durations then; sizes: m, n and k."""
        return self.mean_s(kernel, *sizes) * (1.0 + self.crowding(kernel))

    def durations_s(self, mean_s: Floats, factor: Floats, rng: np.random.Generator) -> Floats:
        """Single calls with these means and factors, as the engine draws them; shape of mean_s."""
        noise = (self.relative_sd * mean_s + self.constant_s) * self.modes.draw(rng, len(mean_s))
        return np.maximum(mean_s + noise, 0.0) * factor

    def message_modes(self) -> list[tuple[float, float, float]]:
        """(weight, mean, sd) of the logarithm of a message's time over its mean."""
        late, sd = self.scatter.late_messages, self.scatter.message
        rows = [(1.0 - late, 0.0, sd)] + ([(late, np.log(LATE), sd)] if late else [])
        shift = np.log(sum(weight * np.exp(mean + sd**2 / 2) for weight, mean, sd in rows))
        return [(weight, mean - shift, sd) for weight, mean, sd in rows]

    def message_noise(self, rng: np.random.Generator, count: int) -> Floats:
        """Factors of mean 1 on single messages, shape (count,)."""
        return np.exp(Modes(*np.array(self.message_modes()).T).draw(rng, count))

    def line(self, link: str) -> tuple[float, float]:
        """Latency and seconds per byte of a link."""
        latency, per_byte = LINKS[link]
        return latency * self.link[link][0], per_byte * self.link[link][1]

    def one_way_s(self, link: str, size: Floats, *, gaps: bool = False) -> Floats:
        """Mean time of a message alone, shape of size; gaps: of a datatype with gaps."""
        latency, per_byte = self.line(link)
        eager = latency + SEND[0] + RECEIVE[0] + (per_byte + SEND[1] + RECEIVE[1]) * size
        beyond = RENDEZVOUS_S * latency + per_byte * size * (GAPS if gaps else 1.0)
        return np.where(size <= EAGER_BYTES, eager, beyond)


def law_of(scatter: Scatter, rng: np.random.Generator) -> Law:
    """A machine: coefficients and links around the typical ones, 10 % and 20 % either way."""
    mean = {
        kernel: tuple(
            (highest, {term: value * float(np.exp(0.1 * rng.normal())) for term, value in terms.items()})
            for highest, terms in pieces
        )
        for kernel, pieces in MEANS.items()
    }
    link = {name: (float(np.exp(0.2 * rng.normal())), float(np.exp(0.2 * rng.normal()))) for name in LINKS}
    if scatter.uneven:
        return Law(mean, 1.0, exponential(), scatter.call, UNEVEN_S, link, scatter)
    growth, relative_sd, modes = with_outliers(half_normal(), scatter.call, scatter.outliers)
    return Law(mean, growth, modes, relative_sd, 0.0, link, scatter)


def half_normal() -> Modes:
    """A half-normal distribution as BINS normal ones, of mean 0 and variance 1."""
    return _binned(np.abs(np.random.default_rng(0).normal(size=200_000)))


def exponential() -> Modes:
    """An exponential distribution, likewise."""
    return _binned(np.random.default_rng(0).exponential(size=200_000), 8)


def with_outliers(modes: Modes, call: float, share: float) -> tuple[float, float, Modes]:
    """Mean, sd and standardised modes of a factor: 1 + call * noise, but for a share that is uniform in OUTLIERS."""
    low, high = OUTLIERS
    width = (high - low) / 3
    centres = low + width * (np.arange(3) + 0.5)
    weight = np.concatenate([modes.weight * (1 - share), np.full(3, share / 3)])
    mean = np.concatenate([1 + call * modes.mean, centres])
    sd = np.concatenate([call * modes.sd, np.full(3, width / np.sqrt(12))])
    if share == 0:
        weight, mean, sd = weight[: len(modes.weight)], mean[: len(modes.weight)], sd[: len(modes.weight)]
    centre = float(weight @ mean)
    spread = float(np.sqrt(weight @ ((mean - centre) ** 2 + sd**2)))
    return centre, spread / centre, Modes(weight, (mean - centre) / spread, sd / spread)


def _binned(values: Floats, bins: int = BINS) -> Modes:
    """Normal distributions that have the weights, means and sds of equal shares of the sorted values."""
    parts = np.array_split(np.sort((values - values.mean()) / values.std()), bins)
    weight = np.array([len(part) for part in parts]) / len(values)
    modes = Modes(weight, np.array([part.mean() for part in parts]), np.array([part.std() for part in parts]))
    spread = float(np.sqrt(weight @ (modes.mean**2 + modes.sd**2)))
    centre = float(weight @ modes.mean)
    return replace(modes, mean=(modes.mean - centre) / spread, sd=modes.sd / spread)

"""Random piecewise models of durations, whose truth is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COUNTS = (100, 200, 400)
LARGEST_BYTES = 8.0  # sizes are 10^U(0, 8)
MAX_BREAKPOINTS = 5
#: Each segment holds at least this share of the sizes, and never fewer than FEWEST.
MIN_SHARE, FEWEST = 0.05, 8
NOISES = ("normal", "half-normal", "lognormal")
#: A breakpoint is one only where the lines on both sides differ by so many standard deviations of the noise, in the
#: root of the sum of squares over the points of the smaller segment: less no method could see.
MIN_SIGNAL = 8.0

#: Sizes of tables with one duration a size, as (name, sizes): OSU's latency, its collectives, IMB's PingPong, and
#: tables that are cut short, or have a size in between.
GRIDS = (
    ("1 B to 4 MiB", tuple(2.0**k for k in range(23))),
    ("0, 1 B to 4 MiB", (0.0, *(2.0**k for k in range(23)))),
    ("4 B to 1 MiB", tuple(2.0**k for k in range(2, 21))),
    ("1 KiB to 16 MiB", tuple(2.0**k for k in range(10, 25))),
    ("1 KiB to 1 MiB", tuple(2.0**k for k in range(10, 21))),
    ("1 B to 4 MiB, half octaves", tuple(sorted({float(round(2 ** (k / 2))) for k in range(45)}))),
)
#: Of tables with one duration a size: breakpoints, sizes in each segment at least, and the decades of the noise.
FEW_BREAKPOINTS, FEW_IN_SEGMENT, FEW_NOISE = 3, 3, (-2.5, -1.0)


@dataclass(frozen=True, slots=True)
class Model:
    """Sizes with their true and their measured duration, both shape (n,), in random order.

    cuts  : indices into the sorted sizes of the last of each segment but the last
    sizes : sorted
    signal: of each breakpoint, as explained at MIN_SIGNAL
    """

    x: Floats
    y: Floats
    sizes: Floats
    cuts: tuple[int, ...]
    relative_sd: float
    kind: str
    signal: tuple[float, ...]


def found(model: Model, breakpoints: tuple[float, ...], far: int) -> bool:
    """Whether there are as many breakpoints as in truth, each at most `far` sizes away."""
    if len(breakpoints) != len(model.cuts):
        return False
    places = np.searchsorted(model.sizes, breakpoints)
    return bool(np.all(np.abs(places - np.array(model.cuts, dtype=int)) <= far))


def random_model(seed: int, sizes: int | None = None) -> Model:
    """One model: 0 to 5 breakpoints, lines with intercept and slope >= 0, noise that grows with the duration.

    sizes : how many are drawn (a few may coincide); None: one of COUNTS
    Standard deviation of the noise: relative 10^U(-3, -1) of the duration, plus 10^U(-4, -2) of the first latency.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, 4320]))
    while True:
        n = int(rng.choice(COUNTS)) if sizes is None else sizes
        x = np.unique(np.round(10 ** rng.uniform(0, LARGEST_BYTES, n)))
        count = int(rng.integers(0, MAX_BREAKPOINTS + 1))
        least = max(FEWEST, int(MIN_SHARE * len(x)))
        cuts = (
            np.sort(rng.choice(np.arange(least, len(x) - least), count, replace=False)) if count else np.zeros(0, int)
        )
        if np.any(np.diff([0, *cuts, len(x)]) < least):
            continue
        lines, true = _lines(rng, x, cuts)
        relative = 10 ** rng.uniform(-3, -1)
        sd = relative * true + 10 ** rng.uniform(-4, -2) * lines[0, 0]
        signal = [_signal(x, true, sd, lines, cuts, k) for k in range(count)]
        if signal and min(signal) < MIN_SIGNAL:
            continue
        kind = str(rng.choice(NOISES))
        y = _noisy(rng, kind, true, sd)
        order = rng.permutation(len(x))
        return Model(x[order], y[order], x, tuple(int(cut) - 1 for cut in cuts), relative, kind, tuple(signal))


def table_model(seed: int) -> tuple[str, Model]:
    """One of GRIDS by name, and a model on its sizes: 0 to 3 breakpoints, lognormal noise of 10^U(-2.5, -1)."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 2316]))
    while True:
        name, grid = GRIDS[int(rng.integers(0, len(GRIDS)))]
        x, count = np.array(grid), int(rng.integers(0, FEW_BREAKPOINTS + 1))
        cuts = np.sort(rng.choice(np.arange(1, len(x)), count, replace=False))
        if np.any(np.diff([0, *cuts, len(x)]) < FEW_IN_SEGMENT):
            continue
        lines, true = _lines(rng, x, cuts)
        relative = 10 ** rng.uniform(*FEW_NOISE)
        signal = [_signal(x, true, relative * true, lines, cuts, k) for k in range(count)]
        if signal and min(signal) < MIN_SIGNAL:
            continue
        y = _noisy(rng, "lognormal", true, relative * true)
        return name, Model(x, y, x, tuple(int(cut) - 1 for cut in cuts), relative, "lognormal", tuple(signal))


def _lines(rng: np.random.Generator, x: Floats, cuts: Floats) -> tuple[Floats, Floats]:
    """Intercepts and slopes, each segment's drawn from those of the one before, and the durations of these lines."""
    lines = [(10 ** rng.uniform(-7, -5), 10 ** rng.uniform(-10.5, -8.5))]
    for _ in cuts:
        intercept, slope = lines[-1]
        lines.append((intercept * 10 ** rng.uniform(-0.3, 1.0), slope * 10 ** rng.uniform(-0.6, 0.6)))
    every, which = np.array(lines), np.searchsorted(cuts, np.arange(len(x)), side="right")
    return every, every[which, 0] + every[which, 1] * x


def _signal(x: Floats, true: Floats, sd: Floats, lines: Floats, cuts: Floats, k: int) -> float:
    """How far the two lines at a breakpoint are apart, on the side where that is least."""
    bounds = [0, *(int(cut) for cut in cuts), len(x)]
    sides = []
    for own, other in ((k, k + 1), (k + 1, k)):
        part = slice(bounds[own], bounds[own + 1])
        apart = lines[other, 0] + lines[other, 1] * x[part] - true[part]
        sides.append(float(np.sqrt(np.sum((apart / sd[part]) ** 2))))
    return min(sides)


def _noisy(rng: np.random.Generator, kind: str, true: Floats, sd: Floats) -> Floats:
    if kind == "lognormal":
        sigma = np.sqrt(np.log1p((sd / true) ** 2))
        return true * np.exp(sigma * rng.normal(size=len(true)) - sigma**2 / 2)
    draws = rng.normal(size=len(true))
    if kind == "half-normal":
        draws = (np.abs(draws) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    return np.maximum(true + sd * draws, 0.05 * true)

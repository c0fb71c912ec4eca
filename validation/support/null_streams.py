"""Streams of a watched factor, one value a day: nothing changes in them, whatever the noise; and the alarms they give.

The same streams serve tests/promises/test_alarms.py and validation/alarms.py. Noise of a machine has a standard
deviation of 1 (0.5 % of the value, say).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from lepaute.stats.change_evidence import COMMON_MEMORY, ChangeEvidence
from lepaute.stats.group_effects import CommonEffect
from lepaute.watch.alarms.stretches import BY_CORRELATION, CHANCE_OF_FEW, CORRELATED

Floats = npt.NDArray[np.float64]

DAYS = 365
CPUS = 64
KINDS = (
    "independent",
    "AR(1) 0.6",
    "Student t, 4 df",
    "AR(1) 0.6 of t, 4 df",
    "season",
    "day effect",
    "machines differ",
)
#: Kinds in which machines come as fleets of CPUS, with something in common.
FLEETS = ("season", "day effect")


def autoregressive(innovations: Floats, rho: float | Floats) -> Floats:
    """Along the last axis, stationary: scaled so that the variance is that of the innovations.

    rho: one for all, or of each stream, shape (streams, 1)
    """
    x = innovations.copy()
    rho = np.asarray(rho)
    x[..., 1:] *= np.sqrt(1 - rho * rho)
    for t in range(1, x.shape[-1]):
        x[..., t] += rho[..., 0] * x[..., t - 1] if rho.ndim else rho * x[..., t - 1]
    return x


def null_streams(kind: str, streams: int, days: int = DAYS, seed: int = 20261123) -> Floats:
    """Shape (streams, days). Fleets lie one after the other, CPUS streams each.

    season     : 4 standard deviations up and down in a year from any phase, a tenth more or less a machine, and an
                 effect of the day with AR(1) 0.6 and a standard deviation of 2
    day effect : AR(1) 0.6 with a standard deviation of 2, common to a fleet
    machines differ : AR(1) of 0 to 0.8, each machine its own, and its own noise: lognormal, sigma 0.4
    """
    rng = np.random.default_rng((seed, KINDS.index(kind)))
    shape = (streams, days)
    if kind == "AR(1) 0.6":
        return autoregressive(rng.normal(size=shape), 0.6)
    if kind.startswith("Student"):
        return rng.standard_t(4, size=shape) / np.sqrt(2)
    if kind.endswith("df"):
        return autoregressive(rng.standard_t(4, size=shape) / np.sqrt(2), 0.6)
    if kind == "machines differ":
        scale, rho = rng.lognormal(0, 0.4, (streams, 1)), rng.uniform(0, 0.8, (streams, 1))
        return scale * autoregressive(rng.normal(size=shape), rho)
    own = rng.normal(size=shape)
    if kind == "independent":
        return own
    fleets = -(-streams // CPUS)
    shared = 2 * autoregressive(rng.normal(size=(fleets, days)), 0.6)
    own += np.repeat(shared, CPUS, axis=0)[:streams]
    if kind == "season":
        phase = np.repeat(rng.uniform(size=fleets), CPUS)[:streams]
        wave = np.sin(2 * np.pi * (np.arange(days) / 365 + phase[:, None]))
        own += 4 * (1 + 0.1 * rng.normal(size=(streams, 1))) * wave
    return own


@dataclass(frozen=True, slots=True)
class Evidence:
    """E of each machine, shape (streams, days), and of what is common to each fleet, shape (fleets, days).

    unconfirmed : over the least of a machine of few, but for their number; rest : values less the common effect
    """

    machines: Floats
    common: Floats
    unconfirmed: Floats
    rest: Floats


def evidence(values: Floats, fleet: int = 0, pooled: bool = False, least: float = 0.0, restart: int = 0) -> Evidence:
    """Day by day.

    fleet : machines that have a day effect in common, 0 for none; pooled: their noise is alike too
    least : changes up to this are none, in the unit of the values; restart: the day of an event of all, 0 for none
    """
    streams, days = values.shape
    size = fleet or streams
    groups = np.arange(streams) // size
    state = ChangeEvidence.start(streams)
    fleets = int(groups[-1]) + 1
    common = ChangeEvidence.start(fleets, COMMON_MEMORY)
    found, unconfirmed, rest = np.stack([values] * 3)
    shared_found = np.ones((fleets, days))
    effect = CommonEffect(groups)
    allowed = np.full(streams, least)
    for day in range(days):
        if restart and day == restart:
            state.restart(np.arange(streams))
            common.restart(np.arange(fleets))
        today = values[:, day]
        shared = effect.take(state.deviations(today)) if fleet else None
        if fleet:
            rest[:, day] -= effect.effect[groups]
            common.update(np.where(effect.here, effect.effect, np.nan), least=allowed[:fleets])
            shared_found[:, day] = common.evidence()
        state.update(today, groups if pooled else None, shared, allowed)
        found[:, day] = state.evidence()
        less = np.exp(np.minimum(0.0, BY_CORRELATION * (state.rho(groups if pooled else None) - CORRELATED)))
        unconfirmed[:, day] = state.evidence_so_far() * CHANCE_OF_FEW / less
    return Evidence(found, shared_found, unconfirmed, rest)


def raw_p_values(values: Floats) -> Floats:
    """The raw test of each value against all earlier ones of its stream (r = 1, p = 1), NaN before the fourth."""
    n = np.arange(values.shape[1], dtype=np.float64)
    before = np.cumsum(values, axis=1) - values
    squares = np.cumsum(values**2, axis=1) - values**2
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = before / n
        variance = (squares - n * mean**2) / (n - 1)
        t = (values - mean) ** 2 / variance * n / (n + 1)
        p = special.fdtrc(1, n - 1, t)
    p[:, :3] = np.nan
    return np.asarray(p, dtype=np.float64)


def racked_streams(seed: int, machines: int, racks: int, days: int = DAYS, wander: float = 1.0) -> Floats:
    """A fleet in which nothing changes, shape (machines, days): racks of machines that lie side by side wander.

    wander : standard deviation of the AR(1) 0.9 of a rack, in those of a machine; besides it the season and the effect
    of the day of `null_streams`
    """
    rng = np.random.default_rng((seed, machines, racks))
    own = rng.normal(size=(machines, days))
    own += np.repeat(wander * autoregressive(rng.normal(size=(racks, days)), 0.9), machines // racks, axis=0)
    own += 2 * autoregressive(rng.normal(size=(1, days)), 0.6)
    wave = np.sin(2 * np.pi * (np.arange(days) / 365 + rng.uniform()))
    own += 4 * (1 + 0.1 * rng.normal(size=(machines, 1))) * wave
    return own

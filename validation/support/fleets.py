"""Fleets of simulated machines as tables of factor values, in which something may be planted."""

import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]

#: 2026-01-01, and a day.
BEGIN_S, DAY_S = 1_767_225_600.0, 86_400.0
#: Relative standard deviation of a machine from day to day: half a per cent.
NOISE = 0.005
CPUS_A_NODE = 2
FACTOR = "dgemm_rate_flops"


def fleet_values(
    streams: Floats | Mapping[str, Floats],
    *,
    noise: float = NOISE,
    seed: int = 1,
    cluster: str = "sim",
    cpus: int = CPUS_A_NODE,
) -> pd.DataFrame:
    """The factor values of machines, each of shape (machines, days) in standard deviations; NaN: not measured.

    Of two processors a node, machine 2 i and 2 i + 1 are those of node i + 1. Levels of machines differ by 3 % (one
    standard deviation), jobs of a node start at any hour of their day.
    """
    by_factor = streams if isinstance(streams, Mapping) else {FACTOR: streams}
    parts = []
    for factor, z in by_factor.items():
        rng = np.random.default_rng(seed)
        machines, days = z.shape
        levels = 1e12 * (1 + 0.03 * rng.normal(size=(machines, 1)))
        hour = np.repeat(rng.uniform(0, 80_000, size=(-(-machines // cpus), days)), cpus, axis=0)
        machine, day = np.nonzero(np.isfinite(z))
        parts.append(
            pd.DataFrame(
                {
                    "cluster": cluster,
                    "node": (machine // cpus + 1).astype(str),
                    "cpu": machine % cpus,
                    "job": (1000 + day).astype(str),
                    "started_s": BEGIN_S + DAY_S * day + hour[machine, day],
                    "stratum": "s",
                    "factor": factor,
                    "value": (levels * (1 + noise * z))[machine, day],
                    "state": "done",
                    "archive": "",
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def until_today(values: pd.DataFrame) -> pd.DataFrame:
    """The same nights, whole days later."""
    days = (time.time() - values["started_s"].max()) // DAY_S
    return values.assign(started_s=values["started_s"] + DAY_S * days)


def date_of(day: int) -> str:
    return str(np.datetime64("2026-01-01") + day)

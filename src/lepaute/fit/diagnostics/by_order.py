"""Residuals against order: are successive calls alike?"""

import numpy as np
from scipy.special import erfc

from lepaute.fit.diagnostics.flag import Check, Limits, unable
from lepaute.fit.diagnostics.residuals import Classed

#: Sums of many calls scatter more by root((1 + rho) / (1 - rho)): by half as much again at 0.4, by twice at 0.6.
AUTOCORRELATION = Limits(0.4, 0.7)
FEWEST_PAIRS = 50


def autocorrelation(calls: Classed, *, episodes: bool = False) -> Check:
    """Correlation of successive calls within one process, from ranks; what their sizes and the process explain is off.

    episodes : the platform has a component that successive calls share: then a correlation is no defect
    Only calls that are more alike than independent ones matter: others make sums scatter less.
    """
    kind, limits = "autocorrelation", Limits(np.inf, np.inf) if episodes else AUTOCORRELATION
    process = calls.of.process
    _, number = np.unique(process, return_inverse=True)
    value = (calls.ratio - calls.expected) / np.maximum(calls.scale[calls.number], 1e-12)
    value -= (np.bincount(number, weights=value) / np.bincount(number))[number]
    order = np.argsort(number, kind="stable")
    value, number = value[order], number[order]
    follows = number[1:] == number[:-1]
    pairs = int(np.count_nonzero(follows))
    if pairs < FEWEST_PAIRS or np.ptp(value) == 0.0:
        return unable(kind, limits, f"Too few successive calls ({pairs}) to estimate their correlation.")
    rank = np.argsort(np.argsort(value, kind="stable"), kind="stable").astype(np.float64)
    before, after = rank[:-1][follows], rank[1:][follows]
    spread = float(np.std(before) * np.std(after))
    rho = float(np.mean((before - before.mean()) * (after - after.mean()))) / spread if spread > 0 else 0.0
    z = rho * pairs**0.5
    size = max(rho, 0.0)
    factor = ((1 + size) / max(1 - size, 1e-3)) ** 0.5
    fine = f"Successive calls are hardly correlated ({rho:.2f})."
    if size >= AUTOCORRELATION.notable:
        fine = f"Successive calls are correlated ({rho:.2f}); the platform models it (episodes)."
    return Check(
        kind,
        size,
        z,
        0.5 * float(erfc(z / 2**0.5)),
        limits,
        f"Successive calls are correlated ({rho:.2f}): sums of many scatter {factor:.2g} times as much as "
        "if each were drawn for itself, as simulations do, so that intervals come out too narrow. Measure in more "
        "blocks, whose spread covers part of it.",
        fine,
    )

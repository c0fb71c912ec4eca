"""Alarms beside the raw test, and steps beside PELT, on simulated streams: what is false, and what is found when.

    .venv/bin/python validation/alarms.py

Fixed before any result was looked at: the kinds of noise (support/null_streams.py), the sizes of change, n = 3, 10, 50
earlier values, 120 days afterwards, noise of 0.5 %, level 5 %, raw level 1e-4. Fleets of 64 machines; for power, one
machine in eight changes on the same day. Steps and PELT: 100 series of 80 values; PELT (ruptures, cost l2, segments of
at least 4) on values over their robust scale, its penalty such that 1 % of other series of *independent normal* noise
get a change, and then, for power, such that 1 % of series with the noise at hand do. The numbers of fleets and series
were cut afterwards (from 100 and 300) to save time.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import ruptures
from support.null_streams import CPUS, FLEETS, KINDS, evidence, null_streams, raw_p_values

from lepaute.stats.online_fdr import LEVEL
from lepaute.stats.steps import find_steps

Floats = npt.NDArray[np.float64]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy" / "alarms.md"
FLEETS_OF_NULLS = 40
SIZES = (0.5, 1.0, 2.0, 5.0)
NOISE = 0.5
AFTER = 120
RAW = 1e-4
SEED = 20261124


def nulls() -> list[str]:
    rows = [
        "| noise | raw tests below 1e-4 | streams with one in a year | alarm, a stream watched alone "
        "| fleets of 64 with an alarm | the same, pooled |",
        "|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        values = null_streams(kind, FLEETS_OF_NULLS * CPUS, seed=SEED)
        raw = raw_p_values(values)[:, 3:] < RAW
        fleet = CPUS if kind in FLEETS else 0
        own = evidence(values[: 2000 // CPUS * CPUS + CPUS], fleet).machines.max(axis=1)[:2000] if not fleet else None
        cells = []
        for pooled in (False, True):
            found = evidence(values, CPUS, pooled=pooled)
            machines = found.machines.reshape(FLEETS_OF_NULLS, CPUS, -1).max(axis=(1, 2))
            # 65 hypotheses: the machines and what they have in common; e-BH needs some E this large for a first alarm
            # of one, or several of half of it; the first is what happens in nulls, the exact rule is in the tests
            cells.append(np.maximum(machines, found.common.max(axis=1)) >= 2 * (CPUS + 1) / LEVEL)
        alone = "–" if own is None else f"{100 * (own >= 2 / LEVEL).mean():.2f} %"
        rows.append(
            f"| {kind} | {1e4 * raw.mean():.1f} in 10,000 | {100 * raw.any(axis=1).mean():.0f} % | {alone} | "
            f"{cells[0].sum()} of {FLEETS_OF_NULLS} | {cells[1].sum()} of {FLEETS_OF_NULLS} |"
        )
    return rows


def delays(n: int, size: float, pooled: bool) -> str:
    rng = np.random.default_rng((SEED, n, int(10 * size)))
    values = rng.normal(size=(4 * CPUS, n + AFTER))
    changed = np.arange(len(values)) % 8 == 1
    values[changed, n:] += size / NOISE
    found = np.concatenate([evidence(fleet, CPUS, pooled=pooled).machines for fleet in np.split(values, 4)])
    hit = found[changed, n:] >= 2 * (CPUS + 1) / LEVEL
    days = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, AFTER + 1)
    middle = float(np.median(days))
    text = f"{middle:.0f}" if middle <= AFTER else f"> {AFTER}"
    return f"{text} ({100 * hit.any(axis=1).mean():.0f} %)"


def raw_delays(n: int, size: float) -> str:
    """The raw test against the n values before the change only, so the best it can do."""
    from scipy import special

    rng = np.random.default_rng((SEED, n, int(10 * size), 2))
    before, after = rng.normal(size=(2000, n)), rng.normal(size=(2000, AFTER)) + size / NOISE
    t = (after - before.mean(axis=1, keepdims=True)) ** 2 / before.var(axis=1, ddof=1)[:, None] * n / (n + 1)
    hit = special.fdtrc(1, n - 1, t) < RAW
    days = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, AFTER + 1)
    middle = float(np.median(days))
    return f"{middle:.0f}" if middle <= AFTER else f"> {AFTER}"


def power() -> list[str]:
    rows = [
        "| n before | change | this machine's noise alone | pooled over 64 | raw test, 1e-4 |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {n} | {size:g} % | {delays(n, size, False)} | {delays(n, size, True)} | {raw_delays(n, size)} |"
        for n in (3, 10, 50)
        for size in SIZES
    ]
    return rows


def pelt_penalty(x: Floats) -> float:
    """The largest penalty at which PELT still cuts the series: the best of its cuts into two, by the cost l2.

    One cut is not all that PELT can do, but with segments of at least 4 and penalties this large it comes first; the
    share of null series with a change is checked with PELT itself.
    """
    scaled = (x - np.median(x)) / (1.4826 * np.median(np.abs(np.diff(x))) / np.sqrt(2))
    sums, n = np.cumsum(scaled), len(x)
    k = np.arange(4, n - 3)
    return float((sums[k - 1] ** 2 / k + (sums[-1] - sums[k - 1]) ** 2 / (n - k) - sums[-1] ** 2 / n).max())


def pelt_cuts(x: Floats, penalty: float) -> bool:
    scaled = (x - np.median(x)) / (1.4826 * np.median(np.abs(np.diff(x))) / np.sqrt(2))
    return len(ruptures.Pelt(model="l2", min_size=4, jump=1).fit(scaled[:, None]).predict(pen=penalty)) > 1


def change_points() -> list[str]:
    rows = [
        "| noise | steps: false alarms | PELT, penalty for independent noise: false alarms "
        "| steps: found, 4 sd at 40 of 80 | PELT at 1 % for this noise: found |",
        "|---|---|---|---|---|",
    ]
    reference = [pelt_penalty(x) for x in null_streams("independent", 2000, 80, SEED + 1)]
    nominal = float(np.quantile(reference, 0.99))
    for kind in KINDS[:4]:
        series = null_streams(kind, 100, 80, SEED)
        dates = np.arange(80.0)
        ours = np.mean([bool(find_steps(dates, 100 + 0.5 * x, least_size=0.0).steps) for x in series])
        theirs = np.mean([pelt_cuts(x, nominal) for x in series])
        own = float(np.quantile([pelt_penalty(x) for x in null_streams(kind, 2000, 80, SEED + 2)], 0.99))
        stepped = series.copy()
        stepped[:, 40:] += 4
        found = np.mean([bool(find_steps(dates, 100 + 0.5 * x, least_size=0.0).steps) for x in stepped])
        found_theirs = np.mean([pelt_cuts(x, own) for x in stepped])
        cells = " | ".join(f"{100 * share:.1f} %" for share in (ours, theirs, found, found_theirs))
        rows.append(f"| {kind} | {cells} |")
    return rows


def main() -> None:
    """Prints the page, and writes it."""
    text = [
        "# Alarms",
        "",
        "Written by `validation/alarms.py`; [reasons](../defense_of_design.md). All streams are simulated.",
        "",
        "## Years in which nothing changes",
        "",
        "Every alarm is false, so the false-discovery rate is the chance of any alarm: promised 5 %. With",
        f"{FLEETS_OF_NULLS} fleets, up to 6 are what 5 % gives in 99 cases of 100.",
        "",
        *nulls(),
        "",
        "Pooled noise does not hold the level where machines respond differently to a season: there, do not pool.",
        "",
        "## Days from a change to its alarm",
        "",
        f"Independent noise of {NOISE} %, fleets of 64 of which one machine in eight changes; the median, and how many",
        f"are found within {AFTER} days. The raw test does not correct for the number of tests, and its reference",
        "never takes in the new level.",
        "",
        *power(),
        "",
        "## Change points",
        "",
        "100 series of 80 values.",
        "",
        *change_points(),
    ]
    PAGE.write_text("\n".join(text) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()

"""Alarms beside the raw test and Otava, on simulated streams: what is false, and what is found when.

--otava takes an interpreter that has Apache Otava (an environment of its own). 15 minutes; a part by itself replaces
its section of docs/evidence/alarms.md.

Fixed before any result of these seeds was looked at; the method was chosen on others: the noise of
support/null_streams.py, 32 fleets of 64 machines, a year; changes of 0.5, 1, 2, 5 % after n = 3, 10, 50 values, 120
days, noise of 0.5 %, level 5 %, raw level 1e-4; for power, 8 fleets in which one machine in eight changes on the same
day, and 100 values before an event, of another level. Every change counts (least change 0), but for one column. Otava
and alarms are compared at the same share of streams with a false alarm, 5 % in 70 days, each with a threshold from 60
null streams of the noise at hand (200, and more p-values, were too slow); Otava's is the largest of a grid of p-values.

Three to eight machines: on other seeds the evidence of alarms found as much as that of Shiryaev and Roberts, as levels
and scales that are held earlier, and as other shifts, each with the bound at which 0.8 machines a year are false at
worst. The bound is the least tried at which one is, at most, in white and AR(1) 0.6 noise, normal and t of 4 df.
"""

import subprocess
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special, stats
from support.look_streams import BEFORE, NOISES, changed, cusum_bound, cusums, days_until, fleets_of, shown
from support.null_streams import CPUS, FLEETS, KINDS, autoregressive, evidence, null_streams, raw_p_values
from support.report import keep_tables, markdown, options_of, run_main, write_section

from lepaute.stats.multiple_tests import LEVEL, outlier_p_values
from lepaute.stats.small_changes import DAYS
from lepaute.watch.alarms.procedure import MIN_CHANGE, AlarmSettings, judge_days
from lepaute.watch.alarms.sizes import largest_level_change
from lepaute.watch.alarms.worth_a_look import is_borne_out

Floats = npt.NDArray[np.float64]

OTAVA_DAYS = Path(__file__).parent / "support" / "otava_days.py"
SIZES = (0.5, 1.0, 2.0, 5.0)
NOISE = 0.5
AFTER, HISTORY = 120, 100
RAW = 1e-4
SEED = 20261207
#: Machines of small fleets; per cent of noise of each, and in those what a night does to all; good nights before.
SMALL, SMALL_NOISE, OF_NIGHT, GOOD = (3, 4, 5, 8), 0.8, 0.6, (20, 40, 60)
#: Machines, and the spread of good ones in per cent, of which one is slow from the first day.
FEW, SPREADS = (3, 4, 5, 6, 7, 8), (0.3, 1.0, 3.0)
#: The kinds whose level is promised; the last one is what happens beyond.
PROMISED = KINDS[:-1]
P_VALUES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
CORRELATIONS = (("independent", 0.0), ("AR(1) 0.6", 0.6))


def with_alarm(machines: Floats, common: Floats) -> npt.NDArray[np.bool_]:
    """Which fleets get an alarm: the rule of stats.online_fdr for the hypotheses of a first day."""
    found = []
    for own, shared in zip(np.split(machines, len(common)), common, strict=True):
        largest = np.sort(np.concatenate([own, shared[None, :]]), axis=0)[::-1]
        rank = np.arange(1, len(largest) + 1)[:, None]
        found.append(bool((largest * rank >= 2 * len(largest) / LEVEL).any()))
    return np.array(found)


def nulls(fleets: int) -> str:
    allowed = int(stats.binom.ppf(0.99, fleets, LEVEL))
    alone = 100 * stats.binom.ppf(0.99, fleets * CPUS, LEVEL) / (fleets * CPUS)
    rows = []
    for kind in KINDS:
        values = null_streams(kind, fleets * CPUS, seed=SEED)
        raw = raw_p_values(values)[:, 3:] < RAW
        share = "–"
        if kind not in FLEETS:
            share = f"{100 * (evidence(values).machines.max(axis=1) >= 2 / LEVEL).mean():.2f} %"
        both = [evidence(values, CPUS, pooled=pooled) for pooled in (False, True)]
        name = kind if kind in PROMISED else f"{kind} (not promised)"
        cells = [f"{with_alarm(found.machines, found.common).sum()} of {fleets}" for found in both]
        rows.append((name, f"{1e4 * raw.mean():.1f} in 10,000", f"{100 * raw.any(axis=1).mean():.0f} %", share, *cells))
    header = (
        *("noise", "raw tests below 1e-4", "streams with one in a year", "alarm, a stream watched alone"),
        *("fleets of 64 with an alarm, machine by machine", "the same, moderated over machines"),
    )
    return f"""Every alarm is false, so the false-discovery rate is the chance of any alarm: promised 5 %. Of
{fleets} fleets, up to {allowed} are what 5 % gives in 99 cases of 100; of {fleets * CPUS:,} streams watched alone,
{alone:.1f} %.

{markdown(header, rows)}

Where machines differ, each has noise of its own (lognormal, sigma 0.4) and a correlation from 0 to 0.8. Beyond 0.6,
the correlation that a machine has by itself is recognised too late."""


def median_days(hit: npt.NDArray[np.bool_]) -> str:
    """From a change to the first of so many days on which it is seen."""
    middle = float(np.median(np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, AFTER + 1)))
    return f"{middle:.0f}" if middle <= AFTER else f"> {AFTER}"


def delays(n: int, size: float, pooled: bool, event: bool, fleets: int, rho: float = 0.0, least: float = 0.0) -> str:
    rng = np.random.default_rng((SEED, n, int(10 * size), int(10 * rho)))
    before = HISTORY if event else 0
    values = autoregressive(rng.normal(size=(fleets * CPUS, before + n + AFTER)), rho)
    values[:, :before] += rng.normal(size=(len(values), 1)) * 5
    changed = np.arange(len(values)) % 8 == 1
    values[changed, before + n :] += size / NOISE
    found = evidence(values, CPUS, pooled=pooled, least=least / NOISE, restart=before).machines
    hit = found[changed, before + n :] >= 2 * (CPUS + 1) / LEVEL
    return f"{median_days(hit)} ({100 * hit.any(axis=1).mean():.0f} %)"


def raw_delays(n: int, size: float) -> str:
    """The raw test against the n values before the change only, so the best it can do."""
    rng = np.random.default_rng((SEED, n, int(10 * size), 2))
    before, after = rng.normal(size=(2000, n)), rng.normal(size=(2000, AFTER)) + size / NOISE
    t = (after - before.mean(axis=1, keepdims=True)) ** 2 / before.var(axis=1, ddof=1)[:, None] * n / (n + 1)
    return median_days(special.fdtrc(1, n - 1, t) < RAW)


def power(fleets: int) -> str:
    rows = []
    for n in (3, 10, 50):
        for size in SIZES:
            cells = [delays(n, size, pooled, event, fleets) for event in (False, True) for pooled in (False, True)]
            cells.append(delays(n, size, True, True, fleets, least=100 * MIN_CHANGE))
            cells.append(delays(n, size, True, True, fleets, rho=0.6))
            rows.append((str(n), f"{size:g} %", *cells, raw_delays(n, size)))
    header = (
        *("n before", "change", "first ever, machine by machine", "first ever, moderated"),
        *("after an event, machine by machine", "after an event, moderated", "the same, least change 0.2 %"),
        *("after an event, moderated, AR(1) 0.6", "raw test, 1e-4"),
    )
    return f"""Noise of {NOISE} %, fleets of 64 of which one machine in eight changes; the median, and how many are
found within {AFTER} days by an alarm of one machine alone. n values are before the change: the first ever of these
machines, or those since an event before which there were {HISTORY}. The raw test does not correct for the number of
tests, its reference never takes in the new level, and it is shown for independent noise.

{markdown(header, rows)}"""


def otava(python: Path | None, streams: int) -> str:
    if python is None:
        return "Not run: no interpreter with Apache Otava was given (`--otava`)."
    version = subprocess.run(
        [python, "-c", "from importlib.metadata import version; print(version('apache-otava'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    rows = []
    for kind, rho in CORRELATIONS:
        rng = np.random.default_rng((SEED, 3, int(10 * rho)))
        null = 100 + NOISE * autoregressive(rng.normal(size=(streams, 70)), rho)
        reported = (otava_days(python, null, P_VALUES) >= 0).mean(axis=1)
        chosen = next((p for p, share in zip(P_VALUES, reported, strict=True) if share <= LEVEL), P_VALUES[-1])
        enough = float(np.quantile(evidence(null).machines.max(axis=1), 1 - LEVEL))
        default = f"{100 * reported[P_VALUES.index(1e-3)]:.0f} %"
        for n in (10, 50):
            for size, spike in ((1.0, False), (2.0, False), (5.0, False), (5.0, True)):
                values = 100 + NOISE * autoregressive(rng.normal(size=(streams, n + 60)), rho)
                values[:, n : n + (1 if spike else 60)] *= 1 + size / 100
                over = evidence(values).machines >= enough
                ours = np.where(over.any(axis=1), over.argmax(axis=1), -1)
                cells = [after(days, n) for days in (ours, otava_days(python, values, (chosen,))[0])]
                change = f"{size:g} %{', one value only' if spike else ''}"
                rows.append((kind, str(n), change, *cells, f"{enough:.1f}", f"{chosen:g}", default))
    header = (
        *("noise", "n before", "change", "alarms: days (found)", "Otava: days (found)", "evidence needed"),
        *("p-value of Otava", "streams without a change with a report by default"),
    )
    return f"""Apache Otava {version}, given each stream anew every day, as a nightly job would; {streams}
streams, {NOISE} % of noise, watched one by one, without peers or a history (Otava knows neither), 60 days after the
change. Both have thresholds at which 5 % of other streams without a change get an alarm (Otava: at most) in 70 days:
the evidence needed, and the p-value. The last column is what Otava does with its default of 0.001.

{markdown(header, rows)}

An alarm before the change counts as not found. One value only: a spike, of which an alarm is false.

By a threshold chosen for the noise, Otava finds changes of a single stream sooner. In practice it is not known: with
correlation it falls by four decades, and by default all correlated streams got a report without a change. The evidence
of alarms needs no such choice (40 for a stream alone)."""


def after(days: npt.NDArray[np.int64], n: int) -> str:
    found = days >= n
    middle = float(np.median(np.where(found, days - n + 1, 61)))
    return f"{f'{middle:.0f}' if middle <= 60 else '> 60'} ({100 * found.mean():.0f} %)"


def otava_days(python: Path, values: Floats, p_values: tuple[float, ...]) -> npt.NDArray[np.int64]:
    with tempfile.TemporaryDirectory() as folder:
        streams, result = Path(folder, "streams.npy"), Path(folder, "days.npy")
        np.save(streams, values)
        subprocess.run([python, OTAVA_DAYS, streams, result, *map(str, p_values)], check=True)
        return np.asarray(np.load(result), dtype=np.int64)


def sizes(fleets: int) -> str:
    rows = []
    for kind, rho in CORRELATIONS:
        for size in SIZES[1:]:
            rng = np.random.default_rng((SEED, 4, int(10 * rho), int(size)))
            held, misses, false, alarms, changes = [], [], 0, 0, 0
            for _ in range(fleets):
                values = 2e9 * (1 + NOISE / 100 * autoregressive(rng.normal(size=(CPUS, 110)), rho))
                changed = np.arange(CPUS) % 8 == 1
                values[changed, 50:] *= 1 - size / 100
                found = judge_days(factor_values(values), settings=AlarmSettings()).alarms
                true = found[found["node"].isin(np.flatnonzero(changed).astype(str))].drop_duplicates("node")
                true = true[true["day"] >= str(np.datetime64("2025-06-15") + 50)]
                held += ((true["size_low"] <= -size / 100) & (-size / 100 <= true["size_high"])).tolist()
                misses += (np.abs(true["changed_s"] - 1.75e9 - 50 * 86400.0) / 86400.0).tolist()
                false, alarms, changes = false + len(found) - len(true), alarms + len(found), changes + changed.sum()
            date = f"{np.median(misses):.0f} d, {np.quantile(misses, 0.9):.0f} d" if misses else "–"
            share = f"{100 * np.mean(held):.0f} %" if held else "–"
            rows.append((kind, f"{size:g} %", f"{len(held)} of {changes}", share, date, f"{false} of {alarms}"))
    header = (
        *("noise", "change", "found", "interval holds the change", "date: median miss, 90 % within"),
        "false alarms of all",
    )
    return f"""{fleets} fleets of 64 by `lepaute.watch.alarms.procedure.judge_days`, level 5 %, least change \
{100 * MIN_CHANGE:g} %, noise of {NOISE} %:
after 50 days one machine in eight changes, and 60 days follow. How often the interval of the first alarm of a changed
machine holds the true change (promised: 95 %), by how many days it misses the first day of the change, and
which of all alarms are false: of other machines, of the common effect, or a second one of a changed machine.

{markdown(header, rows)}"""


def factor_values(values: Floats) -> pd.DataFrame:
    """Streams, shape (machines, days), as one factor of one cluster."""
    machines, days = values.shape
    machine, day = np.repeat(np.arange(machines), days), np.tile(np.arange(days), machines)
    return pd.DataFrame(
        {
            "cluster": "simulated", "node": machine.astype(str), "cpu": 0, "job": day.astype(str),
            "started_s": 1.75e9 + 86400.0 * day, "stratum": "s", "factor": "mean_frequency_Hz",
            "value": values.reshape(-1), "state": "done", "archive": "",
        }
    )  # fmt: skip


def looks(fleets: int) -> str:
    """The second tier: its level, and what it finds, beside a CUSUM of the same level under independent noise."""
    levels = []
    for noise in NOISES:
        cells = []
        for size, times in ((5, 6), (12, 3), (64, 1)):
            count = times * fleets
            found = shown(fleets_of(noise, size, count, 250, SEED), size).reshape(count, size, 250).any(axis=1)
            parts = [found[:, begin : begin + DAYS].any(axis=1).mean() for begin in (0, 150)]
            cells.append(" and ".join(f"{100 * p:.1f} ± {100 * np.sqrt(p * (1 - p) / count):.1f}" for p in parts))
        levels.append((noise, *cells))
    rows = []
    for change, jobs in ((1.0, 1), (1.0, 4), (2.0, 1), (2.0, 2), (None, 1)):
        cells = []
        for size, count in ((12, fleets), (64, max(1, fleets // 3))):
            values = changed(change, size, count, jobs, SEED, 80)
            beyond = cusums(values, size, jobs) >= cusum_bound(size, 4 * count, SEED + 1, jobs)
            blank = np.zeros((len(values), BEFORE * jobs), np.bool_)
            for found in (shown(values, size, jobs), np.concatenate([blank, beyond], axis=1)):
                ordered = np.sort(days_until(found, size, jobs))
                ends = ordered[(len(ordered) - 1) // 2], ordered[int(np.ceil(0.9 * len(ordered))) - 1]
                cells.append(", ".join(f"{end:.0f}" if end <= 80 else "> 80" for end in ends))
        name = f"{change:g} sd" if change is not None else "three times the scatter"
        rows.append((name, str(jobs), *cells))
    header = ("change of one machine", "jobs a day", "12 machines: median, 90 %", "CUSUM", "64 machines: same", "CUSUM")
    return f"""The second tier, `lepaute.stats.small_changes`, decided before: at most one clean fleet in twenty with a
line in 100 days. Per cent of fleets, with the standard error; the first 100 days, and the last 100 of 250.

{markdown(("noise", "5 machines", "12", "64"), levels)}

One machine of each fleet changes after 100 days, independent noise: days until it is worth a look, the
median and what nine of ten take; of a CUSUM (residuals to the median of the fleet, level and scale of the
100 days, allowance 0.5), whose bound was simulated so that one clean fleet in twenty exceeds it in 100 days
of this very noise.

{markdown(header, rows)}"""


def small(fleets: int) -> str:
    """Fleets of SMALL: what is false in a year, what is named when, and who is unlike its peers from the first day."""
    rows, alarms, lines = list[tuple[str, ...]](), list[float](), list[float]()
    for machines, kind in product(SMALL, KINDS[:4]):
        streams = null_streams(kind, fleets * machines, seed=SEED)
        clean = evidence(streams, machines, pooled=True, least=100 * MIN_CHANGE / SMALL_NOISE)
        alarms.append(100 * with_alarm(clean.machines, clean.common).mean())
        lines.append((clean.unconfirmed >= machines).any(axis=1).sum() / fleets)
    for machines, (noise, rho), before, change in product(SMALL, CORRELATIONS, GOOD, (-1.0, -2.0, -3.0, -6.0)):
        cells = named(fleets, machines, rho, before, change), oracle(machines, rho, before, change)
        rows.append((str(machines), noise, str(before), f"{change:g} %", *cells))
    unlike = 0.0
    for machines, spread in product(FEW, SPREADS):
        rng = np.random.default_rng((SEED, 7, machines, int(10 * spread)))
        good = rng.normal(size=(4 * fleets, machines)) * spread / 100
        for slow in (0.0, 0.06, 0.1, 0.2):
            levels = np.column_stack([good[:, 0] - slow, good[:, 1:]])
            hit = np.array([outlier_p_values(row) for row in levels]) <= LEVEL
            if not slow:
                unlike = max(unlike, 100 * hit.any(axis=1).mean())
                continue
            cells = f"good ones differ by {spread:g} %", "0", f"-{100 * slow:g} %", f"{100 * hit[:, 0].mean():.0f} %"
            rows.append((str(machines), *cells, "–"))
    header = ("machines", "noise", "good nights", "change", "named, at least as not confirmed", "oracle")
    return f"""{fleets} fleets each of {", ".join(map(str, SMALL))} machines, noise of {SMALL_NOISE} %, {OF_NIGHT} of
that common to a night; white or AR(1) 0.6. Of clean ones, also of Student's t, {min(alarms):.1f} to {max(alarms):.1f} %
have an alarm in a year (promised 5 %; {100 * stats.binom.ppf(0.99, fleets, LEVEL) / fleets:.1f} % may be chance), and
{min(lines):.2f} to {max(lines):.2f} machines a year have evidence for a change that is not confirmed (accepted: 1; told
only while values bear it out). Then the first machine of each changes: per cent named within 3, 10 and 30 nights, and
by an oracle with one false alarm a year, which knows noise, correlation and the night that is asked about. One that is
slow from its first day is unlike its peers, of which {unlike:.1f} % of clean fleets at most have one (promised 5 %).

{markdown(header, rows)}"""


def named(fleets: int, machines: int, rho: float, before: int, change: float) -> str:
    """Per cent of first machines named within 3, 10 and 30 nights: by an alarm, or evidence that values bear out."""
    rng, shares = np.random.default_rng((SEED, 6, machines, int(10 * rho), before, int(-change))), list[str]()
    z = autoregressive(rng.normal(size=(fleets * machines, before + 30)), rho)
    z += OF_NIGHT * np.repeat(rng.normal(size=(fleets, before + 30)), machines, axis=0)
    z[::machines, before:] += change / SMALL_NOISE
    found = evidence(z, machines, pooled=True, least=100 * MIN_CHANGE / SMALL_NOISE)
    seen, alarm = found.unconfirmed >= machines, found.machines >= 2 * (machines + 1) / LEVEL
    for nights in (3, 10, 30):
        seen_by, hits = (each[::machines, before : before + nights].any(axis=1) for each in (seen, alarm))
        for at in np.flatnonzero(seen_by & ~hits):
            x = 100 + SMALL_NOISE * found.rest[at * machines, : before + nights]
            new = largest_level_change(x, -1)
            hits[at] = is_borne_out(x, new, new.before * (1 + new.size))
        shares.append(f"{100 * hits.mean():.0f}")
    return f"{'/'.join(shares)} %"


def oracle(machines: int, rho: float, before: int, change: float) -> str:
    """The same of generalised least squares of a level and a step, of a machine less the mean of the others."""
    later, shares = (1 - rho) / (1 + rho), list[str]()
    for nights in (3, 10, 30):
        step, both = 1 / (1 - rho**2) + (nights - 1) * later, 1 / (1 + rho) + (nights - 1) * later
        score = step - both**2 / (1 + (before + nights - 1) * later)
        shift = abs(change) / SMALL_NOISE * np.sqrt(score * (machines - 1) / machines)
        shares.append(f"{100 * stats.norm.sf(stats.norm.isf(1 / (2 * 365 * machines)) - shift):.0f}")
    return f"{'/'.join(shares)} %"


OWN = {
    "--part": {"action": "append", "choices": ("nulls", "power", "small", "sizes", "looks", "otava")},
    "--otava": {"type": Path, "help": "an interpreter that has Apache Otava"},
}


def main() -> int:
    """Writes all sections, or those that are asked for, and prints them."""
    options = options_of(__doc__, own=OWN)
    quick = options.quick
    parts = {
        "nulls": ("Years in which nothing changes", lambda: nulls(2 if quick else 32)),
        "power": ("Days from a change to its alarm", lambda: power(1 if quick else 8)),
        "small": ("Three to eight machines", lambda: small(20 if quick else 400)),
        "sizes": ("How large a change is said to be", lambda: sizes(1 if quick else 20)),
        "looks": ("What is worth a look", lambda: looks(4 if quick else 100)),
        "otava": ("Apache Otava at the same false-alarm rate", lambda: otava(options.own.otava, 10 if quick else 60)),
    }
    for name, (title, make) in parts.items():
        if name in (options.own.part or parts):
            text = f"## {title}\n\n{make()}"
            keep_tables(options.output, f"alarms_{name}", text)
            write_section(options.output, f"alarms_{name}", text)
            print(text)
    return 0


if __name__ == "__main__":
    run_main(main)

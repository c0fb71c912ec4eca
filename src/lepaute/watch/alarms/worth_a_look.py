"""What is worth a look, though no alarm: the second tier, of small changes and of wider scatter.

It never changes an alarm, what is open, or an exit status. Each line stands until an event or an alarm of its stream,
and as long as the values bear it out and the latest ones are not back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lepaute.kit.text import signed_percent, significant
from lepaute.stats.expanding import Floats
from lepaute.stats.level_shift import Onset, onset
from lepaute.stats.robust import robust_sd
from lepaute.stats.small_changes import CHANCE, DAYS
from lepaute.watch.alarms.sizes import LevelChange, correlation_within, is_worse, size_at
from lepaute.watch.values import DAY_S

#: The label, the same wherever such lines are shown.
LABEL = (
    f"Worth a look, no alarms (of {round(1 / CHANCE)} fleets in which nothing changes, one has such a line within "
    f"{DAYS} days)"
)
LEVEL, SCATTER = "level", "scatter"
#: So many latest values must be back: at the old level, or at the old scatter.
RETURNED, MIN_RECOVERED_SCATTER = 5, 10
#: Values beyond this many robust standard deviations count as if they were there.
MAX_DEVIATIONS = 4.0
#: The logarithm of how much likelier than a step a line must be, to be called one.
GRADUAL = 2.0
#: What later values do not bear out, by the test of its date alone, is no longer shown.
BORNE_OUT = 1e-3
#: A scatter is one of this many values at least.
MIN_SCATTER = 3
COLUMNS = (
    *("cluster", "node", "cpu", "factor", "stratum", "day", "kind", "changed_s", "gradual", "size"),
    *("size_low", "size_high", "worse", "evidence", "enough", "stands"),
)


@dataclass(frozen=True, slots=True)
class Look:
    """A stream on the day (since 1970) on which the evidence was enough, and its values since round `start_round`.

    direction : of a change of level, 1 or -1
    values    : up to what ended it, without what all machines have in common, in order of time; times_s: their dates
    stands    : whether nothing ended it
    """

    key: dict[str, object]
    day: int
    start_round: int
    evidence: float
    enough: float
    direction: int
    values: Floats = field(default_factory=lambda: np.zeros(0))
    times_s: Floats = field(default_factory=lambda: np.zeros(0))
    stands: bool = False


def looks_of(looks: "Sequence[Look]", least_change: float) -> "pd.DataFrame":
    """A row each, in the order of days: the columns COLUMNS.

    least_change : relative; a smaller change of level, or a scatter that stays below it, is nobody's concern
    day, changed_s : of the line (ISO date); of the change, the beginning of it where it is gradual
    kind : LEVEL or SCATTER; size: the relative change of the level by now, or of the standard deviation, with an
           interval of 95 % of a level, NaN of a scatter; worse: as of alarms, a wider scatter is
    stands : whether it is to be shown: nothing ended it, and the machine is not back
    """
    rows = [row for look in looks if (row := _row(look, least_change)) is not None]
    rows.sort(key=lambda row: (row["day"], *(str(row[name]) for name in COLUMNS[:5])))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(look: Look, least_change: float) -> dict[str, Any] | None:
    x = look.values
    middle = float(np.median(x))
    spread = robust_sd(x, middle)
    drawn_in = np.clip(x, middle - MAX_DEVIATIONS * spread, middle + MAX_DEVIATIONS * spread) if spread > 0 else x
    found = onset([(look.times_s, drawn_in)])
    wider = _wider(x)
    if wider is not None and _is_scatter(x, wider, drawn_in, found):
        change = _scatter(x, look.times_s, wider, abs(middle), least_change)
    else:
        change = _level(drawn_in, look, found, least_change)
    common = {**look.key, "day": str(np.datetime64(look.day, "D")), "evidence": look.evidence, "enough": look.enough}
    return None if change is None else {**common, **change, "stands": look.stands and bool(change["stands"])}


def _level(x: Floats, look: Look, found: Onset, least_change: float) -> dict[str, Any] | None:
    first = int(np.clip(np.searchsorted(look.times_s, found.step_s), 1, len(x) - 1))
    change = size_at(x, first, correlation_within(x, first))
    gradual = found.gain > GRADUAL
    before, now = change.before, change.before * (1 + change.size)
    if gradual:
        before, now = found.before[0], found.now[0]
    size = now / before - 1 if before else np.nan
    if not abs(size) >= least_change:
        return None
    return {
        "kind": LEVEL,
        "changed_s": found.date_s,
        "gradual": gradual,
        "size": size,
        "size_low": np.nan if gradual else change.low,
        "size_high": np.nan if gradual else change.high,
        "worse": is_worse(str(look.key["factor"]), 1 if size > 0 else -1),
        "stands": is_borne_out(x, replace(change, before=before), now),
    }


def is_borne_out(x: Floats, change: LevelChange, now: float) -> bool:
    """Whether the date of the change alone is significant and the latest values are not back from `now`."""
    latest = x[change.first :][-RETURNED:]
    back = len(latest) == RETURNED and bool((np.abs(latest - change.before) < np.abs(latest - now)).all())
    return change.p_value < BORNE_OUT and not back


def _wider(x: Floats) -> int | None:
    """The first value of a scatter that is wider than before, by likelihood; None if none is."""
    n = len(x)
    squares = np.cumsum((x - np.median(x)) ** 2)
    k = np.arange(MIN_SCATTER, n - MIN_SCATTER + 1)
    if len(k) == 0:
        return None
    before, after = squares[k - 1] / k, (squares[-1] - squares[k - 1]) / (n - k)
    usable = (after > before) & (before > 0)
    if not usable.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(usable, -k * np.log(before) - (n - k) * np.log(after), -np.inf)
    return int(k[gain.argmax()])


def _is_scatter(x: Floats, wider: int, drawn_in: Floats, found: Onset) -> bool:
    """Whether one mean and two variances are likelier than two levels, or a line, and one variance."""
    off = (x - np.median(x)) ** 2
    before, after = float(off[:wider].mean()), float(off[wider:].mean())
    scatter = -wider * np.log(before) - (len(x) - wider) * np.log(after)
    level = -len(x) * np.log(max(found.rest / len(drawn_in), 1e-300))
    return bool(scatter > level)


def _scatter(x: Floats, times_s: Floats, first: int, middle: float, least_change: float) -> dict[str, Any] | None:
    off = (x - np.median(x)) ** 2
    before, after = (float(np.sqrt(part.mean())) for part in (off[:first], off[first:]))
    latest = float(np.sqrt(off[first:][-MIN_RECOVERED_SCATTER:].mean()))
    if not after >= least_change * middle:
        return None
    return {
        "kind": SCATTER,
        "changed_s": float(times_s[first]),
        "gradual": False,
        "size": after / before - 1,
        "size_low": np.nan,
        "size_high": np.nan,
        "worse": True,
        "stands": len(x) - first < MIN_RECOVERED_SCATTER or latest**2 > before * after,
    }


def look_text(row: dict[Any, Any]) -> str:
    """cpu 0, dgemm_rate_flops -0.5 % since 2026-02-10; scatters 3.1 times as much since 2026-02-10."""
    since = f"since {np.datetime64(int(row['changed_s'] // DAY_S), 'D')}"
    cpu = f"cpu {int(row['cpu'])}, " if row["cpu"] >= 0 else ""
    if row["kind"] == SCATTER:
        return f"{cpu}{row['factor']} scatters {significant(1 + row['size'], 2)} times as much {since}"
    return f"{cpu}{row['factor']} {signed_percent(row['size'])}{' gradually' if row['gradual'] else ''} {since}"

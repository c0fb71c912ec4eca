"""A watch that judges anew on each day what is known on that day, and keeps what it concludes of that day's jobs."""

import datetime as dt

import numpy as np
import pandas as pd

from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.judge import judge

JOB = ["cluster", "node", "cpu", "job"]


def daily_verdicts(
    values: pd.DataFrame,
    changelog: Changelog,
    known_s: np.ndarray,
    factors: list[str | tuple[str, ...]],
    **settings: object,
) -> pd.DataFrame:
    """The verdicts of all days; known_s: when each row became known."""
    known_s = values.assign(known_s=np.fmax(values["started_s"], known_s)).groupby(JOB)["known_s"].transform("max")
    days = np.floor(known_s / 86400).astype(int)
    parts = []
    for day in sorted(set(days)):
        date = dt.date(1970, 1, 1) + dt.timedelta(days=day)
        seen = values[days <= day]
        there = set(seen["factor"])
        testable = [factor for factor in factors if there.issuperset([factor] if isinstance(factor, str) else factor)]
        if not testable:
            continue
        logged = ([each for each in some if each.date <= date] for some in (changelog.events, changelog.outliers))
        found = judge(seen, Changelog(*map(tuple, logged), changelog.inventory), testable, **settings)
        today = set(values.loc[days == day, JOB].itertuples(index=False, name=None))
        is_new = [job in today for job in found[JOB].itertuples(index=False, name=None)]
        parts.append(found[np.array(is_new, dtype=bool)].assign(judged_s=(day + 1) * 86400.0))
    return pd.concat(parts, ignore_index=True)

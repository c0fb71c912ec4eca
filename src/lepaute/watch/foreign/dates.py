"""Dates as files write them, in seconds since the epoch."""

import datetime as dt
import math
import re
from collections.abc import Callable

from lepaute.errors import InputError

#: Forms of a date that are numbers, and how many of them a second has.
EPOCHS = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}
_WHOLE = re.compile(r"[0-9]{1,30}")
ISO = "iso"
#: What is measured was measured after 1970 and before 2200: anything else is in another unit.
LATEST_S = dt.datetime(2200, 1, 1, tzinfo=dt.UTC).timestamp()


def date_reader(form: str, timezone: str = "UTC") -> Callable[[str], float]:
    """What turns a text into seconds since the epoch.

    form     : iso (2026-11-23T07:24:05+01:00, 2026-11-23 07:24, 2026-11-23), one of EPOCHS, or a format of strptime
    timezone : of dates that do not say theirs, such as Europe/Paris; of an hour that occurs twice the first is taken
    The reader raises InputError for what is no such date, or is not of the years 1970 to 2199. Raises InputError for a
    form or time zone that is not known.
    """
    zone = _zone(timezone)
    if form in EPOCHS:
        return lambda text: _bounded(_epoch_s(text, form), text, form)
    if form == ISO:
        return lambda text: _bounded(_seconds(dt.datetime.fromisoformat, text, zone, "2026-11-23T07:24:05"), text, form)
    if "%" not in form:
        raise InputError(
            f"the form of the date is {form[:40]!r}; give {ISO}, {', '.join(EPOCHS)} or one such as %d/%m/%Y"
        )
    try:
        now = dt.datetime.now(dt.UTC)
        dt.datetime.strptime(now.strftime(form), form)
    except ValueError as problem:
        raise InputError(f"the form of the date is {form[:40]!r}: {' '.join(str(problem).split())[:100]}") from None
    return lambda text: _bounded(_seconds(lambda each: dt.datetime.strptime(each, form), text, zone, form), text, form)


def _zone(name: str) -> dt.tzinfo:
    if name in ("UTC", "Z"):
        return dt.UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"the time zone {name[:40]!r} is not known; give one such as UTC or Europe/Paris") from None


def _seconds(parsed: Callable[[str], dt.datetime], text: str, zone: dt.tzinfo, example: str) -> float:
    try:
        date = parsed(text)
        return (date if date.tzinfo is not None else date.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"the date is {text[:40]!r}; it must be written as {example}") from None


def _epoch_s(text: str, form: str) -> float:
    try:
        if _WHOLE.fullmatch(text):
            return int(text) / EPOCHS[form]  # nanoseconds have more digits than a double
        return float(text) / EPOCHS[form] if "_" not in text else math.nan
    except ValueError:
        raise InputError(f"the date is {text[:40]!r}; it must be a number ({form})") from None


def _bounded(date_s: float, text: str, form: str) -> float:
    if not 0.0 <= date_s < LATEST_S:
        finer = " (milliseconds are epoch_ms)" if form == "epoch_s" and date_s >= LATEST_S else ""
        raise InputError(f"the date is {text[:40]!r}, which is not of the years 1970 to 2199{finer}")
    return date_s

"""Dates as files write them, to seconds since the epoch; units as benchmarks print them, to SI."""

import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from lepaute.errors import InputError

#: Forms of a date that are numbers, and how many of them a second has.
EPOCHS = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}
ISO = "iso"
#: What is measured was measured after 1970 and before 2200: anything else is in another unit.
LATEST_S = dt.datetime(2200, 1, 1, tzinfo=dt.UTC).timestamp()


def date_reader(form: str, timezone: str = "UTC") -> Callable[[str], float]:
    """Function that turns a text into seconds since the epoch.

    form     : iso (2026-11-23T07:24:05+01:00, 2026-11-23 07:24, 2026-11-23), one of EPOCHS, or a format of strptime
    timezone : of dates that do not say theirs, such as Europe/Paris; of an hour that occurs twice the first is taken
    The reader raises InputError for dates that are none or not of 1970 to 2199; this, for unknown forms and time zones.
    """
    zone = _zone(timezone)
    if form in EPOCHS:
        seconds: Callable[[str], float] = partial(_epoch_s, form)
    elif form == ISO:
        seconds = partial(_seconds, dt.datetime.fromisoformat, zone, "2026-11-23T07:24:05")
    elif "%" in form:
        try:
            dt.datetime.strptime(dt.datetime.now(dt.UTC).strftime(form), form)
        except ValueError as problem:
            raise InputError(f"the form of the date is {form[:40]!r}: {' '.join(str(problem).split())[:100]}") from None
        seconds = partial(_seconds, lambda text: dt.datetime.strptime(text, form), zone, form)
    else:
        raise InputError(
            f"the form of the date is {form[:40]!r}; give {ISO}, {', '.join(EPOCHS)} or one such as %d/%m/%Y"
        )

    def read(text: str) -> float:
        date_s = seconds(text)
        if not 0.0 <= date_s < LATEST_S:
            finer = " (milliseconds are epoch_ms)" if form == "epoch_s" and date_s >= LATEST_S else ""
            raise InputError(f"the date is {text[:40]!r}, which is not of the years 1970 to 2199{finer}")
        return date_s

    return read


def date_at(form: str, text: str, where: str) -> float:
    """The date of a text of this form; raises InputError, with the place, for what is no such date."""
    try:
        return date_reader(form)(text)
    except InputError as problem:
        raise InputError(f"{where}: {problem}") from None


def _zone(name: str) -> dt.tzinfo:
    if name in ("UTC", "Z"):
        return dt.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"the time zone {name[:40]!r} is not known; give one such as UTC or Europe/Paris") from None


def _seconds(parse: Callable[[str], dt.datetime], zone: dt.tzinfo, example: str, text: str) -> float:
    try:
        date = parse(text)
        return (date if date.tzinfo is not None else date.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"the date is {text[:40]!r}; it must be written as {example}") from None


def _epoch_s(form: str, text: str) -> float:
    try:
        if re.fullmatch(r"[0-9]{1,30}", text):
            return int(text) / EPOCHS[form]  # nanoseconds have more digits than a double
        return float(text) / EPOCHS[form] if "_" not in text else math.nan
    except ValueError:
        raise InputError(f"the date is {text[:40]!r}; it must be a number ({form})") from None


@dataclass(frozen=True, slots=True)
class Unit:
    """SI value = scale * value + offset; `suffix` ends the names of factors, empty for what has no unit."""

    suffix: str
    scale: float = 1.0
    offset: float = 0.0

    def to_si(self, value: float) -> float:
        return self.scale * value + self.offset

    def named(self, name: str) -> str:
        """The name with the unit at its end: once, where it ends so already."""
        return name if not self.suffix or name.endswith(f"_{self.suffix}") else f"{name}_{self.suffix}"


_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
_SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
#: Word -> suffix, what one is in it, and the prefixes that it takes.
_WORDS: dict[str, tuple[str, float, dict[str, float]]] = {
    "B": ("B", 1.0, _DECIMAL | _BINARY),
    **dict.fromkeys(("bit", "b"), ("B", 0.125, _DECIMAL | _BINARY)),
    "flop": ("flop", 1.0, _DECIMAL),
    "s": ("s", 1.0, {"": 1.0} | _SMALL),
    "Hz": ("Hz", 1.0, _DECIMAL),
    **{word: (word, 1.0, _DECIMAL | _SMALL) for word in "WJVA"},
}
#: Units that take no prefix, in lower case.
_WHOLE = {
    **dict.fromkeys(("", "1"), Unit("")),
    **dict.fromkeys(("%", "percent"), Unit("", 0.01)),
    **dict.fromkeys(("sec", "seconds"), Unit("s")),
    "min": Unit("s", 60.0),
    "h": Unit("s", 3600.0),
    "usec": Unit("s", 1e-6),
    "msec": Unit("s", 1e-3),
    **dict.fromkeys(("c", "°c", "degc", "celsius"), Unit("degC")),
    **dict.fromkeys(("k", "kelvin"), Unit("degC", 1.0, -273.15)),
    **dict.fromkeys(("°f", "degf"), Unit("degC", 5.0 / 9.0, -160.0 / 9.0)),
    "rpm": Unit("rpm"),
}
_PER_SECOND = re.compile(r"(.*?)\s*(?:/\s*(?:s|sec|second)|[_ ]?per[_ ]s(?:ec|econd)?)")
_LONGEST = 40
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*")
EXAMPLES = "s, ms, Hz, GHz, W, J, degC, K, B/s, MB/s, GiB/s, Gbit/s, flop/s, Gflop/s, items/s, %, or 1 for none"


def si_unit(text: str) -> Unit | None:
    """The unit that a text such as GHz, MB/s, GiB/s, us, Gflops or degC names; None if it names none.

    An M is 10^6, an Mi 2^20; B is a byte, b and bit are bits. Other rates keep their name: images/s is images_per_s.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if (whole := _WHOLE.get(text.lower())) is not None:
        return whole
    if (flops := re.fullmatch(r"([kmgtpe]?)(?:flops|flops?/s)", text, re.IGNORECASE)) is not None:  # no thousandths
        return Unit("flops", _DECIMAL[flops[1].upper()])
    if (rate := _PER_SECOND.fullmatch(text)) is not None:
        return _rate_of(rate[1])
    if (per_second := re.fullmatch(r"([kKMGTPE]i?)?([bB])ps", text)) is not None:
        return _rate_of((per_second[1] or "") + per_second[2])
    return _quantity(text)


@lru_cache(maxsize=1000)
def unit_of(text: str) -> Unit:
    """As `si_unit`; raises InputError if there is none."""
    unit = si_unit(text)
    if unit is None:
        raise InputError(f"the unit {text[:40]!r} is not known; give {EXAMPLES}")
    return unit


def _quantity(text: str) -> Unit | None:
    for word, (suffix, size, prefixes) in _WORDS.items():
        if text.endswith(word) and (prefix := text[: len(text) - len(word)]) in prefixes:
            return Unit(suffix, size * prefixes[prefix])
    return None


def _rate_of(word: str) -> Unit | None:
    unit = _quantity(re.sub(r"(?i)flops?$", "flop", word.removesuffix("ytes")))
    if unit is not None and unit.suffix in ("B", "flop"):
        return Unit("flops" if unit.suffix == "flop" else "B_per_s", unit.scale)
    if word == "1":
        return Unit("per_s")
    return Unit(f"{word}_per_s") if _PLAIN.fullmatch(word) else None

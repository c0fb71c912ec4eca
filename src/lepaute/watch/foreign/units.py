"""Units as benchmarks print them, to SI: how the name of a factor ends, and what its values are to be multiplied by."""

import re
from dataclasses import dataclass

from lepaute.errors import InputError


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
    "bit": ("B", 0.125, _DECIMAL | _BINARY),
    "b": ("B", 0.125, _DECIMAL | _BINARY),
    "flop": ("flop", 1.0, _DECIMAL),
    "s": ("s", 1.0, {"": 1.0} | _SMALL),
    "Hz": ("Hz", 1.0, _DECIMAL),
    "W": ("W", 1.0, _DECIMAL | _SMALL),
    "J": ("J", 1.0, _DECIMAL | _SMALL),
    "V": ("V", 1.0, _DECIMAL | _SMALL),
    "A": ("A", 1.0, _DECIMAL | _SMALL),
}
#: Those that take no prefix, in lower case.
_WHOLE = {
    "": Unit(""),
    "1": Unit(""),
    "%": Unit("", 0.01),
    "percent": Unit("", 0.01),
    "sec": Unit("s"),
    "seconds": Unit("s"),
    "min": Unit("s", 60.0),
    "h": Unit("s", 3600.0),
    "usec": Unit("s", 1e-6),
    "msec": Unit("s", 1e-3),
    "c": Unit("degC"),
    "°c": Unit("degC"),
    "degc": Unit("degC"),
    "celsius": Unit("degC"),
    "k": Unit("degC", 1.0, -273.15),
    "kelvin": Unit("degC", 1.0, -273.15),
    "°f": Unit("degC", 5.0 / 9.0, -160.0 / 9.0),
    "degf": Unit("degC", 5.0 / 9.0, -160.0 / 9.0),
    "rpm": Unit("rpm"),
}
_PER_SECOND = re.compile(r"(.*?)\s*(?:/\s*(?:s|sec|second)|[_ ]?per[_ ]s(?:ec|econd)?)")
_LONGEST = 40
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*")
EXAMPLES = "s, ms, Hz, GHz, W, J, degC, K, B/s, MB/s, GiB/s, Gbit/s, flop/s, Gflop/s, items/s, %, or 1 for none"


def si_unit(text: str) -> Unit | None:
    """The unit that a text such as GHz, MB/s, GiB/s, us, Gflops or degC names; None where it names none.

    An M is 10^6 and an Mi 2^20; a B is a byte, b and bit are bits. Rates of anything else keep its name: images/s is
    images_per_s.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if (whole := _WHOLE.get(text.lower())) is not None:
        return whole
    if (rate := _PER_SECOND.fullmatch(text)) is not None:
        return _rate_of(rate[1])
    if re.fullmatch(r"[kKMGTPE]?(?:flops|FLOPS|Flops|FLOPs|Flop/s|flop/s)", text):
        return Unit("flops", _DECIMAL[text[: re.search("[fF]", text).start()]])  # type: ignore[union-attr]
    if (per_second := re.fullmatch(r"([kKMGTPE]i?)?([bB])ps", text)) is not None:
        return _rate_of((per_second[1] or "") + per_second[2])
    return _quantity(text)


def unit_of(text: str) -> Unit:
    """As `si_unit`; raises InputError where there is none."""
    unit = si_unit(text)
    if unit is None:
        raise InputError(f"the unit {text[:40]!r} is not known; give {EXAMPLES}")
    return unit


def _quantity(text: str) -> Unit | None:
    for word, (suffix, size, prefixes) in _WORDS.items():
        if text.endswith(word) and text[: len(text) - len(word)] in prefixes:
            return Unit(suffix, size * prefixes[text[: len(text) - len(word)]])
    return None


def _rate_of(word: str) -> Unit | None:
    unit = _quantity(re.sub(r"(?i)flops?$", "flop", word.removesuffix("ytes")))
    if unit is not None and unit.suffix in ("B", "flop"):
        return Unit("flops" if unit.suffix == "flop" else "B_per_s", unit.scale)
    if word == "1":
        return Unit("per_s")
    return Unit(f"{word}_per_s") if _PLAIN.fullmatch(word) else None

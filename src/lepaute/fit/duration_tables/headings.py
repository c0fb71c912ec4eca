"""What the name of a column says: a size and its unit, a duration and its unit, or a rate and its unit."""

import re

#: Seconds of each unit, by the names that --unit takes.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
#: Rates that messages name as examples of what --unit takes.
RATES = "MB/s, GB/s, Gb/s"
_SPELLED = {"sec": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "µs": "us", "μs": "us", "nsec": "ns"}
_SIZES = ("size", "bytes", "msgsize", "messagesize", "msgbytes", "messagebytes", "nbytes", "sizebytes", "length")
_DURATIONS = ("duration", "time", "latency", "elapsed", "seconds", "t")
_BANDWIDTHS = ("bandwidth", "bw", "throughput", "rate")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
#: The case of the letters tells bits from bytes; Intel writes Mbytes/sec.
_RATE = re.compile(
    r"(?:^|[^A-Za-z])([kKMGT]?)(i?)(B|b|[Bb]ytes?|[Bb]its?)(?:/|p|_|\s*per\s*|_per_)(?:s|sec|second)(?![A-Za-z])"
)
_SIZE_UNIT = re.compile(r"[(\[_ .]([kmg]?)(i?)(?:b|bytes?)\s*[)\]]?\s*$")


def unit_in(name: str) -> str | None:
    """The unit of time that a name tells: us of "Avg Latency(us)", t[usec], time_us; None where it tells none."""
    text = name.strip().lower()
    if rate_in(name) is not None:
        return None
    bracketed = re.search(r"[(\[]\s*([a-zµμ]+)\s*[)\]]\s*$", text)
    suffixed = re.search(r"[_ .]([a-zµμ]+)$", text)
    for match in (bracketed, suffixed):
        if match and (unit := _SPELLED.get(match[1], match[1])) in SECONDS:
            return unit
    return "s" if text == "seconds" else None


def rate_in(name: str) -> float | None:
    """Bytes a second of the unit that a name tells: 1e6 of "Bandwidth (MB/s)" and Mbytes/sec, 1.25e8 of bw_Gbps.

    None where it tells none, as in mbps, which could be of bits or of bytes.
    """
    match = _RATE.search(name)
    if match is None:
        return None
    prefix, binary, what = match.groups()
    bits = what == "b" or what.lower().startswith("bit")
    return float((1024 if binary else 1000) ** _POWERS[prefix.lower()]) / (8 if bits else 1)


def size_unit_in(name: str) -> tuple[int, bool] | None:
    """Bytes of the unit that a name tells, and whether it could mean another one, as KB does; None without a unit."""
    match = _SIZE_UNIT.search(name.strip().lower())
    if match is None or rate_in(name) is not None:
        return None
    return 1024 ** _POWERS[match[1]], bool(match[1]) and not match[2]


def is_rate(name: str) -> bool:
    """Whether a column holds a rate, by its unit or its name."""
    return rate_in(name) is not None or (unit_in(name) is None and stem(name) in _BANDWIDTHS)


def is_size(name: str) -> bool:
    """Whether a column looks like one of sizes: by its unit or its name."""
    return size_unit_in(name) is not None or _letters(name) in _SIZES


def is_duration(name: str) -> bool:
    """Whether a column looks like one of durations: by its unit or its name."""
    return unit_in(name) is not None or (stem(name) in _DURATIONS and not is_rate(name))


def preferred(names: list[str]) -> str | None:
    """Of several columns of durations the mean, else the only one; None where neither tells which."""
    means = [name for name in names if re.search(r"avg|mean|average", name.lower())]
    return means[0] if len(means) == 1 else names[0] if len(names) == 1 else None


def column_named(wanted: str, columns: list[str]) -> str:
    """The column with that name, else the only one that has it before its unit: t_max of t_max[usec]."""
    alike = [name for name in columns if wanted and stem(name) == _letters(wanted)]
    return wanted if wanted in columns or len(alike) != 1 else alike[0]


def stem(name: str) -> str:
    """The letters of a name before its unit."""
    text = name.strip()
    rate = _RATE.search(text)
    if rate is not None:
        text = text[: rate.start()]
    return _letters(re.sub(r"[(\[].*|[_ .](s|ms|us|µs|μs|ns|usec|msec|sec|nsec)$", "", text.lower()))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())

"""What the name of a column tells: a unit of time, rate or size, and whether it holds sizes, durations or rates."""

import re

#: Seconds of each unit, by the names that --unit takes.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SPELLED = {"sec": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "µs": "us", "μs": "us", "nsec": "ns"}
_SIZES = ("size", "bytes", "msgsize", "messagesize", "msgbytes", "messagebytes", "nbytes", "sizebytes", "length")
_DURATIONS = ("duration", "time", "latency", "elapsed", "seconds", "t")
_BANDWIDTHS = ("bandwidth", "bw", "throughput", "rate", "speed")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
#: The case of a single letter tells bits from bytes; Intel writes Mbytes/sec.
_RATE = re.compile(
    r"(?:^|[^A-Za-z])([kKmMgGtT]?)(i?)(B|b|[Bb]ytes?|[Bb]its?)(?:/|p|_|\s*per\s*|_per_)(?:s|sec|second)(?![A-Za-z])"
)
#: What a count or an amount ends in, where "_s" after it is "per second".
_COUNTED = re.compile(r"(?:[kmgtpe]?i?(?:b|bytes?|bits?|flops?|ops?)|[a-z]{2,}s|msg|iter)$")
_SIZE_UNIT = re.compile(r"[(\[_ .]([kmg]?)(i?)(?:b|bytes?)\s*[)\]]?\s*$")
#: What the benchmarks call the mean of a call, without blanks, the best first: of an operation that does not block the
#: communication alone, without the computing meanwhile.
_MEAN_COLUMNS = ("AvgLatency(us)", "Latency(us)", "PureComm.(us)", "t_avg[usec]", "t[usec]", "t_pure[usec]")


def unit_in(name: str) -> str | None:
    """The unit of time that a name tells: us of "Avg Latency(us)", t[usec], time_us; None if it tells none."""
    text = name.strip().lower()
    if rate_in(name) is not None:
        return None
    bracketed = re.search(r"[(\[]\s*([a-zµμ]+)\s*[)\]]\s*$", text)
    for match in (bracketed, None if _is_rate_by_name(text) else re.search(r"[_ .]([a-zµμ]+)$", text)):
        if match and (unit := _SPELLED.get(match[1], match[1])) in SECONDS:
            return unit
    return "s" if text == "seconds" else None


def rate_in(name: str) -> float | None:
    """Bytes a second of the unit that a name tells: 1e6 of "Bandwidth (MB/s)" and Mbytes/sec, 1.25e8 of bw_Gbps.

    None if it tells none, as in mbps, which could be of bits or of bytes.
    """
    match = _RATE.search(name)
    if match is None or (len(match[3]) == 1 and match[1] in ("m", "g", "t")):
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
    return rate_in(name) is not None or (unit_in(name) is None and _is_rate_by_name(name.strip().lower()))


def _is_rate_by_name(text: str) -> bool:
    """Whether words of a name say a rate and none says a time: bandwidth_mb_s and msgs_s, but not time_ops_s."""
    words = re.findall(r"[a-zµμ]+", text)
    if not words or any(word.rstrip("s") in _DURATIONS or word == "times" for word in words[:-1] or words):
        return False
    per_second = len(words) > 1 and words[-1] in ("s", "sec", "second") and _COUNTED.fullmatch(words[-2])
    return bool(per_second) or any(word in _BANDWIDTHS for word in words)


def is_size(name: str) -> bool:
    """Whether a column looks like one of sizes: by its unit or its name."""
    return size_unit_in(name) is not None or letters(name) in _SIZES


def is_duration(name: str) -> bool:
    """Whether a column looks like one of durations: by its unit or its name."""
    return unit_in(name) is not None or (stem(name) in _DURATIONS and not is_rate(name))


def preferred(names: list[str]) -> str | None:
    """The mean among several columns of durations, else the only one; None if neither tells which."""
    known = {name.replace(" ", ""): name for name in names}
    means = [known[name] for name in _MEAN_COLUMNS if name in known][:1]
    means = means or [name for name in names if {"avg", "mean", "average"} & set(re.findall("[a-z]+", name.lower()))]
    return means[0] if len(means) == 1 else names[0] if len(names) == 1 else None


def column_named(name: str, columns: list[str]) -> str:
    """The column with that name, else the only one that has it before its unit: t_max of t_max[usec]."""
    matches = [column for column in columns if name and stem(column) == letters(name)]
    return name if name in columns or len(matches) != 1 else matches[0]


def stem(name: str) -> str:
    """The letters of a name before its unit."""
    text = name.strip()
    rate = _RATE.search(text)
    if rate is not None:
        text = text[: rate.start()]
    return letters(re.sub(r"[(\[].*|[_ .](s|ms|us|µs|μs|ns|usec|msec|sec|nsec)$", "", text.lower()))


def letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())

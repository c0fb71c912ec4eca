"""What the name of a column says: a size, a duration and its unit, or a rate."""

import re

#: Seconds of each unit, by the names that --unit takes.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SPELLED = {"sec": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "µs": "us", "μs": "us", "nsec": "ns"}
_SIZES = ("size", "bytes", "msgsize", "messagesize", "msgbytes", "messagebytes", "nbytes", "sizebytes")
_DURATIONS = ("duration", "time", "latency", "elapsed", "seconds", "t")


def unit_in(name: str) -> str | None:
    """The unit of time that a name tells: us of "Avg Latency(us)", t[usec], time_us; None where it tells none."""
    text = name.strip().lower()
    bracketed = re.search(r"[(\[]\s*([a-zµμ]+)\s*[)\]]\s*$", text)
    suffixed = re.search(r"[_ .]([a-zµμ]+)$", text)
    for match in (bracketed, suffixed):
        if match and (unit := _SPELLED.get(match[1], match[1])) in SECONDS:
            return unit
    return "s" if text == "seconds" else None


def is_rate(name: str) -> bool:
    """Whether a column of a benchmark holds 10^6 bytes a second."""
    return bool(re.search(r"m(ega)?b(ytes?)?/s(ec)?", name.lower()))


def is_size(name: str) -> bool:
    """Whether the name is one of those that sizes in bytes have."""
    return _letters(name) in _SIZES


def is_duration(name: str) -> bool:
    """Whether a column looks like one of durations: by its unit or its name."""
    stem = re.sub(r"[(\[].*|[_ .](s|ms|us|ns|usec|msec|sec)$", "", name.strip().lower())
    return unit_in(name) is not None or _letters(stem) in _DURATIONS


def preferred(names: list[str]) -> str | None:
    """Of several columns of durations the mean, else the only one; None where neither tells which."""
    means = [name for name in names if re.search(r"avg|mean|average", name.lower())]
    return means[0] if len(means) == 1 else names[0] if len(names) == 1 else None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())

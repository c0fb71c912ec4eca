"""Reasons for distrust that the monitoring of one node shows: heat, other users, the clock, throttling.

All limits were fixed before any campaign was looked at, and none depends on the durations measured.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite, nan
from statistics import median

from lepaute.measure.experiment.verdict import Kind, Verdict, when

#: Samples of one node: column -> values, all of one length; a pandas DataFrame is one as well.
Samples = Mapping[str, Sequence[object]]

#: Processors of servers lower their clock between 95 and 105 degrees; sensors and sampling need some distance.
HOT_CELSIUS = 90.0
#: Above the median of the node: a load that comes and goes moves a package by some 5 K; 15 K is a fan or the room.
RISE_KELVIN = 15.0
#: Of one core, as the median of Linux's own housekeeping is well below 1 %: a person or a daemon of theirs was active.
OTHER_USERS_SHARE = 0.05
#: A message takes microseconds and a kernel milliseconds: a jump of 10 ms spoils dates that are compared across nodes.
CLOCK_STEP_S = 0.010
#: The kernel slews the clock by 500 microseconds a second at most (adjtimex(2)); that is no step.
SLEW = 500e-6
#: Clocks move by some per cent with the number of active cores and the instructions; a tenth is more than that.
THROTTLED = 0.9


def monitored(node: str, samples: Samples) -> Iterator[Verdict]:
    """Verdicts from the samples of one node, in the order in which they were taken; missing columns say nothing.

    Columns: time_s (needed), monotonic_s, temperature_<label>_celsius, other_users_share (cores), other_users_names,
    frequency_core<N>_hz. A value that is no finite number says nothing either. Samples in a row that are over a limit
    make one verdict; a single good one in between does not end it. A share and a clock are of the time since the sample
    before, so their verdicts begin there.
    """
    times = numbers(samples, "time_s")
    yield from _hot(node, samples, times)
    yield from _others(node, samples, times)
    yield from _clock(node, samples, times)
    yield from _throttled(node, samples, times)


def columns(samples: Samples, start: str, end: str) -> list[str]:
    """Names of the columns that start and end so, in alphabetical order."""
    return sorted(str(name) for name in samples if str(name).startswith(start) and str(name).endswith(end))


def numbers(samples: Samples, name: str) -> list[float]:
    """A column as floats; what is no number is NaN."""
    return [_number(value) for value in samples[name]]


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return nan


def _hot(node: str, samples: Samples, times: Sequence[float]) -> Iterator[Verdict]:
    for name in columns(samples, "temperature_", "_celsius"):
        label, celsius = name.removeprefix("temperature_").removesuffix("_celsius"), numbers(samples, name)
        known = [value for value in celsius if isfinite(value)]
        if not known:
            continue
        usual = median(known)
        over = [value >= HOT_CELSIUS or value > usual + RISE_KELVIN for value in celsius]

        def words(
            first: int, last: int, label: str = label, celsius: list[float] = celsius, usual: float = usual
        ) -> str:
            top = max(value for value in celsius[first : last + 1] if isfinite(value))
            return f"temperature {label} reached {top:.0f} °C (usually {usual:.0f} °C)"

        yield from _verdicts(node, "temperature", times, over, words, since_before=False)


def _others(node: str, samples: Samples, times: Sequence[float]) -> Iterator[Verdict]:
    if "other_users_share" not in samples:
        return
    shares = numbers(samples, "other_users_share")
    names = list(samples["other_users_names"]) if "other_users_names" in samples else [""] * len(shares)
    over = [share > OTHER_USERS_SHARE for share in shares]

    def words(first: int, last: int) -> str:
        chosen = [i for i in range(first, last + 1) if over[i]]
        who = sorted({name for i in chosen for name in _names(names[i])})
        most = max(shares[i] for i in chosen)
        return f"{', '.join(who) or 'another user'} used up to {most:.2g} core{'s' * (most > 1)}"

    yield from _verdicts(node, "other user", times, over, words, since_before=True)


def _names(text: object) -> Iterable[str]:
    return str(text).replace(",", " ").split() if isinstance(text, str) else ()


def _clock(node: str, samples: Samples, times: Sequence[float]) -> Iterator[Verdict]:
    if "monotonic_s" not in samples:
        return
    dates = list(zip(times, numbers(samples, "monotonic_s"), strict=True))
    for (wall, steady), (later_wall, later_steady) in pairwise(d for d in dates if isfinite(d[0] + d[1])):
        elapsed = later_steady - steady
        jump = (later_wall - wall) - elapsed
        if abs(jump) > CLOCK_STEP_S + SLEW * abs(elapsed):
            start, end = min(wall, later_wall), max(wall, later_wall)
            way = "forward" if jump > 0 else "back"
            message = f"{node}: the clock was set {way} by {abs(jump):.3g} s {when(start, end)}"
            yield Verdict(node, "clock step", start, end, message)


def _throttled(node: str, samples: Samples, times: Sequence[float]) -> Iterator[Verdict]:
    """Slower than its own usual clock and hot at the same time: an idle core is slow as well, but cold."""
    frequencies = [numbers(samples, name) for name in columns(samples, "frequency_core", "_hz")]
    temperatures = [numbers(samples, name) for name in columns(samples, "temperature_", "_celsius")]
    if not frequencies or not temperatures:
        return
    fastest = [max((hz for hz in row if isfinite(hz)), default=nan) for row in zip(*frequencies, strict=True)]
    hottest = [max((t for t in row if isfinite(t)), default=nan) for row in zip(*temperatures, strict=True)]
    known = [hz for hz in fastest if isfinite(hz)]
    if not known:
        return
    usual = median(known)
    over = [hz < THROTTLED * usual and t >= HOT_CELSIUS for hz, t in zip(fastest, hottest, strict=True)]

    def words(first: int, last: int) -> str:
        hz = min(fastest[i] for i in range(first, last + 1) if over[i])
        return f"the fastest core was down to {hz / 1e9:.2f} GHz (usually {usual / 1e9:.2f} GHz) while hot"

    yield from _verdicts(node, "throttling", times, over, words, since_before=False)


def _verdicts(
    node: str,
    kind: Kind,
    times: Sequence[float],
    over: Sequence[bool],
    words: Callable[[int, int], str],
    *,
    since_before: bool,
) -> Iterator[Verdict]:
    places = [i for i, bad in enumerate(over) if bad and isfinite(times[i])]
    for first, last in _runs(places):
        begin = first - 1 if since_before and first and isfinite(times[first - 1]) else first
        start, end = min(times[begin], times[last]), max(times[begin], times[last])
        yield Verdict(node, kind, start, end, f"{node}: {words(first, last)} {when(start, end)}")


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of increasing places with gaps of one at most."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and place - runs[-1][1] <= 2:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs

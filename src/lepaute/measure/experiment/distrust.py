"""When a machine was not the one it was before: what a campaign's reference kernel and monitoring say, node by node."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite, nan
from statistics import median
from typing import Literal

from lepaute.errors import InputError
from lepaute.kit.text import p_text, significant
from lepaute.stats.disturbance import CPU, GRANULARITY_S, MAX_STEAL_SHARE, OTHER_USERS_CORES, SENTINELS, STEAL
from lepaute.stats.steps import Step, drift, find_steps

Kind = Literal["step", "drift", "temperature", "other user", "stolen time", "clock step", "throttling"]
#: Who saw it, of the witnesses of `stats.disturbance`, where the kind is not a sensor or clock.
WITNESS: Mapping[Kind, str] = {"step": SENTINELS, "drift": SENTINELS, "other user": CPU, "stolen time": STEAL}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reason to distrust, such as "node3: the reference kernel became 6.2 % slower at 14:02:31 UTC (p = 0.0005)".

    start_s, end_s : of the time in which it was so, seconds since the epoch, both included; for a step, the dates of
                     the last value before and of the first value after it
    """

    node: str
    kind: Kind
    start_s: float
    end_s: float
    message: str


def mark(rows_time_s: Sequence[float], rows_node: Sequence[str], verdicts: Iterable[Verdict]) -> list[str]:
    """The text of each observation's column `machine_changed`: "" if it is to be trusted.

    rows_time_s : date of each row, seconds since the epoch; rows_node : its node; both of one length
    A row within a verdict's time gets its kind. A step changes all that comes after it: the stretches between the
    steps of a node are numbered, and every row after the first step gets "segment 2 of 3", a row between the two dates
    of a step gets "step". Several texts are joined by "; ", in alphabetical order, so that rows with the same troubles
    are equal.
    Raises InputError if the lengths differ.
    """
    if len(rows_time_s) != len(rows_node):
        raise InputError(
            f"there are {len(rows_time_s)} dates and {len(rows_node)} nodes of rows; give one of each a row"
        )
    by_node: dict[str, list[Verdict]] = {}
    for doubt in verdicts:
        by_node.setdefault(doubt.node, []).append(doubt)
    steps = {node: sorted(v.end_s for v in mine if v.kind == "step") for node, mine in by_node.items()}
    # a text depends on nothing but the dates that a row lies between, and there are many more rows than dates
    edges = {node: sorted({date for v in mine for date in (v.start_s, v.end_s)}) for node, mine in by_node.items()}
    known: dict[tuple[str, int, int], str] = {}
    texts = []
    for time_s, node in zip(rows_time_s, rows_node, strict=True):
        if node not in edges:
            texts.append("")
            continue
        place = (node, bisect_left(edges[node], time_s), bisect_right(edges[node], time_s))
        if place not in known:
            known[place] = _text(time_s, by_node[node], steps[node])
        texts.append(known[place])
    return texts


def _text(time_s: float, verdicts: Sequence[Verdict], step_ends_s: Sequence[float]) -> str:
    texts: set[str] = set()
    for doubt in verdicts:
        # the first value after a step is of the new level
        last = time_s < doubt.end_s if doubt.kind == "step" else time_s <= doubt.end_s
        first = time_s > doubt.start_s if doubt.kind == "step" else time_s >= doubt.start_s
        if first and last:
            texts.add(doubt.kind)
    segment = bisect_right(step_ends_s, time_s)
    if segment:
        texts.add(f"segment {segment + 1} of {len(step_ends_s) + 1}")
    return "; ".join(sorted(texts))


def clock(time_s: float) -> str:
    """The time of day in UTC, to the second: "14:02:31"."""
    return f"{datetime.fromtimestamp(time_s, UTC):%H:%M:%S}"


def when(start_s: float, end_s: float) -> str:
    """ "at 14:02:31 UTC", or "from 14:02:31 to 14:05:00 UTC" where these differ."""
    first, last = clock(start_s), clock(end_s)
    return f"at {first} UTC" if first == last else f"from {first} to {last} UTC"


#: Samples of one node: column -> values, all of one length; a pandas DataFrame is one as well.
Samples = Mapping[str, Sequence[object]]

#: Processors of servers lower their clock between 95 and 105 degrees; sensors and sampling need some distance.
HOT_CELSIUS = 90.0
#: Above what nine tenths of the node's samples stay below: the experiment's own load warms a package by 30 K, but does
#: so again and again. 10 K more than that is a fan, the room, or a neighbour.
RISE_KELVIN = 10.0
USUAL_SHARE = 0.9
#: A message takes microseconds and a kernel milliseconds: a jump of 10 ms spoils dates that are compared across nodes.
CLOCK_STEP_S = 0.010
#: The kernel slews the clock by 500 microseconds a second at most (adjtimex(2)); that is no step.
SLEW = 500e-6
#: Clocks move by some per cent with the number of active cores and the instructions; a tenth is more than that.
THROTTLED = 0.9


def monitored(node: str, samples: Samples) -> Iterator[Verdict]:
    """Verdicts from the samples of one node, in the order in which they were taken; missing columns say nothing.

    Columns: time_s (needed), monotonic_s, temperature_<label>_celsius, other_users_cpu_s (a counter), other_users (who:
    "1000:python 0.53; 0:sshd 0.02"), steal_share (since the sample before), frequency_core<N>_hz. A value that is no
    finite number says nothing. Samples in a row that are over a limit make one verdict; a single good one in between
    does not end it. What is of the time since the sample before gives a verdict that begins there.
    """
    times = numbers(samples, "time_s")
    for look in (_hot, _others, _stolen, _clock, _throttled):
        yield from look(node, samples, times)


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
        usual = sorted(known)[int(USUAL_SHARE * (len(known) - 1))]
        over = [value >= HOT_CELSIUS or value > usual + RISE_KELVIN for value in celsius]

        def words(
            first: int, last: int, label: str = label, celsius: list[float] = celsius, usual: float = usual
        ) -> str:
            top = max(value for value in celsius[first : last + 1] if isfinite(value))
            return f"temperature {label} reached {top:.0f} °C (usually up to {usual:.0f} °C)"

        yield from _verdicts(node, "temperature", times, over, words, since_before=False)


def _others(node: str, samples: Samples, times: Sequence[float]) -> Iterator[Verdict]:
    if "other_users_cpu_s" not in samples:
        return
    used = numbers(samples, "other_users_cpu_s")
    names = list(samples["other_users"]) if "other_users" in samples else [""] * len(used)
    cpu_s = [0.0, *(after - before for before, after in pairwise(used))]
    passed_s = _passed(samples, times)
    over = [cpu > OTHER_USERS_CORES * wall + GRANULARITY_S for cpu, wall in zip(cpu_s, passed_s, strict=True)]

    def words(first: int, last: int) -> str:
        chosen = [i for i in range(first, last + 1) if over[i]]
        who = sorted({name for i in chosen for name in _names(names[i])})
        most = max(cpu_s[i] / passed_s[i] if passed_s[i] > 0 else 0.0 for i in chosen)
        return f"{', '.join(who) or 'another user'} used up to {significant(most, 2)} core{'s' * (most > 1)}"

    yield from _verdicts(node, "other user", times, over, words, since_before=True)


def _passed(samples: Samples, times: Sequence[float]) -> list[float]:
    """Seconds since the sample before, by the steady clock where there is one: one that is set makes no core busy."""
    steady = numbers(samples, "monotonic_s") if "monotonic_s" in samples else times
    return [0.0, *(after - before for before, after in pairwise(steady))]


def _stolen(node: str, samples: Samples, times: Sequence[float]) -> Iterator[Verdict]:
    if "steal_share" not in samples:
        return
    share, passed_s = numbers(samples, "steal_share"), _passed(samples, times)
    # Samples do not say of how many cores: the allowance for ticks is that of one, the largest.
    over = [part * wall > MAX_STEAL_SHARE * wall + GRANULARITY_S for part, wall in zip(share, passed_s, strict=True)]

    def words(first: int, last: int) -> str:
        most = max(share[i] for i in range(first, last + 1) if over[i])
        return f"the hypervisor took up to {significant(100 * most, 2)} % of the CPU time"

    yield from _verdicts(node, "stolen time", times, over, words, since_before=True)


def _names(text: object) -> Iterable[str]:
    """ "1000:python" of "1000:python 0.53; 0:sshd 0.02", and "0:sshd"."""
    return (entry.rpartition(" ")[0] for entry in text.split("; ") if entry) if isinstance(text, str) else ()


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
            message = f"{node}: the clock was set {way} by {significant(abs(jump))} s {when(start, end)}"
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
    for first, last in _runs([i for i, bad in enumerate(over) if bad and isfinite(times[i])]):
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


#: Of all nodes together, half for steps and half for drifts: one quiet campaign in a hundred is distrusted.
FALSE_ALARMS = 0.01
#: Smaller changes of the reference kernel are no news: day effects of the same order are in every interval we publish.
MIN_SIZE = 0.01
#: Monitoring on either side of a step that goes into its message.
AROUND_S = 60.0
#: A sensor is named in a step's message when it moved by as much: the noise of a package sensor is about 1 K.
WORTH_KELVIN = 3.0


def verdicts(
    reference: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    monitoring: Mapping[str, Samples],
    *,
    false_alarms: float = FALSE_ALARMS,
    least_size: float = MIN_SIZE,
) -> list[Verdict]:
    """Reasons to distrust the observations of each node; by date, then node and kind.

    reference    : node -> (dates in s since the epoch, durations > 0 of the reference kernel in any one unit)
    monitoring   : node -> its samples, column -> values, or a DataFrame (columns: see `monitored`); nodes may lack
    false_alarms : chance that steps or drifts are seen anywhere although nothing changed; shared out among the nodes
    Steps come from the reference kernel (`find_steps`), a drift from what lies between two steps (`drift`); the other
    kinds come from the monitoring. A run of the reference kernel that failed, a date or duration that is no finite
    number or a duration that is not above 0, is left out: campaigns are judged while they end, whatever happened to
    them. With fewer than 8 values left, and for 1 % of alarms not much before 16, a node has no step and no drift.
    Raises InputError if a node has not as many dates as durations.
    """
    doubts: list[Verdict] = []
    share = false_alarms / 2 / max(1, len(reference))
    for node, (dates, durations) in reference.items():
        doubts += _changes(node, dates, durations, monitoring.get(node, {}), share, least_size)
    for node, samples in monitoring.items():
        if "time_s" in samples:
            doubts += monitored(node, samples)
    return sorted(doubts, key=lambda verdict: (verdict.start_s, verdict.node, verdict.kind, verdict.end_s))


def _changes(
    node: str, dates: Sequence[float], durations: Sequence[float], samples: Samples, share: float, least_size: float
) -> list[Verdict]:
    if len(dates) != len(durations):
        raise InputError(f"{node} has {len(dates)} dates and {len(durations)} durations of the reference kernel")
    runs = [
        (float(t), float(d)) for t, d in zip(dates, durations, strict=True) if isfinite(t) and isfinite(d) and d > 0
    ]
    steps = find_steps([t for t, _ in runs], [d for _, d in runs], false_alarms=share, least_size=least_size).steps
    doubts = [_step(node, step, samples) for step in steps]
    edges = [step.before_s for step in steps]
    for start, end in zip([float("-inf"), *edges], [*edges, float("inf")], strict=True):
        inside = [(t, d) for t, d in runs if start <= t < end]
        trend = drift(
            [t for t, _ in inside], [d for _, d in inside], false_alarms=share / (len(steps) + 1), least_size=least_size
        )
        if trend.significant:
            first, last = min(t for t, _ in inside), max(t for t, _ in inside)
            message = f"{node}: from {clock(first)} to {clock(last)} UTC the reference kernel {trend}"
            doubts.append(Verdict(node, "drift", first, last, message))
    return doubts


def _step(node: str, step: Step, samples: Samples) -> Verdict:
    way = "slower" if step.relative_size > 0 else "faster"
    before, after = clock(step.after_s), clock(step.before_s)
    date = f"at {after}" if before == after else f"between {before} and {after}"
    size = f"{100 * abs(step.relative_size):.1f} % {way}"
    chance = p_text(step.p_value)
    message = f"{node}: the reference kernel became {size} {date} UTC ({chance}){_warmer(step, samples)}"
    return Verdict(node, "step", step.after_s, step.before_s, message)


def _warmer(step: Step, samples: Samples) -> str:
    """How much the temperature that moved most moved across the step; "" if none did, or none was sampled."""
    if "time_s" not in samples:
        return ""
    times = numbers(samples, "time_s")
    moved: list[tuple[float, str]] = []
    for name in columns(samples, "temperature_", "_celsius"):
        celsius = [(t, c) for t, c in zip(times, numbers(samples, name), strict=True) if isfinite(c)]
        before = [c for t, c in celsius if step.after_s - AROUND_S <= t <= step.after_s]
        after = [c for t, c in celsius if step.before_s <= t <= step.before_s + AROUND_S]
        if before and after:
            label = name.removeprefix("temperature_").removesuffix("_celsius")
            moved.append((median(after) - median(before), label))
    change, label = max(moved, key=lambda entry: abs(entry[0]), default=(0.0, ""))
    return f", temperature {label} {change:+.0f} K meanwhile" if abs(change) >= WORTH_KELVIN else ""

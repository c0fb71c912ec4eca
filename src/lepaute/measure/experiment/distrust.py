"""When a machine was not the one it was before: what a campaign's reference kernel and monitoring say, node by node."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import median

from lepaute.errors import InputError
from lepaute.measure.experiment.monitored import Samples, columns, monitored, numbers
from lepaute.measure.experiment.verdict import Verdict, clock, mark
from lepaute.stats.steps import Step, drift, find_steps

__all__ = ["FALSE_ALARMS", "Verdict", "mark", "verdicts"]

#: Of all nodes together: a campaign on a quiet cluster is distrusted once in a hundred times, whatever its size. Half
#: of it is for steps, half for drifts.
FALSE_ALARMS = 0.01
#: Smaller changes of the reference kernel are no news: day effects of the same order are in every interval we publish.
LEAST_SIZE = 0.01
#: Monitoring on either side of a step that goes into its message.
AROUND_S = 60.0
#: A sensor is named in a step's message when it moved by as much: the noise of a package sensor is about 1 K.
WORTH_KELVIN = 3.0


def verdicts(
    reference: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    monitoring: Mapping[str, Samples],
    *,
    false_alarms: float = FALSE_ALARMS,
    least_size: float = LEAST_SIZE,
) -> list[Verdict]:
    """Reasons to distrust the observations of each node; by date, then node and kind.

    reference    : node -> (dates in s since the epoch, durations > 0 of the reference kernel in any one unit)
    monitoring   : node -> its samples, column -> values, or a DataFrame (columns: see `monitored`); nodes may lack
    false_alarms : chance that steps or drifts are seen anywhere although nothing changed; shared out among the nodes
    Steps come from the reference kernel (`find_steps`), a drift from what lies between two steps (`drift`); the other
    kinds come from the monitoring. A run of the reference kernel that failed, a date or duration that is no finite
    number or a duration that is not above 0, is left out: campaigns are judged while they end, whatever happened to
    them. With fewer than 8 values left, and for 1 % of alarms not much before 16, a node has no step and no drift.
    Raises InputError where a node has not as many dates as durations.
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
    message = f"{node}: the reference kernel became {size} {date} UTC ({_chance(step.p_value)}){_warmer(step, samples)}"
    return Verdict(node, "step", step.after_s, step.before_s, message)


def _chance(p: float) -> str:
    return "p < 0.000001" if p < 1e-6 else f"p = {p:.1g}"


def _warmer(step: Step, samples: Samples) -> str:
    """How much the temperature that moved most moved across the step; "" where none did, or none was sampled."""
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

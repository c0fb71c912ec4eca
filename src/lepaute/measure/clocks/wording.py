"""What a measurement of clocks says: the answer, what it rests on, its table."""

from itertools import groupby

from lepaute.kit.node_sets import fold_node_set
from lepaute.kit.text import (
    counted,
    exact_seconds,
    in_common_unit,
    percent,
    ranks_text,
    seconds,
    time_unit,
    with_interval,
)
from lepaute.measure.clocks.comparison import Choice, Found


def answer(found: Found) -> str:
    """Which method to take for how long, how far off its clocks are, and what it takes."""
    parts: list[str] = []
    for method, group in groupby(found.choices, key=lambda one: one.method):
        choices = list(group)
        off = found.error(method, choices[-1].length_s)
        parts.append(
            f"{method} for {_lengths(choices, first=not parts)}: clocks off by "
            f"{_time(off.error_s, off.low_s, off.high_s)}, takes {seconds(found.cost(method).duration_s)}"
        )
    return f"Take {'; '.join(parts)}"


def length_text(length_s: float) -> str:
    return "at once" if length_s == 0 else exact_seconds(length_s)


def _lengths(choices: list[Choice], *, first: bool) -> str:
    last_s = choices[-1].length_s
    if last_s == 0:
        return "what follows at once"
    return f"{'measurements of ' * first}up to {exact_seconds(last_s)}"


def _time(time_s: float, low_s: float | None, high_s: float | None) -> str:
    """With its interval in one unit: 1.20 µs (95 %: 0.98 to 1.44 µs)."""
    unit, factor = time_unit(time_s)
    low, high = (None if end is None else factor * end for end in (low_s, high_s))
    return with_interval(factor * time_s, low, high, unit)


def fact_lines(found: Found) -> list[tuple[str, str]]:
    """Basis of the answer: a word and its text each."""
    about, asked = found.about, found.about.asked
    if about.simulated:
        drift = f"clocks drifting by up to {asked.drift_ppm:g} ppm"
        drift += f", which wanders by {asked.wander_ppm:g} ppm in a second" if asked.wander_ppm else ""
        where = f"{ranks_text(about.ranks)} simulated on {about.simulated}, {drift}"
    else:
        nodes = f"on {fold_node_set(about.nodes)}" if len(about.nodes) > 1 else "of this machine"
        made = f", clocks made to drift by up to {asked.drift_ppm:g} ppm" if asked.drift_ppm is not None else ""
        where = f"{ranks_text(about.ranks)} {nodes}, {about.library}, {asked.clock}{made}"
    lines = [("from", f"{counted(found.mpiruns, 'block' if about.simulated else 'mpirun')}, {where}")]
    if found.known:
        one = "made from one clock" if asked.drift_ppm is not None else "one clock"
        missed = (
            ""
            if (by := found.reference) is None
            else (
                f"; messages miss it by {seconds(by.median_s)} in the median, {seconds(by.largest_s)} at most, "
                f"and {percent(by.held)} of them by less than half a round trip"
            )
        )
        lines.append(("error", f"known, since all ranks' clocks are {one}{missed}"))
    else:
        lines.append(("error", f"by messages, which tell it to within {seconds(found.trip_s)} (half a round trip)"))
    lines += [("open", line) for line in open_lines(found)]
    return lines


def open_lines(found: Found) -> list[str]:
    """For each length, which methods are not told apart from the one with the least error."""
    lines = []
    for methods, group in groupby(found.choices, key=lambda one: (one.least, one.open)):
        least, others = methods
        if others:
            lengths = " and ".join(length_text(one.length_s) for one in group)
            lines.append(f"{lengths}: {', '.join(others)} not told apart from {least}, which looks best")
    return lines


def methods_table(found: Found) -> tuple[list[str], list[list[object]]]:
    """Titles, and a row a method, the cheapest first: what it takes, its errors at each length in one unit, and at
    which it is on the front."""
    titles = ["method", "takes", *(f"off by, {length_text(length_s)}" for length_s in found.lengths_s), "front at"]
    rows = [
        [
            method,
            found.cost(method).duration_s,
            *(found.error(method, length_s).error_s for length_s in found.lengths_s),
            ", ".join(length_text(choice.length_s) for choice in found.choices if method in choice.front),
        ]
        for method in found.methods
    ]
    return in_common_unit(titles, rows, (1,), range(2, len(titles) - 1))


def detail_lines(found: Found) -> list[str]:
    """Every error and cost with its interval, and every pair with the method that looks best."""
    lines = [f"{cost.method}: takes {_time(cost.duration_s, cost.low_s, cost.high_s)}" for cost in found.costs]
    lines += [
        f"{error.method}, up to {exact_seconds(error.length_s)}: off by "
        f"{_time(error.error_s, error.low_s, error.high_s)}, {seconds(error.largest_s)} at most"
        for error in found.errors
    ]
    for pair in found.pairs:
        ratio = with_interval(pair.ratio, pair.low, pair.high, basis="")
        lines.append(f"up to {exact_seconds(pair.length_s)}: error of {pair.method} over that of {pair.other} {ratio}")
    return lines

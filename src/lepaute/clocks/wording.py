"""What a measurement of clocks says: the answer, what it rests on, its table."""

from itertools import groupby

from lepaute.clocks.comparison import Choice, Found
from lepaute.kit.node_sets import fold_node_set
from lepaute.kit.text import counted, percent, ranks_text, seconds


def answer(found: Found) -> str:
    """Which method to take for how long, how far off its clocks are, and what it takes."""
    parts: list[str] = []
    for method, group in groupby(found.choices, key=lambda one: one.method):
        choices = list(group)
        off = found.error(method, choices[-1].length_s)
        parts.append(
            f"{method} for {_lengths(choices, first=not parts)}: clocks off by {seconds(off.error_s)}"
            f"{_interval(off.low_s, off.high_s)}, takes {seconds(found.cost(method).duration_s)}"
        )
    return f"Take {'; '.join(parts)}"


def length_text(length_s: float) -> str:
    return "at once" if length_s == 0 else seconds(length_s)


def _lengths(choices: list[Choice], *, first: bool) -> str:
    last_s = choices[-1].length_s
    if last_s == 0:
        return "what follows at once"
    return f"measurements of up to {seconds(last_s)}" if first else f"up to {seconds(last_s)}"


def _interval(low_s: float | None, high_s: float | None) -> str:
    return "" if low_s is None or high_s is None else f" (95 %: {seconds(low_s)} to {seconds(high_s)})"


def fact_lines(found: Found) -> list[tuple[str, str]]:
    """What the answer rests on: a word and its text each."""
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


def titles(found: Found) -> list[str]:
    """Of the table of methods."""
    return ["method", "takes", *(f"off by, {length_text(each)}" for each in found.lengths_s), "front at"]


def table_rows(found: Found) -> list[list[str]]:
    """A row a method, the cheapest first; with errors at each length, and at which it is on the front."""
    return [
        [
            method,
            seconds(found.cost(method).duration_s),
            *(seconds(found.error(method, each).error_s) for each in found.lengths_s),
            ", ".join(length_text(one.length_s) for one in found.choices if method in one.front),
        ]
        for method in found.methods
    ]


def detail_lines(found: Found) -> list[str]:
    """Every error and cost with its interval, and every pair with the method that looks best."""
    lines = [f"{one.method}: takes {seconds(one.duration_s)}{_interval(one.low_s, one.high_s)}" for one in found.costs]
    lines += [
        f"{one.method}, up to {seconds(one.length_s)}: off by {seconds(one.error_s)}"
        f"{_interval(one.low_s, one.high_s)}, {seconds(one.largest_s)} at most"
        for one in found.errors
    ]
    for pair in found.pairs:
        ends = "" if pair.low is None or pair.high is None else f" ({pair.low:.3g} to {pair.high:.3g})"
        lines.append(
            f"up to {seconds(pair.length_s)}: error of {pair.method} over that of {pair.other} {pair.ratio:.3g}{ends}"
        )
    return lines

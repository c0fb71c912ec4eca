"""What a measurement of clocks says: the answer, what it rests on, its table; the picture, and the page with it."""

import shlex
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lepaute.kit.later import ticker
from lepaute.kit.node_sets import fold_node_set
from lepaute.kit.picture import SERIES, SOFT, bare, entitle, measured_origin, new_figure, origin, write_picture
from lepaute.kit.report.page import figure_svg, records_table, render
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
from lepaute.measure.clocks.request import METHODS
from lepaute.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Errors below are drawn there.
_MIN_S = 1e-9
_MARKERS = ("o", "s", "^", "v", "D", "P")


def write_plot(found: Found, path: Path) -> None:
    """Writes the picture to the files of `picture_files`."""
    figure = _figure(found)
    entitle(figure, answer(found), _footer_text(found))
    write_picture(figure, path)


def _footer_text(found: Found) -> str:
    source = f"{found.file} ({found.id[:12]})"
    if not found.about.simulated:
        return measured_origin(f"{source} · {found.mpiruns} mpiruns · 95 % intervals of medians")
    made = origin(found.about.simulated, found.about.platform_sha256, found.seed, __version__)
    return f"{source} · {found.mpiruns} blocks · 95 % intervals of medians · {made}"


def _figure(found: Found) -> "Figure":
    """Error against time after the synchronisation, and against what it takes, at once and for the longest length."""
    figure = new_figure((9.2, 4.4), for_file=True)
    left, right = figure.subplots(1, 2)
    _draw_over_time(left, found)
    _draw_fronts(right, found)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _style(method: str) -> dict[str, Any]:
    place = METHODS.index(method) if method in METHODS else len(METHODS)
    return {"color": SERIES[place % len(SERIES)], "marker": _MARKERS[place % len(_MARKERS)]}


def _draw_over_time(axes: "Axes", found: Found) -> None:
    count = len(found.methods)
    width_s = max(found.lengths_s[-1], 1e-3)
    for number, method in enumerate(found.methods):
        errors = [found.error(method, each) for each in found.lengths_s]
        apart = 0.008 * width_s * (number - (count - 1) / 2)
        times = [error.length_s + apart for error in errors]
        style = _style(method)
        axes.plot(times, [max(error.error_s, _MIN_S) for error in errors], lw=1.2, ms=4.5, label=method, **style)
        for time_s, one in zip(times, errors, strict=True):
            if one.low_s is not None and one.high_s is not None:
                axes.vlines(time_s, max(one.low_s, _MIN_S), max(one.high_s, _MIN_S), color=style["color"], lw=1.2)
    axes.set_xlabel("up to so many seconds after the synchronisation", fontsize=9)
    axes.set_ylabel("largest error of a rank", fontsize=9)
    axes.set_xticks(found.lengths_s)
    axes.set_yscale("log")
    _times(axes.yaxis)
    _finish(axes, "Error of the clocks")


def _draw_fronts(axes: "Axes", found: Found) -> None:
    """Hollow marks: at once; filled ones: the longest length; a line through the methods of each front."""
    for choice, filled in {found.choices[0]: False, found.choices[-1]: True}.items():
        places = {
            method: (found.cost(method).duration_s, max(found.error(method, choice.length_s).error_s, _MIN_S))
            for method in found.methods
        }
        front = sorted(places[method] for method in choice.front)
        axes.plot(*zip(*front, strict=True), color=SOFT, lw=1.0, ls="-" if filled else "--", zorder=1)
        for method, (took_s, error_s) in places.items():
            style = _style(method)
            face = style["color"] if filled else "white"
            axes.plot([took_s], [error_s], ls="", ms=6, markerfacecolor=face, **style)
        axes.annotate(
            "at once" if choice.length_s == 0 else f"up to {_length_text(choice.length_s)}",
            front[0], textcoords="offset points", xytext=(4, 7), ha="left", fontsize=8, color=SOFT,
        )  # fmt: skip
    axes.set_xlabel("duration of a synchronisation", fontsize=9)
    axes.set_ylabel("largest error of a rank", fontsize=9)
    axes.margins(0.12)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _times(axes.xaxis)
    _times(axes.yaxis)
    _finish(axes, "Error against duration: the fronts")


def _times(axis: Any) -> None:
    """Ticks of a logarithmic axis of seconds at decades, each in its own unit."""
    axis.set_major_locator(ticker.LogLocator(numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: exact_seconds(value)))
    axis.set_minor_formatter(ticker.NullFormatter())


def _finish(axes: "Axes", title: str) -> None:
    axes.set_title(title, fontsize=9, loc="left", color=SOFT)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", lw=0.4, alpha=0.5)
    bare(axes)


def page(found: Found, command: str = "") -> str:
    """The page, which needs nothing else; all names in it are escaped."""
    sentence = answer(found)
    choices = [
        {
            "for measurements up to": _length_text(one.length_s),
            "take": one.method,
            "least error": one.least,
            "as good": ", ".join(one.as_good),
            "worse": ", ".join(one.worse),
            "not told apart": ", ".join(one.open),
        }
        for one in found.choices
    ]
    titles, rows = methods_table(found)
    caption = (
        "Left: the largest error of a rank up to a moment after the synchronisation, median over mpiruns with its 95 % "
        "interval. Right: the same against what a synchronisation takes, hollow marks at once, filled ones for the "
        "longest length; the lines join the methods than which no other is both better and cheaper."
    )
    # In large type: error and duration of what is taken at once and for the longest length
    figures = []
    for choice in dict.fromkeys((found.choices[0], found.choices[-1])):
        off, cost = found.error(choice.method, choice.length_s), found.cost(choice.method)
        length = "at once" if choice.length_s == 0 else f"up to {_length_text(choice.length_s)}"
        figures.append((seconds(off.error_s), f"largest error of a rank, {choice.method}, {length}"))
        figures.append((seconds(cost.duration_s), f"to synchronise by {choice.method}"))
    return render(
        "lepaute.measure.clocks",
        "clocks.html.j2",
        title="Clocks",
        answer=f"{sentence[:1].upper()}{sentence[1:]}",
        state="notable" if open_lines(found) or found.mpiruns < 2 else "fine",
        facts="; ".join(text for word, text in fact_lines(found) if word != "open"),
        beware=list(dict.fromkeys((*open_lines(found), *found.caveats))),
        figures=list(dict.fromkeys(figures)),
        picture={"svg": Markup(figure_svg(_figure(found), sentence)), "caption": caption},
        methods=records_table("Methods", [dict(zip(titles, row, strict=True)) for row in rows]),
        choices=records_table("What to take", choices),
        everything=detail_lines(found),
        margin=f"{100 * found.margin:g} %",
        enough=exact_seconds(found.enough_s),
        made_of=[(found.file, found.id[:12])],
        commands=[("This page is made by", command)] if command else (),
    )


def command_of(found: Found, archive: Path) -> str:
    """Command that makes a page of the archive again."""
    return shlex.join(
        ["lepaute", "clocks", str(archive), "--margin", f"{100 * found.margin:g}%", "--report", "clocks.html"]
    )


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


def _length_text(length_s: float) -> str:
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
            lengths = " and ".join(_length_text(one.length_s) for one in group)
            lines.append(f"{lengths}: {', '.join(others)} not told apart from {least}, which looks best")
    return lines


def methods_table(found: Found) -> tuple[list[str], list[list[object]]]:
    """Titles, and a row a method, the cheapest first: what it takes, its errors at each length; where it is best."""
    titles = ["method", "takes", *(f"off by, {_length_text(length_s)}" for length_s in found.lengths_s), "front at"]
    rows = [
        [
            method,
            found.cost(method).duration_s,
            *(found.error(method, length_s).error_s for length_s in found.lengths_s),
            ", ".join(_length_text(choice.length_s) for choice in found.choices if method in choice.front),
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

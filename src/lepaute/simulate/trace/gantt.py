"""The picture of a trace: a row a rank, time to the right, colours by what the time was spent on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.picture import entitle, new_figure, write_picture
from lepaute.kit.text import significant, time_unit
from lepaute.simulate.trace import colours
from lepaute.simulate.trace.breakdown import breakdown_of, finding_of, is_estimated, not_separated, split, with_own_code
from lepaute.simulate.trace.messages import match_messages
from lepaute.simulate.trace.report import foot, headline, node_name
from lepaute.simulate.trace.table import PHASE, Trace
from lepaute.simulate.trace.timeline import binned, evenly, step_starts

MAX_RANKS = 64
PIXELS = 2200  # columns of a strip
STRIP = 24  # rows of a strip
#: With more calls than this per rank, single ones are too narrow to be seen: the default window is then a part.
READABLE_CALLS = 1500
MAX_ARROWS = 250
#: More steps than this are too narrow, whatever they hold.
READABLE_STEPS = 20
#: Least distance of the numbers of two steps, as a share of the width.
STEP_NUMBER_WIDTH = 0.018


@dataclass(frozen=True, slots=True)
class Window:
    """Part to draw: these ranks, from low_s to high_s."""

    ranks: tuple[int, ...]
    low_s: float
    high_s: float


def plot_gantt(
    trace: Trace,
    path: Path,
    ranks: Sequence[int] | None = None,
    steps: tuple[int, int] | None = None,
    low_s: float | None = None,
    high_s: float | None = None,
) -> Window:
    """Writes a PNG and tells what it shows.

    ranks       : those to draw; by default all, or MAX_RANKS of them, evenly spread
    Where nothing of this is given and there are too many calls to be seen, the picture shows a few steps in the middle,
    below an overview of the whole.
    Raises InputError for ranks, steps or times of which the trace holds nothing.
    """
    chosen = _chosen_ranks(trace, ranks)
    calls = trace.where(numpy.isin(trace.rank, chosen))
    drawn = with_own_code(calls)
    whole = Window(tuple(chosen), *_extent(drawn))
    window = _window(calls, whole, steps, low_s, high_s)
    zoomed = window.high_s - window.low_s < 0.98 * (whole.high_s - whole.low_s)
    row_inch = min(0.55, max(0.16, 7.0 / len(chosen)))
    heights = [*([0.9] if zoomed else []), 0.5 + row_inch * len(chosen)]
    figure = new_figure((13.0, sum(heights) + 2.1), for_file=True)
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    seconds = colours.classes(drawn, split(drawn)[0])
    main = axes[-1]
    used = draw_strips(main, drawn, seconds, window)
    _draw_phases(main, drawn, window)
    _draw_arrows(main, drawn, window, row_inch)
    _label_ranks(main, trace, window)
    unit, factor = time_unit(whole.high_s, 10.0)  # of the overview and of the window alike
    # Dates of SMPI and of recordings of programs without a timed region are those of the program.
    is_region = not str(trace.metadata.get("engine", "")).startswith("SimGrid") and (
        not trace.is_recording or "time_s" in trace.metadata
    )
    start = "timed region" if is_region else "program"
    main.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 2.5, 5, 10]))
    digits = max(0, 2 - math.floor(math.log10((window.high_s - window.low_s) * factor)))
    main.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:.{digits}f}"))
    main.set_xlabel(f"time since the start of the {start}, {unit}", fontsize=9)
    _draw_steps(main, drawn, window)
    if zoomed:
        _draw_overview(axes[0], drawn, seconds, whole, window)
    draw_legend(figure, drawn, used)
    entitle(figure, _title(trace, chosen, window, unit, factor), foot(trace))
    write_picture(figure, path)
    return window


def _chosen_ranks(trace: Trace, ranks: Sequence[int] | None) -> list[int]:
    present = trace.ranks
    if not present:
        raise InputError("the trace is empty: nothing to draw")
    if ranks is not None:
        if missing := sorted(set(ranks) - set(present)):
            raise InputError(f"rank {missing[0]} is not in the trace; it holds {ranges_text(present)}")
        return sorted(set(ranks))
    return evenly(present, MAX_RANKS)


def _window(
    trace: Trace, whole: Window, steps: tuple[int, int] | None, low_s: float | None, high_s: float | None
) -> Window:
    if low_s is not None or high_s is not None:
        low, high = whole.low_s if low_s is None else low_s, whole.high_s if high_s is None else high_s
        if not low < high:
            raise InputError(f"the time range {low:g} s to {high:g} s is empty; --from must be less than --to")
        if not len(trace.between(low, high)):
            raise InputError(
                f"no calls between {low:g} s and {high:g} s; the trace spans {whole.low_s:.6g} s to "
                f"{whole.high_s:.6g} s"
            )
        return Window(whole.ranks, max(low, whole.low_s), min(high, whole.high_s))  # nothing is before, or after
    known = trace.step[trace.step >= 0]
    if steps is not None:
        chosen = trace.where((trace.step >= steps[0]) & (trace.step <= steps[1]))
        if not len(chosen):
            held = f"it holds {known.min()} to {known.max()}" if len(known) else "its calls have no step numbers"
            raise InputError(f"steps {steps[0]}:{steps[1]} are not in the trace; {held}")
        return Window(whole.ranks, *_extent(chosen))
    calls = len(trace) / len(whole.ranks)
    if calls <= READABLE_CALLS and len(set(known.tolist())) <= READABLE_STEPS:
        return whole
    if not len(known):
        length, middle = (whole.high_s - whole.low_s) * READABLE_CALLS / calls, (whole.low_s + whole.high_s) / 2
        return Window(whole.ranks, middle - length / 2, middle + length / 2)
    # A step is drawn whole, however many calls it has: it is what the program repeats.
    first, last = int(known.min()), int(known.max())
    count = max(2, min(8, round((last - first + 1) * READABLE_CALLS / calls)))
    middle = (first + last + 1 - count) // 2
    starts = step_starts(trace)
    inside = [starts[step] for step in range(middle, middle + count + 1) if step in starts]
    return Window(whole.ranks, min(inside), max(inside)) if len(inside) > 1 else whole


def _extent(trace: Trace) -> tuple[float, float]:
    low, high = float(trace.start_s.min()), float(trace.end_s.max())
    return low, high if high > low else low + 1e-9


def draw_strips(axis: Any, trace: Trace, seconds: NDArray[Any], window: Window) -> "set[int]":
    """Fills a strip a rank, each column of pixels by the shares of its time; returns the classes that can be seen."""
    palette = numpy.array([to_rgb(style.colour) for style in colours.CALLS])
    used: set[int] = set()
    for row, rank in enumerate(window.ranks):
        in_rank = trace.rank == rank
        shares = binned(trace.start_s[in_rank], seconds[in_rank], window.low_s, window.high_s, PIXELS)
        shares[:, colours.NOTHING] = 1.0 - shares[:, : colours.NOTHING].sum(axis=1).clip(0.0, 1.0)
        used.update(numpy.flatnonzero((shares > 0.5 / STRIP).any(axis=0)).tolist())
        edges = numpy.round(numpy.cumsum(shares, axis=1) * STRIP)
        levels = numpy.arange(STRIP) + 0.5
        axis.imshow(
            palette[(levels[:, None, None] > edges[None, :, :]).sum(axis=2).clip(0, colours.NOTHING)],
            extent=(window.low_s, window.high_s, row - 0.36, row + 0.28),
            aspect="auto",
            interpolation="nearest",
            origin="lower",
        )
    axis.set_xlim(window.low_s, window.high_s)
    axis.set_ylim(len(window.ranks) - 0.5, -0.62)
    return used


def draw_legend(figure: Any, trace: Trace, used: "set[int]") -> None:
    """What the colours of strips mean, of these classes."""
    names = colours.labels(is_estimated(trace), not_separated(trace))
    styles = [(colours.CALLS[place].colour, names[place]) for place in sorted(used)]
    handles = [Patch(facecolor=colour, edgecolor="#555555", lw=0.6, label=label) for colour, label in styles]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)


def _draw_phases(axis: Any, trace: Trace, window: Window) -> None:
    """A black line below the rank that factors a panel, with the panel's number where there is room."""
    facts = trace.where((trace.kind == PHASE) & trace.named(("pdfact",))).between(window.low_s, window.high_s)
    row_of = {rank: row for row, rank in enumerate(window.ranks)}
    for rank, start, end in zip(facts.rank.tolist(), facts.start_s.tolist(), facts.end_s.tolist(), strict=True):
        axis.plot([start, end], [row_of[rank] + 0.37] * 2, color="black", lw=2.2, solid_capstyle="butt", zorder=4)


def _draw_steps(axis: Any, trace: Trace, window: Window) -> None:
    starts = {step: at for step, at in step_starts(trace).items() if window.low_s <= at <= window.high_s}
    if not starts:
        return
    labelled: dict[int, float] = {}
    least = STEP_NUMBER_WIDTH * (window.high_s - window.low_s)
    for step, at in starts.items():
        axis.axvline(at, color="black", lw=0.6, ls=(0, (1, 2)), zorder=3)
        if not labelled or at - max(labelled.values()) >= least:
            labelled[step] = at
    top = axis.secondary_xaxis("top")
    top.set_xticks(list(labelled.values()), [str(step) for step in labelled], fontsize=8)
    top.tick_params(length=2, pad=1)
    top.set_xlabel("panel whose factorisation begins (black bar: while it lasts)", fontsize=9)


def _draw_arrows(axis: Any, trace: Trace, window: Window, row_inch: float) -> None:
    """Messages under way in the window, where there are few enough to be followed."""
    matches = match_messages(trace)  # of the whole trace: a window may begin between a send and its receive
    is_drawn = (matches.end >= 0) & (trace.start_s[matches.send] < window.high_s)
    is_drawn &= trace.end_s[matches.end] > window.low_s
    send, end = matches.send[is_drawn], matches.end[is_drawn]
    if len(send) > MAX_ARROWS or row_inch < 0.2:
        return
    row_of = {rank: row for row, rank in enumerate(window.ranks)}
    for one, other in zip(send.tolist(), end.tolist(), strict=True):
        arrow = axis.annotate(
            "",
            xy=(float(trace.end_s[other]), row_of[int(trace.rank[other])]),
            xytext=(float(trace.start_s[one]), row_of[int(trace.rank[one])]),
            arrowprops={"arrowstyle": "->", "color": "black", "lw": 0.5, "alpha": 0.6, "shrinkA": 0, "shrinkB": 0},
            annotation_clip=False,  # one that leaves the window is cut at its edge
            zorder=5,
        ).arrow_patch
        arrow.set_clip_box(axis.bbox)
        arrow.set_clip_on(True)


def _draw_overview(axis: Any, trace: Trace, seconds: NDArray[Any], whole: Window, window: Window) -> None:
    """All ranks together over the whole run: the shares of their time, and where the window is."""
    bins = 300
    shares = binned(trace.start_s, seconds, whole.low_s, whole.high_s, bins) / len(whole.ranks)
    at = whole.low_s + (numpy.arange(bins) + 0.5) * (whole.high_s - whole.low_s) / bins
    unit, factor = time_unit(whole.high_s, 10.0)
    palette = [style.colour for style in colours.CALLS]
    axis.stackplot(at * factor, shares[:, : colours.NOTHING].T, colors=palette, linewidth=0)
    axis.axvspan(window.low_s * factor, window.high_s * factor, color="none", ec="black", lw=1.4, zorder=5)
    axis.set_xlim(whole.low_s * factor, whole.high_s * factor)
    axis.set_ylim(0, 1)
    axis.set_yticks([0, 1], ["0", "100 %"], fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.set_title(f"all drawn ranks, whole trace, {unit}; the frame marks the window below", fontsize=9, loc="left")


def _label_ranks(axis: Any, trace: Trace, window: Window) -> None:
    rows = range(0, len(window.ranks), max(1, round(len(window.ranks) / 40)))
    nodes = trace.metadata.get("nodes")
    several = isinstance(nodes, list) and len(set(nodes)) > 1
    ranks = [window.ranks[row] for row in rows]
    hosts = (f" · {node_name(trace, nodes[rank])}" if several and nodes and rank < len(nodes) else "" for rank in ranks)
    axis.set_yticks(list(rows), [f"rank {rank}{host}" for rank, host in zip(ranks, hosts, strict=True)], fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _title(trace: Trace, chosen: Sequence[int], window: Window, unit: str, factor: float) -> str:
    total = int(trace.metadata.get("ranks") or len(trace.ranks))
    ranks = f"all {total} ranks" if len(chosen) == total else f"{len(chosen)} of {total} ranks"
    span = f"{significant(window.low_s * factor, 4)} to {significant(window.high_s * factor, 4)} {unit}"
    return f"{finding_of(breakdown_of(trace)).sentence}\n{headline(trace)}; drawn: {ranks}, {span}"


def ranges_text(numbers: Sequence[int]) -> str:
    """0-3,7 for 0, 1, 2, 3, 7."""
    parts = numpy.split(numpy.array(numbers), numpy.flatnonzero(numpy.diff(numbers) != 1) + 1)
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)

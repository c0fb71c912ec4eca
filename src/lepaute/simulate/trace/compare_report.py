"""A comparison of two traces as text, as a picture and as a page."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lepaute.kit.json_values import finite_json
from lepaute.kit.picture import BLUE, RED, RULE, SKY, SOFT, entitle, mark, measured_origin, new_figure, write_picture
from lepaute.kit.printable import UNLIMITED
from lepaute.kit.report.page import figure_svg, records_table, render
from lepaute.kit.tables import shown_table
from lepaute.kit.text import folded, in_common_unit, percent, ranks_text, seconds, significant, size_text, time_unit
from lepaute.simulate.trace.compare import PERCENTILES, ClassComparison, Comparison, Difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_DIFFERENCES = 8
_OF_SIZES = "sizes of calls, where the order is equal"
LEFT, RIGHT = BLUE, RED
TITLES = (
    *("call", "calls left", "right", "same sizes", "time left", "right", "bytes left", "right"),
    *("ratio", "5 %", "median", "95 %"),
)

#: The same for a page, each with what it is of.
HEADS = (
    *("call", "calls, left", "calls, right", "same sizes", "time, left", "time, right", "bytes, left", "bytes, right"),
    *("right / left", "5 % of calls", "median", "95 % of calls"),
)


def comparison_text(comparison: Comparison, left: str, right: str, width: int = UNLIMITED) -> str:
    """Equal parts and the first difference, then a table of the calls and their durations."""
    lines = [
        comparison_sentence(comparison),
        f"left:  {left}, {seconds(comparison.time_s[0])}",
        f"right: {right}, {seconds(comparison.time_s[1])}",
        f"{ranks_text(len(comparison.ranks))} in common",
        "",
        _verdict("order of calls", comparison.first),
        *_differences(comparison.first),
    ]
    lines += [_verdict(_OF_SIZES, comparison.first_size), *_differences(comparison.first_size)]
    for name, numbers, why in _counted_only(comparison):
        if name == "probes" or any(numbers):
            lines.append(f"{name}: {numbers[0]} and {numbers[1]} ({why})")
    only: dict[tuple[str, str], list[str]] = {}
    for name, on_left, on_right, why in comparison.one_side:
        only.setdefault(("left" if on_left else "right", why), []).append(f"{name} ({on_left + on_right})")
    for (side, why), names in only.items():
        lines.append(f"only in the {side} trace, not in the comparison of order: {', '.join(names)}: {why}")
    lines += ["", "Durations: right / left of calls of the same sizes"]
    lines = [folded(line, width, len(line) - len(line.lstrip()) + 2) for line in lines]
    table = shown_table(*in_common_unit(TITLES, map(_row, comparison.classes), (4, 5)), width, drop=(11, 9, 7, 6, 3))
    return "\n".join([*lines, table])


def comparison_sentence(comparison: Comparison) -> str:
    """Whether calls, order and sizes are the same, and how many times as long the right trace is."""
    left_s, right_s = comparison.time_s
    if left_s <= 0.0 or abs(right_s / left_s - 1.0) < 0.0005:
        longer = "the time is the same"
    else:
        longer = f"the right one takes {significant(right_s / left_s, 4)} times as long"
    other = len({one.rank for one in comparison.first or comparison.first_size})
    if comparison.first:
        what = f"The order of calls differs on {other} of"
    elif comparison.first_size:
        what = f"The same calls in the same order, but other sizes on {other} of"
    else:
        what = "The same calls, order and sizes on"
    return f"{what} {ranks_text(len(comparison.ranks))}; {longer}"


def _verdict(what: str, differences: tuple[Difference, ...]) -> str:
    if not differences:
        return f"{what}: equal on every rank"
    ranks = len({difference.rank for difference in differences})
    return f"{what}: differs on {ranks} rank{'s' if ranks > 1 else ''}, first"


def _differences(differences: tuple[Difference, ...]) -> list[str]:
    lines = [
        f"  rank {difference.rank}, {difference.stream}, call {difference.position}: {difference.left} on the left, "
        f"{difference.right} on the right ({difference.why})"
        for difference in differences[:MAX_DIFFERENCES]
    ]
    more = len(differences) - MAX_DIFFERENCES
    return [*lines, *([f"  and {more} more"] if more > 0 else [])]


def _row(one: ClassComparison) -> tuple[object, ...]:
    low, _, middle, _, high = one.ratio_percentiles or (math.nan,) * len(PERCENTILES)
    is_message = one.stream == "messages" and one.left_bytes + one.right_bytes > 0
    return (
        one.name,
        one.left_calls,
        one.right_calls if one.right_calls != one.left_calls else "same",
        "–" if one.same_sizes is None else percent(one.same_sizes / one.left_calls),
        one.left_s,
        one.right_s,
        size_text(one.left_bytes) if is_message else "",
        size_text(one.right_bytes) if is_message else "",
        *("–" if math.isnan(value) else significant(value) for value in (one.total_ratio, low, middle, high)),
    )


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    return {
        "answer": comparison_sentence(comparison),
        "ranks": list(comparison.ranks),
        "same_calls": comparison.same_calls,
        "same_sizes": comparison.same_sizes,
        "first_difference": [asdict(one) for one in comparison.first],
        "first_size_difference": [asdict(one) for one in comparison.first_size],
        "one_side": [
            {"name": name, "left": left, "right": right, "why": why} for name, left, right, why in comparison.one_side
        ],
        "probes": list(comparison.probes),
        "idle": list(comparison.idle),
        "proc_null": list(comparison.nobody),
        "time_s": list(comparison.time_s),
        "calls": finite_json(comparison.classes),
    }


def plot_comparison(comparison: Comparison, path: Path | None, left: str, right: str) -> "Figure":
    """A picture, written where there is a path: on the left the time of each class on both sides, on the right how the
    durations of equal calls compare (line: 5 to 95 %, box: the middle half, dot: ratio of the sums)."""
    classes = comparison.classes
    figure = new_figure((12.0, 2.2 + 0.34 * max(len(classes), 3)), for_file=True)
    times, ratios = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.2))
    unit, factor = time_unit(max([max(one.left_s, one.right_s) for one in classes], default=1.0))
    for row, one in enumerate(classes):
        times.barh(row - 0.19, one.left_s * factor, 0.36, color=LEFT, label="left" if row == 0 else None)
        times.barh(row + 0.19, one.right_s * factor, 0.36, color=RIGHT, label="right" if row == 0 else None)
        _draw_ratio(ratios, row, one)
    times.set_xlabel(f"time of all calls of both sides' common ranks ({unit})", fontsize=9)
    times.set_yticks(range(len(classes)), [_label(one) for one in classes], fontsize=8)
    times.set_ylim(len(classes) - 0.4, -0.6)
    ratios.axvline(1.0, color="black", lw=0.9, zorder=1)
    _set_ratio_axis(ratios, classes)
    for axis in (times, ratios):
        axis.grid(axis="x", color=RULE, lw=0.7)
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", length=0)
        axis.spines[["top", "right", "left"]].set_visible(False)
        previous = None
        for row, one in enumerate(classes):
            if previous not in (None, one.stream):
                axis.axhline(row - 0.5, color=SOFT, lw=0.8)
            previous = one.stream
    order = "same calls in the same order" if comparison.same_calls else "the calls differ"
    handles, labels = times.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    entitle(figure, f"left: {left}\nright: {right}; {order}", measured_origin("two traces"))
    if path is not None:
        write_picture(figure, path)
    return figure


def page(comparison: Comparison, left: str, right: str, differences: Sequence[str], command: str) -> str:
    """The page; left, right: what the traces are of; differences: of their runs; command: that makes it again."""
    answer = comparison_sentence(comparison)
    figure = plot_comparison(comparison, None, left, right)
    order = [_order_row("order of calls", one) for one in comparison.first]
    sizes = [_order_row("sizes", one) for one in comparison.first_size]
    counted = [(name, *numbers, why) for name, numbers, why in _counted_only(comparison) if any(numbers)]
    counted_rows = [
        {"call": name, "left": on_left, "right": on_right, "why": why}
        for name, on_left, on_right, why in (*counted, *comparison.one_side)
    ]
    heads, cells = in_common_unit(HEADS, map(_row, comparison.classes), (4, 5))
    rows = [dict(zip(heads, map(str, row), strict=True)) for row in cells]
    return render(
        "lepaute.kit.report",
        "evidence.html.j2",
        title="Two traces, call by call",
        facts=f"left: {left}; right: {right}",
        answer=answer,
        state="fine" if comparison.same_sizes else "notable",
        further=[
            _verdict("order of calls", comparison.first).removesuffix(", first"),
            _verdict(_OF_SIZES, comparison.first_size).removesuffix(", first"),
        ],
        beware=[f"the traces are from different runs: {difference}" for difference in differences],
        pictures=[
            {
                "svg": Markup(figure_svg(figure, f"Time of all calls on both sides, and their ratio. {answer}.")),
                "caption": "Left: time of all calls of a name, blue on the left, orange on the right side. Right: how "
                "many times as long calls of the same sizes take on the right: line 5 to 95 %, box the middle half, "
                "dot all of them together. In parentheses: numbers of calls.",
            }
        ],
        shown=[records_table("Where calls first differ", [*order, *sizes])],
        tables=[
            records_table("All calls: numbers, times, bytes, ratios", rows),
            records_table("Calls that were counted only", counted_rows),
        ],
        commands=[("This page is made by", command)],
    )


def _order_row(what: str, one: Difference) -> dict[str, object]:
    return {"what": what, "rank": one.rank, "stream": one.stream, "call": one.position, "left": one.left,
            "right": one.right, "why": one.why}  # fmt: skip


def _counted_only(comparison: Comparison) -> tuple[tuple[str, tuple[int, int], str], ...]:
    """With the numbers on both sides, and why they take no part in the comparison of order."""
    return (
        ("probes", comparison.probes, "their number depends on the waiting time"),
        ("calls with MPI_PROC_NULL", comparison.nobody, "they move nothing"),
        ("kernels on empty operands", comparison.idle, "made between probes"),
    )


def _label(one: ClassComparison) -> str:
    counts = f"{one.left_calls}" if one.left_calls == one.right_calls else f"{one.left_calls} / {one.right_calls}"
    return f"{one.name}  ({counts})"


def _draw_ratio(axis: Any, row: int, one: ClassComparison) -> None:
    if not one.ratio_percentiles:
        timeless = one.paired > 0 and 0.0 in (one.left_s, one.right_s)
        reason = "no time on one side" if timeless else "no calls of the same sizes"
        axis.text(1.0, row, f"  {reason}", fontsize=7, va="center", color=SOFT)
        return
    low, lower, middle, upper, high = one.ratio_percentiles
    axis.plot([low, high], [row, row], color=SOFT, lw=1.2, zorder=2)
    axis.barh(row, upper - lower, 0.4, left=lower, color=SKY, ec=BLUE, lw=0.8, zorder=3)
    axis.plot([middle, middle], [row - 0.2, row + 0.2], color=BLUE, lw=1.6, zorder=4)
    axis.plot([one.total_ratio], [row], "o", color="black", ms=4.5, zorder=5)


def _set_ratio_axis(axis: Any, classes: tuple[ClassComparison, ...]) -> None:
    values = [value for one in classes for value in (*one.ratio_percentiles, one.total_ratio) if value > 0]
    reach = max([2.0, *(max(value, 1 / value) for value in values if math.isfinite(value))])
    reach = min(reach, 1000.0) * 1.1
    axis.set_xscale("log")
    axis.set_xlim(1 / reach, reach)
    steps = (
        [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000] if reach > 4 else [0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3]
    )
    mark(axis.xaxis, [step for step in steps if 1 / reach <= step <= reach])
    axis.set_xlabel("duration right / left, of calls of the same sizes (dot: all of them together)", fontsize=9)

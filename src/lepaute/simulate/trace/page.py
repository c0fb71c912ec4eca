"""A trace as one HTML page that needs nothing else: what the time went into, who waits, and every call over time.

The page has the answer first, then calls over time and what they add up to, then tables, folded. Its picture of calls
can be zoomed by a script inside the page; all others are drawn without.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import numpy
from markupsafe import Markup
from numpy.typing import NDArray

from lepaute.kit.report import page as pages
from lepaute.kit.report.page import anchor, picture_values, render
from lepaute.kit.report.svg import Axis, Layer, Picture
from lepaute.kit.text import in_common_unit, percent, ranks_text, seconds, size_text, time_unit
from lepaute.simulate.trace import breakdown as breakdowns
from lepaute.simulate.trace import colours
from lepaute.simulate.trace.dependencies import dependencies_of
from lepaute.simulate.trace.report import (
    breakdown_dict,
    breakdown_tables,
    description_fields,
    grouped,
    headline,
    node_name,
)
from lepaute.simulate.trace.table import PHASE, Trace, caveats_of
from lepaute.simulate.trace.timeline import TICKS, binned, evenly, segments, step_starts
from lepaute.simulate.trace.traffic import Pairs, pairs_of

#: Calls over time, of as many ranks, evenly spread where there are more; 600,000 segments are some 2 MB.
MAX_RANKS, MAX_SEGMENTS = 1024, 600_000
MAX_TABLE_ROWS = 200
#: Ranks named beside the answer.
MAX_NAMED = 5
#: Steps whose numbers are in the page.
MAX_STEPS = 2000
BINS = 180
#: Rows and columns of a picture of pairs; more ranks are put together.
MAX_CELLS = 32


def write_report(trace: Trace, path: str | Path, command: str = "") -> None:
    """Writes what a trace amounts to: a page where the name ends in .html, an object where it ends in .json.

    Raises InputError for another suffix, or where the file cannot be written.
    """
    pages.write_report(Path(path), lambda: page(trace, command), lambda: breakdown_dict(breakdowns.breakdown_of(trace)))


def page(trace: Trace, command: str = "") -> str:
    """The page; all names in it are escaped."""
    whole = breakdowns.with_own_code(trace)
    spent = colours.classes(whole, breakdowns.split(whole)[0])
    breakdown = breakdowns.breakdown_of(trace)
    found = breakdowns.finding_of(breakdown)
    labels = colours.labels(breakdown.estimated, breakdown.unknown)
    shown = evenly(trace.ranks, MAX_RANKS)
    drawn = whole if len(shown) == len(trace.ranks) else whole.where(numpy.isin(whole.rank, shown))
    drawn_spent = spent if drawn is whole else spent[numpy.isin(whole.rank, shown)]
    calls, shortest_s = _calls_over_time(drawn, drawn_spent, found.waiting, labels)
    used = numpy.flatnonzero(spent.sum(axis=0) > 1e-6 * spent.sum())
    waits = breakdown.waits
    sent = pairs_of(trace, dependencies_of(trace))
    pictures = [
        _over_time(whole, spent),
        by_rank(breakdown),
        *([_by_step(breakdown)] if len(breakdown.steps) > 1 else []),
        *([_pairs_picture(waits.rank, waits.whom, waits.time_s, "waits", "for")] if (waits.whom >= 0).any() else []),
    ]
    pairs = (sent.sender, sent.receiver, sent.size_bytes)
    messages = [picture_values(_pairs_picture(*pairs, "sends", "to"))] if len(sent.sender) else []
    tables = [_table(title, head, rows) for title, head, rows in breakdown_tables(breakdown, MAX_TABLE_ROWS)[1:]]
    total = int(trace.metadata.get("ranks") or 0) or len(trace.ranks)
    held = ranks_text(total) if total == len(trace.ranks) else f"{len(trace.ranks)} of {ranks_text(total)}"
    known = (("platform", str(trace.metadata.get("platform_sha256") or "")[:12]), ("seed", trace.metadata.get("seed")))
    beware = caveats_of(trace.metadata)
    if breakdown.estimated:
        inside = f", and the waiting in {', '.join(breakdown.unknown)}" if breakdown.unknown else ""
        beware.append(
            "the calls of this trace do not tell their parts: waiting is found by matching sends with receives, and "
            f"transfer includes overhead and contention{inside}"
        )
    return render(
        "lepaute.simulate.trace",
        "trace.html.j2",
        title=headline(trace),
        facts=f"{len(trace):,} calls of {held}",
        made_of=[(name, str(value)) for name, value in known if value not in (None, "")],
        answer=found.sentence,
        figures=_figures(found, breakdown),
        waiting=_waiting_lines(found.waiting, breakdown),
        waiters=_waiters(breakdown),
        beware=beware,
        colours=[style.colour for style in colours.CALLS],
        legend=[(place, label) for place, label in enumerate(labels) if place in used],
        calls=Markup(json.dumps(calls).replace("<", "\\u003c")),
        script=Markup((package_files("lepaute.simulate.trace") / "static" / "calls.js").read_text(encoding="utf-8")),
        height=max(1, min(24, round(640 / len(shown)))) * len(shown),
        not_all=f"{len(shown)} of {ranks_text(len(trace.ranks))}, evenly spread"
        if len(shown) < len(trace.ranks)
        else "",
        has_steps=bool(calls["steps"]),
        shortest=seconds(shortest_s) if shortest_s else "",
        pictures=[picture_values(picture) for picture in pictures],
        messages=messages,
        tables=[*tables, _table("Who waits for whom", *_pairs(waits.rank, waits.whom, waits.time_s))],
        sent=_table("Messages", *_sent(sent)) if len(sent.sender) else None,
        fields=description_fields(trace),
        commands=[("This page is made by", command)] if command else [],
    )


def _figures(found: breakdowns.Finding, breakdown: breakdowns.Breakdown) -> list[tuple[str, str]]:
    largest = sorted(found.shares.items(), key=lambda one: -one[1])[:3]
    time_s = float(breakdown.by_rank_s.sum(axis=1).max()) if len(breakdown.ranks) else 0.0
    return [*((percent(share), f"of the ranks' time is {name}") for name, share in largest if share > 0),
            (seconds(time_s), "from the beginning to the end of the trace")]  # fmt: skip


def _waiting_lines(waiting: breakdowns.Waiting | None, breakdown: breakdowns.Breakdown) -> list[str]:
    if waiting is None:
        return []
    of_rank = "" if waiting.whom is None else f", {percent(waiting.whom_share)} of it for rank {waiting.whom}"
    lines = [f"Rank {waiting.rank} waits for {seconds(waiting.time_s)}{of_rank}."]
    shares = breakdown.by_rank_s[:, breakdowns.LATE] / breakdown.by_rank_s.sum(axis=1).clip(1e-300)
    least = int(shares.argmin())
    if len(shares) > 1:
        lines.append(f"Rank {breakdown.ranks[least]} waits least, {percent(float(shares[least]))} of its time.")
    if waiting.step is not None:
        lines.append(f"Most is waited in step {waiting.step}: {percent(waiting.step_share)} of all waiting in steps.")
    return lines


def _waiters(breakdown: breakdowns.Breakdown) -> dict[str, Any] | None:
    """The ranks that wait most, and for whom most."""
    shares = breakdown.by_rank_s[:, breakdowns.LATE] / breakdown.by_rank_s.sum(axis=1).clip(1e-300)
    rows = []
    for row in numpy.argsort(-shares, kind="stable")[:MAX_NAMED]:
        mine = numpy.flatnonzero((breakdown.waits.rank == breakdown.ranks[row]) & (breakdown.waits.whom >= 0))
        order = mine[numpy.argsort(-breakdown.waits.time_s[mine], kind="stable")][:3]
        late_s = float(breakdown.by_rank_s[row, breakdowns.LATE])
        whom = ", ".join(
            f"{breakdown.waits.whom[at]} ({percent(float(breakdown.waits.time_s[at]) / late_s)})" for at in order
        )
        rows.append([breakdown.ranks[row], late_s, percent(float(shares[row])), whom])
    if not rows or shares.max() <= 0:
        return None
    head = ("rank", "waits", "of its time", "for ranks (share of the waiting)")
    return _table("Ranks that wait most", *in_common_unit(head, rows, (1,)))


def _table(title: str, head: Any, rows: Any) -> dict[str, Any]:
    return {"title": title, "anchor": anchor(title), "columns": list(head),
            "rows": [[str(cell) for cell in row] for row in rows]}  # fmt: skip


def _pairs(one: NDArray[Any], other: NDArray[Any], time_s: NDArray[Any]) -> tuple[Any, Any]:
    total_s = float(time_s.sum())
    largest = numpy.argsort(-time_s, kind="stable")[:MAX_TABLE_ROWS]
    rows = [
        (one[at], other[at] if other[at] >= 0 else "not known", time_s[at], percent(float(time_s[at]) / total_s))
        for at in largest
    ]
    return in_common_unit(("rank that waits", "for rank", "time", "share of all"), rows, (2,))


def _sent(sent: Pairs) -> tuple[Any, Any]:
    rows = [tuple(row.values()) for row in sent.to_list("from rank", "to rank")[:MAX_TABLE_ROWS]]
    return ("from rank", "to rank", "messages", "bytes", "mean size"), [
        (sender, receiver, f"{count:,}", size_text(size), size_text(size / count))
        for sender, receiver, count, size, _ in rows
    ]


def _calls_over_time(
    trace: Trace, spent: NDArray[Any], waiting: breakdowns.Waiting | None, labels: Sequence[str]
) -> tuple[dict[str, Any], float]:
    """Data for the script to draw, and below which length calls are put together."""
    calls = trace.kind != PHASE
    found = segments(trace.where(calls), spent[calls], MAX_SEGMENTS)
    whole_s = found.high_s - found.low_s

    def date(at_s: float) -> int:
        return round(min(max((at_s - found.low_s) / max(whole_s, 1e-9), 0.0), 1.0) * TICKS)

    starts = sorted(step_starts(trace).items())
    every = -(-len(starts) // MAX_STEPS) or 1
    windows = []
    if waiting is not None and waiting.step is not None:
        after = [at_s for step, at_s in starts if step > waiting.step]
        first = dict(starts).get(waiting.step)
        if first is not None:
            low, high = sorted((date(first), date(after[0] if after else found.high_s)))
            windows.append([f"step {waiting.step}", low, max(high, low + 1)])
    nodes = trace.metadata.get("nodes")
    several = isinstance(nodes, list) and len(set(nodes)) > 1
    return {
        "ticks": TICKS,
        "low_s": found.low_s,
        "whole_s": whole_s,
        "ranks": list(found.ranks),
        "nodes": [node_name(trace, nodes[rank]) if several and rank < len(nodes) else "" for rank in found.ranks]
        if isinstance(nodes, list)
        else [],
        "counts": found.counts.tolist(),
        "codes": _packed(found.codes, "<u2"),
        "lengths": _packed(found.ticks, "<u4"),
        "kinds": [[name, place, labels[place]] for name, place in found.kinds],
        "nothing": colours.NOTHING,
        "steps": [[step, date(at_s)] for step, at_s in starts[::every]],
        "windows": windows,
        "unit": list(time_unit(whole_s)),
    }, found.shortest_s


def _packed(values: NDArray[Any], kind: str) -> str:
    return base64.b64encode(zlib.compress(values.astype(kind).tobytes(), 9)).decode()


def _over_time(trace: Trace, spent: NDArray[Any]) -> Picture:
    """All ranks together; spent: seconds of each row by class."""
    low_s, high_s = float(trace.start_s.min()), float(trace.end_s.max())
    high_s = high_s if high_s > low_s else low_s + 1e-9
    shares = 100.0 * binned(trace.start_s, spent, low_s, high_s, BINS) / len(trace.ranks)
    unit, factor = time_unit(high_s)
    edges = numpy.linspace(low_s, high_s, BINS + 1) * factor
    return Picture(
        "Shares of the time of all ranks, by what they do, from the beginning to the end",
        "All ranks together in the course of time: what shares of them do what. Empty: nothing recorded.",
        Axis(f"time, {unit}", float(edges[0]), float(edges[-1])),
        Axis("share of the ranks, %", 0.0, 100.0),
        _stacked(edges, shares[:, : colours.NOTHING], range(colours.NOTHING)),
    )


def by_rank(breakdown: breakdowns.Breakdown) -> Picture:
    """A column a rank, or a group of ranks."""
    values, labels = grouped(breakdown)
    unit, factor = time_unit(float(values.sum(axis=1).max()))
    of_groups = "" if len(labels) == len(breakdown.ranks) else "; a column is the mean of neighbouring ranks"
    return Picture(
        "Time of each rank by what it went into",
        f"The time of each rank. {_key_of(values)}{of_groups}.",
        Axis("rank", -0.5, len(labels) - 0.5, names=tuple(labels)),
        Axis(f"time, {unit}", 0.0, float(values.sum(axis=1).max()) * factor or 1.0),
        _stacked(numpy.arange(len(labels) + 1) - 0.5, values * factor, colours.CLASS_OF_CATEGORY),
    )


def _by_step(breakdown: breakdowns.Breakdown) -> Picture:
    values = breakdown.by_step_s[:, : breakdowns.OTHER]
    most = float(values.sum(axis=1).max())
    unit, factor = time_unit(most)
    edges = numpy.array([*breakdown.steps, breakdown.steps[-1] + 1]) - 0.5
    return Picture(
        "Time of all ranks in each step by what it went into",
        f"The time of all ranks in each step. {_key_of(values)}.",
        Axis("step (panel)", float(edges[0]), float(edges[-1])),
        Axis(f"time of all ranks, {unit}", 0.0, most * factor or 1.0),
        _stacked(edges, values * factor, colours.CLASS_OF_CATEGORY[: breakdowns.OTHER]),
    )


def _key_of(values: NDArray[Any]) -> str:
    """The colours that are drawn; values: of categories."""
    if not values[:, breakdowns.COMPUTE].any():
        return "Colours as above"
    return f"Blue: all {'other ' * bool(values[:, breakdowns.OWN_CODE].any())}computing; the rest as above"


def _stacked(edges: NDArray[Any], values: NDArray[Any], places: Any) -> list[Layer]:
    """Columns between the edges, shape (columns, classes), on each other in the colours of their classes."""
    x = numpy.repeat(edges, 2)[1:-1]
    base = numpy.zeros(len(values))
    layers = []
    for place, column in zip(places, values.T, strict=True):
        if column.any():
            top = base + column
            layers.append(Layer("band", x, numpy.repeat(top, 2), f"c{place}", numpy.repeat(base, 2)))
            base = top
    return layers


def _pairs_picture(
    one: NDArray[Any], other: NDArray[Any], amount: NDArray[Any], verb: str, preposition: str
) -> Picture:
    """How much of `amount` each pair of ranks has: a row a rank, a column the other; more of it is darker."""
    known = other >= 0
    one, other, amount = one[known], other[known], amount[known]
    ranks = numpy.unique(numpy.concatenate((one, other)))
    groups = min(MAX_CELLS, len(ranks))
    group_of = numpy.arange(len(ranks)) * groups // len(ranks)
    row, column = (group_of[numpy.searchsorted(ranks, each)] for each in (one, other))
    total = numpy.bincount(row * groups + column, weights=amount, minlength=groups**2)
    cells = numpy.flatnonzero(total)
    across, up = (each.astype(numpy.float64) for each in (cells % groups, cells // groups))
    names = tuple(map(str, [int(ranks[group_of == group][0]) for group in range(groups)]))
    together = "" if groups == len(ranks) else "; neighbouring ranks are put together, named by the first"
    return Picture(
        f"Which rank {verb} {preposition} which",
        f"Up: the rank that {verb}; across: the rank {preposition} which it {verb}. Full colour: most{together}.",
        Axis(f"{preposition} rank", -0.5, groups - 0.5, names=names),
        Axis(f"rank that {verb}", -0.5, groups - 0.5, names=names),
        [Layer("cells", across, up, "cell", total[cells] / total.max())],
    )

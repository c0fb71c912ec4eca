"""A trace in words; its breakdown as tables of text and as a picture of stacked bars."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.kit.picture import entitle, measured_origin, new_figure, origin, write_picture
from lepaute.kit.printable import UNLIMITED
from lepaute.kit.tables import shortened, shown_table
from lepaute.kit.text import counted, folded, in_common_unit, percent, ranks_text, seconds, size_text, time_unit
from lepaute.simulate.trace.breakdown import Breakdown, finding_of
from lepaute.simulate.trace.colours import SHARES
from lepaute.simulate.trace.table import BETWEEN_CALLS, CATEGORIES, COMPUTING, KERNEL, KINDS, MPI, Trace, caveats_of


def headline(trace: Trace) -> str:
    """Program and platform in one line: "HPL N = 1000, NB = 64, 2 x 1: recording"."""
    metadata = trace.metadata
    application = str(metadata.get("application", "")) or "a program"
    parameters = metadata.get("parameters")
    if application == "hpl" and isinstance(parameters, dict) and {"n", "nb", "p", "q"} <= set(parameters):
        what = f"HPL N = {parameters['n']}, NB = {parameters['nb']}, {parameters['p']} × {parameters['q']}"
    else:
        what = application
    if trace.is_recording:
        return f"{what}, recorded"
    platform = metadata.get("platform")
    return f"{what}, simulated" + (f" on {platform}" if platform else "")


def node_name(trace: Trace, node: int) -> str:
    """The name of the node with an index: of a recording its host, of a simulation its number in the platform."""
    hosts = trace.metadata.get("hosts") or []
    return hosts[node] if node < len(hosts) else f"node {node + int(trace.metadata.get('first_node') or 0)}"


def written_text(path: Path, trace: Trace) -> str:
    return f"{path}: {_calls_text(trace, ranks_text(len(trace.ranks)))}; see: lepaute trace breakdown {path}"


def _calls_text(trace: Trace, ranks: str) -> str:
    """438 calls in 966 µs on 2 ranks: from the start of the first to the end of the last."""
    took = f" in {seconds(float(trace.end_s.max()) - float(trace.start_s.min()))}" if len(trace) else ""
    return f"{counted(int((~trace.named(BETWEEN_CALLS - {COMPUTING})).sum()), 'call')}{took} on {ranks}"


def description(trace: Trace, width: int = UNLIMITED) -> str:
    ranks = trace.ranks
    total = trace.metadata.get("ranks") or len(ranks)
    some = ranks_text(len(ranks)) if total == len(ranks) else f"{len(ranks)} of {ranks_text(total)}"
    answer = f"{headline(trace)}: {_calls_text(trace, some)}"
    lines = [f"  {key + ':':<10}{value}" for key, value in description_fields(trace)]
    known = trace.step[trace.step >= 0]
    if len(known):
        lines.append(f"  {'steps:':<10}{known.min()} to {known.max()}")
    lines += [f"warning: {warning}" for warning in caveats_of(trace.metadata)]
    lines = [folded(line, width, 12) for line in lines]
    return "\n".join((folded(answer, width, 2), *lines, "", _calls_table(trace, width)))


def description_fields(trace: Trace) -> list[tuple[str, str]]:
    names = ("version", "seed", "created", "command", "engine", "mpi", "hosts", "omitted")
    known = {name: value for name in names if (value := trace.metadata.get(name)) not in (None, "", [])}
    return [(key, ", ".join(map(str, text) if isinstance(text, list) else [str(text)])) for key, text in known.items()]


def facts(trace: Trace) -> dict[str, Any]:
    """Facts of `description`, as values for JSON; times in seconds, sizes in bytes."""
    known = trace.step[trace.step >= 0]
    return {
        "headline": headline(trace),
        "metadata": trace.metadata,
        "ranks": [int(rank) for rank in trace.ranks],
        "span_s": [float(trace.start_s.min()), float(trace.end_s.max())] if len(trace) else None,
        "steps": [int(known.min()), int(known.max())] if len(known) else None,
        "calls": calls(trace),
    }


def calls(trace: Trace) -> list[dict[str, Any]]:
    """Number, time and sizes of the calls of each kind and name, the longest in all first.

    most_m, most_n, most_k of kernels; bytes of MPI's calls where any has some.
    """
    found = []
    for code, name in enumerate(trace.names):
        has_name = trace.name == code
        for kind in range(len(KINDS)):
            mask = has_name & (trace.kind == kind)
            if not mask.any():
                continue
            durations = trace.duration_s[mask]
            entry: dict[str, Any] = {
                "call": name,
                "kind": KINDS[kind],
                "calls": int(mask.sum()),
                "time_s": float(durations.sum()),
                "median_s": float(numpy.median(durations)),
            }
            if kind == KERNEL:
                entry |= {f"most_{letter}": int(getattr(trace, letter)[mask].max()) for letter in ("m", "n", "k")}
            elif kind == MPI and trace.size_bytes[mask].any():
                entry["bytes"] = int(trace.size_bytes[mask].sum())
            found.append((kind, -entry["time_s"], entry))
    return [entry for *_, entry in sorted(found, key=lambda each: each[:2])]


def _calls_table(trace: Trace, width: int = UNLIMITED) -> str:
    rows = []
    for entry in calls(trace):
        extent = ""
        if any(entry.get(f"most_{letter}") for letter in ("m", "n", "k")):
            extent = "m, n, k <= " + ", ".join(str(entry[f"most_{letter}"]) for letter in ("m", "n", "k"))
        elif "bytes" in entry:
            extent = f"{size_text(float(entry['bytes']))} in total"
        rows.append((entry["call"], entry["kind"], entry["calls"], entry["time_s"], entry["median_s"], extent))
    titles = ("call", "kind", "calls", "time", "median", "sizes")
    return shown_table(*in_common_unit(titles, rows, (3,), (4,)), width, left=(0, 5))


_MAX_ROWS = 24
_MAX_BARS = 128
_MAX_DIFFERENCE = 0.02  # of the time of a rank or step, between parts of alike ones


def breakdown_text(breakdown: Breakdown, width: int = UNLIMITED, *, details: bool = False) -> str:
    """The sentence and the tables; without details alike ranks and steps are one row, and no column is all 0."""
    every = max(map(len, (breakdown.ranks, breakdown.steps, breakdown.by_name)))
    tables = breakdown_tables(breakdown, every if details else _MAX_ROWS, brief=not details)
    parts = (f"{folded(title, width)}\n{shown_table(head, rows, width)}" for title, head, rows in tables)
    return "\n\n".join([folded(finding_of(breakdown).sentence, width, 2), *parts])


Tables = list[tuple[str, Sequence[str], Sequence[Sequence[object]]]]


def breakdown_tables(breakdown: Breakdown, most_rows: int, *, brief: bool = False) -> Tables:
    """Titles, columns and rows: all ranks, each rank, kernel, routine and step; long ones without their middle.

    brief : as `breakdown_text` has them without details
    """
    within, note = (
        (_MAX_DIFFERENCE, f", those alike within {100.0 * _MAX_DIFFERENCE:.0f} % in one row") if brief else (-1.0, "")
    )
    by_rank_s = _merged(breakdown.ranks, breakdown.by_rank_s, within)
    by_step_s = _merged(breakdown.steps, breakdown.by_step_s, within)
    total = breakdown.by_rank_s.sum(axis=0)
    whole = float(total.sum())
    categories = [category.replace("_", " ") for category in CATEGORIES]
    waiting = f", and the waiting in {', '.join(breakdown.unknown)}" if breakdown.unknown else ""
    estimate = (
        f" (late and transfer from matching sends with receives; transfer includes overhead and contention{waiting})"
    )
    of_all = [
        (name, value, percent(_share(value, whole)))
        for name, value in zip(categories, total, strict=True)
        if value > 1e-9 * whole
    ]
    of_ranks = [
        (rank, row.sum(), *(percent(_share(value, row.sum())) for value in row)) for rank, row in by_rank_s.items()
    ]
    of_calls = [(call.name, call.calls, call.time_s, percent(call.share), call.median_s) for call in breakdown.by_name]
    of_steps = [(step, row.sum(), *row[:-1]) for step, row in by_step_s.items()]
    heads = {
        "All ranks together" + (estimate if breakdown.estimated else ""): ("where", "time", "share"),
        f"Each rank, per cent of its time{note}": ("rank", "time", *categories),
        "Kernels and MPI routines": ("call", "calls", "time", "share", "median"),
        f"Each step, all ranks together{note}": ("step", "time", *categories[:-1]),
    }
    in_seconds: tuple[tuple[Sequence[int], ...], ...] = ((1,),), ((1,),), ((2,), (4,)), (range(1, 1 + len(categories)),)
    most = (len(categories), most_rows, 2 * most_rows, most_rows)
    tables: Tables = []
    parts: tuple[Sequence[Sequence[object]], ...] = of_all, of_ranks, of_calls, of_steps
    for title, rows, columns, limit in zip(heads, parts, in_seconds, most, strict=True):
        names, cells = in_common_unit(heads[title], rows, *columns)
        kept = [at for at in range(len(names)) if not brief or any(row[at] not in (0, "0.0 %") for row in rows)]
        shown = shortened([[row[at] for at in kept] for row in cells], limit)
        tables.append((title, [names[at] for at in kept], shown))
    return tables if breakdown.steps else tables[:-1]


def _merged(numbers: Sequence[int], parts_s: NDArray[Any], within: float) -> dict[str, NDArray[Any]]:
    """The parts of each rank or step, and the mean of successive ones that are alike, named 0-15."""
    rows, begin = {}, 0
    for at in range(1, len(numbers) + 1):
        run = parts_s[begin : at + 1]
        goes_on = at < len(numbers) and numbers[at] == numbers[at - 1] + 1
        if not goes_on or numpy.ptp(run, axis=0).max() > within * run.sum(axis=1).min():
            name = f"{numbers[begin]}-{numbers[at - 1]}" if at - begin > 1 else f"{numbers[begin]}"
            rows[name] = parts_s[begin:at].mean(axis=0)
            begin = at
    return rows


def _share(value: float, whole: float) -> float:
    return float(value) / float(whole) if whole > 0 else 0.0


def breakdown_dict(breakdown: Breakdown) -> dict[str, Any]:
    """The same for JSON; seconds."""

    def named(row: NDArray[Any]) -> dict[str, float]:
        return dict(zip(CATEGORIES, map(float, row), strict=True))

    return {
        "all": named(breakdown.by_rank_s.sum(axis=0)),
        "ranks": [{"rank": rank, **named(row)} for rank, row in zip(breakdown.ranks, breakdown.by_rank_s, strict=True)],
        "steps": [{"step": step, **named(row)} for step, row in zip(breakdown.steps, breakdown.by_step_s, strict=True)],
        "calls": [
            {"name": one.name, "kind": one.kind, "calls": one.calls, "time_s": one.time_s, "median_s": one.median_s}
            for one in breakdown.by_name
        ],
        "estimated": breakdown.estimated,
        **finding_of(breakdown).to_dict(),
    }


def foot(trace: Trace) -> str:
    """Origin of a trace, for the foot of a picture."""
    about = trace.metadata
    if trace.is_recording or not {"platform", "platform_sha256", "seed", "version"} <= set(about):
        return measured_origin("recorded" if trace.is_recording else "simulated")
    return origin(about["platform"], about["platform_sha256"], about["seed"], about["version"])


def plot_breakdown(breakdown: Breakdown, path: Path, title: str, foot: str) -> None:
    """Writes a picture: a stacked bar a rank, and where there are steps a stacked area over them."""
    from matplotlib.patches import Patch

    by_rank, labels = grouped(breakdown)
    panels = 2 if len(breakdown.steps) > 1 else 1
    figure = new_figure((11.0, 3.4 * panels + 1.2), for_file=True)
    axes = figure.subplots(panels, 1, squeeze=False)[:, 0]
    unit, factor = time_unit(by_rank.sum(axis=1).max())
    base = numpy.zeros(len(by_rank))
    for style, values in zip(SHARES, by_rank.T, strict=True):
        width = 0.4 if len(by_rank) < 40 else 0.0
        axes[0].bar(range(len(by_rank)), values * factor, 0.84, bottom=base * factor, lw=width, **style.look)
        base += values
    every = max(1, len(labels) // 16)
    axes[0].set_xticks(range(0, len(labels), every), labels[::every], fontsize=8)
    axes[0].set_xlim(-0.6, len(labels) - 0.4)
    axes[0].set_xlabel("rank" if len(labels) == len(breakdown.ranks) else "ranks, mean of each group", fontsize=9)
    axes[0].set_ylabel(f"time ({unit})", fontsize=9)
    if panels == 2:
        _draw_steps(axes[1], breakdown)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    used = breakdown.by_rank_s.sum(axis=0) > 1e-4 * breakdown.by_rank_s.sum()
    if len(breakdown.steps):
        used |= (breakdown.by_step_s > 1e-2 * breakdown.by_step_s.sum(axis=1, keepdims=True)).any(axis=0)
    handles = [
        Patch(fc=style.colour, hatch=style.hatch, ec="#555555", lw=0.6, label=style.label)
        for style, is_used in zip(SHARES, used, strict=True)
        if is_used
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    entitle(figure, f"{finding_of(breakdown).sentence}\n{title}", foot)
    write_picture(figure, path)


def _draw_steps(axis: Any, breakdown: Breakdown) -> None:
    values = breakdown.by_step_s[:, :-1]
    unit, factor = time_unit(values.sum(axis=1).max())
    edges = numpy.array([*breakdown.steps, breakdown.steps[-1] + 1]) - 0.5
    base = numpy.zeros(len(values))
    for style, column in zip(SHARES, values.T, strict=False):
        axis.stairs((base + column) * factor, edges, baseline=base * factor, fill=True, lw=0.3, **style.look)
        base = base + column
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, None)
    axis.set_xlabel("step (panel)", fontsize=9)
    axis.set_ylabel(f"time of these ranks, {unit}", fontsize=9)


def grouped(breakdown: Breakdown) -> tuple[NDArray[Any], list[str]]:
    """Bars and their labels: a rank each, or means of consecutive ranks where there are more than _MAX_BARS."""
    count = len(breakdown.ranks)
    if count <= _MAX_BARS:
        return breakdown.by_rank_s, [str(rank) for rank in breakdown.ranks]
    groups = numpy.array_split(numpy.arange(count), _MAX_BARS)
    means = numpy.array([breakdown.by_rank_s[group].mean(axis=0) for group in groups])
    return means, [f"{breakdown.ranks[group[0]]}-{breakdown.ranks[group[-1]]}" for group in groups]

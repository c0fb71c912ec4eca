"""A trace in words."""

from typing import Any

from lepaute.kit.tables import text_table
from lepaute.kit.text import seconds, size_text
from lepaute.trace.table import KERNEL, KINDS, MPI, Trace


def headline(trace: Trace) -> str:
    """What ran where, in one line: "HPL N = 1000, NB = 64, 2 x 1: recording"."""
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


def description(trace: Trace) -> str:
    """What a trace holds, in some lines."""
    lines = [headline(trace)]
    fields = [
        (key, trace.metadata.get(key)) for key in ("version", "seed", "created", "command", "engine", "mpi", "hosts")
    ]
    lines += [f"{key + ':':<10}{_plain(value)}" for key, value in fields if value not in (None, "", [])]
    ranks = trace.ranks
    total = trace.metadata.get("ranks", len(ranks))
    lines.append(f"{'ranks:':<10}{len(ranks)} of {total}")
    if len(trace):
        low, high = float(trace.start_s.min()), float(trace.end_s.max())
        lines.append(f"{'time:':<10}{seconds(high - low)}, from {low:.9g} to {high:.9g} s")
    known = trace.step[trace.step >= 0]
    if len(known):
        lines.append(f"{'steps:':<10}{known.min()} to {known.max()}")
    lines += [f"warning: {warning}" for warning in trace.metadata.get("warnings", [])]
    return "\n".join((*lines, "", calls_table(trace)))


def facts(trace: Trace) -> dict[str, Any]:
    """What `description` tells, as values for JSON; times in seconds, sizes in bytes."""
    known = trace.step[trace.step >= 0]
    spanned = [float(trace.start_s.min()), float(trace.end_s.max())] if len(trace) else None
    return {
        "headline": headline(trace),
        "metadata": trace.metadata,
        "ranks": [int(rank) for rank in trace.ranks],
        "span_s": spanned,
        "steps": [int(known.min()), int(known.max())] if len(known) else None,
        "calls": calls(trace),
    }


def calls(trace: Trace) -> list[dict[str, Any]]:
    """Number, time and sizes of the calls of each kind and name, the longest in all first.

    most_m, most_n, most_k of kernels; bytes of MPI's calls where any has some.
    """
    import numpy

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


def calls_table(trace: Trace) -> str:
    """`calls` as a table."""
    rows = []
    for entry in calls(trace):
        extent = ""
        if any(entry.get(f"most_{letter}") for letter in ("m", "n", "k")):
            extent = "m, n, k <= " + ", ".join(str(entry[f"most_{letter}"]) for letter in ("m", "n", "k"))
        elif "bytes" in entry:
            extent = f"{size_text(float(entry['bytes']))} in total"
        times = (seconds(entry["time_s"]), seconds(entry["median_s"]))
        rows.append((entry["call"], entry["kind"], entry["calls"], *times, extent))
    return text_table(("call", "kind", "calls", "time", "median", "sizes"), rows)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

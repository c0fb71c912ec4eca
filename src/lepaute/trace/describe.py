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


def calls_table(trace: Trace) -> str:
    """Number, time and sizes of the calls of each name."""
    import numpy

    rows = []
    for code, name in enumerate(trace.names):
        has_name = trace.name == code
        for kind in range(len(KINDS)):
            mask = has_name & (trace.kind == kind)
            if not mask.any():
                continue
            durations = trace.duration_s[mask]
            extent = ""
            if kind == KERNEL:
                biggest = [int(getattr(trace, column)[mask].max()) for column in ("m", "n", "k")]
                extent = "m, n, k <= " + ", ".join(map(str, biggest))
            elif kind == MPI and trace.size_bytes[mask].any():
                extent = f"{size_text(float(trace.size_bytes[mask].sum()))} in total"
            median = seconds(float(numpy.median(durations)))
            rows.append(
                (
                    kind,
                    -float(durations.sum()),
                    (name, KINDS[kind], int(mask.sum()), seconds(durations.sum()), median, extent),
                )
            )
    rows.sort(key=lambda row: row[:2])
    return text_table(("call", "kind", "calls", "time", "median", "sizes"), [row[2] for row in rows])


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

"""A platform on one screen: the machine, its speed, its messages, and for which sizes that holds."""

from collections.abc import Sequence

from lepaute.kit.text import counted, percent, quantity, seconds, significant, size_text
from lepaute.simulate.platform.components import COMPUTING
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.platform.kernel_model import UPDATE, mean_s, piece_of, value_of
from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.topology import topology_lines
from lepaute.simulate.platform.values import Bounds

#: Protocols, with what a word that SMPI alone has means.
_PROTOCOLS = {"eager": "eager", "detached": "detached (the sender does not wait)", "rendezvous": "rendezvous"}
#: Kernels that are named, dgemm first.
MAX_KERNELS = 6
#: What a platform without a model of dgemm is good for.
NO_SPEED = "no speed of dgemm, without which HPL cannot be predicted"
#: Where a range has no end of its own.
_NO_END = 10**9


def in_one_line(platform: Platform) -> str:
    """dahu-2020-01: 32 nodes of 32 cores, 29 Gflop/s a core in dgemm"""
    nodes, rate = platform.nodes, dgemm_rate(platform)
    speed = NO_SPEED if rate is None else f"{quantity(rate / 1e9, 'Gflop/s')} a core in dgemm"
    return f"{platform.name}: {counted(nodes.count, 'node')} of {counted(nodes.cores, 'core')}, {speed}"


def facts(platform: Platform) -> list[tuple[str, str]]:
    """Name and text of each fact: fewer than 20 lines of 80 columns together."""
    width = quantity(platform.network.node_link.bandwidth_Bps / 1e9, "GB/s")
    rows = [
        ("what", (platform.description or "").partition(". ")[0].partition(": ")[0].strip().rstrip(".")),
        ("assumed", _assumed(platform)),
        ("nodes", _nodes(platform)),
        ("dgemm", _dgemm(platform)),
        ("kernels", _kernels(platform)),
        ("between nodes", _messages(platform.network.remote.segments)),
        ("inside a node", _messages(platform.network.loopback.segments) or "as between nodes"),
        ("network", f"{next(topology_lines(platform.topology))}, {width} a node"),
        ("sizes", _sizes(platform)),
        ("days", _days(platform)),
        ("slow", "" if platform.slow_state is None else platform.slow_state.text),
        ("file", f"sha256 {platform.sha256[:16]}"),
    ]
    return [(name, text) for name, text in rows if text]


def _assumed(platform: Platform) -> str:
    """How much was not measured, and what of it is the least certain."""
    assumed = platform.assumed or ()
    if not assumed:
        return ""
    worst = max(assumed, key=lambda each: each.relative_sd or 0.0)
    return f"{counted(len(assumed), 'value')}, not measured; the least certain: {worst.text}"


def _nodes(platform: Platform) -> str:
    nodes = platform.nodes
    memory = "" if nodes.memory_bytes is None else f", {size_text(nodes.memory_bytes)} each"
    peak, first, last = nodes.peak_flops_per_core, nodes.first_number, nodes.first_number + nodes.count - 1
    numbers = f"numbers {first} to {last}" if last > first else f"number {first}"
    return f"{numbers}, {counted(nodes.cpus, 'CPU')} each{memory}" + (
        "" if peak is None else f", peak {quantity(peak / 1e9, 'Gflop/s')} a core"
    )


def _dgemm(platform: Platform) -> str:
    """Its rate for one call while all cores compute, and how CPUs differ."""
    model, rate = platform.kernel("dgemm"), dgemm_rate(platform)
    if model is None or rate is None:
        return ""
    m, n, k = UPDATE
    text = f"{quantity(rate / 1e9, 'Gflop/s')} a core at m = {m}, n = {n}, k = {k}, all cores computing"
    table = piece_of(model, m, n, k).per_cpu
    if table is not None:
        terms = table.mean_terms
        usual_s = mean_s(model, m, n, k, crowded=False)
        rates = [
            rate * usual_s / time_s
            for row in table.rows
            if (time_s := value_of(dict(zip(terms, row[2:], strict=False)), m, n, k)) > 0.0
        ]
        if rates:
            text += f"; CPUs {significant(min(rates) / 1e9)} to {significant(max(rates) / 1e9)}"
    return text


def _kernels(platform: Platform) -> str:
    models = platform.kernels
    free = sorted({model.kernel for model in models if not any(any(piece.mean.values()) for piece in model.pieces)})
    names = sorted((model.kernel for model in models), key=lambda name: name not in COMPUTING)
    costly = [name for name in dict.fromkeys(names) if name not in free]
    more = f" and {len(costly) - MAX_KERNELS} more" if len(costly) > MAX_KERNELS else ""
    text = f"{len(costly)} cost time: {', '.join(costly[:MAX_KERNELS])}{more}"
    return f"{text}; nothing: {', '.join(free)}" if free else text


def _messages(segments: Sequence[Segment] | None) -> str:
    """Times of the shortest and the longest messages, and where the protocol changes."""
    if not segments:
        return ""
    first, last = segments[0], segments[-1]
    short_s = first.latency_s + first.send[0] + first.receive[0]
    text = f"{seconds(short_s)} for a short message, {quantity(last.bandwidth_Bps / 1e9, 'GB/s')} for a long one"
    changes = [
        after for before, after in zip(segments, segments[1:], strict=False) if before.protocol != after.protocol
    ]
    if changes:
        text += "; " + ", ".join(f"{_PROTOCOLS[part.protocol]} above {size_text(part.above_bytes)}" for part in changes)
    return text


def _sizes(platform: Platform) -> str:
    """Sizes that dgemm and messages between nodes were fitted to."""
    texts = []
    model = platform.kernel("dgemm")
    if model is not None:
        ranges = [piece.range for piece in model.pieces if piece.range is not None]
        texts.append(f"dgemm {_joined(ranges)}" if ranges else "of dgemm not known")
    remote = platform.network.remote.range_bytes
    texts.append(
        "of messages not known" if remote is None else f"messages {size_text(remote[0])} to {size_text(remote[1])}"
    )
    return "; ".join(texts)


def _joined(ranges: Sequence[Bounds]) -> str:
    """The smallest and the largest size of each letter over all pieces."""
    ends: dict[str, tuple[float, float]] = {}
    for bounds in ranges:
        for letter, (low, high) in bounds.items():
            before = ends.get(letter, (low, high))
            ends[letter] = (min(low, before[0]), max(high, before[1]))
    return ", ".join(
        f"{letter} {low:.0f} to {high:.0f}" if high < _NO_END else f"{letter} from {low:.0f}"
        for letter, (low, high) in ends.items()
    )


def _days(platform: Platform) -> str:
    days = platform.days
    if platform.population is not None and platform.population.draw != "none":
        return "drawn from the population"
    if days is None:
        return "not modelled: intervals are narrower than the spread of real runs"
    return f"differ by ± {percent(days.common_relative_sd)}, a CPU by ± {percent(days.cpu_relative_sd)} of its own (sd)"

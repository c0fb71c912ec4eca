"""A platform in words and small tables, for a person: on one screen, or all of it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import exp

from lepaute.kit.text import counted, duration, percent, quantity, seconds, significant, size_text
from lepaute.simulate.platform.components import COMPUTING
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.platform.group_summary import group_facts, sizes_and_rates
from lepaute.simulate.platform.kernel_model import UPDATE, KernelModel, mean_s, piece_of, value_of
from lepaute.simulate.platform.network_model import BusyReceiver, Loopback, Remote, Segment
from lepaute.simulate.platform.population import Population
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.topology import topology_lines
from lepaute.simulate.platform.values import Bounds, Polynomial


def one_line(platform: Platform) -> tuple[str, str, str]:
    """Nodes, cores of each, and the first sentence of the description."""
    facts = platform.facts_in_short()
    return str(facts["nodes"]), str(facts["cores"]), str(facts["description"])


def summary(platform: Platform) -> str:
    return "\n".join(_lines(platform))


def _lines(platform: Platform) -> Iterator[str]:
    nodes = platform.nodes
    yield f"{platform.name}   sha256 {platform.sha256}"
    if platform.description:
        yield platform.description.rstrip()
    if platform.source:
        yield f"source: {platform.source}"
    if platform.archive_id:
        yield f"archive: {platform.archive_id}"
    for assumption in platform.assumed or ():
        yield f"assumed: {assumption.text}" + (f": {assumption.source}" if assumption.source else "")
    if platform.blas is not None:
        setting = platform.blas.coretype_env
        yield f"BLAS kernels: {platform.blas.core}" + (f" (OPENBLAS_CORETYPE={setting})" if setting else "")
    yield ""
    memory = "" if nodes.memory_bytes is None else f", {significant(nodes.memory_bytes / 2**30, 4)} GiB each"
    peak = nodes.peak_flops_per_core
    sockets = "" if nodes.sockets is None else f" in {counted(nodes.sockets, 'socket')}"
    yield (
        f"nodes     {nodes.count} (numbers {nodes.first_number} to {nodes.first_number + nodes.count - 1}), "
        f"{nodes.cores} cores on {nodes.cpus} CPUs ({nodes.core_to_cpu}){sockets}{memory}"
        + ("" if peak is None else f", peak {significant(peak / 1e9, 4)} Gflop/s a core")
    )
    for name, text in group_facts(platform):
        yield f"{name:<9} {text}"
    yield "kernels   duration of a call, in seconds"
    for model in platform.kernels:
        yield from _kernel(model)
    yield from _network(platform)
    yield from _days(platform)
    if (sentinel := platform.sentinel) is not None:
        yield (
            f"sentinel  dgemm({sentinel.m}, {sentinel.n}, {sentinel.k}) on all cores: "
            f"{significant(sentinel.gflops, 4)} Gflop/s a core, standard error {_percent(sentinel.relative_error)}, "
            f"until {sentinel.ended}"
        )
    if (slow := platform.slow_state) is not None:
        yield f"slow      {slow.text}" + (f": {slow.source}" if slow.source else "")
    if platform.population is not None:
        yield from _population(platform.population)
    if platform.power is not None:
        power = platform.power
        yield (
            f"power     {quantity(power.idle_W, 'W')} a node idle, {quantity(power.computing_W, 'W')} computing, "
            f"{quantity(power.communicating_W, 'W')} communicating"
        )


def _percent(share: float) -> str:
    """With two decimals: of what a model is wrong by."""
    return f"{100.0 * share:.2f} %"


def _days(platform: Platform) -> Iterator[str]:
    days = platform.days
    if platform.population is not None and platform.population.draw != "none":
        yield "days      drawn from the population"
    elif days is None:
        yield "days      not modelled: intervals are narrower than the spread of real runs"
    else:
        run = "" if days.run_relative_sd is None else f", {_percent(days.run_relative_sd)} a run"
        of_run = days.run_degrees_of_freedom if days.run_relative_sd is not None else None
        freedom = [days.degrees_of_freedom, of_run, days.cpu_degrees_of_freedom]
        numbers = [str(number) for number in freedom if number is not None]
        yield (
            f"days      sd {_percent(days.common_relative_sd)} common{run}, {_percent(days.cpu_relative_sd)} a cpu "
            f"({numbers[0] if len(set(numbers)) == 1 else ', '.join(numbers)} degrees of freedom)"
        )
        if days.source:
            yield f"          {days.source}"
        if days.drift is not None:
            later = (("10 min", 600.0), ("1 h", 3600.0), ("1 day", 86400.0))
            grown = ", ".join(
                f"{_percent(days.at_lag(lag_s).common_relative_sd)} after {name}" for name, lag_s in later
            )
            yield f"          drift: common sd {grown} (measured over {duration(days.drift.span_s)})"


def _population(population: Population) -> Iterator[str]:
    drawn = {"none": "nothing", "days": "a day", "nodes-and-days": "all nodes and a day"}[population.draw]
    yield f"population of {population.kernel}: each run draws {drawn}"
    for number, group in enumerate(population.groups):
        if len(population.groups) > 1:
            yield f"  group {number}, {100.0 * group.weight:.1f} % of the nodes"
        temporal = group.covariance_temporal or population.covariance_temporal
        log_scale = group.covariance_log_scale or population.covariance_log_scale
        common = population.covariance_common
        for at, (term, mean) in enumerate(zip(population.terms, group.mean, strict=True)):
            days = temporal[at][at] + (0.0 if common is None else common[at][at])
            cpus, across = (significant(variance**0.5, 2) for variance in (group.covariance_spatial[at][at], days))
            line = f"  {term:<6} {significant(mean, 4)}; sd {cpus} between CPUs, {across} between days"
            if log_scale is not None and (log_sd := log_scale[at][at] ** 0.5) > 0.0:
                least, most = (significant(exp(log), 2) for log in (-log_sd, log_sd))
                line += f", its own part times {least} to {most} for two thirds of the CPUs"
            yield line
    if population.source:
        yield f"  {population.source}"


def _kernel(model: KernelModel) -> Iterator[str]:
    threads = "" if model.threads == 1 else f" x{model.threads}"
    for position, piece in enumerate(model.pieces):
        name = f"{model.kernel}{threads}" if not position else ""
        where = "" if not piece.where else f" where {_bounds(piece.where)}"
        units = "sockets" if piece.per_cpu is not None and piece.per_cpu.by_socket else "CPUs"
        cpus = "" if piece.per_cpu is None else f"; {len(piece.per_cpu.rows)} {units} have their own"
        noise = "" if piece.noise.kind == "none" else f"; sd {_polynomial(piece.noise.sd)}, {piece.noise.kind}"
        fitted = "" if not piece.range else f"; fitted for {_bounds(piece.range)}"
        own = (
            ""
            if piece.discrepancy_relative_sd is None
            else f"; error of its own {_percent(piece.discrepancy_relative_sd)}"
        )
        yield f"  {name:<10} {_polynomial(piece.mean)}{where}{noise}{cpus}{fitted}{own}"
    if model.crowding_table:
        shares = ((100.0 * share, 100.0 * increase) for share, increase in model.crowding_table)
        rows = (
            f"{increase:+.1f} % when {'all' if share == 100.0 else f'{share:.0f} %'} of the others compute"
            for share, increase in shares
        )
        error = model.crowding_relative_sd
        yield f"  {'':<10} {', '.join(rows)}" + ("" if not error else f"; error alone {_percent(error)}")
    if model.discrepancy_relative_sd:
        source = model.discrepancy_source or "on calls not used in the fit"
        yield f"  {'':<10} error {_percent(model.discrepancy_relative_sd)}: {source}"


def _polynomial(polynomial: Polynomial) -> str:
    terms = [f"{significant(value, 4)}" + ("" if term == "1" else f" {term}") for term, value in polynomial.items()]
    return " + ".join(terms).replace("+ -", "- ")


def _bounds(bounds: Bounds) -> str:
    return ", ".join(f"{low} <= {letter} <= {high}" for letter, (low, high) in bounds.items())


def _network(platform: Platform) -> Iterator[str]:
    network = platform.network
    bandwidth = quantity(network.node_link.bandwidth_Bps / 1e9, "GB/s")
    yield f"network   {bandwidth} a node; flow_factor {network.flow_factor}"
    first, *more = topology_lines(platform.topology)
    yield f"  topology      {first}"
    yield from (f"                {line}" for line in more)
    yield "  between nodes     protocol     latency        flow        send at 0   receive at 0"
    yield from _links(network.remote)
    sharing = "shared" if network.loopback.shared else "not shared"
    yield f"  inside a node, {significant(network.loopback.bandwidth_Bps / 1e9, 4)} GB/s, {sharing}"
    if network.loopback.segments is None:
        yield "    as between nodes"
    else:
        yield from _links(network.loopback)
    costs = {name: seconds(getattr(network.costs, f"{name}_s")) for name in ("iprobe", "test", "wtime")}
    yield f"  MPI_Iprobe {costs['iprobe']}, MPI_Test {costs['test']}, MPI_Wtime {costs['wtime']}"


def _links(links: Remote | Loopback | BusyReceiver) -> Iterator[str]:
    yield from map(_segment, links.segments or ())
    if links.range_bytes is not None:
        yield f"    fitted to {links.range_bytes[0]} to {links.range_bytes[1]} B"
    if links.discrepancy_relative_sd:
        yield f"    error {percent(links.discrepancy_relative_sd)} (a standard deviation), drawn once a run"
    if links.overhead_relative_sd is not None:
        yield f"    error of overheads {percent(links.overhead_relative_sd)}, drawn once a run"
    if not isinstance(links, BusyReceiver) and links.busy is not None:
        yield "    to a rank that computes between its probes, from the probe on:"
        yield from _links(links.busy)


def _segment(segment: Segment) -> str:
    modes = "" if segment.noise is None else f"; {counted(len(segment.noise.modes), 'mode')}"
    latency, send, receive = (significant(1e6 * s, 4) for s in (segment.latency_s, segment.send[0], segment.receive[0]))
    return (
        f"  > {segment.above_bytes:>11} B  {segment.protocol:<10} {latency:>8} µs "
        f"{significant(segment.bandwidth_Bps / 1e9, 4):>8} GB/s {send:>8} µs {receive:>9} µs{modes}"
    )


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
    if platform.groups is not None and rate is not None:
        return f"{platform.name}: {sizes_and_rates(platform)}"
    speed = NO_SPEED if rate is None else f"{quantity(rate / 1e9, 'Gflop/s')} a core in dgemm"
    return f"{platform.name}: {counted(nodes.count, 'node')} of {counted(nodes.cores, 'core')}, {speed}"


def facts(platform: Platform) -> list[tuple[str, str]]:
    """Name and text of each fact: fewer than 20 lines of 80 columns together."""
    width = quantity(platform.network.node_link.bandwidth_Bps / 1e9, "GB/s")
    rows = [
        ("what", (platform.description or "").partition(". ")[0].partition(": ")[0].strip().rstrip(".")),
        ("assumed", _assumed(platform)),
        *(group_facts(platform) if platform.groups else (("nodes", _nodes(platform)), ("dgemm", _dgemm(platform)))),
        ("kernels", _kernels(platform)),
        ("between nodes", _messages(platform.network.remote.segments)),
        ("inside a node", _messages(platform.network.loopback.segments) or "as between nodes"),
        ("network", f"{next(topology_lines(platform.topology))}, {width} a node"),
        ("sizes", _sizes(platform)),
        ("days", _days_briefly(platform)),
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
    if changes := [after for before, after in pairwise(segments) if before.protocol != after.protocol]:
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


def _days_briefly(platform: Platform) -> str:
    days = platform.days
    if platform.population is not None and platform.population.draw != "none":
        return "drawn from the population"
    if days is None:
        return "not modelled: intervals are narrower than the spread of real runs"
    return f"standard deviation {percent(days.common_relative_sd)}; of a CPU's own {percent(days.cpu_relative_sd)}"

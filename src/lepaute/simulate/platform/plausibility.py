"""Values that a platform file may have and no machine has: a rate in the place of seconds, bits for bytes, per cents.

Bounds are wide: from a slow embedded core to an accelerator that counts as one core, from a shared-memory copy to a
network across continents. What is outside of them is a slip of the unit, most of the time.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from lepaute.simulate.platform.kernel_model import UPDATE, VARIANTS, KernelModel, mean_s, models_of, piece_of, value_of
from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.nodes import Nodes, Power
from lepaute.simulate.platform.schema import Platform

#: Operations of a call with m·n·k = 1, of kernels whose cost is one of computing.
_FLOPS = {"dgemm": 2.0, "dgemm_nn": 2.0, "dtrsm": 1.0, "dtrsm_left": 1.0}
_CORE_FLOPS = (1e8, 2e14)
#: The fastest core of a processor has 0.16 Tflop/s; what is faster is an accelerator, of which a node has few.
_CORE_OF_MANY_FLOPS, _MANY_CORES = 5e11, 16
#: What is above the nominal rate by less than this is a clock above the nominal one.
_ABOVE_PEAK = 1.3
_ELEMENT_S = (1e-14, 1e-6)
_CALL_S = (1e-9, 1e-2)
#: A call whose size is that of a block of HPL.
_BLOCK = (256, 256, 256)
_MESSAGE_S = (3e-8, 1e-3)
_BANDWIDTH_BPS = (1e5, 1e13)
_LINK_BPS = 4e11
_OVERHEAD_S, _OVERHEAD_S_PER_BYTE = 1e-3, 1e-7
_CORE_MEMORY_BYTES, _NODE_MEMORY_BYTES = 1 << 24, 1e14
_NODE_W = (1.0, 1e6)
_SPREAD_OF_KERNELS = 2.0
_SPREAD = 1.0
_SLOW_SHARE, _SLOW_FACTOR = 0.5, 20.0
_MAX_ROWS = 2000
#: What spreads beyond measure mean in a platform that was fitted: nobody mistook a unit.
POOR_FIT = "the calibration was disturbed or too short (--quick): calibrate again on an idle machine"


def assumed_values(platform: Platform) -> list[str]:
    """One sentence that names what nobody measured; none where all was."""
    assumed = ", ".join(each.text for each in platform.assumed or ())
    return [f"assumed, not measured: {assumed}; a calibration replaces these"] if assumed else []


def implausible(platform: Platform) -> list[str]:
    """Sentences on values that no machine has: field, what was found, what is usual, what was probably meant."""
    sentences: dict[str, str] = {}  # each once, of the first group that has it
    for place, part in enumerate(platform.parts):
        where = "" if platform.groups is None else f"groups.{platform.groups[place].name}: "
        odd = [*_nodes(part.nodes), *_power(part.power)]
        for position, model in enumerate(part.kernels):
            odd += _kernel(model, f"kernels[{position}] ({model.kernel})", part)
        for sentence in odd:
            sentences.setdefault(sentence, where)
    return [*(where + sentence for sentence, where in sentences.items()), *_network(platform), *_spreads(platform)]


def _is_fitted(platform: Platform) -> bool:
    """Whether measurements, and nobody's hand, gave the platform its numbers."""
    return platform.archive_id is not None


def unmodelled(platform: Platform, kernels: Iterable[str]) -> list[str]:
    """Sentences on those of `kernels` that the platform has no model for, and on those that cost nothing in it."""
    kernels, sentences = list(kernels), []
    for threads in sorted({model.threads for model in platform.kernels}) or [1]:
        modelled = models_of(platform.kernels, kernels, threads)
        several = f" with {threads} threads" if threads > 1 else ""
        missing = without_model(platform, kernels, threads)
        free = [kernel for kernel, model in modelled.items() if _is_free(model) and kernel not in VARIANTS]
        if missing:
            others = sorted({model.kernel for model in platform.kernels} - set(kernels))
            names = [
                f"{name} (is {near[0]} meant for it?)" if (near := get_close_matches(name, others, 1, 0.8)) else name
                for name in missing
            ]
            problem = "that have no model, and cost nothing"
            zero = f"; others have mean 0: {', '.join(free)}" if free else ""
            sentences.append(f"kernels: HPL calls some{several} {problem}: {', '.join(names)}{zero}")
        elif free:
            sentences.append(f"kernels: HPL calls some{several} whose mean is 0: {', '.join(free)}")
    return sentences


def without_model(platform: Platform, kernels: Iterable[str], threads: int) -> list[str]:
    """Kernels of `kernels` without a model in the platform, for ranks of this many threads."""
    kernels = list(kernels)
    modelled = models_of(platform.kernels, kernels, threads)
    return [kernel for kernel in kernels if kernel not in modelled]


def _is_free(model: KernelModel) -> bool:
    return not any(value for piece in model.pieces for value in piece.mean.values())


def _nodes(nodes: Nodes) -> Iterator[str]:
    peak = nodes.peak_flops_per_core
    low, high = _CORE_FLOPS
    if peak is not None and not low <= peak <= 10.0 * high:
        yield f"nodes.peak_flops_per_core is {peak:.3g} flop/s; a core has {low:.0e} to {10 * high:.0e}: 45e9, not 45"
    elif peak is not None and peak > _CORE_OF_MANY_FLOPS and nodes.cores > _MANY_CORES:
        yield (
            f"nodes.peak_flops_per_core is {peak:.3g} flop/s, of one core: {peak * nodes.cores / 1e12:.3g} Tflop/s for "
            f"the {nodes.cores} cores of a node; is it that of a node, or of a processor?"
        )
    memory = nodes.memory_bytes
    if memory is not None and not _CORE_MEMORY_BYTES * nodes.cores <= memory <= _NODE_MEMORY_BYTES:
        yield f"nodes.memory_bytes is {memory}: {memory / 2**30:.3g} GiB a node; it is in bytes, such as 206158430208"


def _kernel(model: KernelModel, where: str, platform: Platform) -> Iterator[str]:
    if _is_free(model):
        return
    odd = list(_rates(model, where, platform) if model.kernel in _FLOPS else _durations(model, where))
    yield from odd
    duration_s = mean_s(model, *UPDATE)
    sd_s = value_of(piece_of(model, *UPDATE).noise.sd, *UPDATE)
    if not odd and duration_s > 0.0 and sd_s > 3.0 * duration_s:
        meant = POOR_FIT if _is_fitted(platform) else "noise.sd is in seconds, not in per cent"
        yield f"{where}: its noise has {sd_s / duration_s:.3g} times its mean; {meant}"


def _rates(model: KernelModel, where: str, platform: Platform) -> Iterator[str]:
    m, n, k = UPDATE
    call = f"{model.kernel}({m}, {n}, {k})"
    piece = piece_of(model, m, n, k)
    durations_s = [mean_s(model, m, n, k)]
    if piece.per_cpu is not None:
        terms = piece.per_cpu.mean_terms
        rows = piece.per_cpu.rows[:_MAX_ROWS]
        durations_s += [value_of(dict(zip(terms, row[2:], strict=False)), m, n, k) for row in rows]
    if min(durations_s) <= 0.0:
        yield f"{where}: {call} takes {min(durations_s):.3g} s; a duration is above 0"
        return
    operations = _FLOPS[model.kernel] * m * n * k / model.threads
    slowest, fastest = operations / max(durations_s), operations / min(durations_s)
    low, high = _CORE_FLOPS
    if slowest < low or fastest > high:
        rate = slowest if slowest < low else fastest
        yield (
            f"{where}: {call} at {rate:.3g} flop/s a core; a core does {low:.0e} to {high:.0e}: coefficients are "
            "seconds per m·n·k, not rates"
        )
        return
    peak, many = platform.nodes.peak_flops_per_core, platform.nodes.cores > _MANY_CORES
    if peak is None and fastest > _CORE_OF_MANY_FLOPS and many and model.kernel == "dgemm":
        yield f"{where}: {call} at {fastest:.3g} flop/s a core; is that of a node, or of a processor?"
    if peak is None or not low <= peak:
        return
    if fastest > _ABOVE_PEAK * peak:
        yield f"{where}: {call} at {fastest:.3g} flop/s a core is {fastest / peak:.3g} times nodes.peak_flops_per_core"
    elif model.kernel == "dgemm" and slowest < 0.02 * peak:
        yield f"{where}: {call} at {slowest:.3g} flop/s a core is {slowest / peak:.1%} of nodes.peak_flops_per_core"


def _durations(model: KernelModel, where: str) -> Iterator[str]:
    duration_s = mean_s(model, *_BLOCK)
    terms = [term for term, value in piece_of(model, *_BLOCK).mean.items() if value]
    size = _BLOCK[0] ** max((len(term) for term in terms if term != "1"), default=0)
    low, high = _CALL_S if size == 1 else _ELEMENT_S
    each_s = duration_s / size
    # A duration of 0 or less may be of a call that the model was not fitted to.
    outside = any(not least <= _BLOCK[0] <= most for least, most in (piece_of(model, *_BLOCK).range or {}).values())
    if not low <= each_s <= high and not (duration_s <= 0.0 and outside):
        unit = "a call" if size == 1 else "an element"
        yield f"{where}: {each_s:.3g} s {unit}; {low:.0e} to {high:.0e} s are usual: coefficients are seconds per term"


def _network(platform: Platform) -> Iterator[str]:
    network = platform.network
    link_Bps = network.node_link.bandwidth_Bps
    if not _BANDWIDTH_BPS[0] <= link_Bps or (platform.nodes.count > 1 and link_Bps > _LINK_BPS):
        yield (
            f"network.node_link.bandwidth_Bps is {link_Bps:.3g}; a link has {_BANDWIDTH_BPS[0]:.0e} to {_LINK_BPS:.0e} "
            "bytes a second: 12.5e9 for 100 Gb/s"
        )
    for name, links in (("remote", network.remote), ("loopback", network.loopback)):
        for position, segment in enumerate(links.segments or ()):
            yield from _segment(segment, f"network.{name}.segments[{position}]")
    last = network.remote.segments[-1].bandwidth_Bps
    if platform.nodes.count > 1 and last > 1.05 * link_Bps >= _BANDWIDTH_BPS[0]:
        yield (
            f"network.remote.segments: a long message has {last:.3g} B/s, the link of its node {link_Bps:.3g} B/s "
            "(network.node_link)"
        )
    for name in ("iprobe_s", "test_s", "wtime_s"):
        if (cost_s := getattr(network.costs, name)) > _OVERHEAD_S:
            yield f"network.costs.{name} is {cost_s:.3g} s; such a call takes less than {_OVERHEAD_S:.0e} s"


def _segment(segment: Segment, where: str) -> Iterator[str]:
    low, high = _MESSAGE_S
    small_s = segment.latency_s + segment.send[0] + segment.receive[0]
    if segment.latency_s > max(high, 10.0 * segment.above_bytes / segment.bandwidth_Bps):
        yield f"{where}.latency_s is {segment.latency_s:.3g} s; up to {high:.0e} s are usual: 1.5e-6 for 1.5 µs"
    elif segment.above_bytes == 0 and small_s < low:
        yield f"{where}: 0 bytes take {small_s:.3g} s (send, latency, receive); at least {low:.0e} s are usual"
    if not _BANDWIDTH_BPS[0] <= segment.bandwidth_Bps <= _BANDWIDTH_BPS[1]:
        bounds = f"{_BANDWIDTH_BPS[0]:.0e} to {_BANDWIDTH_BPS[1]:.0e}"
        yield f"{where}.bandwidth_Bps is {segment.bandwidth_Bps:.3g}; {bounds} bytes a second are usual: 12.5e9"
    for name in ("send", "isend", "receive"):
        call_s, byte_s = getattr(segment, name)
        if call_s > _OVERHEAD_S or byte_s > _OVERHEAD_S_PER_BYTE:
            yield (
                f"{where}.{name} is [{call_s:.3g}, {byte_s:.3g}]; less than {_OVERHEAD_S:.0e} s and "
                f"{_OVERHEAD_S_PER_BYTE:.0e} s a byte are usual"
            )


def _spreads(platform: Platform) -> Iterator[str]:
    """Standard deviations in per cent, and powers in kilowatts."""
    spreads = {
        f"kernels[{position}] ({model.kernel}): discrepancy_relative_sd": model.discrepancy_relative_sd
        for position, model in enumerate(platform.kernels)
    }
    network, days = platform.network, platform.days
    for name, links in (("remote", network.remote), ("loopback", network.loopback)):
        for field in ("discrepancy_relative_sd", "overhead_relative_sd"):
            spreads[f"network.{name}.{field}"] = getattr(links, field) or 0.0
    for name in ("common_relative_sd", "cpu_relative_sd", "run_relative_sd") if days is not None else ():
        spreads[f"days.{name}"] = getattr(days, name) or 0.0
    for field, spread in spreads.items():
        # The model of a kernel of some calls of a microsecond may be wrong by its own size.
        if spread > _SPREAD and not (field.startswith("kernels") and spread < _SPREAD_OF_KERNELS):
            yield f"{field} is {spread:.3g}; {POOR_FIT if _is_fitted(platform) else 'it is a fraction, 0.02 for 2 %'}"
    slow = platform.slow_state
    if slow is not None and (slow.share >= _SLOW_SHARE or slow.factor >= _SLOW_FACTOR):
        yield (
            f"slow_state has share {slow.share:.3g} and factor {slow.factor:.3g}; less than {_SLOW_SHARE:g} of the "
            f"time and {_SLOW_FACTOR:g} times as long are usual: 0.08 for 8 %, 1.75 for 75 % longer"
        )


def _power(power: Power | None) -> Iterator[str]:
    if power is not None and not _NODE_W[0] <= power.computing_W <= _NODE_W[1]:
        yield f"power.computing_W is {power.computing_W:.3g}; a node draws {_NODE_W[0]:g} to {_NODE_W[1]:.0e} W"

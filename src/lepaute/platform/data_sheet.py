"""A platform from what a data sheet says: few numbers are given, the rest is guessed, and each guess has an error.

All constants below were chosen before any prediction with them was compared with a real run (docs/accuracy.md has what
came out). A standard deviation is of the logarithm, drawn once a run.
"""

import math
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lepaute.errors import InputError
from lepaute.kit.text import quantity, three_digits
from lepaute.platform.io import load_platform
from lepaute.platform.kernel_model import UPDATE, KernelModel, Noise, Piece, mean_s
from lepaute.platform.schema import Platform

#: The platform whose dgemm lends its shape: how much longer per operation small and narrow calls take.
SHAPE = "dahu"
#: Of a given dgemm: HPL has other block sizes and shapes (Dahu: 7 % between k = 128 and 256), and other nodes.
GIVEN_DGEMM_SD = 0.05
#: Share of the nominal peak that dgemm reaches, and its error: 49 % on Dahu's cores (AVX2 kernels on AVX-512 cores),
#: 74 to 90 % on others.
SHARE_OF_PEAK, SHARE_OF_PEAK_SD = 0.75, 0.2
#: Messages between nodes: a flow alone, as a share of the nominal bandwidth (79 % on Stampede, 99 % on Dahu), and the
#: error of latencies and transfers together; with an unknown latency.
SHARE_OF_LINK, REMOTE_SD = 0.95, 0.25
LATENCY_S, REMOTE_SD_WITHOUT_LATENCY = 2e-6, 0.4
#: Messages inside a node: one flow (18 GB/s on Dahu, 4.5 GB/s on a virtual machine), half a round trip, error.
LOOPBACK_BPS, LOOPBACK_LATENCY_S, LOOPBACK_SD = 8e9, 6e-7, 0.5
#: Messages that find their receiver computing: a quarter of the bandwidth on Dahu, all of it on a virtual machine.
BUSY_SHARE, BUSY_SD = 0.5, 0.5
#: Shares of the latency (half a round trip) that are the sender's, the link's and the receiver's.
OF_SENDER, OF_LINK, OF_RECEIVER = 0.2, 0.5, 0.3
#: Copies of eager messages, on both sides, in seconds per byte; above the threshold, a handshake of some latencies.
COPY_S_PER_BYTE = 1e-10
EAGER_BYTES = 16384
HANDSHAKE = 4.0
#: Ranks of several threads: the share of so many cores' rate that dgemm and dtrsm reach on them, and its error, on top
#: of that of one core. HPL's own loops, such as row swaps, and small BLAS calls run on one of the cores.
SHARE_OF_THREADS, THREADS_SD = 0.93, 0.05
#: A call of MPI_Iprobe or MPI_Test that finds nothing.
PROBE_S = 3e-7
#: Of days, and of CPUs among each other (Dahu: 0.7 % and 3.4 %).
DAY_SD, CPU_SD, FREEDOM = 0.01, 0.03, 20
#: Nodes of a leaf switch, at most.
MOST_OF_A_LEAF = 24
#: Of a kernel scaled by the speed of dgemm. Eleven kernels of Dahu's core, scaled to one of a virtual machine, which is
#: 2.3 times as fast, are off by 0.65 (root mean square over the calls of HPL; -1.9 to 0.2).
SCALED_RELATIVE_SD = 0.65
#: Of a kernel that was not measured there either, and is taken to cost what a kernel like it costs: four kernels of the
#: same two cores.
LIKENED_RELATIVE_SD = 0.88
#: Kernels of HPL, and those that touch memory as they do: an element of a matrix row is a cache line.
ALIKE = {
    "dtrsm_left": "dtrsm",
    "dger": "dgemv",
    "dcopy": "dlaswp01T",
    "dlocswp": "dlaswp01T",
    "dlaswp00N": "dlaswp01T",
    "dlaswp05T": "dlaswp04T",
    "dlaswp06T": "dlaswp01T",
    "dlaswp10N": "dlaswp01T",
}
#: Of these, the elements of a call are n, not m x n.
_OF_ONE_ROW = frozenset({"dcopy", "dlocswp"})


@dataclass(frozen=True, slots=True)
class DataSheet:
    """What is known of a machine. At least one of `dgemm_flops` and `peak_flops` is given.

    sockets, cores_per_socket : of a node
    dgemm_flops  : of one core in an update of HPL, while all cores compute
    peak_flops   : nominal, of one core
    link_Bps     : of a node, nominal; None for a single node
    latency_s    : of a small message between two nodes: half a round trip
    fat_tree     : (nodes, uplinks) of a leaf switch in lowest terms, such as (2, 1); None: one switch
    memory_Bps   : of STREAM's triad on all cores of a node
    threads      : of a rank; above 1 the platform is for ranks of one thread and for ranks of so many
    leaf         : nodes of a leaf switch; None: as many as divide the nodes, up to MOST_OF_A_LEAF
    """

    nodes: int
    sockets: int
    cores_per_socket: int
    dgemm_flops: float | None = None
    peak_flops: float | None = None
    link_Bps: float | None = None  # noqa: N815 - the unit
    latency_s: float | None = None
    fat_tree: tuple[int, int] | None = None
    leaf: int | None = None
    memory_bytes: int | None = None
    memory_Bps: float | None = None  # noqa: N815 - the unit
    threads: int = 1
    name: str = "data-sheet"


def platform_from(sheet: DataSheet, like: Platform) -> Platform:
    """The platform of a data sheet; `like` has the core that was measured, whose small kernels are scaled.

    Raises InputError for what cannot be: neither rate, no link between several nodes, a fat tree without a form; and
    PlatformError for a number that no platform has.
    """
    if sheet.nodes > 1 and sheet.link_Bps is None:
        raise InputError("several nodes need the bandwidth of their link: --link, such as 100Gb")
    if sheet.dgemm_flops is not None:
        flops, flops_sd, flops_from = sheet.dgemm_flops, GIVEN_DGEMM_SD, "given; other block sizes and nodes differ"
    elif sheet.peak_flops is not None:
        flops, flops_sd = SHARE_OF_PEAK * sheet.peak_flops, SHARE_OF_PEAK_SD
        flops_from = f"{100 * SHARE_OF_PEAK:.0f} % of the nominal peak"
    else:
        raise InputError("give the speed of a core: --dgemm, such as 45G, or its nominal --peak")
    rate = dgemm_rate(like)
    if rate is None:
        raise InputError(f"platform {like.name} has no dgemm for one thread, by which its kernels would be scaled")
    rates = f"from {three_digits(rate / 1e9)} to {three_digits(flops / 1e9)} Gflop/s"
    source = f"those of a core of {like.name}, scaled by dgemm {rates}"
    kernels = [
        _dgemm(load_platform(SHAPE), flops, flops_sd, flops_from),
        *scaled_kernels(like, rate / flops, f"assumed: {source}"),
    ]
    kernels += _of_threads(kernels, sheet.threads)
    topology, _ = _topology(sheet)
    content = {
        "name": sheet.name,
        "description": f"From a data sheet: nothing was measured on it. Given: {', '.join(what_is_given(sheet))}.\n"
        "The rest is assumed, see `assumed`.\n",
        "source": "lepaute platform new: a data sheet; nothing was measured",
        "assumed": _assumed(sheet, flops, flops_sd, flops_from, source),
        "nodes": {
            "count": sheet.nodes,
            "cores": sheet.sockets * sheet.cores_per_socket,
            "cpus": sheet.sockets,
            "core_to_cpu": "block",
            "sockets": sheet.sockets,
            "memory_bytes": sheet.memory_bytes,
            "memory_bandwidth_Bps": sheet.memory_Bps,
            "peak_flops_per_core": sheet.peak_flops,
        },
        "kernels": [kernel.model_dump() for kernel in kernels],
        "network": _network(sheet),
        "topology": topology,
        "days": {
            "common_relative_sd": DAY_SD,
            "cpu_relative_sd": CPU_SD,
            "degrees_of_freedom": FREEDOM,
            "source": "assumed, about as on Dahu: 0.7 % between days, 3.4 % between CPUs",
        },
    }
    try:
        return Platform.model_validate(content)
    except ValidationError as error:
        from lepaute.platform.faults import described

        raise described(error, content, None, "data sheet") from None


def _dgemm(shape: Platform, flops: float, relative_sd: float, source: str) -> KernelModel:
    """dgemm of `flops` in UPDATE; other calls take as much longer per operation as on `shape`."""
    model = shape.kernel("dgemm")
    assert model is not None
    last = model.model_copy(update={"pieces": model.pieces[-1:]})
    m, n, k = UPDATE
    factor = 2.0 * m * n * k / flops / mean_s(last, m, n, k)
    rate = f"{three_digits(flops / 1e9)} Gflop/s"
    return scaled(last, factor, relative_sd, f"{rate} {source}; its form is that of {shape.name}")


def _of_threads(kernels: list[KernelModel], threads: int) -> list[KernelModel]:
    """dgemm and dtrsm of ranks with so many threads; whatever is not here takes the model of one thread."""
    if threads == 1:
        return []
    source = f"{100 * SHARE_OF_THREADS:.0f} % of the rate of {threads} cores"
    models = []
    for model in kernels:
        if model.kernel not in ("dgemm", "dtrsm", "dtrsm_left"):
            continue
        relative_sd = round(math.hypot(model.discrepancy_relative_sd, THREADS_SD), 4)
        factor = 1.0 / (threads * SHARE_OF_THREADS)
        several = scaled(model, factor, relative_sd, f"{model.discrepancy_source}; {source}")
        models.append(several.model_copy(update={"threads": threads}))
    return models


def _network(sheet: DataSheet) -> dict[str, Any]:
    inside = _segments(LOOPBACK_LATENCY_S, LOOPBACK_BPS)
    loopback: dict[str, Any] = {
        "bandwidth_Bps": LOOPBACK_BPS,
        "segments": inside,
        "discrepancy_relative_sd": LOOPBACK_SD,
        "busy": _busy(inside),
    }
    link_Bps = sheet.link_Bps or LOOPBACK_BPS
    latency_s = LATENCY_S if sheet.latency_s is None else sheet.latency_s
    between = _segments(latency_s, SHARE_OF_LINK * link_Bps)
    return {
        "node_link": {"bandwidth_Bps": link_Bps},
        "loopback": loopback,
        "remote": {"segments": between, "discrepancy_relative_sd": _remote_sd(sheet), "busy": _busy(between)},
        "costs": {"iprobe_s": PROBE_S, "test_s": PROBE_S},
    }


def _remote_sd(sheet: DataSheet) -> float:
    return REMOTE_SD_WITHOUT_LATENCY if sheet.latency_s is None else REMOTE_SD


def _segments(latency_s: float, bandwidth_Bps: float) -> list[dict[str, Any]]:
    sender_s, receiver_s = OF_SENDER * latency_s, OF_RECEIVER * latency_s
    return [
        {
            "above_bytes": 0,
            "protocol": "eager",
            "latency_s": OF_LINK * latency_s,
            "bandwidth_Bps": bandwidth_Bps,
            "send": (sender_s, COPY_S_PER_BYTE),
            "isend": (sender_s, COPY_S_PER_BYTE),
            "receive": (receiver_s, COPY_S_PER_BYTE),
        },
        {
            "above_bytes": EAGER_BYTES,
            "protocol": "rendezvous",
            "latency_s": HANDSHAKE * latency_s,
            "bandwidth_Bps": bandwidth_Bps,
            "isend": (sender_s, 0.0),
        },
    ]


def _busy(segments: list[dict[str, Any]]) -> dict[str, Any]:
    slower = [
        segment
        | ({"bandwidth_Bps": BUSY_SHARE * segment["bandwidth_Bps"]} if segment["protocol"] == "rendezvous" else {})
        for segment in segments
    ]
    return {"segments": slower, "discrepancy_relative_sd": BUSY_SD}


def _topology(sheet: DataSheet) -> tuple[dict[str, Any], str]:
    """The topology, and what to say of it."""
    if sheet.fat_tree is None:
        return {"kind": "switch"}, "one switch"
    down, up = sheet.fat_tree
    sizes = [size for size in range(down, min(sheet.nodes // 2, MOST_OF_A_LEAF) + 1, down) if sheet.nodes % size == 0]
    if sheet.leaf is not None:
        sizes = [sheet.leaf] if sheet.nodes % sheet.leaf == 0 and sheet.leaf % down == 0 else []
    if not sizes:
        raise InputError(
            f"{sheet.nodes} nodes have no fat tree {down}:{up}"
            + (f" with leaf switches of {sheet.leaf} nodes" if sheet.leaf else "")
            + f": a leaf switch has a multiple of {down} nodes that divides all of them; choose --leaf, or more --nodes"
        )
    leaf = sizes[-1]
    uplinks = leaf // down * up
    text = f"a fat tree of {sheet.nodes // leaf} leaf switches with {leaf} nodes and {uplinks} uplinks each"
    return {"kind": "fat-tree", "parameters": f"2;{leaf},{sheet.nodes // leaf};1,{uplinks};1,1"}, text


def _assumed(
    sheet: DataSheet, flops: float, flops_sd: float, flops_from: str, scaled_from: str
) -> list[dict[str, Any]]:
    likened = f"those not measured there either as others (sd {100 * LIKENED_RELATIVE_SD:.0f} %)"
    inside = f"{LOOPBACK_BPS / 1e9:g} GB/s and {LOOPBACK_LATENCY_S * 1e6:g} us, on Dahu 18 GB/s"
    latency = "the given latency" if sheet.latency_s is not None else f"{LATENCY_S * 1e6:g} us"
    between = f"{100 * SHARE_OF_LINK:.0f} % of the link, {latency}, eager up to {EAGER_BYTES} bytes"
    threads = f"dgemm and dtrsm at {100 * SHARE_OF_THREADS:.0f} % of the rate of {sheet.threads} cores"
    busy = f"{100 * BUSY_SHARE:.0f} % of the bandwidth of others; 20 % on Dahu, 100 % on a virtual machine"
    rows = [
        (f"dgemm at {three_digits(flops / 1e9)} Gflop/s a core", flops_sd, flops_from),
        ("all other kernels", SCALED_RELATIVE_SD, f"{scaled_from}; {likened}"),
        ("messages inside nodes", LOOPBACK_SD, inside),
        *([("messages between nodes", _remote_sd(sheet), between)] if sheet.nodes > 1 else []),
        *(
            [(f"{sheet.threads} threads a rank", THREADS_SD, f"{threads}, all other kernels on one of them")]
            if sheet.threads > 1
            else []
        ),
        ("messages to ranks that compute", BUSY_SD, busy),
        ("differences between CPUs", CPU_SD, "3.4 % on Dahu"),
        ("differences between days", DAY_SD, "0.7 % on Dahu"),
    ]
    return [dict(zip(("what", "relative_sd", "source"), row, strict=True)) for row in rows]


def what_is_given(sheet: DataSheet) -> list[str]:
    """What a data sheet says, in words; the form of a fat tree is completed."""
    given = [f"{sheet.nodes} nodes of {sheet.sockets} x {sheet.cores_per_socket} cores", _topology(sheet)[1]]
    cores = sheet.sockets * sheet.cores_per_socket
    for what, flops in (("dgemm", sheet.dgemm_flops), ("peak", sheet.peak_flops)):
        if flops is not None:
            one, node, whole = (quantity(count * flops / 1e9, "Gflop/s") for count in (1, cores, cores * sheet.nodes))
            given.append(f"{what} {one} a core ({node} a node, {whole} in all)")
    if sheet.link_Bps is not None:
        given.append(f"link {sheet.link_Bps / 1e9:.4g} GB/s ({sheet.link_Bps / 1.25e8:.4g} Gb/s)")
    if sheet.latency_s is not None:
        given.append(f"latency {sheet.latency_s * 1e6:.4g} us")
    if sheet.memory_bytes is not None:
        given.append(f"{sheet.memory_bytes / 2**30:.4g} GiB a node")
    if sheet.memory_Bps is not None:
        given.append(f"its memory {sheet.memory_Bps / 1e9:.4g} GB/s")
    return given


# ---- kernels that nobody measured on a core, scaled from another core by the speed of dgemm --------------------------


def dgemm_rate(platform: Platform) -> float | None:
    """Flop/s of one core of `platform` in an update of HPL while all cores compute; None where it has no dgemm."""
    model = platform.kernel("dgemm")
    if model is None or (duration_s := mean_s(model, *UPDATE)) <= 0.0:
        return None
    m, n, k = UPDATE
    return 2.0 * m * n * k / duration_s


def scaled_kernels(like: Platform, factor: float, source: str) -> list[KernelModel]:
    """The kernels but dgemm of `like` with one thread, `factor` times as long; those it lacks are likened to others.

    source : where the speeds come from, for `discrepancy_source`
    """
    measured = {
        model.kernel: model
        for model in like.kernels
        if model.threads == 1 and any(value for piece in model.pieces for value in piece.mean.values())
    }
    models = [
        scaled(model, factor, SCALED_RELATIVE_SD, source)
        for name, model in measured.items()
        if name not in ("dgemm", "dgemm_nn")
    ]
    for name, other in ALIKE.items():
        if name not in measured and other in measured:
            model = scaled(measured[other], factor, LIKENED_RELATIVE_SD, f"{source}, which has no {name}: as {other}")
            models.append(_renamed(model, name))
    return models


def scaled(model: KernelModel, factor: float, relative_sd: float, source: str) -> KernelModel:
    """`model` with calls `factor` times as long, its error, and nothing that was fitted to calls of single CPUs."""

    def longer(polynomial: dict[str, float]) -> dict[str, float]:
        return {term: float(f"{value * factor:.7g}") for term, value in polynomial.items()}

    def part(piece: Piece) -> Piece:
        noise = piece.noise.model_copy(update={"sd": longer(piece.noise.sd)})
        dropped = dict.fromkeys(("covariance", "range", "ranges", "goodness", "per_cpu", "discrepancy_relative_sd"))
        return piece.model_copy(update={"mean": longer(piece.mean), "noise": noise, **dropped})

    error = {"discrepancy_relative_sd": relative_sd, "discrepancy_source": source}
    return model.model_copy(update={"pieces": tuple(map(part, model.pieces)), **error, "form": None})


def _renamed(model: KernelModel, name: str) -> KernelModel:
    """`model` as that of another kernel; of one row, an element costs what one of a matrix costs."""
    last = model.pieces[-1]
    if name not in _OF_ONE_ROW or "mn" not in last.mean:
        return model.model_copy(update={"kernel": name})
    piece = Piece(mean={"n": last.mean["mn"]}, noise=Noise())
    return model.model_copy(update={"kernel": name, "pieces": (piece,)})

"""A platform from what a data sheet says: few numbers are given, the rest is guessed, and each guess has an error.

All constants below were chosen before any prediction with them was compared with a real run (docs/evidence/models.md
has what came out). A standard deviation is of the logarithm, drawn once a run.
"""

import math
import re
from dataclasses import MISSING, dataclass
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.options import option_field
from lepaute.kit.quantities import bandwidth_of, flops_of, memory_of, product_of, ratio_of, seconds_of
from lepaute.kit.text import counted, exact_number, quantity
from lepaute.simulate.platform.guessed_messages import (
    BUSY_SD,
    BUSY_SHARE,
    FABRICS,
    LOOPBACK_BPS,
    LOOPBACK_LATENCY_S,
    LOOPBACK_SD,
    Link,
    guessed_network,
)
from lepaute.simulate.platform.io import load_platform
from lepaute.simulate.platform.kernel_model import LIKENED, ROW_KERNELS, UPDATE, KernelModel, Noise, Piece, mean_s
from lepaute.simulate.platform.nodes import refuse_groups
from lepaute.simulate.platform.schema import Platform

#: The platform whose dgemm lends its shape: how much longer per operation small and narrow calls take.
SHAPE = "dahu"
#: Error of a given dgemm: HPL has other block sizes and shapes (Dahu: 7 % between k = 128 and 256), and other nodes.
GIVEN_DGEMM_SD = 0.05
#: Share of the nominal peak that dgemm reaches, and its error: 49 % on Dahu's cores (AVX2 kernels on AVX-512 cores),
#: 74 to 90 % on others.
SHARE_OF_PEAK, SHARE_OF_PEAK_SD = 0.75, 0.2
#: Share of the nominal peak that dgemm reaches on all cores of a node, and its error, by library and by what the peak
#: counts: the base clock, that clock in AVX-512 of Intel's cores, or the clock that all cores hold ("turbo"). Fitted to
#: tests/data/published_dgemm.csv; how, and all else here: docs/design/decisions/data_sheets.md.
SHARES: dict[str | None, dict[str, tuple[float, float]]] = {
    "mkl": {"base": (1.0, 0.16), "avx512": (0.69, 0.15), "turbo": (0.86, 0.09)},
    "openblas": {"base": (0.8, 0.14), "avx512": (0.55, 0.15), "turbo": (0.8, 0.09)},
    "blis": {"base": (0.84, 0.17), "avx512": (0.58, 0.17), "turbo": (0.8, 0.09)},
    "aocl": {"base": (0.84, 0.17), "avx512": (0.58, 0.17), "turbo": (0.8, 0.09)},
    "none": dict.fromkeys(("base", "avx512", "turbo"), (0.1, 0.72)),
    None: {"base": (0.88, 0.2), "avx512": (0.6, 0.2), "turbo": (0.82, 0.1)},
}
LIBRARIES = tuple(library for library in SHARES if library is not None)
_SPELT = {"mkl": "MKL", "openblas": "OpenBLAS", "blis": "BLIS", "aocl": "AOCL", "none": "a library that is not tuned"}
#: Ranks of several threads: the share of so many cores' rate that dgemm and dtrsm reach on them, and its error, on top
#: of that of one core, by library; with a peak and one of these libraries, SHARES are of threads already.
THREADS: dict[str | None, tuple[float, float]] = {
    "mkl": (0.98, 0.03), "blis": (0.96, 0.05), "aocl": (0.96, 0.05), "openblas": (0.78, 0.19), None: (0.9, 0.13),
}  # fmt: skip
THREADS_OF_SHARES = (1.0, 0.05)
#: HPL's own loops, such as row swaps, and small BLAS calls run on one core of a rank; in the HPL of a vendor they have
#: threads, and are faster by as many cores of a socket as draw more from memory, with an error of their own.
WITH_OWN_HPL, CORES_OF_MEMORY, THREADED_SD = ("mkl", "aocl"), 5, 0.5
#: Standard deviation of days, and of CPUs among each other (Dahu: 0.7 % and 3.4 %).
DAY_SD, CPU_SD, FREEDOM = 0.01, 0.03, 20
#: Nodes of a leaf switch, at most.
MAX_OF_A_LEAF = 24
#: Of a kernel scaled by the speed of dgemm. Eleven kernels of Dahu's core, scaled to one of a virtual machine, which is
#: 2.3 times as fast, are off by 0.65 (root mean square over the calls of HPL; -1.9 to 0.2).
SCALED_RELATIVE_SD = 0.65
#: Of a kernel that was not measured there either, and is taken to cost what one like it does: of four kernels there.
LIKENED_RELATIVE_SD = 0.88
#: Kernels that a library makes of its dgemm.
OF_DGEMM = ("dtrsm", "dtrsm_left")
#: What a peak may count. AVX-512 slows Intel's cores down; of all others only the rate matters, which --peak has.
SIMDS = ("avx512", "avx2", "avx", "sse2", "neon", "sve", "other")
CLOCKS = ("base", "turbo")


def _cores_of(text: str, option: str) -> tuple[int, int]:
    """Sockets, and cores of each."""
    if re.fullmatch("[0-9]+(?:[xX][0-9]+)?", text, re.ASCII) is None:
        raise InputError(f"{option} is {text[:80]!r}; it must be sockets x cores such as 2x24, or cores such as 24")
    sockets, cores = product_of(text if "x" in text.lower() else f"1x{text}", option, "S x C such as 2x24")
    if min(sockets, cores) < 1:
        raise InputError(f"{option} is {text!r}; a node has at least one core")
    return sockets, cores


@dataclass(frozen=True, slots=True)
class DataSheet:
    """Data sheet of a machine. At least one of `dgemm_flops` and `peak_flops` is given.

    dgemm_flops  : of one core in an update of HPL, while all cores compute
    peak_flops   : nominal, of one core
    link_Bps     : of a node, nominal; None for a single node
    latency_s    : of a small message between two nodes: half a round trip
    fat_tree     : (nodes, uplinks) of a leaf switch in lowest terms, such as (2, 1); None: one switch
    memory_Bps   : of STREAM's triad on all cores of a node
    threads      : of a rank; above 1 the platform is for ranks of one thread and for ranks of this many
    leaf         : nodes of a leaf switch; None: as many as divide the nodes, up to MAX_OF_A_LEAF
    blas, simd, clock : of LIBRARIES, SIMDS, CLOCKS: what runs, and what the peak counts; None: not known
    fabric       : of FABRICS; None: what latency and bandwidth of the link tell
    """

    nodes: int = option_field(MISSING, "nodes of the cluster", minimum=1)
    sockets: int = option_field(
        MISSING, "sockets x cores of each, such as 2x24, or 24", name="cores", metavar="SxC", quantity=_cores_of
    )
    cores_per_socket: int = option_field(MISSING, "given with the sockets", name="cores")
    dgemm_flops: float | None = option_field(
        None,
        "flop/s of a core in dgemm while all compute, such as 45G",
        name="dgemm",
        metavar="RATE",
        quantity=flops_of,
    )
    peak_flops: float | None = option_field(
        None,
        "nominal flop/s of a core; without --dgemm, a share of it is assumed (75 %; by --blas, --simd, --clock)",
        name="peak",
        metavar="RATE",
        quantity=flops_of,
    )
    link_Bps: float | None = option_field(  # noqa: N815 - the unit
        None,
        "link of a node, such as 100Gb (bits) or 12.5GB (bytes)",
        name="link",
        metavar="RATE",
        quantity=bandwidth_of,
    )
    latency_s: float | None = option_field(
        None, "small message between nodes, half a round trip: 1.5us", metavar="TIME", quantity=seconds_of
    )
    fat_tree: tuple[int, int] | None = option_field(
        None, "nodes per uplink of a leaf switch: 2:1; without: one switch", metavar="DOWN:UP", quantity=ratio_of
    )
    leaf: int | None = option_field(None, "nodes of a leaf switch of the fat tree", minimum=1)
    memory_bytes: int | None = option_field(
        None, "of a node, such as 192G", name="memory", metavar="SIZE", quantity=memory_of
    )
    threads: int = option_field(
        1, "also for ranks of T threads, such as 32: guessed as well", name="threads-per-rank", minimum=1, metavar="T"
    )
    memory_Bps: float | None = option_field(  # noqa: N815 - the unit
        None,
        "of a node, all cores at once: 200GB; for emulations",
        name="memory-bandwidth",
        metavar="RATE",
        quantity=bandwidth_of,
    )
    blas: str | None = option_field(None, "library of dgemm; none: not tuned for the processor", choices=LIBRARIES)
    simd: str | None = option_field(None, "instructions that --peak counts", choices=SIMDS)
    clock: str | None = option_field(None, "clock that --peak counts; turbo: that which all cores hold", choices=CLOCKS)
    fabric: str | None = option_field(
        None, "between nodes, TCP over Ethernet or not; default: by latency and link", choices=FABRICS
    )
    name: str = option_field("", "of the platform; default: that of the file")

    def __post_init__(self) -> None:
        for name, words in (("blas", LIBRARIES), ("simd", SIMDS), ("clock", CLOCKS), ("fabric", FABRICS)):
            if (word := getattr(self, name)) is not None and word not in words:
                raise InputError(f"{name} is {str(word)[:80]!r}; it must be one of {', '.join(words)}")
        if self.peak_flops is None and (self.simd or self.clock):
            raise InputError("--simd and --clock say what a nominal --peak counts; give it, or leave them out")

    @property
    def threads_share(self) -> tuple[float, float]:
        """Share of this many cores' rate that the threads of a rank reach, and its error."""
        if self.dgemm_flops is None and self.blas not in (None, "none"):
            return THREADS_OF_SHARES
        return THREADS.get(self.blas, THREADS[None])

    @property
    def link(self) -> Link:
        return Link(self.link_Bps, self.latency_s, self.fabric)


@dataclass(frozen=True, slots=True)
class CoreRate:
    """Rate of dgemm on a core, flop/s; its error, and where it comes from. `tuned_flops`: in a tuned library."""

    flops: float
    relative_sd: float
    source: str
    tuned_flops: float


def rate_of(sheet: DataSheet) -> CoreRate:
    """Raises InputError for a data sheet without a rate."""
    if sheet.dgemm_flops is not None:
        source = "given; other block sizes and nodes differ"
        return CoreRate(sheet.dgemm_flops, GIVEN_DGEMM_SD, source, sheet.dgemm_flops)
    peak = sheet.peak_flops
    if peak is None:
        raise InputError("give the speed of a core: --dgemm, such as 45G, or its nominal --peak")
    if sheet.blas is None and sheet.simd is None and sheet.clock is None:
        source = f"{100 * SHARE_OF_PEAK:.0f} % of the nominal peak; --blas, --simd and --clock say more"
        return CoreRate(SHARE_OF_PEAK * peak, SHARE_OF_PEAK_SD, source, SHARE_OF_PEAK * peak)
    by = "turbo" if sheet.clock == "turbo" else "avx512" if sheet.simd == "avx512" else "base"
    share, relative_sd = SHARES[sheet.blas][by]
    tuned = SHARES[None if sheet.blas == "none" else sheet.blas][by][0]
    # Errors are factors of mean 1 on durations: this mean has the share as its middle.
    mean = share * math.exp(-0.5 * relative_sd * relative_sd)
    library = _SPELT.get(sheet.blas or "", "a library that is not known")
    clocks = {"base": "the base clock", "turbo": "the clock of all cores", "avx512": "the base clock in AVX-512"}
    source = f"about {100 * share:.0f} % of the peak at {clocks[by]} with {library}"
    return CoreRate(mean * peak, relative_sd, source, tuned * peak)


def platform_from(sheet: DataSheet, like: Platform) -> Platform:
    """The platform of a data sheet; `like` has the core that was measured, whose small kernels are scaled.

    Raises InputError for what cannot be: neither rate, no link between several nodes, a fat tree without a form; and
    PlatformError for a number that no platform has.
    """
    refuse_groups(like, "data sheets scaled from them")
    if sheet.nodes > 1 and sheet.link_Bps is None:
        raise InputError("several nodes need the bandwidth of their link: --link, such as 100Gb")
    core = rate_of(sheet)
    rate = dgemm_rate(like)
    if rate is None:
        raise InputError(f"platform {like.name} has no dgemm for one thread, by which its kernels would be scaled")
    rates = f"from {exact_number(rate / 1e9, 3)} to {exact_number(core.tuned_flops / 1e9, 3)} Gflop/s"
    source = f"those of a core of {like.name}, scaled by dgemm {rates}"
    kernels = [
        _dgemm(load_platform(SHAPE), core),
        *(
            scaled(model, core.tuned_flops / core.flops, core.relative_sd, model.discrepancy_source or "")
            if sheet.blas == "none" and model.kernel in OF_DGEMM
            else model
            for model in scaled_kernels(like, rate / core.tuned_flops, f"assumed: {source}")
        ),
    ]
    kernels += _of_threads(kernels, sheet)
    topology, _ = _topology(sheet)
    content = {
        "name": sheet.name or "data-sheet",
        "description": f"From a data sheet: nothing was measured on it. Given: {', '.join(what_is_given(sheet))}.\n"
        "The rest is assumed, see `assumed`.\n",
        "source": "lepaute platform new: a data sheet; nothing was measured",
        "assumed": _assumed(sheet, core, source),
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
        "network": guessed_network(sheet.link),
        "topology": topology,
        "days": {
            "common_relative_sd": DAY_SD,
            "cpu_relative_sd": CPU_SD,
            "degrees_of_freedom": FREEDOM,
            "source": "assumed, about as on Dahu: 0.7 % between days, 3.4 % between CPUs",
        },
    }
    from pydantic import ValidationError

    try:
        return Platform.model_validate(content)
    except ValidationError as error:
        from lepaute.simulate.platform.faults import described

        raise described(error, content, None, "data sheet") from None


def _dgemm(shape: Platform, core: CoreRate) -> KernelModel:
    """dgemm of this rate in UPDATE; other calls take as much longer per operation as on `shape`."""
    model = shape.kernel("dgemm")
    assert model is not None
    last = model.model_copy(update={"pieces": model.pieces[-1:]})
    m, n, k = UPDATE
    factor = 2.0 * m * n * k / core.flops / mean_s(last, m, n, k)
    rate = f"{exact_number(core.flops / 1e9, 3)} Gflop/s"
    return scaled(last, factor, core.relative_sd, f"{rate} {core.source}; its form is that of {shape.name}")


def _of_threads(kernels: list[KernelModel], sheet: DataSheet) -> list[KernelModel]:
    """Models of ranks with several threads; whatever is not here takes the model of one thread."""
    if sheet.threads == 1:
        return []
    share, share_sd = sheet.threads_share
    models = []
    for model in kernels:
        if model.kernel == "dgemm" or model.kernel in OF_DGEMM:
            faster, own_sd = sheet.threads * share, share_sd
        elif sheet.blas in WITH_OWN_HPL:
            faster, own_sd = float(_cores_of_memory(sheet)), THREADED_SD
        else:
            continue
        relative_sd = round(math.hypot(model.discrepancy_relative_sd, own_sd), 4)
        source = f"{model.discrepancy_source}; {exact_number(faster, 3)} times as fast on {sheet.threads} cores"
        models.append(scaled(model, 1.0 / faster, relative_sd, source).model_copy(update={"threads": sheet.threads}))
    return models


def _cores_of_memory(sheet: DataSheet) -> int:
    """Cores of a rank that draw more from memory than one."""
    return min(sheet.threads, CORES_OF_MEMORY * math.ceil(sheet.threads / sheet.cores_per_socket))


def _topology(sheet: DataSheet) -> tuple[dict[str, Any], str]:
    if sheet.fat_tree is None:
        return {"kind": "switch"}, "one switch"
    down, up = sheet.fat_tree
    sizes = [size for size in range(down, min(sheet.nodes // 2, MAX_OF_A_LEAF) + 1, down) if sheet.nodes % size == 0]
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


def _assumed(sheet: DataSheet, core: CoreRate, scaled_from: str) -> list[dict[str, Any]]:
    likened = f"those not measured there either as others (sd {100 * LIKENED_RELATIVE_SD:.0f} %)"
    inside = f"{LOOPBACK_BPS / 1e9:g} GB/s and {LOOPBACK_LATENCY_S * 1e6:g} µs, on Dahu 18 GB/s"
    share, share_sd = sheet.threads_share
    others = f"{_cores_of_memory(sheet)} times as fast" if sheet.blas in WITH_OWN_HPL else "on one of them"
    threads = f"dgemm and dtrsm at {100 * share:.0f} % of the rate of {sheet.threads} cores, all other kernels {others}"
    busy = f"{100 * BUSY_SHARE:.0f} % of the bandwidth of others; 20 % on Dahu, 100 % on a virtual machine"
    rows = [
        (f"dgemm at {exact_number(core.flops / 1e9, 3)} Gflop/s a core", core.relative_sd, core.source),
        ("all other kernels", SCALED_RELATIVE_SD, f"{scaled_from}; {likened}"),
        ("messages inside nodes", LOOPBACK_SD, inside),
        *([("messages between nodes", *sheet.link.error)] if sheet.nodes > 1 else []),
        *([(f"{sheet.threads} threads a rank", share_sd, threads)] if sheet.threads > 1 else []),
        ("messages to ranks that compute", BUSY_SD, busy),
        ("differences between CPUs", CPU_SD, "3.4 % on Dahu"),
        ("differences between days", DAY_SD, "0.7 % on Dahu"),
    ]
    return [dict(zip(("what", "relative_sd", "source"), row, strict=True)) for row in rows]


def what_is_given(sheet: DataSheet) -> list[str]:
    """Contents of a data sheet in words; the form of a fat tree is completed."""
    given = [f"{counted(sheet.nodes, 'node')} of {sheet.sockets} x {sheet.cores_per_socket} cores", _topology(sheet)[1]]
    cores = sheet.sockets * sheet.cores_per_socket
    for what, flops in (("dgemm", sheet.dgemm_flops), ("peak", sheet.peak_flops)):
        if flops is not None:
            one, node, whole = (quantity(count * flops / 1e9, "Gflop/s") for count in (1, cores, cores * sheet.nodes))
            given.append(f"{what} {one} a core ({node} a node, {whole} in all)")
    peak = [*filter(None, (sheet.clock and f"the {sheet.clock} clock", sheet.simd))]
    if peak:
        given.append(f"a peak at {' in '.join(peak)}" if sheet.clock else f"a peak in {sheet.simd}")
    if sheet.blas is not None:
        given.append(_SPELT[sheet.blas])
    if sheet.link_Bps is not None:
        given.append(
            f"link {exact_number(sheet.link_Bps / 1e9, 4)} GB/s ({exact_number(sheet.link_Bps / 1.25e8, 4)} Gb/s)"
        )
    if sheet.fabric is not None:
        given.append({"rdma": "RDMA", "ethernet": "TCP over Ethernet"}[sheet.fabric])
    if sheet.latency_s is not None:
        given.append(f"latency {exact_number(sheet.latency_s * 1e6, 4)} µs")
    if sheet.memory_bytes is not None:
        given.append(f"{exact_number(sheet.memory_bytes / 2**30, 4)} GiB a node")
    if sheet.memory_Bps is not None:
        given.append(f"its memory {exact_number(sheet.memory_Bps / 1e9, 4)} GB/s")
    return given


def dgemm_rate(platform: Platform) -> float | None:
    """Flop/s of one core of `platform` in an update of HPL while all cores compute; None if it has no dgemm."""
    model = platform.kernel("dgemm")
    if model is None or (duration_s := mean_s(model, *UPDATE)) <= 0.0:
        return None
    m, n, k = UPDATE
    return 2.0 * m * n * k / duration_s


def scaled_kernels(like: Platform, factor: float, source: str) -> list[KernelModel]:
    """The kernels but dgemm of `like` with one thread, `factor` times as long; those it lacks are likened to others."""
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
    for name, other in LIKENED.items():
        if name not in measured and other in measured:
            model = scaled(measured[other], factor, LIKENED_RELATIVE_SD, f"{source}, which has no {name}: as {other}")
            last, own = model.pieces[-1], model.pieces
            if name in ROW_KERNELS and "mn" in last.mean:  # an element costs what one of a matrix costs
                own = (Piece(mean={"n": last.mean["mn"]}, noise=Noise()),)
            models.append(model.model_copy(update={"kernel": name, "pieces": own}))
    return models


def scaled(model: KernelModel, factor: float, relative_sd: float, source: str) -> KernelModel:
    """`model` with durations scaled by `factor` and this relative error, without what was fitted to single CPUs."""

    def longer(polynomial: dict[str, float]) -> dict[str, float]:
        return {term: float(f"{value * factor:.7g}") for term, value in polynomial.items()}

    def part(piece: Piece) -> Piece:
        noise = piece.noise.model_copy(update={"sd": longer(piece.noise.sd)})
        dropped = dict.fromkeys(("covariance", "range", "ranges", "goodness", "per_cpu", "discrepancy_relative_sd"))
        return piece.model_copy(update={"mean": longer(piece.mean), "noise": noise, **dropped})

    error = {"discrepancy_relative_sd": relative_sd, "discrepancy_source": source}
    return model.model_copy(update={"pieces": tuple(map(part, model.pieces)), **error, "form": None})

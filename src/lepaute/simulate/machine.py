"""A platform as the C++ core takes it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lepaute import _core
from lepaute.errors import InputError
from lepaute.platform.mixture import core_modes
from lepaute.simulate.topology import core_topology

if TYPE_CHECKING:
    from lepaute.platform.schema import KernelModel, Piece, Platform, Segment

PROTOCOLS = {"eager": 0, "detached": 1, "rendezvous": 2}
NOISES = {"none": 0, "half-normal": 1, "normal": 2, "lognormal": 3, "mixture": 4}
# Variants of a routine that a platform may model apart; one that does not has them cost what the routine costs.
VARIANTS = {"dgemm_nn": "dgemm", "dtrsm_left": "dtrsm"} | {
    f"dlaswp0{number}N": f"dlaswp0{number}T" for number in (1, 3, 4, 5, 6)
}
#: Classes of links, in the core's order.
LINK_CLASSES = ("loopback", "remote", "loopback_noncontiguous", "remote_noncontiguous")
UNBOUNDED = (0.0, 0.0, 0.0, 1e300, 1e300, 1e300)

KERNELS = {name: index for index, name in enumerate(_core.kernel_names())}
TERMS = {name: index for index, name in enumerate(_core.term_names())}


def machine_of(platform: "Platform", threads: int = 1) -> _core.Machine:
    """The machine that `platform` describes, for ranks of `threads` threads.

    Raises InputError when the platform has kernel models, but none for that number of threads.
    """
    machine = _core.Machine()
    nodes = platform.nodes
    machine.nodes = nodes.count
    machine.cores_per_node = nodes.cores
    machine.cpus_per_node = nodes.cpus
    machine.cpu_is_core_modulo = nodes.core_to_cpu == "modulo"
    available = sorted({model.threads for model in platform.kernels})
    if available and threads not in available:
        raise InputError(
            f"platform {platform.name} has no kernel models for {threads} threads a rank; "
            f"it has them for {', '.join(map(str, available))}"
        )
    models = {model.kernel: model for model in platform.kernels if model.threads == threads}
    for kernel, number in KERNELS.items():
        model = models.get(kernel) or models.get(VARIANTS.get(kernel, ""))
        if model is not None:
            machine.set_kernel(
                number, per_cpu_models(model, platform), model.discrepancy_relative_sd, model.crowding or 0.0
            )
    if platform.days is not None:
        machine.day_common_relative_sd = platform.days.common_relative_sd
        machine.day_cpu_relative_sd = platform.days.cpu_relative_sd
        machine.day_degrees_of_freedom = platform.days.degrees_of_freedom
    if platform.episodes is not None:
        machine.episode_relative_sd = platform.episodes.relative_sd
        machine.episode_s = platform.episodes.duration_s
    network = platform.network
    machine.set_network(
        [core_segment(segment) for segment in network.loopback_segments],
        [core_segment(segment) for segment in network.remote.segments],
        [core_segment(segment) for segment in network.loopback_noncontiguous],
        [core_segment(segment) for segment in network.remote_noncontiguous],
        network.flow_factor == "scale",
        network.sharing == "exact",
        network.node_link.bandwidth_Bps,
        network.loopback.bandwidth_Bps,
        network.loopback.shared,
        network.costs.iprobe_s,
        network.costs.iprobe_looks_first,
    )
    machine.set_fitted_sizes([fitted_sizes(network.fitted_sizes[name]) for name in LINK_CLASSES])
    machine.set_topology(core_topology(platform))
    return machine


def per_cpu_models(model: "KernelModel", platform: "Platform") -> list[_core.KernelModel]:
    """One core model for all cpus, or one for each cpu in the order of nodes where pieces have a per_cpu table."""
    if all(piece.per_cpu is None for piece in model.pieces):
        return [_core.KernelModel([core_piece(piece, piece.mean, piece.noise.sd) for piece in model.pieces])]
    nodes = platform.nodes
    cpus = [(nodes.first_number + node, cpu) for node in range(nodes.count) for cpu in range(nodes.cpus)]
    tables = [per_cpu_coefficients(piece) for piece in model.pieces]
    return [
        _core.KernelModel(
            [
                core_piece(piece, *table.get(at, (piece.mean, piece.noise.sd)))
                for piece, table in zip(model.pieces, tables, strict=True)
            ]
        )
        for at in cpus
    ]


def per_cpu_coefficients(piece: "Piece") -> dict[tuple[int, int], tuple[dict[str, float], dict[str, float]]]:
    """(node number, cpu) -> (mean, standard deviation) coefficients of the per_cpu table of a piece."""
    table: dict[tuple[int, int], tuple[dict[str, float], dict[str, float]]] = {}
    if piece.per_cpu is None:
        return table
    columns = piece.per_cpu.columns
    for row in piece.per_cpu.rows:
        values = dict(zip(columns, row, strict=True))
        at = (int(values.pop("node")), int(values.pop("cpu")))
        deviation = {name[3:]: value for name, value in values.items() if name.startswith("sd:")}
        table[at] = ({name: value for name, value in values.items() if not name.startswith("sd:")}, deviation)
    return table


def core_piece(piece: "Piece", mean: dict[str, float], deviation: dict[str, float]) -> _core.KernelPiece:
    """A piece of a kernel model with the coefficients of one cpu."""
    covariance = piece.covariance or ()
    return _core.KernelPiece.make(
        where=bounds(piece.where),
        fitted=bounds(piece.range),
        mean=coefficients(mean),
        deviation=coefficients(deviation),
        noise=NOISES[piece.noise.kind],
        covariance_terms=[TERMS[term] for term in piece.mean] if covariance else [],
        covariance=[value for row in covariance for value in row],
        **({"modes": core_modes(piece.noise.modes)} if piece.noise.modes else {}),
    )


def coefficients(by_term: Mapping[str, float]) -> list[float]:
    """Coefficients in the core's order of terms; raises InputError for a term that the engine does not evaluate."""
    values = [0.0] * len(TERMS)
    for term, value in by_term.items():
        if term not in TERMS:
            raise InputError(f"the engine does not evaluate the term {term}; it has {', '.join(TERMS)}")
        values[TERMS[term]] = value
    return values


def bounds(ranges: Mapping[Any, tuple[float, float]] | None) -> tuple[float, ...]:
    """(low m, n, k, high m, n, k) of ranges {letter: (low, high)}; no entry, no bound."""
    if ranges is None:
        return UNBOUNDED
    pairs = [ranges.get(letter, (0.0, 1e300)) for letter in "mnk"]
    return (*(float(low) for low, _ in pairs), *(float(high) for _, high in pairs))


def core_segment(segment: "Segment") -> _core.Segment:
    """A network segment of the platform file."""
    return _core.Segment.make(
        above_bytes=segment.above_bytes,
        protocol=PROTOCOLS[segment.protocol],
        latency_s=segment.latency_s,
        bandwidth_Bps=segment.bandwidth_Bps,
        send=pair(segment.send),
        isend=pair(segment.isend),
        receive=pair(segment.receive),
        noise_relative_sd=segment.noise_relative_sd,
        modes=[(mode.weight, mode.mean, mode.sd) for mode in segment.noise.modes] if segment.noise else [],
    )


def fitted_sizes(known: tuple[int, int] | None) -> tuple[float, float]:
    """(lowest, highest) in bytes; no bounds where they are not known."""
    return (0.0, 1e300) if known is None else (float(known[0]), float(known[1]))


def pair(values: Iterable[float]) -> tuple[float, float]:
    """(intercept_s, per_byte_s)."""
    intercept, slope = values
    return (intercept, slope)

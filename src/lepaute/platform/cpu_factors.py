"""A platform on which CPUs of one node are faster or slower than it says: they changed since the calibration."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.platform.kernel_model import KernelModel, Piece
    from lepaute.platform.schema import Nodes, Platform

#: Kernels whose speed is that of a CPU's clock.
COMPUTING = ("dgemm", "dgemm_nn")


def with_cpu_factors(
    platform: "Platform", node: int, factors: Mapping[int, float], kernels: Collection[str] = COMPUTING
) -> "Platform":
    """`platform` whose CPUs of one node take `factors` times as long in calls of `kernels`, noise included.

    node : its number;  factors : by cpu; CPUs that are not named stay as they are
    Variants with other factors (of 1, too) draw the same errors for a seed, so that those cancel between them. Where a
    kernel has one model for all CPUs, the error of its coefficients, which all have alike, is left out.
    Raises InputError for a node, a cpu or a factor that cannot be, and where every run draws nodes anew.
    """
    nodes = platform.nodes
    first, last = nodes.first_number, nodes.first_number + nodes.count - 1
    if not first <= node <= last:
        raise InputError(f"platform {platform.name} has no node {node}; it has {first} to {last}")
    if platform.population is not None and platform.population.draw == "nodes-and-days":
        raise InputError(
            f"the nodes of platform {platform.name} are drawn anew for each run, so that none of them is node {node}; "
            "take a platform of the real machine"
        )
    for cpu, factor in factors.items():
        if cpu not in range(nodes.cpus):
            raise InputError(f"a node of platform {platform.name} has CPUs 0 to {nodes.cpus - 1}, and no {cpu}")
        if not 0.0 < factor < 1e6:
            raise InputError(f"the factor of cpu {cpu} is {factor:g}; it is above 0 and below 1e6")
    changed = tuple(
        _with_rows(model, node, factors, nodes) if model.kernel in kernels else model for model in platform.kernels
    )
    return platform.model_copy(update={"kernels": changed})


def _with_rows(model: "KernelModel", node: int, factors: Mapping[int, float], nodes: "Nodes") -> "KernelModel":
    tables = [piece.per_cpu for piece in model.pieces if piece.per_cpu is not None]
    by_socket = bool(tables) and tables[0].by_socket
    if by_socket:
        of_sockets: dict[int, list[float]] = {}
        for cpu in range(nodes.cpus):
            of_sockets.setdefault(nodes.socket_of_cpu(cpu), []).append(factors.get(cpu, 1.0))
        units = {socket: max(each) for socket, each in of_sockets.items()}
    else:
        units = {cpu: factors.get(cpu, 1.0) for cpu in range(nodes.cpus)}
    pieces = tuple(_with_row(piece, node, units, by_socket=by_socket) for piece in model.pieces)
    if not tables:
        # Each cpu would draw an error of its own.
        pieces = tuple(piece.model_copy(update={"covariance": None}) for piece in pieces)
    return model.model_copy(update={"pieces": pieces})


def _with_row(piece: "Piece", node: int, units: Mapping[int, float], *, by_socket: bool) -> "Piece":
    """The piece with a row for each cpu (or socket) of the node: that of its table, or the common coefficients."""
    from lepaute.platform.kernel_model import PerCpu

    common = {**piece.mean, **{f"sd:{term}": value for term, value in piece.noise.sd.items()}}
    table = piece.per_cpu or PerCpu(columns=("node", "socket" if by_socket else "cpu", *common), rows=())
    rows = {row[:2]: row[2:] for row in table.rows}
    places = {(float(node), float(unit)): factor for unit, factor in units.items()}
    terms = list(table.columns[2:])
    if not places.keys() <= rows.keys():  # a row in the place of the common coefficients has all of them
        terms += [term for term in common if term not in terms]
    for at, factor in places.items():
        own = rows.get(at)
        values = [common.get(term, 0.0) for term in terms] if own is None else own
        rows[at] = tuple(value * factor for value in values)
    filled = tuple((*at, *values, *[0.0] * (len(terms) - len(values))) for at, values in rows.items())
    return piece.model_copy(update={"per_cpu": PerCpu(columns=(*table.columns[:2], *terms), rows=filled)})

"""The speed of hosts, for what a program computes outside the modelled kernels."""

from lepaute.platform.schema import KernelModel, Piece, Platform

#: Where a platform has no model of dgemm.
NOMINAL_FLOPS = 1e9
_SIDE = 1024  # of the square matrices whose product stands for computing in general


def node_speeds_flops(platform: Platform) -> tuple[float, ...]:
    """Flop/s of one core of each node: a dgemm of order 1024 in its mean duration, averaged over the node's CPUs.

    The nominal 1e9 where there is no model of dgemm, or one that gives no positive duration.
    """
    nodes = platform.nodes
    models = sorted((model for model in platform.kernels if model.kernel == "dgemm"), key=lambda m: m.threads)
    if not models:
        return (NOMINAL_FLOPS,) * nodes.count
    model = models[0]
    piece = _piece(model)
    rows = {} if piece.per_cpu is None else {(int(row[0]), int(row[1])): row[2:] for row in piece.per_cpu.rows}
    terms = () if piece.per_cpu is None else piece.per_cpu.columns[2:]
    speeds = []
    for number in range(nodes.first_number, nodes.first_number + nodes.count):
        of_cpus = []
        for cpu in range(nodes.cpus):
            by_socket = piece.per_cpu is not None and piece.per_cpu.by_socket
            row = rows.get((number, nodes.socket_of_cpu(cpu) if by_socket else cpu))
            mean = piece.mean if row is None else dict(zip(terms, row, strict=True))
            of_cpus.append(_rate_flops(mean) / model.threads)
        speeds.append(sum(of_cpus) / len(of_cpus))
    return tuple(speeds)


def _piece(model: KernelModel) -> Piece:
    return next(
        piece
        for piece in model.pieces
        if not piece.where or all(low <= _SIDE <= high for low, high in piece.where.values())
    )


def _rate_flops(mean: dict[str, float]) -> float:
    terms = {term: value for term, value in mean.items() if not term.startswith("sd:")}
    duration_s = sum(value * (1.0 if term == "1" else float(_SIDE) ** len(term)) for term, value in terms.items())
    return 2.0 * _SIDE**3 / duration_s if duration_s > 0 else NOMINAL_FLOPS

"""A machine with other components: knobs beside the fields of a platform, in `--set` and in studies.

scale.computing      speed of all kernels, times a number;  scale.KERNEL: of one of them, such as scale.dgemm
scale.bandwidth      of links and messages;                 scale.latency: of messages (2: twice as long)
noise.KERNEL         standard deviation of a call over its mean, of the term of highest degree
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.platform.kernel_model import KernelModel, PerCpu, Piece
    from lepaute.platform.network_model import Network, Segment
    from lepaute.platform.schema import Platform
    from lepaute.platform.topology import Topology

#: How the names of knobs begin.
KNOBS = ("scale.", "noise.")
#: No component becomes more than so many times as fast or slow.
LARGEST_FACTOR = 1e9
COMPONENTS = ("computing", "bandwidth", "latency")


def with_components(platform: "Platform", knobs: Mapping[str, Any]) -> "Platform":
    """`platform` with the knobs scale.… and noise.… applied; raises InputError for one that cannot be."""
    for path, value in knobs.items():
        root, _, name = path.partition(".")
        platform = scaled(platform, name, value) if root == "scale" else with_noise(platform, name, value)
    return platform


def scaled(platform: "Platform", name: str, value: Any) -> "Platform":
    """`platform` with a component so many times as fast; of the latency, as long."""
    factor = number_of(f"scale.{name}", value)
    if not 1.0 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR:
        raise InputError(f"scale.{name} is {factor:g}; it is {1 / LARGEST_FACTOR:g} to {LARGEST_FACTOR:g}")
    if name in ("bandwidth", "latency"):
        network = _network(platform.network, name, factor)
        return platform.model_copy(update={"network": network, "topology": _topology(platform.topology, name, factor)})
    kernels_known = [model.kernel for model in platform.kernels]
    if name not in (*COMPONENTS, *kernels_known):
        from lepaute.kit.documents import guess

        raise InputError(
            f"scale.{name[:60]} is no component{guess(name, [*COMPONENTS, *kernels_known])}; they are "
            f"{', '.join(COMPONENTS)}, and kernels of platform {platform.name} such as {kernels_known[0]}"
        )
    kernels = tuple(
        _with_pieces(model, lambda piece: _longer(piece, 1.0 / factor))
        if name in ("computing", model.kernel)
        else model
        for model in platform.kernels
    )
    return platform.model_copy(update={"kernels": kernels})


def with_noise(platform: "Platform", kernel: str, value: Any) -> "Platform":
    """`platform` with calls of a kernel that vary by so much, half-normally unless its noise has another form."""
    relative_sd = number_of(f"noise.{kernel}", value)
    if not 0.0 <= relative_sd <= 10.0:
        raise InputError(f"noise.{kernel} is {relative_sd:g}; a relative standard deviation is 0 to 10")
    _check_kernel(platform, f"noise.{kernel}", kernel)
    kernels = tuple(
        _with_pieces(model, lambda piece: _noisy(piece, relative_sd)) if model.kernel == kernel else model
        for model in platform.kernels
    )
    return platform.model_copy(update={"kernels": kernels})


def number_of(path: str, value: Any) -> float:
    """The number that a knob is set to; raises InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{path} is {value!r:.60}; it must be a number, in at most 100 characters")
    return float(value)


def _check_kernel(platform: "Platform", path: str, kernel: str) -> None:
    known = list(dict.fromkeys(model.kernel for model in platform.kernels))
    if kernel not in known:
        raise InputError(
            f"{path}: platform {platform.name} has no kernel {kernel[:60]!r}; it has {', '.join(known)[:300]}"
        )


def _with_pieces(model: "KernelModel", change: "Callable[[Piece], Piece]") -> "KernelModel":
    return model.model_copy(update={"pieces": tuple(change(piece) for piece in model.pieces)})


def _longer(piece: "Piece", factor: float) -> "Piece":
    """Calls `factor` times as long, and their errors in proportion."""
    covariance, table = piece.covariance, piece.per_cpu
    if covariance is not None:
        matrix = tuple(tuple(value * factor * factor for value in row) for row in covariance.matrix)
        covariance = covariance.model_copy(update={"matrix": matrix})
    if table is not None:
        rows = tuple((*row[:2], *(value * factor for value in row[2:])) for row in table.rows)
        table = table.model_copy(update={"rows": rows})
    sd = {term: value * factor for term, value in piece.noise.sd.items()}
    return piece.model_copy(
        update={
            "mean": {term: value * factor for term, value in piece.mean.items()},
            "covariance": covariance,
            "noise": piece.noise.model_copy(update={"sd": sd}),
            "per_cpu": table,
        }
    )


def _noisy(piece: "Piece", relative_sd: float) -> "Piece":
    from lepaute.platform.kernel_model import Noise

    term = max(piece.mean, key=lambda each: 0 if each == "1" else len(each))
    kind = piece.noise.kind if piece.noise.kind != "none" else "half-normal"
    noise = Noise(kind=kind, sd={term: relative_sd * piece.mean[term]}, modes=piece.noise.modes)
    if relative_sd == 0.0:
        noise = Noise()
    table = None if piece.per_cpu is None else _noisy_table(piece.per_cpu, relative_sd)
    return piece.model_copy(update={"noise": noise, "per_cpu": table})


def _noisy_table(table: "PerCpu", relative_sd: float) -> "PerCpu":
    means = table.mean_terms
    columns = [*table.columns[:2], *means]
    places = [table.columns.index(column) for column in columns]
    rows = [tuple(row[place] for place in places) for row in table.rows]
    if relative_sd > 0.0:
        term = max(means, key=lambda each: 0 if each == "1" else len(each))
        at = columns.index(term)
        columns.append(f"sd:{term}")
        rows = [(*row, relative_sd * row[at]) for row in rows]
    return table.model_copy(update={"columns": tuple(columns), "rows": tuple(rows)})


def _network(network: "Network", name: str, factor: float) -> "Network":
    """The network whose messages between nodes are changed, and its links too where that is the bandwidth."""
    field = "latency_s" if name == "latency" else "bandwidth_Bps"

    def changed(segments: "tuple[Segment, ...]") -> "tuple[Segment, ...]":
        return tuple(each.model_copy(update={field: getattr(each, field) * factor}) for each in segments)

    remote, loopback = network.remote, network.loopback
    if loopback.segments is None:  # those of remote, which change
        inside = {"segments": remote.segments, "noncontiguous": network.loopback_noncontiguous, "busy": remote.busy}
        loopback = loopback.model_copy(update=inside)
    update: dict[str, Any] = {"segments": changed(remote.segments)}
    if remote.noncontiguous is not None:
        update["noncontiguous"] = changed(remote.noncontiguous)
    if remote.busy is not None:
        update["busy"] = remote.busy.model_copy(update={"segments": changed(remote.busy.segments)})
    classes: dict[str, Any] = {"loopback": loopback, "remote": remote.model_copy(update=update)}
    if name == "bandwidth":
        width = network.node_link.bandwidth_Bps * factor
        classes["node_link"] = network.node_link.model_copy(update={"bandwidth_Bps": width})
    return network.model_copy(update=classes)


def _topology(topology: "Topology", name: str, factor: float) -> "Topology":
    """The topology whose cables that have a bandwidth or a latency of their own have another."""
    ending = "latency_s" if name == "latency" else "bandwidth_Bps"

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: changed(each, inner) for inner, each in value.items()}
        if isinstance(value, list | tuple):
            return [changed(each) for each in value]
        return value * factor if key.endswith(ending) and value is not None else value

    return type(topology).model_validate(changed(topology.model_dump()))

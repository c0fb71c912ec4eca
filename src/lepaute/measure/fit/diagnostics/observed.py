"""The subjects of a diagnosis: every kernel and operation on messages, measured beside what simulations will use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas

from lepaute.measure.fit.diagnostics.residuals import Residuals
from lepaute.measure.fit.kernels.polynomial import term_column
from lepaute.measure.fit.kernels.regions import ENOUGH_IN_CONTEXT
from lepaute.measure.fit.numeric import Booleans, Floats, Integers
from lepaute.measure.fit.observations.calibrations import THREADS, NodeShape
from lepaute.measure.fit.observations.calls import MODELLED, Calls, calls_by_kernel, place_of
from lepaute.measure.fit.observations.columns import combinations_of, net_seconds
from lepaute.measure.fit.variability.crowding import relieved
from lepaute.simulate.platform.kernel_model import KernelModel, Piece
from lepaute.simulate.platform.network_model import Network, Segment

#: Numbers of nodes of a fitted platform begin here.
FIRST_NODE = 1
#: Between the measurements of two archives, which have no clock in common.
BETWEEN_ARCHIVES_S = 3600.0
#: Calls that looked for a message until it was there: their number counts, not their time.
NOT_TIMED = ("seen",)
#: Operations that move nothing, and what holds their cost.
COSTS = {"iprobe": "iprobe_s", "test": "test_s", "wtime": "wtime_s"}
MIN_CALLS = 5


def _kernel_seconds(
    model: KernelModel, m: Floats, n: Floats, k: Floats, node: Integers, cpu: Integers
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of single calls in seconds, each of shape (calls,), neither below zero.

    node, cpu : numbers of the platform, as rows of `per_cpu` have them: sockets in the place of CPUs where these do
    Of the pieces the first that holds a call is taken.
    """
    mean, deviation = np.zeros(len(m)), np.zeros(len(m))
    free = np.ones(len(m), dtype=bool)
    for piece in model.pieces:
        inside = free & _inside(piece, m, n, k)
        free &= ~inside
        if not inside.any():
            continue
        at = np.flatnonzero(inside)
        letters = (m[at], n[at], k[at])
        mean[at], deviation[at] = _polynomial(piece.mean, *letters), _polynomial(piece.noise.sd, *letters)
        if (table := piece.per_cpu) is None:
            continue
        for row in table.rows:  # cpus that have a row of their own
            values = dict(zip(table.columns, row, strict=True))
            chosen = at[(node[at] == values["node"]) & (cpu[at] == values[table.columns[1]])]
            if len(chosen):
                letters = (m[chosen], n[chosen], k[chosen])
                mean[chosen] = _polynomial({term: values[term] for term in table.mean_terms}, *letters)
                deviation[chosen] = _polynomial({term: values[f"sd:{term}"] for term in table.sd_terms}, *letters)
    return np.maximum(mean, 0.0), np.maximum(deviation, 0.0)


def _message_seconds(segments: Sequence[Segment], size_bytes: Floats) -> dict[str, Floats]:
    """Times of one message by what is measured: "one_way", "isend"; and "noise", a relative standard deviation."""
    bounds = np.array([segment.above_bytes for segment in segments[1:]], dtype=np.float64)
    which = np.searchsorted(bounds, size_bytes, side="left")

    def of_each(value: str) -> Floats:
        return np.array([float(getattr(segment, value)) for segment in segments])[which]

    def overhead(name: str) -> Floats:
        pairs = np.array([getattr(segment, name)[:2] for segment in segments], dtype=np.float64)[which]
        result: Floats = pairs[:, 0] + pairs[:, 1] * size_bytes
        return result

    one_way = overhead("send") + overhead("receive") + of_each("latency_s") + size_bytes / of_each("bandwidth_Bps")
    noise = np.array([_relative_sd(segment) for segment in segments])[which]
    return {"one_way": one_way, "isend": overhead("isend"), "noise": noise}


def _relative_sd(segment: Segment) -> float:
    """Relative standard deviation of one message; of modes of the logarithm, by the moments of lognormal variates."""
    noise: Any = getattr(segment, "noise", None)
    if noise is None:
        return float(segment.noise_relative_sd)
    first = sum(mode.weight * np.exp(mode.mean + mode.sd**2 / 2) for mode in noise.modes)
    second = sum(mode.weight * np.exp(2 * mode.mean + 2 * mode.sd**2) for mode in noise.modes)
    return float(np.sqrt(max(0.0, second / first**2 - 1.0)))


def _inside(piece: Piece, m: Floats, n: Floats, k: Floats) -> Booleans:
    inside = np.ones(len(m), dtype=bool)
    for letter, (low, high) in (piece.where or {}).items():
        values = {"m": m, "n": n, "k": k}[letter]
        inside &= (values >= low) & (values <= high)
    return inside


def _polynomial(coefficients: "dict[str, float]", m: Floats, n: Floats, k: Floats) -> Floats:
    result = np.zeros(len(m))
    for term, value in coefficients.items():
        result += value * term_column(term, m, n, k)
    return result


def clocks_of(archives: Sequence[Sequence[pandas.DataFrame]]) -> list[dict[str, float]]:
    """For each archive, what `dated` subtracts on each host, so that dates count from the first of the first archive.

    archives : the tables of each
    """
    clocks: list[dict[str, float]] = []
    offset_s = 0.0
    for frames in archives:
        origins: dict[str, float] = {}
        for frame in (frame for frame in frames if len(frame) and "host" in frame.columns):
            for host, first in frame.groupby(frame["host"].astype(str))["start_s"].min().items():
                origins[str(host)] = min(float(first), origins.get(str(host), np.inf))
        clocks.append({host: first - offset_s for host, first in origins.items()})
        ends = [float(frame["start_s"].max()) for frame in dated(frames, clocks[-1:] * len(frames)) if len(frame)]
        offset_s = max(ends, default=offset_s) + BETWEEN_ARCHIVES_S
    return clocks


def dated(frames: Sequence[pandas.DataFrame], clocks: Sequence[Mapping[str, float]]) -> list[pandas.DataFrame]:
    """Tables with dates by these clocks, one of each table, see `clocks_of`."""
    shifted = []
    for frame, clock in zip(frames, clocks, strict=True):
        host = frame["host"].astype(str) if "host" in frame.columns else None
        first = min(clock.values(), default=0.0) if host is None else host.map(clock).to_numpy(dtype=np.float64)
        shifted.append(frame.assign(start_s=frame["start_s"].to_numpy(dtype=np.float64) - first))
    return shifted


def kernel_name(model: KernelModel) -> str:
    """The subject of a diagnosis that a kernel's model is."""
    return f"kernel {model.kernel}" + (f" x{model.threads}" if model.threads > 1 else "")


def kernels(
    table: pandas.DataFrame, hosts: Sequence[str], models: Sequence[KernelModel], shape: NodeShape
) -> Iterator[Residuals]:
    """The calls of every kernel that has a model: with work to do, not in a first step, inside steps of HPL and at full
    load where there are such calls, as they were fitted.

    table : as `pooled_observations` makes it
    """
    for threads in sorted({model.threads for model in models}):
        part = table[(table[THREADS] == threads).to_numpy()]
        if part.empty:
            continue
        names = part["kernel"].astype(str).to_numpy()
        process = combinations_of(part, ("node", "block", "attempt", "probe", "rank", "cpu"))
        start = part["start_s"].to_numpy(dtype=np.float64)
        known = {model.kernel: model for model in models if model.threads == threads}
        for name, calls in calls_by_kernel(part).items():
            rows = np.flatnonzero(names == name)
            if name in known and len(rows):
                yield _of_kernel(known[name], calls, hosts, process[rows], start[rows], shape)


def without_model(frames: Sequence[pandas.DataFrame], models: Sequence[KernelModel]) -> list[tuple[str, int]]:
    """Kernels that a platform can hold and that were measured, but have no model, with their number of calls."""
    known = {model.kernel for model in models}
    counts: dict[str, int] = {}
    for frame in frames:
        for name, count in frame["kernel"].value_counts().items():
            if str(name) in MODELLED and str(name) not in known:
                counts[str(name)] = counts.get(str(name), 0) + int(count)
    return sorted(counts.items())


def _of_kernel(
    model: KernelModel, calls: Calls, hosts: Sequence[str], process: Integers, start_s: Floats, shape: NodeShape
) -> Residuals:
    chosen = calls.nonempty()
    if np.any(chosen & ~calls.cold):
        chosen &= ~calls.cold
    if np.any(chosen & calls.in_context):
        chosen &= calls.in_context
    full = chosen.copy()
    full[chosen] = calls.where(chosen).at_full_load()
    if np.count_nonzero(full) >= ENOUGH_IN_CONTEXT:
        chosen = full
    taken = relieved(calls, model.crowding_table).where(chosen)
    cores, place = np.unique(taken.cpu, return_inverse=True)
    where = [place_of(int(core)) for core in cores]
    node = np.array([FIRST_NODE + position for position, _ in where], dtype=np.int64)[place]
    cpu = np.array([core for _, core in where], dtype=np.int64)[place]
    by_socket = any(piece.per_cpu is not None and piece.per_cpu.by_socket for piece in model.pieces)
    unit = taken.sockets() % shape.sockets if by_socket else cpu
    mean, deviation = _kernel_seconds(model, taken.m, taken.n, taken.k, node, unit)
    has_positive_mean = mean > 0
    return Residuals(
        subject=kernel_name(model),
        size=taken.work()[has_positive_mean],
        size_name="product of the sizes of a call",
        measured_s=taken.duration_s[has_positive_mean],
        predicted_s=mean[has_positive_mean],
        deviation_s=np.maximum(deviation, 1e-3 * mean)[has_positive_mean],
        time_s=start_s[chosen][has_positive_mean],
        process=process[chosen][has_positive_mean],
        place=place.astype(np.int64)[has_positive_mean],
        setting=taken.probe[has_positive_mean],
        places=tuple(f"{hosts[at]} core {core}" if len(hosts) > 1 else f"core {core}" for at, core in where),
        hosts=tuple(hosts[position] if hosts else "" for position, _ in where),
        noise_modelled=bool(np.any(deviation > 0)),
        weighs_time=True,
    )


def messages(frames: Sequence[pandas.DataFrame], network: Network | None, several: bool) -> Iterator[Residuals]:
    """Every operation on messages, inside nodes and, where there are several, between them; None: without a model."""
    table = pandas.concat(list(frames), ignore_index=True)
    link = table["link"].astype(str) if "link" in table.columns else pandas.Series("local", index=table.index)
    archive = np.repeat(np.arange(len(frames)), [len(frame) for frame in frames])
    process = combinations_of(table.assign(archive=archive), ("archive", "host", "block", "attempt", "peer", "rank"))
    host = table["host"].astype(str) if "host" in table.columns else pandas.Series("", index=table.index)
    for kind in ("local", "remote") if several else ("local",):
        for operation in sorted(set(table["operation"].astype(str)) - set(NOT_TIMED)):
            rows = np.flatnonzero(((link == kind) & (table["operation"] == operation)).to_numpy())
            if len(rows) >= MIN_CALLS:
                yield _of_operation(
                    str(operation), kind, several, table.iloc[rows], network, process[rows], host.iloc[rows]
                )


def _of_operation(
    operation: str,
    kind: str,
    several: bool,
    rows: pandas.DataFrame,
    network: Network | None,
    process: Integers,
    host: "pandas.Series[Any]",
) -> Residuals:
    size = rows["size_bytes"].to_numpy(dtype=np.float64)
    measured = np.maximum(net_seconds(rows), 1e-9)  # below a nanosecond no clock distinguishes it from 0
    model, noise = (None, None) if network is None else _modelled(operation, kind, size, network)
    predicted = _running_median(size, measured) if model is None else model
    has_noise = model is not None and noise is not None and bool(np.any(noise > 0))
    names, place = np.unique(host.to_numpy().astype(str), return_inverse=True)
    return Residuals(
        subject=f"message {operation}" + (f" {kind}" if several else ""),
        size=size,
        size_name="size of the message in bytes",
        measured_s=measured,
        predicted_s=predicted,
        deviation_s=np.maximum(noise, 1e-3) * predicted if has_noise and noise is not None else 0.1 * predicted,
        time_s=rows["start_s"].to_numpy(dtype=np.float64),
        process=process,
        place=place.astype(np.int64),
        setting=np.zeros(len(size), dtype=np.int64),
        places=tuple(str(name) for name in names),
        hosts=tuple(str(name) for name in names),
        modelled=model is not None,
        noise_modelled=has_noise,
    )


def _modelled(operation: str, kind: str, size_bytes: Floats, network: Network) -> tuple[Floats | None, Floats | None]:
    """Mean duration and relative standard deviation of an operation; None if the network has no time for it."""
    seconds = _message_seconds(network.loopback_segments if kind == "local" else network.remote.segments, size_bytes)
    if operation == "pingpong":
        return 2.0 * seconds["one_way"], seconds["noise"] / 2.0**0.5  # there and back: two draws
    if operation == "isend" and np.all(seconds["isend"] > 0):
        return seconds["isend"], None
    cost_s = float(getattr(network.costs, COSTS[operation])) if operation in COSTS and kind == "local" else 0.0
    return (np.full(len(size_bytes), cost_s) if cost_s > 0 else None), None


def _running_median(size: Floats, value: Floats, groups: int = 40) -> Floats:
    """Median of the values of calls of neighbouring size, interpolated in log(1 + size); shape of size."""
    if len(np.unique(size)) == 1:
        return np.full(len(size), max(float(np.median(value)), 1e-12))
    order = np.argsort(size, kind="stable")
    parts = [part for part in np.array_split(order, max(1, min(groups, len(size) // 10))) if len(part)]
    centre = [float(np.median(np.log1p(size[part]))) for part in parts]
    middle = [max(float(np.median(value[part])), 1e-12) for part in parts]
    result: Floats = np.exp(np.interp(np.log1p(size), centre, np.log(middle)))
    return result

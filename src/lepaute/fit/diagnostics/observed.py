"""The subjects of a diagnosis: every kernel and every operation on messages, measured beside modelled."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.diagnostics.model_times import kernel_seconds, message_seconds
from lepaute.fit.diagnostics.residuals import Residuals
from lepaute.fit.kernels.regions import ENOUGH_IN_CONTEXT
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.observations.calls import MODELLED, Calls, calls_by_kernel, place_of, pooled_observations
from lepaute.fit.observations.columns import KERNELS, NEEDED
from lepaute.fit.observations.disturbed import without_disturbed
from lepaute.fit.observations.factors import usual_conditions
from lepaute.fit.observations.loads import LOAD, THREADS, NodeShape
from lepaute.fit.variability.crowding import relieved

if TYPE_CHECKING:
    import pandas

    from lepaute.platform.schema import KernelModel, Network

#: Numbers of nodes of a fitted platform begin here.
FIRST_NODE = 1
#: Between the measurements of two archives, which have no clock in common.
BETWEEN_ARCHIVES_S = 3600.0
#: Calls that looked for a message until it was there: their number counts, not their time.
NOT_TIMED = ("seen",)
#: Operations that move nothing, and what holds their cost.
COSTS = {"iprobe": "iprobe_s", "test": "test_s", "wtime": "wtime_s"}
FEWEST_CALLS = 5


def dated(
    frames: "Sequence[pandas.DataFrame]", origins: Sequence[Mapping[str, float]], by: tuple[str, ...]
) -> "list[pandas.DataFrame]":
    """The observations that the fit took, dates counted from the first of the first archive on each host.

    frames, origins : of each archive; by: columns that distinguish the probes, see `without_disturbed`
    """
    kept, _ = without_disturbed(frames, by)
    shifted, offset_s = [], 0.0
    for origin, frame in zip(origins, kept, strict=True):
        host = frame["host"].astype(str) if "host" in frame.columns else None
        first = host.map(origin).to_numpy(dtype=np.float64) if host is not None else min(origin.values(), default=0.0)
        dates = frame["start_s"].to_numpy(dtype=np.float64) - first + offset_s
        shifted.append(frame.assign(start_s=dates))
        offset_s = (float(dates.max()) if len(dates) else offset_s) + BETWEEN_ARCHIVES_S
    return shifted


def origins_of(frames: "Sequence[pandas.DataFrame]") -> dict[str, float]:
    """The first date of each host in the tables of one archive."""
    origins: dict[str, float] = {}
    for frame in frames:
        if len(frame) and "host" in frame.columns:
            for host, first in frame.groupby(frame["host"].astype(str))["start_s"].min().items():
                origins[str(host)] = min(float(first), origins.get(str(host), np.inf))
    return origins


def kernel_name(model: "KernelModel") -> str:
    """The subject of a diagnosis that a kernel's model is."""
    return f"kernel {model.kernel}" + (f" x{model.threads}" if model.threads > 1 else "")


def kernels(
    frames: "Sequence[pandas.DataFrame]", hosts: Sequence[str], models: "Sequence[KernelModel]", shape: NodeShape
) -> Iterator[Residuals]:
    """The calls of every kernel that has a model: with work to do, not in a first step, inside steps of HPL and at full
    load where there are such calls, as they were fitted.

    shape : of the nodes that were measured
    """
    whole = pooled_observations([_dated(usual_conditions(frame)) for frame in frames], hosts, shape)
    for threads in sorted({model.threads for model in models}):
        table = whole[(whole[THREADS] == threads).to_numpy()]
        if len(table):
            yield from _of_threads(table, hosts, [model for model in models if model.threads == threads], shape)


def _of_threads(
    table: "pandas.DataFrame", hosts: Sequence[str], models: "Sequence[KernelModel]", shape: NodeShape
) -> Iterator[Residuals]:
    names = table["kernel"].astype(str).to_numpy()
    process = _numbers(table, ("node", "block", "attempt", "probe", "rank", "cpu"))
    start = table["start_s"].to_numpy(dtype=np.float64)
    known = {model.kernel: model for model in models}
    for name, calls in calls_by_kernel(table).items():
        if name in known:
            rows = np.flatnonzero(names == name)
            if len(rows):
                yield _of_kernel(known[name], calls, hosts, process[rows], start[rows], shape)


def without_model(frames: "Sequence[pandas.DataFrame]", models: "Sequence[KernelModel]") -> list[tuple[str, int]]:
    """Kernels that a platform can hold and that were measured, but have no model, with their number of calls."""
    known = {model.kernel for model in models}
    counts: dict[str, int] = {}
    for frame in frames:
        for name, count in frame["kernel"].value_counts().items():
            if str(name) in MODELLED and str(name) not in known:
                counts[str(name)] = counts.get(str(name), 0) + int(count)
    return sorted(counts.items())


def _of_kernel(
    model: "KernelModel", calls: Calls, hosts: Sequence[str], process: Integers, start_s: Floats, shape: NodeShape
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
    mean, deviation = kernel_seconds(model, taken.m, taken.n, taken.k, node, unit)
    good = mean > 0
    return Residuals(
        subject=kernel_name(model),
        size=taken.work()[good],
        size_name="product of the sizes of a call",
        measured_s=taken.duration_s[good],
        predicted_s=mean[good],
        deviation_s=np.maximum(deviation, 1e-3 * mean)[good],
        time_s=start_s[chosen][good],
        process=process[chosen][good],
        place=place.astype(np.int64)[good],
        setting=taken.probe[good],
        places=tuple(_place(hosts, position, core) for position, core in where),
        hosts=tuple(hosts[position] if hosts else "" for position, _ in where),
        noise_modelled=bool(np.any(deviation > 0)),
        weighs_time=True,
    )


def _place(hosts: Sequence[str], position: int, core: int) -> str:
    return f"core {core}" if len(hosts) < 2 else f"{hosts[position]} core {core}"


def messages(frames: "Sequence[pandas.DataFrame]", network: "Network | None", several: bool) -> Iterator[Residuals]:
    """Every operation on messages, inside nodes and, where there are several, between them; None: without a model."""
    import pandas

    table = pandas.concat(list(frames), ignore_index=True)
    link = table["link"].astype(str) if "link" in table.columns else pandas.Series("local", index=table.index)
    block_numbers = _archive_numbers(frames)
    process = _numbers(table.assign(archive=block_numbers), ("archive", "host", "block", "attempt", "peer", "rank"))
    host = table["host"].astype(str) if "host" in table.columns else pandas.Series("", index=table.index)
    for kind in ("local", "remote") if several else ("local",):
        for operation in sorted(set(table["operation"].astype(str)) - set(NOT_TIMED)):
            rows = np.flatnonzero(((link == kind) & (table["operation"] == operation)).to_numpy())
            if len(rows) >= FEWEST_CALLS:
                yield _of_operation(
                    str(operation), kind, several, table.iloc[rows], network, process[rows], host.iloc[rows]
                )


def _of_operation(
    operation: str,
    kind: str,
    several: bool,
    rows: "pandas.DataFrame",
    network: "Network | None",
    process: Integers,
    host: "pandas.Series[Any]",
) -> Residuals:
    size = rows["size_bytes"].to_numpy(dtype=np.float64)
    net_s = rows["duration_s"].to_numpy(dtype=np.float64) - rows["clock_cost_s"].to_numpy(dtype=np.float64)
    measured = np.maximum(net_s, 1e-9)  # below a nanosecond no clock distinguishes it from 0
    model, noise = (None, None) if network is None else _modelled(operation, kind, size, network)
    predicted = running_median(size, measured) if model is None else model
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


def _modelled(operation: str, kind: str, size_bytes: Floats, network: "Network") -> tuple[Floats | None, Floats | None]:
    """Mean duration and relative standard deviation of an operation; None where the network has no time for it."""
    seconds = message_seconds(network.loopback_segments if kind == "local" else network.remote.segments, size_bytes)
    if operation == "pingpong":
        return 2.0 * seconds["one_way"], seconds["noise"] / 2.0**0.5  # there and back: two draws
    if operation == "isend" and np.all(seconds["isend"] > 0):
        return seconds["isend"], None
    cost_s = float(getattr(network.costs, COSTS[operation])) if operation in COSTS and kind == "local" else 0.0
    return (np.full(len(size_bytes), cost_s) if cost_s > 0 else None), None


def running_median(size: Floats, value: Floats, groups: int = 40) -> Floats:
    """Median of the values of calls of neighbouring size, interpolated in log(1 + size); shape of size."""
    if len(np.unique(size)) == 1:
        return np.full(len(size), max(float(np.median(value)), 1e-12))
    order = np.argsort(size, kind="stable")
    parts = [part for part in np.array_split(order, max(1, min(groups, len(size) // 10))) if len(part)]
    centre = [float(np.median(np.log1p(size[part]))) for part in parts]
    middle = [max(float(np.median(value[part])), 1e-12) for part in parts]
    result: Floats = np.exp(np.interp(np.log1p(size), centre, np.log(middle)))
    return result


def _dated(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    return frame.loc[:, [column for column in (*NEEDED[KERNELS], *LOAD, "attempt", "host") if column in frame.columns]]


def _archive_numbers(frames: "Sequence[pandas.DataFrame]") -> Integers:
    return np.repeat(np.arange(len(frames)), [len(frame) for frame in frames])


def _numbers(table: "pandas.DataFrame", columns: Sequence[str]) -> Integers:
    """A number for each combination of the values of these columns, of those that the table has."""
    import pandas

    number = np.zeros(len(table), dtype=np.int64)
    for column in columns:
        if column in table.columns:
            codes, values = pandas.factorize(table[column])
            number = number * (len(values) + 1) + codes
    return np.asarray(pandas.factorize(number)[0], dtype=np.int64)

"""Ranks of several threads on a hypothetical cluster: their kernels, and the population of what a rank runs on."""

from math import hypot
from typing import Any

from lepaute.errors import InputError
from lepaute.simulate.platform.data_sheet import OF_DGEMM, THREADS, scaled
from lepaute.simulate.platform.kernel_model import UPDATE, mean_s
from lepaute.simulate.platform.population import Group, Population
from lepaute.simulate.platform.schema import Assumption, KernelModel, Nodes, Platform


def with_threads(
    like: Platform, population: Population | None, threads: int
) -> tuple[Platform, Population | None, int]:
    """`like` for ranks of so many threads as well, the population of their dgemm, and CPUs that a rank computes on.

    What `like` has no models for is guessed as `lepaute platform new` does: dgemm and dtrsm take THREADS of the rate of
    as many cores, with that error. A rank is inside of a CPU, or has the whole node, which is one CPU then, as fast as
    its CPUs in the mean: the variances of what is each CPU's own are divided by their number.
    Raises InputError for a number of threads that fills neither CPUs nor nodes.
    """
    nodes = like.nodes
    model, known = like.kernel("dgemm"), like.kernel("dgemm", threads)
    is_of_them = known is not None and (population is None or population.threads == threads)
    if threads == 1 or is_of_them or (population is not None and population.kernel != "dgemm"):
        return like, population, 1
    if model is None or (population is not None and population.threads != 1):
        raise InputError(f"platform {like.name} has no dgemm of one thread, from which that of {threads} would be made")
    spanned = _spanned(nodes, threads, like.name)
    share, share_sd = THREADS[None]
    added, assumed = list(like.kernels), list(like.assumed or ())
    if known is None:
        added += [
            _guessed(model, threads, threads * share, share_sd)
            for model in like.kernels
            if model.threads == 1
            and model.kernel in ("dgemm", *OF_DGEMM)
            and like.kernel(model.kernel, threads) is None
        ]
        what = f"dgemm and dtrsm at {100 * share:.0f} % of the rate of {threads} cores"
        assumed.append(
            Assumption(what=f"{threads} threads a rank", relative_sd=share_sd, source=f"{what}; not measured")
        )
    shape = nodes.model_copy(update={"core_to_cpu": "block", **({"cpus": 1} if spanned > 1 else {})})
    update = {"nodes": shape, "kernels": tuple(added), "assumed": tuple(assumed) or None}
    if spanned > 1:  # what single CPUs did has no place any more; the population has it
        update |= {"population": None, "kernels": tuple(_of_no_cpu(each) for each in added)}
    threaded: Platform = like.model_copy(update=update)
    if population is None:
        return threaded, None, spanned
    several = threaded.kernel("dgemm", threads)
    assert several is not None
    return (
        threaded,
        _of_threads(population, threads, mean_s(several, *UPDATE) / mean_s(model, *UPDATE), spanned),
        spanned,
    )


def _spanned(nodes: "Nodes", threads: int, name: str) -> int:
    """CPUs of a rank: 1, or all of a node."""
    of_cpu = nodes.cores // nodes.cpus
    if threads <= of_cpu and of_cpu % threads == 0:
        return 1
    if threads == nodes.cores:
        return nodes.cpus
    fitting = [each for each in range(1, of_cpu + 1) if of_cpu % each == 0]
    known = ", ".join(map(str, dict.fromkeys([*fitting, nodes.cores])))
    raise InputError(f"ranks of {threads} threads fill no CPUs of a node of {name}; take {known} threads")


def _guessed(model: "KernelModel", threads: int, faster: float, own_sd: float) -> "KernelModel":
    relative_sd = round(hypot(model.discrepancy_relative_sd, own_sd), 4)
    source = f"{model.discrepancy_source or 'one core'}; {faster:.3g} times as fast on {threads} cores, assumed"
    return scaled(model, 1.0 / faster, relative_sd, source).model_copy(update={"threads": threads})


def _of_no_cpu(model: "KernelModel") -> "KernelModel":
    pieces = tuple(piece.model_copy(update={"per_cpu": None}) for piece in model.pieces)
    return model.model_copy(update={"pieces": pieces})


def _of_threads(population: Population, threads: int, factor: float, spanned: int) -> Population:
    """The population of calls that take `factor` times as long, on ranks of so many CPUs."""
    own = factor * factor / spanned

    def parts(holder: Group | Population) -> dict[str, Any]:
        found = {name: getattr(holder, name, None) for name in ("covariance_spatial", "covariance_temporal")}
        return {name: _times(rows, own) for name, rows in found.items() if rows is not None}

    groups = tuple(
        group.model_copy(update={"mean": tuple(value * factor for value in group.mean), **parts(group)})
        for group in population.groups
    )
    common = population.covariance_common
    update = {"threads": threads, "groups": groups, "scale_of_cpu": None, **parts(population)}
    return population.model_copy(
        update=update | {"covariance_common": None if common is None else _times(common, factor * factor)}
    )


def _times(rows: Any, factor: float) -> Any:
    return tuple(tuple(value * factor for value in row) for row in rows)

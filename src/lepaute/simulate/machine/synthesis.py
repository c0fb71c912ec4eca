"""A hypothetical cluster: CPUs drawn from a population, or by a factor each; all else as on its platform."""

from math import hypot, sqrt
from statistics import fmean, stdev
from typing import Any

from lepaute import _core
from lepaute.errors import InputError
from lepaute.simulate.machine.population import SPATIAL, drawn_nodes, drawn_scales, scaled, with_coefficients
from lepaute.simulate.platform import data_sheet
from lepaute.simulate.platform.components import COMPUTING, topology_for
from lepaute.simulate.platform.kernel_model import UPDATE, KernelModel, PerCpu, Piece, mean_s, value_of
from lepaute.simulate.platform.nodes import Nodes, refuse_groups
from lepaute.simulate.platform.population import Group, Population
from lepaute.simulate.platform.schema import Assumption, Platform

#: The file of more would be larger than what is read.
MAX_NODES = 40_000
#: Largest factor of standard deviations; squares of larger ones end up as no numbers.
LARGEST_FACTOR = 1e6
#: Relative standard deviation between CPUs where nobody measured it: Dahu's CPUs differ by 3.4 % (January 2020).
ASSUMED_SD = 0.03
#: A spread of fewer nodes is not that of a cluster.
MIN_NODES = 4
#: No cpu is faster than that: an unlucky draw with a large --spatial must not cost nothing.
MIN_FACTOR = 0.1


def synthesize(
    like: Platform,
    population: "Population | None",
    *,
    nodes: int,
    spatial: float = 1.0,
    temporal: float = 1.0,
    seed: int = 1,
    threads: int = 1,
) -> Platform:
    """A cluster of `nodes` nodes drawn from `population`, deterministic for a seed: a smaller cluster is the beginning
    of a larger one. Without a population, the CPUs of `like` differ by a factor on dgemm.

    like : gives the shape of a node, the network, and the other kernels, with the mean of their CPUs
    spatial, temporal : factors of the standard deviations between CPUs and between days
    threads : of a rank; where `like` has no models for them, they are guessed (`_with_threads`)
    The layer `days` of `like` is left out where the population draws the days of dgemm.
    Raises InputError for a number that cannot be, or a topology that has no form with this many nodes.
    """
    refuse_groups(like, "clusters drawn like it")
    if not 1 <= nodes <= MAX_NODES:
        raise InputError(f"nodes is {nodes}; a cluster has 1 to {MAX_NODES} nodes")
    for name, value in (("spatial", spatial), ("temporal", temporal)):
        if not 0.0 <= value <= LARGEST_FACTOR:
            raise InputError(f"{name} is {value:g}; a factor of a standard deviation is 0 to {LARGEST_FACTOR:g}")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; it is a whole number from 0 to 2^63 - 1")
    if not 1 <= threads <= like.nodes.cores:
        raise InputError(f"threads is {threads}; a rank on a node of {like.name} has 1 to {like.nodes.cores}")
    origin = like
    like, population, spanned = _with_threads(like, population, threads)
    if population is None:
        content = _by_factor(like, nodes, spatial / sqrt(spanned), temporal, seed)
    else:
        content = _of_population(like, scaled(population, spatial, temporal), nodes, spatial, temporal, seed)
    return Platform.model_validate(
        like.model_dump()
        | {
            "name": f"{like.name}-synthetic-{nodes}",
            "source": f"lepaute platform synthesize, like {origin.name} (sha256 {origin.sha256})",
            "archive_id": None,
            "nodes": like.nodes.model_dump() | {"count": nodes},
            "topology": topology_for(like.topology, nodes, like.name).model_dump(),
        }
        | content
    )


def _of_population(
    like: Platform, population: "Population", nodes: int, spatial: float, temporal: float, seed: int
) -> dict[str, Any]:
    model = like.kernel(population.kernel, population.threads)
    if model is None:
        raise InputError(
            f"platform {like.name} has no kernel {population.kernel} for {population.threads} threads, of which the "
            "population is; choose another --like"
        )
    first, cpus = like.nodes.first_number, like.nodes.cpus
    groups, centres = drawn_nodes(population, nodes, cpus, seed)
    drawn = with_coefficients(
        model, population, [(first + node, cpu) for node in range(nodes) for cpu in range(cpus)], centres
    )
    kernels = [drawn if other is model else _of_the_mean_cpu(other) for other in like.kernels]
    has_scales = population.covariance_log_scale is not None
    scales = drawn_scales(population, groups, nodes, cpus, seed) if has_scales else None
    lines = [
        f"A hypothetical cluster of {nodes} nodes like {like.name}: no such machine was measured.",
        f"{population.kernel} of each of its {nodes * cpus} CPUs is drawn (seed {seed}) from a population with the "
        f"terms {', '.join(population.terms)}; standard deviations between CPUs times {spatial:g}, between days times "
        f"{temporal:g}.",
    ]
    several = len(population.groups) > 1
    if several:
        counts = [groups.count(number) for number in range(len(population.groups))]
        lines.append(f"Nodes of the {len(counts)} groups of the population: {', '.join(map(str, counts))}.")
    lines.append(
        f"Assumed: network, topology and the shape of a node are those of {like.name} whatever the number of nodes; "
        "the other kernels cost on every cpu what they cost there in the mean, the same every day; CPUs of a node "
        "differ as much as those of two nodes of its group."
    )
    if population.source:
        lines.append(f"Population: {population.source}.")
    return {
        "description": "\n".join(lines) + "\n",
        "kernels": [kernel.model_dump() for kernel in kernels],
        "days": None,
        "population": population.model_dump() | {"group_of_node": groups if several else None, "scale_of_cpu": scales},
    }


def _of_the_mean_cpu(model: "KernelModel") -> "KernelModel":
    """`model` without coefficients of single CPUs, which are those of nodes that the hypothetical cluster lacks."""
    return model.model_copy(
        update={"pieces": tuple(piece.model_copy(update={"per_cpu": None}) for piece in model.pieces)}
    )


def _by_factor(like: Platform, nodes: int, spatial: float, temporal: float, seed: int) -> dict[str, Any]:
    """CPUs that take the time of the typical cpu of `like` times a factor, normal around 1: with the spread of the CPUs
    of `like`, if it has coefficients for those of MIN_NODES nodes, else ASSUMED_SD. The layer `days` of `like` stays,
    its standard deviations times `temporal`.
    """
    if not any(model.kernel in COMPUTING for model in like.kernels):
        raise InputError(f"platform {like.name} has no dgemm, whose speed would differ between CPUs; choose another")
    measured_sd = _spread(like)
    relative_sd = spatial * (ASSUMED_SD if measured_sd is None else measured_sd)
    first, cpus = like.nodes.first_number, like.nodes.cpus
    factors = {
        (first + place // cpus, place % cpus): max(MIN_FACTOR, 1.0 + relative_sd * normal)
        for place, normal in enumerate(_core.normals(seed, SPATIAL, nodes * cpus, 1))
    }
    known = "an assumed one (Dahu's: 3.4 %)" if measured_sd is None else f"that of the CPUs of {like.name}"
    origin = f"sd {100 * relative_sd:.2g} % between CPUs, {spatial:g} times {known}"
    assumed = Assumption(what=f"differences between the CPUs of {nodes} nodes", source=origin)
    kernels = [
        model.model_copy(update={"pieces": tuple(_of_cpus(piece, factors) for piece in model.pieces)})
        if model.kernel in COMPUTING
        else _of_the_mean_cpu(model)
        for model in like.kernels
    ]
    days = like.days
    if days is not None:
        sds = {name: getattr(days, name) for name in ("common_relative_sd", "cpu_relative_sd", "run_relative_sd")}
        changed = {name: None if sd is None else sd * temporal for name, sd in sds.items()}
        days = days.model_copy(update={**changed, "drift": None})
    return {
        "description": f"A hypothetical cluster of {nodes} nodes like {like.name}: no such machine was measured.\n"
        f"dgemm of each of its {nodes * cpus} CPUs takes a factor times that of the typical cpu (seed {seed}), "
        f"{origin}.\nAssumed: all else is as on {like.name} whatever the number of nodes.\n",
        "sentinel": None,
        "assumed": [entry.model_dump() for entry in (*(like.assumed or ()), assumed)],
        "kernels": [kernel.model_dump() for kernel in kernels],
        "days": None if days is None else days.model_dump(),
    }


def _spread(like: Platform) -> float | None:
    """Relative standard deviation of an update of HPL between the CPUs of `like`; None if too few were measured."""
    model = next((model for model in like.kernels if model.kernel == "dgemm"), None)
    tables = [] if model is None else [piece.per_cpu for piece in model.pieces if piece.per_cpu is not None]
    if not tables or len({row[0] for row in tables[-1].rows}) < MIN_NODES:
        return None
    table = tables[-1]
    durations_s = [value_of(dict(zip(table.mean_terms, row[2:], strict=False)), *UPDATE) for row in table.rows]
    return stdev(durations_s) / fmean(durations_s)


def _of_cpus(piece: "Piece", factors: dict[tuple[int, int], float]) -> "Piece":
    columns = ("node", "cpu", *piece.mean, *(f"sd:{term}" for term in piece.noise.sd))
    values = (*piece.mean.values(), *piece.noise.sd.values())
    rows = tuple(
        (float(node), float(cpu), *(float(f"{value * factor:.7g}") for value in values))
        for (node, cpu), factor in factors.items()
    )
    return piece.model_copy(update={"per_cpu": PerCpu(columns=columns, rows=rows)})


def odd_cpus(cluster: Platform) -> list[str]:
    """Sentences about CPUs whose drawn coefficient of the largest term is 0 or less: their calls would cost nothing."""
    population = cluster.population
    model = None if population is None else cluster.kernel(population.kernel, population.threads)
    tables = [piece.per_cpu for piece in model.pieces if piece.per_cpu is not None] if model is not None else []
    return [
        f"{count} of {len(table.rows)} CPUs drew a coefficient of {table.columns[2]} of 0 or less: their calls cost "
        "nothing; choose a smaller --spatial"
        for table in tables
        if (count := sum(row[2] <= 0.0 for row in table.rows))
    ]


def _with_threads(
    like: Platform, population: Population | None, threads: int
) -> tuple[Platform, Population | None, int]:
    """`like` for ranks of this many threads as well, the population of their dgemm, and CPUs that a rank computes on.

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
    share, share_sd = data_sheet.THREADS[None]
    added, assumed = list(like.kernels), list(like.assumed or ())
    if known is None:
        added += [
            _guessed(model, threads, threads * share, share_sd)
            for model in like.kernels
            if model.threads == 1
            and model.kernel in ("dgemm", *data_sheet.OF_DGEMM)
            and like.kernel(model.kernel, threads) is None
        ]
        what = f"dgemm and dtrsm at {100 * share:.0f} % of the rate of {threads} cores"
        assumed.append(
            Assumption(what=f"{threads} threads a rank", relative_sd=share_sd, source=f"{what}; not measured")
        )
    shape = nodes.model_copy(update={"core_to_cpu": "block", **({"cpus": 1} if spanned > 1 else {})})
    update = {"nodes": shape, "kernels": tuple(added), "assumed": tuple(assumed) or None}
    if spanned > 1:  # what single CPUs did has no place any more; the population has it
        update |= {"population": None, "kernels": tuple(_of_the_mean_cpu(kernel) for kernel in added)}
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
    fitting = [count for count in range(1, of_cpu + 1) if of_cpu % count == 0]
    known = ", ".join(map(str, dict.fromkeys([*fitting, nodes.cores])))
    raise InputError(f"ranks of {threads} threads fill no CPUs of a node of {name}; take {known} threads")


def _guessed(model: "KernelModel", threads: int, faster: float, speed_sd: float) -> "KernelModel":
    relative_sd = round(hypot(model.discrepancy_relative_sd, speed_sd), 4)
    source = f"{model.discrepancy_source or 'one core'}; {faster:.3g} times as fast on {threads} cores, assumed"
    return data_sheet.scaled(model, 1.0 / faster, relative_sd, source).model_copy(update={"threads": threads})


def _of_threads(population: Population, threads: int, factor: float, spanned: int) -> Population:
    """The population of calls that take `factor` times as long, on ranks of this many CPUs."""
    variance = factor * factor / spanned

    def parts(holder: Group | Population) -> dict[str, Any]:
        found = {name: getattr(holder, name, None) for name in ("covariance_spatial", "covariance_temporal")}
        return {name: _times(rows, variance) for name, rows in found.items() if rows is not None}

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

"""A hypothetical cluster like a platform without a population: CPUs differ by one factor on dgemm each."""

from statistics import fmean, stdev
from typing import TYPE_CHECKING

from lepaute import _core
from lepaute.errors import InputError
from lepaute.platform.components import COMPUTING, topology_for
from lepaute.platform.kernel_model import UPDATE, value_of
from lepaute.simulate.population import SPATIAL

if TYPE_CHECKING:
    from lepaute.platform.schema import Days, KernelModel, Piece, Platform

#: Relative standard deviation between CPUs where nobody measured it: Dahu's CPUs differ by 3.4 % (January 2020).
ASSUMED_SD = 0.03
#: A spread of fewer nodes is not that of a cluster.
LEAST_NODES = 4
#: No cpu is faster than that: an unlucky draw with a large --spatial must not cost nothing.
LEAST_FACTOR = 0.1


def synthesize_by_factor(like: "Platform", *, nodes: int, spatial: float, temporal: float, seed: int) -> "Platform":
    """A cluster of `nodes` nodes whose CPUs take the time of the typical cpu of `like` times a factor, normal around 1.

    The spread of the factors is that of the CPUs of `like`, if it has coefficients for those of LEAST_NODES nodes, and
    ASSUMED_SD else. The layer `days` of `like` stays, its standard deviations times `temporal`.
    Raises InputError where `like` has no dgemm, or its topology no form with so many nodes.
    """
    from lepaute.platform.schema import Assumption, Platform

    if not any(model.kernel in COMPUTING for model in like.kernels):
        raise InputError(f"platform {like.name} has no dgemm, whose speed would differ between CPUs; choose another")
    measured_sd = _spread(like)
    relative_sd = spatial * (ASSUMED_SD if measured_sd is None else measured_sd)
    first, cpus = like.nodes.first_number, like.nodes.cpus
    normals = _core.normals(seed, SPATIAL, nodes * cpus, 1)
    factors = {
        (first + place // cpus, place % cpus): max(LEAST_FACTOR, 1.0 + relative_sd * normal)
        for place, normal in enumerate(normals)
    }
    origin = f"sd {100 * relative_sd:.2g} % between CPUs, " + (
        f"{spatial:g} times an assumed one (Dahu's: 3.4 %)"
        if measured_sd is None
        else f"{spatial:g} times that of the CPUs of {like.name}"
    )
    assumed = Assumption(what=f"differences between the CPUs of {nodes} nodes", source=origin)
    content = like.model_dump() | {
        "name": f"{like.name}-synthetic-{nodes}",
        "description": f"A hypothetical cluster of {nodes} nodes like {like.name}: no such machine was measured.\n"
        f"dgemm of each of its {nodes * cpus} CPUs takes a factor times that of the typical cpu (seed {seed}), "
        f"{origin}.\nAssumed: all else is as on {like.name} whatever the number of nodes.\n",
        "source": f"lepaute platform synthesize, like {like.name} (sha256 {like.sha256})",
        "archive_id": None,
        "sentinel": None,
        "assumed": [each.model_dump() for each in (*(like.assumed or ()), assumed)],
        "nodes": like.nodes.model_dump() | {"count": nodes},
        "kernels": [_of_factors(model, factors).model_dump() for model in like.kernels],
        "topology": topology_for(like.topology, nodes, like.name).model_dump(),
        "days": None if like.days is None else _scaled_days(like.days, temporal).model_dump(),
    }
    return Platform.model_validate(content)


def _spread(like: "Platform") -> float | None:
    """Relative standard deviation of an update of HPL between the CPUs of `like`; None where too few were measured."""
    model = next((model for model in like.kernels if model.kernel == "dgemm"), None)
    tables = [] if model is None else [piece.per_cpu for piece in model.pieces if piece.per_cpu is not None]
    if not tables or len({row[0] for row in tables[-1].rows}) < LEAST_NODES:
        return None
    table = tables[-1]
    durations_s = [value_of(dict(zip(table.mean_terms, row[2:], strict=False)), *UPDATE) for row in table.rows]
    return stdev(durations_s) / fmean(durations_s)


def _of_factors(model: "KernelModel", factors: dict[tuple[int, int], float]) -> "KernelModel":
    """`model` with its mean times a factor for each cpu, if it is of COMPUTING; without coefficients of CPUs else."""
    pieces = tuple(
        _of_cpus(piece, factors) if model.kernel in COMPUTING else piece.model_copy(update={"per_cpu": None})
        for piece in model.pieces
    )
    return model.model_copy(update={"pieces": pieces})


def _of_cpus(piece: "Piece", factors: dict[tuple[int, int], float]) -> "Piece":
    from lepaute.platform.schema import PerCpu

    columns = ("node", "cpu", *piece.mean, *(f"sd:{term}" for term in piece.noise.sd))
    values = (*piece.mean.values(), *piece.noise.sd.values())
    rows = tuple(
        (float(node), float(cpu), *(float(f"{value * factor:.7g}") for value in values))
        for (node, cpu), factor in factors.items()
    )
    return piece.model_copy(update={"per_cpu": PerCpu(columns=columns, rows=rows)})


def _scaled_days(days: "Days", factor: float) -> "Days":
    run = days.run_relative_sd
    return days.model_copy(
        update={
            "common_relative_sd": days.common_relative_sd * factor,
            "cpu_relative_sd": days.cpu_relative_sd * factor,
            "run_relative_sd": None if run is None else run * factor,
            "drift": None,
        }
    )

"""What a node that computes slower, or faster, than the platform says costs an HPL: with it, and without it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, inf, sqrt
from typing import Any, Self

from lepaute import _core
from lepaute.errors import InputError
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.conditions import Conditions, Fidelity, Layers
from lepaute.simulate.machine.core import per_cpu_coefficients
from lepaute.simulate.machine.mapping import Mapping as RankMapping
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform.components import COMPUTING, with_cpu_factors
from lepaute.simulate.platform.io import override
from lepaute.simulate.platform.kernel_model import UPDATE, piece_of, value_of
from lepaute.simulate.platform.nodes import Nodes
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.assembling import prediction_of
from lepaute.simulate.prediction.comparing import Difference, difference
from lepaute.simulate.prediction.predicting import check_runs, predict, predict_all, usual_engine
from lepaute.simulate.prediction.prediction import Prediction
from lepaute.simulate.prediction.request import PredictionRequest
from lepaute.simulate.prediction.warnings import alike_warnings, idle_settings
from lepaute.simulate.tasks import Task, run_tasks
from lepaute.stats.cholesky import lower_factor, multiply_lower_triangular
from lepaute.version import __version__

#: Stream of draws, apart from those of the engine.
_STREAM = 0x434F5354
#: A draw from few jobs has tails without bounds; no CPU is a thousand times as slow.
_LARGEST_LOG = 7.0


@dataclass(frozen=True, slots=True)
class CpuFactors:
    """How many times as long calls take on each cpu of a node, as estimated from few jobs.

    log_mean, log_covariance : of the logarithms of the factors and of their errors, a row for each cpu
    degrees_of_freedom : of the covariance; the errors are distributed as Student's t, jointly
    """

    cpus: tuple[int, ...]
    log_mean: tuple[float, ...]
    log_covariance: tuple[tuple[float, ...], ...]
    degrees_of_freedom: int

    def __post_init__(self) -> None:
        size = len(self.cpus)
        if not size or len(self.log_mean) != size or [len(row) for row in self.log_covariance] != [size] * size:
            raise InputError(f"the factors are of {size} CPUs; give a mean and a row of the covariance for each")
        if self.degrees_of_freedom < 1:
            raise InputError(f"degrees of freedom are {self.degrees_of_freedom}; at least one is needed")

    @classmethod
    def of_processors(
        cls,
        nodes: Nodes,
        processors: Sequence[int],
        log_mean: Sequence[float],
        log_covariance: Sequence[Sequence[float]],
        degrees_of_freedom: int,
    ) -> Self:
        """From processors as jobs number them, -1 for the whole node, to the CPUs of a platform that are of each.

        Where a cpu is the whole node, the slowest processor counts: HPL waits for it.
        Raises InputError if the platform has another number of processors.
        """
        count = len(processors)
        if count == 1:
            of_cpu = [0] * nodes.cpus
        elif nodes.cpus == 1:
            of_cpu = [max(range(count), key=lambda at: log_mean[at])]
        elif nodes.cpus == count:
            of_cpu = list(range(count))
        elif nodes.sockets == count:
            of_cpu = [nodes.socket_of_cpu(cpu) for cpu in range(nodes.cpus)]
        else:
            raise InputError(
                f"the node has {count} processors, and a node of the platform {nodes.cpus} CPUs; take another"
            )
        return cls(
            tuple(range(nodes.cpus)),
            tuple(log_mean[at] for at in of_cpu),
            tuple(tuple(log_covariance[row][column] for column in of_cpu) for row in of_cpu),
            degrees_of_freedom,
        )

    @property
    def mean(self) -> dict[int, float]:
        return {cpu: _core.exponential(value) for cpu, value in zip(self.cpus, self.log_mean, strict=True)}

    def drawn(self, seed: int) -> dict[int, float]:
        """Factors by cpu that they may be, drawn for this seed."""
        size = len(self.cpus)
        normals = _core.normals(seed, _STREAM, 1, size + self.degrees_of_freedom)
        errors = multiply_lower_triangular(lower_factor(self.log_covariance), normals[:size])
        scale = sqrt(self.degrees_of_freedom / fsum(value * value for value in normals[size:]))
        logs = [mean + scale * error for mean, error in zip(self.log_mean, errors, strict=True)]
        return {
            cpu: _core.exponential(max(-_LARGEST_LOG, min(_LARGEST_LOG, log)))
            for cpu, log in zip(self.cpus, logs, strict=True)
        }


@dataclass(frozen=True)
class NodeCost:
    """An HPL on nodes as the platform says, with one node as it is now, and without this node.

    spare_nodes : further nodes of the platform, one of which could take its place
    as_calibrated, as_now, without : predictions; the last None if the node is the only one
    slowdown    : as_now against as_calibrated;  gain : without against as_now
    shared_slowdown : what the ratio would be if the work were shared by speed
    slowest     : number of the node of the job that is the slowest in an update of HPL now; it may be another one
    """

    node: int
    factors: CpuFactors
    nodes: int
    spare_nodes: int
    as_calibrated: Prediction
    as_now: Prediction
    without: Prediction | None
    slowdown: Difference
    gain: Difference | None
    shared_slowdown: float
    slowest: int
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        first = self.as_calibrated
        return {
            "application": first.application.name,
            "platform": first.platform_name,
            "platform_sha256": first.platform_sha256,
            "parameters": first.application.parameters(),
            "seed": first.seed,
            "runs": len(first.run_list),
            "platform_node": self.node,
            "nodes": self.nodes,
            "spare_nodes": self.spare_nodes,
            "as_calibrated": _case(first),
            "as_now": _case(self.as_now),
            "without_node": None if self.without is None else _case(self.without),
            "as_now_against_as_calibrated": self.slowdown.to_dict(),
            "without_node_against_as_now": None if self.gain is None else self.gain.to_dict(),
            "slowest_node": self.slowest,
            "if_work_were_shared_by_speed": {"ratio": self.shared_slowdown},
            "warnings": list(self.warnings),
            "version": __version__,
        }


def node_cost(
    hpl: Hpl,
    platform: Platform,
    node: int,
    factors: CpuFactors,
    *,
    runs: int = 10,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    layers: Layers | None = None,
    fidelity: Fidelity = "auto",
    grid_without: tuple[int, int] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> NodeCost:
    """Predicts the three; run i of each sees one machine on one day, and the second a draw of the factors.

    node : its number; where it is not among the first nodes, which the ranks would fill, it comes before these
    settings : fields of the platform and their values
    grid_without : of the job without the node; by default the fastest of grids_within the ranks that are left
    Raises InputError if the platform lacks the node, its cpus or dgemm, or the job or its grid does not fit.
    """
    tell = progress or (lambda _what, _share: None)
    original, settings = platform, settings or {}
    platform = override(original, settings) if settings else original
    if not any(model.kernel in COMPUTING for model in platform.kernels):
        raise InputError(f"platform {platform.name} has no dgemm, which the node's factors are of; take another")
    base = with_cpu_factors(platform, node, dict.fromkeys(factors.cpus, 1.0))
    per_node = platform.nodes.cores // hpl.threads_per_rank
    index = node - platform.nodes.first_number
    job = _nodes_of_job(hpl, base, index, per_node)
    others = [each for each in job if each != index]
    if grid_without is not None and not others:
        raise InputError("--grid-without is of the job without the node, which has no other; leave it out")
    request = PredictionRequest(
        runs=runs, seed=seed, layers=layers or Layers(), fidelity=fidelity, mapping=_on(job, per_node, hpl)
    )

    def predicted(application: Hpl, machine: Platform, request: PredictionRequest, what: str = "") -> Prediction:
        (prediction,) = predict_all([application], machine, request, progress=partial(tell, what) if what else None)
        return prediction

    as_calibrated = predicted(hpl, base, request, "as calibrated")

    def time_without(_at: int, fewer: Mapping[str, str]) -> float:
        try:
            machine = with_cpu_factors(override(original, fewer), node, dict.fromkeys(factors.cpus, 1.0))
        except InputError:  # without the setting there is no such node
            return inf
        return predicted(hpl, machine, replace(request, runs=1)).time_s.mean

    idle = idle_settings(settings, [as_calibrated.first.time_s], time_without) if as_calibrated.first else ()
    now = [with_cpu_factors(platform, node, factors.drawn(seed + run)) for run in range(runs)]
    as_now = _predict_on_variants(hpl, now, replace(request, repeat=1), partial(tell, "the node as it is now"))
    without = None
    if others:
        on_others = replace(request, repeat=2, mapping=_on(others, per_node, hpl))
        without = predicted(_smaller(hpl, base, others, per_node, grid_without), base, on_others, "without the node")
    predictions = [each for each in (as_calibrated, as_now, without) if each is not None]
    speeds = [1.0 / factor for factor in factors.mean.values()]
    return NodeCost(
        node=node,
        factors=factors,
        nodes=len(job),
        spare_nodes=platform.nodes.count - len(job),
        as_calibrated=as_calibrated,
        as_now=as_now,
        without=without,
        slowdown=difference(as_calibrated, as_now),
        gain=None if without is None else difference(as_now, without),
        shared_slowdown=len(job) / (len(job) - 1 + fsum(speeds) / len(speeds)),
        slowest=_slowest(with_cpu_factors(platform, node, factors.mean), job),
        warnings=(*idle, *(alike.line(len(predictions)) for alike in alike_warnings(predictions))),
    )


def _predict_on_variants(
    application: Hpl, platforms: Sequence[Platform], request: PredictionRequest, progress: Callable[[float], None]
) -> Prediction:
    """A prediction whose run i, of seed + i, is on platforms[i]: variants of one machine, any of which may be the real
    one. Its conditions, and what is told of its first run, are those on the first platform.
    """
    check_runs([application], len(platforms))
    of_run = (request.layers, request.mapping, request.fidelity)
    conditions = [Conditions(platform, *of_run, repeat=request.repeat) for platform in platforms]
    simulators = [usual_engine(application).on(variant) for variant in conditions]
    for simulator in simulators:
        simulator.prepare(application)
    tasks = [
        Task(run, application.on().events, partial(simulator.run, application, request.seed + run, first=run == 0))
        for run, simulator in enumerate(simulators)
    ]
    finished = run_tasks(tasks, progress)
    return prediction_of(application, conditions[0], simulators[0], [finished[run] for run in range(len(tasks))])


def _nodes_of_job(hpl: Hpl, platform: Platform, index: int, per_node: int) -> list[int]:
    """Indices of the nodes, the node at `index` among them."""
    count = -(-hpl.ranks // max(1, per_node))
    if count > platform.nodes.count:
        raise InputError(
            f"{hpl.ranks} ranks need {count} nodes, and platform {platform.name} has {platform.nodes.count}; "
            "take a smaller grid"
        )
    first = list(range(count))
    return first if index < count else [index, *first[:-1]]


def _slowest(platform: Platform, job: Sequence[int]) -> int:
    """The number of the node whose slowest cpu takes the longest for an update of HPL."""
    model = next(model for model in platform.kernels if model.kernel in COMPUTING)
    piece = piece_of(model, *UPDATE)
    table = per_cpu_coefficients(piece)
    nodes, by_socket = platform.nodes, piece.per_cpu is not None and piece.per_cpu.by_socket

    def duration_s(index: int) -> float:
        number = nodes.first_number + index
        units = {nodes.socket_of_cpu(cpu) if by_socket else cpu for cpu in range(nodes.cpus)}
        return max(value_of(table.get((number, unit), (piece.mean, {}))[0], *UPDATE) for unit in units)

    return nodes.first_number + max(job, key=duration_s)


def _on(nodes: Sequence[int], per_node: int, hpl: Hpl) -> RankMapping:
    threads = hpl.threads_per_rank
    slots = tuple(Slot(node, slot * threads) for node in nodes for slot in range(per_node))
    return RankMapping(slots=slots, source="the job")


def _smaller(hpl: Hpl, platform: Platform, nodes: Sequence[int], per_node: int, grid: tuple[int, int] | None) -> Hpl:
    """The job on the nodes that are left: on the grid that is asked for, or the fastest without noise."""
    ranks = min(len(nodes) * per_node, hpl.ranks)  # the last node of the job may not have been full
    if grid is not None:
        if grid[0] * grid[1] > ranks:
            raise InputError(f"the grid without the node is {grid[0]}x{grid[1]}; there are {ranks} ranks")
        return replace(hpl, p=grid[0], q=grid[1])
    candidates = [replace(hpl, p=p, q=q) for p, q in grids_within(ranks, (hpl.p, hpl.q))]
    if len(candidates) == 1:
        return candidates[0]
    quick: Mapping[str, Any] = {"runs": 1, "layers": Layers.only(), "mapping": _on(nodes, per_node, hpl)}
    return min(candidates, key=lambda each: predict(each, platform, fidelity="sampled", **quick).run_list[0].time_s)


def _case(prediction: Prediction) -> dict[str, Any]:
    hpl: Any = prediction.application
    return {
        "nodes": prediction.nodes,
        "grid": [hpl.p, hpl.q],
        "time_s": prediction.time_s.to_dict(),
        "rate_gflops": prediction.rate_gflops.to_dict(),
        "runs": [{"seed": run.seed, "time_s": run.time_s, "rate_gflops": run.rate} for run in prediction.run_list],
    }


#: A grid leaves at most this share of the processes out, unless there is no other.
IDLE_SHARE = 0.1
#: And is at most so much longer than wide; HPL's documentation advises nearly square ones.
MAX_ASPECT = 4.0
MAX_GRIDS = 4


def grids_within(ranks: int, like: tuple[int, int]) -> list[tuple[int, int]]:
    """Grids P x Q of at most `ranks` processes, lying as `like` does (P <= Q or P >= Q), at most MAX_GRIDS.

    The fewest idle processes first, then the nearest to square. Where that leaves none, the grid with the fewest idle.
    """
    tall = like[0] > like[1]
    least = max(1, ranks - int(IDLE_SHARE * ranks))
    found = [
        (p, used // p)
        for used in range(ranks, least - 1, -1)
        for p in range(int(used**0.5), 0, -1)
        if used % p == 0 and used // p <= MAX_ASPECT * p
    ]
    if not found:
        # The nearest to square of each width, of which the one with the fewest idle processes.
        found = sorted(
            ((p, ranks // p) for p in range(1, int(ranks**0.5) + 1)),
            key=lambda grid: (ranks - grid[0] * grid[1] > IDLE_SHARE * ranks, grid[1] / grid[0]),
        )[:1]
    return [(q, p) if tall else (p, q) for p, q in found[:MAX_GRIDS]]

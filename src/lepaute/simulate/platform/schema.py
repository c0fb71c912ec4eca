"""A platform: a machine, as far as its performance is concerned; the whole of the file format.

Durations in seconds, sizes in bytes, bandwidths in bytes per second; names say so. Every value refuses nonsense when it
is made, so nothing later has to check again. `Platform` is the whole; the file format is its YAML form (`io`).
"""

import hashlib
import json
from datetime import UTC, datetime
from functools import cached_property
from math import inf, sqrt
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from annotated_types import Gt, Le, Len, Lt

from lepaute.errors import PlatformError
from lepaute.kit.documents import MAX_BYTES
from lepaute.kit.files import write_atomic
from lepaute.kit.notebook import facts_html
from lepaute.kit.text import significant
from lepaute.simulate.platform.kernel_model import KernelModel
from lepaute.simulate.platform.network_model import Network
from lepaute.simulate.platform.nodes import (
    MAX_GROUPS,
    NodeGroup,
    Nodes,
    Power,
    check_groups,
    check_models,
    cores_text,
    parts_of,
)
from lepaute.simulate.platform.population import Population
from lepaute.simulate.platform.topology import SWITCH, Topology
from lepaute.simulate.platform.values import (
    Check,
    CoreCount,
    Count,
    DegreesOfFreedom,
    NonNegative,
    Number,
    Positive,
    Value,
    fault,
)
from lepaute.stats.variogram import variance_after

#: No machine is known worse than by a factor of about two: a random walk that is continued for a year says nothing.
MAX_RELATIVE_SD = 0.5


def _date(text: str) -> str:
    try:
        known = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise fault(f"is {text[:40]!r}; a date and time with its zone is expected, such as 2026-11-22T20:13:49+00:00")
    return text


Date = Annotated[str, Check(after=_date)]


class Sentinel(Value):
    """The product that watches over the speed of the machine: dgemm(m, n, k) on all cores at once, over and over.

    `duration_s`: of one call, mean over the calibration; `relative_error`: its standard error over it
    `ended`: date of the last one
    """

    m: Count
    n: Count
    k: Count
    duration_s: Positive
    relative_error: NonNegative
    ended: Date

    @property
    def gflops(self) -> float:
        """Rate of one core."""
        return 2e-9 * self.m * self.n * self.k / self.duration_s

    def lag_s(self, now: datetime | None = None) -> float:
        """Seconds from the end of the calibration until a date, the present unless given; never below 0."""
        return max(0.0, ((now or datetime.now(UTC)) - datetime.fromisoformat(self.ended)).total_seconds())


class Drift(Value):
    """The variogram of log(duration of a sentinel): exponential, or, in older platforms, of a random walk.

    `slope_per_s`: growth of the semivariance in a second of lag, at short lags
    `range_s`: where the semivariance levels off, at slope_per_s * range_s; null: it grows on
    `span_s`: of the calibrations; what the variogram says of longer lags was not measured
    `common_relative_sd`: what the effect of the day holds of it already, being the spread between blocks minutes apart
    """

    slope_per_s: NonNegative
    range_s: Positive | None = None
    span_s: Positive
    common_relative_sd: NonNegative

    def relative_sd(self, lag_s: float) -> float:
        """Relative sd of the machine `lag_s` after the calibration, less its mean during it."""
        variance = variance_after(self.slope_per_s, self.range_s or inf, self.span_s, max(0.0, lag_s))
        # Twelve digits: the last ones of the exponential in it depend on the processor.
        return min(MAX_RELATIVE_SD, float(f"{sqrt(variance):.12g}"))

    def day_relative_sd(self, common_relative_sd: float, lag_s: float) -> float:
        """The effect of the day with what the machine drifts by, beyond what the former holds already."""
        after, known = self.relative_sd(lag_s), self.common_relative_sd
        more = max(0.0, after * after - known * known)
        return max(common_relative_sd, min(MAX_RELATIVE_SD, sqrt(common_relative_sd * common_relative_sd + more)))


class Assumption(Value):
    """A part of the platform that nobody measured; predictions name it.

    what        : in words: "message times between nodes"
    relative_sd : standard deviation that runs draw for it; null where they draw none
    source      : where the value comes from, and what the standard deviation rests on
    """

    what: Annotated[str, Len(1, 500)]
    relative_sd: NonNegative | None = None
    source: str | None = None

    @property
    def text(self) -> str:
        """In words, with its standard deviation where there is one."""
        return (
            self.what if self.relative_sd is None else f"{self.what} (sd {significant(100.0 * self.relative_sd, 2)} %)"
        )


FORMAT: Final = "lepaute-platform/1"


class Days(Value):
    """Relative effects on kernel durations, drawn once a run: of the day and of the run on all CPUs, and of each CPU.

    `run_relative_sd`: what two runs of one day differ by on all CPUs alike; null where the day's effect includes it.
    `degrees_of_freedom`: of the effect of the day, and of those of run and CPU where they have none of their own.
    `drift`: how the effect of the day grows with the time since the calibration; null where that is not known.
    """

    common_relative_sd: NonNegative
    cpu_relative_sd: NonNegative
    degrees_of_freedom: DegreesOfFreedom
    run_relative_sd: NonNegative | None = None
    run_degrees_of_freedom: DegreesOfFreedom | None = None
    cpu_degrees_of_freedom: DegreesOfFreedom | None = None
    source: str | None = None
    drift: Drift | None = None

    def at_lag(self, lag_s: float) -> "Days":
        """The effects on a run so long after the calibration: what the machine drifts by on the way is in that of the
        day; they have no drift any more. Itself where the drift is not known."""
        if self.drift is None:
            return self
        common = self.drift.day_relative_sd(self.common_relative_sd, lag_s)
        return self.model_copy(update={"common_relative_sd": common, "drift": None})


class Episodes(Value):
    """Relative effect on the kernel durations of one core, drawn anew after each `duration_s` seconds of computing."""

    relative_sd: NonNegative
    duration_s: Positive


class Wandering(Value):
    """How the speed of a core wanders: the logarithm of its kernel durations holds an Ornstein-Uhlenbeck process, of
    this standard deviation and correlation time, in the seconds that the core computes.

    `relative_sd_error`, `correlation_error`: standard errors of the logarithms of both; a simulation draws them once.
    """

    relative_sd: NonNegative
    correlation_s: Positive
    relative_sd_error: NonNegative = 0.0
    correlation_error: NonNegative = 0.0


class SlowState(Value):
    """A state in which whole nodes are slow for a while, all cores at once, as a neighbour behind a hypervisor makes
    them: episodes and what is between them last exponential times, each node's its own.

    `share`: of the time;  `length_s`: mean of an episode;  `factor`: durations meanwhile, over those otherwise
    `share_error`, `length_error`, `factor_error`: standard errors of their logarithms; a machine draws them once.
    `factor_relative_sd`: of the factor between episodes, log-normal about `factor`.
    `least_busy_cores`: a node has episodes only while this many of its cores compute; null: whatever is busy.
    """

    share: Annotated[Positive, Lt(1)]
    length_s: Positive
    factor: Annotated[Number, Gt(1), Le(1e6)]
    share_error: NonNegative = 0.0
    length_error: NonNegative = 0.0
    factor_error: NonNegative = 0.0
    factor_relative_sd: NonNegative = 0.0
    least_busy_cores: CoreCount | None = None
    source: str | None = None

    @property
    def text(self) -> str:
        """In words."""
        cores = f", while {self.least_busy_cores} cores or more compute" if self.least_busy_cores else ""
        return (
            f"{significant(100.0 * self.share, 2)} % of the time a node takes {significant(self.factor)} times as "
            f"long, for {significant(self.length_s, 2)} s on average{cores}"
        )


class Blas(Value):
    """The BLAS kernels that were measured: OpenBLAS' name for them, and the OPENBLAS_CORETYPE that they needed."""

    core: Annotated[str, Len(1)]
    coretype_env: Annotated[str, Len(1)] | None = None


class Platform(Value):
    """A machine, as far as its performance is concerned.

    `assumed`: what of it was not measured; null: nothing, or not known.
    `groups`: of nodes that differ, one after the other; null: all nodes are alike.
    """

    format: Literal["lepaute-platform/1"] = FORMAT
    name: Annotated[str, Len(1)]
    description: str = ""
    source: str | None = None
    archive_id: str | None = None
    assumed: tuple[Assumption, ...] | None = None
    blas: Blas | None = None
    sentinel: Sentinel | None = None
    nodes: Nodes
    groups: Annotated[tuple[NodeGroup, ...], Len(1, MAX_GROUPS)] | None = None
    kernels: tuple[KernelModel, ...]
    network: Network
    topology: Topology = SWITCH
    days: Days | None = None
    population: Population | None = None
    episodes: Episodes | None = None
    wandering: Wandering | None = None
    slow_state: SlowState | None = None
    power: Power | None = None

    def __repr__(self) -> str:
        return f"<Platform {self.name!r}: {cores_text(self)}, {len(self.kernels)} kernel models>"

    __str__ = __repr__

    def facts_in_short(self) -> dict[str, object]:
        """Nodes, cores of a node, first sentence of the description, digest: values for JSON."""
        first = " ".join(self.description.split()).split(". ")[0].rstrip(".")
        nodes, sha256 = self.nodes, self.sha256
        facts: dict[str, object] = {"nodes": nodes.count, "cores": nodes.cores, "description": first, "sha256": sha256}
        if self.groups is not None:
            facts["groups"] = {group.name: group.nodes for group in self.groups}
        return facts

    def _repr_html_(self) -> str:
        facts = self.facts_in_short()
        rows = [
            ("nodes", cores_text(self) if self.groups else f"{facts['nodes']} of {facts['cores']} cores"),
            ("kernels", ", ".join(sorted({model.kernel for model in self.kernels}))),
            ("topology", self.topology.kind),
            ("source", self.source),
            ("sha256", self.sha256[:12]),
        ]
        return facts_html(self.name, rows, [str(facts["description"])] if self.description else [])

    def to_yaml(self, path: "str | Path") -> None:
        """Writes the platform file, whole or not at all; `load_platform` reads it back as an equal platform.

        Raises PlatformError if the file would be too large to be read back.
        """
        text = platform_text(self)
        if len(text.encode()) > MAX_BYTES:
            raise PlatformError(f"{path}: would have more than the {MAX_BYTES} bytes that are read; take fewer nodes")
        write_atomic(path, text)

    @cached_property
    def models(self) -> "Platform":
        """The platform that was measured: itself, or of a variant (`variant_of`) the one that it is a variant of."""
        return self

    @cached_property
    def parts(self) -> "tuple[Platform, ...]":
        """A platform for each group of nodes, of like nodes under their numbers here; itself where all are alike."""
        return parts_of(self)

    def node(self, index: int) -> Nodes:
        """What the node of that index (0 to count - 1) is, and those like it."""
        parts = iter(self.parts)
        part = next(parts)
        while index >= part.nodes.first_number - self.nodes.first_number + part.nodes.count:
            part = next(parts)
        return part.nodes

    def variant_of(self, original: "Platform") -> Self:
        """This one, as a variant of another one: for a seed both draw the same errors, which cancel between them."""
        vars(self)["models"] = original.models
        return self

    def kernel(self, name: str, threads: int = 1) -> KernelModel | None:
        """The model of kernel `name` run by `threads` threads; None if there is none."""
        return next((model for model in self.kernels if (model.kernel, model.threads) == (name, threads)), None)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical content: JSON, sorted keys, shortest floats, without description and nulls.

        Equal digests predict alike, to the last bit. The order of keys is no content; that of lists is.
        """
        # Nulls are left out so that a field added later, null by default, leaves the digests of old files as they are.
        content = self.model_dump(exclude={"description"}, exclude_none=True)
        for model in content["kernels"]:
            for piece in model["pieces"]:
                if "covariance" in piece:
                    # Its terms are those of the mean, in an order of their own: without them, files of versions that
                    # did not name them keep their digest.
                    piece["covariance"] = piece["covariance"]["matrix"]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __post_init__(self) -> None:
        expected = self.topology.node_count
        if expected not in (None, self.nodes.count):
            raise fault(f"is for {expected} nodes; nodes.count is {self.nodes.count}", "topology", "parameters")
        check_models(self.kernels, self.nodes, "kernels")
        check_groups(self)
        if self.episodes is not None and self.wandering is not None:
            raise fault("is another description of what episodes describe", "wandering", remedy="Remove one.")
        if self.slow_state is not None and (self.slow_state.least_busy_cores or 0) > self.nodes.cores:
            problem = f"is {self.slow_state.least_busy_cores}; a node has {self.nodes.cores} cores"
            raise fault(problem, "slow_state", "least_busy_cores")
        if self.population is not None:
            _check_population(self.population, self.kernel(self.population.kernel, self.population.threads), self.nodes)


def _check_population(population: Population, model: KernelModel | None, nodes: Nodes) -> None:
    if model is None:
        problem = f"is for {population.kernel} with {population.threads} threads, which the platform does not model"
        raise fault(problem, "population", "kernel")
    noisy = any(term.startswith("sd:") for term in population.terms)
    if noisy and any(piece.noise.kind == "none" for piece in model.pieces):
        raise fault(f"has terms sd:, but {model.kernel} has no noise", "population", "terms")
    groups = population.group_of_node
    if groups is not None and len(groups) != nodes.count:
        raise fault(f"has {len(groups)} values for {nodes.count} nodes", "population", "group_of_node")
    scales, cpus = population.scale_of_cpu, nodes.count * nodes.cpus
    if scales is not None and len(scales) != cpus:
        raise fault(f"has {len(scales)} values for {cpus} CPUs", "population", "scale_of_cpu")


def platform_text(platform: Platform) -> str:
    """The YAML form: fields in the order of the format without those that are null, a line for each row of numbers."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the C dumper has no type
        """Texts of several lines as literal blocks; all else as PyYAML does it."""

    def text(dumper: Any, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    content = platform.model_dump(mode="json", exclude_none=True)
    for model in content["kernels"]:
        for piece in model["pieces"]:
            if "per_cpu" in piece:
                # node and cpu (or socket) are numbers of things: 1, not 1.0
                piece["per_cpu"]["rows"] = [[int(row[0]), int(row[1]), *row[2:]] for row in piece["per_cpu"]["rows"]]
    # default_flow_style=None: collections of plain values on one line
    form: dict[str, Any] = {"sort_keys": False, "default_flow_style": None, "width": 1000, "allow_unicode": True}
    return str(yaml.dump(content, Dumper=Dumper, **form))


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the platform file."""
    schema = Platform.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema

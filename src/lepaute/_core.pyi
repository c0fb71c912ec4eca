"""Types of the C++ extension module (core/bindings/module.cpp)."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

def kernel_names() -> list[str]: ...
def term_names() -> list[str]: ...
def trace_names() -> list[str]:
    """Names of calls, kernels and phases, as the column `name` of a trace counts them."""

class Segment:
    @staticmethod
    def make(
        above_bytes: float,
        protocol: int,
        latency_s: float,
        bandwidth_Bps: float,
        send: Sequence[float],
        isend: Sequence[float],
        receive: Sequence[float],
        noise_relative_sd: float,
        modes: Sequence[tuple[float, float, float]],
    ) -> Segment: ...

class KernelPiece:
    @staticmethod
    def make(
        where: Sequence[float],
        fitted: Sequence[float],
        mean: Sequence[float],
        deviation: Sequence[float],
        noise: int,
        covariance_terms: Sequence[int],
        covariance: Sequence[float],
        modes: Sequence[tuple[float, float, float]] = ...,
    ) -> KernelPiece: ...

class KernelModel:
    def __init__(self, pieces: Sequence[KernelPiece]) -> None: ...

class Machine:
    nodes: int
    cores_per_node: int
    cpus_per_node: int
    cpu_is_core_modulo: bool
    day_common_relative_sd: float
    day_cpu_relative_sd: float
    day_degrees_of_freedom: int
    episode_relative_sd: float
    episode_s: float
    def __init__(self) -> None: ...
    def set_kernel(self, kernel: int, per_cpu: Sequence[KernelModel], discrepancy: float, crowding: float) -> None: ...
    def set_network(
        self,
        loopback: Sequence[Segment],
        remote: Sequence[Segment],
        loopback_noncontiguous: Sequence[Segment],
        remote_noncontiguous: Sequence[Segment],
        scale: bool,
        exact_sharing: bool,
        node_link_Bps: float,
        loopback_Bps: float,
        loopback_shared: bool,
        iprobe_s: float,
        iprobe_looks_first: bool,
    ) -> None: ...
    def set_fitted_sizes(self, sizes: Sequence[tuple[float, float]]) -> None:
        """(lowest, highest) of loopback, remote, and both noncontiguous, in bytes."""
    def text(self) -> str: ...
    def set_topology(self, topology: Topology) -> None: ...

class Layers:
    coefficients: bool
    days: bool
    discrepancy: bool
    noise: bool
    def __init__(self) -> None: ...

class Size:
    @property
    def m(self) -> float: ...
    @property
    def n(self) -> float: ...
    @property
    def k(self) -> float: ...

class KernelUse:
    @property
    def calls(self) -> int: ...
    @property
    def unmodelled_calls(self) -> int: ...
    @property
    def clipped_means(self) -> int: ...
    @property
    def clipped_deviations(self) -> int: ...
    @property
    def time_s(self) -> float: ...
    @property
    def extrapolated_time_s(self) -> float: ...
    @property
    def outside_low(self) -> Size: ...
    @property
    def outside_high(self) -> Size: ...

class HplParameters:
    n: int
    nb: int
    p: int
    q: int
    depth: int
    nbmin: int
    ndiv: int
    row_major: bool
    def __init__(self) -> None: ...
    swap_threshold: int
    l1_transposed: bool
    u_transposed: bool
    equilibrate: bool
    alignment: int
    copy_l: bool
    pivots: list[int]
    first_row_pivots: bool
    sampled: bool
    windows: tuple[int, int, int]
    def set_algorithms(self, broadcast: int, pfact: int, rfact: int, swap: int) -> None: ...

class MessageUse:
    """Messages of one class of links; times are those of messages alone."""

    @property
    def messages(self) -> int: ...
    @property
    def outside_messages(self) -> int: ...
    @property
    def bytes(self) -> float: ...
    @property
    def outside_bytes(self) -> float: ...
    @property
    def time_s(self) -> float: ...
    @property
    def outside_time_s(self) -> float: ...
    @property
    def outside_low_bytes(self) -> float: ...
    @property
    def outside_high_bytes(self) -> float: ...

class HplResult:
    @property
    def time_s(self) -> float: ...
    @property
    def simulated_steps(self) -> int: ...
    @property
    def sampling_error_s(self) -> float: ...
    @property
    def messages(self) -> int: ...
    @property
    def bytes(self) -> float: ...
    @property
    def message_use(self) -> list[MessageUse]:
        """Of loopback, remote, and both noncontiguous; zero where no sizes are known."""
    @property
    def waiting_s(self) -> float: ...
    @property
    def engine_bytes(self) -> int: ...
    @property
    def kernels(self) -> list[KernelUse]: ...
    @property
    def rank_sent(self) -> list[list[list[float]]]: ...
    @property
    def total_shares_s(self) -> list[float]:
        """Over all ranks: compute, overhead, late, transfer, contention, probe."""
    def rank_shares_s(self) -> NDArray[Any]:
        """The same of each rank, shape (ranks, 6)."""
    def step_shares_s(self) -> NDArray[Any]:
        """Over all ranks of each step, shape (1 + steps, 6), outside of any step first; empty without a trace."""
    def take_trace_columns(self) -> dict[str, NDArray[Any]]:
        """A row a call, once: then they are gone. kind counts kernel, mpi, phase; name counts trace_names()."""

def simulate_hpl(
    parameters: HplParameters,
    machine: Machine,
    layers: Layers,
    core_of_rank: Sequence[int],
    seed: int,
    trace_ranks: Sequence[int] | None = None,
    trace_steps: Sequence[int] | None = None,
) -> HplResult:
    """One run; traces these ranks (none without) in these steps (all without)."""

class TopologyOptions:
    levels: list[tuple[float, float]]
    shared: bool
    node_limiter_Bps: float  # noqa: N815 - the unit
    switch_limiter_Bps: float  # noqa: N815 - the unit
    first_node_number: int
    overrides: Any
    removed: list[str]
    def __init__(self) -> None: ...

class Topology:
    @staticmethod
    def single_switch(nodes: int, options: TopologyOptions) -> Topology: ...
    @staticmethod
    def fat_tree(
        down: Sequence[int],
        up: Sequence[int],
        cables: Sequence[int],
        first_cable_only: bool,
        options: TopologyOptions,
    ) -> Topology: ...
    @staticmethod
    def dragonfly(sizes: Sequence[int], options: TopologyOptions) -> Topology: ...
    @staticmethod
    def torus(dimensions: Sequence[int], options: TopologyOptions) -> Topology: ...
    @staticmethod
    def graph(
        nodes: int,
        switches: Sequence[str],
        cables: Sequence[tuple[str, str, float, float, bool, int]],
        by_latency: bool,
        options: TopologyOptions,
    ) -> Topology: ...
    @property
    def nodes(self) -> int: ...
    @property
    def links(self) -> list[tuple[float, float]]: ...
    def route(self, a: int, b: int) -> list[int]: ...
    def link_name(self, link: int) -> str: ...
    @property
    def state_bytes(self) -> int: ...

class StencilParameters:
    grid: Sequence[int]
    cells: Sequence[int]
    iterations: int
    periodic: bool
    halo: int
    value_bytes: float
    cell_time_s: float
    cell_bytes: float
    node_memory_Bps: float  # noqa: N815 - the unit
    noise_relative_sd: float
    allreduce_values: int
    def __init__(self) -> None: ...
    def set_allreduce(self, algorithm: int) -> None: ...

class StencilResult:
    @property
    def time_s(self) -> float: ...
    @property
    def messages(self) -> int: ...
    @property
    def bytes(self) -> float: ...
    @property
    def message_use(self) -> list[MessageUse]:
        """Of loopback, remote, and both noncontiguous; zero where no sizes are known."""
    @property
    def waiting_s(self) -> float: ...
    @property
    def computing_s(self) -> float: ...
    @property
    def engine_bytes(self) -> int: ...

def simulate_stencil(
    parameters: StencilParameters, machine: Machine, layers: Layers, core_of_rank: Sequence[int], seed: int
) -> StencilResult: ...

class FitSeries:
    @staticmethod
    def make(
        x: NDArray[Any],
        value: NDArray[Any],
        weight: NDArray[Any],
        first: NDArray[Any],
        scale: float = 1.0,
    ) -> FitSeries: ...

def best_partitions(
    series: Sequence[FitSeries], logarithmic: bool, constant: bool, least: int, most: int
) -> list[tuple[list[int], float]]: ...
def best_line(
    series: FitSeries, begin: int, end: int, logarithmic: bool, constant: bool
) -> tuple[float, float, float]: ...
def split_costs(
    series: FitSeries, low: int, high: int, logarithmic: bool, constant: bool, least: int
) -> list[float]: ...
def best_log_cut(series: FitSeries, begin: int, end: int, low: int, high: int) -> int: ...
def normals(seed: int, stream: int, units: int, each: int) -> list[float]:
    """Standard normal variates at (seed, unit, stream, index), all of unit 0 first: units x each of them."""

def uniforms(seed: int, stream: int, units: int, each: int) -> list[float]:
    """The same, uniform in (0, 1)."""

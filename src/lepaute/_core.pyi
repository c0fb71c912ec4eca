"""The C++ core of Lepaute."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


class TopologyOptions:
    def __init__(self) -> None: ...

    @property
    def levels(self) -> list[tuple[float, float]]: ...

    @levels.setter
    def levels(self, arg: Sequence[tuple[float, float]], /) -> None: ...

    @property
    def shared(self) -> bool: ...

    @shared.setter
    def shared(self, arg: bool, /) -> None: ...

    @property
    def node_limiter_Bps(self) -> float: ...

    @node_limiter_Bps.setter
    def node_limiter_Bps(self, arg: float, /) -> None: ...

    @property
    def switch_limiter_Bps(self) -> float: ...

    @switch_limiter_Bps.setter
    def switch_limiter_Bps(self, arg: float, /) -> None: ...

    @property
    def first_node_number(self) -> int: ...

    @first_node_number.setter
    def first_node_number(self, arg: int, /) -> None: ...

    @property
    def removed(self) -> list[str]: ...

    @removed.setter
    def removed(self, arg: Sequence[str], /) -> None: ...

    @property
    def overrides(self) -> int: ...

    @overrides.setter
    def overrides(self, arg: Sequence[tuple[str, float | None, float | None]], /) -> None: ...

class Topology:
    @staticmethod
    def single_switch(nodes: int, options: TopologyOptions) -> Topology: ...

    @staticmethod
    def fat_tree(down: Sequence[int], up: Sequence[int], cables: Sequence[int], first_cable_only: bool, options: TopologyOptions) -> Topology: ...

    @staticmethod
    def dragonfly(sizes: Sequence[int], options: TopologyOptions) -> Topology: ...

    @staticmethod
    def torus(dimensions: Sequence[int], options: TopologyOptions) -> Topology: ...

    @staticmethod
    def graph(nodes: int, switches: Sequence[str], cables: Sequence[tuple[str, str, float, float, bool, int]], by_latency: bool, options: TopologyOptions) -> Topology: ...

    @staticmethod
    def given_routes(nodes: int, names: Sequence[str], links: Sequence[tuple[float, float]], routes: Sequence[Sequence[int]], options: TopologyOptions) -> Topology: ...

    @property
    def nodes(self) -> int: ...

    @property
    def links(self) -> list[tuple[float, float]]: ...

    def route(self, a: int, b: int) -> list[int]: ...

    def link_name(self, link: int) -> str: ...

    @property
    def state_bytes(self) -> int: ...

def term_names() -> list[str]:
    """Terms of a polynomial, in the order of its coefficients."""

class Size:
    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, m: float, n: float, k: float) -> None: ...

    @property
    def m(self) -> float: ...

    @m.setter
    def m(self, arg: float, /) -> None: ...

    @property
    def n(self) -> float: ...

    @n.setter
    def n(self, arg: float, /) -> None: ...

    @property
    def k(self) -> float: ...

    @k.setter
    def k(self, arg: float, /) -> None: ...

class Bounds:
    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, low: Size, high: Size) -> None: ...

    @property
    def low(self) -> Size: ...

    @low.setter
    def low(self, arg: Size, /) -> None: ...

    @property
    def high(self) -> Size: ...

    @high.setter
    def high(self, arg: Size, /) -> None: ...

class Mode:
    def __init__(self, cumulative: float, mean: float, deviation: float) -> None: ...

class KernelPiece:
    def __init__(self) -> None: ...

    @property
    def where(self) -> Bounds: ...

    @where.setter
    def where(self, arg: Bounds, /) -> None: ...

    @property
    def fitted(self) -> Bounds: ...

    @fitted.setter
    def fitted(self, arg: Bounds, /) -> None: ...

    @property
    def fitted_parts(self) -> list[Bounds]: ...

    @fitted_parts.setter
    def fitted_parts(self, arg: Sequence[Bounds], /) -> None: ...

    @property
    def mean(self) -> list[float]: ...

    @mean.setter
    def mean(self, arg: Sequence[float], /) -> None: ...

    @property
    def deviation(self) -> list[float]: ...

    @deviation.setter
    def deviation(self, arg: Sequence[float], /) -> None: ...

    @property
    def noise(self) -> str: ...

    @noise.setter
    def noise(self, arg: str, /) -> None: ...

    @property
    def covariance_terms(self) -> list[int]: ...

    @covariance_terms.setter
    def covariance_terms(self, arg: Sequence[int], /) -> None: ...

    @property
    def covariance(self) -> list[float]: ...

    @covariance.setter
    def covariance(self, arg: Sequence[float], /) -> None: ...

    @property
    def modes(self) -> list[Mode]: ...

    @modes.setter
    def modes(self, arg: Sequence[Mode], /) -> None: ...

    @property
    def discrepancy_relative_sd(self) -> float: ...

    @discrepancy_relative_sd.setter
    def discrepancy_relative_sd(self, arg: float, /) -> None: ...

    @staticmethod
    def choices() -> dict[str, list[str]]:
        """The words of each attribute that is one of several."""

class KernelModel:
    def __init__(self, pieces: Sequence[KernelPiece]) -> None: ...

    def distance(self, size: Size) -> Distance:
        """
        How far a call of that size is outside of what its piece was fitted to.
        """

class Distance:
    """Outside of what a model was fitted to, by parameter: m, n, k."""

    @property
    def log(self) -> list[float]: ...

    @property
    def varied(self) -> list[bool]: ...

def extrapolation_slope(matrix_product: bool, varied: bool, above: bool) -> float:
    """
    Relative standard deviation of a kernel's model per unit of distance in one parameter.
    """

class CrowdingPoint:
    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, share: float, increase: float) -> None: ...

    @property
    def share(self) -> float: ...

    @share.setter
    def share(self, arg: float, /) -> None: ...

    @property
    def increase(self) -> float: ...

    @increase.setter
    def increase(self, arg: float, /) -> None: ...

class MachineKernel:
    def __init__(self) -> None: ...

    @property
    def name(self) -> str: ...

    @name.setter
    def name(self, arg: str, /) -> None: ...

    @property
    def model_of(self) -> str: ...

    @model_of.setter
    def model_of(self, arg: str, /) -> None: ...

    @property
    def group(self) -> int: ...

    @group.setter
    def group(self, arg: int, /) -> None: ...

    @property
    def own_errors(self) -> bool: ...

    @own_errors.setter
    def own_errors(self, arg: bool, /) -> None: ...

    @property
    def models(self) -> list[KernelModel]: ...

    @models.setter
    def models(self, arg: Sequence[KernelModel], /) -> None: ...

    @property
    def discrepancy_relative_sd(self) -> float: ...

    @discrepancy_relative_sd.setter
    def discrepancy_relative_sd(self, arg: float, /) -> None: ...

    @property
    def own_code_relative_sd(self) -> float: ...

    @own_code_relative_sd.setter
    def own_code_relative_sd(self, arg: float, /) -> None: ...

    @property
    def extrapolation_relative_sd(self) -> float: ...

    @extrapolation_relative_sd.setter
    def extrapolation_relative_sd(self, arg: float, /) -> None: ...

    @property
    def timed(self) -> bool: ...

    @timed.setter
    def timed(self, arg: bool, /) -> None: ...

    @property
    def as_recorded(self) -> bool: ...

    @as_recorded.setter
    def as_recorded(self, arg: bool, /) -> None: ...

    @property
    def crowding(self) -> list[CrowdingPoint]: ...

    @crowding.setter
    def crowding(self, arg: Sequence[CrowdingPoint], /) -> None: ...

    @property
    def crowding_relative_sd(self) -> float: ...

    @crowding_relative_sd.setter
    def crowding_relative_sd(self, arg: float, /) -> None: ...

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

class Overhead:
    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, intercept_s: float, per_byte_s: float) -> None: ...

    @property
    def intercept_s(self) -> float: ...

    @intercept_s.setter
    def intercept_s(self, arg: float, /) -> None: ...

    @property
    def per_byte_s(self) -> float: ...

    @per_byte_s.setter
    def per_byte_s(self, arg: float, /) -> None: ...

class NoiseMode:
    def __init__(self, weight: float, mean: float, sd: float) -> None: ...

class NoiseMixture:
    def __init__(self) -> None: ...

    @property
    def modes(self) -> list[Mode]: ...

    @modes.setter
    def modes(self, arg: Sequence[Mode], /) -> None: ...

    @staticmethod
    def centred(modes: Sequence[NoiseMode]) -> NoiseMixture:
        """The mixture whose mean factor is 1."""

class Segment:
    def __init__(self) -> None: ...

    @property
    def above_bytes(self) -> float: ...

    @above_bytes.setter
    def above_bytes(self, arg: float, /) -> None: ...

    @property
    def protocol(self) -> str: ...

    @protocol.setter
    def protocol(self, arg: str, /) -> None: ...

    @property
    def latency_s(self) -> float: ...

    @latency_s.setter
    def latency_s(self, arg: float, /) -> None: ...

    @property
    def bandwidth_Bps(self) -> float: ...

    @bandwidth_Bps.setter
    def bandwidth_Bps(self, arg: float, /) -> None: ...

    @property
    def cable_latency_factor(self) -> float: ...

    @cable_latency_factor.setter
    def cable_latency_factor(self, arg: float, /) -> None: ...

    @property
    def send(self) -> Overhead: ...

    @send.setter
    def send(self, arg: Overhead, /) -> None: ...

    @property
    def isend(self) -> Overhead: ...

    @isend.setter
    def isend(self, arg: Overhead, /) -> None: ...

    @property
    def receive(self) -> Overhead: ...

    @receive.setter
    def receive(self, arg: Overhead, /) -> None: ...

    @property
    def noise_relative_sd(self) -> float: ...

    @noise_relative_sd.setter
    def noise_relative_sd(self, arg: float, /) -> None: ...

    @property
    def noise(self) -> NoiseMixture: ...

    @noise.setter
    def noise(self, arg: NoiseMixture, /) -> None: ...

    @staticmethod
    def choices() -> dict[str, list[str]]:
        """The words of each attribute that is one of several."""

class NetworkClass:
    def __init__(self) -> None: ...

    @property
    def segments(self) -> list[Segment]: ...

    @segments.setter
    def segments(self, arg: Sequence[Segment], /) -> None: ...

    @property
    def fitted_low_bytes(self) -> float: ...

    @fitted_low_bytes.setter
    def fitted_low_bytes(self, arg: float, /) -> None: ...

    @property
    def fitted_high_bytes(self) -> float: ...

    @fitted_high_bytes.setter
    def fitted_high_bytes(self, arg: float, /) -> None: ...

    @property
    def discrepancy_relative_sd(self) -> float: ...

    @discrepancy_relative_sd.setter
    def discrepancy_relative_sd(self, arg: float, /) -> None: ...

    @property
    def overhead_relative_sd(self) -> float: ...

    @overhead_relative_sd.setter
    def overhead_relative_sd(self, arg: float, /) -> None: ...

class Network:
    def __init__(self) -> None: ...

    @property
    def loopback(self) -> NetworkClass: ...

    @loopback.setter
    def loopback(self, arg: NetworkClass, /) -> None: ...

    @property
    def remote(self) -> NetworkClass: ...

    @remote.setter
    def remote(self, arg: NetworkClass, /) -> None: ...

    @property
    def loopback_noncontiguous(self) -> NetworkClass: ...

    @loopback_noncontiguous.setter
    def loopback_noncontiguous(self, arg: NetworkClass, /) -> None: ...

    @property
    def remote_noncontiguous(self) -> NetworkClass: ...

    @remote_noncontiguous.setter
    def remote_noncontiguous(self, arg: NetworkClass, /) -> None: ...

    @property
    def loopback_as_remote(self) -> bool: ...

    @loopback_as_remote.setter
    def loopback_as_remote(self, arg: bool, /) -> None: ...

    @property
    def noncontiguous_modelled(self) -> bool: ...

    @noncontiguous_modelled.setter
    def noncontiguous_modelled(self, arg: bool, /) -> None: ...

    @property
    def loopback_busy(self) -> NetworkClass: ...

    @loopback_busy.setter
    def loopback_busy(self, arg: NetworkClass, /) -> None: ...

    @property
    def remote_busy(self) -> NetworkClass: ...

    @remote_busy.setter
    def remote_busy(self, arg: NetworkClass, /) -> None: ...

    @property
    def ranks_on_full_node(self) -> float: ...

    @ranks_on_full_node.setter
    def ranks_on_full_node(self, arg: float, /) -> None: ...

    @property
    def ranks_on_full_nodes(self) -> list[float]: ...

    @ranks_on_full_nodes.setter
    def ranks_on_full_nodes(self, arg: Sequence[float], /) -> None: ...

    @property
    def flow_factor(self) -> str: ...

    @flow_factor.setter
    def flow_factor(self, arg: str, /) -> None: ...

    @property
    def exact_sharing(self) -> bool: ...

    @exact_sharing.setter
    def exact_sharing(self, arg: bool, /) -> None: ...

    @property
    def node_link_Bps(self) -> float: ...

    @node_link_Bps.setter
    def node_link_Bps(self, arg: float, /) -> None: ...

    @property
    def loopback_Bps(self) -> float: ...

    @loopback_Bps.setter
    def loopback_Bps(self, arg: float, /) -> None: ...

    @property
    def loopback_shared(self) -> bool: ...

    @loopback_shared.setter
    def loopback_shared(self, arg: bool, /) -> None: ...

    @property
    def iprobe_s(self) -> float: ...

    @iprobe_s.setter
    def iprobe_s(self, arg: float, /) -> None: ...

    @property
    def iprobe_looks_first(self) -> bool: ...

    @iprobe_looks_first.setter
    def iprobe_looks_first(self, arg: bool, /) -> None: ...

    @property
    def progress_in_calls(self) -> bool: ...

    @progress_in_calls.setter
    def progress_in_calls(self, arg: bool, /) -> None: ...

    @property
    def counts_all_sizes(self) -> bool: ...

    @counts_all_sizes.setter
    def counts_all_sizes(self, arg: bool, /) -> None: ...

    @staticmethod
    def choices() -> dict[str, list[str]]:
        """The words of each attribute that is one of several."""

class MessageUse:
    """Messages of one class of links; times are of messages alone."""

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

class NodeGroup:
    def __init__(self) -> None: ...

    @property
    def nodes(self) -> int: ...

    @nodes.setter
    def nodes(self, arg: int, /) -> None: ...

    @property
    def cores(self) -> int: ...

    @cores.setter
    def cores(self, arg: int, /) -> None: ...

    @property
    def cpus(self) -> int: ...

    @cpus.setter
    def cpus(self, arg: int, /) -> None: ...

    @property
    def cpu_is_core_modulo(self) -> bool: ...

    @cpu_is_core_modulo.setter
    def cpu_is_core_modulo(self, arg: bool, /) -> None: ...

    @property
    def sockets(self) -> int: ...

    @sockets.setter
    def sockets(self, arg: int, /) -> None: ...

    @property
    def slowness(self) -> float: ...

    @slowness.setter
    def slowness(self, arg: float, /) -> None: ...

class Machine:
    def __init__(self) -> None: ...

    @property
    def nodes(self) -> int: ...

    @nodes.setter
    def nodes(self, arg: int, /) -> None: ...

    @property
    def cores_per_node(self) -> int: ...

    @cores_per_node.setter
    def cores_per_node(self, arg: int, /) -> None: ...

    @property
    def cpus_per_node(self) -> int: ...

    @cpus_per_node.setter
    def cpus_per_node(self, arg: int, /) -> None: ...

    @property
    def cpu_is_core_modulo(self) -> bool: ...

    @cpu_is_core_modulo.setter
    def cpu_is_core_modulo(self, arg: bool, /) -> None: ...

    @property
    def sockets_per_node(self) -> int: ...

    @sockets_per_node.setter
    def sockets_per_node(self, arg: int, /) -> None: ...

    @property
    def threads_per_rank(self) -> int: ...

    @threads_per_rank.setter
    def threads_per_rank(self, arg: int, /) -> None: ...

    @property
    def groups(self) -> list[NodeGroup]: ...

    @groups.setter
    def groups(self, arg: Sequence[NodeGroup], /) -> None: ...

    @property
    def kernels(self) -> list[MachineKernel]: ...

    @kernels.setter
    def kernels(self, arg: Sequence[MachineKernel], /) -> None: ...

    @property
    def day_common_relative_sd(self) -> float: ...

    @day_common_relative_sd.setter
    def day_common_relative_sd(self, arg: float, /) -> None: ...

    @property
    def day_run_relative_sd(self) -> float: ...

    @day_run_relative_sd.setter
    def day_run_relative_sd(self, arg: float, /) -> None: ...

    @property
    def day_cpu_relative_sd(self) -> float: ...

    @day_cpu_relative_sd.setter
    def day_cpu_relative_sd(self, arg: float, /) -> None: ...

    @property
    def day_degrees_of_freedom(self) -> int: ...

    @day_degrees_of_freedom.setter
    def day_degrees_of_freedom(self, arg: int, /) -> None: ...

    @property
    def day_run_degrees_of_freedom(self) -> int: ...

    @day_run_degrees_of_freedom.setter
    def day_run_degrees_of_freedom(self, arg: int, /) -> None: ...

    @property
    def day_cpu_degrees_of_freedom(self) -> int: ...

    @day_cpu_degrees_of_freedom.setter
    def day_cpu_degrees_of_freedom(self, arg: int, /) -> None: ...

    @property
    def episode_relative_sd(self) -> float: ...

    @episode_relative_sd.setter
    def episode_relative_sd(self, arg: float, /) -> None: ...

    @property
    def episode_s(self) -> float: ...

    @episode_s.setter
    def episode_s(self, arg: float, /) -> None: ...

    @property
    def wandering_relative_sd(self) -> float: ...

    @wandering_relative_sd.setter
    def wandering_relative_sd(self, arg: float, /) -> None: ...

    @property
    def wandering_correlation_s(self) -> float: ...

    @wandering_correlation_s.setter
    def wandering_correlation_s(self, arg: float, /) -> None: ...

    @property
    def wandering_relative_sd_error(self) -> float: ...

    @wandering_relative_sd_error.setter
    def wandering_relative_sd_error(self, arg: float, /) -> None: ...

    @property
    def wandering_correlation_error(self) -> float: ...

    @wandering_correlation_error.setter
    def wandering_correlation_error(self, arg: float, /) -> None: ...

    @property
    def network(self) -> Network: ...

    @network.setter
    def network(self, arg: Network, /) -> None: ...

    def copy(self) -> Machine: ...

    @property
    def topology(self) -> Topology | None: ...

    @topology.setter
    def topology(self, arg: Topology | None, /) -> None: ...

    def text(self) -> str:
        """The machine, but for its topology, as simblas reads it."""

class Layers:
    def __init__(self) -> None: ...

    @property
    def coefficients(self) -> bool: ...

    @coefficients.setter
    def coefficients(self, arg: bool, /) -> None: ...

    @property
    def days(self) -> bool: ...

    @days.setter
    def days(self, arg: bool, /) -> None: ...

    @property
    def discrepancy(self) -> bool: ...

    @discrepancy.setter
    def discrepancy(self, arg: bool, /) -> None: ...

    @property
    def noise(self) -> bool: ...

    @noise.setter
    def noise(self, arg: bool, /) -> None: ...

    @property
    def network(self) -> bool: ...

    @network.setter
    def network(self, arg: bool, /) -> None: ...

    @property
    def overheads(self) -> bool: ...

    @overheads.setter
    def overheads(self, arg: bool, /) -> None: ...

    @property
    def collectives(self) -> bool: ...

    @collectives.setter
    def collectives(self, arg: bool, /) -> None: ...

    @property
    def extrapolation(self) -> bool: ...

    @extrapolation.setter
    def extrapolation(self, arg: bool, /) -> None: ...

    @property
    def own_code(self) -> bool: ...

    @own_code.setter
    def own_code(self, arg: bool, /) -> None: ...

def message_factor(link_class: str, relative_sd: float, seed: int) -> float:
    """
    The factor, of that standard deviation, on transfers or overheads of a class of links in the run of that seed.
    """

def kernel_names() -> list[str]:
    """Of the kernels that applications call."""

class Progress:
    """How far a run has come; any thread may look, or cancel it."""

    def __init__(self) -> None: ...

    @property
    def begun_steps(self) -> int:
        """Steps that ranks have begun, summed over ranks."""

    def cancel(self) -> None:
        """The run ends soon, without a result."""

class RunResult:
    @property
    def time_s(self) -> float: ...

    @property
    def messages(self) -> int: ...

    @property
    def bytes(self) -> float: ...

    @property
    def message_use(self) -> dict[str, MessageUse]:
        """By class of links; zero where no fitted sizes are known."""

    @property
    def computing_s(self) -> float: ...

    @property
    def waiting_s(self) -> float: ...

    @property
    def engine_bytes(self) -> int: ...

    @property
    def kernels(self) -> dict[str, KernelUse]:
        """By name, in the order in which the application counts them."""

    @property
    def total_shares_s(self) -> list[float]:
        """Over all ranks: compute, overhead, late, transfer, contention, probe."""

    def rank_shares_s(self) -> NDArray[numpy.float64]:
        """The same of each rank, shape (ranks, 6)."""

    def step_shares_s(self) -> NDArray[numpy.float64]:
        """
        Over all ranks of each step, shape (1 + steps, 6), outside of any step first; empty without a trace.
        """

    @property
    def trace_names(self) -> list[str]:
        """Of calls, kernels and phases, as the column name counts them."""

    def take_trace_columns(self) -> dict[str, numpy.typing.NDArray[Any]]:
        """
        A row a call, once: then they are gone. kind counts kernel, mpi, phase; name counts trace_names.
        """

class SharedDraws:
    """A run, to be priced under the draws of other seeds."""

    def __init__(self, result: RunResult, machine: Machine, layers: Layers, core_of_rank: Sequence[int], seed: int, run_seed: int) -> None: ...

    def effects(self, machine: Machine, seeds: Sequence[tuple[int, int]]) -> list[list[float]]:
        """
        How many times as long computing and the messages of each class of links take under the draws of each (seed, run_seed), without noise, as they took under those of the run.
        """

def natural_log(x: float) -> float:
    """Of a positive, finite x; the same bits on every machine."""

def exponential(x: float) -> float:
    """For |x| <= 700; the same bits on every machine."""

def normals(seed: int, stream: int, units: int, each: int) -> list[float]: ...

def uniforms(seed: int, stream: int, units: int, each: int) -> list[float]: ...

class FitSeries:
    @staticmethod
    def make(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float = 1.0) -> FitSeries: ...

def best_partitions(series: Sequence[FitSeries], logarithmic: bool, constant: bool, least: int, most: int) -> list[tuple[list[int], float]]: ...

def best_line(series: FitSeries, begin: int, end: int, logarithmic: bool, constant: bool) -> tuple[float, float, float]: ...

def split_costs(series: FitSeries, low: int, high: int, logarithmic: bool, constant: bool, least: int) -> list[float]: ...

def best_log_cut(series: FitSeries, begin: int, end: int, low: int, high: int) -> int: ...

def product(a: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

def products(a: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

def weighted_products(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

def solution(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], moment: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

def nonnegative_solution(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], moment: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], last_free: bool) -> NDArray[numpy.float64]: ...

def residuals(sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], negligible: float) -> NDArray[numpy.float64]: ...

def eigen(symmetric: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]: ...

def likelihood_ratios(z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], reduced: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], degrees: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alternatives: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], inverse_means: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], heavy: float) -> NDArray[numpy.float64]: ...

def innovations(squares: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], cross: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], expected: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], spread: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale_count: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fewest: float, value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], known: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], last_value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shared: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], last_common: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]: ...

def learn(squares: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], cross: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], expected: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], spread: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale_count: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fewest: float, learns: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], memory: float) -> NDArray[numpy.float64]: ...

def group_medians(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], groups: int, fewest: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]: ...

class HplResult(RunResult):
    @property
    def simulated_steps(self) -> int: ...

    @property
    def sampling_changes_s(self) -> list[float]: ...

    @property
    def rank_sent(self) -> list[list[list[float]]]:
        """By rank and phase (broadcast, swap, solve): messages and bytes."""

def hpl_broadcast(bcast: str, q: int) -> tuple[int, bool]:
    """
    Messages along a row of q processes, and whether they are pieces of the panel, for which nobody probes.
    """

def hpl_simulated_steps(parameters: HplParameters, further: bool = False) -> list[int]:
    """
    The steps that a run with these parameters simulates; further: with the windows that it may go back for.
    """

class HplParameters:
    def __init__(self) -> None: ...

    @property
    def n(self) -> int: ...

    @n.setter
    def n(self, arg: int, /) -> None: ...

    @property
    def nb(self) -> int: ...

    @nb.setter
    def nb(self, arg: int, /) -> None: ...

    @property
    def p(self) -> int: ...

    @p.setter
    def p(self, arg: int, /) -> None: ...

    @property
    def q(self) -> int: ...

    @q.setter
    def q(self, arg: int, /) -> None: ...

    @property
    def depth(self) -> int: ...

    @depth.setter
    def depth(self, arg: int, /) -> None: ...

    @property
    def bcast(self) -> str: ...

    @bcast.setter
    def bcast(self, arg: str, /) -> None: ...

    @property
    def pfact(self) -> str: ...

    @pfact.setter
    def pfact(self, arg: str, /) -> None: ...

    @property
    def rfact(self) -> str: ...

    @rfact.setter
    def rfact(self, arg: str, /) -> None: ...

    @property
    def nbmin(self) -> int: ...

    @nbmin.setter
    def nbmin(self, arg: int, /) -> None: ...

    @property
    def ndiv(self) -> int: ...

    @ndiv.setter
    def ndiv(self, arg: int, /) -> None: ...

    @property
    def pmap(self) -> str: ...

    @pmap.setter
    def pmap(self, arg: str, /) -> None: ...

    @property
    def swap(self) -> str: ...

    @swap.setter
    def swap(self, arg: str, /) -> None: ...

    @property
    def swap_threshold(self) -> int | None: ...

    @swap_threshold.setter
    def swap_threshold(self, arg: int | None, /) -> None: ...

    @property
    def l1(self) -> str: ...

    @l1.setter
    def l1(self, arg: str, /) -> None: ...

    @property
    def u(self) -> str: ...

    @u.setter
    def u(self, arg: str, /) -> None: ...

    @property
    def equil(self) -> bool: ...

    @equil.setter
    def equil(self, arg: bool, /) -> None: ...

    @property
    def align(self) -> int: ...

    @align.setter
    def align(self, arg: int, /) -> None: ...

    @property
    def copy_l(self) -> bool: ...

    @copy_l.setter
    def copy_l(self, arg: bool, /) -> None: ...

    @property
    def pivots(self) -> str: ...

    @pivots.setter
    def pivots(self, arg: str, /) -> None: ...

    @property
    def pivot_rows(self) -> list[int]: ...

    @pivot_rows.setter
    def pivot_rows(self, arg: Sequence[int], /) -> None: ...

    @property
    def sampled(self) -> bool: ...

    @sampled.setter
    def sampled(self, arg: bool, /) -> None: ...

    @property
    def trial_steps(self) -> int: ...

    @trial_steps.setter
    def trial_steps(self, arg: int, /) -> None: ...

    @staticmethod
    def choices() -> dict[str, list[str]]:
        """The words of each attribute that is one of several."""

def simulate_hpl(parameters: HplParameters, machine: Machine, layers: Layers, core_of_rank: Sequence[int], seed: int, trace_ranks: Sequence[int] | None = None, trace_steps: Sequence[int] | None = None, run_seed: int | None = None, progress: Progress | None = None) -> HplResult:
    """
    One run; traces these ranks (none without) in these steps (all without). run_seed: another run on the machine and day of seed. progress: tells other threads how far it is; RuntimeError once it is cancelled.
    """

class ProgramOp:
    def __init__(self, code: str, algorithm: str, peer: int, tag: int, which: int, m: float, n: float, k: float, line: int, error: float = 0.0) -> None: ...

class ProgramRankCode:
    def __init__(self, ops: Sequence[int], parts: Sequence[Sequence[int]]) -> None: ...

    @property
    def ops(self) -> list[int]: ...

    @property
    def parts(self) -> list[list[int]]: ...

class ProgramList:
    def __init__(self, numbers: Sequence[int], bytes: Sequence[float]) -> None: ...

class ProgramCame:
    @property
    def request(self) -> int: ...

    @property
    def source(self) -> int: ...

    @property
    def tag(self) -> int: ...

    @property
    def nth(self) -> int: ...

    @property
    def bytes(self) -> float: ...

class ProgramNext:
    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, op: ProgramOp, list: ProgramList, communicators: Sequence[Sequence[int]]) -> None: ...

class ProgramResult(RunResult):
    pass

PROGRAM_ANY: int = 4294967295

def check_program(parameters: ProgramParameters) -> None:
    """
    Raises ValueError where the members of a communicator do not call the same collective operations.
    """

class ProgramParameters:
    def __init__(self) -> None: ...

    @property
    def ops(self) -> list[ProgramOp]: ...

    @ops.setter
    def ops(self, arg: Sequence[ProgramOp], /) -> None: ...

    @property
    def lists(self) -> list[ProgramList]: ...

    @lists.setter
    def lists(self, arg: Sequence[ProgramList], /) -> None: ...

    @property
    def communicators(self) -> list[list[int]]: ...

    @communicators.setter
    def communicators(self, arg: Sequence[Sequence[int]], /) -> None: ...

    @property
    def rank_code(self) -> list[ProgramRankCode]: ...

    @rank_code.setter
    def rank_code(self, arg: Sequence[ProgramRankCode], /) -> None: ...

    @property
    def kernels(self) -> list[str]: ...

    @kernels.setter
    def kernels(self, arg: Sequence[str], /) -> None: ...

    @property
    def lines(self) -> list[str]: ...

    @lines.setter
    def lines(self, arg: Sequence[str], /) -> None: ...

    @property
    def step_count(self) -> int: ...

    @step_count.setter
    def step_count(self, arg: int, /) -> None: ...

    @property
    def by_date(self) -> bool: ...

    @by_date.setter
    def by_date(self, arg: bool, /) -> None: ...

    @property
    def next(self) -> Callable[[int, list[ProgramCame]], ProgramNext]: ...

    @next.setter
    def next(self, arg: Callable[[int, Sequence[ProgramCame]], ProgramNext], /) -> None: ...

    @property
    def line_of(self) -> Callable[[int], str]: ...

    @line_of.setter
    def line_of(self, arg: Callable[[int], str], /) -> None: ...

def simulate_program(parameters: ProgramParameters, machine: Machine, layers: Layers, core_of_rank: Sequence[int], seed: int, trace_ranks: Sequence[int] | None = None, trace_steps: Sequence[int] | None = None, run_seed: int | None = None, progress: Progress | None = None) -> ProgramResult:
    """
    One run; traces these ranks (none without) in these steps (all without). run_seed: another run on the machine and day of seed. progress: tells other threads how far it is; RuntimeError once it is cancelled.
    """

class StencilParameters:
    def __init__(self) -> None: ...

    @property
    def grid(self) -> list[int]: ...

    @grid.setter
    def grid(self, arg: Sequence[int], /) -> None: ...

    @property
    def cells(self) -> list[int]: ...

    @cells.setter
    def cells(self, arg: Sequence[int], /) -> None: ...

    @property
    def iterations(self) -> int: ...

    @iterations.setter
    def iterations(self, arg: int, /) -> None: ...

    @property
    def periodic(self) -> bool: ...

    @periodic.setter
    def periodic(self, arg: bool, /) -> None: ...

    @property
    def halo(self) -> int: ...

    @halo.setter
    def halo(self, arg: int, /) -> None: ...

    @property
    def value_bytes(self) -> float: ...

    @value_bytes.setter
    def value_bytes(self, arg: float, /) -> None: ...

    @property
    def cell_time_s(self) -> float: ...

    @cell_time_s.setter
    def cell_time_s(self, arg: float, /) -> None: ...

    @property
    def cell_bytes(self) -> float: ...

    @cell_bytes.setter
    def cell_bytes(self, arg: float, /) -> None: ...

    @property
    def node_memory_Bps(self) -> float | None: ...

    @node_memory_Bps.setter
    def node_memory_Bps(self, arg: float | None, /) -> None: ...

    @property
    def noise_relative_sd(self) -> float: ...

    @noise_relative_sd.setter
    def noise_relative_sd(self, arg: float, /) -> None: ...

    @property
    def allreduce(self) -> str: ...

    @allreduce.setter
    def allreduce(self, arg: str, /) -> None: ...

    @property
    def allreduce_values(self) -> int: ...

    @allreduce_values.setter
    def allreduce_values(self, arg: int, /) -> None: ...

    @staticmethod
    def choices() -> dict[str, list[str]]:
        """The words of each attribute that is one of several."""

def simulate_stencil(parameters: StencilParameters, machine: Machine, layers: Layers, core_of_rank: Sequence[int], seed: int, trace_ranks: Sequence[int] | None = None, trace_steps: Sequence[int] | None = None, run_seed: int | None = None, progress: Progress | None = None) -> RunResult:
    """
    One run; traces these ranks (none without) in these steps (all without). run_seed: another run on the machine and day of seed. progress: tells other threads how far it is; RuntimeError once it is cancelled.
    """

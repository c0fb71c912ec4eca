"""How well the ranks of a run were used: the multiplicative efficiencies of the POP Centre of Excellence.

C_i   : useful computing of rank i: its time outside of MPI, without what it waited for a core or nothing was recorded
T     : run time, of all that was recorded;  T_ideal: that of a replay on an ideal network, on which messages take no
        time, calls no overhead, and a send only waits for its receive where MPI demands that (MPI_Ssend)

    parallel efficiency      = mean C_i / T          = load balance x communication efficiency
    load balance             = mean C_i / max C_i
    communication efficiency = max C_i / T           = serialisation x transfer x core availability
    serialisation            = max C_i / T_ideal     ranks wait for each other, whatever the network
    transfer                 = T_with_waits / T      messages and calls take time
    core availability        = T_ideal / T_with_waits, where a recording tells that ranks waited for a core

T_with_waits is T_ideal with the time that ranks waited for a core in the place of computing; without such, it is
T_ideal, and core availability is 1. POP has no such factor, and counts that time as useful.

Source: POP, "Metrics for parallel efficiency" (standard metrics, pop-coe.eu); Rosas, Gimenez, Labarta, "Scalability
prediction for fundamental performance factors", Supercomputing Frontiers and Innovations 1 (2), 2014. The replay on an
ideal network is Dimemas' there, and the one of `simulate/apps/replay` here.
"""

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from lepaute import _core
from lepaute.errors import InputError, LepauteError, SimulationError
from lepaute.simulate.apps.own.values import kernel_of
from lepaute.simulate.apps.replay import TraceReplay
from lepaute.simulate.apps.replay.collectives import LIBRARIES, library_of
from lepaute.simulate.apps.replay.laying import Survey, laid_down
from lepaute.simulate.conditions import Layers
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.native import simulate
from lepaute.simulate.platform.network_model import Loopback, Network, NodeLink, Remote, Segment
from lepaute.simulate.platform.nodes import Nodes
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.topology import Topology
from lepaute.simulate.trace.breakdown import COMPUTE, OWN_CODE, Breakdown
from lepaute.simulate.trace.table import COMPUTING, WAITING, Trace

#: So many bytes a second take no time; more would leave no digits for sizes.
_INFINITE_BPS = 1e24
#: Of the time between two calls: all that a number has.
_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """of       : what they are of: "as recorded", or the name of a platform
    runtime_s, ideal_s : T and T_ideal; the latter None where the trace cannot be replayed, for the reason `unknown`
    waits_s     : T_with_waits, None with ideal_s
    useful_s    : C of each rank, shape (ranks,)
    """

    of: str
    runtime_s: float
    useful_s: NDArray[Any]
    ideal_s: float | None = None
    waits_s: float | None = None
    unknown: str = ""

    @property
    def load_balance(self) -> float:
        most = float(self.useful_s.max(initial=0.0))
        return float(self.useful_s.mean()) / most if most > 0 else 1.0

    @property
    def communication(self) -> float:
        return float(self.useful_s.max(initial=0.0)) / self.runtime_s if self.runtime_s > 0 else 1.0

    @property
    def parallel(self) -> float:
        return float(self.useful_s.mean()) / self.runtime_s if self.runtime_s > 0 and len(self.useful_s) else 1.0

    @property
    def serialisation(self) -> float | None:
        return self._ratio(float(self.useful_s.max(initial=0.0)), self.ideal_s)

    @property
    def transfer(self) -> float | None:
        return self._ratio(self.waits_s, self.runtime_s)

    @property
    def core_availability(self) -> float | None:
        return self._ratio(self.ideal_s, self.waits_s)

    @staticmethod
    def _ratio(numerator: float | None, denominator: float | None) -> float | None:
        if numerator is None or denominator is None:
            return None
        return numerator / denominator if denominator > 0 else 1.0

    @property
    def factors(self) -> dict[str, float]:
        """Those that multiply to the parallel efficiency, by name; without a replay the communication efficiency."""
        named = {"serialisation": self.serialisation, "transfer": self.transfer}
        if (self.core_availability or 1.0) < 1.0:
            named["core availability"] = self.core_availability
        known = {name: value for name, value in named.items() if value is not None}
        return {"load balance": self.load_balance, **(known or {"communication efficiency": self.communication})}

    def to_dict(self) -> dict[str, Any]:
        names = ("parallel", "load_balance", "communication", "serialisation", "transfer", "core_availability")
        return {
            "of": self.of,
            **{name: getattr(self, name) for name in names},
            "runtime_s": self.runtime_s,
            "ideal_runtime_s": self.ideal_s,
            "useful_s": self.useful_s.tolist(),
            **({"not_known": self.unknown} if self.unknown else {}),
        }


def efficiencies_of(trace: Trace, breakdown: Breakdown, runtime_s: float) -> Efficiencies:
    """The efficiencies of a run as it was traced. Useful computing is that of the replay, which leaves out what
    recording a call took; where the trace cannot be replayed, that of the breakdown."""
    of = "as recorded" if trace.is_recording else "as simulated"
    useful_s = breakdown.by_rank_s[:, [COMPUTE, OWN_CODE]].sum(axis=1)
    try:
        ideal_s, computing_s = _on_ideal_network(trace)
        # Under another name waiting for a core is computing.
        waiting = replace(trace, names=tuple(f"{name}, charged" if name == WAITING else name for name in trace.names))
        waits_s = _on_ideal_network(waiting)[0] if WAITING in trace.names else ideal_s
    except LepauteError as problem:
        return Efficiencies(of, runtime_s, useful_s, unknown=str(problem))
    return Efficiencies(of, runtime_s, computing_s, ideal_s, waits_s)


def efficiencies_on(platform: Platform, replay: TraceReplay) -> Efficiencies:
    """The efficiencies of the replay of a recording on a platform: one run without noise, and one with its computing
    on an ideal network. Raises InputError for what cannot be replayed there."""
    runtime_s, computing_s = _replayed(replay, platform)
    ideal = platform.model_copy(update={"network": ideal_network(), "topology": Topology(kind="switch")})
    ideal_s, _ = _replayed(replay, ideal)
    return Efficiencies(f"on {platform.name}", runtime_s, computing_s, ideal_s, ideal_s)


def ideal_network() -> Network:
    """A network on which messages, and the calls that send and receive them, take no time."""
    segment = Segment(above_bytes=0, protocol="eager", latency_s=0.0, bandwidth_Bps=_INFINITE_BPS)
    return Network(
        node_link=NodeLink(bandwidth_Bps=_INFINITE_BPS),
        loopback=Loopback(bandwidth_Bps=_INFINITE_BPS),
        remote=Remote(segments=(segment,)),
    )


def _on_ideal_network(trace: Trace) -> tuple[float, NDArray[Any]]:
    """Run time, and computing of each rank, with all computing as it is in the trace.

    Raises InputError for what cannot be replayed, SimulationError where it ends in a deadlock.
    """
    survey = Survey([trace], "the trace")
    if not trace.metadata.get("ended_by"):
        survey.consistency.check_complete([trace])
    library = library_of(trace.metadata.get("mpi")) or LIBRARIES[0]
    laid = laid_down([trace], survey, frozenset(), library, _DIGITS)
    nodes = Nodes(count=1, cores=survey.ranks)
    platform = Platform(name="ideal", nodes=nodes, kernels=(), network=ideal_network())
    machine = machine_of(platform)
    machine.kernels = [kernel_of((COMPUTING, 1.0, 0.0, 0.0, 0.0), platform)]
    try:
        cores = range(survey.ranks)
        result = _core.simulate_program(laid.parameters, machine, Layers.only().to_core(), cores, 1)
    except ValueError as error:
        raise InputError(str(error)) from error
    except RuntimeError as error:
        raise SimulationError(str(error)) from error
    return result.time_s, result.rank_shares_s()[:, 0]


def _replayed(replay: TraceReplay, platform: Platform) -> tuple[float, NDArray[Any]]:
    behaviour: Any = replay.on(platform)
    machine = machine_of(platform, replay.threads_per_rank)
    machine.kernels = [*machine.kernels, *behaviour.kernels.make()]
    cores = Mapping().cores(platform, replay.ranks, replay.threads_per_rank)
    try:
        result = simulate(behaviour, machine, Layers.only().to_core(), cores, 1)
    except RuntimeError as error:
        raise SimulationError(f"{error}; platform {platform.name}, {replay.label} ranks") from error
    return result.time_s, result.rank_shares_s()[:, 0]

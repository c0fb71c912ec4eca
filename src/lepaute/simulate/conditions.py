"""Under which conditions an application is simulated: layers of uncertainty, the time since the calibration, and a
layer learnt from other validated studies, which is off by default: all others come from measurements of the machine.
"""

import hashlib
import json
from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, fields
from math import hypot, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from lepaute.errors import InputError
from lepaute.kit.documents import read_text, read_yaml
from lepaute.kit.later import later
from lepaute.kit.notebook import Public
from lepaute.kit.numbers import of_type, texts
from lepaute.kit.text import duration, percent
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.tracing import TraceRequest

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate.application import Application
    from lepaute.simulate.platform import schema
else:
    _core, schema = later("lepaute._core"), later("lepaute.simulate.platform.schema")


@dataclass(frozen=True, slots=True)
class Layers(Public):
    """Which layers of uncertainty a run draws; each can be switched off.

    coefficients : of kernels, from their covariance
    days         : of the day, of the run and of each CPU; or what the population draws
    discrepancy  : errors of the models of kernels and of their pieces
    noise        : of single calls and messages, episodes, and the wandering of cores
    network      : errors of the models of messages: latencies, transfers, links
    overheads    : errors of the CPU time of calls, those of messages and of probes
    collectives  : the algorithms of collective operations of emulations and replays whose MPI library is not known
    extrapolation : errors of kernel models at sizes outside of those they were fitted to, in proportion to the distance
    own_code     : how much faster a replayed program's own code is than where it was recorded, between two bounds, and
                   how fast that machine was when it was recorded
    """

    _unlisted = frozenset(("to_core",))

    coefficients: bool = True
    days: bool = True
    discrepancy: bool = True
    noise: bool = True
    network: bool = True
    overheads: bool = True
    collectives: bool = True
    extrapolation: bool = True
    own_code: bool = True

    def __post_init__(self) -> None:
        for name in self.names():
            of_type(getattr(self, name), f"the layer {name}", bool, "True or False")

    @classmethod
    def only(cls, *names: str) -> Self:
        """The layers of these names, all others switched off; without a name, none is on. Raises as `without`."""
        on = cls._named(names)
        return cls(**{name: name in on for name in cls.names()})

    @classmethod
    def without(cls, names: Iterable[str]) -> Self:
        """All layers but those of these names; "all" stands for each. Raises InputError for any other name."""
        return cls(**dict.fromkeys(cls._named(names), False))

    @classmethod
    def _named(cls, names: Iterable[str]) -> set[str]:
        known = cls.names()
        chosen = set()
        for name in texts(names, "the layers", "['noise']"):
            if name not in (*known, "all"):
                raise InputError(f"there is no layer {name[:80]!r}; layers are {', '.join(known)}, or all of them: all")
            chosen |= set(known) if name == "all" else {name}
        return chosen

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    @property
    def off(self) -> tuple[str, ...]:
        """Names of the layers that are switched off."""
        return tuple(name for name in self.names() if not getattr(self, name))

    def to_core(self) -> "_core.Layers":
        layers = _core.Layers()
        for name in self.names():
            setattr(layers, name, getattr(self, name))
        return layers


def layers_of(platform: "schema.Platform", application: "Application") -> tuple[str, ...]:
    """Names of the layers of which runs of `application` draw anything on `platform`."""
    behaviour = application.on(platform)
    modelled, besides = behaviour.kernels.modelled, behaviour.draws
    models = platform.kernels if modelled else ()
    pieces = [piece for model in models for piece in model.pieces]
    days, population = platform.days, platform.population if modelled else None
    of_models = {
        "coefficients": any(piece.covariance is not None for piece in pieces),
        "days": (population is not None and population.draw != "none")
        or (days is not None and any((days.common_relative_sd, days.run_relative_sd, days.cpu_relative_sd))),
        "discrepancy": any(model.discrepancy_relative_sd for model in models)
        or any(piece.discrepancy_relative_sd for piece in pieces),
        "noise": any(piece.noise.kind != "none" for piece in pieces)
        or any(segment.noise_relative_sd or segment.noise for segment in platform.network.all_segments)
        or any(each is not None and each.relative_sd > 0.0 for each in (platform.episodes, platform.wandering)),
        "network": any(platform.network.discrepancies.values()),
        "overheads": any(platform.network.overhead_errors.values()),
        "extrapolation": any(piece.range is not None for piece in pieces),
    }
    return tuple(name for name in Layers.names() if name in besides or of_models.get(name))


#: Without a lag, a prediction says so where the effect of the day is this much larger an hour later.
WORTH_TELLING, WORTH_TELLING_RELATIVE_SD, HOUR_S = 2.0, 0.02, 3600.0


@dataclass(frozen=True, slots=True)
class Lag:
    """How long after its calibration a platform is used.

    lag_s : None: about then, within the time that the calibration took
    platform_sha256 : of the platform as it was calibrated
    """

    lag_s: float | None
    platform_sha256: str
    drift: "schema.Drift | None" = field(default=None, repr=False)
    common_relative_sd: float | None = None

    @property
    def warnings(self) -> list[str]:
        """Warnings about the drift: that it is not known, extrapolated, or large and left out."""
        if self.lag_s is None:
            return self._left_out()
        if self.drift is None:
            return ["the platform does not say how the machine drifts: the lag changes nothing; calibrate it anew"]
        if self.lag_s <= self.drift.span_s:
            return []
        return [
            f"the drift of the machine was measured over {duration(self.drift.span_s)}: over a lag of "
            f"{duration(self.lag_s)} it is extrapolated, to {percent(self.drift.relative_sd(self.lag_s))}"
        ]

    def _left_out(self) -> list[str]:
        if self.drift is None or self.common_relative_sd is None:
            return []
        later = self.drift.day_relative_sd(self.common_relative_sd, HOUR_S)
        if later < max(WORTH_TELLING_RELATIVE_SD, WORTH_TELLING * self.common_relative_sd):
            return []
        return [
            f"the machine drifts: the interval is for a run within {duration(self.drift.span_s)} of the calibration; "
            f"an hour later the effect of the day is {percent(later)} instead of {percent(self.common_relative_sd)} "
            "(--lag 1h)"
        ]


def at_lag(platform: "schema.Platform", lag_s: float | None) -> "tuple[schema.Platform, Lag]":
    """The platform so long after its calibration, and the lag.

    Raises InputError for a lag that cannot be.
    """
    days = platform.days
    drift, common = (None, None) if days is None else (days.drift, days.common_relative_sd)
    lag = Lag(lag_s, platform.sha256, drift, common)
    if lag_s is None:
        return platform, lag
    if not (isfinite(lag_s) and lag_s >= 0.0):
        raise InputError(f"the lag is {lag_s} s; it is the time since the calibration, 0 or more")
    if days is None or drift is None:
        return platform, lag
    return platform.model_copy(update={"days": days.at_lag(lag_s)}).variant_of(platform), lag


FIELDS = ("source", "relative_sd", "studies")
OF_CONFIGURATION = "configuration_relative_sd"  # may be left out
_STREAM, _STREAM_OF_CONFIGURATION = 0x54524E53, 0x54524E43  # of draws
LARGEST_SD = 1.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """Relative errors of a prediction, whose standard deviations other studies had.

    relative_sd : of the logarithm of measured over predicted time, between studies: common to all that is predicted of
        a machine, so that it cancels in differences
    studies     : those that it was learnt from; none of them may be what is predicted
    configuration_relative_sd : the same between the configurations of a study: of the parameters of the application,
        so that it cancels where two predictions differ in the platform alone
    """

    source: str
    relative_sd: float
    studies: tuple[str, ...]
    configuration_relative_sd: float = 0.0

    def factor(self, seed: int, application: "Application") -> float:
        """What the run of this seed takes longer by: log-normal, with mean 1."""
        (normal,) = _core.normals(seed, _STREAM, 1, 1)
        factor = _core.exponential(self.relative_sd * (normal - 0.5 * self.relative_sd))
        sd = self.configuration_relative_sd
        if sd == 0.0:
            return factor
        (normal,) = _core.normals(seed ^ _key(application), _STREAM_OF_CONFIGURATION, 1, 1)
        return factor * _core.exponential(sd * (normal - 0.5 * sd))

    @property
    def total_sd(self) -> float:
        """Standard deviation of both errors together."""
        return hypot(self.relative_sd, self.configuration_relative_sd)

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "relative_sd": self.relative_sd,
            **({OF_CONFIGURATION: self.configuration_relative_sd} if self.configuration_relative_sd else {}),
            "studies": list(self.studies),
        }


def _key(application: "Application") -> int:
    """63 bits that name the parameters of an application."""
    parameters = json.dumps([application.name, application.parameters()], sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(parameters.encode()).digest()[:8]) >> 1


def read_transfer(path: str | Path) -> Transfer:
    """The layer in a YAML file {source, relative_sd, studies}; raises InputError with one line for any other."""
    return _transfer_of(read_yaml(read_text(Path(path), "a file of a transfer layer"), str(path)), str(path))


def _transfer_of(content: object, origin: str) -> Transfer:
    """The layer of plain values; raises InputError."""
    if not isinstance(content, MappingOf) or set(content) - {OF_CONFIGURATION} != set(FIELDS):
        raise InputError(
            f"{origin}: is no transfer layer; it has the fields {', '.join(FIELDS)}, may have {OF_CONFIGURATION}, and "
            "no others"
        )
    source, _, studies = (content[name] for name in FIELDS)
    if not isinstance(source, str) or not source.strip():
        raise InputError(f"{origin}: source is {str(source)[:80]!r}; say where relative_sd comes from")
    common_sd, configuration_sd = (_sd(content, name, origin) for name in ("relative_sd", OF_CONFIGURATION))
    if not isinstance(studies, list) or not studies or not all(isinstance(study, str) and study for study in studies):
        raise InputError(f"{origin}: studies is {str(studies)[:80]}; it is a list of names, one at least")
    return Transfer(source, common_sd, tuple(studies), configuration_sd)


def _sd(content: MappingOf[str, Any], name: str, origin: str) -> float:
    sd = content.get(name, 0.0)
    if isinstance(sd, bool) or not isinstance(sd, int | float) or not (isfinite(sd) and 0.0 <= sd <= LARGEST_SD):
        raise InputError(f"{origin}: {name} is {str(sd)[:80]}; it is a number from 0 to {LARGEST_SD:g}")
    return float(sd)


#: How much of a run is simulated: every step, windows of them, or what its length is worth.
Fidelity = Literal["auto", "full", "sampled"]
State = Literal["undisturbed", "any"]


def state_of(word: object) -> State:
    """Raises InputError for any other word."""
    if word not in get_args(State):
        raise InputError(f"state is {word!r:.80}; it is {' or '.join(get_args(State))}")
    return cast("State", word)


#: Odd and far from all small numbers, so that no two (seed, repeat) in use have the same sum (2^64 / golden ratio).
_SPREAD = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Conditions:
    """The conditions under which an application is simulated.

    settings : overrides of the platform that were applied before, recorded in the result
    repeat   : which of several runs on each machine and day
    lag      : since the calibration; `platform` is as it was then, its effect of the day that of the lag
    state    : whether times and rates are of undisturbed runs only, or also of runs in a slow state of the machine
    """

    platform: "schema.Platform"
    layers: Layers = field(default_factory=Layers)
    mapping: Mapping = field(default_factory=Mapping)
    fidelity: Fidelity = "auto"
    trace: TraceRequest | None = None
    settings: MappingOf[str, str] = field(default_factory=dict)
    repeat: int = 0
    transfer: "Transfer | None" = None
    lag: Lag | None = None
    state: State = "undisturbed"

    @property
    def platform_sha256(self) -> str:
        """SHA-256 of the platform as it was calibrated."""
        return self.platform.sha256 if self.lag is None else self.lag.platform_sha256

    @property
    def draws_population(self) -> bool:
        """Whether each run sees other nodes, or another day of them, as the population of the platform says."""
        population = self.platform.population
        return population is not None and population.draw != "none" and self.layers.days

    def run_seed(self, seed: int) -> int:
        """Seed of the draws of single runs, where `seed` decides those of the machine and its day."""
        return (seed + self.repeat * _SPREAD) % 2**64

    @property
    def choices(self) -> dict[str, Any]:
        """What the parameters of a prediction say besides settings and mapping: all that is not the default."""
        return {
            **({"without": list(self.layers.off)} if self.layers.off else {}),
            **({"transfer": self.transfer.to_dict()} if self.transfer is not None else {}),
            **({"repeat": self.repeat} if self.repeat else {}),
            **({"state": self.state} if self.state != "undisturbed" else {}),
            **({"lag_s": self.lag.lag_s} if self.lag is not None and self.lag.lag_s is not None else {}),
        }

"""What a prediction is asked for, whatever runs, on whatever platform."""

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, replace
from typing import Any, Self

from lepaute.kit.numbers import of_type, whole
from lepaute.simulate.conditions import Conditions, Fidelity, Layers, Transfer, at_lag, state_of
from lepaute.simulate.engine import Engine
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.platform.io import override, setting_text
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.tracing import TraceRequest


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """How a prediction is made; `predict` describes the fields."""

    runs: int | None = None
    seed: int = 1
    layers: Layers = field(default_factory=Layers)
    settings: MappingOf[str, str | float] | None = None
    applied: MappingOf[str, str] | None = None
    mapping: Mapping = field(default_factory=Mapping)
    fidelity: Fidelity = "auto"
    trace: TraceRequest | None = None
    engine: Engine | None = None
    repeat: int = 0
    parts: bool = False
    transfer: Transfer | None = None
    lag_s: float | None = None
    state: str = "undisturbed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole(self.seed, "seed", 0, 2**63, "0 to 2^63 - 1"))
        object.__setattr__(self, "repeat", whole(self.repeat, "repeat", 0, 2**31, "0 to 2^31 - 1"))
        for name, value, type_ in (
            ("layers", self.layers, Layers),
            ("mapping", self.mapping, Mapping),
            ("trace", TraceRequest() if self.trace is None else self.trace, TraceRequest),
        ):
            of_type(value, name, type_, f"a {type_.__name__} (from {type_.__module__})")
        if self.settings is not None:
            of_type(self.settings, "settings", MappingOf, 'fields and values, such as {"scale.bandwidth": "2"}')

    @property
    def changed(self) -> dict[str, str]:
        """The settings as text."""
        return {name: setting_text(name, value) for name, value in (self.settings or {}).items()}

    @property
    def simulated_fidelity(self) -> Fidelity:
        """The fidelity of the runs: what is traced is simulated in full unless that was asked for otherwise."""
        return "full" if self.trace and self.fidelity == "auto" else self.fidelity

    def conditions(self, platform: Platform) -> Conditions:
        """Conditions of the runs on a platform, whose settings have other values then."""
        changed = self.changed
        machine, lag = at_lag(override(platform, changed) if changed else platform, self.lag_s)
        of_run = (self.layers, self.mapping, self.fidelity, self.trace)
        applied = {**(self.applied or {}), **changed}
        return Conditions(machine, *of_run, applied, self.repeat, self.transfer, lag, state_of(self.state))

    def like(self, applied: MappingOf[str, str], **changed: Any) -> Self:
        """The request of a prediction to compare with, for a platform that has all settings already: `applied`."""
        return replace(self, trace=None, parts=False, settings=None, applied=applied, **changed)

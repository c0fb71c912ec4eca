"""Under which conditions an application is simulated: what all runs of a prediction share."""

from collections.abc import Mapping as Settings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lepaute.simulate.layers import Layers
from lepaute.simulate.mapping import Mapping

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.tracing import TraceRequest


@dataclass(frozen=True)
class Conditions:
    """Under which an application is simulated.

    settings : overrides of the platform that were applied before, recorded in the result
    mapping  : ranks to cores
    fidelity : auto, full or sampled
    trace    : ranks and steps of the first run to trace
    """

    platform: "Platform"
    layers: Layers = field(default_factory=Layers)
    mapping: Mapping = field(default_factory=Mapping)
    fidelity: str = "auto"
    trace: "TraceRequest | None" = None
    settings: Settings[str, str] = field(default_factory=dict)

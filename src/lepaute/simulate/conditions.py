"""Under which conditions an application is simulated: what all runs of a prediction share."""

from collections.abc import Mapping as Settings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lepaute.simulate.layers import Layers
from lepaute.simulate.mapping import Mapping

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.tracing import TraceRequest
    from lepaute.simulate.transfer import Transfer


@dataclass(frozen=True)
class Conditions:
    """Under which an application is simulated.

    settings : overrides of the platform that were applied before, recorded in the result
    mapping  : ranks to cores
    fidelity : auto, full or sampled
    trace    : ranks and steps of the first run to trace
    transfer : a layer learnt from other studies
    """

    platform: "Platform"
    layers: Layers = field(default_factory=Layers)
    mapping: Mapping = field(default_factory=Mapping)
    fidelity: str = "auto"
    trace: "TraceRequest | None" = None
    settings: Settings[str, str] = field(default_factory=dict)
    transfer: "Transfer | None" = None


def recorded(conditions: Conditions) -> dict[str, Any]:
    """What the parameters of a prediction say of its conditions besides the mapping: all that is not the default."""
    layers, transfer = conditions.layers, conditions.transfer
    return {
        **({"set": dict(conditions.settings)} if conditions.settings else {}),
        **({"without": list(layers.off)} if layers.off else {}),
        **({"transfer": transfer.to_dict()} if transfer is not None else {}),
    }

"""Under which conditions an application is simulated: what all runs of a prediction share."""

from collections.abc import Mapping as Settings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lepaute.simulate.lag import Lag
from lepaute.simulate.layers import Layers
from lepaute.simulate.mapping import Mapping

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.tracing import TraceRequest
    from lepaute.simulate.transfer import Transfer

#: Odd and far from all small numbers, so that no two (seed, repeat) in use have the same sum (2^64 / golden ratio).
_SPREAD = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Conditions:
    """Under which an application is simulated.

    settings : overrides of the platform that were applied before, recorded in the result
    mapping  : ranks to cores
    fidelity : auto, full or sampled
    trace    : ranks and steps of the first run to trace
    repeat   : which of several runs on each machine and day
    transfer : a layer learnt from other studies
    lag      : since the calibration; `platform` is as it was then, its effect of the day that of the lag
    """

    platform: "Platform"
    layers: Layers = field(default_factory=Layers)
    mapping: Mapping = field(default_factory=Mapping)
    fidelity: str = "auto"
    trace: "TraceRequest | None" = None
    settings: Settings[str, str] = field(default_factory=dict)
    repeat: int = 0
    transfer: "Transfer | None" = None
    lag: Lag | None = None

    @property
    def platform_sha256(self) -> str:
        """Of the platform as it was calibrated."""
        return self.platform.sha256 if self.lag is None else self.lag.platform_sha256

    def run_seed(self, seed: int) -> int:
        """What decides the draws of single runs, where `seed` decides those of the machine and its day."""
        return (seed + self.repeat * _SPREAD) % 2**64

    @property
    def choices(self) -> dict[str, Any]:
        """What the parameters of a prediction say besides settings and mapping: all that is not the default."""
        return {
            **({"without": list(self.layers.off)} if self.layers.off else {}),
            **({"transfer": self.transfer.to_dict()} if self.transfer is not None else {}),
            **({"repeat": self.repeat} if self.repeat else {}),
            **({"lag_s": self.lag.lag_s} if self.lag is not None and self.lag.lag_s is not None else {}),
        }

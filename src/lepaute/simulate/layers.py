"""Layers of uncertainty that a simulated run draws."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lepaute import _core


@dataclass(frozen=True, slots=True)
class Layers:
    """Which layers of uncertainty a run draws; each can be switched off."""

    coefficients: bool = True
    days: bool = True
    discrepancy: bool = True
    noise: bool = True
    network: bool = True

    @classmethod
    def only(cls, *names: str) -> Self:
        """The layers of these names, all others switched off; without a name, none is on."""
        return cls(**{field.name: field.name in names for field in fields(cls)})

    @property
    def off(self) -> tuple[str, ...]:
        """Names of the layers that are switched off."""
        return tuple(field.name for field in fields(self) if not getattr(self, field.name))

    def to_core(self) -> "_core.Layers":
        """The layers as the core takes them."""
        from lepaute import _core

        layers = _core.Layers()
        for field in fields(self):
            setattr(layers, field.name, getattr(self, field.name))
        return layers

"""Layers of uncertainty that a simulated run draws."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from lepaute.errors import InputError
from lepaute.kit.numbers import of_type, texts

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.platform.schema import Platform
    from lepaute.simulate.application import Application


@dataclass(frozen=True, slots=True)
class Layers:
    """Which layers of uncertainty a run draws; each can be switched off.

    coefficients : of kernels, from their covariance
    days         : of the day, of the run and of each CPU; or what the population draws
    discrepancy  : errors of the models of kernels and of their pieces
    noise        : of single calls and messages, episodes, and the wandering of cores
    network      : errors of the models of messages
    extrapolation : errors of kernel models at sizes outside of those they were fitted to, in proportion to the distance
    """

    coefficients: bool = True
    days: bool = True
    discrepancy: bool = True
    noise: bool = True
    network: bool = True
    extrapolation: bool = True

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
        """Of all layers."""
        return tuple(field.name for field in fields(cls))

    @property
    def off(self) -> tuple[str, ...]:
        """Names of the layers that are switched off."""
        return tuple(name for name in self.names() if not getattr(self, name))

    def to_core(self) -> "_core.Layers":
        """The layers as the core takes them."""
        from lepaute import _core

        layers = _core.Layers()
        for name in self.names():
            setattr(layers, name, getattr(self, name))
        return layers


def layers_of(platform: "Platform", application: "Application") -> tuple[str, ...]:
    """Names of the layers of which runs of `application` draw anything on `platform`."""
    models = platform.kernels if application.kernel_models else ()
    pieces = [piece for model in models for piece in model.pieces]
    days, population = platform.days, platform.population if application.kernel_models else None
    draws = {
        "coefficients": any(piece.covariance is not None for piece in pieces),
        "days": (population is not None and population.draw != "none")
        or (days is not None and any((days.common_relative_sd, days.run_relative_sd, days.cpu_relative_sd))),
        "discrepancy": any(model.discrepancy_relative_sd for model in models)
        or any(piece.discrepancy_relative_sd for piece in pieces),
        "noise": any(piece.noise.kind != "none" for piece in pieces)
        or any(segment.noise_relative_sd or segment.noise for segment in platform.network.all_segments)
        or any(each is not None and each.relative_sd > 0.0 for each in (platform.episodes, platform.wandering))
        or application.noisy,
        "network": any(platform.network.discrepancies.values()),
        "extrapolation": any(piece.range is not None for piece in pieces),
    }
    return tuple(name for name in Layers.names() if draws[name])

"""Costs that were measured in recordings: on which machine, on how many ranks, and how far off they are elsewhere."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from lepaute.kit.text import counted, percent, ranks_text
from lepaute.simulate.apps.own import values
from lepaute.simulate.apps.own.sides import doublings
from lepaute.simulate.apps.replay import own_code
from lepaute.simulate.platform import load_platform

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate.platform.schema import Platform

#: Beyond that relative standard error nothing is known of a cost.
_LARGEST = 2.0


class Recorded:
    """Costs of an application on a platform (None: on any) that are used elsewhere than where they were measured."""

    def __init__(self, application: Any, platform: "Platform | None") -> None:
        self._application, self._platform = application, platform

    @cached_property
    def extrapolation(self) -> dict[str, float]:
        """By cost its relative standard error on other numbers of ranks than it was measured on."""
        ranks = self._application.ranks
        costs = values.declared_costs(self._application)
        return {cost.name: min(doublings(cost.recorded, ranks) * cost.extrapolation, _LARGEST) for cost in costs}

    @cached_property
    def factor(self) -> "own_code.Factor | None":
        """Time on the platform over that where it was recorded; None where costs are as given anywhere."""
        recorded_on = self._application.recorded_on
        if recorded_on is None or self._platform is None:
            return None
        if not recorded_on:
            return own_code.of_anywhere("an unknown machine", "learn --recorded-on")
        return own_code.between(load_platform(recorded_on), self._platform, self._application.ranks, 0.0)

    def kernels(self, costs: tuple[tuple[str, float, float, float, float], ...]) -> "list[_core.MachineKernel]":
        """Models of the costs (name, seconds a unit, error, noise, memory share) as the core has them."""
        made, factor = [], self.factor
        assert self._platform is not None
        for name, seconds, error, noise, memory_share in costs:
            scaled_s = seconds * (1.0 if factor is None else factor.middle)
            kernel = values.kernel_of((name, scaled_s, error, noise, memory_share), self._platform)
            kernel.extrapolation_relative_sd = self.extrapolation[name]
            if factor is not None:
                kernel.own_code_relative_sd, kernel.as_recorded = factor.relative_sd, factor.same
            made.append(kernel)
        return made

    @property
    def layers(self) -> dict[str, bool]:
        """Layers that a run draws of it."""
        uncertain = self.factor is not None and self.factor.relative_sd > 0.0
        return {"extrapolation": any(self.extrapolation.values()), "own_code": uncertain}

    @property
    def proviso(self) -> str:
        if self.factor is None or self._platform is None:
            return ""
        times = f", its code taking {self.factor.low:g} to {self.factor.high:g} times as long as recorded"
        return f"on {self._platform.name}{'' if self.factor.known else times}"

    @property
    def warnings(self) -> list[str]:
        lines = [] if self.factor is None else [f"computing takes {self.factor.words}"]
        costs, platform = values.declared_costs(self._application), self._platform
        assert platform is not None
        if spans := [cost.recorded for cost in costs if cost.recorded and self.extrapolation[cost.name]]:
            lines.append(
                f"{min(spans)[0]} to {ranks_text(max(most for _, most in spans))} recorded, {self._application.ranks} "
                "asked: what computing costs there is extrapolated"
            )
        for cost in costs:
            measured: Any = getattr(cost, "stretches", None)
            if measured is not None and measured.platform != platform.name:
                where = f"on {measured.platform}" if measured.platform else "on a machine that nothing tells of"
                lines.append(
                    f"the cost of {cost.name} is as measured, {where}: {counted(measured.count, 'measurement')} on "
                    f"{ranks_text(measured.ranks)}, error {percent(measured.error)}, noise {percent(measured.noise)}"
                )
        nodes = platform.nodes
        shared = [cost.name for cost in costs if cost.memory_share > 0.0]
        if shared and (nodes.memory_bandwidth_Bps is None or nodes.core_memory_bandwidth_Bps is None):
            lines.append(
                f"the memory share of {', '.join(shared)} changes nothing: {platform.name} has no "
                "nodes.memory_bandwidth_Bps and nodes.core_memory_bandwidth_Bps"
            )
        return lines

"""How an application of one's own behaves: its ranks do what `run` yields, and computing takes what its costs say."""

import hashlib
import sys
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from lepaute.kit.later import later
from lepaute.kit.python_files import program_of
from lepaute.kit.text import counted, percent, ranks_text
from lepaute.simulate.apps.laid import LaidBehaviour
from lepaute.simulate.apps.own.values import costs_of, declared_costs, kernel_of
from lepaute.simulate.behaviour import Kernels

if TYPE_CHECKING:
    from lepaute.simulate.apps.own import Application, laying
    from lepaute.simulate.engine import SimulatedRun
else:
    laying = later("lepaute.simulate.apps.own.laying")

_LOCK = Lock()  # laying down is Python's work: one at a time


class OwnBehaviour(LaidBehaviour):
    application: "Application"

    @cached_property
    def _costs(self) -> tuple[tuple[str, float, float, float, float], ...]:
        return costs_of(self.application)

    @property
    def kernels(self) -> Kernels:
        return Kernels(
            self.laid().uses_kernels,
            self._costs,
            lambda: [kernel_of(cost, self.platform) for cost in self._costs],
            tuple(name for name, seconds, error, _, _ in self._costs if seconds > 0.0 and error == 0.0),
        )

    @property
    def own_draws(self) -> frozenset[str]:
        drawn = {
            "discrepancy": any(error > 0.0 for _, _, error, _, _ in self._costs),
            "noise": any(noise > 0.0 for _, _, _, noise, _ in self._costs),
            "course": self.laid().draws,
        }
        return frozenset(name for name, draws in drawn.items() if draws)

    @property
    def code(self) -> str:
        """SHA-256 of its file, of one that was loaded from a command line or a study, and of what has been measured."""
        program, file_sha256 = program_of(type(self.application)), self.application.file_sha256
        if not file_sha256 or program is None:
            return ""
        rests = sorted(self.laid().reads.items()) if any(text.reads_late for text in program.texts()) else []
        return hashlib.sha256(repr((file_sha256, self._costs, sys.version_info[:2], rests)).encode()).hexdigest()

    def laid(self, seed: int = 1) -> "laying.Laid":
        """What the core runs; of another seed only where `run` draws random numbers."""
        known: dict[int, laying.Laid] = vars(self.application).setdefault("_laid", {})
        with _LOCK:
            first = next(iter(known.values()), None)
            if first is None or (first.draws and seed not in known):
                while len(known) > 1:
                    known.pop(list(known)[-1])  # the first one tells what all have in common
                known[seed] = laying.Laying.laid_down(self.application, seed)
                return known[seed]
            return known[seed] if first.draws else first

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        laid = self.laid(seed)
        if not laid.asks:
            return laid.parameters
        from lepaute.simulate.apps.own.stepping import Stepping

        return Stepping(self.application, seed).begin()

    def warnings(self, run: "SimulatedRun") -> list[str]:
        told = self.laid().caveats(self.application)
        for cost in declared_costs(self.application):
            found: Any = getattr(cost, "stretches", None)
            if found is not None and found.platform != self.platform.name:
                where = f"on {found.platform}" if found.platform else "on a machine that nothing tells of"
                told.append(
                    f"the cost of {cost.name} is as measured, {where}: {counted(found.count, 'measurement')} on "
                    f"{ranks_text(found.ranks)}, error {percent(found.error)}, noise {percent(found.noise)}"
                )
        nodes = self.platform.nodes
        shared = [name for name, _, _, _, memory_share in self._costs if memory_share > 0.0]
        if shared and (nodes.memory_bandwidth_Bps is None or nodes.core_memory_bandwidth_Bps is None):
            told.append(
                f"the memory share of {', '.join(shared)} changes nothing: {self.platform.name} has no "
                "nodes.memory_bandwidth_Bps and nodes.core_memory_bandwidth_Bps"
            )
        return told

"""What to trace of a simulated run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.simulate.hpl import Hpl


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Which ranks and which steps (panels, from 0) of a run to trace; None means all."""

    ranks: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None

    def check(self, hpl: "Hpl") -> None:
        """Raises InputError for a rank or a step that the run does not have."""
        for name, chosen, count in (("rank", self.ranks, hpl.ranks), ("step", self.steps, -(-hpl.n // hpl.nb))):
            beyond = next((number for number in chosen or () if not 0 <= number < count), None)
            if beyond is not None:
                raise InputError(f"there is no {name} {beyond} to trace; this run has {name}s 0 to {count - 1}")

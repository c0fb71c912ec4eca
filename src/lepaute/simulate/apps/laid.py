"""What applications have in common that are laid down before they run: those of one's own, and replays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.application import About, Application
from lepaute.simulate.behaviour import Behaviour

if TYPE_CHECKING:
    from lepaute.simulate.apps.own.laying import Laid
    from lepaute.simulate.engine import SimulatedRun


class LaidApplication(Application):
    @property
    def steps(self) -> int:
        """The most steps that a rank goes through."""
        behaviour: Any = self.on()
        return int(behaviour.laid().steps)


class LaidBehaviour(Behaviour):
    """That of an application whose `laid` knows all that it will do."""

    def laid(self, seed: int = 1) -> "Laid":
        """What the core runs."""
        raise NotImplementedError

    @property
    def events(self) -> float:
        return self.laid().events

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        return self.laid(seed).parameters

    def details(self, run: "SimulatedRun") -> dict[str, Any]:
        """What a saved prediction tells without the file of the class, or the recording."""
        application = self.application
        return {"program": {"title": application.title, "label": application.label, "ranks": application.ranks}}


@dataclass(frozen=True)
class SavedApplication(Application):
    """What a saved prediction has of such an application: all but what it does."""

    title: str = ""
    label: str = ""
    ranks: int = 1
    saved: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.title, str) and isinstance(self.label, str) and isinstance(self.ranks, int)):
            raise InputError("program is no title, label and number of ranks")

    @property
    def about(self) -> About:  # type: ignore[override]
        kinds = {name: str if isinstance(value, list) else type(value) for name, value in self.saved.items()}
        return About(self.title, parameter_kinds=kinds)

    def parameters(self) -> dict[str, Any]:
        return dict(self.saved)

"""What applications have in common that are laid down before they run: those of one's own, and replays."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.simulate.application import Application

if TYPE_CHECKING:
    from lepaute.simulate import engine
    from lepaute.simulate.apps.own.laying import Laid
else:
    engine = later("lepaute.simulate.engine")


class LaidApplication(Application):
    """An application whose `laid` knows all that it will do."""

    def laid(self) -> "Laid":
        """The operations that the core executes."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """The most steps that a rank goes through."""
        return self.laid().steps

    @property
    def events(self) -> float:
        return self.laid().events

    @property
    def kernel_models(self) -> bool:  # type: ignore[override]
        return self.laid().uses_kernels

    def details(self, run: "engine.SimulatedRun") -> dict[str, Any]:
        """What a saved prediction tells without the file of the class, or the recording."""
        return {"program": {"title": self.title, "label": self.label, "ranks": self.ranks}}


class SavedApplication(Application):
    """What a saved prediction has of such an application: all but what it does."""

    def __init__(self, parameters: Mapping[str, Any], program: Mapping[str, Any]) -> None:
        self._parameters = dict(parameters)
        title, label, ranks = (program[name] for name in ("title", "label", "ranks"))
        if not (isinstance(title, str) and isinstance(label, str) and isinstance(ranks, int)):
            raise InputError("program is no title, label and number of ranks")
        self.title, self._label, self._ranks = title, label, ranks  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedApplication) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.title, self._label))

    @property
    def ranks(self) -> int:
        return self._ranks

    @property
    def label(self) -> str:
        return self._label

    def parameters(self) -> dict[str, Any]:
        return dict(self._parameters)

    def parameter_kinds(self) -> dict[str, Any]:
        return {name: str if isinstance(value, list) else type(value) for name, value in self._parameters.items()}

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        raise InputError(f"{self.title} of a saved prediction cannot be run; its class is not in the file")

"""What applications have in common that are laid down before they run: those of one's own, and replays."""

from typing import TYPE_CHECKING

from lepaute.simulate.application import Application

if TYPE_CHECKING:
    from lepaute.simulate.apps.own.laying import Laid


class LaidApplication(Application):
    """An application whose `laid` knows all that it will do."""

    def laid(self) -> "Laid":
        """What the core runs."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """The most steps that a rank goes through."""
        return self.laid().steps

    @property
    def events(self) -> float:
        """What the engine handles in a run, about."""
        return self.laid().events

    @property
    def kernel_models(self) -> bool:  # type: ignore[override]
        """Whether it calls kernels of the platform."""
        return self.laid().uses_kernels

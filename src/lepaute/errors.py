"""The exceptions of Lepaute: the type is the cause, the message says what is wrong, where, and what to do."""

from collections.abc import Iterable


class LepauteError(Exception):
    """Root of all errors that a user can mend; the command line prints the message and exits with 2."""


class InputError(LepauteError):
    """An argument or a parameter has a value that cannot be."""


class EnvironmentProblem(LepauteError):
    """Something this machine should have is missing or unusable."""


class ArchiveError(LepauteError):
    """An archive is damaged, incomplete, or not an archive."""


class PlatformError(LepauteError):
    """A platform file does not describe a platform.

    faults : a line for each of its faults; the message itself has the first one
    """

    def __init__(self, message: str, faults: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults) or (message,)


class DesignError(LepauteError):
    """A design table is malformed or asks for the impossible."""


class FitError(LepauteError):
    """The data do not determine the model that was asked for."""


class SimulationError(LepauteError):
    """A simulation cannot be run, or ran into a deadlock."""

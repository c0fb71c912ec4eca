"""The exceptions of Lepaute: the type is the cause, the message says what is wrong, where, and what to do."""

import warnings
from collections.abc import Iterable

#: A message that quotes something longer is cut in its middle.
MAX_CHARACTERS = 2000
CUT = " [...] "


class LepauteError(Exception):
    """Root of all errors that a user can mend; the command line prints the message and exits with 2."""

    def __init__(self, message: object = "", *more: object) -> None:
        if isinstance(message, str) and len(message) > MAX_CHARACTERS:
            kept = (MAX_CHARACTERS - len(CUT)) // 2
            message = f"{message[:kept]}{CUT}{message[-kept:]}"
        super().__init__(message, *more)

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show: the lines of one's own that led to it, and the message.

        The lines of this package would be dozens; `import traceback; traceback.print_exc()` has them.
        """
        import traceback
        from pathlib import Path

        package = str(Path(__file__).parent)
        lines = [
            f"line {frame.lineno}: {frame.line}"
            for frame in traceback.extract_tb(self.__traceback__)
            if not frame.filename.startswith(package) and not {"IPython", "ipykernel"} & set(Path(frame.filename).parts)
        ]
        return [*lines, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]


class InputError(LepauteError, ValueError):
    """An argument or a parameter has a value that cannot be."""


class WrongType(InputError, TypeError):
    """An argument is of a type that is not taken, whatever its value."""


class EnvironmentProblem(LepauteError):
    """Something this machine should have is missing or unusable."""


class LibraryFailure(EnvironmentProblem):
    """A library that is measured gives wrong results, lacks what it is asked for or does not end; exit status 5."""


class ArchiveError(LepauteError, ValueError):
    """An archive is damaged, incomplete, or not an archive."""


class PlatformError(LepauteError, ValueError):
    """A platform file does not describe a platform.

    faults : a line for each of its faults; the message itself has the first one
    """

    def __init__(self, message: str, faults: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults) or (message,)


class DesignError(LepauteError, ValueError):
    """A design table is malformed or asks for the impossible."""


class FitError(LepauteError, ValueError):
    """The data do not determine the model that was asked for."""


class SimulationError(LepauteError):
    """A simulation cannot be run, or ran into a deadlock."""


class PredictionWarning(UserWarning):
    """What a reader of a prediction must know, raised by `warnings` as well as listed in `Prediction.warnings`.

    It says what it is about without figures, which are in the list, and each once a process.

    `warnings.simplefilter("ignore", lepaute.PredictionWarning)` silences it, "error" stops at it.
    """


warnings.filterwarnings("once", category=PredictionWarning, append=True)  # unless a user has another filter

"""Where the lines of a run's log are shown while it runs: standard error, or one changing line of a notebook."""

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

#: Seconds between changes of the line of a notebook.
PERIOD_S = 0.3
_WARNING = "warning: "


def usual_log() -> Callable[[str], None]:
    """What shows lines here."""
    shell = _notebook()
    return _to_standard_error if shell is None else NotebookLog()


class NotebookLog:
    """Shows the latest line in the place of the one before, and warnings each on a line of their own.

    Hundreds of lines on standard error would fill a notebook, in red. The archive has all of them (log.txt).
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown_s = -float("inf")

    def __call__(self, line: str) -> None:
        if line.startswith(_WARNING):
            _to_standard_error(line)
        elif time.monotonic() - self._shown_s >= PERIOD_S:
            self.show(line)

    def show(self, line: str) -> None:
        """The line, at once: the last one stays."""
        display = import_module("IPython.display").display
        self._shown_s = time.monotonic()
        content = {"text/plain": line}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _notebook() -> Any:
    """The shell of the kernel of a notebook in which this runs; None elsewhere, on a terminal of IPython too."""
    ipython = sys.modules.get("IPython")  # nobody else has to have it
    shell = None if ipython is None else ipython.get_ipython()
    return shell if type(shell).__name__ == "ZMQInteractiveShell" else None


def _to_standard_error(line: str) -> None:
    print(line, file=sys.stderr)

"""The progress bar on standard error; nothing where that is no terminal.

It is drawn when it is told something, not by a clock: a thread that redraws it takes a hundredth of a core from what
is being measured meanwhile.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lepaute.kit.printable import PrintableStream, printable, unfiltered

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress_bar(after_s: float = 0.0) -> Iterator[Callable[[str, float], None]]:
    """Gives a function (what is done, share of the work behind from 0 to 1) that moves the bar.

    after_s : nothing is drawn before (and Rich, which draws, is not even loaded)
    """
    began_s = time.monotonic()
    bar: Progress | None = None

    def tell(message: str, share: float) -> None:
        nonlocal bar
        if bar is None:
            if not sys.stderr.isatty() or time.monotonic() - began_s < after_s:
                return
            bar = drawn_bar()
            bar.start()
            # Until the bar stops, Rich puts what is printed above it, through streams of its own.
            sys.stdout, sys.stderr = (
                PrintableStream(sys.stdout, "standard output"),
                PrintableStream(sys.stderr, "standard error"),
            )
        bar.update(bar.task_ids[0], description=printable(message), completed=share, refresh=True)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


def drawn_bar() -> "Progress":
    """A bar with one task, of length 1."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=Console(file=unfiltered(sys.stderr)), transient=True, auto_refresh=False)
    bar.add_task("", total=1.0)
    return bar

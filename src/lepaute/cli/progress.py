"""The progress bar on standard error; nothing where that is no terminal.

It is drawn when it is told something, not by a clock: a thread that redraws it takes a hundredth of a core from what
is being measured meanwhile.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Gives a function (what is done, share of the work behind from 0 to 1) that moves the bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=1.0)

        def tell(message: str, share: float) -> None:
            bar.update(task, description=message, completed=share, refresh=True)

        yield tell

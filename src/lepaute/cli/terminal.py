"""What commands print besides their answer: JSON, warnings, notes, progress."""

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lepaute.kit.printable import PrintableStream, printable, terminal_columns, unfiltered
from lepaute.kit.text import counted, folded

if TYPE_CHECKING:
    from rich.progress import Progress

#: A command that is done earlier shows no bar.
BAR_AFTER_S = 2.0
#: Caveats of an answer whose beginnings are shown.
MOST_CAVEATS = 3
#: Two words of a sentence, which names of functions are not.
_WORDS = re.compile(r"\b[a-z]+,? [a-z]+\b")


def json_text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """A JSON object for programs to read; default: as of `json.dumps`."""
    return json.dumps(value, indent=2, default=default)


def note(text: str) -> None:
    """A line on standard error, at once."""
    print(text, file=sys.stderr, flush=True)


def warn(sentences: Iterable[str]) -> None:
    """A line on standard error for each; on a terminal it is folded."""
    width = terminal_columns(sys.stderr)
    for sentence in sentences:
        note(folded(f"warning: {sentence}", width, 2))


def answer_text(answer: str, facts: Iterable[tuple[str, str]], caveats: Sequence[str], width: int) -> str:
    """What a command says: the answer in the first line, what it rests on, and its caveats in one line.

    facts: what each is, in one word, and its text;  caveats: whole sentences, of which the beginnings are shown
    width: of the terminal; elsewhere no line is folded
    """
    lines = [folded(answer, width, 2), *(folded(f"  {name:<8}{text}", width, 10) for name, text in facts)]
    return "\n".join([*lines, *([caveat_line(caveats, width)] if caveats else [])])


def caveat_line(caveats: Sequence[str], width: int) -> str:
    """3 caveats: the beginnings of some; --details"""
    beginnings = list(dict.fromkeys(map(_beginning, caveats)))
    named = "; ".join(beginnings[:MOST_CAVEATS])
    more = f"; and {len(beginnings) - MOST_CAVEATS} more" if len(beginnings) > MOST_CAVEATS else ""
    return folded(f"{counted(len(caveats), 'caveat')}: {named}{more}; --details", width, 2)


def details_text(answer: str, details: str, width: int) -> str:
    """The same answer, and below it all there is to say; its lines are folded on a terminal."""
    lines = [folded(line, width, len(line) - len(line.lstrip()) + 2) for line in details.split("\n")]
    return "\n".join([folded(answer, width, 2), *lines])


def _beginning(caveat: str) -> str:
    """A caveat up to its first colon, or the second where names alone precede the first."""
    head, _, rest = caveat.partition(": ")
    return head if _WORDS.search(head) or not rest else f"{head}: {rest.partition(': ')[0]}"


def interrupt_on_sigterm() -> None:
    """A batch system ends a job with SIGTERM: what the command started must end too, and what was measured be kept."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def notes_printed() -> Iterator[None]:
    """Prints the notes of an exception (where the work done so far is, how to go on), and lets it through."""
    try:
        yield
    except BaseException as problem:
        for line in getattr(problem, "__notes__", ()):
            note(f"lepaute: {line}")
        raise


@contextmanager
def progress_bar(after_s: float = 0.0) -> Iterator[Callable[[str, float], None]]:
    """Gives a function (what is done, share of the work behind from 0 to 1) that moves the bar on standard error;
    nothing where that is no terminal.

    It is drawn when it is told something, not by a clock: a thread that redraws it takes a hundredth of a core from
    what is being measured meanwhile.
    after_s : nothing is drawn before (and Rich, which draws, is not even loaded)
    """
    began_s = time.monotonic()
    bar: Progress | None = None

    def tell(message: str, share: float) -> None:
        nonlocal bar
        if bar is None:
            if not sys.stderr.isatty() or time.monotonic() - began_s < after_s:
                return
            bar = _drawn_bar()
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


def _drawn_bar() -> "Progress":
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


@contextmanager
def simulated_date(every_s: float = 1.0) -> Iterator[Callable[[float], None] | None]:
    """Gives a function that shows the simulated date on standard error; None where that is no terminal.

    How long a program will run is not known in advance, so there is no bar.
    """
    if not sys.stderr.isatty():
        yield None
        return
    terminal = unfiltered(sys.stderr)
    began_s = last_s = time.monotonic()

    def tell(date_s: float) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= every_s:
            last_s = now_s
            terminal.write(f"\rsimulated {date_s:.6g} s in {now_s - began_s:.0f} s ")
            terminal.flush()

    try:
        yield tell
    finally:
        if last_s > began_s:
            terminal.write("\r\033[K")
            terminal.flush()

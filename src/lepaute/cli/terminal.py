"""What commands print besides their answer: JSON, warnings, notes, progress."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

import typer

from lepaute.kit.json_values import finite_json
from lepaute.kit.printable import PrintableStream, printable, printable_lines, terminal_columns, unfiltered
from lepaute.kit.text import caveat_line, counted, duration, folded, seconds
from lepaute.stats.decision import Answer, Decision

if TYPE_CHECKING:
    from rich.progress import Progress

Meaning = Literal["good", "doubtful", "bad"]
_COLOURS: Mapping[Meaning, str] = {"good": "1;32", "doubtful": "1;33", "bad": "1;31"}
#: A command that is done earlier shows no bar.
BAR_AFTER_S = 2.0
#: Into a file a line on what is done is written as often.
_LINE_EVERY_S = 60.0
#: Letters of the name of a fact; a longer one stands out of the column.
_MAX_NAME = 18
#: Of the work, and seconds: with less behind nothing is said of the time that is left.
_MIN_BEHIND, MIN_SPENT_S = 0.01, 2.0
#: What an emulation may be replaced by.
FASTER = "a recorded run is replayed in seconds (lepaute record, predict trace)"


def json_text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """A JSON object for programs to read, null for what is not finite; default: as of `json.dumps`."""
    try:
        return json.dumps(value, indent=2, default=default, allow_nan=False)
    except ValueError:
        return json.dumps(finite_json(value), indent=2, default=default, allow_nan=False)


def say(text: str, indent: int = 2, meaning: Meaning | None = None, loud: str = "") -> None:
    """Prints lines of an answer, each folded on a terminal, with so many blanks before what goes on.

    meaning : the colour on a terminal of `loud`, a part of the text, or of all of it, unless NO_COLOR is set
    """
    lines = _folded_lines(text, indent, terminal_columns())
    if meaning is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        print(lines)
        return
    before, words, rest = map(printable_lines, lines.partition(loud) if loud else ("", lines, ""))
    print(f"{before}\033[{_COLOURS[meaning]}m{words}\033[0m{rest}", file=unfiltered(sys.stdout), flush=True)


def note(text: str) -> None:
    """Lines on standard error, at once; on a terminal each is folded."""
    print(_folded_lines(text, 2, terminal_columns(sys.stderr)), file=sys.stderr, flush=True)


def _folded_lines(text: str, indent: int, width: int) -> str:
    return "\n".join(folded(line, width, indent) for line in text.split("\n"))


def announce(wall_s: float, what: str) -> None:
    """A line on standard error that says before a long command begins how long it will take, and for what."""
    note(f"lepaute: this will take about {duration(wall_s)}: {what}")


def end_by(decision: Decision, wrong: Answer) -> None:
    """Ends the command where a limit that was set does not hold, or is not known to; wrong: as of `status`."""
    if status := decision.status(wrong):
        raise typer.Exit(status)


def warn(sentences: Iterable[str]) -> None:
    """A line on standard error for each."""
    for sentence in dict.fromkeys(sentences):
        note(f"warning: {sentence}")


def answer_text(answer: str, facts: Iterable[tuple[str, str]], caveats: Sequence[str], width: int) -> str:
    """What a command says: the answer in the first line, what it rests on, and its caveats in one line.

    facts: what each is, in one word, and its text;  caveats: whole sentences, of which the beginnings are shown
    width: of the terminal; elsewhere no line is folded
    """
    known = list(facts)
    room = max([7, *(len(name) + 1 for name, _ in known if 7 < len(name) <= _MAX_NAME)])
    lines = [folded(answer, width, 2), *(folded(f"  {name:<{room}} {text}", width, room + 3) for name, text in known)]
    return "\n".join([*lines, *([caveat_line(caveats, width)] if caveats else [])])


def answer_in(text: str) -> str:
    """The answer of a text of `answer_text` whose lines are not folded: the lines before what it rests on."""
    return "; ".join(takewhile(lambda line: not line.startswith("  "), text.split("\n")))


def details_text(answer: str, details: str, width: int) -> str:
    """The same answer, and below it all there is to say; its lines are folded on a terminal."""
    lines = [folded(line, width, len(line) - len(line.lstrip()) + 2) for line in details.split("\n")]
    return "\n".join([folded(answer, width, 2), *lines])


def tell(
    answer: str,
    facts: Sequence[tuple[str, str]],
    caveats: Sequence[str],
    *,
    details: bool,
    document: Mapping[str, Any] | None = None,
) -> None:
    """The answer, what it rests on, and its caveats: in one line, or with details a line each; or a document as JSON,
    which the caveats end."""
    if document is not None:
        print(json_text({**document, "warnings": list(caveats)}))
        return
    width = terminal_columns()
    if details:
        rest = [*(f"  {name}: {text}" for name, text in facts), *(f"warning: {caveat}" for caveat in caveats)]
        print(details_text(answer, "\n".join(rest), width))
    else:
        print(answer_text(answer, facts, caveats, width))


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
    """Gives a function (what is done, share of the work behind from 0 to 1) that moves the bar on standard error, with
    the time that is left; where that is no terminal, it writes a line a minute.

    It is drawn when it is told something, not by a clock: a thread that redraws it takes a hundredth of a core from
    what is being measured meanwhile.
    after_s : nothing is drawn before (and Rich, which draws, is not even loaded)
    """
    began_s = told_s = time.monotonic()
    bar: Progress | None = None
    pace = _Pace(began_s)

    def tell(message: str, share: float) -> None:
        nonlocal bar, told_s
        now_s = time.monotonic()
        remaining = pace.text(now_s, share)
        if bar is None and not sys.stderr.isatty():  # Rich's streams, before Rich 14, say that they are none
            if now_s - told_s >= _LINE_EVERY_S:
                told_s = now_s
                note(f"lepaute: {message}, {100.0 * share:.0f} %{remaining and f', {remaining}'}")
            return
        if bar is None:
            if now_s - began_s < after_s:
                return
            bar = _drawn_bar()
            bar.start()
            # Until the bar stops, Rich puts what is printed above it, through streams of its own.
            sys.stdout = PrintableStream(sys.stdout, "standard output")
            sys.stderr = PrintableStream(sys.stderr, "standard error")
        task, shown = bar.task_ids[0], printable(message)
        bar.update(task, description=shown, completed=share, remaining=remaining, refresh=True)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


class _Pace:
    """Of work whose share behind is told as it goes; a share that falls begins another piece of work."""

    def __init__(self, now_s: float) -> None:
        self._began_s, self._began_at, self._last = now_s, 0.0, 0.0

    def text(self, now_s: float, share: float) -> str:
        """about 3 min left; nothing while too little is behind to tell."""
        if share < self._last:
            self._began_s, self._began_at = now_s, share
        self._last = share
        behind, spent_s = share - self._began_at, now_s - self._began_s
        if behind < _MIN_BEHIND or spent_s < MIN_SPENT_S or share >= 1.0:
            return ""
        return f"about {duration(spent_s * (1.0 - share) / behind)} left"


def _drawn_bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[remaining]}"),
    )
    bar = Progress(*columns, console=Console(file=unfiltered(sys.stderr)), transient=True, auto_refresh=False)
    bar.add_task("", total=1.0, remaining="")
    return bar


@contextmanager
def simulated_date(
    runs: int, most_s: float, whole_s: float | None = None, every_s: float = 1.0, *, announced: bool = False
) -> Iterator[tuple[Callable[[float], None], Callable[[float], None], Callable[[], None]]]:
    """Gives functions that are told the simulated date of a run, and the share of the runs that is done: shows both on
    standard error, with the time left; where that is no terminal, a line a minute. A second after it has begun it is
    announced. The third ends the line that is shown, before something else is printed.

    runs, most_s : how many there are, and the seconds after which one is ended
    whole_s : simulated seconds of each run, as predicted, by which it is told how long it will take; None: how long a
        program will run is not known in advance
    announced : it has been announced
    """
    terminal = unfiltered(sys.stderr) if sys.stderr.isatty() else None
    began_s = last_s = time.monotonic()
    period_s, done, behind = _LINE_EVERY_S if terminal is None else every_s, 0.0, 0.0
    is_open = False
    pace = _Pace(began_s)

    def tell_share(share: float) -> None:
        nonlocal done, behind
        done = behind = share

    def tell(date_s: float) -> None:
        nonlocal last_s, announced, behind, is_open
        now_s = time.monotonic()
        if whole_s:
            behind = done + min(date_s / whole_s, 0.99) / runs
        remaining = pace.text(now_s, behind) if behind else ""
        if not announced and now_s - began_s >= (MIN_SPENT_S if whole_s else every_s):
            announced, what = True, f"emulating {counted(runs, 'run')}"
            if not behind:
                most = f"as long as all ranks compute, on one core, {duration(most_s)} at most"
                note(f"lepaute: {what}; its duration is not known in advance: {most}; {FASTER}")
            elif (to_come_s := (now_s - began_s) * (1.0 - behind) / behind) > BAR_AFTER_S:
                announce(to_come_s, what)
        if now_s - last_s < period_s:
            return
        last_s = now_s
        share = f"{100.0 * behind:.0f} %" if behind else ""
        spent = duration(now_s - began_s)
        text = ", ".join(filter(None, [f"simulated {seconds(date_s)} in {spent}", share, remaining]))
        if terminal is None:
            note(f"lepaute: {text}")
        else:
            print(f"\r\033[K{text} ", end="", file=terminal, flush=True)
            is_open = True

    def end_line() -> None:
        nonlocal is_open
        if terminal is not None and is_open:
            is_open = False
            print(file=terminal, flush=True)

    try:
        yield tell, tell_share, end_line
    finally:
        if terminal is not None and is_open:
            print("\r\033[K", end="", file=terminal, flush=True)

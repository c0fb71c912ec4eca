"""Writes down what happens in a run, without secrets."""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from lepaute.kit.json_values import from_json, to_json
from lepaute.kit.python_files import program_of
from lepaute.measure.archive.metadata import LostNode
from lepaute.measure.experiment.entries import Entry, Transfer
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.node_agent.redact import Redactor
from lepaute.measure.nodes.results import Result, command_text
from lepaute.measure.raw_files import Value

#: A file without a NUL byte in this many bytes is text, in whatever encoding.
_TEXT_BYTES = 1 << 16
#: The name that the cells of a notebook have in an archive.
SESSION = "session.py"


def now() -> str:
    """The date as archives have it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def source_of(job_class: type) -> tuple[str, bytes] | None:
    """Name and content of what defines an experiment; None if nobody knows, and for those of Lepaute itself.

    That is the script that was run or that defines the class, or the cells that IPython has executed so far.
    """
    if (program := program_of(job_class)) is not None:
        return program.path.name, program.sources[program.path]
    module = sys.modules.get(job_class.__module__)
    of_lepaute = job_class.__module__.partition(".")[0] == "lepaute"
    cells = getattr(sys.modules.get("__main__"), "In", None)  # as IPython calls them
    if isinstance(cells, list) and (of_lepaute or job_class.__module__ == "__main__"):
        return SESSION, "\n\n# %%\n".join(cell.rstrip() for cell in cells if cell.strip()).encode() + b"\n"
    file = getattr(module, "__file__", None)
    if of_lepaute or file is None or not Path(file).is_file():
        return None
    return Path(file).name, Path(file).read_bytes()


class Record:
    """The record of a run, in its workspace.

    say       : called with each line of the log as well
    parameters: of the run, by name; values whose name sounds like a secret are not written down
    """

    def __init__(
        self,
        workspace: Workspace,
        say: Callable[[str], None] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.workspace = workspace
        self.phase = "start"
        self._variables = {**os.environ, **(parameters or {})}
        self._redactor = Redactor(self._variables)
        self._say = say if say is not None else usual_log()
        self._log_lock = threading.Lock()

    def clean(self, value: Any) -> Any:
        """The value without secrets in any text of it."""
        if isinstance(value, str):
            return self._redactor.redact(value)
        if isinstance(value, Mapping):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean(item) for item in value]
        return value

    def log(self, text: str) -> None:
        """A line for people."""
        line = " ".join(self._redactor.redact(text).split())
        with self._log_lock, (self.workspace.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{now()} {self.phase}: {line}\n")
        self._say(line)

    def tell(self, text: str) -> None:
        """How it ended, for people, when there is no log any more."""
        show = self._say.show if isinstance(self._say, NotebookLog) else self._say
        show(" ".join(self._redactor.redact(text).split()))

    def warn(self, text: str) -> None:
        """A warning for whoever reads the archive; each text once."""
        warnings = self.workspace.state.warnings
        line = " ".join(self._redactor.redact(text).split())
        if line not in warnings:
            warnings.append(line)
            self.workspace.save()
            self.log(f"warning: {line}")

    def clean_argv(self, argv: Sequence[str]) -> list[str]:
        """A command line without secrets; `--password` may stand in the word before the secret."""
        return self._redactor.argv(argv)

    def command(self, result: Result) -> None:
        if result.environment.items() - self._variables.items():
            # Secrets that a command was given are secrets in its output, and in everything that follows.
            self._variables.update(result.environment)
            self._redactor = Redactor(self._variables)
        entry = {
            "phase": self.phase,
            **self.clean(asdict(result)),
            "argv": self.clean_argv(result.argv),
            "environment": self._redactor.environment(result.environment),
        }
        self.workspace.journal("commands").add(entry)
        outcome = "done" if result.ok else result.complaint()
        self.log(f"{result.node}: {command_text(result.argv)[:160]}: {outcome[:200]} ({result.duration_s:.3g} s)")

    def file(self, node: str, what: str, path: str, size_bytes: int) -> None:
        self.note(Transfer(self.phase, now(), node, what, path, size_bytes))

    def note(self, entry: Entry) -> None:
        """An entry of a journal, without secrets."""
        self.workspace.journal(entry.JOURNAL).add(self.clean(to_json(entry)))

    def lost(self, node: str, why: str) -> None:
        loss = self.clean(to_json(LostNode(node, now(), why, self.phase)))
        self.workspace.state.lost_nodes.append(from_json(LostNode, loss))
        self.workspace.save()
        self.warn(f"{node} was lost: {why}")

    def row(self, table: str, row: Mapping[str, Value]) -> None:
        self.workspace.table(table).add({name: self.clean(value) for name, value in row.items()})

    def keep(self, name: str, data: bytes) -> None:
        """A file for the archive; text is kept without secrets."""
        if b"\0" not in data[:_TEXT_BYTES]:  # else no text: a picture, a Parquet file
            data = self._redactor.data(data)
        self.workspace.keep_file(name, data)


#: Seconds between changes of the line of a notebook.
PERIOD_S = 0.3
_WARNING = "warning: "


def usual_log() -> Callable[[str], None]:
    return _to_standard_error if _notebook() is None else NotebookLog()


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

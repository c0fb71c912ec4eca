"""Where a run keeps what it sees until it is archived: a folder beside the archive to be.

Everything in it only grows and is on its way to the disk at once, so whatever ends a run, what was measured is there.
"""

import contextlib
import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any, Self, TextIO, TypeVar

from lepaute.errors import ArchiveError, EnvironmentProblem, InputError, LepauteError
from lepaute.kit.files import hold_lock, not_written, write_atomic
from lepaute.kit.journal import Journal, entries
from lepaute.kit.json_values import from_json, to_json
from lepaute.measure.archive.documents import check_name
from lepaute.measure.design import Design, read_design, write_design
from lepaute.measure.experiment.entries import Entry, MeasuredRow, RunState
from lepaute.measure.raw_files import Table

AnyEntry = TypeVar("AnyEntry", bound=Entry)
SUFFIX = ".work"
DESIGN = "design.csv"


class Workspace:
    """The folder of one run; one process at a time has it.

    state: `save` writes it down
    """

    def __init__(self, folder: Path) -> None:
        """For `create` and `reopen`."""
        self.folder = folder
        self.state = RunState()
        self._saving = threading.Lock()
        self._lock: TextIO | None = None
        self._journals: dict[str, Journal] = {}
        self._opening = threading.Lock()
        self._tables: dict[str, Table] = {}

    @classmethod
    def create(cls, archive: Path, state: RunState) -> Self:
        """A new workspace; raises InputError if an interrupted or another run has one there."""
        work = cls(folder_of(archive))
        try:
            work.folder.mkdir()
        except FileExistsError:
            raise InputError(
                f"{work.folder}: an interrupted run is there; resume it (--resume; lp.run(..., resume=True)), archive "
                f"what it measured (lepaute archive close {work.folder}), or give the archive another name"
            ) from None
        except OSError as problem:
            raise InputError(not_written(work.folder, problem, "choose another folder (-o)")) from None
        try:
            work._hold("choose another folder (-o)")
        except EnvironmentProblem:  # there are no locks: nobody else can be in it
            shutil.rmtree(work.folder, ignore_errors=True)
            raise
        work.state = state
        work.save()
        return work

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """The workspace of an interrupted run. Raises InputError if there is none, or it is still running."""
        work = cls(folder)
        if not (folder / "state.json").is_file():
            raise InputError(f"{folder}: no interrupted run is there; start without --resume")
        work._hold("copy it to another one")
        try:
            document = json.loads((folder / "state.json").read_text())
        except (ValueError, OSError) as problem:
            raise InputError(f"{folder}: state.json cannot be read ({problem}); what was measured is in raw/") from None
        work.state = from_json(RunState, document, f"{folder}/state.json")
        return work

    def _hold(self, remedy: str) -> None:
        self._lock = (self.folder / "lock").open("a+")
        try:
            if not hold_lock(self._lock, self.folder, remedy):
                self._lock.seek(0)
                holder = self._lock.read().strip() or "another process"
                raise InputError(f"{self.folder}: it is being run by {holder}; wait until that has ended")
        except LepauteError:
            self._lock.close()
            raise
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()}")
        self._lock.flush()

    def save(self) -> None:
        """Writes the state down, at once or not at all; from any thread."""
        with self._saving:
            self.keep_file("state.json", json.dumps(to_json(self.state), default=str).encode())

    def journal(self, name: str) -> Journal:
        """The journal of that name, made when it is first asked for."""
        with self._opening:
            if name not in self._journals:
                self._journals[name] = Journal(self.folder / f"{name}.jsonl")
            return self._journals[name]

    def entries(self, name: str) -> list[dict[str, Any]]:
        return list(entries(self.folder / f"{name}.jsonl"))

    def note(self, entry: Entry) -> None:
        self.journal(entry.JOURNAL).add(to_json(entry))

    def noted(self, kind: type[AnyEntry]) -> list[AnyEntry]:
        """The entries of a journal. Raises InputError for one that is not of its kind."""
        return [from_json(kind, entry, f"{kind.JOURNAL}.jsonl") for entry in self.entries(kind.JOURNAL)]

    def table(self, name: str) -> Table:
        if not name.replace("_", "").replace("-", "").isalnum():
            raise InputError(f"{name[:60]!r} cannot name a table; use letters, digits, - and _")
        if name not in self._tables:
            header = {"generator": "lepaute run", "run": self.state.run_id}
            self._tables[name] = Table(self.folder / "raw" / f"{name}.csv", header)
        return self._tables[name]

    @property
    def design(self) -> Design | None:
        """Design to be measured, as it was written down when the run began."""
        path = self.folder / DESIGN
        return read_design(path) if path.is_file() else None

    def keep_design(self, design: Design) -> None:
        write_design(design, self.folder / DESIGN)

    def done(self) -> set[int]:
        """Numbers of the design's rows that have been measured."""
        journal = entries(self.folder / f"{MeasuredRow.JOURNAL}.jsonl")
        return {from_json(MeasuredRow, entry, f"{MeasuredRow.JOURNAL}.jsonl").design_row for entry in journal}

    def measured(self) -> tuple[int, int]:
        """(rows of the design that have been measured, rows of the design); further rounds do not count."""
        design = self.design
        rows = 0 if design is None else len(design)
        return sum(number < rows for number in self.done()), rows

    def keep_file(self, name: str, data: bytes) -> None:
        """A file for the archive, whole or not at all.

        name: a relative path that a member of an archive can have. Raises InputError for others now, and not when
        everything has been measured and the archive is to be written.
        """
        try:
            check_name(name)
        except ArchiveError:
            raise InputError(
                f"{name[:120]!r} cannot be the name of a file in an archive; give a relative path without : and \\"
            ) from None
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)

    def close(self) -> None:
        """Closes the files and releases the lock; the folder stays."""
        for journal in self._journals.values():
            journal.close()
        for table in self._tables.values():
            table.close()
        self._journals.clear()
        self._tables.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """Closes and removes the folder: everything is in an archive."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            try:
                shutil.rmtree(self.folder)
            except OSError as problem:
                raise EnvironmentProblem(f"{self.folder}: cannot be removed ({problem.strerror}); remove it") from None


def folder_of(archive: Path) -> Path:
    """The workspace that belongs to an archive."""
    return archive.with_name(archive.stem + SUFFIX)


def latest_workspace(place: Path, stem: str) -> Path:
    """The workspace in `place` that a run of script `stem` left last. Raises InputError if there is none."""
    # As `new_name` makes them, and not those of another script of a longer name: sort.py, sort-large.py.
    pattern = re.compile(rf"{re.escape(stem)}-\d{{8}}-\d{{6}}-[0-9a-f]{{4}}{re.escape(SUFFIX)}")
    workspaces = sorted(
        (folder for folder in place.glob(f"*{SUFFIX}") if pattern.fullmatch(folder.name)),
        key=lambda folder: folder.stat().st_mtime,
    )
    if not workspaces:
        raise InputError(
            f"{place}: no run of {stem}.py was interrupted here; name its archive with -o, or start without --resume"
        )
    return workspaces[-1]

"""Where a run keeps what it sees until it is archived: a folder beside the archive to be.

Everything in it only grows and is on its way to the disk at once, so whatever ends a run, what was measured is there.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TextIO

from lepaute.archive.manifest import check_name
from lepaute.design import Design, read_design, write_design
from lepaute.errors import ArchiveError, EnvironmentProblem, InputError
from lepaute.kit.files import write_whole
from lepaute.kit.journal import Journal, entries
from lepaute.measure.experiment.raw_rows import Table

SUFFIX = ".work"
DESIGN = "design.csv"


class Workspace:
    """The folder of one run; one process at a time has it.

    state: what the run was started with, and what became of each of its sessions; `save` writes it down
    """

    def __init__(self, folder: Path) -> None:
        """For `create` and `reopen`."""
        self.folder = folder
        self.state: dict[str, Any] = {}
        self._saving = threading.Lock()
        self._lock: TextIO | None = None
        self._journals: dict[str, Journal] = {}
        self._opening = threading.Lock()
        self._tables: dict[str, Table] = {}

    @classmethod
    def create(cls, archive: Path, state: Mapping[str, Any]) -> Self:
        """A new workspace; raises InputError where a run that was interrupted left one, or another run is there."""
        work = cls(folder_of(archive))
        try:
            work.folder.mkdir()
        except FileExistsError:
            raise InputError(
                f"{work.folder}: a run that did not end is there; go on with it (--resume), archive what it has "
                f"(lepaute archive close {work.folder}), or give the archive another name"
            ) from None
        except OSError as problem:
            raise InputError(f"{work.folder}: cannot be made ({problem.strerror}); choose another place (-o)") from None
        work._hold()
        work.state = dict(state)
        work.save()
        return work

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """The workspace of a run that did not end. Raises InputError where there is none, or it still runs."""
        work = cls(folder)
        if not (folder / "state.json").is_file():
            raise InputError(f"{folder}: no run was interrupted there; start it without --resume")
        work._hold()
        try:
            work.state = json.loads((folder / "state.json").read_text())
        except (ValueError, OSError) as problem:
            raise InputError(f"{folder}: state.json cannot be read ({problem}); what was measured is in raw/") from None
        return work

    def _hold(self) -> None:
        self._lock = (self.folder / "lock").open("a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read().strip() or "another process"
            self._lock.close()
            raise InputError(f"{self.folder}: {holder} is running it now; wait for its end") from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()}")
        self._lock.flush()

    def save(self) -> None:
        """Writes the state down, at once or not at all; from any thread."""
        with self._saving:
            # In one go: no other thread can change the state meanwhile, as it could with json.dump or an indent.
            text = json.dumps(self.state, default=str)
            self.keep_file("state.json", text.encode())

    def journal(self, name: str) -> Journal:
        """The journal of that name, made when it is first asked for."""
        with self._opening:
            if name not in self._journals:
                self._journals[name] = Journal(self.folder / f"{name}.jsonl")
            return self._journals[name]

    def entries(self, name: str) -> list[dict[str, Any]]:
        """What the journal of that name holds."""
        return list(entries(self.folder / f"{name}.jsonl"))

    def table(self, name: str) -> Table:
        """The table of measurements of that name."""
        if not name.replace("_", "").replace("-", "").isalnum():
            raise InputError(f"{name[:60]!r} cannot name a table; use letters, digits, - and _")
        if name not in self._tables:
            header = {"generator": "lepaute run", "run": str(self.state.get("run_id", ""))}
            self._tables[name] = Table(self.folder / "raw" / f"{name}.csv", header)
        return self._tables[name]

    @property
    def design(self) -> Design | None:
        """What is to be measured, as it was written down when the run began."""
        path = self.folder / DESIGN
        return read_design(path) if path.is_file() else None

    def keep_design(self, design: Design) -> None:
        write_design(design, self.folder / DESIGN)

    def done(self) -> set[int]:
        """Numbers of the design's rows that have been measured."""
        return {int(entry["design_row"]) for entry in self.entries("done")}

    def measured(self) -> tuple[int, int]:
        """(rows of the design that have been measured, rows of the design); further rounds do not count."""
        design = self.design
        rows = 0 if design is None else len(design)
        return sum(number < rows for number in self.done()), rows

    def keep_file(self, name: str, data: bytes) -> None:
        """A file for the archive, whole or not at all.

        name: a relative path that a member of an archive can have. Raises InputError for others: told now, and not when
        all has been measured and the archive is to be written.
        """
        try:
            check_name(name)
        except ArchiveError:
            raise InputError(
                f"{name[:120]!r} cannot be the name of a file in an archive; give a relative path without : and \\"
            ) from None
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)

    def close(self) -> None:
        """Lets go of the files and of the lock; the folder stays."""
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
    """The workspace in `place` that a run of script `stem` left last. Raises InputError where there is none."""
    # Such as `new_name` gives, and not those of another script whose name goes on: sort.py, sort-large.py.
    own = re.compile(rf"{re.escape(stem)}-\d{{8}}-\d{{6}}-[0-9a-f]{{4}}{re.escape(SUFFIX)}")
    found = sorted(
        (folder for folder in place.glob(f"*{SUFFIX}") if own.fullmatch(folder.name)),
        key=lambda folder: folder.stat().st_mtime,
    )
    if not found:
        raise InputError(
            f"{place}: no run of {stem}.py was interrupted here; name its archive with -o, or start it anew"
        )
    return found[-1]

"""Temporary files and folders beside what they are to become.

Whoever makes one holds a lock on it, and removes it at the end. A process that is killed removes nothing: what it left
is removed by the next one that makes a temporary in the same folder, since nobody holds its lock any more.
"""

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from lepaute.kit.locks import lock_if_any

#: Around the random part of a name.
PREFIX, SUFFIX = ".lepaute-", ".tmp"
#: A moment passes between the making of a temporary and its lock.
_YOUNG_S = 60.0


@contextmanager
def scratch_file(folder: Path) -> Iterator[Path]:
    """An empty file, under a name that nobody can foresee, with the permissions that open() would give.

    Removed at the end of the block, unless it has another name by then. Raises OSError where it cannot be made.
    """
    _tidy_once(folder)
    path = _new_name(folder)
    # Not of tempfile: its files have mode 0600, and what open() would give follows from the umask and the folder.
    with _held(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)):
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


@contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """An empty folder likewise, removed with all that is in it."""
    _tidy_once(folder)
    path = _new_name(folder)
    path.mkdir()
    with _held(os.open(path, os.O_RDONLY | os.O_DIRECTORY)):
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def remove_abandoned(folder: Path, *, young_s: float = _YOUNG_S) -> None:
    """Removes what processes that were killed left in a folder; nothing that was made less than young_s ago.

    Where the file system has no locks, nothing is removed.
    """
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if time.time() - status.st_mtime < young_s or not _is_abandoned(path):
                continue
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


@cache
def _tidy_once(folder: Path) -> None:
    """A folder may have many files, and a process may write many into it."""
    remove_abandoned(folder)


def _is_abandoned(path: Path) -> bool:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return lock_if_any(handle)
    finally:
        os.close(handle)


def _new_name(folder: Path) -> Path:
    return folder / f"{PREFIX}{os.urandom(12).hex()}{SUFFIX}"


@contextmanager
def _held(handle: int) -> Iterator[None]:
    try:
        lock_if_any(handle)
        yield
    finally:
        os.close(handle)

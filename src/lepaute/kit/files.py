"""Files written whole: under a temporary name, on the disk, then renamed; streams are written through instead.

Whoever makes a temporary holds a lock on it, and removes it at the end. A process that is killed removes nothing: what
it left is removed by the next one that makes a temporary in the same folder, since nobody holds its lock any more.
"""

import contextlib
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from lepaute.errors import EnvironmentProblem, InputError, LepauteError

MAX_LINKS = 40
#: What goes wrong while content is written because of the place, and not of the writer.
_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
#: Around the random part of the name of a temporary.
PREFIX, SUFFIX = ".lepaute-", ".tmp"
#: A moment passes between the making of a temporary and its lock.
_YOUNG_S = 60.0


def is_file(path: str | Path) -> bool:
    """Whether there is such a file; Path.is_file() raises where its folder may not be read or its name is too long."""
    return os.path.isfile(path)  # noqa: PTH113


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """An empty file to fill, which becomes `path` at the end of the block, or leaves nothing where that raises.

    The temporary file stands in the folder of `path` under a name that nobody can foresee, with the permissions that
    open() would give (those of the file it replaces, where there is one). Where `path` is a link, the file it points to
    is replaced. A device, a pipe or an open descriptor (/dev/null, /dev/stdout, a FIFO) is written through.
    Raises InputError if it cannot be written; BrokenPipeError if nobody reads the pipe any more.
    """
    path = Path(path)
    target = check_output(path)
    folder = target.parent
    if stream := is_stream(target):
        import tempfile  # with what it imports it costs more than all the rest of a short command

        folder = Path(tempfile.gettempdir())
    with contextlib.ExitStack() as made:
        with _explained(path):
            temporary = made.enter_context(scratch_file(folder))
        with _explained(path, _OF_THE_DISK):
            yield temporary
        with _explained(path):
            if stream:
                _copy(temporary, target)
            else:
                with contextlib.suppress(FileNotFoundError):
                    temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                sync(temporary)
                temporary.replace(target)
                with contextlib.suppress(OSError):  # some file systems cannot
                    sync(target.parent)


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Writes a file whole or not at all, text as UTF-8; raises as `whole_file`."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def check_output(path: Path, option: str = "") -> Path:
    """The file that writing to `path` means, with links followed; raises InputError, one line, where none can be.

    option: what the path was given with, for messages: "--output"; empty for a path that speaks for itself
    """
    name = f"{option} {path}".lstrip()
    try:
        target = _target_of(path)
        mode = _mode(target)
    except LepauteError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a name with a null character
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"{name!r}: cannot be written ({reason}); choose another name") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"{name}: is a folder; give a file name")
    if mode is not None and (stat.S_ISSOCK(mode) or not os.access(target, os.W_OK)):
        raise InputError(f"{name}: cannot be written; choose another name")
    folder = path.parent if target.name == path.name else target.parent
    if not folder.exists():
        raise InputError(f"{name}: there is no folder {folder}; create it first")
    if not folder.is_dir():
        raise InputError(f"{name}: {folder} is not a folder; choose another one")
    if not is_stream(target) and not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{name}: the folder {folder} is not writable; choose another one")
    return target


def is_stream(target: Path) -> bool:
    """Whether what stands there (of `check_output`) is to be written through and not replaced."""
    mode = _mode(target)
    return mode is not None and (target.is_relative_to("/proc") or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)))


def _mode(path: Path) -> int | None:
    """The type and permissions of what stands there; None if nothing does."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _target_of(path: Path) -> Path:
    """Follows links, except those of /proc to open descriptors; raises OSError for a circle of links."""
    for _ in range(MAX_LINKS):
        path = Path(os.path.realpath(path.parent)) / path.name
        if path.is_relative_to("/proc") or not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def sync(path: Path) -> None:
    """Waits until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy(temporary: Path, target: Path) -> None:
    import shutil

    sys.stdout.flush()
    # A descriptor of ours is duplicated: opened anew, a file it was redirected to would be written from its beginning.
    ours = target.parent == Path(f"/proc/{os.getpid()}/fd")
    handle = os.dup(int(target.name)) if ours else os.open(target, os.O_WRONLY)
    with temporary.open("rb") as content, os.fdopen(handle, "wb") as stream:
        shutil.copyfileobj(content, stream)


@contextmanager
def _explained(path: Path, errnos: frozenset[int] | None = None) -> Iterator[None]:
    """Turns an OSError (of these numbers) into one line about `path`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        if errnos is not None and problem.errno not in errnos:
            raise
        raise InputError(not_written(path, problem)) from None


def not_written(path: object, problem: OSError, remedy: str = "choose another folder") -> str:
    """The line about a file or folder that cannot be written: a full disk has its own remedy besides."""
    room = "make room on its disk, or " if problem.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"{path}: cannot be written ({problem.strerror or problem}); {room}{remedy}"


@contextmanager
def scratch_file(folder: Path) -> Iterator[Path]:
    """An empty file, under a name that nobody can foresee, with the permissions that open() would give.

    Removed at the end of the block, unless it has another name by then. Raises OSError if it cannot be made.
    """
    path = _new_name(folder)
    # Not of tempfile: its files have mode 0600, and what open() would give follows from the umask and the folder.
    with _held(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), path):
        yield path


@contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """An empty folder likewise, removed with all that is in it."""
    path = _new_name(folder)
    path.mkdir()
    with _held(os.open(path, os.O_RDONLY | os.O_DIRECTORY), path):
        yield path


def remove_abandoned(folder: Path, *, young_s: float = _YOUNG_S) -> None:
    """Removes what processes that were killed left in a folder; nothing that was made less than young_s ago.

    Where the file system has no locks, nothing is removed.
    """
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime < young_s:
                continue
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                abandoned = lock_if_any(handle)
            finally:
                os.close(handle)
            if abandoned:
                _remove(path)


#: A folder may have many files, and a process may write many into it: it is tidied once.
_tidy_once = cache(remove_abandoned)


def _new_name(folder: Path) -> Path:
    _tidy_once(folder)
    return folder / f"{PREFIX}{os.urandom(12).hex()}{SUFFIX}"


@contextmanager
def _held(handle: int, path: Path) -> Iterator[None]:
    try:
        lock_if_any(handle)
        yield
    finally:
        with contextlib.suppress(OSError):
            _remove(path)
        os.close(handle)


def _remove(path: Path) -> None:
    if stat.S_ISDIR(path.lstat().st_mode):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def hold_lock(file: int | IO[str], place: object, remedy: str, *, wait: bool = False) -> bool:
    """Takes the lock of a file, which goes when the file is closed; False if another process has it.

    place : what messages call the file or its folder;  remedy: what to do where it can have no lock
    wait  : until nobody has it
    Raises EnvironmentProblem if its file system has no locks: that is not the same as one that is held.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as problem:
        raise EnvironmentProblem(
            f"{place}: its file system has no locks ({problem.strerror}), which keep others out; {remedy}"
        ) from None
    return True


def lock_if_any(file: int | IO[str], *, wait: bool = False) -> bool:
    """As hold_lock, for what is done without a lock where the file system has none: False there too."""
    with contextlib.suppress(EnvironmentProblem):
        return hold_lock(file, "", "", wait=wait)
    return False

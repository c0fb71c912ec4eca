"""Folders for temporary files, checked before work depends on them, and names that every program takes."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from lepaute.errors import EnvironmentProblem

#: A compiler and a launcher put some files there; less is a full disk.
MIN_FREE_BYTES = 1 << 20
#: Where a name is needed that programs do not cut into pieces.
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
_PLAIN = re.compile(r"[\w/.,+@%~-]+", re.ASCII)


@contextmanager
def temporary_folder(prefix: str, *, plain: bool = False) -> Iterator[Path]:
    """A new folder below $TMPDIR (else /tmp), which goes with all that is in it at the end of the block.

    plain: its name has no blank, colon or quote, and is ASCII, even where that of $TMPDIR is not
    Raises EnvironmentProblem, one line, where none can be made or the disk is full.
    """
    parent = temporary_parent()
    if plain and not is_plain(parent):
        places = (Path(place) for place in _PLACES if os.access(place, os.W_OK | os.X_OK))
        if (place := next((place for place in places if place.is_dir()), None)) is None:
            raise EnvironmentProblem(
                f"{parent}: SimGrid and the dynamic linker need a folder without blanks, colons and quotes; "
                "set TMPDIR to such a folder"
            )
        parent = place
    check_room(parent)
    try:
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=parent)
    except OSError as problem:
        raise EnvironmentProblem(f"{parent}: cannot create a folder there ({problem.strerror}); set TMPDIR") from None
    with made as folder:
        yield Path(folder)


def temporary_parent() -> Path:
    """The folder for temporary files, absolute, as the programs that we start see it too.

    Raises EnvironmentProblem if $TMPDIR names none that can be written: those programs would fail, each in its way.
    """
    given = os.environ.get("TMPDIR")
    if not given:
        return Path(tempfile.gettempdir())
    folder = Path(os.path.abspath(given))  # noqa: PTH100 - links stay as they are
    if not os.path.isdir(folder):  # noqa: PTH112 - a name may be too long to be looked for
        raise EnvironmentProblem(f"TMPDIR is {given}, which does not exist; create it, or unset TMPDIR")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise EnvironmentProblem(f"TMPDIR is {given}, which is not writable; name another folder")
    os.environ["TMPDIR"] = str(folder)  # programs may be started in another folder
    return folder


def check_room(folder: Path, variable: str = "TMPDIR") -> None:
    """Raises EnvironmentProblem if the disk of `folder`, which the variable names, is full."""
    disk = os.statvfs(folder)
    free_bytes = disk.f_bavail * disk.f_frsize
    # Some file systems count neither blocks nor files.
    if (disk.f_blocks and free_bytes < MIN_FREE_BYTES) or (disk.f_files and not disk.f_favail):
        left = f"{free_bytes >> 10} KiB left" if free_bytes < MIN_FREE_BYTES else "no more files can be created"
        raise EnvironmentProblem(f"{folder}: the disk is full ({left}); make room, or set {variable} to another folder")


def require_plain(folder: Path, user: str) -> None:
    """Raises EnvironmentProblem if the name of a folder in the cache is not plain, which `user` cannot do with."""
    if not is_plain(folder):
        raise EnvironmentProblem(
            f"{folder}: {user} cannot use a folder with blanks, colons or quotes in its name; "
            "set LEPAUTE_HOME to another"
        )


def is_plain(path: Path) -> bool:
    """Whether the path has no character at which a program would split it, or that it would interpret."""
    return _PLAIN.fullmatch(str(path)) is not None


@contextmanager
def plain_name(file: Path, within: Path | None = None) -> Iterator[Path]:
    """A name of `file` that LD_PRELOAD can hold, which knows no quoting: the file itself, or a link to it.

    within: a folder to put the link into where its own name is plain; else it is a temporary one
    Raises EnvironmentProblem if no folder has such a name.
    """
    if is_plain(file):
        yield file
        return
    kept = within is not None and is_plain(within)
    with nullcontext(within) if kept else temporary_folder("lepaute-", plain=True) as folder:
        link = Path(folder or "", file.name)
        link.symlink_to(file)
        yield link

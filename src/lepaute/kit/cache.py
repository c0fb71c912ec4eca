"""Where what is built on this machine is kept."""

import os
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.temporary import check_room


def cache_folder() -> Path:
    """$LEPAUTE_HOME, else ~/.cache/lepaute; absolute.

    Raises EnvironmentProblem for a name that compilers and records cannot hold, and where there is no home either.
    """
    given = os.environ.get("LEPAUTE_HOME")
    if given and not given.isprintable():
        raise EnvironmentProblem(f"LEPAUTE_HOME is {given!r}, which is not printable UTF-8; name another folder")
    try:
        folder = Path(given).expanduser() if given else Path.home() / ".cache" / "lepaute"
    except RuntimeError:
        raise EnvironmentProblem("no home folder to keep builds in; set LEPAUTE_HOME to a folder") from None
    return folder.absolute()


def make_cache(folder: Path) -> None:
    """Makes the cache, or a folder of it, where it is not there.

    Raises EnvironmentProblem, with LEPAUTE_HOME as the remedy, where it cannot be made or written or its disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise EnvironmentProblem(
            f"{folder}: cannot be created ({problem.strerror}); set LEPAUTE_HOME to another folder"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            f"{folder}: not writable, and what is built is kept there; set LEPAUTE_HOME to another folder"
        )
    check_room(folder, "LEPAUTE_HOME")

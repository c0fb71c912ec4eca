"""Where what is built on this machine is kept."""

import os
from pathlib import Path

from lepaute.errors import EnvironmentProblem


def cache_folder() -> Path:
    """$LEPAUTE_HOME, else ~/.cache/lepaute; absolute.

    Raises EnvironmentProblem for a name that compilers and records cannot hold, and where there is no home either.
    """
    given = os.environ.get("LEPAUTE_HOME")
    if given and not given.isprintable():
        raise EnvironmentProblem(f"LEPAUTE_HOME is {given!r}: it is no printable text in UTF-8; name another folder")
    try:
        folder = Path(given).expanduser() if given else Path.home() / ".cache" / "lepaute"
    except RuntimeError:
        raise EnvironmentProblem("there is no home folder to keep builds in; set LEPAUTE_HOME to a folder") from None
    return folder.absolute()

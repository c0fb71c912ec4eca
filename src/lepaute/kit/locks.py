"""A lock on an open file, which ends with the process that holds it."""

import contextlib
import fcntl
from typing import IO

from lepaute.errors import EnvironmentProblem


def hold_lock(file: int | IO[str], place: object, remedy: str, *, wait: bool = False) -> bool:
    """Takes the lock of a file, which goes when the file is closed; False where another process has it.

    place : what messages call the file or its folder;  remedy: what to do where it can have no lock
    wait  : until nobody has it
    Raises EnvironmentProblem where its file system has no locks: that is not the same as one that is held.
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

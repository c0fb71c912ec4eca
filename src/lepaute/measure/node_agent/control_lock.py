"""One experiment at a time controls a node."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import time
from pathlib import Path
from typing import Any

#: A dead holder's watchdog needs milliseconds to give the node its values back.
_PATIENCE_S = 2.0


class NodeLock:
    """A lock on a file that ends with its last holder, whatever way it ends: no stale lock is possible.

    The file says who holds it. It stays when the lock is released: removing it would let two hold it at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.descriptor: int | None = None

    def acquire(self) -> str | None:
        """None when the lock is ours now (or was already); else one sentence that names who has it.

        Raises OSError when the file can be neither made nor opened, nor locked.
        """
        if self.descriptor is not None:
            return None
        descriptor = _open(self.path)
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = _holder(descriptor)
                if _alive(holder.get("pid")) or time.monotonic() > deadline_s:
                    os.close(descriptor)
                    return _sentence(holder)
                time.sleep(0.02)
            except OSError:  # the file system has no locks
                os.close(descriptor)
                raise
        self.descriptor = descriptor
        _write_holder(descriptor)
        return None

    def release(self) -> None:
        """Lets others have it."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def _open(path: Path) -> int:
    """The file, for writing if it is ours, else for reading, which suffices for a lock.

    In two steps since kernels refuse O_CREAT on another user's file in a folder such as /tmp.
    """
    common = os.O_NOFOLLOW | os.O_CLOEXEC
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
        try:
            return os.open(path, flags | common, 0o644)
        except (FileNotFoundError, FileExistsError, PermissionError):
            continue
    return os.open(path, os.O_RDONLY | common)


def _write_holder(descriptor: int) -> None:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps({"pid": os.getpid(), "user": user, "since": since})
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
    except OSError:
        return  # opened for reading, or a full disk: the lock holds all the same, without a name


def _holder(descriptor: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
    except (ValueError, OSError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sentence(holder: dict[str, Any]) -> str:
    if not holder:
        return "another experiment controls this node (it did not leave its name)"
    return (
        f"another experiment controls this node: process {holder.get('pid')} of user {holder.get('user')}, "
        f"since {holder.get('since')}"
    )

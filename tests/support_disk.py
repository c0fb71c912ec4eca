"""A full disk, where this user may mount one."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "1m") -> Iterator[None]:
    """The folder on a file system of its own of that size; skips where this user cannot mount one."""
    folder.mkdir(exist_ok=True)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(argv, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk can be mounted by root alone, where it is allowed to")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)

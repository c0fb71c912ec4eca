"""What root may do with files, given up: for tests of what is refused."""

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def obey_permissions() -> None:
    """Lets this thread, and processes that it forks, do no more with files than their owner may, also as root."""
    if os.geteuid() != 0:
        return
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capget(header, data)
    for at in (0, 1):  # effective and permitted: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
        data[at] &= ~0b110
    libc.capset(header, data)


def obeying_permissions(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a test, not its fixtures, in a thread that obeys permissions; what it raises is raised here."""

    @functools.wraps(test)
    def in_a_thread(*arguments: object, **named: object) -> None:
        with ThreadPoolExecutor(1, initializer=obey_permissions) as threads:
            threads.submit(test, *arguments, **named).result()

    return in_a_thread

"""How long the other end of a connection has been silent, while this process ran itself.

A process that was stopped (Ctrl-Z, SIGSTOP, a suspended machine) has heard nothing meanwhile, and what was sent to it
still waits to be read: such time says nothing about the other end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Silence:
    """Seconds since heard() was last called, of which at most a period counts between two calls of seconds().

    period_s: how often seconds() is called, s
    """

    def __init__(self, period_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._period_s, self._clock = period_s, clock
        self._counted_s = 0.0
        self._looked_s = clock()
        self._lock = threading.Lock()

    def heard(self) -> None:
        """The other end has sent something."""
        with self._lock:
            self._counted_s, self._looked_s = 0.0, self._clock()

    def seconds(self) -> float:
        """The silence up to now; call it once a period."""
        with self._lock:
            now_s = self._clock()
            self._counted_s += min(now_s - self._looked_s, self._period_s)
            self._looked_s = now_s
            return self._counted_s

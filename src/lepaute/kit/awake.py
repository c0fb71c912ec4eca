"""Time during which a program could run, for limits: one that is suspended makes no progress."""

import time
from collections.abc import Callable


class AwakeTime:
    """Seconds of the wall clock during which this process, and another one, were not suspended.

    longest_s : that counts between two looks, s: more has passed where this process was suspended itself
    """

    def __init__(self, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest_s, self._clock = longest_s, clock
        self._passed_s = 0.0
        self._looked_s = clock()

    def look(self, *, suspended: bool = False) -> float:
        """The seconds until now; none of those since the last look where the other one is suspended."""
        now_s = self._clock()
        if not suspended:
            self._passed_s += min(now_s - self._looked_s, self._longest_s)
        self._looked_s = now_s
        return self._passed_s

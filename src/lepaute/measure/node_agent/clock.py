"""The node's clocks, read together."""

from __future__ import annotations

import time


def now() -> dict[str, float]:
    """Wall clock (seconds since 1970) and monotonic clock, read next to each other."""
    return {"time_s": time.time(), "monotonic_s": time.monotonic()}

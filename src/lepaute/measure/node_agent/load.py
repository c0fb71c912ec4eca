"""What the node's cores have done since it started, and how much of that was ours."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path


def machine_load() -> dict[str, float]:
    """Counters now: busy and stolen seconds of all cores together, and CPU seconds of this process and its children.

    Children count from the moment they have been waited for.
    """
    busy_s, steal_s = parse_stat(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK"))
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    own_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return {"monotonic_s": time.monotonic(), "busy_s": busy_s, "steal_s": steal_s, "own_s": own_s}


def parse_stat(text: str, ticks_per_s: int) -> tuple[float, float]:
    """(busy, stolen) seconds of all cores since boot, from the first line of /proc/stat.

    Guest time is contained in user time there and must not be counted twice (proc(5)).
    """
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in text.split()[1:9])
    return (user + nice + system + irq + softirq) / ticks_per_s, steal / ticks_per_s

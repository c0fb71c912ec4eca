"""What machine control can be asked for, and what is wrong with a demand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Those that change the node for everybody on it; the rest only concerns the commands that the agent starts.
MACHINE = ("hyper_threading", "turbo", "c_states", "governor", "frequency", "page_placement", "warm_up", "drop_caches")
CLASSES = ("fifo", "rr", "batch", "other")
POLICIES = ("local", "interleave", "bind")


def problems(settings: Mapping[str, Any]) -> dict[str, str]:
    """Name of each control whose demand cannot be understood, and what is wrong with it; empty when all are fine."""
    complaints = {}
    for name, value in settings.items():
        check = _CHECKS.get(name)
        message = f"no such control; there are: {', '.join(_CHECKS)}" if check is None else check(value)
        if message:
            complaints[name] = message
    return complaints


def _number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"{value!r} is neither true nor false"


def _unknown(value: Any, names: tuple[str, ...]) -> str:
    """What is wrong with the keys of a mapping that must be of these names and not empty."""
    if not isinstance(value, Mapping) or not value:
        return f"{value!r} is not a mapping with some of: {', '.join(names)}"
    strange = [str(key) for key in value if key not in names]
    return f"{strange[0]!r} is none of: {', '.join(names)}" if strange else ""


def _c_states(value: Any) -> str:
    if value is False:
        return ""
    message = _unknown(value, ("max",))
    if message:
        return f"{message}; false is also possible: none but the shallowest"
    most = value["max"]
    fine = (_number(most, 0, 99) and most == int(most)) or (isinstance(most, str) and most != "")
    return "" if fine else f"max is {most!r}; it is the number (from 0) or the name of the deepest state allowed"


def _governor(value: Any) -> str:
    fine = isinstance(value, str) and re.fullmatch(r"[a-z_]{1,15}", value)
    return "" if fine else f"{value!r} is not the name of a governor, such as performance"


def _frequency(value: Any) -> str:
    message = _unknown(value, ("min_hz", "max_hz", "fixed_hz"))
    if message:
        return message
    for name, hertz in value.items():
        if not _number(hertz, 1e6, 1e11):
            return f"{name} is {hertz!r}; a frequency is in hertz, from 1e6 to 1e11"
    if "fixed_hz" in value and len(value) > 1:
        return "fixed_hz goes without min_hz and max_hz"
    if value.get("min_hz", 0) > value.get("max_hz", 1e12):
        return f"min_hz ({value['min_hz']:g}) is above max_hz ({value['max_hz']:g})"
    return ""


def _pinning(value: Any) -> str:
    cpus = isinstance(value, (list, tuple)) and value and all(_number(cpu, 0, 1 << 20) for cpu in value)
    whole = cpus and all(cpu == int(cpu) for cpu in value)
    return "" if value == "cores" or whole else f"{value!r} is neither 'cores' nor a list of CPU numbers"


def _scheduling(value: Any) -> str:
    message = _unknown(value, ("class", "priority", "nice"))
    if message:
        return message
    name = value.get("class", "other")
    if name not in CLASSES:
        return f"class is {name!r}; it is one of: {', '.join(CLASSES)}"
    real_time = name in {"fifo", "rr"}
    if real_time and not _number(value.get("priority", 1), 1, 99):
        return f"priority is {value['priority']!r}; of {name} it is from 1 to 99"
    if not real_time and value.get("priority", 0) != 0:
        return f"class {name} has no priority; nice is what it has"
    if not _number(value.get("nice", 0), -20, 19):
        return f"nice is {value['nice']!r}; it is from -20 to 19"
    return ""


def _page_placement(value: Any) -> str:
    message = _unknown(value, ("transparent_hugepage", "numa_balancing", "policy", "nodes", "swappiness"))
    if message:
        return message
    if value.get("transparent_hugepage", "never") not in {"always", "madvise", "never"}:
        return f"transparent_hugepage is {value['transparent_hugepage']!r}; it is always, madvise or never"
    if not isinstance(value.get("numa_balancing", False), bool):
        return f"numa_balancing is {value['numa_balancing']!r}; it is true or false"
    if value.get("policy", "local") not in POLICIES:
        return f"policy is {value['policy']!r}; it is one of: {', '.join(POLICIES)}"
    nodes = value.get("nodes", [0])
    if not isinstance(nodes, (list, tuple)) or not nodes or not all(_number(node, 0, 4095) for node in nodes):
        return f"nodes is {nodes!r}; it is a list of memory node numbers"
    if not _number(value.get("swappiness", 0), 0, 200):
        return f"swappiness is {value['swappiness']!r}; it is from 0 to 200"
    return ""


def _warm_up(value: Any) -> str:
    message = _unknown(value, ("duration_s",))
    if message:
        return message
    fine = _number(value["duration_s"], 0.1, 86400)
    return "" if fine else f"duration_s is {value['duration_s']!r}; it is from 0.1 s to a day"


_CHECKS = {
    "hyper_threading": _flag,
    "turbo": _flag,
    "c_states": _c_states,
    "governor": _governor,
    "frequency": _frequency,
    "pinning": _pinning,
    "scheduling": _scheduling,
    "page_placement": _page_placement,
    "warm_up": _warm_up,
    "drop_caches": _flag,
}

"""All faults of a platform file: those that are found at once, and those that only show when the others are mended.

A rule about several fields is checked once each of these is right by itself. So parts at fault are replaced by harmless
ones, and what is left is checked again. Imported only when a file has been refused.
"""

import copy
from typing import Any

from pydantic import ValidationError

from lepaute.platform.schema import FORMAT, Platform

Path = tuple[str | int, ...]
_MOST_ROUNDS = 50
_HARMLESS: dict[str, Any] = {
    "format": FORMAT,
    "name": "x",
    "network": {
        "node_link": {"bandwidth_Bps": 1e9},
        "loopback": {"bandwidth_Bps": 1e9},
        "remote": {"segments": [{"above_bytes": 0, "protocol": "eager", "latency_s": 0.0, "bandwidth_Bps": 1e9}]},
    },
    "topology": {"kind": "switch"},
    "description": "",
}


def all_errors(first: ValidationError, content: dict[str, Any]) -> list[Any]:
    """The errors of pydantic of all rounds, in the order in which they were found."""
    errors: list[Any] = list(first.errors(include_url=False))
    newest, rest = errors, copy.deepcopy(content)
    for _ in range(_MOST_ROUNDS):
        if not all(_mended(rest, error) for error in newest):
            break
        try:
            Platform.model_validate(rest)
            break
        except ValidationError as error:
            newest = error.errors(include_url=False)
            errors += newest
    return [error for error in errors if not _is_of_a_part(error, errors)]


def _is_of_a_part(error: Any, errors: list[Any]) -> bool:
    """Whether a list is called too short only because one of its elements is at fault."""
    depth = len(error["loc"])
    return error["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == error["loc"] for other in errors
    )


def _mended(content: dict[str, Any], error: Any) -> bool:
    """Whether the part of `content` at fault could be replaced by a harmless one."""
    path: Path = tuple(step for step in error["loc"] if step != "[key]")
    if error["type"] == "extra_forbidden":
        return _without(content, path)
    if not path:
        path = tuple(error.get("ctx", {}).get("at", ()))
    if not path or path[0] == "nodes":
        return False  # what others are checked against
    name = str(path[0])
    kernels = content.get("kernels")
    if name == "kernels":
        if not isinstance(kernels, list):
            content["kernels"] = []
        elif len(path) > 1 and isinstance(path[1], int) and path[1] < len(kernels):
            if isinstance(content.get("population"), dict):
                content["population"] = None  # its terms may be those of the kernel
            kernels[path[1]] = {"kernel": f"replaced{path[1]}", "pieces": [{"mean": {"1": 0.0}}]}
        return True
    content[name] = copy.deepcopy(_HARMLESS.get(name))
    return True


def _without(content: Any, path: Path) -> bool:
    """Removes the key that `path` leads to; whether it was there."""
    *before, last = path
    for step in before:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return False
    if not isinstance(content, dict) or last not in content:
        return False
    del content[last]
    return True

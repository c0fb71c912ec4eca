"""What is wrong with a platform file, a line for each fault: file, line, field, value, what is wanted, what to do.

Faults are those that are found at once, and those that only show when the others are mended: a rule about several
fields is checked once each of these is right by itself. So parts at fault are replaced by harmless ones, and what is
left is checked again. Imported only when a file has been refused, so it may take its time.
"""

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lepaute.errors import PlatformError
from lepaute.kit.documents import Steps, composed, fields_at, guess, line_in, shown, spoken
from lepaute.kit.text import counted
from lepaute.simulate.platform.schema import FORMAT, Platform

if TYPE_CHECKING:
    import yaml

_LONGEST_PROBLEM = 600
#: Most faults of one file; more are one slip, made in many lines.
_MAX_FAULTS = 100
_OVERHEADS = ("send", "isend", "receive")
_MAX_ROUNDS = 50
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


def described(error: ValidationError, content: object, text: str | None, origin: str) -> PlatformError:
    """The error of a refused platform: one line on its first fault and on how many more there are, and a line on each.

    content : what was validated;  text : the YAML it was read from, None if there is none
    """
    if not isinstance(content, dict):
        actual = {"NoneType": "empty", "str": "text"}.get(name := type(content).__name__, f"a {name}")
        return PlatformError(
            f"{origin}: is {actual}; a platform is a mapping, as 'lepaute platform show dahu --yaml' prints one"
        )
    # a misspelt field is both unknown and missing: the unknown one tells more
    errors = sorted(_all_errors(error, content), key=lambda fault: fault["type"] != "unexpected_keyword_argument")
    root = None if text is None else composed(text)
    lines = list(dict.fromkeys(_fault_line(each, root, origin) for each in errors[:_MAX_FAULTS]))
    others = len(errors) - len(errors[:_MAX_FAULTS]) + len(lines) - 1
    more = "" if not others else f" ({counted(others, 'more fault')}: lepaute platform check lists them)"
    return PlatformError(f"{lines[0]}{more if text is not None else ''}", faults=lines)


def _fault_line(error: ErrorDetails, root: "yaml.Node | None", origin: str) -> str:
    path = _path(error)
    line = None if root is None else line_in(path, root)
    where = origin if line is None else f"{origin}:{line}"
    problem = f"{spoken(path)} {_problem(error, path)}"
    if len(problem) > _LONGEST_PROBLEM:  # it quotes something of the file
        problem = f"{problem[: _LONGEST_PROBLEM // 2]} ... {problem[-_LONGEST_PROBLEM // 2 :]}"
    return f"{where}: {problem}"


def unknown_field(keys: Sequence[str | int], inside: object) -> str:
    """One line on a field that does not exist; `inside` is what holds (or should hold) the last of `keys`."""
    *_, last = keys
    known = [str(key) for key in inside] if isinstance(inside, dict) else []
    if isinstance(inside, list):
        known = [f"[{position}]" for position in range(len(inside))]
    alternatives = f"; it has {', '.join(known)}" if known else ""
    return f"the platform has no field {spoken(tuple(keys))}{guess(str(last), known)}{alternatives}"


def _path(detail: ErrorDetails) -> Steps:
    # pydantic marks a fault of a key by a last step "[key]"
    return tuple(step for step in detail["loc"] if step != "[key]") + tuple(detail.get("ctx", {}).get("at", ()))


def _problem(detail: ErrorDetails, path: Steps) -> str:
    """Rest of the message after the field's path."""
    kind, given = detail["type"], shown(detail["input"])
    field = str(next((step for step in reversed(path) if isinstance(step, str)), ""))
    if field == "format" and kind == "literal_error":
        return f"is {given}; this version of Lepaute reads {FORMAT}. Correct it, or use a version that supports it."
    sayings: dict[str, Callable[[], str]] = {
        "fault": lambda: detail["msg"],
        "dataclass_type": lambda: f"is {given}; a mapping of fields is expected. Correct the value.",
        "missing": lambda: "is missing. Add it.",
        "unexpected_keyword_argument": lambda: (
            f"is not a field of the format{guess(str(path[-1]), fields_at(Platform, path[:-1]))}. Remove or rename it."
        ),
        "literal_error": lambda: f"is {given}; it must be {detail['ctx']['expected']}. Correct the value.",
        "greater_than_equal": lambda: (
            f"is {given}; {_noun(field)} must be >= {detail['ctx']['ge']:g}. Correct the value."
        ),
        "less_than_equal": lambda: f"is {given}; {_noun(field)} must be <= {detail['ctx']['le']}. Correct the value.",
        "greater_than": lambda: f"is {given}; {_noun(field)} must be > {detail['ctx']['gt']:g}. Correct the value.",
        "string_type": lambda: f"is {given}; a string is expected. Put it in quotes.",
    }
    if kind in sayings:
        return sayings[kind]()
    if kind.startswith(("float_", "int_", "finite_")):
        unit = _unit(field, path)
        return f"is {given}; the field must be a plain finite number{unit}. {_number_remedy(detail['input'], unit)}"
    return f"is {given}; {detail['msg'][:1].lower()}{detail['msg'][1:]}. Correct the value."


def _by_ending(field: str, words: dict[str, str], otherwise: str) -> str:
    return next((word for ending, word in words.items() if field.endswith(ending)), otherwise)


def _noun(field: str) -> str:
    if field in _OVERHEADS:
        return "an overhead"
    nouns = {
        "latency_s": "a latency",
        "bandwidth_Bps": "a bandwidth",
        "_relative_sd": "a standard deviation",
        "_s": "a duration",
        "_bytes": "a size",
        "_W": "a power",
    }
    return _by_ending(field, nouns, "it")


def _unit(field: str, path: Steps) -> str:
    if field in _OVERHEADS:
        return " in seconds" if path[-1] == 0 else " in seconds per byte"
    if field in ("mean", "sd", "rows", "matrix") or path[-2:-1] in (("mean",), ("sd",)):
        return " in seconds per unit of the term"
    units = {
        "_Bps": " in bytes per second",
        "_relative_sd": " (a fraction)",
        "_s": " in seconds",
        "_bytes": " in bytes",
        "_W": " in watts",
        "per_core": " in floating-point operations per second",
    }
    return _by_ending(field, units, "")


def _number_remedy(value: object, unit: str) -> str:
    if not isinstance(value, str) or not any(letter.isdigit() for letter in value):
        return "Correct the value."
    example = {" in bytes per second": "1.25e+10", " in bytes": "8589934592", " in watts": "350"}.get(unit, "1.2e-06")
    return f"Convert it and write the number without a unit, as in {example}."


def _all_errors(first: ValidationError, content: dict[str, Any]) -> list[Any]:
    """The errors of pydantic of all rounds, in the order in which they were found."""
    errors: list[Any] = list(first.errors(include_url=False))
    newest, rest = errors, copy.deepcopy(content)
    for _ in range(_MAX_ROUNDS):
        if not all(_mended(rest, error) for error in newest):
            break
        try:
            Platform.model_validate(rest)
            break
        except ValidationError as error:
            newest = error.errors(include_url=False)
            errors += newest

    def only_of_a_part(error: Any) -> bool:
        """Whether a list is called too short only because one of its elements is at fault."""
        depth = len(error["loc"])
        inside = (len(other["loc"]) > depth and other["loc"][:depth] == error["loc"] for other in errors)
        return error["type"] == "too_short" and any(inside)

    return [error for error in errors if not only_of_a_part(error)]


def _mended(content: dict[str, Any], error: Any) -> bool:
    """Whether the part of `content` at fault could be replaced by a harmless one."""
    path: Steps = tuple(step for step in error["loc"] if step != "[key]")
    if error["type"] == "unexpected_keyword_argument":
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


def _without(content: Any, path: Steps) -> bool:
    """Removes the key that `path` leads to; whether it was there."""
    *before, last = path
    with suppress(KeyError, IndexError, TypeError):
        for step in before:
            content = content[step]
        if isinstance(content, dict):
            del content[last]
            return True
    return False

"""JSON of untrusted archives: parsed within bounds; values of another type than expected count as missing."""

import json
import math
from typing import Any

from lepaute.errors import ArchiveError

#: Outputs of commands are long; each is cut at a megabyte where it is recorded.
MOST_JSON_BYTES = 256 << 20
#: Brackets and commas: each can cost a Python object of some 70 bytes from one or two bytes of text.
MOST_JSON_MARKS = 4_000_000


def bounded_json(data: bytes, name: str) -> Any:
    """The value of a JSON text; raises ArchiveError where it is none, or would take memory out of proportion.

    name: of the member, for the message
    """
    if len(data) > MOST_JSON_BYTES or sum(data.count(mark) for mark in (b"[", b"{", b",")) > MOST_JSON_MARKS:
        raise ArchiveError(f"member {name} is too large a document to be read here; `lepaute archive extract` has it")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):  # bytes that are no UTF-8, numbers of many digits: ValueErrors, too
        raise ArchiveError(f"member {name} is not JSON; refuse such an archive") from None


def mapping(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """The value where it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None

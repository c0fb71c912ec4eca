"""JSON of untrusted archives: read within bounds; values of another type than expected count as missing."""

import math
from typing import Any

from lepaute.errors import ArchiveError, InputError
from lepaute.kit.documents import read_json

#: Outputs of commands are long; each is cut at a megabyte where it is recorded.
MOST_JSON_BYTES = 256 << 20


def bounded_json(data: bytes, name: str) -> Any:
    """The value of a JSON text; raises ArchiveError where it is none, or would take memory out of proportion.

    name: of the member, for the message
    """
    try:
        return read_json(data, f"member {name}", most_bytes=MOST_JSON_BYTES)
    except InputError as error:
        problem = str(error).rpartition(";")[0]
        raise ArchiveError(
            f"{problem}; refuse such an archive, or look at what `lepaute archive extract` has"
        ) from None


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

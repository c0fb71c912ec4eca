"""JSON of untrusted archives, read within bounds: values of another type than expected count as missing. The manifest:
size and SHA-256 of every member, and the rules for their names.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lepaute.errors import ArchiveError, InputError, LepauteError
from lepaute.kit.documents import read_json

#: Outputs of commands are long; each is cut at a megabyte where it is recorded.
MAX_JSON_BYTES = 256 << 20

FORMAT = "lepaute-archive/1"
MANIFEST = "manifest.json"
METADATA = "metadata.json"
COMMANDS = "commands.json"
RO_CRATE = "ro-crate-metadata.json"

#: A thousand nodes with fifty files each.
MAX_MEMBERS = 50_000
#: What file systems accept: longer names could be written into an archive and never come out of it.
MAX_NAME_BYTES, MAX_PART_BYTES, MAX_PARTS = 1000, 255, 32


def bounded_json(data: bytes, name: str) -> Any:
    """The value of a JSON text; raises ArchiveError if it is none, or would take memory out of proportion.

    name: of the member, for the message
    """
    try:
        return read_json(data, f"member {name}", most_bytes=MAX_JSON_BYTES)
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
    """The value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """The value where it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True)
class Member:
    """Fingerprint of one member: its SHA-256 as 64 hexadecimal digits, and its size."""

    sha256: str
    size_bytes: int

    @classmethod
    def of(cls, data: bytes) -> "Member":
        return cls(hashlib.sha256(data).hexdigest(), len(data))


def check_name(name: str) -> None:
    """Refuses a member name that is not a plain relative path; raises ArchiveError.

    Not printable are control characters, terminal escapes, and the marks that turn the direction of writing.
    """
    parts = name.split("/")
    plain = name.isprintable() and "\\" not in name and ":" not in name
    if not plain or any(part in ("", ".", "..") for part in parts):
        raise ArchiveError(f"member name {name[:80]!r} is not a plain relative path; refuse such an archive")
    longest = max(len(part.encode()) for part in parts)
    if len(name.encode()) > MAX_NAME_BYTES or longest > MAX_PART_BYTES or len(parts) > MAX_PARTS:
        raise ArchiveError(f"member name {name[:80]!r}... is longer than a path may be; refuse such an archive")


def manifest_bytes(members: Mapping[str, Member]) -> bytes:
    """The manifest's canonical text, names sorted; its SHA-256 is the id of the archive."""
    listed = {name: {"sha256": member.sha256, "size_bytes": member.size_bytes} for name, member in members.items()}
    return json.dumps({"format": FORMAT, "members": listed}, indent=1, sort_keys=True).encode() + b"\n"


def parse_manifest(data: bytes) -> dict[str, Member]:
    """Member names and fingerprints; raises ArchiveError when the text is not a manifest of this format."""
    try:
        document = bounded_json(data, MANIFEST)
        declared = document["format"]
        listed = document["members"].items() if declared == FORMAT else []
        members = {str(name): Member(str(entry["sha256"]), int(entry["size_bytes"])) for name, entry in listed}
    except LepauteError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, ArchiveError):
        raise ArchiveError(f"{MANIFEST} is not a manifest; the archive is damaged, copy it again") from None
    if declared != FORMAT:
        raise ArchiveError(f"format is {str(declared)[:40]!r}; this version of Lepaute reads {FORMAT}")
    return members


def archive_id(manifest: bytes) -> str:
    """The id of an archive: SHA-256 of the bytes of its manifest, in hexadecimal."""
    return hashlib.sha256(manifest).hexdigest()

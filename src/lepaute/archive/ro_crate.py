"""The description that makes an archive an RO-Crate 1.1, in JSON-LD.

Written here and not with the `rocrate` package, which takes a fifth of a second to import and wants the
members as files on a disk; the tests open what we write with that package.
Source: https://www.researchobject.org/ro-crate/specification/1.1/ , sections 4 (root data entity) and 5.
"""

from collections.abc import Mapping
from typing import Any

from lepaute.archive.manifest import RO_CRATE, Member

_PROFILE = "https://w3id.org/ro/crate/1.1"
_NO_LICENSE = "None stated; ask whoever made this archive."
_MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "txt": "text/plain",
    "xml": "application/xml",
    "yaml": "application/yaml",
}


def ro_crate_metadata(metadata: Mapping[str, Any], members: Mapping[str, Member | None]) -> dict[str, Any]:
    """The JSON-LD document that describes an archive.

    metadata: `kind` and `created` (ISO 8601); where known `host`, `lepaute_version`, `license`
    members : every member but this document; None where the fingerprint cannot be known yet (the manifest)
    """
    kind, host = metadata["kind"], metadata.get("host")
    files = [_file(name, member) for name, member in sorted(members.items())]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Lepaute {kind}" + (f" of {host}" if host else ""),
        "description": f"Raw measurements and provenance of a {kind}, written by Lepaute.",
        "datePublished": metadata["created"],
        "license": metadata.get("license", _NO_LICENSE),
        "hasPart": [{"@id": file["@id"]} for file in files],
        "mentions": {"@id": "#lepaute"},
    }
    descriptor = {
        "@id": RO_CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _PROFILE},
        "about": {"@id": "./"},
    }
    program = {
        "@id": "#lepaute",
        "@type": "SoftwareApplication",
        "name": "Lepaute",
        "softwareVersion": str(metadata.get("lepaute_version", "unknown")),
    }
    return {"@context": f"{_PROFILE}/context", "@graph": [descriptor, root, program, *files]}


def _file(name: str, member: Member | None) -> dict[str, Any]:
    entity: dict[str, Any] = {"@id": name, "@type": "File", "name": name.rsplit("/", 1)[-1]}
    media_type = _MEDIA_TYPES.get(name.rsplit(".", 1)[-1])
    if media_type:
        entity["encodingFormat"] = media_type
    if member is not None:
        entity["contentSize"] = str(member.size_bytes)
        entity["sha256"] = member.sha256
    return entity

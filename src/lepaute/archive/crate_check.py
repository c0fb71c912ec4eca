"""Whether the RO-Crate description of an archive says what the archive holds."""

from typing import Any
from urllib.parse import unquote

from lepaute.archive.documents import mapping, sequence
from lepaute.archive.manifest import MANIFEST, RO_CRATE, Member
from lepaute.archive.reader import Archive
from lepaute.archive.ro_crate import PROFILE
from lepaute.errors import ArchiveError
from lepaute.kit.printable import fitted

_REFUSE = "the description was not written with the archive, do not rely on it"


def check_crate(archive: Archive) -> None:
    """Raises ArchiveError where the description is missing, is no RO-Crate 1.1, or differs from the members.

    Checked: the descriptor and the root with what RO-Crate 1.1 asks of them; that each file described is there with
    this size and SHA-256; that each member is described and part of the root.
    """
    members = archive.members()
    if RO_CRATE not in members:
        raise ArchiveError(f"{archive.path}: has no {RO_CRATE}; another program wrote this archive")
    graph = sequence(mapping(archive.json(RO_CRATE)).get("@graph"))
    entities = {entity["@id"]: entity for entity in map(mapping, graph) if isinstance(entity.get("@id"), str)}
    if len(entities) != len(graph):
        raise _problem(archive, "an entity has no @id, or one that another has")
    descriptor, root = mapping(entities.get(RO_CRATE)), mapping(entities.get("./"))
    if PROFILE not in _ids(descriptor.get("conformsTo")) or _ids(descriptor.get("about")) != {"./"}:
        raise _problem(archive, f"the descriptor does not say that ./ conforms to {PROFILE}")
    lacking = [key for key in ("name", "description", "datePublished", "license") if not root.get(key)]
    if "Dataset" not in _types(root) or lacking:
        raise _problem(archive, f"the root lacks {', '.join(lacking) or 'its type Dataset'}")
    described = {unquote(key): entity for key, entity in entities.items() if "File" in _types(entity)}
    for name, entity in described.items():
        _check_file(archive, name, entity, members)
    parts = {unquote(part) for part in _ids(root.get("hasPart"))}
    for name in sorted({*members, MANIFEST} - {RO_CRATE}):
        if name not in described or name not in parts:
            raise _problem(archive, f"member {name} is not described")


def _check_file(archive: Archive, name: str, entity: dict[str, Any], members: dict[str, Member]) -> None:
    if name == MANIFEST:
        return
    member = members.get(name)
    if member is None:
        raise _problem(archive, f"it describes {fitted(name, 80)}, which the archive lacks")
    stated = (entity.get("sha256", member.sha256), entity.get("contentSize", str(member.size_bytes)))
    if stated != (member.sha256, str(member.size_bytes)):
        raise _problem(archive, f"member {name} has another size or SHA-256 than described")


def _problem(archive: Archive, what: str) -> ArchiveError:
    return ArchiveError(f"{archive.path}: {RO_CRATE}: {what}; {_REFUSE}")


def _types(entity: dict[str, Any]) -> set[str]:
    kind = entity.get("@type")
    return {item for item in (kind if isinstance(kind, list) else [kind]) if isinstance(item, str)}


def _ids(value: object) -> set[str]:
    """The @id of a reference, or of each of a list of them."""
    references = value if isinstance(value, list) else [value]
    return {item["@id"] for item in map(mapping, references) if isinstance(item.get("@id"), str)}

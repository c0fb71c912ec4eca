"""The description that makes an archive an RO-Crate 1.1, in JSON-LD, and one of the run of a process.

Written here and not with the `rocrate` package, which takes a fifth of a second to import and wants the
members as files on a disk; the tests open what we write with that package.
Sources: https://www.researchobject.org/ro-crate/specification/1.1/ , sections 4 (root data entity) and 5;
https://w3id.org/ro/wfrun/process/0.5 (Process Run Crate: the action, its instrument, objects and results).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from lepaute.errors import ArchiveError
from lepaute.kit.printable import fitted
from lepaute.kit.text import counted
from lepaute.measure.archive.documents import MANIFEST, RO_CRATE, Member, mapping, sequence
from lepaute.measure.archive.metadata import COMPLETE, Metadata
from lepaute.measure.archive.reader import Archive

PROFILE = "https://w3id.org/ro/crate/1.1"
_PROCESS_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
#: Has the terms that RO-Crate 1.1 lacks, sha256 among them.
_PROCESS_CONTEXT = "https://w3id.org/ro/terms/workflow-run/context"
_MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "py": "text/x-python",
    "txt": "text/plain",
    "xml": "application/xml",
    "yaml": "application/yaml",
}
#: What went in and what came out, by the beginning of the member's name.
_OBJECTS = ("design.csv", "designs/", "experiment/", "environment/", "repositories.json")
_RESULTS = ("raw/", "observations/", "monitoring/", "files/", "commands.json", "log.txt", "blocks.json")


def _crate_id(name: str) -> str:
    """The name of a member as a relative address, as an @id must be."""
    return quote(name, safe="/~!$&'()*+,;=@-._")


def ro_crate_metadata(about: Metadata, members: Mapping[str, Member | None]) -> dict[str, Any]:
    """The JSON-LD document that describes an archive.

    about  : with `kind` and `created` (ISO 8601)
    members: every member but this document; None if the fingerprint cannot be known yet (the manifest)
    """
    script: str | None = f"experiment/{about.script.rpartition('/')[2]}"
    if script not in members:
        script = next(
            (path for path in sorted(members) if path.startswith("experiment/") and path.endswith(".py")), None
        )
    title = " ".join(filter(None, ("Lepaute", about.kind, about.name)))
    if about.host or about.nodes:
        title += f" of {about.host}" if about.host else f" on {counted(len(about.nodes), 'node')}"
    files = [_file(name, member, is_script=name == script) for name, member in sorted(members.items())]
    action = _action(about, members, script)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": title,
        "description": f"Raw measurements and provenance of a {about.kind}, written by Lepaute.",
        "datePublished": about.created,
        "license": {"@id": "#license"},
        "conformsTo": {"@id": _PROCESS_PROFILE},
        "hasPart": [{"@id": file["@id"]} for file in files],
        "mentions": {"@id": action["@id"]},
    }
    descriptor = {"@id": RO_CRATE, "@type": "CreativeWork", "conformsTo": {"@id": PROFILE}, "about": {"@id": "./"}}
    profile = {"@id": _PROCESS_PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    license_ = {
        "@id": "#license",
        "@type": "CreativeWork",
        "name": about.license or "No licence stated",
        "description": f"Under {about.license}." if about.license else "None stated; ask whoever made this archive.",
    }
    program = {
        "@id": "#lepaute",
        "@type": "SoftwareApplication",
        "name": "Lepaute",
        "description": "Measures computers, fits models, and predicts how long applications will run.",
        "softwareVersion": about.lepaute_version or "unknown",
    }
    graph = [descriptor, root, profile, license_, program, action]
    if about.author:
        root["author"] = action["agent"] = {"@id": "#author"}
        graph.append({"@id": "#author", "@type": "Person", "name": about.author})
    return {"@context": [f"{PROFILE}/context", _PROCESS_CONTEXT], "@graph": [*graph, *files]}


def _action(about: Metadata, members: Mapping[str, Member | None], script: str | None) -> dict[str, Any]:
    """Action that was done: with which programs, from what, to what, when, and whether it went well."""
    failed = about.outcome != COMPLETE
    start, end = _times(about)
    programs = ["#lepaute", *([_crate_id(script)] if script else [])]
    action: dict[str, Any] = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run of the {about.kind} {about.name}".rstrip(),
        "description": "Set up the nodes, measured what the design asks for, and collected what was seen.",
        "instrument": [{"@id": program} for program in programs],
        "object": [
            {"@id": _crate_id(name)} for name in sorted(members) if name.startswith(_OBJECTS) and name != script
        ],
        "result": [{"@id": _crate_id(name)} for name in sorted(members) if name.startswith(_RESULTS)],
        "startTime": start,
        "endTime": end,
        "actionStatus": f"http://schema.org/{'Failed' if failed else 'Completed'}ActionStatus",
    }
    if failed:
        cause, phase = about.cause or "interrupted", about.failure.phase
        action["error"] = f"{phase}: {cause}" if phase else cause
    return action


def _times(about: Metadata) -> tuple[str, str]:
    """When the first phase began and the last one ended; where none is known, when the archive was created."""
    starts = [phase.start for phase in about.phases if phase.start]
    if not starts:
        return about.created, about.created
    last = max(about.phases, key=lambda phase: phase.start)
    try:
        end = datetime.fromisoformat(last.start) + timedelta(seconds=last.duration_s or 0)
    except (ValueError, OverflowError):
        return min(starts), about.created
    return min(starts), end.isoformat(timespec="seconds")


def _file(name: str, member: Member | None, *, is_script: bool) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@id": _crate_id(name),
        "@type": ["File", "SoftwareSourceCode"] if is_script else "File",
        "name": name.rsplit("/", 1)[-1],
    }
    media_type = _MEDIA_TYPES.get(name.rsplit(".", 1)[-1])
    if media_type:
        entity["encodingFormat"] = media_type
    if member is not None:
        entity["contentSize"] = str(member.size_bytes)
        entity["sha256"] = member.sha256
    return entity


def check_crate(archive: Archive) -> None:
    """Raises ArchiveError if the description is missing, is no RO-Crate 1.1, or differs from the members.

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
        if name != MANIFEST:
            if (member := members.get(name)) is None:
                raise _problem(archive, f"it describes {fitted(name, 80)}, which the archive lacks")
            stated = (entity.get("sha256", member.sha256), entity.get("contentSize", str(member.size_bytes)))
            if stated != (member.sha256, str(member.size_bytes)):
                raise _problem(archive, f"member {name} has another size or SHA-256 than described")
    parts = {unquote(part) for part in _ids(root.get("hasPart"))}
    for name in sorted({*members, MANIFEST} - {RO_CRATE}):
        if name not in described or name not in parts:
            raise _problem(archive, f"member {name} is not described")


def _problem(archive: Archive, what: str) -> ArchiveError:
    remedy = "the description was not written with the archive, do not rely on it"
    return ArchiveError(f"{archive.path}: {RO_CRATE}: {what}; {remedy}")


def _types(entity: dict[str, Any]) -> set[str]:
    kind = entity.get("@type")
    return {item for item in (kind if isinstance(kind, list) else [kind]) if isinstance(item, str)}


def _ids(value: object) -> set[str]:
    """The @id of a reference, or of each of a list of them."""
    references = value if isinstance(value, list) else [value]
    return {item["@id"] for item in map(mapping, references) if isinstance(item.get("@id"), str)}

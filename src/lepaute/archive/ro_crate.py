"""The description that makes an archive an RO-Crate 1.1, in JSON-LD, and one of the run of a process.

Written here and not with the `rocrate` package, which takes a fifth of a second to import and wants the
members as files on a disk; the tests open what we write with that package.
Sources: https://www.researchobject.org/ro-crate/specification/1.1/ , sections 4 (root data entity) and 5;
https://w3id.org/ro/wfrun/process/0.5 (Process Run Crate: the action, its instrument, objects and results).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from lepaute.archive.documents import mapping, number, sequence, text
from lepaute.archive.manifest import RO_CRATE, Member

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


def crate_id(name: str) -> str:
    """The name of a member as a relative address, as an @id must be."""
    return quote(name, safe="/~!$&'()*+,;=@-._")


def ro_crate_metadata(metadata: Mapping[str, Any], members: Mapping[str, Member | None]) -> dict[str, Any]:
    """The JSON-LD document that describes an archive.

    metadata: `kind` and `created` (ISO 8601); where known `name`, `host`, `nodes`, `script`, `lepaute_version`,
              `license`, `author`, `phases`, `status`, `failure`
    members : every member but this document; None where the fingerprint cannot be known yet (the manifest)
    """
    script = _script(metadata, members)
    files = [_file(name, member, is_script=name == script) for name, member in sorted(members.items())]
    action = _action(metadata, members, script)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": _title(metadata),
        "description": f"Raw measurements and provenance of a {metadata['kind']}, written by Lepaute.",
        "datePublished": metadata["created"],
        "license": {"@id": "#license"},
        "conformsTo": {"@id": _PROCESS_PROFILE},
        "hasPart": [{"@id": file["@id"]} for file in files],
        "mentions": {"@id": action["@id"]},
    }
    descriptor = {
        "@id": RO_CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": PROFILE},
        "about": {"@id": "./"},
    }
    context = [f"{PROFILE}/context", _PROCESS_CONTEXT]
    graph = [descriptor, root, _profile(), _license(metadata), _program(metadata), action]
    if author := text(metadata.get("author")):
        root["author"] = action["agent"] = {"@id": "#author"}
        graph.append({"@id": "#author", "@type": "Person", "name": author})
    return {"@context": context, "@graph": [*graph, *files]}


def _title(metadata: Mapping[str, Any]) -> str:
    title = f"Lepaute {metadata['kind']}"
    if name := text(metadata.get("name")):
        title += f" {name}"
    nodes = sequence(metadata.get("nodes"))
    if host := text(metadata.get("host")):
        title += f" of {host}"
    elif nodes:
        title += f" on {len(nodes)} node" + "s" * (len(nodes) > 1)
    return title


def _script(metadata: Mapping[str, Any], members: Mapping[str, Member | None]) -> str | None:
    """The member that is the experiment's program."""
    name = f"experiment/{text(metadata.get('script')).rpartition('/')[2]}"
    if name in members:
        return name
    return next((name for name in sorted(members) if name.startswith("experiment/") and name.endswith(".py")), None)


def _action(metadata: Mapping[str, Any], members: Mapping[str, Member | None], script: str | None) -> dict[str, Any]:
    """What was done: with which programs, from what, to what, when, and whether it went well."""
    failed = metadata.get("status", "partial" if metadata.get("partial") else "complete") != "complete"
    start, end = _times(metadata)
    programs = ["#lepaute", *([crate_id(script)] if script else [])]
    action: dict[str, Any] = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run of the {metadata['kind']} {text(metadata.get('name'))}".rstrip(),
        "description": "Set up the nodes, measured what the design asks for, and collected what was seen.",
        "instrument": [{"@id": program} for program in programs],
        "object": [{"@id": crate_id(name)} for name in sorted(members) if name.startswith(_OBJECTS) and name != script],
        "result": [{"@id": crate_id(name)} for name in sorted(members) if name.startswith(_RESULTS)],
        "startTime": start,
        "endTime": end,
        "actionStatus": f"http://schema.org/{'Failed' if failed else 'Completed'}ActionStatus",
    }
    if failed:
        failure = mapping(metadata.get("failure"))
        message = text(failure.get("message")) or text(metadata.get("partial_cause")) or "interrupted"
        phase = text(failure.get("phase"))
        action["error"] = f"{phase}: {message}" if phase else message
    return action


def _times(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """When the first phase began and the last one ended; where none is known, when the archive was created."""
    created = text(metadata.get("created"))
    phases = [mapping(phase) for phase in sequence(metadata.get("phases"))]
    starts = [text(phase.get("start")) for phase in phases if text(phase.get("start"))]
    if not starts:
        return created, created
    last = max(phases, key=lambda phase: text(phase.get("start")))
    try:
        end = datetime.fromisoformat(text(last.get("start"))) + timedelta(seconds=number(last.get("duration_s")) or 0)
    except (ValueError, OverflowError):
        return min(starts), created
    return min(starts), end.isoformat(timespec="seconds")


def _profile() -> dict[str, Any]:
    return {"@id": _PROCESS_PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}


def _license(metadata: Mapping[str, Any]) -> dict[str, Any]:
    stated = text(metadata.get("license"))
    return {
        "@id": "#license",
        "@type": "CreativeWork",
        "name": stated or "No licence stated",
        "description": f"Under {stated}." if stated else "None stated; ask whoever made this archive.",
    }


def _program(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "@id": "#lepaute",
        "@type": "SoftwareApplication",
        "name": "Lepaute",
        "description": "Measures computers, fits models, and predicts how long applications will run.",
        "softwareVersion": str(metadata.get("lepaute_version", "unknown")),
    }


def _file(name: str, member: Member | None, *, is_script: bool) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@id": crate_id(name),
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

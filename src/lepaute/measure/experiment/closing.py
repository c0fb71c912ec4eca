"""From a workspace to an archive."""

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.archive import ArchiveWriter
from lepaute.measure.experiment.distrust import mark, verdicts
from lepaute.measure.experiment.workspace import DESIGN, Workspace
from lepaute.version import __version__

if TYPE_CHECKING:
    import pandas

#: Folders of the workspace whose files become members of the same name.
_KEPT = ("experiment", "environment", "files", "raw")
#: Journals that become members as lists: what was cloned, set, copied; clocks; the monitor's own cost; rows of the design
#: that were measured; further rounds of rows, and what each level reached.
_LISTS = ("repositories", "controls", "transfers", "clock", "monitor", "done", "rounds", "reached")


def partial_name(archive: Path) -> Path:
    """Where the archive of a run that did not end goes."""
    return archive.with_name(f"{archive.stem}.partial.zip")


def archive_workspace(workspace: Workspace, target: Path) -> None:
    """Writes the archive of all that a workspace holds; the workspace stays as it is.

    Raises ArchiveError or OSError where it cannot be written; nothing half-written is left then.
    """
    folder = workspace.folder
    monitoring = {
        path.stem: frame_of(workspace.entries(f"monitoring/{path.stem}")) for path in _files(folder / "monitoring")
    }
    reference = frame_of(workspace.entries("reference"))
    found = verdicts(reference, monitoring)
    metadata = metadata_of(workspace)
    metadata["warnings"] = [*metadata["warnings"], *(verdict.message for verdict in found)]
    with ArchiveWriter(target, metadata) as archive:
        for top in _KEPT:
            for path in _files(folder / top):
                archive.add_file(str(path.relative_to(folder)), path)
        for name in (DESIGN, "log.txt"):
            if (folder / name).is_file():
                archive.add_file(name, folder / name)
        for name in _LISTS:
            archive.add_bytes(f"{name}.json", _json(workspace.entries(name)))
        for path in _files(folder / "raw"):
            archive.add_table(f"observations/{path.stem}.parquet", observations(path, found))
        for node, frame in monitoring.items():
            archive.add_table(f"monitoring/{node}.parquet", frame)
        if not reference.empty:
            archive.add_table("reference.parquet", reference)
        archive.add_bytes("verdicts.json", _json([verdict.to_dict() for verdict in found]))
        for entry in workspace.entries("commands"):
            archive.add_command(**entry)


def metadata_of(workspace: Workspace) -> dict[str, Any]:
    """What the archive says of the run as a whole."""
    state, design = workspace.state, workspace.design
    return {
        **state,
        "kind": "experiment",
        "lepaute_version": state.get("lepaute_version", __version__),
        "status": state.get("status", "partial"),
        "partial": state.get("status") != "complete",
        "failure": state.get("failure"),
        "host": ",".join(state["nodes"][:4]),
        "design": None if design is None else {"rows": len(design), "done": len(workspace.done())},
    }


def observations(path: Path, found: Iterable[Any]) -> "pandas.DataFrame":
    """A raw table with the column machine_changed: why a row is not to be trusted, empty where it is."""
    import pandas

    frame = pandas.read_csv(path, comment="#") if path.stat().st_size else pandas.DataFrame()
    if "recorded_s" in frame:
        nodes = frame["node"].astype(str).tolist() if "node" in frame else [None] * len(frame)
        frame["machine_changed"] = mark(frame["recorded_s"].tolist(), nodes, list(found))
    return frame


def frame_of(entries: list[dict[str, Any]]) -> "pandas.DataFrame":
    """Entries of a journal as a table; what is no number or text is kept as JSON."""
    import pandas

    return pandas.DataFrame([{key: _cell(value) for key, value in entry.items()} for entry in entries])


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _json(value: Mapping[str, Any] | list[Any]) -> bytes:
    out = io.StringIO()
    json.dump(value, out, indent=1, sort_keys=True)
    return out.getvalue().encode() + b"\n"

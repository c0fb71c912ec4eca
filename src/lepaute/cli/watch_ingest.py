"""`lepaute watch ingest`: archives and files of other programs into the store."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.watch_store import AsJson, Place, check_text, place_of
from lepaute.kit.files import sync
from lepaute.kit.scratch import scratch_folder
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute.store import Ingested


def ingest(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="archives, or results of other programs", show_default=False)
    ],
    store: Place = None,
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="cluster the nodes belong to")] = "",
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="one of google-benchmark, reframe, hpl and csv; recognised unless given"),
    ] = None,
    node: Annotated[str, typer.Option("--node", help="node name to use instead of the one in the file")] = "",
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="YAML that describes the columns of a CSV file")
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            "--date", metavar="DATE", help="date of HPL results without one: 2026-01-31 or 2026-01-31T07:24, UTC"
        ),
    ] = None,
    file_date: Annotated[
        bool, typer.Option("--file-date", help="take the date of the file's last change for HPL results without one")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Adds measurements from files to the store, which is created if missing.

    All files are added or, if one cannot be read, none; what the store has already stays as it is. Next:
    lepaute watch test.
    """
    check_text(cluster, "--cluster")
    check_text(node, "--node")
    _check_there(files)
    given = {"cluster": cluster, "format": file_format, "node": node, "mapping": mapping}
    dates = {"date_s": None if date is None else _seconds_of(date), "file_date": file_date}
    done = ingested(place_of(store), files, **given, **dates)
    if as_json:
        found = {"added": list(done.added), "known": list(done.known), "values": done.values}
        print(json.dumps(found, indent=2))
        return
    archives = len(done.added) + len(done.known)
    new = counted(done.values, "new factor value") if done.values else "nothing new"
    parts = [f"{new} from {counted(len(files), 'file')}"]
    if archives:
        parts.append(f"{counted(len(done.added), 'archive')} added, {len(done.known)} known already")
    print("; ".join(parts))


def ingested(where: str, files: list[Path], **given: Any) -> "Ingested":
    """As `Watch.ingest`, into a store that is created if missing, and not if that raises."""
    is_there = "://" in where or (Path(where) / "store.json").exists()  # a database takes all files or none
    return _ingested(where, files, given) if is_there else _ingested_first(Path(where), files, given)


def _ingested(where: str | Path, files: list[Path], given: dict[str, Any]) -> "Ingested":
    from lepaute.watch import open as open_watch

    with open_watch(where) as watch:
        return watch.ingest(files, **given)


def _ingested_first(folder: Path, files: list[Path], given: dict[str, Any]) -> "Ingested":
    """The store is made beside its place, so that there is none where a file is refused."""
    from lepaute.errors import InputError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not a store; name another folder")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise InputError(f"there is no folder {parent}; make it first")
    with scratch_folder(parent) as beside:
        new = beside / "store"
        done = _ingested(new, files, given)
        try:
            new.rename(folder)
        except OSError:  # another process has made it meanwhile
            return _ingested(folder, files, given)
        sync(parent)
    return done


def _seconds_of(date: str) -> float:
    """Since the epoch; raises InputError where it is no date."""
    from lepaute.errors import InputError
    from lepaute.watch.foreign.units import ISO, date_reader

    try:
        return date_reader(ISO)(date)
    except InputError as problem:
        raise InputError(f"--date: {problem}") from None


def _check_there(files: list[Path]) -> None:
    """Raises InputError for a file that is none, or not there, before a store is made."""
    from lepaute.errors import InputError

    for file in files:
        if file.is_dir():
            raise InputError(f"{file} is a directory; give the files in it, such as {file / '*.zip'}")
        if not file.is_file():
            raise InputError(f"{file}: there is no such file")

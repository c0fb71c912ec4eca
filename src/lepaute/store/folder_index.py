"""The index of a store in a folder: which files hold its tables."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.files import write_whole
from lepaute.store.migrations import check_version
from lepaute.store.tables import VERSION


@dataclass(frozen=True, slots=True)
class DataFile:
    """place: path within the store's folder."""

    place: str
    rows: int


@dataclass(frozen=True, slots=True)
class Index:
    """number: how many changes there were; change: name of the last; garbage: files that it replaced, to be removed."""

    version: int = VERSION
    number: int = 0
    change: str = ""
    files: Mapping[str, tuple[DataFile, ...]] = field(default_factory=dict)
    garbage: tuple[str, ...] = ()


def read_index(folder: Path) -> Index:
    """The index as it is now; raises InputError where there is none that this version can read."""
    path = folder / "store.json"
    try:
        document = json.loads(path.read_bytes())
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror}); name the folder of a store") from None
    except ValueError:
        raise InputError(f"{path}: is not JSON; the store is damaged, or the folder is something else's") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: is not the index of a store")
    version = check_version(document.get("version"), str(folder))
    try:
        return Index(
            version,
            int(document["number"]),
            str(document["change"]),
            {str(name): tuple(map(_data_file, files)) for name, files in document["files"].items()},
            tuple(map(_place, document["garbage"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(f"{path}: is not the index of a store ({problem}); it is damaged") from None


def write_index(folder: Path, index: Index) -> None:
    write_whole(folder / "store.json", json.dumps(asdict(index), indent=1) + "\n")


def _data_file(document: Any) -> DataFile:
    return DataFile(_place(document["place"]), int(document["rows"]))


def _place(name: Any) -> str:
    """A path that stays within the folder."""
    parts = str(name).split("/")
    if len(parts) != 3 or parts[0] != "data" or ".." in parts or "" in parts:
        raise ValueError(f"{str(name)[:80]!r} is no place of its files")
    return str(name)

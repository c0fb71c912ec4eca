"""The paths that a command will write, checked before its work starts."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.files import check_output, is_stream


def check_outputs(
    options: Mapping[str, Path | Sequence[Path] | None], inputs: Iterable[str | Path | None] = ()
) -> None:
    """Raises InputError, one line, where an output cannot be written, is also read, or is named twice.

    options: paths by the words that messages name them with, such as "--output"; None for an option that is not given
    inputs : files that the command reads; a name that is none (of a shipped platform) does no harm
    """
    read = {_identity(Path(path)) for path in inputs if path is not None}
    written: dict[object, str] = {}
    for option, given in options.items():
        for path in [given] if isinstance(given, Path) else given or ():
            target = check_output(path, option)
            if is_stream(target):
                continue
            identity = _identity(target)
            if identity in read:
                raise InputError(f"{option} {path}: is also an input; choose another name")
            if identity in written:
                raise InputError(f"{option} {path}: {written[identity]} writes it too; choose another name")
            written[identity] = option


def check_archive_output(path: Path, *, force: bool) -> None:
    """As check_outputs for an archive; it is no stream, since it is read again, and replaces none unless `force`.

    Nobody can make its measurements again.
    """
    if is_stream(check_output(path)):
        raise InputError(f"{path}: not a regular file; choose another name for the archive")
    if not force and os.path.lexists(path):
        raise InputError(
            f"{path}: already exists; choose another name, or replace the archive with --force (force=True)"
        )


def check_output_folder(path: Path, option: str) -> None:
    """Raises InputError where `path` is no folder to write into and none can be made of it."""
    existing = next(folder for folder in (path.absolute(), *path.absolute().parents) if os.path.lexists(folder))
    if not existing.is_dir():
        raise InputError(f"{option} {path}: {existing} is not a folder; choose another place")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"{option} {path}: the folder {existing} cannot be written; choose another place")


def _identity(path: Path) -> object:
    """What two names of the same file share."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return path.absolute()
    return status.st_dev, status.st_ino

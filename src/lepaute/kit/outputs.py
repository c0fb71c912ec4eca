"""The paths that a command will write, checked before its work starts."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.extras import need
from lepaute.kit.files import check_output, is_stream

#: Options whose files only an extra of the package can write.
_EXTRA_OF = {
    **dict.fromkeys(("--plot", "--report", "--gantt", "--scaling"), "report"),
    **dict.fromkeys(("--trace", "--perfetto"), "trace"),
}


def check_outputs(
    options: Mapping[str, Path | Sequence[Path] | None], inputs: Iterable[str | Path | None] = (), *, force: bool
) -> None:
    """Raises InputError, one line, where an output cannot be written, is also read, is named twice, or exists.

    Raises MissingExtra where what writes it is not installed.

    options: paths by the words that messages name them with, such as "--output"; None for an option that is not given
    inputs : files that the command reads; a name that is none (of a shipped platform) does no harm
    """
    read = {_identity(Path(path)) for path in inputs if path is not None}
    written: dict[object, str] = {}
    there = []
    for option, given in options.items():
        if given is not None and option in _EXTRA_OF:
            need(_EXTRA_OF[option], option)
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
            if os.path.lexists(path):
                there.append(f"{option} {path}")
    if there and not force:
        raise _exists(there[0], "--force")


def check_archive_output(path: Path, *, force: bool) -> None:
    """As check_outputs for an archive, which is no stream, since it is read again."""
    if is_stream(check_output(path)):
        raise InputError(f"{path}: not a regular file; choose another name for the archive")
    if not force and os.path.lexists(path):
        raise _exists(str(path), "--force (force=True)")


def _exists(name: str, option: str) -> InputError:
    return InputError(f"{name}: already exists; choose another name, or replace it with {option}")


def check_output_folder(path: Path, option: str) -> None:
    """Raises InputError if `path` is no folder to write into and none can be made of it."""
    existing = next(folder for folder in (path.absolute(), *path.absolute().parents) if os.path.lexists(folder))
    if not existing.is_dir():
        raise InputError(f"{option} {path}: {existing} is not a folder; choose another one")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"{option} {path}: the folder {existing} cannot be written; choose another one")


def _identity(path: Path) -> object:
    """What two names of the same file share."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return path.absolute()
    return status.st_dev, status.st_ino

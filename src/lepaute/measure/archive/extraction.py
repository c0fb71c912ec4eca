"""Members of an archive as files of a folder, and nowhere else.

Every step into the folder is taken from an open folder to the next, never through a link; a file appears under its name
only when it is whole and has its hash, and never over another one unless that was asked for.
"""

import contextlib
import difflib
import errno
import os
import secrets
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from lepaute.errors import ArchiveError, InputError
from lepaute.kit.files import not_written
from lepaute.kit.printable import printable
from lepaute.measure.archive.container import CHUNK_BYTES
from lepaute.measure.archive.documents import MANIFEST
from lepaute.measure.archive.reader import Archive

#: Plain files: what an archive holds is data, also where it was a program.
_MODE = 0o644
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: What file systems without hard links say.
_WITHOUT_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def extract(archive: Archive, folder: str | Path, names: Sequence[str] = (), *, force: bool = False) -> list[str]:
    """Writes members into `folder`, which is made where it is missing; returns their names.

    names: of members, or of folders of members; none: all, and the manifest
    force: replaces files that are there; folders and what else is there is never replaced
    Before the first byte is written it is known that no file or link is in the way. Raises InputError if one is, or
    a name is not in the archive; ArchiveError if the file of the archive changes meanwhile.
    """
    chosen = _chosen_members(archive, names)
    _refuse_alike(chosen)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in chosen:
            _refuse_in_the_way(root, folder, name, force=force)
        for name in chosen:
            _write(archive, root, folder, name, force=force)
    finally:
        os.close(root)
    return chosen


def _chosen_members(archive: Archive, names: Sequence[str]) -> list[str]:
    """The members that the names mean, sorted; raises InputError for one that means none."""
    members = [*archive.members(), MANIFEST]
    if not names:
        return members
    chosen: set[str] = set()
    for name in names:
        plain = name.rstrip("/")
        meant = [member for member in members if member == plain or member.startswith(f"{plain}/")]
        if not meant:
            near = difflib.get_close_matches(name, members, n=1, cutoff=0.5) if len(members) < 5000 else []
            guess = f"did you mean {near[0]}? " if near else ""
            raise InputError(
                f"{archive.path}: has no member {printable(name[:80])}; {guess}see `lepaute archive show --members`"
            )
        chosen.update(meant)
    return sorted(chosen)


def _refuse_alike(names: list[str]) -> None:
    """Names that are one on a file system that takes a for A, or é for e with an accent."""
    seen: dict[str, str] = {}
    for name in names:
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            other = seen.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
            if other != path:
                raise ArchiveError(
                    f"members {other} and {path} differ only in what some file systems take for the same; "
                    "extract them one by one, into different folders"
                )


def _refuse_in_the_way(root: int, folder: Path, name: str, *, force: bool) -> None:
    """Raises InputError if a link, or another kind of file, stands on the way to a member or in its place."""
    try:
        with _opened_folder(root, name, make=False) as folder_fd:
            status = os.stat(Path(name).name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise InputError(f"{folder / problem.filename}: is a link or no folder; extract into another folder") from None
    if not force:
        raise InputError(f"{folder / name}: exists already; give --force to replace it, or another folder")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{folder / name}: is a link or no file, and is not replaced; use another folder")


@contextlib.contextmanager
def _opened_folder(root: int, name: str, *, make: bool) -> Iterator[int]:
    """The folder of a member, opened step by step; raises OSError, with the path below the root as its file name."""
    *parents, _ = name.split("/")
    with contextlib.ExitStack() as opened:
        folder_fd = root
        for depth, part in enumerate(parents, start=1):
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=folder_fd)
            try:
                folder_fd = os.open(part, _FOLDER, dir_fd=folder_fd)
            except OSError as problem:
                problem.filename = "/".join(parents[:depth])
                raise
            opened.callback(os.close, folder_fd)
        yield folder_fd


def _write(archive: Archive, root: int, folder: Path, name: str, *, force: bool) -> None:
    with contextlib.ExitStack() as opened:
        pieces = iter([archive.manifest])
        if name != MANIFEST:
            stream = opened.enter_context(archive.open_member(name))
            pieces = iter(lambda: stream.read(CHUNK_BYTES), b"")
        try:
            with _opened_folder(root, name, make=True) as folder_fd:
                _write_file(pieces, folder_fd, Path(name).name, force=force)
        except OSError as problem:
            raise InputError(not_written(folder / name, problem, "use another folder")) from None


def _write_file(source: Iterator[bytes], folder_fd: int, last: str, *, force: bool) -> None:
    """Writes under another name, then gives the right one."""
    temporary = f".lepaute-{secrets.token_hex(8)}"
    handle = os.open(temporary, _NEW_FILE, _MODE, dir_fd=folder_fd)
    try:
        with os.fdopen(handle, "wb") as target:
            target.writelines(source)
        if force:
            os.replace(temporary, last, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        else:
            # Unlike a renaming it is refused where a file has appeared meanwhile, on file systems without links as well
            try:
                os.link(temporary, last, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
            except OSError as problem:
                if problem.errno not in _WITHOUT_LINKS:
                    raise
                os.close(os.open(last, _NEW_FILE, _MODE, dir_fd=folder_fd))
                os.replace(temporary, last, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder_fd)

"""Opens an archive, checks all of it, and reads members; nothing is ever run or unpickled, nothing written."""

import contextlib
import hashlib
import io
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lepaute.archive.container import Entry, read_directory, unpack
from lepaute.archive.documents import bounded_json
from lepaute.archive.manifest import MANIFEST, METADATA, Member, archive_id, parse_manifest
from lepaute.archive.metadata import Metadata
from lepaute.archive.seal import check_seal
from lepaute.errors import ArchiveError
from lepaute.kit.numbers import path_of
from lepaute.kit.printable import printable

if TYPE_CHECKING:
    import pandas

#: A manifest of MOST_MEMBERS members, and metadata with as many nodes and warnings as an experiment may have.
MOST_HEAD_BYTES = 32 << 20


class Archive:
    """A checked archive, read-only.

    Every member is verified against the manifest when the archive is opened, and again when it is read.
    metadata: metadata.json as it stands there; about: the typed view of it
    """

    def __init__(
        self,
        path: Path,
        manifest: bytes,
        members: dict[str, Member],
        entries: dict[str, Entry],
        metadata: dict[str, Any],
    ) -> None:
        """For `open`; a caller has no reason to make one from parts."""
        self.path = path
        self.id = archive_id(manifest)
        self.manifest = manifest
        self.metadata = metadata
        self.about = Metadata.of(metadata)
        self._members = members
        self._entries = entries

    def __repr__(self) -> str:
        kind, members = printable(self.about.kind), len(self._members)
        return f"<Archive {str(self.path)!r}: {kind}, {members} members, id {self.id[:12]}>"

    def _repr_html_(self) -> str:
        from lepaute.kit.notebook import facts_html

        tables = [name for name in self.members() if name.endswith((".parquet", ".csv"))]
        facts = [("kind", self.about.kind), ("id", self.id), ("members", len(self._members))]
        return facts_html(str(self.path), [*facts, ("tables, for .table(name)", ", ".join(tables))])

    @classmethod
    def open(cls, path: str | Path) -> "Archive":
        """The archive in a file; raises ArchiveError with one line when it is damaged, incomplete or something else."""
        path = path_of(path, "the archive")
        if not path.is_file():
            what = "not a regular file" if path.exists() else "there is no such file"
            raise ArchiveError(f"{path}: {what}; give the .zip that a campaign wrote")
        try:
            check_seal(path)
            with path.open("rb") as file:
                archive = _checked(cls, path, file)
        except ArchiveError as problem:
            message = str(problem)
            raise ArchiveError(message if message.startswith(f"{path}: ") else f"{path}: {message}") from None
        except OSError as problem:
            raise ArchiveError(f"{path}: cannot be read ({problem.strerror}); copy the archive again") from None
        return archive

    def members(self) -> dict[str, Member]:
        """Every member but the manifest, by name, in sorted order."""
        return dict(sorted(self._members.items()))

    def read_bytes(self, name: str) -> bytes:
        """The content of a member; raises ArchiveError when there is none or the file has changed since."""
        with self.open_member(name) as stream:
            return stream.read()

    @contextlib.contextmanager
    def open_member(self, name: str) -> Iterator[BinaryIO]:
        """A member as a stream to be read forward, in as little memory as the reader takes at once.

        Raises ArchiveError when there is no such member, and, at the end of the stream at the latest, when the file
        has changed since the archive was opened: what was read until then is not to be trusted.
        """
        member = self._members.get(name)
        if member is None:
            table = f"observations/{name}.parquet"
            near = [table] if table in self._members else get_close_matches(name, self._members, n=1)
            meant = f"; {printable(near[0][:80])} is one" if near else ""
            raise ArchiveError(
                f"{self.path}: has no member {printable(name[:80])}{meant}; `lepaute archive show` lists those it has"
            )
        try:
            with self.path.open("rb") as file:
                yield io.BufferedReader(_Content(file, self._entries[name], member, self.path))
        except OSError as problem:
            raise ArchiveError(f"{self.path}: member {name} cannot be read ({problem}); copy it again") from None

    def json(self, name: str) -> Any:
        """A member that is a JSON text; raises ArchiveError where it is none or out of proportion."""
        try:
            return bounded_json(self.read_bytes(name), name)
        except ArchiveError as problem:
            message = str(problem)
            raise ArchiveError(message if message.startswith(f"{self.path}: ") else f"{self.path}: {message}") from None

    def table(self, name: str) -> "pandas.DataFrame":
        """A member as a data frame: .parquet, or .csv whose provenance lines are left out.

        Raises ArchiveError where it is no table, or one that would take more memory than a table may.
        """
        from lepaute.archive.tables import table_of

        data = self.read_bytes(name)
        try:
            return table_of(name, data)
        except ArchiveError as problem:
            raise ArchiveError(f"{self.path}: {problem}") from None


class _Content(io.RawIOBase):
    """The unpacked bytes of a member; the end is reached only when they are those of the manifest."""

    def __init__(self, file: BinaryIO, entry: Entry, member: Member, path: Path) -> None:
        super().__init__()
        self._pieces = unpack(file, entry)
        self._piece = memoryview(b"")
        self._digest = hashlib.sha256()
        self._member = member
        self._changed = f"{path}: member {entry.name} changed since the archive was opened; open it again"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._piece:
            try:
                piece = next(self._pieces, None)
            except ArchiveError:  # it could be unpacked when the archive was opened
                raise ArchiveError(self._changed) from None
            if piece is None:
                if self._digest.hexdigest() != self._member.sha256:
                    raise ArchiveError(self._changed)
                return 0
            self._digest.update(piece)
            self._piece = memoryview(piece)
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count


def _checked(cls: type[Archive], path: Path, file: BinaryIO) -> Archive:
    entries = read_directory(file)
    manifest = _head(file, entries, MANIFEST)
    members = parse_manifest(manifest)
    _same_names(set(entries) - {MANIFEST}, members)
    for name, member in members.items():
        _verify(file, entries[name], member)
    return cls(path, manifest, members, entries, _metadata(_head(file, entries, METADATA)))


def _head(file: BinaryIO, entries: dict[str, Entry], name: str) -> bytes:
    """A member that is read whole to open an archive."""
    if name not in entries:
        raise ArchiveError(f"has no member {name}: it is incomplete, or another program's zip")
    if entries[name].size_bytes > MOST_HEAD_BYTES:
        raise ArchiveError(f"member {name} has {entries[name].size_bytes} bytes; refuse such an archive")
    return b"".join(unpack(file, entries[name]))


def _same_names(present: set[str], members: dict[str, Member]) -> None:
    """The zip holds the manifest and what it lists, and nothing else."""
    for name in sorted(set(members) - present):
        raise ArchiveError(f"member {printable(name[:80])} is missing; copy the archive again from where it was made")
    for name in sorted(present - set(members)):
        raise ArchiveError(f"member {name} is not in the manifest: something was added; refuse such an archive")


def _verify(file: BinaryIO, entry: Entry, member: Member) -> None:
    """The member unpacks to the size and SHA-256 of the manifest; in pieces, so memory stays small."""
    digest = hashlib.sha256()
    for piece in unpack(file, entry):
        digest.update(piece)
    if (digest.hexdigest(), entry.size_bytes) != (member.sha256, member.size_bytes):
        raise ArchiveError(f"member {entry.name} differs from its SHA-256 in the manifest; copy the archive again")


def _metadata(data: bytes) -> dict[str, Any]:
    try:
        metadata = bounded_json(data, METADATA)
    except ArchiveError:
        metadata = None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("kind"), str):
        raise ArchiveError(f"{METADATA} is not an object with a kind; another program wrote this archive")
    return metadata

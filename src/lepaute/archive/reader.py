"""Opens an archive, checks all of it, and reads members; nothing is ever extracted to a path."""

import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.archive.manifest import MANIFEST, METADATA, Member, archive_id, check_name, parse_manifest
from lepaute.archive.seal import check_seal
from lepaute.errors import ArchiveError

if TYPE_CHECKING:
    import pandas

#: More than this is refused before anything is unpacked: a campaign's archive has megabytes.
MOST_BYTES = 8 * 1024**3
#: Deflate reaches 1032:1 on a run of one byte; measurements reach about 10:1.
MOST_RATIO = 1000
#: Below this size a ratio says nothing: no bomb fits.
RATIO_MATTERS_BYTES = 1 << 20
_CHUNK = 1 << 20
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


class Archive:
    """A checked archive, read-only.

    Every member is verified against the manifest when the archive is opened, and again when it is read.
    """

    def __init__(self, path: Path, identity: str, members: dict[str, Member], metadata: dict[str, Any]) -> None:
        """For `open`; a caller has no reason to make one from parts."""
        self.path = path
        self.id = identity
        self.metadata = metadata
        self._members = members

    @classmethod
    def open(cls, path: str | Path) -> "Archive":
        """The archive in a file; raises ArchiveError with one line when it is damaged, incomplete or none."""
        path = Path(path)
        if not path.is_file():
            raise ArchiveError(f"{path}: there is no such file; give the .zip that a campaign wrote")
        try:
            check_seal(path)
            with zipfile.ZipFile(path) as packed:
                _refuse_hostile(packed, path)
                manifest = _read(packed, MANIFEST)
                members = parse_manifest(manifest)
                _same_names(packed, members)
                for name, member in members.items():
                    _verify(packed, name, member)
                metadata = _metadata(packed)
        except ArchiveError as problem:
            message = str(problem)
            raise ArchiveError(message if message.startswith(f"{path}: ") else f"{path}: {message}") from None
        except _DAMAGE as problem:
            raise ArchiveError(f"{path}: cannot be read ({problem}); copy the archive again") from None
        return cls(path, archive_id(manifest), members, metadata)

    def members(self) -> dict[str, Member]:
        """Every member but the manifest, by name, in sorted order."""
        return dict(sorted(self._members.items()))

    def read_bytes(self, name: str) -> bytes:
        """The content of a member; raises ArchiveError when there is none or the file has changed since."""
        member = self._members.get(name)
        if member is None:
            raise ArchiveError(f"{self.path}: has no member {name}; `lepaute archive show` lists those it has")
        try:
            with zipfile.ZipFile(self.path) as packed:
                data = _read(packed, name)
        except (KeyError, *_DAMAGE) as problem:
            raise ArchiveError(f"{self.path}: member {name} cannot be read ({problem}); copy it again") from None
        if Member.of(data) != member:
            raise ArchiveError(f"{self.path}: member {name} changed since the archive was opened; open it again")
        return data

    def table(self, name: str) -> "pandas.DataFrame":
        """A member as a data frame: .parquet, or .csv whose provenance lines are left out."""
        import pandas

        data = io.BytesIO(self.read_bytes(name))
        try:
            if name.endswith(".parquet"):
                return pandas.read_parquet(data)
            if name.endswith(".csv"):
                return pandas.read_csv(data, comment="#")
        except (ValueError, OSError) as problem:  # pyarrow's and pandas' errors of parsing derive from these
            raise ArchiveError(f"{self.path}: member {name} is not a table ({problem})") from None
        raise ArchiveError(f"{self.path}: member {name} is not a table; only .parquet and .csv are")


def _refuse_hostile(packed: zipfile.ZipFile, path: Path) -> None:
    """Refuses names that lead elsewhere, names given twice, and declared sizes no campaign reaches."""
    seen: set[str] = set()
    total = 0
    for entry in packed.infolist():
        check_name(entry.orig_filename)
        if entry.filename in seen:
            raise ArchiveError(f"member {entry.filename} is there twice; refuse such an archive")
        seen.add(entry.filename)
        total += entry.file_size
        if entry.file_size > max(MOST_RATIO * entry.compress_size, RATIO_MATTERS_BYTES):
            raise ArchiveError(
                f"member {entry.filename} would unpack to {entry.file_size} bytes from {entry.compress_size}; "
                "no measurement compresses so well, refuse such an archive"
            )
        if entry.compress_size > path.stat().st_size:
            raise ArchiveError(f"member {entry.filename} is declared larger than the file; copy the archive again")
    if total > MOST_BYTES:
        raise ArchiveError(f"would unpack to {total} bytes, more than the {MOST_BYTES} that are accepted")


def _read(packed: zipfile.ZipFile, name: str) -> bytes:
    if name not in packed.NameToInfo:
        raise ArchiveError(f"has no member {name}: it is incomplete, or another program's zip")
    return packed.read(name)


def _same_names(packed: zipfile.ZipFile, members: dict[str, Member]) -> None:
    """The zip holds the manifest and what it lists, and nothing else."""
    present = set(packed.namelist()) - {MANIFEST}
    for name in sorted(set(members) - present):
        raise ArchiveError(f"member {name} is missing; copy the archive again from where it was made")
    for name in sorted(present - set(members)):
        raise ArchiveError(f"member {name} is not in the manifest: something was added; refuse such an archive")


def _verify(packed: zipfile.ZipFile, name: str, member: Member) -> None:
    """The member unpacks to the size and SHA-256 of the manifest; in pieces, so memory stays small."""
    digest = hashlib.sha256()
    size = 0
    try:
        with packed.open(name) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except _DAMAGE as problem:
        raise ArchiveError(f"member {name} cannot be unpacked ({problem}); copy the archive again") from None
    if (digest.hexdigest(), size) != (member.sha256, member.size_bytes):
        raise ArchiveError(f"member {name} differs from its SHA-256 in the manifest; copy the archive again")


def _metadata(packed: zipfile.ZipFile) -> dict[str, Any]:
    try:
        metadata = json.loads(_read(packed, METADATA))
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("kind"), str):
        raise ArchiveError(f"{METADATA} is not an object with a kind; another program wrote this archive")
    return metadata

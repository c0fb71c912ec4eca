"""Opens an archive, checks all of it, and reads members; nothing is ever run or unpickled, nothing written.

Tables are read within bounds of memory; no pickle, no registered type, no index comes from the file.
"""

import contextlib
import hashlib
import io
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipInfo

from lepaute.errors import ArchiveError, DesignError, InputError
from lepaute.kit.frames import MAX_COLUMNS, is_text, open_parquet, read_csv, reading_table, refuse_bytes
from lepaute.kit.later import pandas
from lepaute.kit.notebook import facts_html
from lepaute.kit.numbers import of_type, path_of
from lepaute.kit.printable import fitted, printable
from lepaute.measure.archive.container import check_seal, read_directory, unpack
from lepaute.measure.archive.documents import MANIFEST, METADATA, Member, archive_id, bounded_json, parse_manifest
from lepaute.measure.archive.metadata import Metadata

#: A manifest of MAX_MEMBERS members, and metadata with as many nodes and warnings as an experiment may have.
MAX_HEAD_BYTES = 32 << 20
#: What the cells of one table may take in memory.
MAX_TABLE_BYTES = 2 * 1024**3
#: How many lines of a CSV are looked at for their width; a later line that is wider is an error of its own.
_LINES_LOOKED_AT = 100


class Archive:
    """A checked archive, read-only.

    Every member is verified against the manifest when the archive is opened, and again when it is read.
    metadata: metadata.json as it stands there; about: the typed view of it
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Reads and checks all of an open file; a caller uses `open`."""
        self.path = path
        self._entries = read_directory(file)
        self.manifest = self._head(file, MANIFEST)
        self.id = archive_id(self.manifest)
        self._members = parse_manifest(self.manifest)
        present = set(self._entries) - {MANIFEST}
        for name in sorted(set(self._members) - present):
            raise ArchiveError(
                f"member {printable(name[:80])} is missing; copy the archive again from where it was made"
            )
        for name in sorted(present - set(self._members)):
            raise ArchiveError(f"member {name} is not in the manifest: something was added; refuse such an archive")
        for name, member in self._members.items():
            digest = hashlib.sha256()
            for piece in unpack(file, self._entries[name]):  # memory stays small
                digest.update(piece)
            if (digest.hexdigest(), self._entries[name].file_size) != (member.sha256, member.size_bytes):
                raise ArchiveError(f"member {name} differs from its SHA-256 in the manifest; copy the archive again")
        head = self._head(file, METADATA)
        try:
            self.metadata: dict[str, Any] = bounded_json(head, METADATA)
        except ArchiveError:
            self.metadata = {}
        if not isinstance(self.metadata, dict) or not isinstance(self.metadata.get("kind"), str):
            raise ArchiveError(f"{METADATA} is not an object with a kind; another program wrote this archive")
        self.about = Metadata.of(self.metadata)

    def _head(self, file: BinaryIO, name: str) -> bytes:
        """A member that is read whole to open an archive."""
        if name not in self._entries:
            raise ArchiveError(f"has no member {name}: it is incomplete, or another program's zip")
        if self._entries[name].file_size > MAX_HEAD_BYTES:
            raise ArchiveError(f"member {name} has {self._entries[name].file_size} bytes; refuse such an archive")
        return b"".join(unpack(file, self._entries[name]))

    def __repr__(self) -> str:
        kind, members = printable(self.about.kind), len(self._members)
        return f"<Archive {str(self.path)!r}: {kind}, {members} members, id {self.id[:12]}>"

    def _repr_html_(self) -> str:
        tables = [name for name in self.members() if name.endswith((".parquet", ".csv"))]
        facts = [("kind", self.about.kind), ("id", self.id), ("members", len(self._members))]
        return facts_html(str(self.path), [*facts, ("tables, for .table(name)", ", ".join(tables))])

    @classmethod
    def open(cls, path: "str | Path | Archive") -> "Archive":
        """The archive in a file, whose seal is checked.

        Parameters
        ----------
        path : the .zip that a campaign wrote; an archive that is open stays as it is

        Raises
        ------
        ArchiveError : one line, where it is damaged, incomplete or something else

        Examples
        --------
        >>> import lepaute as lp
        >>> lp.Archive.open("calibration.zip").table("observations/kernels.parquet")  # doctest: +SKIP

        """
        if isinstance(path, cls):
            return path
        path = path_of(path, "the archive")
        if not path.is_file():
            what = "not a regular file" if path.exists() else "there is no such file"
            raise ArchiveError(f"{path}: {what}; give the .zip that a campaign wrote")
        try:
            with path.open("rb") as file:
                check_seal(file)
                return cls(path, file)
        except ArchiveError as problem:
            raise ArchiveError(f"{path}: {problem}") from None
        except OSError as problem:
            raise ArchiveError(f"{path}: cannot be read ({problem.strerror}); copy the archive again") from None

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
        """A member that is a JSON text; raises ArchiveError if it is none or out of proportion."""
        data = self.read_bytes(name)
        try:
            return bounded_json(data, name)
        except ArchiveError as problem:
            raise ArchiveError(f"{self.path}: {problem}") from None

    def table(self, name: str) -> "pandas.DataFrame":
        """A member as a data frame: .parquet, or .csv whose provenance lines are left out.

        Raises ArchiveError if it is no table, or one that would take more memory than a table may.
        """
        data = self.read_bytes(name)
        try:
            return table_of(name, data)
        except ArchiveError as problem:
            raise ArchiveError(f"{self.path}: {problem}") from None


class _Content(io.RawIOBase):
    """The unpacked bytes of a member; the end is reached only when they are those of the manifest."""

    def __init__(self, file: BinaryIO, entry: ZipInfo, member: Member, path: Path) -> None:
        super().__init__()
        self._pieces = unpack(file, entry)
        self._piece = memoryview(b"")
        self._digest = hashlib.sha256()
        self._member = member
        self._changed = f"{path}: member {entry.filename} changed since the archive was opened; open it again"

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


def table_of(name: str, data: bytes) -> "pandas.DataFrame":
    """The data frame in the bytes of a member; raises ArchiveError if there is none or it is out of proportion."""
    try:
        with reading_table(f"member {name}"):
            if name.endswith(".parquet"):
                return _parquet(name, data)
            if name.endswith(".csv"):
                _refuse_wide(name, data)
                size = _head_size(data)
                body, types = io.BytesIO(data[size:]), _declared_types(data[:size])
                if types is None:
                    return read_csv(body)
                return read_csv(body, dtype=types, keep_default_na=False, na_values=[""])
    except InputError as problem:
        raise ArchiveError(fitted(str(problem), 300)) from None
    raise ArchiveError(f"member {name} is not a table; only .parquet and .csv are")


def _declared_types(head: bytes) -> "dict[str, Any] | None":
    from lepaute.measure.design.columns import DECLARATION, declared

    start = f"#@{DECLARATION}=".encode()
    line = next((line for line in head.splitlines() if line.startswith(start)), None)
    if line is None:
        return None
    try:
        columns = declared(line.removeprefix(start).decode())
    except (DesignError, UnicodeDecodeError):
        return None
    return {column.name: {"int": "Int64", "real": "Float64"}.get(column.type, "string") for column in columns}


def _refuse_wide(name: str, data: bytes) -> None:
    if len(data) > MAX_TABLE_BYTES:
        raise ArchiveError(f"member {name} has {len(data)} bytes, more than a table may; extract it instead")
    at, looked_at = _head_size(data), 0
    while at < len(data) and looked_at < _LINES_LOOKED_AT:
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        looked_at += 1
        if data.count(b",", at, end) >= MAX_COLUMNS:
            raise ArchiveError(f"member {name} has more than {MAX_COLUMNS} columns; refuse such an archive")
        at = end + 1


def _head_size(data: bytes) -> int:
    """Size of the lines at its beginning that start with #; later ones are cells, and a # inside a line always is."""
    at = 0
    while data[at : at + 1] == b"#":
        end = data.find(b"\n", at)
        at = len(data) if end < 0 else end + 1
    return at


#: One archive or several, each open or the name of its file.
Archives = Archive | str | Path | Iterable[Archive | str | Path]


def listed(archives: Archives) -> list[Archive | str | Path]:
    """One or several as a list; raises WrongType for anything else."""
    if isinstance(archives, Archive | str | Path):
        return [archives]
    return list(of_type(archives, "archives", Iterable, "archives, or the names of their files"))


def _parquet(name: str, data: bytes) -> "pandas.DataFrame":
    """The table of a Parquet file; texts are spelt out only when the sum of their lengths is known."""
    file = open_parquet(data, f"member {name}", most_bytes=MAX_TABLE_BYTES)
    declared = open_parquet(data, f"member {name}", most_bytes=MAX_TABLE_BYTES, columns=()).schema_arrow
    with reading_table(f"member {name}"):
        table = file.read(use_threads=False)
    spelt_out_bytes = sum(_spelt_out_bytes(table[number]) for number in range(table.num_columns))
    refuse_bytes(f"member {name}", spelt_out_bytes, MAX_TABLE_BYTES)
    for number, field in enumerate(declared):
        if table.schema.field(number).type != field.type:
            table = table.set_column(number, field.name, table[number].cast(field.type))
    frame: pandas.DataFrame = table.replace_schema_metadata(None).to_pandas()
    return frame


def _spelt_out_bytes(column: Any) -> int:
    """Bytes of a column's texts, each row counted; of other columns what they take."""
    from pyarrow import compute, types

    if not (types.is_dictionary(column.type) and is_text(column.type.value_type)):
        return int(column.nbytes)
    total = 0
    for chunk in column.chunks:
        lengths = compute.binary_length(chunk.dictionary)
        total += int(compute.sum(compute.cast(lengths.take(chunk.indices), "int64")).as_py() or 0)
    return total

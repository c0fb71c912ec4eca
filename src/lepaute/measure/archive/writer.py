"""Writes an archive: to a temporary name, sealed and renamed only when everything went well."""

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lepaute.errors import ArchiveError
from lepaute.kit.files import scratch_file, whole_file
from lepaute.kit.later import pandas
from lepaute.measure.archive import documents
from lepaute.measure.archive.container import CHUNK_BYTES, MAX_BYTES, RATIO_MATTERS_BYTES, seal
from lepaute.measure.archive.metadata import Metadata
from lepaute.measure.archive.ro_crate import ro_crate_metadata

#: One date for all members (the earliest a zip can hold): the same content gives the same file.
_DATE = (1980, 1, 1, 0, 0, 0)
_RESERVED = (documents.COMMANDS, documents.MANIFEST, documents.METADATA, documents.RO_CRATE)
#: What packs better than this in a quick try is stored as it is: a reader takes more than MAX_RATIO for a bomb. One
#: byte repeated gives 229 in the quick try and 1029 in the thorough one (measured).
_QUICK_RATIO = 100
#: Bytes of what a reader accepts in all that are kept for the members that the archive writes itself.
_KEPT_FREE_BYTES = 1 << 30


class ArchiveWriter:
    """Context manager that collects members and closes them into an archive.

    metadata: stored as metadata.json on exit, so entries may still be added while the archive is open;
    needs a `kind` and `created`, an ISO 8601 date. On an exception, and on Ctrl-C, the temporary file is
    removed and an older archive of the same name stays as it was.
    """

    def __init__(self, path: str | Path, metadata: dict[str, Any]) -> None:
        for key in ("kind", "created"):
            if not isinstance(metadata.get(key), str):
                raise ArchiveError(f"the metadata of an archive lack {key}; give its kind and the date it was created")
        self.path = Path(path)
        self.metadata = metadata
        self._members: dict[str, documents.Member] = {}
        self._folders: set[str] = set()
        self._unpacked_bytes = 0
        self._commands: _JsonList | None = None
        self._file = ExitStack()
        self._temporary: Path | None = None
        self._zip: zipfile.ZipFile | None = None

    def __enter__(self) -> Self:
        self._temporary = self._file.enter_context(whole_file(self.path))
        self._zip = zipfile.ZipFile(self._temporary, "w", zipfile.ZIP_DEFLATED)
        scratch = self._file.enter_context(scratch_file(self._place))
        self._commands = self._file.enter_context(closing(_JsonList(scratch)))
        return self

    @property
    def _place(self) -> Path:
        """The folder of temporaries."""
        return (self._temporary or self.path).parent

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._temporary is not None
        assert self._zip is not None
        try:
            with self._file:
                with self._zip:
                    if error is not None:
                        raise error  # the file's block ends with it too, and keeps nothing
                    self._finish(self._zip)
                seal(self._temporary)
        finally:
            self._zip = None

    def add_bytes(self, name: str, data: bytes) -> None:
        """Adds a member; raises ArchiveError for a name that is taken, reserved or not a plain relative path."""
        _check_free(name)
        self._add(name, data)

    def add_file(self, name: str, source: str | Path) -> None:
        """Adds the content of a file, in pieces, so that it may be larger than memory.

        Raises ArchiveError as `add_bytes`, and where the file cannot be read.
        """
        _check_free(name)
        self._add_file(name, Path(source))

    def add_list(self, name: str, entries: Iterable[object]) -> None:
        """Adds a list as JSON, which may be larger than memory; raises ArchiveError as `add_bytes`."""
        _check_free(name)
        with scratch_file(self._place) as scratch:
            items = _JsonList(scratch)
            for entry in entries:
                items.add(entry)
            items.close()
            self._add_file(name, scratch)

    def _add_file(self, name: str, source: Path) -> None:
        try:
            with source.open("rb") as file:
                if (size := os.fstat(file.fileno()).st_size) <= RATIO_MATTERS_BYTES:
                    self._add(name, file.read())
                    return
                packed = self._ready_for(name, size)
                entry = _entry(name, file.read(CHUNK_BYTES))
                file.seek(0)
                digest, written = hashlib.sha256(), 0
                # The file may grow while it is read: more than 2 GiB need a header of the larger kind from the start.
                with packed.open(entry, "w", force_zip64=size >= 1 << 30) as member:
                    while chunk := file.read(CHUNK_BYTES):
                        digest.update(chunk)
                        written += len(chunk)
                        member.write(chunk)
        except OSError as problem:
            raise ArchiveError(f"{source}: cannot be read into the archive ({problem.strerror})") from None
        self._members[name] = documents.Member(digest.hexdigest(), written)

    def add_table(self, name: str, frame: "pandas.DataFrame") -> None:
        """Adds a data frame: as Parquet, or as CSV when the name ends in .csv; the index is not kept."""
        if name.endswith(".csv"):
            self.add_bytes(name, frame.to_csv(index=False).encode())
            return
        out = io.BytesIO()
        frame.to_parquet(out, index=False)
        self.add_bytes(name, out.getvalue())

    def add_blocks(self, name: str, blocks: "Iterator[pandas.DataFrame]") -> None:
        """Adds a table that comes in blocks of equal columns, as Parquet; it may be larger than memory."""
        first = next(blocks)
        if (second := next(blocks, None)) is None:
            self.add_table(name, first)
            return
        from pyarrow import Table
        from pyarrow.parquet import ParquetWriter

        schema = Table.from_pandas(first, preserve_index=False).schema
        with scratch_file(self._place) as scratch:
            with ParquetWriter(scratch, schema) as table:
                for block in chain((first, second), blocks):
                    table.write_table(Table.from_pandas(block, schema=schema, preserve_index=False))
            self.add_file(name, scratch)

    def add_command(
        self,
        argv: Sequence[str],
        returncode: int,
        stdout: str,
        stderr: str,
        start: str,
        duration_s: float,
        **more: object,
    ) -> None:
        """Records a command that ran; `start` is its date, ISO 8601 in UTC.

        more: where it ran and as what: node, phase, folder, environment (variables that were added)
        """
        printed = {"stdout": stdout, "stderr": stderr}
        when = {"start": start, "duration_s": duration_s}
        assert self._commands is not None
        self._commands.add({"argv": list(argv), "returncode": returncode, **printed, **when, **more})

    def _finish(self, packed: zipfile.ZipFile) -> None:
        assert self._commands is not None
        self._commands.close()
        self._add_file(documents.COMMANDS, self._commands.path)
        self._add(documents.METADATA, _json(self.metadata))
        self._add(
            documents.RO_CRATE,
            _json(ro_crate_metadata(Metadata.of(self.metadata), {**self._members, documents.MANIFEST: None})),
        )
        manifest = documents.manifest_bytes(self._members)
        packed.writestr(_entry(documents.MANIFEST, manifest), manifest)

    def _ready_for(self, name: str, size_bytes: int) -> zipfile.ZipFile:
        """The zip, when a member of this name and size can be added; what a reader would refuse is refused here."""
        documents.check_name(name)
        if name in self._members:
            raise ArchiveError(f"member {name} exists already; choose another name")
        if self._zip is None:
            raise ArchiveError("members can be added only inside the writer's `with` block")
        parents = ["/".join(name.split("/")[:depth]) for depth in range(1, name.count("/") + 1)]
        if name in self._folders or not self._members.keys().isdisjoint(parents):
            raise ArchiveError(f"member {name} would be both a file and a folder; choose another name")
        self._folders.update(parents)
        if len(self._members) + len(_RESERVED) >= documents.MAX_MEMBERS and name not in _RESERVED:
            raise ArchiveError(f"an archive holds at most {documents.MAX_MEMBERS} members; pack small files into one")
        if self._unpacked_bytes + size_bytes > MAX_BYTES - _KEPT_FREE_BYTES and name not in _RESERVED:
            raise ArchiveError(f"with member {name} the archive would be larger than {MAX_BYTES} bytes; leave it out")
        self._unpacked_bytes += size_bytes
        return self._zip

    def _add(self, name: str, data: bytes) -> None:
        self._ready_for(name, len(data)).writestr(_entry(name, data), data)
        self._members[name] = documents.Member.of(data)


def _check_free(name: str) -> None:
    if name in _RESERVED:
        raise ArchiveError(f"the archive writes member {name} itself; choose another name")


def _entry(name: str, head: bytes) -> zipfile.ZipInfo:
    """The zip's record of a member; head: its content, or the beginning of it."""
    entry = zipfile.ZipInfo(name, _DATE)
    repeated = len(head) >= RATIO_MATTERS_BYTES and len(zlib.compress(head, 1)) * _QUICK_RATIO < len(head)
    entry.compress_type = zipfile.ZIP_STORED if repeated else zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


class _JsonList:
    """A list as `_json` has it, in a file, entry by entry."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._is_empty = True

    def add(self, entry: object) -> None:
        text = json.dumps(entry, indent=1, sort_keys=True).replace("\n", "\n ")
        self._file.write(f"{'[' if self._is_empty else ','}\n {text}")
        self._is_empty = False

    def close(self) -> None:
        """The end of the list; once closed, nothing."""
        if self._file.closed:
            return
        self._file.write("[]\n" if self._is_empty else "\n]\n")
        self._file.close()


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"

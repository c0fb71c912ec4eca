"""The zip around an archive: its directory read by rules so narrow that nothing can hide in it, and its seal.

Only what ArchiveWriter writes is accepted: members one after the other from the first byte to the directory, stored or
deflated, the same facts in both headers of a member. Python's `zipfile` is more generous (prefixes, gaps, overlaps,
encryption, links) and reads the directory before anybody can count its entries.
Source of the layout: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3; all numbers little endian.

The seal is the zip's comment: the SHA-256 of all bytes before the end-of-directory record. The manifest guards what
members contain; the seal guards the rest of the file (time stamps, names in local headers, attributes), so that no byte
can change unseen. It tells damage from tampering no more than a checksum does: whoever rewrites the file can seal it
again, but not keep the archive's id.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lepaute.archive.documents import MOST_MEMBERS, check_name
from lepaute.errors import ArchiveError

#: More than this is refused before anything is unpacked: an experiment's archive has megabytes.
MOST_BYTES = 8 * 1024**3
#: Deflate reaches 1032:1 on a run of one byte; measurements reach about 10:1.
MOST_RATIO = 1000
#: Below this size a ratio says nothing: no bomb fits.
RATIO_MATTERS_BYTES = 1 << 20
#: What the directory may take: MOST_MEMBERS entries whose names are as long as paths are.
MOST_DIRECTORY_BYTES = 16 << 20
CHUNK_BYTES = 1 << 20

_STORED, _DEFLATED = 0, 8
_UTF8_NAME = 0x800
_ALL_ONES_32, _ALL_ONES_16 = 0xFFFFFFFF, 0xFFFF
_ZIP64_EXTRA = 1
_FILE_TYPE, _REGULAR, _DOS_FOLDER = 0o170000, 0o100000, 0x10

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s4B4HL2L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")

_END_MARK = b"PK\x05\x06"
_SEAL = b"lepaute sha256="
_SEAL_BYTES = len(_SEAL) + 64
_DAMAGED = "copy the archive again from where it was made"
_REFUSE = "refuse such an archive"


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of the zip: where its packed bytes are, and what they unpack to."""

    name: str
    deflated: bool
    data_offset: int
    packed_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Header:
    """An entry of the directory; `same` is what the member's own header must repeat."""

    name: str
    raw_name: bytes
    same: tuple[int, int, int, int, int]  # flags, method, CRC, packed size, size
    offset: int


def read_directory(file: BinaryIO) -> dict[str, Entry]:
    """The members of a zip by name, in their order in the file; nothing is unpacked.

    Raises ArchiveError for anything that ArchiveWriter would not have written: names that lead elsewhere, are there
    twice or stand in each other's way, links, encryption, other methods, gaps and overlaps, headers that disagree,
    sizes that no measurement reaches. Memory is bounded by MOST_DIRECTORY_BYTES.
    """
    start, end, count = _directory_place(file)
    file.seek(start)
    headers = _headers(file.read(end - start), count)
    _check(headers, start)
    entries = {}
    offset = 0
    for header in headers:
        if header.offset != offset:
            raise ArchiveError(f"member {header.name} does not begin where the one before ends; {_REFUSE}")
        entries[header.name] = entry = _entry(file, header)
        offset = entry.data_offset + entry.packed_bytes
    if offset != start:
        raise ArchiveError(f"holds {start - offset} bytes that belong to no member; {_REFUSE}")
    return entries


def unpack(file: BinaryIO, entry: Entry) -> Iterator[bytes]:
    """The content of a member in pieces of at most CHUNK_BYTES; raises ArchiveError where it is damaged.

    Never more than the declared size is unpacked, whatever the packed bytes say.
    """
    left, produced, position = entry.packed_bytes, 0, entry.data_offset
    inflater = zlib.decompressobj(-15) if entry.deflated else None
    try:
        while left:
            file.seek(position)
            packed = file.read(min(left, CHUNK_BYTES))
            if not packed:
                raise ArchiveError(f"member {entry.name} is cut short; {_DAMAGED}")
            position += len(packed)
            left -= len(packed)
            while packed:
                piece = packed if inflater is None else inflater.decompress(packed, CHUNK_BYTES)
                packed = b"" if inflater is None else inflater.unconsumed_tail
                produced += len(piece)
                if produced > entry.size_bytes:
                    raise ArchiveError(f"member {entry.name} unpacks to more than it declares; {_REFUSE}")
                if piece:
                    yield piece
                if inflater is not None and inflater.eof and (inflater.unused_data or left):
                    raise ArchiveError(f"member {entry.name} holds bytes after its content; {_REFUSE}")
    except zlib.error as problem:
        raise ArchiveError(f"member {entry.name} cannot be unpacked ({problem}); {_DAMAGED}") from None
    if produced != entry.size_bytes or (inflater is not None and not inflater.eof):
        raise ArchiveError(f"member {entry.name} cannot be unpacked (it ends early); {_DAMAGED}")


def _directory_place(file: BinaryIO) -> tuple[int, int, int]:
    """Where the directory begins and ends, and how many entries it declares."""
    size = file.seek(0, 2)
    # The seal has been checked: the comment has the length that the last record says, and ends the file.
    file.seek(max(0, size - _END.size - _ALL_ONES_16))
    tail = file.read()
    at = tail.rfind(_END_MARK)
    if at < 0 or at + _END.size > len(tail):
        raise ArchiveError(f"has no end of directory; {_DAMAGED}")
    end = size - len(tail) + at
    _, _, _, _, count, directory_bytes, start, _ = _END.unpack_from(tail, at)
    if count == _ALL_ONES_16 or _ALL_ONES_32 in (directory_bytes, start):
        end, count, directory_bytes, start = _zip64(file, end)
    if start + directory_bytes != end:
        raise ArchiveError(f"its directory is not where it says; {_DAMAGED}")
    if count > MOST_MEMBERS or directory_bytes > MOST_DIRECTORY_BYTES:
        raise ArchiveError(
            f"declares {count} members in {directory_bytes} bytes of directory; at most {MOST_MEMBERS} in "
            f"{MOST_DIRECTORY_BYTES} are accepted, {_REFUSE}"
        )
    return start, end, count


def _zip64(file: BinaryIO, end: int) -> tuple[int, int, int, int]:
    """The same of a large zip: end of the directory, entries, its size and its start."""
    place = end - _LOCATOR64.size - _END64.size
    if place < 0:
        raise ArchiveError(f"its directory is not where it says; {_DAMAGED}")
    file.seek(place)
    record = _END64.unpack(file.read(_END64.size))
    signature, disk, offset, disks = _LOCATOR64.unpack(file.read(_LOCATOR64.size))
    sound = record[0] == b"PK\x06\x06" and record[1] == _END64.size - 12 and signature == b"PK\x06\x07"
    if not sound or (disk, offset, disks) != (0, place, 1) or record[4:6] != (0, 0) or record[6] != record[7]:
        raise ArchiveError(f"its directory is not where it says; {_DAMAGED}")
    return place, record[7], record[8], record[9]


def _headers(directory: bytes, count: int) -> list[_Header]:
    headers: list[_Header] = []
    at = 0
    while at < len(directory):
        if len(headers) == count or at + _CENTRAL.size > len(directory):
            raise ArchiveError(f"its directory has other entries than the {count} it declares; {_DAMAGED}")
        fields = _CENTRAL.unpack_from(directory, at)
        signature, _, system, _, _, flags, method, _, _, crc, packed, size, *rest = fields
        name_bytes, extra_bytes, comment_bytes, disk, _, attributes, offset = rest
        at += _CENTRAL.size
        raw_name, extra = directory[at : at + name_bytes], directory[at + name_bytes : at + name_bytes + extra_bytes]
        at += name_bytes + extra_bytes + comment_bytes
        if signature != b"PK\x01\x02" or at > len(directory) or disk:
            raise ArchiveError(f"entry {len(headers) + 1} of its directory is damaged; {_DAMAGED}")
        try:
            name = raw_name.decode("utf-8" if flags & _UTF8_NAME else "ascii")
        except UnicodeDecodeError:
            raise ArchiveError(f"member name {raw_name[:80]!r} is not text; {_REFUSE}") from None
        check_name(name)
        size, packed, offset = _wide(extra, (size, packed, offset), name)
        if comment_bytes:
            raise ArchiveError(f"member {name} has a comment, which no archive of Lepaute has; {_REFUSE}")
        if flags & 1:
            raise ArchiveError(f"member {name} is encrypted; {_REFUSE}")
        if flags & ~_UTF8_NAME or method not in (_STORED, _DEFLATED):
            raise ArchiveError(f"member {name} is packed in a way that Lepaute never writes; {_REFUSE}")
        if attributes >> 16 & _FILE_TYPE not in (0, _REGULAR) or attributes & _DOS_FOLDER or system not in (0, 3):
            raise ArchiveError(f"member {name} is a link, a folder or a device, not a file; {_REFUSE}")
        headers.append(_Header(name, raw_name, (flags, method, crc, packed, size), offset))
    if len(headers) != count:
        raise ArchiveError(f"its directory has {len(headers)} entries and declares {count}; {_DAMAGED}")
    return headers


def _wide(extra: bytes, values: tuple[int, int, int], name: str) -> tuple[int, int, int]:
    """Size, packed size and offset, those of all ones replaced by what the zip64 field holds; no other field may be."""
    needed = sum(value == _ALL_ONES_32 for value in values)
    if not extra and not needed:
        return values
    if len(extra) != 4 + 8 * needed or struct.unpack_from("<2H", extra) != (_ZIP64_EXTRA, 8 * needed):
        raise ArchiveError(f"member {name} has fields that no archive of Lepaute has; {_REFUSE}")
    wide = iter(struct.unpack_from(f"<{needed}Q", extra, 4))
    size, packed, offset = (next(wide) if value == _ALL_ONES_32 else value for value in values)
    return size, packed, offset


def _check(headers: list[_Header], room: int) -> None:
    """No name twice, none that is a file here and a folder there, and no size that no measurement reaches."""
    names: set[str] = set()
    for header in headers:
        if header.name in names:
            raise ArchiveError(f"member {header.name} is there twice; {_REFUSE}")
        names.add(header.name)
    for name in names:
        parent = name.rpartition("/")[0]
        while parent:
            if parent in names:
                raise ArchiveError(f"member {parent} is also the folder of {name}; {_REFUSE}")
            parent = parent.rpartition("/")[0]
    for header in headers:
        *_, packed, size = header.same
        if size > max(MOST_RATIO * packed, RATIO_MATTERS_BYTES):
            raise ArchiveError(
                f"member {header.name} would unpack to {size} bytes from {packed}; "
                f"no measurement compresses so well, {_REFUSE}"
            )
        if packed > room:
            raise ArchiveError(f"member {header.name} is declared larger than the file; {_DAMAGED}")
    if (total := sum(header.same[-1] for header in headers)) > MOST_BYTES:
        raise ArchiveError(f"would unpack to {total} bytes, more than the {MOST_BYTES} that are accepted")


def _entry(file: BinaryIO, header: _Header) -> Entry:
    """The member with the place of its data; its own header must say what the directory says."""
    file.seek(header.offset)
    local = file.read(_LOCAL.size)
    if len(local) < _LOCAL.size:
        raise ArchiveError(f"member {header.name} is cut short; {_DAMAGED}")
    signature, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes = _LOCAL.unpack(local)
    raw_name, extra = file.read(name_bytes), file.read(extra_bytes)
    size, packed, _ = _wide(extra, (size, packed, 0), header.name)
    same = (flags, method, crc, packed, size) == header.same and raw_name == header.raw_name
    if signature != b"PK\x03\x04" or not same:
        raise ArchiveError(f"member {header.name} is described in two different ways; {_REFUSE}")
    offset = header.offset + _LOCAL.size + name_bytes + extra_bytes
    return Entry(header.name, method == _DEFLATED, offset, packed, size)


def seal(path: Path) -> None:
    """Appends the seal to a zip without comment, just closed."""
    with path.open("r+b") as file:
        file.seek(-_END.size, 2)
        end = file.tell()
        *fields, comment_size = _END.unpack(file.read(_END.size))
        assert (fields[0], comment_size) == (_END_MARK, 0), "a zip that ArchiveWriter wrote has no comment"
        digest = _sha256_of_first(file, end)
        file.seek(end)
        file.write(_END.pack(*fields, _SEAL_BYTES) + _SEAL + digest.encode())


def check_seal(path: Path) -> None:
    """Raises ArchiveError when a byte of the file has changed, is missing or was added since it was sealed."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        end = size - _SEAL_BYTES - _END.size
        file.seek(0)
        start = file.read(2)
        file.seek(max(0, end))
        tail = file.read() if end >= 0 else b""
        if size == 0 or (end >= 0 and start != b"PK" and tail[:4] != _END_MARK):
            raise ArchiveError(f"{path}: is not an archive of Lepaute; give the .zip that a campaign wrote")
        if tail[:4] != _END_MARK or not tail[_END.size :].startswith(_SEAL):
            raise ArchiveError(
                f"{path}: has no seal at its end: it was cut short, damaged, repacked, or is another program's zip. "
                "Copy the archive again from where it was made."
            )
        _, disk, start_disk, entries, all_entries, directory, offset, comment = _END.unpack(tail[: _END.size])
        zip64 = _ALL_ONES_16 in (entries, all_entries) or _ALL_ONES_32 in (directory, offset)
        sound = disk == start_disk == 0 and entries == all_entries and comment == _SEAL_BYTES
        sound = sound and (zip64 or offset + directory == end)
        if not sound or tail[_END.size + len(_SEAL) :] != _sha256_of_first(file, end).encode():
            raise ArchiveError(
                f"{path}: its bytes differ from those that were sealed: the file is damaged or was altered. "
                "Copy the archive again from where it was made."
            )


def _sha256_of_first(file: BinaryIO, size: int) -> str:
    """SHA-256 of the first `size` bytes, in hexadecimal."""
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(min(size, CHUNK_BYTES)):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()

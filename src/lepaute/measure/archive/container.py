"""The zip around an archive, read by `zipfile`, with two rules of its own, and its seal.

Members lie one after the other from the first byte to the directory, so that none overlaps another and nothing hides
between them, and none unpacks to more than a bound or a thousand times its packed size.
Source of the layout: PKWARE APPNOTE 6.3.10, sections 4.3.7 and 4.3.16; all numbers little endian.

The seal is the zip's comment: the SHA-256 of all bytes before the end-of-directory record. The manifest guards what
members contain; the seal guards the rest of the file (time stamps, names in local headers, attributes), so that no byte
can change unseen. It tells damage from tampering no more than a checksum does: whoever rewrites the file can seal it
again, but not keep the archive's id.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from lepaute.errors import ArchiveError
from lepaute.kit.printable import printable
from lepaute.measure.archive.documents import MAX_MEMBERS, check_name

#: More than this is refused before anything is unpacked: an experiment's archive has megabytes.
MAX_BYTES = 8 * 1024**3
#: Deflate reaches 1032:1 on a run of one byte; measurements reach about 10:1.
MAX_RATIO = 1000
#: Below this size a ratio says nothing: no bomb fits.
RATIO_MATTERS_BYTES = 1 << 20
#: What the directory may take: MAX_MEMBERS entries whose names are as long as paths are.
MAX_DIRECTORY_BYTES = 16 << 20
CHUNK_BYTES = 1 << 20

_END = struct.Struct("<4s4H2LH")
_LOCAL = struct.Struct("<26x2H")

_END_MARK = b"PK\x05\x06"
_SEAL = b"lepaute sha256="
_SEAL_BYTES = len(_SEAL) + 64
_COMMENT = struct.pack("<H", _SEAL_BYTES) + _SEAL
_DAMAGED = "copy the archive again from where it was made"
_REFUSE = "refuse such an archive"


def read_directory(file: BinaryIO) -> dict[str, ZipInfo]:
    """The members of a sealed zip by name, in their order in the file; nothing is unpacked.

    Raises ArchiveError for names that lead elsewhere, are there twice or stand in each other's way, gaps and overlaps,
    sizes that no measurement reaches. Memory is bounded by MAX_DIRECTORY_BYTES.
    """
    file.seek(-_SEAL_BYTES - _END.size, 2)
    end = _END.unpack(file.read(_END.size))
    directory_bytes = end[5]
    if directory_bytes > MAX_DIRECTORY_BYTES:
        raise ArchiveError(f"declares {directory_bytes} bytes of directory, too many; {_REFUSE}")
    try:
        packed = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError, struct.error) as problem:
        raise ArchiveError(f"its directory cannot be read ({printable(str(problem)[:80])}); {_DAMAGED}") from None
    infos = packed.infolist()
    if end[1:5] != (0, 0, *2 * (min(len(infos), 0xFFFF),)):  # what zipfile passes over
        raise ArchiveError(f"its directory has {len(infos)} entries and declares {end[4]}; {_DAMAGED}")
    _check(infos)
    offset = 0
    for info in infos:
        if info.header_offset != offset or offset >= packed.start_dir:
            raise ArchiveError(f"member {info.filename} does not begin where the one before ends; {_REFUSE}")
        offset = _seek_content(file, info) + info.compress_size
    if offset != packed.start_dir:
        raise ArchiveError(f"holds {packed.start_dir - offset} bytes that belong to no member; {_REFUSE}")
    return {info.filename: info for info in infos}


def unpack(file: BinaryIO, info: ZipInfo) -> Iterator[bytes]:
    """The content of a member in pieces of at most CHUNK_BYTES; raises ArchiveError if it is damaged.

    Never more than the declared size is unpacked, whatever the packed bytes say. Not by `zipfile`, which reads the
    directory again whenever the file is opened, and passes over bytes behind the end of a content.
    """
    left, produced, deflated = info.compress_size, 0, info.compress_type == ZIP_DEFLATED
    inflater = zlib.decompressobj(-15)
    _seek_content(file, info)
    try:
        while not inflater.eof and (packed := file.read(min(left, CHUNK_BYTES))):
            left -= len(packed)
            piece = inflater.decompress(packed, CHUNK_BYTES) if deflated else packed
            while piece:
                produced += len(piece)
                if produced > info.file_size:
                    raise ArchiveError(f"member {info.filename} unpacks to more than it declares; {_REFUSE}")
                yield piece
                piece = inflater.decompress(inflater.unconsumed_tail, CHUNK_BYTES)
    except zlib.error as problem:
        raise ArchiveError(f"member {info.filename} cannot be unpacked ({problem}); {_DAMAGED}") from None
    if left or produced != info.file_size or inflater.eof != deflated or inflater.unused_data:
        raise ArchiveError(f"member {info.filename} does not end where its directory says; {_DAMAGED}")


def _check(infos: list[ZipInfo]) -> None:
    """No name twice, none that is also a folder, numbers and sizes in bounds."""
    if len(infos) > MAX_MEMBERS:
        raise ArchiveError(f"has {len(infos)} members, too many; {_REFUSE}")
    names: set[str] = set()
    for info in infos:
        check_name(name := info.orig_filename)
        if name in names:
            raise ArchiveError(f"member {name} is there twice; {_REFUSE}")
        names.add(name)
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ArchiveError(f"member {name} is packed in a way that Lepaute never writes; {_REFUSE}")
        if info.file_size > max(MAX_RATIO * info.compress_size, RATIO_MATTERS_BYTES):
            sizes = f"{info.compress_size} bytes to {info.file_size}"
            raise ArchiveError(f"member {name} unpacks {sizes}: no measurement compresses so well; {_REFUSE}")
    for name in names:
        if folder := next((str(path) for path in PurePosixPath(name).parents if str(path) in names), ""):
            raise ArchiveError(f"member {folder} is also the folder of {name}; {_REFUSE}")
    if (total := sum(info.file_size for info in infos)) > MAX_BYTES:
        raise ArchiveError(f"would unpack to {total} bytes, more than the {MAX_BYTES} that are accepted")


def _seek_content(file: BinaryIO, info: ZipInfo) -> int:
    """Goes to the packed bytes of a member and returns their place."""
    file.seek(info.header_offset)
    name_bytes, extra_bytes = _LOCAL.unpack(file.read(_LOCAL.size).ljust(_LOCAL.size))
    return file.seek(name_bytes + extra_bytes, 1)


def seal(path: Path) -> None:
    """Appends the seal to a zip without comment, just closed."""
    with path.open("r+b") as file:
        end = file.seek(-_END.size, 2)
        assert file.read(4) == _END_MARK, "a zip that ArchiveWriter wrote has no comment"
        digest = _sha256_of_first(file, end)
        file.seek(-2, 2)
        file.write(_COMMENT + digest)


def check_seal(file: BinaryIO) -> None:
    """Raises ArchiveError when a byte before the end record has changed, is missing or was added since the sealing."""
    start = file.read(2)
    end = max(0, file.seek(0, 2) - _SEAL_BYTES - _END.size)
    file.seek(end)
    tail = file.read()
    if tail[:4] != _END_MARK and start != b"PK":
        raise ArchiveError("is not an archive of Lepaute; give the .zip that a campaign wrote")
    if tail[:4] != _END_MARK or not tail[_END.size :].startswith(_SEAL):
        raise ArchiveError(f"has no seal: it was cut short, damaged, repacked, or is another program's zip; {_DAMAGED}")
    if tail[_END.size - 2 :] != _COMMENT + _sha256_of_first(file, end):
        raise ArchiveError(f"its bytes are not those that were sealed: it is damaged or altered; {_DAMAGED}")


def _sha256_of_first(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(min(size, CHUNK_BYTES)):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest().encode()

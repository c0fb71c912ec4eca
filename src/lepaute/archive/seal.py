"""The seal: the zip's comment holds the SHA-256 of all bytes before the end-of-directory record.

The manifest guards what members contain; the seal guards the rest of the file (time stamps, names in
local headers, attributes), so that no byte can change unseen. It tells damage from tampering no more
than a checksum does: whoever rewrites the file can seal it again, but not keep the archive's id.
"""

import hashlib
import struct
from pathlib import Path
from typing import BinaryIO

from lepaute.errors import ArchiveError

#: End of central directory record, PKWARE APPNOTE 4.3.16, little endian: signature, this disk, disk of the
#: directory, entries here, entries in all, size and offset of the directory, length of the comment.
_RECORD = struct.Struct("<4s4H2LH")
_SIGNATURE = b"PK\x05\x06"
_PREFIX = b"lepaute sha256="
_COMMENT_SIZE = len(_PREFIX) + 64
#: Where a zip outgrows the fields of the record, they hold all ones and a zip64 record before it has the values.
_ZIP64_COUNT, _ZIP64_SIZE = 0xFFFF, 0xFFFFFFFF
_CHUNK = 1 << 20


def seal(path: Path) -> None:
    """Appends the seal to a zip without comment, just closed."""
    with path.open("r+b") as file:
        file.seek(-_RECORD.size, 2)
        end = file.tell()
        *fields, comment_size = _RECORD.unpack(file.read(_RECORD.size))
        assert (fields[0], comment_size) == (_SIGNATURE, 0), "a zip that ArchiveWriter wrote has no comment"
        digest = _sha256_of_first(file, end)
        file.seek(end)
        file.write(_RECORD.pack(*fields, _COMMENT_SIZE) + _PREFIX + digest.encode())


def check_seal(path: Path) -> None:
    """Raises ArchiveError when a byte of the file has changed, is missing or was added since it was sealed."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        end = size - _COMMENT_SIZE - _RECORD.size
        start = b""
        if end >= 0:
            file.seek(0)
            start = file.read(4)
            file.seek(end)
        tail = file.read() if end >= 0 else b""
        if size == 0 or (end >= 0 and start[:2] != b"PK" and tail[:4] != _SIGNATURE):
            raise ArchiveError(f"{path}: is not an archive of Lepaute; give the .zip that a campaign wrote")
        if tail[:4] != _SIGNATURE or not tail[_RECORD.size :].startswith(_PREFIX):
            raise ArchiveError(
                f"{path}: has no seal at its end: it was cut short, damaged, repacked, or is another program's zip. "
                "Copy the archive again from where it was made."
            )
        _, disk, directory_disk, entries, all_entries, directory_size, offset, comment_size = _RECORD.unpack(
            tail[: _RECORD.size]
        )
        zip64 = _ZIP64_COUNT in (entries, all_entries) or _ZIP64_SIZE in (directory_size, offset)
        sound = disk == directory_disk == 0 and entries == all_entries and comment_size == _COMMENT_SIZE
        sound = sound and (zip64 or offset + directory_size == end)
        if not sound or tail[_RECORD.size + len(_PREFIX) :] != _sha256_of_first(file, end).encode():
            raise ArchiveError(
                f"{path}: its bytes differ from those that were sealed: the file is damaged or was altered. "
                "Copy the archive again from where it was made."
            )


def _sha256_of_first(file: BinaryIO, size: int) -> str:
    """SHA-256 of the first `size` bytes, in hexadecimal."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0:
        chunk = file.read(min(size, _CHUNK))
        if not chunk:
            break
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()

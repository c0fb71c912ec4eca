"""A file of another program: its bytes, unpacked where it is compressed."""

from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes

#: Also after unpacking; a table of a million rows.
MOST_BYTES = 64 << 20
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Source:
    """name: of the file, for messages;  data: its content, unpacked; of a database only its first bytes.

    date_s: of what has no date in the file, where somebody has given one
    """

    path: Path
    data: bytes
    date_s: float | None = None

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def is_database(self) -> bool:
        """Whether it is one of SQLite, which reads it itself, from `path`."""
        return self.data[: len(_SQLITE)] == _SQLITE

    @property
    def text(self) -> str:
        """The content as UTF-8, without a byte order mark; raises InputError, naming the line, for anything else."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            line = self.data.count(b"\n", 0, problem.start) + 1
            raise InputError(
                f"{self.name}:{line}: is not UTF-8 text; convert the file, with iconv for example"
            ) from None


def read_source(path: str | Path) -> Source:
    """The file, unpacked where it is gzip by its content; raises InputError where it cannot be read or is too large."""
    if Path(path).is_file():  # not a pipe, which can be read only once
        head = _head(path)
        if head == _SQLITE:
            return Source(Path(path), head)
    data = read_bytes(path, "a file of measurements", MOST_BYTES)
    if data[: len(_SQLITE)] == _SQLITE:
        raise InputError(f"{path}: is a compressed database; unpack it, with gunzip for example")
    return Source(Path(path), data)


def _head(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_SQLITE))
    except OSError:
        return b""  # which read_bytes will refuse

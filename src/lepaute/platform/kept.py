"""Documents of platforms that have been checked, kept so that the next command reads them without checking them again.

They lie in the cache by a digest of their text, of the sources that check it and of Python's version. A cache that
cannot be read or written, or holds something else, costs time and changes no answer.
"""

import contextlib
import hashlib
import marshal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lepaute.errors import LepauteError
from lepaute.kit import records
from lepaute.kit.builds import cache_folder, drop_oldest, make_cache
from lepaute.kit.files import write_whole
from lepaute.kit.records import Record, packed, unpacked
from lepaute.platform.values import Value

#: The oldest of more documents are removed.
MOST_KEPT = 64

RecordT = TypeVar("RecordT", bound=Record)


def checked_once(text: str, kind: type[RecordT], check: Callable[[], RecordT]) -> RecordT:
    """What `check` makes of `text`, which says all that it depends on; kept for the next who asks.

    With a value `sha256` of the document, where it has one: to work it out takes as long as to check.
    """
    key = hashlib.sha256(f"{kind.__name__} {_sources()}\n{text}".encode(errors="surrogatepass")).hexdigest()[:32]
    with contextlib.suppress(LepauteError, OSError, ValueError, EOFError, TypeError, KeyError, IndexError):
        return _read(cache_folder() / "platforms" / f"{key}.bin", kind)
    checked = check()
    with contextlib.suppress(LepauteError, OSError):
        _write(cache_folder() / "platforms", key, checked)
    return checked


@cache
def _sources() -> str:
    """Names, sizes and dates of the modules that check: to read them would take as long as to read a platform."""
    files = [Path(records.__file__), *Path(__file__).parent.glob("*.py")]
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(files)]
    return repr((sys.version_info, stats))


@cache
def _classes() -> dict[str, type]:
    """The documents and their parts, by name."""
    found: list[type] = [Value]
    for each in found:
        found += each.__subclasses__()
    return {each.__name__: each for each in found}


def _read(path: Path, kind: type[RecordT]) -> RecordT:
    """Raises an error where it is not there, or damaged."""
    data = path.read_bytes()
    digest, content = data[:32], data[32:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError(f"{path} is damaged")
    sha256, document = marshal.loads(content)  # numbers and texts only
    made = unpacked(document, _classes())
    if not isinstance(made, kind):
        raise TypeError(f"{path} holds something else")
    if sha256 is not None:
        made.__dict__["sha256"] = sha256
    return made


def _write(folder: Path, key: str, document: Any) -> None:
    make_cache(folder)
    content = marshal.dumps((getattr(document, "sha256", None), packed(document)))
    write_whole(folder / f"{key}.bin", hashlib.sha256(content).digest() + content)
    drop_oldest(folder, "*.bin", MOST_KEPT)

"""What is worked out of values and a changelog is kept: once worked out, it is read afterwards.

It lies in the cache, a file a table, by a digest of all that decides it: values, changelog, settings, and the sources
that work it out. A cache that cannot be read or written costs time and changes no answer.
"""

import contextlib
import hashlib
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from lepaute.errors import LepauteError
from lepaute.kit.builds import cache_folder, digests, drop_oldest, make_cache
from lepaute.kit.files import whole_file, write_whole

#: The oldest of more files are removed.
MOST_KEPT = 256
_FOLDER = "judgements"
_last: "tuple[weakref.ref[pd.DataFrame], str] | None" = None


def kept_tables(
    names: Sequence[str], observed: "pd.DataFrame", of: object, make: "Callable[[], Sequence[pd.DataFrame]]"
) -> "list[pd.DataFrame]":
    """The tables that `make` gives, one for each of the names, from the cache where they are there.

    observed : the factor values that they are of; of : what else decides them, whose repr tells it whole
    """
    key = _hex(f"{_sources()}\n{of!r}\n{_digest(observed)}")
    folder = cache_folder() / _FOLDER
    with contextlib.suppress(LepauteError, OSError, ValueError):
        return [_read_table(folder / f"{key}.{name}.parquet") for name in names]
    made = list(make())
    with contextlib.suppress(LepauteError, OSError):
        for name, table in zip(names, made, strict=True):
            _write(folder, f"{key}.{name}.parquet", table.to_parquet)
    return made


def kept_text(of: object) -> str | None:
    """What `keep_text` was given for the same; None where that is not there."""
    with contextlib.suppress(LepauteError, OSError, ValueError):
        return (cache_folder() / _FOLDER / f"{_hex(f'{_sources()}{of!r}')}.json").read_text("utf-8")
    return None


def keep_text(of: object, text: str) -> None:
    """Keeps a text; of : what decides it, whose repr tells it whole."""
    with contextlib.suppress(LepauteError, OSError):
        _write(cache_folder() / _FOLDER, f"{_hex(f'{_sources()}{of!r}')}.json", lambda path: write_whole(path, text))


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _digest(observed: "pd.DataFrame") -> str:
    """Of all values; that of the table that was asked for last is known."""
    global _last  # noqa: PLW0603 -- of one table, which nobody changes
    if _last is None or _last[0]() is not observed:
        digest = hashlib.sha256(repr(list(observed.columns)).encode())
        digest.update(pd.util.hash_pandas_object(observed, index=False).to_numpy().tobytes())
        _last = weakref.ref(observed), digest.hexdigest()
    return _last[1]


@cache
def _sources() -> str:
    """A digest of the modules that work out."""
    from lepaute import stats, watch

    files = [file for package in (watch, stats) for file in Path(*package.__path__).rglob("*.py")]
    return _hex("\n".join(digests(files)))


def _read_table(path: Path) -> "pd.DataFrame":
    """Raises OSError or ValueError where it is not there, or damaged."""
    return pd.read_parquet(path)


def _write(folder: Path, name: str, write: Callable[[Path], Any]) -> None:
    make_cache(folder)
    with whole_file(folder / name) as temporary:
        write(temporary)
    drop_oldest(folder, "*.*", MOST_KEPT)

"""A cache of results that are computed from values and a changelog.

It has a file for each table, by a digest of all that decides the result: values, changelog, settings and source code.
A cache that cannot be read or written costs time and changes no answer.
"""

import contextlib
import hashlib
import pickle
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.errors import LepauteError
from lepaute.kit.builds import cache_folder, digests, drop_oldest, make_cache
from lepaute.kit.files import whole_file, write_atomic

#: The oldest of more files are removed.
MAX_KEPT = 256
_FOLDER = "judgements"
_last: "tuple[weakref.ref[pd.DataFrame], npt.NDArray[Any], dict[float, str]] | None" = None


def kept_tables(
    names: Sequence[str], observed: "pd.DataFrame", of: object, make: "Callable[[], Sequence[pd.DataFrame]]"
) -> "list[pd.DataFrame]":
    """The tables that `make` gives, one for each of the names, from the cache where they are there.

    observed : the factor values that they are of; of : what else decides them, whose repr tells it whole
    """
    key = _hex(f"{_sources()}\n{of!r}\n{_digest(observed)}")
    folder = cache_folder() / _FOLDER
    with contextlib.suppress(LepauteError, OSError, ValueError):
        return [pd.read_parquet(folder / f"{key}.{name}.parquet") for name in names]
    made = list(make())
    with contextlib.suppress(LepauteError, OSError):
        for name, table in zip(names, made, strict=True):
            _write(folder, f"{key}.{name}.parquet", table.to_parquet)
    return made


def kept_state(of: object, observed: "pd.DataFrame") -> Any:
    """The last object of `keep_state` for the same, if the values up to its moment are the same; else None."""
    with contextlib.suppress(Exception):  # whatever the file holds, which another version may have written
        until_s, digest, state = kept_object(of) or (-np.inf, "", None)
        return state if state is not None and digest == _digest(observed, until_s) else None
    return None


def keep_state(of: object, observed: "pd.DataFrame", until_s: float, state: Any) -> None:
    """Keeps what was worked out of the values before a moment, in place of what there was.

    of : what else decides it, and whose it is, whose repr tells it whole
    """
    keep_object(of, (until_s, _digest(observed, until_s), state))


def kept_object(of: object) -> Any:
    """The last object of `keep_object` for the same; None if that is not there."""
    with contextlib.suppress(Exception):  # whatever a damaged file says
        # as trusted as the programs that lie beside it
        return pickle.loads((cache_folder() / _FOLDER / f"{_hex(f'{_sources()}{of!r}')}.state").read_bytes())
    return None


def keep_object(of: object, value: Any) -> None:
    """Keeps an object in place of what there was; of : what decides it and whose it is, whose repr tells it whole."""
    with contextlib.suppress(LepauteError, OSError):
        name, content = f"{_hex(f'{_sources()}{of!r}')}.state", pickle.dumps(value)
        _write(cache_folder() / _FOLDER, name, lambda path: write_atomic(path, content))


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _digest(observed: "pd.DataFrame", until_s: float = np.inf) -> str:
    """Digest of all values of jobs before until_s; those of the rows of the table that was asked for last are known."""
    global _last  # noqa: PLW0603 -- of one table, which nobody changes
    if _last is None or _last[0]() is not observed:
        hashes = pd.util.hash_pandas_object(observed, index=False).to_numpy(np.uint64)
        _last = weakref.ref(observed), hashes, dict[float, str]()
    _, hashes, known = _last
    if until_s not in known:
        digest = hashlib.sha256(repr(list(observed.columns)).encode())
        digest.update(hashes[observed["started_s"].to_numpy(np.float64) < until_s].tobytes())
        known[until_s] = digest.hexdigest()
    return known[until_s]


@cache
def _sources() -> str:
    """A digest of the modules that work out."""
    from lepaute import stats, watch

    files = [file for package in (watch, stats) for file in Path(*package.__path__).rglob("*.py")]
    return _hex("\n".join(digests(files)))


def _write(folder: Path, name: str, write: Callable[[Path], Any]) -> None:
    make_cache(folder)
    with whole_file(folder / name) as temporary:
        write(temporary)
    drop_oldest(folder, "*.*", MAX_KEPT)

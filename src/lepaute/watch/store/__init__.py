"""Observations, factor values, verdicts and events of many archives: a folder of Parquet files, or PostgreSQL."""

import re
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.numbers import path_of
from lepaute.kit.printable import printable
from lepaute.watch.store.folder import FolderBackend
from lepaute.watch.store.postgresql import PostgresqlBackend
from lepaute.watch.store.store import Ingested, Store

__all__ = ["Ingested", "Store", "open_store"]

_SCHEMES = ("postgresql://", "postgres://")
_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):/")


def check_place(where: str | Path) -> None:
    """Raises InputError, without repeating a password, for a URL that is none of a store."""
    text = str(where)
    if isinstance(where, str) and text.startswith(_SCHEMES):
        return
    if (url := _URL.match(text)) or "://" in text:
        scheme = f"of the scheme {url[1][:40]}" if url else "after other characters"
        raise InputError(f"the store is named by a URL {scheme}; write postgresql://USER@HOST/DATABASE, or a folder")


def open_store(where: str | Path, *, create: bool = True) -> Store:
    """The store in a folder or in the database of a postgresql:// URL; where there is none, it is made.

    create : unless it is true, a store that is not there raises NoStoreError, and nothing is made

    A store of an older version becomes one of this version, whole or not at all.
    Raises InputError for a folder of something else, a newer store, or no name; EnvironmentProblem without a server.
    """
    path_of(where, "the store")
    check_place(where)
    if isinstance(where, str) and where.startswith(_SCHEMES):
        return Store(PostgresqlBackend(where, create=create))
    folder = Path(where).absolute()
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InputError(f"{printable(str(folder))} is no text in UTF-8, and a store's name must be") from None
    return Store(FolderBackend(folder, create=create))

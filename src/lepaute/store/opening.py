"""A store by its name."""

from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.printable import printable
from lepaute.store.folder import FolderBackend
from lepaute.store.postgresql import PostgresqlBackend
from lepaute.store.store import Store

_SCHEMES = ("postgresql://", "postgres://")


def open_store(where: str | Path) -> Store:
    """The store in a folder, which is made where there is none, or in the database of a postgresql:// URL.

    A store of an older version becomes one of this version, whole or not at all.
    Raises InputError where the folder holds something else or a newer store, or has a name that is no UTF-8, and
    EnvironmentProblem where the server cannot be reached.
    """
    if isinstance(where, str) and where.startswith(_SCHEMES):
        return Store(PostgresqlBackend(where))
    folder = Path(where).absolute()
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InputError(f"{printable(str(folder))} is no text in UTF-8, and a store's name must be") from None
    return Store(FolderBackend(folder))

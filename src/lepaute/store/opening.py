"""A store by its name."""

from pathlib import Path

from lepaute.store.folder import FolderBackend
from lepaute.store.postgresql import PostgresqlBackend
from lepaute.store.store import Store

_SCHEMES = ("postgresql://", "postgres://")


def open_store(where: str | Path) -> Store:
    """The store in a folder, which is made where there is none, or in the database of a postgresql:// URL.

    A store of an older version becomes one of this version, whole or not at all.
    Raises InputError where the folder holds something else, or a newer store, and EnvironmentProblem where the server
    cannot be reached.
    """
    if isinstance(where, str) and where.startswith(_SCHEMES):
        return Store(PostgresqlBackend(where))
    return Store(FolderBackend(Path(where).absolute()))

"""How a store of an older version becomes one of this version.

A step of a version says, for each table that it changes, what selects the new rows from the old ones. Tables that the
older version lacks are made empty. Version 1 did not tell failed jobs from others: they had no value.
"""

from collections.abc import Mapping

from lepaute.errors import InputError
from lepaute.store.tables import VERSION, Table

#: Version that a step leads to -> table -> query, {source} being the table as it was.
STEPS: Mapping[int, Mapping[str, str]] = {
    2: {"factor_values": "select *, case when value is null then 'failed' else 'done' end as state from {source}"},
    3: {},  # alarms, and the days that were judged
    4: {},  # simulations of studies
    5: {},  # notifications, and what was done about nodes
}


def migrated(table: Table, source: str, version: int) -> str:
    """The query of a table's rows as of this version, from `source`, what stands for them in a store of `version`."""
    for step in range(version + 1, VERSION + 1):
        query = STEPS[step].get(table.name)
        if query is not None:
            source = f"({query.format(source=source)}) as of_version_{step}"
    return f"select {', '.join(table.columns)} from {source}"


def changed(table: Table, version: int) -> bool:
    """Whether a step since `version` changes the table."""
    return any(table.name in STEPS[step] for step in range(version + 1, VERSION + 1))


def check_version(version: object, where: str) -> int:
    """The version of a store, if it can be read; raises InputError otherwise."""
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{where}: does not say which version of a store it is; give a store that Lepaute made")
    if version > VERSION:
        raise InputError(f"{where}: is a store of version {version}, this Lepaute knows {VERSION} at most; upgrade it")
    return version

"""Simulated runs of studies: added as they finish, and found by what decides their results."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from lepaute.store.backend import Backend, fresh
from lepaute.store.rows import rows_of
from lepaute.store.tables import SIMULATIONS

if TYPE_CHECKING:
    import pandas

#: Keys of a query; more are asked for in turn.
_KEYS_AT_ONCE = 20_000


def add_simulations(backend: Backend, simulations: "pandas.DataFrame") -> int:
    """Adds runs in one change, and returns how many were new."""
    rows = rows_of(SIMULATIONS, simulations)
    if not len(rows):
        return 0
    with backend.writing() as writer:
        new = fresh(writer, SIMULATIONS, rows)
        writer.append(SIMULATIONS, new)
    return len(new)


def simulations_of(backend: Backend, keys: Collection[str] | None) -> "pandas.DataFrame":
    """The runs of these keys that are there, in the order of the keys' texts; None: of all."""
    import pyarrow

    query = f"select {', '.join(SIMULATIONS.columns)} from simulations"
    if keys is None:
        found = backend.read(f"{query} order by key")
    else:
        wanted = sorted(set(keys))
        pieces = [
            backend.read(f"{query} where key = any(?) order by key", [wanted[at : at + _KEYS_AT_ONCE]])
            for at in range(0, len(wanted), _KEYS_AT_ONCE)
        ]
        found = pyarrow.concat_tables([each.cast(SIMULATIONS.schema) for each in pieces]) if pieces else None
    rows = SIMULATIONS.schema.empty_table() if found is None else found.cast(SIMULATIONS.schema)
    frame: pandas.DataFrame = rows.to_pandas()
    return frame

"""Rows of the table of factor values, as readers make them."""

import hashlib
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from lepaute.errors import InputError
from lepaute.watch.values import KEY, WHOLE_NODE, check_values

if TYPE_CHECKING:
    import pandas as pd


#: Columns that people name things in.
NAMES = ("cluster", "node", "job", "factor")


class Row(NamedTuple):
    """One factor of one job; columns as watch.values has them."""

    cluster: str
    node: str
    cpu: int
    job: str
    started_s: float
    stratum: str
    factor: str
    value: float
    state: str
    archive: str = ""


def digest(*parts: object) -> str:
    """Sixteen hexadecimal digits that tell this content from any other; the same for the same content."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def done(cluster: str, node: str, job: str, started_s: float, stratum: str, factor: str, value: float) -> Row:
    """A value of the whole node."""
    return Row(cluster, node, WHOLE_NODE, job, started_s, stratum, factor, value, "done")


def failed(cluster: str, node: str, job: str, started_s: float, stratum: str, factor: str) -> Row:
    """A job that failed on the node, and left no value."""
    return Row(cluster, node, WHOLE_NODE, job, started_s, stratum, factor, math.nan, "failed")


def table_of(rows: Iterable[Row], name: str) -> "pd.DataFrame":
    """The table of the rows of a file; arguments and errors as `checked_table`."""
    rows = list(rows)
    check_names({(column, getattr(row, column)) for row in rows for column in NAMES}, name)
    import pandas as pd

    return checked_table(pd.DataFrame(rows, columns=Row._fields), name)


def checked_table(frame: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """The table of a file (columns of Row, names as `check_names` lets them pass); rows that occur twice count once.

    Raises InputError, naming the file, where rows contradict each other, or there is none.
    """
    if frame.empty:
        raise InputError(f"{name}: has no value of any factor; give results of benchmarks that ran")
    if frame.duplicated(KEY).any():
        frame = frame.drop_duplicates(ignore_index=True)
        twice = frame[frame.duplicated(KEY)]
        if len(twice):
            row = twice.iloc[0]
            raise InputError(
                f"{name}: {row['factor'][:80]} of node {row['node'][:40]!r} has two values in job {row['job'][:40]}; "
                "remove one, or tell the jobs apart"
            )
    try:
        return check_values(frame)
    except InputError as problem:
        raise InputError(f"{name}: {problem}") from None


def check_names(names: Iterable[tuple[str, str]], name: str) -> None:
    """Raises InputError where one of the (column, text) cannot be printed, or stored."""
    for column, text in names:
        if not text.isprintable():
            raise InputError(f"{name}: the {column} {text[:60]!r} cannot be printed; give it another name")


def machine_of(cluster: str, node: str, said: str, name: str) -> tuple[str, str]:
    """(cluster, node): the node given, else the one that the file says; raises InputError where neither is."""
    if not (node or said):
        raise InputError(f"{name}: does not say on which node it ran; give the node (--node)")
    return cluster, node or said

"""The table of factor values: one row a (machine, job, factor). Everything that is watched comes in this form.

A machine is a processor of a node, or a whole node (cpu -1). Rows are compared only within a stratum: what was measured
in another way (design, content, protocol, software) has another one.
"""

import datetime as dt
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: Column -> its kind: text, integer or number.
COLUMNS = {
    "cluster": "text",
    "node": "text",  # "13" or its host name; with the cluster it is one node
    "cpu": "integer",  # processor of the node; WHOLE_NODE for what is of all of it
    "job": "text",  # of the scheduler, or the id of the archive
    "started_s": "number",  # since the epoch, UTC
    "stratum": "text",  # hash of design, content, protocol and software
    "factor": "text",  # with its unit, such as mean_frequency_Hz
    "value": "number",  # SI; NaN unless the state is "done"
    "state": "text",
    "archive": "text",  # its id; empty for data from elsewhere
}
WHOLE_NODE = -1
#: Days are those of UTC.
DAY_S = 86_400.0
#: Absence is an observation: a job that failed, was aborted or left no value has its rows too.
STATES = ("done", "failed", "aborted", "missing")
MACHINE = ["cluster", "node", "cpu"]
Machine = tuple[str, str, int]
#: One row each.
KEY = [*MACHINE, "job", "factor"]


def check_values(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The table with its columns in order and of their kinds, in order of machine, factor, time and job.

    Raises InputError, with the first row at fault, where a column is missing or of another kind, a state is unknown, a
    value is there without the job being done or the reverse, a date is not finite, or rows have the same KEY.
    """
    import numpy as np
    import pandas as pd

    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise InputError(f"the table of factor values has no column {missing[0]}; it needs {', '.join(COLUMNS)}")
    table = pd.DataFrame(index=pd.RangeIndex(len(frame)))
    for name, kind in COLUMNS.items():
        column = frame[name].reset_index(drop=True)
        if kind == "text":
            table[name] = column.astype(str)
            _refuse(column.isna(), frame, name, "is empty")
            continue
        numbers = pd.to_numeric(column, errors="coerce")
        _refuse(numbers.isna() & column.notna(), frame, name, "is not a number")
        if kind == "integer":
            _refuse(~(np.isfinite(numbers) & (numbers == np.floor(numbers))), frame, name, "is not an integer")
            table[name] = numbers.astype(np.int64)
        else:
            table[name] = numbers.astype(np.float64)
    _refuse(table["cpu"] < WHOLE_NODE, frame, "cpu", f"is below {WHOLE_NODE}, which is the whole node")
    _refuse(~np.isfinite(table["started_s"]), frame, "started_s", "is not a date in seconds since 1970")
    _refuse(~table["state"].isin(STATES), frame, "state", f"is not one of {', '.join(STATES)}")
    done = table["state"] == "done"
    _refuse(done & ~np.isfinite(table["value"]), frame, "value", "is not finite, though the job is done")
    _refuse(~done & table["value"].notna(), frame, "value", "is there, though the job is not done")
    _refuse(table.duplicated(KEY), frame, "job", "has this factor of this processor in two rows")
    return table.sort_values([*MACHINE, "factor", "started_s", "job"], kind="stable", ignore_index=True)


def _refuse(faulty: "pd.Series[bool]", frame: "pd.DataFrame", column: str, what: str) -> None:
    if faulty.any():
        at = int(faulty.to_numpy().argmax())
        value = frame[column].iloc[at]
        more = f"; {int(faulty.sum()) - 1} more like it" if faulty.sum() > 1 else ""
        raise InputError(
            f"factor values, row {at + 1}: {column} {repr(value) if isinstance(value, str) else value} {what}{more}"
        )


def vectors(table: "pd.DataFrame", factors: "tuple[str, ...]") -> "pd.DataFrame":
    """One row a (machine, job) that has all `factors`: the columns of the key, and one column a factor.

    table : as check_values returns it. Rows that are not done are left out; the order is that of machine, time and job.
    Raises InputError where a factor occurs nowhere.
    """
    import numpy as np

    found = table[table["factor"].isin(factors) & (table["state"] == "done")]
    unknown = [factor for factor in factors if not (table["factor"] == factor).any()]
    if unknown:
        raise InputError(
            f"no row has the factor {unknown[0]!r}; there are {', '.join(sorted(table['factor'].unique())) or 'none'}"
        )
    index = [*MACHINE, "started_s", "job", "stratum", "archive"]
    if len(factors) == 1:
        wide = found[[*index, "value"]].rename(columns={"value": factors[0]})
    else:
        number = found.groupby(index, sort=False).ngroup().to_numpy()
        first = np.unique(number, return_index=True)[1]
        x = np.full((len(first), len(factors)), np.nan)
        for column, factor in enumerate(factors):
            rows = (found["factor"] == factor).to_numpy()
            x[number[rows], column] = found["value"].to_numpy()[rows]
        whole = ~np.isnan(x).any(axis=1)
        wide = found[index].iloc[first[whole]].reset_index(drop=True)
        for column, factor in enumerate(factors):
            wide[factor] = x[whole, column]
    return wide[[*index, *factors]].sort_values([*MACHINE, "started_s", "job"], kind="stable", ignore_index=True)


def day_of(time_s: float) -> dt.date:
    """The date of a moment, UTC."""
    return dt.datetime.fromtimestamp(float(time_s), dt.UTC).date()

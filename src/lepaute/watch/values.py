"""The table of factor values: one row a (machine, job, factor). Everything that is watched comes in this form.

A machine is a processor of a node, or a whole node (cpu -1). Rows are compared only within a stratum: what was measured
in another way (design, content, protocol, software) has another one.
"""

import datetime as dt
import time
import weakref
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.errors import InputError
from lepaute.watch.store.rows import row_keys
from lepaute.watch.store.tables import FACTOR_VALUES, STATES

#: Column -> its kind: text, integer or real. node: "13" or its host name, one node with the cluster; cpu: processor of
#: the node, or WHOLE_NODE; job: of the scheduler, or the id of the archive; started_s: since the epoch, UTC; stratum:
#: hash of design, content, protocol and software; factor: with its unit, such as mean_frequency_Hz; value: SI, NaN
#: unless the state is "done"; state: one of STATES; archive: its id, empty for data from elsewhere.
COLUMNS = FACTOR_VALUES.columns
WHOLE_NODE = -1
#: Days are those of UTC.
DAY_S = 86_400.0
NODE, MACHINE = ["cluster", "node"], ["cluster", "node", "cpu"]
Node = tuple[str, str]
Machine = tuple[str, str, int]
#: One row each.
KEY = [*MACHINE, "job", "factor"]
#: The table of a store that was found to be right last.
_checked: "weakref.ref[pd.DataFrame] | None" = None
Answer = TypeVar("Answer")


def _once(work: "Callable[[pd.DataFrame], Answer]") -> "Callable[[pd.DataFrame], Answer]":
    """Keeps the answers for tables that are packed as long as these are there: nobody changes them."""
    answers: dict[int, tuple[weakref.ref[pd.DataFrame], Answer]] = {}

    @wraps(work)
    def known(table: "pd.DataFrame") -> Answer:
        number = id(table)
        if number in answers and answers[number][0]() is table:
            return answers[number][1]
        answer = work(table)
        if is_packed(table["node"]):
            answers[number] = weakref.ref(table, lambda _: answers.pop(number, None)), answer
        return answer

    return known


def check_values(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The table with its columns in order and of their kinds, in order of machine, factor, time and job.

    Texts that are categories, as `Store.values` gives them where it is to pack them, stay categories.
    Raises InputError, with the first row at fault, where a column is missing or of another kind, a state is unknown, a
    value is there without the job being done or the reverse, a date is not finite, or rows have the same KEY.
    """
    global _checked  # noqa: PLW0603 -- of one table, which nobody changes
    if _checked is None or _checked() is not frame:
        frame = _check_values(frame)
        _checked = weakref.ref(frame) if is_packed(frame["job"]) else None
    return frame


def _check_values(frame: "pd.DataFrame") -> "pd.DataFrame":
    if missing := [name for name in COLUMNS if name not in frame]:
        raise InputError(f"the table of factor values has no column {missing[0]}; it needs {', '.join(COLUMNS)}")
    columns: dict[str, pd.Series[Any]] = {}
    for name, kind in COLUMNS.items():
        column = frame[name].reset_index(drop=True)
        if kind == "text":
            columns[name] = column if is_packed(column) else column.astype(str)
            _refuse(column.isna(), frame, name, "is empty")
            continue
        is_number = pd.api.types.is_any_real_numeric_dtype(column)
        numbers = column if is_number else pd.to_numeric(column, errors="coerce")
        _refuse(numbers.isna() & column.notna(), frame, name, "is not a number")
        if kind == "integer" and numbers.dtype.kind != "i":
            _refuse(~(np.isfinite(numbers) & (numbers == np.floor(numbers))), frame, name, "is not an integer")
        columns[name] = numbers.astype(np.int64 if kind == "integer" else np.float64)
    table = pd.DataFrame(columns, copy=False)
    _refuse(table["cpu"] < WHOLE_NODE, frame, "cpu", f"is below {WHOLE_NODE}, which is the whole node")
    _refuse(~np.isfinite(table["started_s"]), frame, "started_s", "is not a date in seconds since 1970")
    _refuse(~table["state"].isin(STATES), frame, "state", f"is not one of {', '.join(STATES)}")
    done = table["state"] == "done"
    _refuse(done & ~np.isfinite(table["value"]), frame, "value", "is not finite, though the job is done")
    _refuse(~done & table["value"].notna(), frame, "value", "is there, though the job is not done")
    if not _are_unique(row_keys(table, KEY)):
        _refuse(table.duplicated(KEY), frame, "job", "has this factor of this processor in two rows")
    series, job = row_keys(table, [*MACHINE, "factor"]), row_keys(table, ["job"])
    started_s = table["started_s"].to_numpy()
    next_series, same = series[1:] > series[:-1], series[1:] == series[:-1]
    later, at_once = started_s[1:] > started_s[:-1], started_s[1:] == started_s[:-1]
    if (next_series | (same & (later | (at_once & (job[1:] > job[:-1]))))).all():
        return table
    return table.iloc[np.lexsort((job, started_s, series))].reset_index(drop=True)


def _are_unique(keys: "npt.NDArray[np.int64]") -> bool:
    """Whether keys are unique: numbers from 0, most of them in a range of about as many."""
    if len(keys) and int(keys.max()) < 2 * len(keys):
        return int(np.bincount(keys).max()) < 2
    return len(np.unique(keys)) == len(keys)


def is_packed(column: "pd.Series[Any]") -> bool:
    """Whether it has categories in the order of texts."""
    return isinstance(column.dtype, pd.CategoricalDtype) and column.cat.categories.is_monotonic_increasing


def same_cells(a: "pd.Series[Any]", b: "pd.Series[Any]") -> bool:
    """Whether the cells are the same, one after the other."""
    if is_packed(a) and is_packed(b) and a.cat.categories.equals(b.cat.categories):
        a, b = a.cat.codes, b.cat.codes
    return np.array_equal(a, b)


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
    Raises InputError if a factor occurs nowhere.
    """
    places = _done_places(table)
    missing = (factor for factor in factors if factor not in places)
    if unknown := [factor for factor in missing if not (table["factor"] == factor).any()]:
        raise InputError(
            f"no row has the factor {unknown[0]!r}; there are {', '.join(sorted(table['factor'].unique())) or 'none'}"
        )
    index = [*MACHINE, "started_s", "job", "stratum", "archive"]
    chosen = np.concatenate([places.get(factor, np.zeros(0, np.int32)) for factor in factors])
    chosen = chosen if len(factors) == 1 else np.sort(chosen)
    columns = {name: table[name].array.take(chosen) for name in [*index, "value"]}
    if len(factors) == 1:
        # in order of machine, time and job, as the table is
        return pd.DataFrame({factors[0] if name == "value" else name: x for name, x in columns.items()}, copy=False)
    rows = pd.DataFrame(columns | {"factor": table["factor"].array.take(chosen)}, copy=False)
    number = rows.groupby(index, sort=False).ngroup().to_numpy()
    first = np.unique(number, return_index=True)[1]
    x = np.full((len(first), len(factors)), np.nan)
    for column, factor in enumerate(factors):
        mask = (rows["factor"] == factor).to_numpy()
        x[number[mask], column] = rows["value"].to_numpy()[mask]
    whole = ~np.isnan(x).any(axis=1)
    wide: pd.DataFrame = rows[index].iloc[first[whole]].reset_index(drop=True)
    for column, factor in enumerate(factors):
        wide[factor] = x[whole, column]
    return wide[[*index, *factors]].sort_values([*MACHINE, "started_s", "job"], kind="stable", ignore_index=True)


@_once
def _done_places(table: "pd.DataFrame") -> "dict[str, npt.NDArray[np.int32]]":
    """Where the rows of each factor that are done are, ascending; of factors that have any."""
    done = np.flatnonzero((table["state"] == "done").to_numpy(np.bool_)).astype(np.int32)
    codes, names = pd.factorize(table["factor"].take(done))
    places = done[np.argsort(codes, kind="stable")]
    return dict(zip(names, np.split(places, np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]), strict=False))


def parts_of(table: "pd.DataFrame", columns: list[str]) -> "Iterator[tuple[tuple[Any, ...], pd.DataFrame]]":
    """The rows of each combination of these columns, as `groupby` gives them; where there is one, without a copy."""
    key = row_keys(table, columns)
    if len(key) and key[0] >= 0 and (key == key[0]).all():
        yield tuple(table[columns].iloc[0]), table
    else:
        yield from table.groupby(columns, sort=True)


def nodes_of(table: "pd.DataFrame") -> list[Node]:
    """The (cluster, node) of its rows, each once."""
    return numbered_nodes(table)[1]


@_once
def numbered_nodes(table: "pd.DataFrame") -> "tuple[npt.NDArray[np.int64], list[Node]]":
    """The number of each row's node, and the (cluster, node) of each number, in the order in which they come."""
    number = in_turn(row_keys(table, NODE))
    first = np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))
    return number, list(table[NODE].iloc[first].itertuples(index=False, name=None))


def in_turn(keys: "npt.NDArray[np.int64]") -> "npt.NDArray[np.int64]":
    """Equal keys numbered from 0, in the order in which they come; shape (rows,)."""
    new = keys[1:] != keys[:-1]
    if (keys[1:] >= keys[:-1]).all():
        return np.concatenate([np.zeros(min(len(keys), 1), np.int64), np.cumsum(new)])
    return np.asarray(pd.factorize(keys)[0], np.int64)


def is_of(table: "pd.DataFrame", nodes: Collection[Node]) -> "npt.NDArray[np.bool_]":
    """Which rows are of these (cluster, node)."""
    found = np.zeros(len(table), np.bool_)
    for cluster in {cluster for cluster, _ in nodes}:
        own = [node for its_cluster, node in nodes if its_cluster == cluster]
        found |= (table["cluster"] == cluster).to_numpy(np.bool_) & table["node"].isin(own).to_numpy(np.bool_)
    return found


def day_of(time_s: float) -> dt.date:
    """The date of a moment, UTC."""
    return dt.datetime.fromtimestamp(float(time_s), dt.UTC).date()


def start_of(date: dt.date) -> float:
    """Its first moment, UTC, in seconds since the epoch."""
    return dt.datetime.combine(date, dt.time(), dt.UTC).timestamp()


def day_numbers(times_s: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
    """Days since 1970, UTC, of moments in seconds since the epoch."""
    return np.floor(np.asarray(times_s, np.float64) / DAY_S).astype(np.int64)


def refuse_future(started_s: float, job: str, name: str, remedy: str) -> None:
    """Raises InputError if a job of the file `name` starts more than a day after now.

    A day, because clocks differ and a date without a time zone may be of one that is ahead of UTC. Alarms judge a day
    once and in order, so a single date far ahead would leave all days before it unjudged.
    """
    now_s = time.time()
    if started_s > now_s + DAY_S:
        last_s = 253_402_300_799  # of the year 9999
        date, now = (
            f"{dt.datetime.fromtimestamp(min(int(moment_s), last_s), dt.UTC):%Y-%m-%d %H:%M}"
            for moment_s in (started_s, now_s)
        )
        raise InputError(
            f"{name}: job {job[:40]} starts in the future, at {date} UTC, and by this machine's clock it is {now} UTC; "
            f"{remedy}, or set the clock of this machine"
        )


@_once
def backward_jobs(table: "pd.DataFrame") -> "npt.NDArray[np.bool_]":
    """Which rows of a table of factor values (`check_values`) have a date that their number contradicts; shape (rows,).

    Schedulers number jobs in the order of their submission, and on one node they run in about that order. As many jobs
    of a node as possible are taken for right: the longest series in which dates rise with numbers. The others are at
    fault, if they are out of order by more than a day, and so are those that they contradict where these are not more
    than twice as many: a clock that was set back by a month leaves two months of which nobody knows which is right.
    Jobs without a number, such as archives, have no order.
    """
    numbered = table["job"].str.fullmatch(r"[0-9]{1,18}").to_numpy(np.bool_)
    first = ~pd.Series(row_keys(table, [*NODE, "job"])).duplicated().to_numpy(np.bool_)
    jobs = table[[*NODE, "job", "started_s"]].take(np.flatnonzero(first & numbered))
    number = jobs["job"].astype(str).astype(np.int64).to_numpy()
    of_node = jobs.groupby(["cluster", "node"], sort=False).ngroup().to_numpy()
    order = np.lexsort((number, of_node))
    starts = np.flatnonzero(np.diff(of_node[order], prepend=-1))
    wrong = np.zeros(len(jobs), np.bool_)
    for rows in np.split(order, starts[1:]) if len(order) else []:
        started = jobs["started_s"].to_numpy(np.float64)[rows]
        if not (started[1:] >= np.maximum.accumulate(started)[:-1] - DAY_S).all():
            wrong[rows[_out_of_order(started)]] = True
    return is_of_job(table, zip(*(jobs.loc[wrong, name] for name in ("cluster", "node", "job")), strict=True))


def is_of_job(table: "pd.DataFrame", jobs: Iterable[tuple[str, str, str]]) -> "npt.NDArray[np.bool_]":
    """Which rows of a table are of these (cluster, node, job)."""
    every = set(jobs)
    found = table["job"].isin({job for *_, job in every}).to_numpy(np.bool_, copy=True)
    some = table.loc[found, ["cluster", "node", "job"]]
    found[found] = [key in every for key in some.itertuples(index=False, name=None)]
    return found


def _out_of_order(started: "npt.NDArray[np.float64]") -> list[int]:
    """Positions off the longest non-decreasing subsequence by more than a day, and those in doubt for them."""
    tails: list[float] = []
    ends: list[int] = []
    previous = np.full(len(started), -1, np.int64)
    for position, value in enumerate(started):
        place = bisect_right(tails, float(value))
        previous[position] = ends[place - 1] if place else -1
        if place == len(tails):
            tails.append(float(value))
            ends.append(position)
        else:
            tails[place], ends[place] = float(value), position
    kept = np.zeros(len(started), np.bool_)
    position = ends[-1]
    while position >= 0:
        kept[position] = True
        position = int(previous[position])
    wrong = []
    doubtful = np.zeros(len(started), np.bool_)
    places = np.arange(len(started))
    for position in np.flatnonzero(~kept).tolist():
        late = (places < position) & (started > started[position] + DAY_S)
        early = (places > position) & (started < started[position] - DAY_S)
        contradicted = kept & (late | early)
        if contradicted.any():
            wrong.append(position)
            doubtful |= contradicted
    if int(doubtful.sum()) <= 2 * len(wrong):
        wrong += np.flatnonzero(doubtful).tolist()
    return wrong

"""Tests of what a store holds: those that are recorded are read, the others made and recorded."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.judge import AND, compared, joined
from lepaute.watch.judging.reference import digest_texts, digests_in, digests_of
from lepaute.watch.store import Store
from lepaute.watch.store.rows import row_keys
from lepaute.watch.store.tables import VERDICTS
from lepaute.watch.values import DAY_S, MACHINE, check_values, is_packed, vectors

#: Version of the rule by which verdicts are given, by itself and pooled; another rule gives other verdicts.
RULES = {False: "region 1", True: "shared days 1"}
#: A cluster and a vector of its factors.
Vector = tuple[str, tuple[str, ...]]
#: So many new verdicts are recorded in one change.
ROWS_AT_ONCE = 50_000
_NUMBERS = {
    name: "int64" if kind == "integer" else "float64"
    for name, kind in VERDICTS.columns.items()
    if kind in ("integer", "real")
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests; None: all. record : whether new verdicts are recorded (`vector_tests`). The rest as in `judge`.

    columns : of the verdicts that are given, all by default
    values : those of the store, of these nodes and dates at least, as `check_values` gives them; read by default
    """

    nodes: Collection[str] | None
    windows: Sequence[int]
    confidence: float
    pooled: bool
    since_s: float | None
    until_s: float | None
    record: bool = True
    standing: "pd.DataFrame | None" = None
    columns: Sequence[str] | None = None
    values: "pd.DataFrame | None" = None


def vector_tests(
    store: Store,
    changelog: Changelog,
    cases: Sequence[Vector],
    selection: Selection,
    since_s: Mapping[Vector, float] | None = None,
) -> "Iterator[pd.DataFrame | None]":
    """For each of the cases, a vector of factors in a cluster, its verdicts in all windows; None if it has no job.

    since_s : when the first job of a case began that is asked about, where earlier ones are known
    Raises InputError if no case has any job.
    """
    new: list[pd.DataFrame] = []
    begin_s = since_s or {}
    without_jobs = not since_s
    is_late = len(begin_s) > 0 and begin_s.keys() >= {*cases}  # few verdicts: one query
    there = _recorded(store, replace(selection, since_s=min(begin_s.values()))) if is_late else None

    def record(made: "pd.DataFrame | None" = None) -> None:
        """Adds all that is new; where there is a part more, only once it is much."""
        new.extend([] if made is None else [made])
        if new and (made is None or sum(map(len, new)) >= ROWS_AT_ONCE):
            rows = joined(new)
            new.clear()
            store.add_verdicts(rows)

    try:
        for case in cases:
            part = replace(selection, since_s=begin_s.get(case, selection.since_s))
            parts = recorded_tests(store, changelog, *case, part, record, there)
            without_jobs &= not parts
            yield joined(parts) if parts else None
    finally:
        record()
    if without_jobs:
        raise InputError("no job has all of the factors of a vector; there is nothing to test")


def recorded_tests(
    store: Store,
    changelog: Changelog,
    cluster: str,
    names: tuple[str, ...],
    selection: Selection,
    record: "Callable[[pd.DataFrame], None] | None" = None,
    known: "pd.DataFrame | None" = None,
) -> "list[pd.DataFrame]":
    """The verdicts of a vector of factors in a cluster, a table with the columns of VERDICTS for each window.

    A verdict that is recorded with today's basis is read, any other is made, for `record`. Only the values that the
    verdicts rest on are read. known : the recorded verdicts, of others, too (`_recorded`); read by default
    """
    values = _values_of(store, changelog, cluster, names, selection)
    if not all((values["factor"] == name).any() for name in names):
        return []
    case = compared(vectors(values, names), changelog, names, selection.pooled, selection.standing)
    del values
    chosen = np.flatnonzero(_chosen(case.keys, selection))
    if not len(chosen):
        return []
    keys = case.keys[[*MACHINE, "job"]].iloc[chosen]
    columns, name = list(selection.columns or VERDICTS.columns), AND.join(names)
    parts = []
    for r in dict.fromkeys(selection.windows):
        basis = digests_of(case.digest[chosen], f"{RULES[selection.pooled]}, {selection.confidence!r}")
        if known is None:
            there = _recorded(store, selection, cluster=cluster, factors=[name], r=r)
        else:
            there = known[(known["cluster"] == cluster) & (known["factor"] == name) & (known["r"] == r)]
            there = there.assign(factor=there["factor"].cat.remove_unused_categories())
        recorded = _positions(keys, basis, there)
        is_new = recorded < 0
        which = np.zeros(len(case.keys), np.bool_)
        which[chosen[is_new]] = True
        made = case.tests(r, selection.confidence, which)
        same_factor = pd.Categorical.from_codes(np.zeros(len(made), np.int8), pd.Index([name], dtype="str"))
        texts = {"factor": same_factor, "basis": pd.array(digest_texts(basis[is_new]), dtype="str")}
        made = made.assign(**texts, judged_s=time.time())
        made = made[list(VERDICTS.columns)].astype(_NUMBERS)
        if len(made) and selection.record and record is not None:
            record(made)
        parts.append(_together(made[columns], _packed_alike(there[columns], case.keys), recorded))
        del made, there
    return parts


def _recorded(store: Store, selection: Selection, **of: Any) -> "pd.DataFrame":
    """Recorded verdicts of the selection; of : further conditions of `Store.verdicts`."""
    columns = dict.fromkeys([*MACHINE, "job", "factor", "r", "basis", *(selection.columns or VERDICTS.columns)])
    of |= {"nodes": selection.nodes, "since_s": selection.since_s, "until_s": selection.until_s}
    return store.verdicts(pooled=selection.pooled, columns=list(columns), **of)


def _packed_alike(there: "pd.DataFrame", keys: "pd.DataFrame") -> "pd.DataFrame":
    """The rows with the categories of the keys."""
    alike = {}
    for name in keys.columns.intersection(there.columns):
        if is_packed(keys[name]) and is_packed(there[name]):
            alike[name] = there[name].cat.set_categories(keys[name].cat.categories)
    return there.assign(**alike)


def _values_of(
    store: Store, changelog: Changelog, cluster: str, names: tuple[str, ...], selection: Selection
) -> "pd.DataFrame":
    """The values of the factors, and maybe others, as far as the verdicts rest on them."""
    # what a day did to all is told by all
    nodes = None if selection.pooled else selection.nodes
    if selection.values is not None:
        every = selection.values
        needed = every["cluster"] == cluster
        if nodes is not None:
            needed &= every["node"].isin(list(nodes))
        return every if needed.all() else every[needed]
    ends_s = selection.until_s
    if selection.pooled and ends_s is not None:  # the whole day
        ends_s = float(np.ceil(ends_s / DAY_S) * DAY_S)
    since_s = _first_needed_s(store, changelog, cluster, selection)
    found = store.values(cluster=cluster, factors=names, nodes=nodes, since_s=since_s, until_s=ends_s, packed=True)
    return check_values(found[found["state"] == "done"])


def _together(made: "pd.DataFrame", there: "pd.DataFrame", recorded: "npt.NDArray[np.int64]") -> "pd.DataFrame":
    """New and recorded verdicts in the order of the observations."""
    old = recorded >= 0
    if not old.any():
        return made
    if old.all():
        return there.iloc[recorded].reset_index(drop=True)
    place = np.empty(len(recorded), np.int64)
    place[~old] = np.arange(len(made))
    place[old] = len(made) + recorded[old]
    return pd.concat([made, there], ignore_index=True).iloc[place].reset_index(drop=True)


def _positions(keys: "pd.DataFrame", basis: "npt.NDArray[np.uint64]", there: "pd.DataFrame") -> "npt.NDArray[np.int64]":
    """For each of the keys the row that has it and the basis, -1 without."""
    if not len(there):
        return np.full(len(keys), -1)
    # one numbering for both
    names = list(keys.columns)
    both = pd.concat([keys, _packed_alike(there[names], keys)], ignore_index=True)
    both["basis"] = pd.factorize(np.concatenate([basis, digests_in(there["basis"].to_list())]))[0]
    number = row_keys(both, [*names, "basis"])
    own, others = number[: len(keys)], number[len(keys) :]
    order = np.argsort(others, kind="stable")
    places = order[np.minimum(np.searchsorted(others[order], own), len(order) - 1)]
    return np.where(others[places] == own, places, -1)


def _chosen(keys: "pd.DataFrame", selection: Selection) -> "npt.NDArray[np.bool_]":
    chosen = np.ones(len(keys), np.bool_)
    if selection.nodes is not None:
        chosen &= keys["node"].isin(list(selection.nodes)).to_numpy()
    started_s = keys["started_s"].to_numpy()
    if selection.since_s is not None:
        chosen &= started_s >= selection.since_s
    if selection.until_s is not None:
        chosen &= started_s < selection.until_s
    return chosen


def _first_needed_s(store: Store, changelog: Changelog, cluster: str, selection: Selection) -> float | None:
    """The earliest event after which a reference of what is asked for begins."""
    if selection.since_s is None or selection.pooled or not changelog.events:
        return None
    resets = changelog.resets_s((cluster, node) for node in selection.nodes or store.nodes(cluster))
    begins = [max((s for s in each if s <= selection.since_s), default=None) for each in resets.values()]
    return None if None in begins else min((s for s in begins if s is not None), default=None)


def factors_to_test(store: Store, factors: "Sequence[tuple[str, ...]] | None") -> list[Vector]:
    """Each cluster with each of the vectors of factors asked for that it has; every factor by itself by default.

    Raises InputError for a factor that no cluster has, and where there are none at all.
    """
    there = store.factors()
    if there.empty:
        raise InputError("there is nothing to test: the store has no factor values; ingest some first")
    every = set(there["factor"])
    for name in (name for names in factors or () for name in names):
        if name not in every:
            raise InputError(f"no row has the factor {name!r}; there are {', '.join(sorted(every))}")
    cases: list[Vector] = []
    for cluster, part in there.groupby("cluster", sort=True):
        names = set(part["factor"])
        single: list[tuple[str, ...]] = [(name,) for name in sorted(names)]
        vectors = single if factors is None else factors
        cases += [(str(cluster), vector) for vector in vectors if set(vector) <= names]
    return cases

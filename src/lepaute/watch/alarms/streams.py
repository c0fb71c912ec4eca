"""The table of factor values as streams: one a machine, factor and stratum, a value a round; and where they begin anew.

Values of one stream on one day (UTC) are in successive rounds, in order of time; a round has the k-th value of that day
of each stream. Rows that are not done, and logged outliers, are not part of a stream.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.stats.expanding import Floats, Integers
from lepaute.watch.changelog import Changelog
from lepaute.watch.values import DAY_S, MACHINE

if TYPE_CHECKING:
    import pandas as pd

STREAM = [*MACHINE, "factor", "stratum"]


@dataclass(frozen=True, slots=True)
class Streams:
    """keys    : a row a stream, columns STREAM, in their order
    group   : shape (streams,), the same number for the machines of a cluster, factor and stratum
    values  : shape (rounds, streams), NaN where there is none
    day     : of each round, days since 1970, ascending, shape (rounds,)
    times_s : shape (rounds, streams), when the value was measured, NaN where there is none
    archive : position of the archive's id in `archives`, -1 where there is no value, shape (rounds, streams)
    resets  : of each stream, the days on which an event begins its reference anew, ascending
    """

    keys: "pd.DataFrame"
    group: Integers
    values: Floats
    day: Integers
    times_s: Floats
    archive: Integers
    archives: tuple[str, ...]
    resets: tuple[tuple[int, ...], ...]


def streams_of(table: "pd.DataFrame", changelog: Changelog) -> Streams:
    """The streams of a table as `check_values` returns it."""
    import pandas as pd

    nodes = list(table[["cluster", "node"]].drop_duplicates().itertuples(index=False, name=None))
    done = table[table["state"] == "done"]
    if jobs := changelog.outlying_jobs(nodes):
        outlying = pd.MultiIndex.from_frame(done[["cluster", "node", "job"]]).isin(list(jobs))
        done = done[~outlying]
    # in order of machine, factor, time and job; of strata, one machine may have several
    number = done.groupby(STREAM, sort=False).ngroup().to_numpy().astype(np.int64)
    order = np.argsort(number, kind="stable")
    done, number = done.iloc[order], number[order]
    days = np.floor(done["started_s"].to_numpy(np.float64) / DAY_S).astype(np.int64)
    first = np.flatnonzero(np.diff(number, prepend=-1) | np.diff(days, prepend=0))
    place_of_first = np.zeros(len(done), np.int64)
    place_of_first[first] = first
    turn = np.arange(len(done)) - np.maximum.accumulate(place_of_first)
    turns = int(turn.max(initial=0)) + 1
    rounds, at = np.unique(days * turns + turn, return_inverse=True)
    keys = done[STREAM].iloc[np.unique(number, return_index=True)[1]].reset_index(drop=True)
    shape = (len(rounds), len(keys))
    values, times = np.full(shape, np.nan), np.full(shape, np.nan)
    archive = np.full(shape, -1, np.int64)
    codes, archives = pd.factorize(done["archive"])
    values[at, number], times[at, number] = done["value"], done["started_s"]
    archive[at, number] = codes
    group = keys.groupby(["cluster", "factor", "stratum"], sort=False).ngroup().to_numpy().astype(np.int64)
    of_node = {
        node: tuple(int(reset // DAY_S) for reset in resets) for node, resets in changelog.resets_s(nodes).items()
    }
    resets = tuple(of_node[node] for node in keys[["cluster", "node"]].itertuples(index=False, name=None))
    return Streams(keys, group, values, rounds // turns, times, archive, tuple(archives), resets)

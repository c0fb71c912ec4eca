"""What an observation is compared with: those of its machine and stratum since the last event that touches the node.

Outliers are tested, but are never part of a reference. What a verdict rests on, the observations, events and outliers
that made it so, is also told as a number, its digest.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.watch.alarms.standing import concerned
from lepaute.watch.changelog import Changelog
from lepaute.watch.store.rows import row_keys
from lepaute.watch.values import MACHINE, in_turn, numbered_nodes, same_cells

Digests = npt.NDArray[np.uint64]
JOB = [*MACHINE, "started_s", "job", "stratum"]
_latest: "tuple[References, Changelog] | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class References:
    """For each observation, shape (rows,).

    jobs    : whose it is, a row each with the columns of JOB
    series  : a number for each machine, stratum and stretch between events: only within it is anything compared
    outlier : logged as one
    begin_s, end_s : of the stretch, shape (series,): from the event at its beginning to the next; -inf and inf without
    """

    jobs: pd.DataFrame
    series: Integers
    outlier: Booleans
    begin_s: Floats
    end_s: Floats


@dataclass(frozen=True, slots=True)
class Frozen:
    """References that end where a regression began, as long as it is open; shape (rows,).

    most : values that the reference of the observation has at most; begun_s : when the regression began, inf without
    """

    most: Integers
    begun_s: Floats


def frozen(
    observations: pd.DataFrame, refs: References, factors: Sequence[str], standing: pd.DataFrame | None
) -> Frozen:
    """standing : rows of `open_regressions`, of which those of the factors count."""
    begun_s = np.full(len(observations), np.inf)
    if standing is not None and len(standing):
        for row in standing[standing["factor"].isin(factors)].to_dict("records"):
            mine = concerned(observations, row)
            # one that an event ended is not open
            mine &= refs.end_s[refs.series] > row["changed_s"]
            mine &= refs.begin_s[refs.series] <= row["changed_s"]
            begun_s[mine.to_numpy()] = np.minimum(begun_s[mine.to_numpy()], row["changed_s"])
    before = ~refs.outlier & (observations["started_s"].to_numpy(np.float64) < begun_s)
    return Frozen(np.bincount(refs.series, before, minlength=len(refs.begin_s)).astype(np.int64)[refs.series], begun_s)


def references(observations: pd.DataFrame, changelog: Changelog) -> References:
    """The series of observations, a table with the columns of JOB, in which factors of the same jobs are the same.

    An event counts from 00:00 UTC of its date, itself included.
    """
    global _latest  # noqa: PLW0603 -- factors are asked about in turn, and most have the same jobs
    if _latest is None or _latest[1] != changelog or not _are_equal(_latest[0].jobs, observations):
        _latest = _references(observations[JOB], changelog), changelog
    return _latest[0]


def _are_equal(jobs: pd.DataFrame, observations: pd.DataFrame) -> bool:
    """Whether the observations are of these jobs; False for texts that are not packed, which take long to compare."""
    columns = [(jobs[name], observations[name]) for name in JOB]
    return all(a.dtype == b.dtype and a.dtype != "str" for a, b in columns) and all(
        same_cells(*each) for each in columns
    )


def _references(observations: pd.DataFrame, changelog: Changelog) -> References:
    node, nodes = numbered_nodes(observations)
    resets_s = changelog.resets_s(nodes)
    started_s = observations["started_s"].to_numpy(np.float64)
    stretch: Integers = np.zeros(len(observations), np.int64)
    begin_s, end_s = np.full(len(observations), -np.inf), np.full(len(observations), np.inf)
    order = np.argsort(node, kind="stable")
    ends = np.cumsum(np.bincount(node, minlength=len(nodes)))
    for number, name in enumerate(nodes):
        rows = order[ends[number - 1] if number else 0 : ends[number]]
        bounds = np.array([-np.inf, *resets_s[name], np.inf])
        stretch[rows] = np.searchsorted(bounds, started_s[rows], side="right") - 1
        begin_s[rows], end_s[rows] = bounds[stretch[rows]], bounds[stretch[rows] + 1]
    keys = observations[[*MACHINE, "stratum"]].assign(stretch=stretch)
    series = in_turn(row_keys(keys, [*MACHINE, "stratum", "stretch"]))
    first = np.flatnonzero(np.diff(np.maximum.accumulate(series), prepend=-1))
    return References(observations, series, changelog.is_outlier(observations), begin_s[first], end_s[first])


@lru_cache(maxsize=1)
def machine_digests(refs: References) -> Digests:
    """Digest of each observation, with what it is compared with: the kept ones before it in its series, shape (rows,).

    Two observations have the same digest if job, date, beginning of the stretch and being an outlier are the same for
    all of them. Values need not be told: in a store they never change.
    """
    observations = refs.jobs
    job = _mixed(_text_hashes(observations["job"]) ^ _bits(observations["started_s"].to_numpy(np.float64)))
    order = np.argsort(refs.series, kind="stable")
    kept = np.where(refs.outlier, np.uint64(0), job)[order]
    before = np.cumsum(kept, dtype=np.uint64) - kept
    begin = np.unique(refs.series[order], return_index=True)[1]
    digest: Digests = np.empty(len(observations), np.uint64)
    digest[order] = before - before[begin][refs.series[order]]
    return _mixed(digest + _own(job, refs)) ^ _mixed(_bits(refs.begin_s[refs.series]) + np.uint64(1))


def group_digests(refs: References, group: Integers, day: Integers) -> Digests:
    """As machine_digests; what an observation is compared with is all of its group up to its day."""
    observations = refs.jobs
    machine = _text_hashes(observations["cluster"]) ^ _mixed(_text_hashes(observations["node"]))
    machine = _mixed(machine + observations["cpu"].to_numpy(np.int64).astype(np.uint64))
    job = _text_hashes(observations["job"]) ^ _bits(observations["started_s"].to_numpy(np.float64))
    each = _mixed(_mixed(job) ^ machine ^ _mixed(_bits(refs.begin_s[refs.series]) + np.uint64(1)))
    order = np.lexsort((day, group))
    sums = np.cumsum(np.where(refs.outlier, np.uint64(0), each)[order], dtype=np.uint64)
    new_group = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.concatenate([[np.uint64(0)], sums])[new_group]
    # up to the last one of the same group and day
    last = np.flatnonzero((np.diff(group[order], append=-1) != 0) | (np.diff(day[order], append=-1) != 0))
    which = np.searchsorted(last, np.arange(len(order)))
    digest: Digests = np.empty(len(observations), np.uint64)
    digest[order] = sums[last[which]] - before[np.searchsorted(new_group, np.arange(len(order)), side="right") - 1]
    return _mixed(digest + _own(each, refs))


def with_beginnings(digest: Digests, observations: pd.DataFrame, begun_s: Floats) -> Digests:
    """The same with when the open regression began that an observation is part of, shape (rows,), inf without."""
    inside = observations["started_s"].to_numpy(np.float64) >= begun_s
    return np.where(inside, _mixed(digest + _mixed(_bits(begun_s) + np.uint64(3))), digest)


def _own(each: Digests, refs: References) -> Digests:
    return np.where(refs.outlier, _mixed(each + np.uint64(2)), each)


def _text_hashes(texts: "pd.Series[str]") -> Digests:
    codes, names = texts.factorize()
    hashes = [int.from_bytes(hashlib.blake2b(str(name).encode(), digest_size=8).digest(), "big") for name in names]
    digests: Digests = np.array(hashes, np.uint64)[codes]
    return digests


def _bits(numbers: Floats) -> Digests:
    return _mixed((numbers + 0.0).view(np.uint64))


def _mixed(x: Digests) -> Digests:
    """A bijection after which sums collide by chance only (Steele, Lea & Flood, SplitMix, OOPSLA 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def digests_of(digests: Digests, settings: str) -> Digests:
    """Each digest combined with the settings."""
    settings_hash = np.frombuffer(hashlib.blake2b(settings.encode(), digest_size=8).digest(), ">u8").astype(np.uint64)
    return _mixed(digests ^ settings_hash)


def digests_in(texts: Sequence[str]) -> Digests:
    """The digests of `digest_texts`, shape (texts,)."""
    letters = np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), 16)
    digits = np.where(letters > ord("9"), letters - (ord("a") - 10), letters - ord("0"))
    return np.ascontiguousarray(digits[:, ::2] * 16 + digits[:, 1::2]).view(">u8")[:, 0].astype(np.uint64)


def digest_texts(digests: Digests) -> npt.NDArray[np.str_]:
    """16 hexadecimal digits each."""
    pairs = np.array([f"{byte:02x}" for byte in range(256)])
    return pairs[np.ascontiguousarray(digests.astype(">u8")).view(np.uint8).reshape(-1, 8)].view("U16").reshape(-1)

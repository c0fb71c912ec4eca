"""What a verdict rests on, as a number: the observations, events and outliers that made it so."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lepaute.stats.expanding import Floats, Integers
from lepaute.watch.judging.reference import References

if TYPE_CHECKING:
    import pandas as pd

Digests = npt.NDArray[np.uint64]


def machine_digests(observations: "pd.DataFrame", found: References) -> Digests:
    """Of each observation, with what it is compared with: the kept ones before it in its series, shape (rows,).

    Two observations have the same digest if job, date, beginning of the stretch and being an outlier are the same for
    all of them. Values need not be told: in a store they never change.
    """
    job = _mixed(_text_hashes(observations["job"]) ^ _bits(observations["started_s"].to_numpy(np.float64)))
    order = np.argsort(found.series, kind="stable")
    kept = np.where(found.outlier, np.uint64(0), job)[order]
    before = np.cumsum(kept, dtype=np.uint64) - kept
    begin = np.unique(found.series[order], return_index=True)[1]
    digest: Digests = np.empty(len(observations), np.uint64)
    digest[order] = before - before[begin][found.series[order]]
    return _mixed(digest + _own(job, found)) ^ _mixed(_bits(found.begin_s[found.series]) + np.uint64(1))


def group_digests(observations: "pd.DataFrame", found: References, group: Integers, day: Integers) -> Digests:
    """As machine_digests; what an observation is compared with is all of its group up to its day."""
    machine = _text_hashes(observations["cluster"]) ^ _mixed(_text_hashes(observations["node"]))
    machine = _mixed(machine + observations["cpu"].to_numpy(np.int64).astype(np.uint64))
    job = _text_hashes(observations["job"]) ^ _bits(observations["started_s"].to_numpy(np.float64))
    each = _mixed(_mixed(job) ^ machine ^ _mixed(_bits(found.begin_s[found.series]) + np.uint64(1)))
    order = np.lexsort((day, group))
    sums = np.cumsum(np.where(found.outlier, np.uint64(0), each)[order], dtype=np.uint64)
    new_group = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.concatenate([[np.uint64(0)], sums])[new_group]
    # up to the last one of the same group and day
    last = np.flatnonzero((np.diff(group[order], append=-1) != 0) | (np.diff(day[order], append=-1) != 0))
    which = np.searchsorted(last, np.arange(len(order)))
    digest: Digests = np.empty(len(observations), np.uint64)
    digest[order] = sums[last[which]] - before[np.searchsorted(new_group, np.arange(len(order)), side="right") - 1]
    return _mixed(digest + _own(each, found))


def with_beginnings(digest: Digests, observations: "pd.DataFrame", begun_s: Floats) -> Digests:
    """The same with when the open regression began that an observation is part of, shape (rows,), inf without."""
    inside = observations["started_s"].to_numpy(np.float64) >= begun_s
    return np.where(inside, _mixed(digest + _mixed(_bits(begun_s) + np.uint64(3))), digest)


def _own(each: Digests, found: References) -> Digests:
    return np.where(found.outlier, _mixed(each + np.uint64(2)), each)


def _text_hashes(texts: "pd.Series[str]") -> Digests:
    codes, names = texts.factorize()
    hashes = [int.from_bytes(hashlib.blake2b(str(name).encode(), digest_size=8).digest(), "big") for name in names]
    found: Digests = np.array(hashes, np.uint64)[codes]
    return found


def _bits(numbers: Floats) -> Digests:
    return _mixed((numbers + 0.0).view(np.uint64))


def _mixed(x: Digests) -> Digests:
    """A bijection after which sums collide by chance only (Steele, Lea & Flood, SplitMix, OOPSLA 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Digests = x ^ (x >> np.uint64(31))
    return mixed


def digest_texts(digests: Digests, settings: str) -> npt.NDArray[np.object_]:
    """16 hexadecimal digits each, of the digests and the settings."""
    settings_hash = np.frombuffer(hashlib.blake2b(settings.encode(), digest_size=8).digest(), ">u8").astype(np.uint64)
    return np.array([f"{each:016x}" for each in _mixed(digests ^ settings_hash).tolist()], dtype=object)

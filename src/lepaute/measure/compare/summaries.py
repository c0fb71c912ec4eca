"""From the calls of campaigns to one value for each mpirun and row of a comparison: an operation, in a form, of a size.

Calls of an mpirun resemble each other more than those of another one (Hunold & Carpen-Amarie, "MPI Benchmarking
Revisited", section 5.2), so the mpirun is the unit that tests count. Its calls are collapsed after the fact, with and
without those beyond Tukey's fences (section 3.5); both stay in the table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from lepaute.errors import InputError
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.archive.mpi_campaign import CampaignFacts, LibraryFacts
from lepaute.measure.comparison.cases import BLOCKING, COLLECTIVES
from lepaute.simulate.apps.replay.collectives import LIBRARIES, OPENMPI, MeasuredCall, MeasuredCalls

if TYPE_CHECKING:
    from pandas.core.groupby import SeriesGroupBy

#: Operations that are no subject of a comparison.
NO_SUBJECT = "none"
#: What a row of the comparison is, and the columns that name an mpirun.
ROW = ("operation", "form", "size_bytes")
MPIRUN = ("library", "block", "mpirun")
#: Tukey's fences lie this many interquartile ranges outside the quartiles.
FENCE = 1.5
#: Operations of which all ranks give a part of one vector, of which a campaign's size is a part.
_OF_PARTS = ("reduce_scatter", "reduce_scatter_block")
_CODES = {"exscan": "scan", "alltoallw": "alltoallv"}
#: A call that takes more than this many medians of its mpirun is slow: what a median does not show.
SLOW = 3.0


def mpirun_summaries(calls: pandas.DataFrame, duration: str = "duration_s") -> pandas.DataFrame:
    """Medians and means of the calls of each mpirun, in seconds, one row for each of them and each row of ROW.

    calls    : columns MPIRUN, ROW and `duration`; one row a call, those to warm up left out
    duration : the column that holds a call's run-time, seconds; calls without one (NaN) are left out
    Columns of the result: MPIRUN, ROW, calls, calls_inside (the fences), median_s, mean_s of those inside, and
    median_all_s, mean_all_s, p90_s, p99_s of all calls, slow_share of those that take more than SLOW medians.
    """
    keys = [*MPIRUN, *ROW]
    known = calls.loc[calls[duration].notna(), [*keys, duration]]
    low, high = _tukey_fences(known.groupby(keys, observed=True)[duration])
    inside = known[(known[duration] >= low) & (known[duration] <= high)]
    every = known.groupby(keys, observed=True)[duration].agg(["size", "median", "mean"])
    kept = inside.groupby(keys, observed=True)[duration].agg(["size", "median", "mean"])
    kept.columns = ["calls_inside", "median_s", "mean_s"]
    every.columns = ["calls", "median_all_s", "mean_all_s"]
    table = kept.join(every)
    groups = known.groupby(keys, observed=True)[duration]
    table["p90_s"], table["p99_s"] = groups.quantile(0.9), groups.quantile(0.99)
    slow = known[duration] > SLOW * groups.transform("median")
    table["slow_share"] = slow.groupby([known[key] for key in keys], observed=True).mean()
    columns = [
        *("calls", "calls_inside", "median_s", "mean_s"),
        *("median_all_s", "mean_all_s", "p90_s", "p99_s", "slow_share"),
    ]
    return table[columns].reset_index()


def without_levels(summaries: pandas.DataFrame) -> pandas.DataFrame:
    """With medians whose geometric mean of each session (column `session`) is that of all: what is left is inside."""
    keys = [summaries[name] for name in ("library", *ROW)]
    logs = np.log(summaries["median_s"])
    level = logs.groupby([*keys, summaries["session"]], observed=True).transform("mean")
    return summaries.assign(median_s=np.exp(logs - level + level.groupby(keys, observed=True).transform("mean")))


def _tukey_fences(groups: "SeriesGroupBy[Any, Any]") -> "tuple[pandas.Series, pandas.Series]":
    """The lower and the upper fence of each value's group: quartiles less and plus FENCE interquartile ranges."""
    first, third = groups.transform("quantile", 0.25), groups.transform("quantile", 0.75)
    reach = FENCE * (third - first)
    return first - reach, third + reach


def choose_ranks(facts: Sequence[CampaignFacts], ranks: int | None) -> int:
    """The number of ranks that is meant; raises InputError if it is not one that every campaign has."""
    if len(numbers := {about.all_ranks for about in facts}) > 1:
        words = " and ".join(", ".join(map(str, counts)) for counts in sorted(numbers))
        raise InputError(f"the campaigns have {words} ranks; only campaigns of equally many ranks can be compared")
    (known,) = numbers
    counts = ", ".join(map(str, known))
    if ranks is None and len(known) > 1:
        raise InputError(f"the campaign has {counts} ranks; choose one of these, or compare.by_ranks()")
    if ranks is not None and ranks not in known:
        raise InputError(f"ranks is {ranks!r}; the campaign has {counts}")
    return known[-1] if ranks is None else ranks


def shared_labels(facts: Sequence[CampaignFacts]) -> tuple[str, ...]:
    """The libraries that every campaign has, in the order of the first one."""
    return tuple(label for label in facts[0].labels if all(label in about.labels for about in facts))


def join_campaigns(
    campaigns: Sequence[Archive], facts: Sequence[CampaignFacts], same: Sequence[str]
) -> tuple[list[str], pandas.DataFrame, dict[str, LibraryFacts], list[dict[str, str]]]:
    """Labels, calls and facts of all libraries, and names by label; labels of two campaigns get that of the archive.

    same: labels that are the same library in every campaign, a session each, and all that counts there
    """
    shared = set() if same or len(campaigns) == 1 else set(shared_labels(facts))
    sides = [one.path.stem for one in campaigns]
    if shared and sides[0] == sides[1]:
        sides = ["left", "right"]
    every, tables, names_of_each, mpiruns, blocks = [], [], [], 0, 0
    libraries: dict[str, LibraryFacts] = {}
    for number, (campaign, about, side) in enumerate(zip(campaigns, facts, sides, strict=True)):
        names = {label: f"{label} ({side})" if label in shared else label for label in about.labels}
        table = _calls(campaign)
        table = table.assign(
            library=table["library"].map(names).fillna(table["library"]),
            mpirun=table["mpirun"] + mpiruns,
            block=table["block"] + blocks,
            campaign=number,
        )
        if len(table):
            mpiruns, blocks = int(table["mpirun"].max()) + 1, int(table["block"].max()) + 1
        every += list(names.values())
        names_of_each.append(names)
        tables.append(table)
        libraries = {names[library.label]: library for library in about.libraries} | libraries
    return list(same or every), pandas.concat(tables, ignore_index=True), libraries, names_of_each


def _calls(campaign: Archive) -> pandas.DataFrame:
    """With what disturbed the mpirun of each."""
    table, causes = mpi_campaign.calls(campaign), mpi_campaign.mpiruns(campaign).set_index("mpirun")["causes"]
    return table.assign(causes=table["mpirun"].map(causes))


def choose_two(labels: Sequence[str], left: str | None, right: str | None) -> tuple[str, str]:
    for label in (left, right):
        if label is not None and label not in labels:
            raise InputError(f"there is no library {label}; choose among {', '.join(labels)}")
    others = [label for label in labels if label not in (left, right)]
    unnamed = (left, right).count(None)
    if unnamed == 2 and len(labels) != 2:
        raise InputError(f"there are {len(labels)} libraries ({', '.join(labels)}); name the two to compare")
    if unnamed and len(others) != unnamed:
        raise InputError(f"name two of the libraries {', '.join(labels)}")
    return left or others.pop(0), right or others.pop(0)


def campaign_summaries(campaign: Archive) -> pandas.DataFrame:
    """`mpirun_summaries` of every library of a campaign, from the calls that count, by global run-times."""
    calls = mpi_campaign.calls(campaign).assign(campaign=0)
    subject, _ = select_calls(calls[calls["operation"] != NO_SUBJECT])
    return summarise(subject, "global_s")


def summarise(calls: pandas.DataFrame, duration: str) -> pandas.DataFrame:
    """`mpirun_summaries`, and whether each mpirun was disturbed."""
    table = mpirun_summaries(calls, duration)
    disturbed = calls.drop_duplicates("mpirun").set_index("mpirun")["disturbed"]
    return table.assign(disturbed=table["mpirun"].map(disturbed).astype(bool))


def select_calls(calls: pandas.DataFrame) -> tuple[pandas.DataFrame, dict[str, int]]:
    """The calls that are looked at, and how many are not, by reason.

    Of the attempts at one place of a block the undisturbed ones, else the last one, which decides nothing.
    """
    left_out: dict[str, int] = {}

    def without(calls: pandas.DataFrame, out: "pandas.Series[bool]", words: str) -> pandas.DataFrame:
        if out.any():
            left_out[words] = int(out.sum())
        return calls[~out]

    calls = without(calls, calls["trial"].astype(bool), "of trials")
    calls = without(calls, calls["failed"].astype(bool), "of mpiruns that failed")
    calls = without(calls, calls["started_late"].astype(bool), "started late on some rank")
    places = [calls[name] for name in ("campaign", "block", "place")]
    disturbed = calls["disturbed"].astype(bool)
    always = disturbed.groupby(places).transform("all")
    earlier = calls["attempt"] < calls["attempt"].groupby(places).transform("max")
    return without(calls, disturbed & (~always | earlier), "of mpiruns that were disturbed"), left_out


def measured_calls(archive: Archive | str | Path, library: str | None = None) -> MeasuredCalls:
    """Blocking collective operations of a library of a campaign, as `TraceReplay(collectives=...)` takes them.

    library : its label; without one the only one of the campaign
    Of undisturbed mpiruns, two at least: the mean over these of the mean of their calls, from the first start to the
    last end, its relative standard error, and how single calls spread in an mpirun.

    Raises
    ------
    ArchiveError : another kind of archive
    InputError : a library that it does not have; a campaign of several levels of factors, or without two undisturbed
        mpiruns of a collective operation

    Examples
    --------
    >>> import lepaute as lp
    >>> mpich = lp.compare.measured_calls("comparison.zip", "mpich")  # doctest: +SKIP
    >>> lp.predict(lp.TraceReplay("run.parquet", collectives=mpich), "here.yaml")  # doctest: +SKIP
    """
    opened = Archive.open(archive)
    facts, where = mpi_campaign.facts(opened), opened.path.name
    label = library or (facts.labels[0] if len(facts.labels) == 1 else None)
    if label not in facts.labels:
        raise InputError(f"{where} has the libraries {', '.join(facts.labels)}; name one of these: {where}:LIBRARY")
    if any(len(levels) > 1 for levels in facts.varied.values()):
        raise InputError(f"{where} varies {', '.join(facts.varied)}; replays take calls of a campaign without factors")
    calls, _ = select_calls(mpi_campaign.calls(opened).assign(campaign=0))
    calls = calls[(calls["library"] == label) & ~calls["disturbed"] & (calls["form"] == BLOCKING)]
    calls = calls[calls["operation"].isin(COLLECTIVES)]
    family = next(about.family for about in facts.libraries if about.label == label).casefold()
    rules = next((name for name in LIBRARIES if name in family.replace(" ", "")), OPENMPI)
    name, groups = f"{label} of {where}", calls.groupby(["operation", "ranks", "size_bytes"], observed=True)
    rows = [_call(key, of)._replace(source=name) for key, of in groups if of["mpirun"].nunique() > 1]
    if not rows:
        raise InputError(f"{where} does not have a blocking collective operation in two undisturbed mpiruns of {label}")
    return MeasuredCalls(name, rules, tuple(rows))


def _call(key: Any, calls: pandas.DataFrame) -> MeasuredCall:
    operation, ranks, size_bytes = key
    code = str(operation).lower()
    times = calls["global_s"].groupby(calls["mpirun"])
    means = times.mean()
    spread = np.log(calls["global_s"].clip(lower=1e-9)).groupby(calls["mpirun"]).std(ddof=1).fillna(0.0)
    mean_s = float(means.mean())
    error = float(means.std(ddof=1)) / mean_s / np.sqrt(len(means))
    size = float(size_bytes) * (ranks if code in _OF_PARTS else 1)
    return MeasuredCall(_CODES.get(code, code), int(ranks), size, mean_s, float(np.sqrt((spread**2).mean())), error)

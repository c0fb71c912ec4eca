"""What single calls of an MPI library took, of a campaign, for replays that take them in the place of its rules."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.errors import InputError
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.compare.summaries import select_calls
from lepaute.measure.comparison.cases import BLOCKING, COLLECTIVES
from lepaute.simulate.apps.replay.collectives import LIBRARIES, OPENMPI, MeasuredCall, MeasuredCalls

#: Operations of which all ranks give a part of one vector, of which a campaign's size is a part.
_OF_PARTS = ("reduce_scatter", "reduce_scatter_block")
_CODES = {"exscan": "scan", "alltoallw": "alltoallv"}


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
    keys = ["operation", "ranks", "size_bytes"]
    rows = [_call(key, of) for key, of in calls.groupby(keys, observed=True) if of["mpirun"].nunique() > 1]
    if not rows:
        several = "a blocking collective operation in two undisturbed mpiruns or more"
        raise InputError(f"{where} does not have {several} of {label}; measure it again")
    return MeasuredCalls(f"{label} of {where}", rules, tuple(rows))


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

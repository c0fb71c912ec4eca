"""Small campaigns of `lepaute compare` with libraries of this machine, and what comes of them."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Any

import pandas

from lepaute.kit.mpi_library import find_library
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.compare.summaries import campaign_summaries
from lepaute.measure.compare.verdicts import Verdict, verdicts
from lepaute.measure.comparison.measuring import measure_libraries

#: One machine has one clock: SKaMPI's synchronisation is enough and quick. The budget, after which `mpiruns` are made
#: all the same, leaves no time to repeat what other programs disturb.
QUICK: Mapping[str, Any] = {"clock_method": "SKaMPI", "budget_s": 0.1, "ranks": 2}
COLUMNS = (
    *("library", "block", "mpirun", "operation", "form", "size_bytes"),
    *("calls", "calls_inside", "median_s", "mean_s", "median_all_s", "mean_all_s"),
)


def measured(libraries: Sequence[str], **how: Any) -> pandas.DataFrame:
    """A row an mpirun, operation and size: COLUMNS, and `disturbed`. Libraries as `lepaute compare` names them.

    how : for `measure_libraries`, beside QUICK
    """
    with tempfile.TemporaryDirectory(prefix="campaign-") as name:
        return summarised(Archive.open(measure_libraries(libraries, Path(name) / "campaign.zip", **how, **QUICK)))


def summarised(archive: Archive) -> pandas.DataFrame:
    """COLUMNS of all libraries of a campaign, and whether other programs disturbed the mpirun."""
    table = campaign_summaries(archive)
    runs = mpi_campaign.mpiruns(archive).set_index("mpirun")["disturbed"]
    return table[list(COLUMNS)].assign(disturbed=table["mpirun"].map(runs).astype(bool))


def numbers(table: pandas.DataFrame, *keys: str) -> "pandas.Series[int]":
    """Of each row the place of its mpirun among those of its library, from 0; of each campaign by `keys`."""
    return (table.groupby([*keys, "library"])["mpirun"].rank(method="dense") - 1).astype(int)


def judged(table: pandas.DataFrame, left: str, right: str) -> tuple[Verdict, ...]:
    """The verdicts of two of a table's libraries, disturbed mpiruns included."""
    return verdicts(table.drop(columns="disturbed"), left, right)


def prefix(folder: Path, compiler: str, launcher: str, shim: str = "") -> Path:
    """A prefix in which bin/mpicc and bin/mpirun stand for those of a library.

    shim: C code that is linked into every program that this mpicc links
    """
    (folder / "bin").mkdir(parents=True)
    only_links = ""
    if shim:
        source, code = folder / "shim.c", folder / "shim.o"
        source.write_text(shim)
        find_library(compiler).compile(["-O2", "-c", str(source), "-o", str(code)], what="the shim")
        only_links = f'case "$*" in *-E*|*-show*|*--version*) ;; *) set -- "$@" {code} ;; esac\n'
    for name, target, first in (("mpicc", compiler, only_links), ("mpirun", launcher, "")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\n{first}exec {which(target)} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    return folder

"""Output of HPL and of programs that print as it does: HPL.out, hpccoutf.txt, a job's log. Each result is a job."""

import datetime as dt
import math
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.hpl_output import (
    ANY_RESULT_LINE,
    FAILED,
    HEADING,
    HPCC_TIME,
    PARAMETER_LINE,
    PREDICTED,
    START_LINE,
    finer_time_s,
    flop_count,
)
from lepaute.watch.foreign.rows import Row, digest, done, table_of
from lepaute.watch.foreign.source import Source

if TYPE_CHECKING:
    import re

    import pandas as pd

FACTOR = "hpl_rate_flops"
#: Lines behind a result in which its date is looked for, and of the beginning of a file that is to be recognised.
_NEAR, _HEAD = 6, 20_000


def is_hpl(source: Source) -> bool:
    """Whether HPL printed this."""
    text = source.data.decode(errors="replace")
    return HEADING.search(text[:_HEAD]) is not None or ANY_RESULT_LINE.search(text) is not None


def read_hpl(source: Source, cluster: str, node: str) -> "pd.DataFrame":
    """A rate for each line of results; one of which the residual check failed is `failed`.

    The stratum is N, NB, the grid, the algorithms, and the parameters that the file says above its results. The file
    does not say where it ran, so the node must be given: of a run on many, a name for all of them.
    Raises InputError, with the line, where a result has no date or is none of a real run.
    """
    if not node:
        raise InputError(f"{source.name}: HPL does not say on which node it ran; give the node (--node)")
    lines = source.data.decode(errors="replace").splitlines()
    rows: list[Row] = []
    said: dict[str, str] = {}
    current_s: float | None = None
    for at, line in enumerate(lines):
        if PREDICTED in line:
            raise InputError(f"{source.name}:{at + 1}: holds predictions of Lepaute, nothing that ran")
        if (time := HPCC_TIME.match(line)) is not None:
            current_s = float(time["epoch_s"])
        elif (parameter := PARAMETER_LINE.search(line)) is not None:
            said[parameter["name"]] = parameter["text"]
        elif (result := ANY_RESULT_LINE.search(line)) is not None:
            where = f"{source.name}:{at + 1}"
            started_s = _start_s(lines[at + 1 : at + 1 + _NEAR], current_s, where)
            stratum = digest("hpl", result["variant"], *(int(result[key]) for key in ("n", "nb", "p", "q")), said)
            job = digest(cluster, node, started_s, stratum, result["time"], result["rate"])
            rows.append(done(cluster, node, job, started_s, stratum, FACTOR, _rate_flops(result, where)))
        elif rows and FAILED.search(line):
            rows[-1] = rows[-1]._replace(value=math.nan, state="failed")
    return table_of(rows, source.name)


def _start_s(behind: list[str], current_s: float | None, where: str) -> float:
    """Beginning of a run, of the lines behind its result, or of the time that HPCC printed before."""
    for line in behind:
        if (start := START_LINE.search(line)) is not None:
            try:
                date = dt.datetime.strptime(start["date"], "%a %b %d %H:%M:%S %Y").replace(tzinfo=dt.UTC)
            except ValueError:
                break
            if date.year >= 1970:
                return date.timestamp()
        elif ANY_RESULT_LINE.search(line):
            break
    if current_s is None:
        raise InputError(
            f"{where}: the result has no date: HPL prints one from version 2.1 on, HPCC always; give a CSV file "
            "with dates and rates instead"
        )
    return current_s


def _rate_flops(result: "re.Match[str]", where: str) -> float:
    flop = flop_count(int(result["n"]))
    time_s = finer_time_s(flop, result["time"], result["rate"])
    rate = flop / time_s if time_s > 0.0 else math.inf
    if not 0.0 < rate < math.inf:
        raise InputError(f"{where}: {result['time']} s and {result['rate']} Gflop/s are no result of a run")
    return rate

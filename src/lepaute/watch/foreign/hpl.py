"""Output of HPL and of programs that print as it does: HPL.out, hpccoutf.txt, a job's log. Each result is a job."""

import datetime as dt
import math

import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.hpl_output import FAILED, HPCC_TIME, PARAMETER_LINE, START_LINE, ResultLines, flop_count, is_hpl_output
from lepaute.watch.foreign.rows import Row, Source, digest, table_of
from lepaute.watch.values import WHOLE_NODE

FACTOR = "hpl_rate_flops"
#: Lines behind a result in which its date is looked for.
_NEAR = 6


def is_hpl(source: Source) -> bool:
    return is_hpl_output(source.data.decode(errors="replace"))


def read_hpl(source: Source, cluster: str, node: str) -> pd.DataFrame:
    """A rate for each line of results; one of which the residual check failed is `failed`.

    The stratum is N, NB, the grid, the algorithms, and the parameters that the file says above its results. The file
    does not say where it ran, so the node must be given: of a run on many, a name for all of them.
    Raises InputError, with the line, for a result without a date in it or its source, and as `ResultLines` does.
    """
    if not node:
        raise InputError(f"{source.name}: HPL does not say on which node it ran; give the node (--node)")
    lines = source.data.decode(errors="replace").splitlines()
    rows: list[Row] = []
    parameters: dict[str, str] = {}
    current_s = source.date_s
    results = ResultLines(source.name)
    for at, line in enumerate(lines):
        if (time := HPCC_TIME.match(line)) is not None:
            current_s = float(time["epoch_s"])
        elif (parameter := PARAMETER_LINE.search(line)) is not None:
            parameters[parameter["name"]] = parameter["text"]
        elif (result := results.result(line, at + 1)) is not None:
            started_s = _start_s(lines[at + 1 : at + 1 + _NEAR], current_s, f"{source.name}:{at + 1}")
            if source.date_s not in (None, started_s):
                source.omitted["date| that is given, of a result with its own"] += 1
            stratum = digest("hpl", result.code, result.n, result.nb, result.p, result.q, parameters)
            job = digest(cluster, node, started_s, stratum, result.time, result.rate)
            rate_flops = flop_count(result.n) / result.time_s
            rows.append(Row(cluster, node, WHOLE_NODE, job, started_s, stratum, FACTOR, rate_flops, "done"))
        elif rows and FAILED.search(line):
            rows[-1] = rows[-1]._replace(value=math.nan, state="failed")
    return table_of(rows, source.name)


def _start_s(behind: list[str], current_s: float | None, where: str) -> float:
    """Beginning of a run, of the lines behind its result, or `current_s`, of what stands before or was given."""
    for line in behind:
        if (start := START_LINE.search(line)) is not None:
            try:
                date = dt.datetime.strptime(start["date"], "%a %b %d %H:%M:%S %Y").replace(tzinfo=dt.UTC)
            except ValueError:
                break
            if date.year >= 1970:
                return date.timestamp()
        elif is_hpl_output(line):  # the next result
            break
    if current_s is None:
        raise InputError(
            f"{where}: the result has no date, which HPL prints from version 2.1 on and HPCC always, but not every "
            "vendor's HPL; give its date (--date), or take the file's (--file-date)"
        )
    return current_s

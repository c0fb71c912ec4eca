"""The results database of ReFrame (4.7 and later, SQLite): a report in JSON for each session."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lepaute.errors import InputError
from lepaute.kit.documents import read_json
from lepaute.watch.foreign.reframe_cases import WHAT_RAN, Case, rows_of
from lepaute.watch.foreign.reframe_perflog import date_of_epoch
from lepaute.watch.foreign.rows import table_of
from lepaute.watch.foreign.source import MOST_BYTES, Source

if TYPE_CHECKING:
    import pandas as pd

#: What this module reads.
SCHEMA = "1."
#: Instructions of SQLite's machine between two looks at their number, and how many looks a query gets.
_INSTRUCTIONS, _LOOKS = 1_000_000, 2_000


def read_reframe_database(source: Source, cluster: str, node: str) -> "pd.DataFrame":
    """The factor values of all sessions; the file is only read, and may be in use.

    As a log of the same jobs, with more in the stratum: executable and options. Raises InputError, with session and
    case, for what ReFrame would not write.
    """
    rows = rows_of(_cases(source.path, source.name), cluster, node)
    return table_of(rows, source.name)


def _cases(path: Path, name: str) -> Iterator[Case]:
    for session, blob in _sessions(path, name):
        where = f"{name}: session {session[:40]}"
        if not isinstance(blob, str | bytes):
            raise InputError(f"{where}: holds no report")
        report = read_json(blob, where, most_bytes=MOST_BYTES)
        info = report.get("session_info") if isinstance(report, dict) else None
        runs = report.get("runs") if isinstance(report, dict) else None
        if not isinstance(info, dict) or not isinstance(runs, list):
            raise InputError(f"{where}: its report has no session_info and runs; is this a database of ReFrame?")
        for number, run in enumerate(runs):
            cases = run.get("testcases") if isinstance(run, dict) else None
            if not isinstance(cases, list):
                raise InputError(f"{where}: runs[{number}] has no testcases")
            for place, case in enumerate(cases):
                yield _case(case, info.get("time_start_unix"), f"{where}: runs[{number}].testcases[{place}]")


def _sessions(path: Path, name: str) -> Iterator[tuple[str, object]]:
    looks = 0

    def look() -> int:
        nonlocal looks
        looks += 1
        return int(looks > _LOOKS)

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=30.0)) as base:
            base.execute("pragma trusted_schema = off")
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
            base.set_progress_handler(look, _INSTRUCTIONS)
            # a view could compute for ever
            tables = {row[0] for row in base.execute("select name from sqlite_master where type = 'table'")}
            if not {"sessions", "testcases"} <= tables:
                raise InputError(f"{name}: has no tables sessions and testcases; give the results database of ReFrame")
            if "metadata" in tables:
                version = base.execute("select schema_version from metadata").fetchone()
                if version is not None and not str(version[0]).startswith(SCHEMA):
                    raise InputError(
                        f"{name}: has version {str(version[0])[:20]} of ReFrame's schema; version 1 is read"
                    )
            for row in base.execute("select uuid, json_blob from sessions order by session_start_unix, uuid"):
                yield str(row[0]), row[1]
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as problem:
        words = " ".join(str(problem).split())[:100]
        raise InputError(f"{name}: cannot be read as an SQLite database ({words}); copy it again") from None


def _case(case: object, session_s: object, where: str) -> Case:
    if not isinstance(case, dict):
        raise InputError(f"{where} is no object")
    name = _text(case, "display_name") or _text(case, "name")
    if not name:
        raise InputError(f"{where}: the name of the test is missing")
    where = f"{where} ({name[:60]})"
    values = case.get("perfvalues") or {}
    if not isinstance(values, dict):
        raise InputError(f"{where}: perfvalues is no object")
    ended = case.get("job_completion_time_unix")
    # a case that failed before it had a job
    ended_s = date_of_epoch(str(session_s if ended is None else ended), where)
    return Case(
        name,
        {str(key).rpartition(":")[2]: _variable(value, f"{where}: {str(key)[:60]}") for key, value in values.items()},
        _text(case, "result"),
        ended_s,
        _text(case, "jobid") or _text(case, "uuid"),
        _text(case, "system"),
        _text(case, "job_nodelist"),
        {key: str(case[key]) for key in WHAT_RAN if case.get(key) is not None},
        where,
    )


def _variable(entry: object, where: str) -> tuple[float | None, str]:
    """Value and unit of [value, reference, lower, upper, unit, ...]."""
    if not isinstance(entry, list) or len(entry) < 5 or not isinstance(entry[4], str | None):
        raise InputError(f"{where} is no list of value, reference, thresholds and unit")
    value: Any = entry[0]
    if value is None:
        return None, entry[4] or ""
    number = float(value) if isinstance(value, int | float) and abs(value) < 1e308 else math.nan
    if isinstance(value, bool) or math.isnan(number):
        raise InputError(f"{where} is {str(value)[:40]!r}; it must be a finite number")
    return number, entry[4] or ""


def _text(case: dict[str, Any], key: str) -> str:
    value = case.get(key)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else str(value)

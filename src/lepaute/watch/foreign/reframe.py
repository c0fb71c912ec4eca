"""ReFrame: its performance logs, or its results database, by the content of the file.

A log is a table with a heading (4.x), or a line a variable (3.x); the database (4.7, SQLite) has JSON a session.

A factor is `TEST:VARIABLE` with the unit at its end, such as `copy_test %size_MB=16:rate_B_per_s`; the name of a test
has its parameters. A measured value is one, also where it missed its reference: judging is the tests' part.
"""

import datetime as dt
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.documents import read_json
from lepaute.watch.foreign.rows import MAX_BYTES, Row, Source, digest, finite_number, node_of, number_of_text, table_of
from lepaute.watch.foreign.units import ISO, date_at, si_unit
from lepaute.watch.values import WHOLE_NODE

#: Result of a case -> state of a variable without a value; a case that was skipped has no rows.
STATES = {
    "pass": "missing",
    "xpass": "missing",
    "fail": "failed",
    "xfail": "failed",
    "abort": "aborted",
    "fail_deps": "missing",
}
SKIPPED = "skip"
#: Fields of a test, besides its name, that say what was run, where the file has them.
WHAT_RAN = (
    "partition", "environ", "env_vars", "modules", "executable", "executable_opts", "num_tasks", "num_tasks_per_node",
    "num_tasks_per_core", "num_tasks_per_socket", "num_cpus_per_task", "num_gpus_per_node", "use_multithreading",
    "exclusive_access", "extra_resources",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One test case.

    variables : performance variable -> its value (None: it has none) and unit, as in the file
    ended_s   : when its job ended, in seconds since the epoch
    job       : id of the scheduler's, which it may give again; empty: unknown
    what      : WHAT_RAN of it;  where : place in the file, for messages
    """

    name: str
    variables: Mapping[str, tuple[float | None, str]]
    result: str
    ended_s: float
    job: str
    system: str
    nodes: str
    what: Mapping[str, str]
    where: str


def is_reframe(source: Source) -> bool:
    """Whether it is a log, or a database; there is no other format with databases."""
    lines = source.data[:20_000].decode(errors="replace").splitlines()[:2]
    return source.is_database or any(_is_old(line) or (_DATE in line and "_value" in line) for line in lines)


def read_reframe(source: Source, cluster: str, node: str) -> pd.DataFrame:
    """The factor values of a log, or of all sessions of a database, which is only read, and may be in use.

    The name of the system is the cluster, and the list of nodes the node, if no other is given; a job on several nodes
    is of them as a whole. Logs of 3.x have no nodes. A database has more in the stratum: executable and options.
    Raises InputError, with the line or the session and case, for what ReFrame would not write.
    """
    cases = _cases_of_database(source) if source.is_database else _cases_of_log(source)
    return table_of(_rows_of(list(cases), cluster, node, source.omitted), source.name)


def _rows_of(every: list[Case], cluster: str, node: str, omitted: Counter[str]) -> list[Row]:
    """The rows of all cases.

    A case that failed before it had variables has the rows of those that other cases of its test have. One that came
    to no node, and so has no value, has no rows.
    Raises InputError, with the place, for a value of no node, an unknown result, and a node given to cases of several.
    """
    cases = [case for case in every if case.result != SKIPPED]
    omitted.update({"case| that was skipped": len(every) - len(cases)} if len(every) > len(cases) else {})
    several = sorted({case.nodes for case in cases if case.nodes})
    if node and len(several) > 1:
        raise InputError(
            f"{cases[0].where}: the node is given, {node[:40]!r}, and cases ran on {len(several)} nodes, such as "
            f"{several[0][:40]!r} and {several[1][:40]!r}; leave it out"
        )
    names: dict[str, dict[str, None]] = {}
    for case in cases:
        names.setdefault(case.name, {}).update(dict.fromkeys(_factor(case, each)[0] for each in case.variables))
    rows = []
    for case in cases:
        if case.result not in STATES:
            raise InputError(
                f"{case.where}: the result is {case.result[:40]!r}; there are {', '.join(STATES)}, {SKIPPED}"
            )
        measured = any(value is not None for value, _ in case.variables.values())
        if not (node or case.nodes or measured):
            omitted["case| that came to no node"] += 1
            continue
        place = (cluster or case.system, node_of(node, case.nodes, case.where), WHOLE_NODE)
        head = (*place, _job(case), case.ended_s, digest("reframe", sorted(case.what.items())))
        if not case.variables and STATES[case.result] != "missing":
            rows += [Row(*head, factor, math.nan, STATES[case.result]) for factor in names[case.name] or (case.name,)]
        for variable in case.variables:
            factor, value = _factor(case, variable)
            rows.append(Row(*head, factor, value, STATES[case.result] if math.isnan(value) else "done"))
    return rows


def _factor(case: Case, variable: str) -> tuple[str, float]:
    """Name and value in SI units; NaN if there is none. A unit that is not known stays, at the end of the name."""
    value, text = case.variables[variable]
    name = f"{case.name}:{variable}"
    unit = si_unit(text)
    if unit is None:
        words = re.sub(r"\W+", "_", text.replace("/", "_per_")).strip("_")
        return (f"{name}_{words}" if words else name), math.nan if value is None else value
    converted = math.nan if value is None else unit.to_si(value)
    if math.isinf(converted):
        raise InputError(f"{case.where}: {variable[:60]} is {value} {text[:20]}, which is too large")
    return unit.named(name), converted


def _job(case: Case) -> str:
    """The scheduler's id and the moment of its end, since a scheduler begins anew some day."""
    moment = dt.datetime.fromtimestamp(math.floor(case.ended_s), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{case.job}@{moment}" if case.job else digest("reframe", case.name, case.system, case.nodes, case.ended_s)


# 2026-11-23T07:28:40|reframe 3.12.0|TEST @SYSTEM:PARTITION+ENVIRON|jobid=19717|rate=2.2|ref=0 (l=null, u=null)|GB/s
_DATE_FIELD = re.compile(
    r"(?:^|(?<=[^\w\s:.+-])|(?<=\t))"
    r"(?P<date>\d{4}-\d\d-\d\d[T ][\d:.]{5,30}(?:Z|[+-]\d\d:?\d\d)?)(?P<separator>[^\w\s:.+-]|\t)"
)
#: Version as of a git checkout: "reframe 3.3.0-dev0 (rev: 0a1b2c3d)".
_VERSION = re.compile(r"reframe [\w.+-]{1,40}(?: \(rev: [0-9a-f]{1,40}\))?")
#: Columns that hold the name of a test, the best first.
_NAMES = ("display_name", "name", "unique_name", "short_name")
_DATE, _DATE_UNIX = "job_completion_time", "job_completion_time_unix"
#: What ReFrame writes for nothing.
_NOTHING = ("", "None", "null", "nan")


def _cases_of_log(source: Source) -> list[Case]:
    lines = [(number, line) for number, line in enumerate(source.text.splitlines(), start=1) if line.strip()]
    if any(_is_old(line) for _, line in lines[:2]):
        # with a heading where ReFrame 4 writes in the format of 3
        return [_old_case(line, f"{source.name}:{at}") for at, line in lines if "perf_var=perf_value" not in line]
    return _cases_of_table(lines, source.name)


def _is_old(line: str) -> bool:
    """Whether it has the fields of 3.x: a table of 4.x may have a version in its second column, too, but no ref=."""
    match = _DATE_FIELD.search(line)
    if match is None or f"{match['separator']}ref=" not in line:
        return False
    return any(_VERSION.fullmatch(word) for word in line.split(match["separator"]))


def _old_case(line: str, where: str) -> Case:
    """The fields may stand in any order, but for the value, its reference and its unit, which are neighbours."""
    match = _DATE_FIELD.search(line)
    # by hand: a pattern with this many gaps takes its time where it fails
    separator = match["separator"] if match is not None else "|"
    before, reference, behind = line.strip().partition(f"{separator}ref=")
    *texts, assigned = before.split(separator)
    # separators may also stand in the thresholds, "(l=-0.1, u=null)"
    in_brackets = "(" in behind.partition(separator)[0]
    behind = behind.partition(")")[2] if in_brackets else behind[behind.find(separator) :]
    unit = f"{behind}{separator}".split(separator)[1]
    if "=" not in assigned and texts:
        unit, assigned = assigned, texts.pop()
    variable, equals, text = assigned.partition("=")
    fields: dict[str, str] = {}
    others = []
    for each in texts:
        key, _, content = each.partition("=")
        if key in ("jobid", *WHAT_RAN) and " " not in content:
            fields[key] = content
        elif match is not None and each != match["date"] and not _VERSION.fullmatch(each):
            others.append(each)
    name, system, partition, environ = _test(separator.join(others))
    if match is None or not ("jobid" in fields and equals and reference and environ):
        raise InputError(f"{where}: is no line of a performance log of ReFrame, as others of it are; remove it")
    value = _logged(text, variable, where)
    job = fields.pop("jobid")
    return Case(
        name=name,
        variables={variable: (value, unit)},
        result="pass" if value is not None else "fail",
        ended_s=date_at(ISO, match["date"], where),
        job="" if job in _NOTHING else job,
        system=system,
        nodes="",
        what={"partition": partition, "environ": environ, **fields},
        where=where,
    )


def _test(info: str) -> tuple[str, str, str, str]:
    """Name, system, partition and environment; empty if there is none.

    Of "NAME @SYSTEM:PARTITION+ENVIRON", with a digest of the parameters before the @ in 4.x, or "NAME on S:P using E".
    """
    name, _, rest = info.rpartition(" @" if " @" in info else " on ")
    system, _, rest = rest.partition(":")
    partition, _, environ = rest.partition("+" if "+" in rest else " using ")
    return re.sub(r" /[0-9a-f]{8}$", "", name), system, partition, environ


def _cases_of_table(lines: list[tuple[int, str]], name: str) -> list[Case]:
    if not lines:
        raise InputError(f"{name}: is empty; give a performance log of ReFrame")
    first, heading = lines[0]
    marks = Counter(re.findall(r"[^\w# ]", heading)).most_common(1)
    delimiter = marks[0][0] if marks else "|"
    columns = [column.strip() for column in heading.split(delimiter)]
    where = f"{name}:{first}"
    if len(set(columns)) < len(columns):
        raise InputError(f"{where}: has a column twice; give a performance log of ReFrame")
    for needed in ((_DATE_UNIX, _DATE), (*_NAMES, "info")):
        if not any(column in columns for column in needed):
            raise InputError(f"{where}: has no column {needed[1]}; add %(check_{needed[1]})s to the format of the log")
    variables = [
        column.removesuffix("_value")
        for column in columns
        if column.endswith("_value") and f"{column.removesuffix('_value')}_unit" in columns
    ]
    if not variables:
        raise InputError(
            f"{where}: has no columns of values and units; format_perfvars must have %(check_perf_value)s and "
            "%(check_perf_unit)s"
        )
    cases = []
    for number, line in lines[1:]:
        if line == heading:
            continue
        cells = [cell.strip() for cell in line.split(delimiter)]
        if len(cells) != len(columns):
            raise InputError(
                f"{name}:{number}: has {len(cells)} cells, and the heading {len(columns)}; remove the line"
            )
        cases.append(_case_of_row(dict(zip(columns, cells, strict=True)), variables, f"{name}:{number}"))
    return cases


def _case_of_row(row: dict[str, str], variables: list[str], where: str) -> Case:
    values = {}
    for variable in variables:
        # a log with a line a variable has its name in a column: perf_var, perf_value, perf_unit
        label = row.get("perf_var", variable) if variable == "perf" else variable
        values[label] = (_logged(row[f"{variable}_value"], label, where), row[f"{variable}_unit"])
    measured = any(value is not None for value, _ in values.values())
    date = next((row[key] for key in (_DATE_UNIX, _DATE) if row.get(key, "") not in _NOTHING), "")
    ended_s = date_at("epoch_s" if row.get(_DATE_UNIX) == date else ISO, date, where)
    fields = {key: "" if value in _NOTHING else value for key, value in row.items()}
    test, system, partition, environ = _test(fields.get("info", ""))
    fields |= {key: fields.get(key) or text for key, text in (("partition", partition), ("environ", environ)) if text}
    if not (name := next((fields[key] for key in _NAMES if fields.get(key)), test)):
        raise InputError(f"{where}: the name of the test is empty")
    return Case(
        name=name,
        variables=values,
        result=fields.get("result", "") or ("pass" if measured else "fail"),
        ended_s=ended_s,
        job=fields.get("jobid", ""),
        system=fields.get("system") or system,
        nodes=fields.get("job_nodelist", ""),
        what={key: fields[key] for key in WHAT_RAN if key in fields},
        where=where,
    )


def _logged(text: str, variable: str, where: str) -> float | None:
    if text in _NOTHING:
        return None
    if (value := number_of_text(text)) is None:
        raise InputError(f"{where}: {variable[:60]} is {text[:40]!r}; it must be a finite number")
    return value


#: Instructions of SQLite's machine between two looks at their number, and how many looks a query gets.
_INSTRUCTIONS, _LOOKS = 1_000_000, 2_000


def _cases_of_database(source: Source) -> Iterator[Case]:
    for session, blob in _sessions(source):
        where = f"{source.name}: session {session[:40]}"
        if not isinstance(blob, str | bytes):
            raise InputError(f"{where}: holds no report")
        report = read_json(blob, where, most_bytes=MAX_BYTES)
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


def _sessions(source: Source) -> Iterator[tuple[str, object]]:
    """Id and report of each session."""
    looks = 0

    def look() -> int:
        nonlocal looks
        looks += 1
        return int(looks > _LOOKS)

    name, address = source.name, f"file:{quote(str(source.path.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=30.0)) as base:
            base.execute("pragma trusted_schema = off")
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
            base.set_progress_handler(look, _INSTRUCTIONS)
            # a view could compute for ever
            tables = {row[0] for row in base.execute("select name from sqlite_master where type = 'table'")}
            if not {"sessions", "testcases"} <= tables:
                raise InputError(f"{name}: has no tables sessions and testcases; give the results database of ReFrame")
            if "metadata" in tables:
                version = base.execute("select schema_version from metadata").fetchone()
                if version is not None and not str(version[0]).startswith("1."):
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
    return Case(
        name,
        {str(key).rpartition(":")[2]: _variable(value, f"{where}: {str(key)[:60]}") for key, value in values.items()},
        _text(case, "result"),
        # a case that failed before it had a job has the date of its session
        date_at("epoch_s", str(session_s if ended is None else ended), where),
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
    value = None if entry[0] is None else finite_number(entry[0])
    if value is None and entry[0] is not None:
        raise InputError(f"{where} is {str(entry[0])[:40]!r}; it must be a finite number")
    return value, entry[4] or ""


def _text(case: dict[str, Any], key: str) -> str:
    value = case.get(key)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else str(value)

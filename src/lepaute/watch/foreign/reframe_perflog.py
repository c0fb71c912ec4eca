"""Performance logs of ReFrame: a table with a heading (4.x), or a line a variable (3.x); with any separator."""

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.watch.foreign.dates import ISO, date_reader
from lepaute.watch.foreign.reframe_cases import WHAT_RAN, Case, rows_of
from lepaute.watch.foreign.rows import table_of
from lepaute.watch.foreign.source import Source

if TYPE_CHECKING:
    import pandas as pd

# 2026-11-23T07:28:40|reframe 3.12.0|TEST @SYSTEM:PARTITION+ENVIRON|jobid=19717|rate=2.2|ref=0 (l=null, u=null)|GB/s
_DATE_FIELD = re.compile(
    r"(?:^|(?<=[^\w\s:.+-])|(?<=\t))"
    r"(?P<date>\d{4}-\d\d-\d\d[T ][\d:.]{5,30}(?:Z|[+-]\d\d:?\d\d)?)(?P<separator>[^\w\s:.+-]|\t)"
)
#: Of a git checkout "reframe 3.3.0-dev0 (rev: 0a1b2c3d)".
_VERSION = re.compile(r"reframe [\w.+-]{1,40}(?: \(rev: [0-9a-f]{1,40}\))?")
_OLD_HEADING = "perf_var=perf_value"
_DIGEST = re.compile(r" /[0-9a-f]{8}$")
#: Columns that hold the name of a test, the best first.
_NAMES = ("display_name", "name", "unique_name", "short_name")
_DATE, _DATE_UNIX = "job_completion_time", "job_completion_time_unix"
_ENDS = ("_value", "_unit")
#: What ReFrame writes for nothing.
_NOTHING = ("", "None", "null", "nan")


def is_reframe_perflog(source: Source) -> bool:
    lines = source.data[:20_000].decode(errors="replace").splitlines()[:2]
    return any(_is_old(line) or (_DATE in line and _ENDS[0] in line) for line in lines)


def read_reframe_perflog(source: Source, cluster: str, node: str) -> "pd.DataFrame":
    """The factor values of a log; raises InputError, with the line, for what ReFrame would not write.

    The name of the system is the cluster, and the list of nodes the node, if no other is given; a job on several nodes
    is of them as a whole. Logs of 3.x have no nodes.
    """
    lines = [(number, line) for number, line in enumerate(source.text.splitlines(), start=1) if line.strip()]
    if any(_is_old(line) for _, line in lines[:2]):
        # with a heading where ReFrame 4 writes in the format of 3
        cases = [_old_case(line, f"{source.name}:{at}") for at, line in lines if _OLD_HEADING not in line]
    else:
        cases = _table(lines, source.name)
    return table_of(rows_of(cases, cluster, node), source.name)


def _is_old(line: str) -> bool:
    """Whether it has the fields of 3.x: a table of 4.x may have a version in its second column, too, but no ref=."""
    match = _DATE_FIELD.search(line)
    if match is None or f"{match['separator']}ref=" not in line:
        return False
    return any(_VERSION.fullmatch(each) for each in line.split(match["separator"]))


def _old_case(line: str, where: str) -> Case:
    """The fields may stand in any order, but for the value, its reference and its unit, which are neighbours."""
    match = _DATE_FIELD.search(line)
    # by hand: a pattern with so many gaps takes its time where it fails
    separator = match["separator"] if match is not None else "|"
    before, reference, rest = line.strip().partition(f"{separator}ref=")
    *fields, assigned = before.split(separator)
    # separators may also stand in the thresholds, "(l=-0.1, u=null)"
    behind = rest.partition(")")[2] if "(" in rest.partition(separator)[0] else rest[rest.find(separator) :]
    unit = f"{behind}{separator}".split(separator)[1]
    if "=" not in assigned and fields:
        unit, assigned = assigned, fields.pop()
    variable, equals, text = assigned.partition("=")
    said: dict[str, str] = {}
    others = []
    for each in fields:
        key, _, given = each.partition("=")
        if key in ("jobid", *WHAT_RAN) and " " not in given:
            said[key] = given
        elif match is not None and each != match["date"] and not _VERSION.fullmatch(each):
            others.append(each)
    name, system, partition, environ = _test(separator.join(others))
    if match is None or not ("jobid" in said and equals and reference and environ):
        raise InputError(f"{where}: is no line of a performance log of ReFrame, as others of it are; remove it")
    value = _number(text, variable, where)
    job = said.pop("jobid")
    return Case(
        name=name,
        variables={variable: (value, unit)},
        result="pass" if value is not None else "fail",
        ended_s=_date_s(match["date"], where),
        job="" if job in _NOTHING else job,
        system=system,
        nodes="",
        what={"partition": partition, "environ": environ, **said},
        where=where,
    )


def _test(info: str) -> tuple[str, str, str, str]:
    """Name, system, partition and environment; empty where there is none.

    Of "NAME @SYSTEM:PARTITION+ENVIRON", with a digest of the parameters before the @ in 4.x, or "NAME on S:P using E".
    """
    name, _, rest = info.rpartition(" @" if " @" in info else " on ")
    system, _, rest = rest.partition(":")
    partition, _, environ = rest.partition("+" if "+" in rest else " using ")
    return _DIGEST.sub("", name), system, partition, environ


def _table(lines: list[tuple[int, str]], name: str) -> list[Case]:
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
        cases.append(_case(dict(zip(columns, cells, strict=True)), variables, f"{name}:{number}"))
    return cases


def _case(row: dict[str, str], variables: list[str], where: str) -> Case:
    found = {}
    for variable in variables:
        # a log with a line a variable has its name in a column: perf_var, perf_value, perf_unit
        label = row.get("perf_var", variable) if variable == "perf" else variable
        found[label] = (_number(row[f"{variable}_value"], label, where), row[f"{variable}_unit"])
    measured = any(value is not None for value, _ in found.values())
    text = next((row[key] for key in (_DATE_UNIX, _DATE) if row.get(key, "") not in _NOTHING), "")
    ended_s = date_of_epoch(text, where) if row.get(_DATE_UNIX) == text else _date_s(text, where)
    said = {key: "" if value in _NOTHING else value for key, value in row.items()}
    told, system, partition, environ = _test(said.get("info", ""))
    said |= {key: said.get(key) or text for key, text in (("partition", partition), ("environ", environ)) if text}
    if not (name := next((said[key] for key in _NAMES if said.get(key)), told)):
        raise InputError(f"{where}: the name of the test is empty")
    return Case(
        name=name,
        variables=found,
        result=said.get("result", "") or ("pass" if measured else "fail"),
        ended_s=ended_s,
        job=said.get("jobid", ""),
        system=said.get("system") or system,
        nodes=said.get("job_nodelist", ""),
        what={key: said[key] for key in WHAT_RAN if key in said},
        where=where,
    )


def _number(text: str, variable: str, where: str) -> float | None:
    if text in _NOTHING:
        return None
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {variable[:60]} is {text[:40]!r}; it must be a finite number")
    return value


def _date_s(text: str, where: str) -> float:
    try:
        return date_reader(ISO)(text)
    except InputError as problem:
        raise InputError(f"{where}: {problem}") from None


def date_of_epoch(text: str, where: str) -> float:
    """Seconds since the epoch; raises InputError, with the place, for what is no such date."""
    try:
        return date_reader("epoch_s")(text)
    except InputError as problem:
        raise InputError(f"{where}: {problem}") from None

"""CSV files, read with a mapping (`mapping`) that says what their columns are."""

import csv
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lepaute.errors import InputError
from lepaute.watch.foreign.mapping import NO_VALUE, Cell, Factor, Mapping
from lepaute.watch.foreign.rows import Source, check_names, checked_table, digest, node_of, number_of_text
from lepaute.watch.foreign.units import ISO, Unit, date_reader, si_unit, unit_of
from lepaute.watch.values import WHOLE_NODE

#: What a table may have between its cells, where the mapping does not say it.
_DELIMITERS = ",;\t|"
_MAX_CPUS = 1_000_000
#: Headings, in lower case, of columns that are no factors; and of factors, what they say of a unit that is not there.
_HEADINGS = {
    "node": ("node", "host", "hostname", "nodename", "machine"),
    "date": ("date", "time", "timestamp", "start", "started", "day"),
    "cluster": ("cluster",),
    "cpu": ("cpu", "socket"),
    "job": ("job", "jobid", "job_id"),
}
_UNITS = {
    "1/s": ("rate", "bandwidth", "speed", "throughput"),
    "s": ("duration", "elapsed", "runtime", "walltime", "time"),
}
#: Seconds from 1970 to 2001: smaller numbers are no dates.
_FIRST_EPOCH = 1e9


def inferred(source: Source, node: str) -> Mapping | None:
    """The mapping that the heading of a CSV file and its first row suggest; None if they name no node or no number.

    node : of all rows, where it is given. Units are those in brackets, at the end of a heading, or the heading itself;
    what a heading calls a rate is one a second, a duration is in seconds.
    """
    try:
        lines = (line for line in source.lines() if line[:1] != "#" and line.strip())
        first = next(lines, "")
        delimiter = max(_DELIMITERS, key=first.count)
        heading, cells = list(csv.reader([first, next(lines, "")], delimiter=delimiter, strict=True))
    except (csv.Error, ValueError, InputError):
        return None
    columns: dict[str, Any] = {}
    factors: dict[str, Factor] = {}
    for column, cell in zip(map(str.strip, heading), map(str.strip, cells), strict=False):
        number = number_of_text(cell.replace(",", "."))
        words = column.lower()
        place = next((key for key, names in _HEADINGS.items() if words in names and key not in columns), None)
        if place == "date" and number is not None and number < _FIRST_EPOCH:  # of what is measured
            place = None
        if place == "date" and number is not None:
            columns[place] = {"column": column, "form": "epoch_s" if number < 1e3 * _FIRST_EPOCH else "epoch_ms"}
        elif place is not None:
            columns[place] = column
        elif number is not None and column:
            name, unit = _named_unit(column)
            factors[unit_of(unit).named(name)] = Factor(column=column, unit=unit)
    if not factors or not ("node" in columns or node):
        return None
    decimal = "," if delimiter != "," and "," in "".join(cells) else "."
    return Mapping.model_validate({**columns, "factors": factors, "delimiter": delimiter, "decimal": decimal})


def _named_unit(column: str) -> tuple[str, str]:
    words = re.split(r"[_ ]", column)
    if (inside := re.fullmatch(r"(.*?)\s*[\[(]\s*(.*?)\s*[\])]", column)) and si_unit(inside[2]):
        name, unit = inside[1], inside[2]
    elif (alone := si_unit(column)) is not None:
        name, unit = "rate" if alone.suffix.endswith(("flops", "per_s")) else "value", column
    elif len(words) > 1 and (last := si_unit(words[-1])) is not None and last.suffix:
        name, unit = "_".join(words[:-1]), words[-1]
    else:
        name, said = column, set(column.lower().split("_"))
        unit = next((unit for unit, names in _UNITS.items() if said.intersection(names)), "1")
    return re.sub(r"\W+", "_", name).strip("_") or "value", unit


def mapping_text(mapping: Mapping) -> str:
    """node: host; date: start; rate_flops: GFlop/s."""
    cells = {name: getattr(mapping, name) for name in _HEADINGS}
    parts = [f"{name}: {cell.column}" for name, cell in cells.items() if cell is not None]
    parts += [f"{name}: {factor.column} in {factor.unit}" for name, factor in (mapping.factors or {}).items()]
    return "; ".join(parts)


def read_csv_table(source: Source, mapping: Mapping, cluster: str, node: str) -> "pd.DataFrame":
    """The factor values of a CSV file with a heading; lines that begin with # are comments.

    Cells without a value (empty, NA, NaN, -) have no row; where the state of a job is not `done`, each factor has one
    without a value. Dates are those of the mapping, or that of the source.
    Raises InputError, with file and line, for columns that are missing and cells that are not what the mapping says.
    """
    for name, text, cell in (("cluster", cluster, mapping.cluster), ("node", node, mapping.node)):
        if text and cell is not None:
            raise InputError(
                f"{source.name}: the {name} is given, {text[:40]!r}, and the mapping says it, too; leave one"
            )
    if (mapping.date is None) == (source.date_s is None):
        problem = "no column has dates; add one (date: of a mapping), or read it by `lepaute watch ingest --date DATE`"
        if mapping.date is not None:
            problem = "--date or --file-date is given, and the mapping has a date, too; leave one out"
        raise InputError(f"{source.name}: {problem}")
    if mapping.node is None:
        node_of(node, "", source.name)
    columns = _Columns()
    for machine_and_job, values in _Reader(source, mapping, cluster, node).rows():
        columns.add(machine_and_job, values)
    check_names(columns.names(), source.name)
    return checked_table(columns.frame(), source.name)


class _Job(NamedTuple):
    """Common part of all values of a row; columns as watch.values has them."""

    cluster: str
    node: str
    cpu: int
    job: str
    started_s: float
    stratum: str
    state: str


class _Columns:
    """Rows of a large table, kept without an object each: their jobs, and the numbers and values of their factors."""

    def __init__(self) -> None:
        self._jobs: list[_Job] = []
        self._factors: dict[str, int] = {}
        self._job_of, self._factor_of, self._value = array("q"), array("q"), array("d")

    def add(self, job: _Job, values: Iterable[tuple[str, float]]) -> None:
        for factor, value in values:
            self._job_of.append(len(self._jobs))
            self._factor_of.append(self._factors.setdefault(factor, len(self._factors)))
            self._value.append(value)
        self._jobs.append(job)

    def names(self) -> set[tuple[str, str]]:
        """(column, text) of what people have named."""
        names = {(column, getattr(job, column)) for job in self._jobs for column in ("cluster", "node", "job")}
        return names | {("factor", factor) for factor in self._factors}

    def frame(self) -> "pd.DataFrame":
        jobs = pd.DataFrame(self._jobs, columns=_Job._fields)
        frame = jobs.take(np.frombuffer(self._job_of, np.int64)).reset_index(drop=True)
        factors = pd.Series(list(self._factors), dtype=str)
        frame["factor"] = factors.take(np.frombuffer(self._factor_of, np.int64)).to_numpy()
        return frame.assign(value=np.frombuffer(self._value, np.float64), archive="")


class _Reader:
    def __init__(self, source: Source, mapping: Mapping, cluster: str, node: str) -> None:
        self._name, self._mapping = source.name, mapping
        self._lines = source.lines()
        self._number = 0
        heading = self._heading()
        self._width = len(heading)
        at = {column: self._place(column, heading) for column in mapping.columns()}
        self._cluster = _cell(mapping.cluster or Cell(value=cluster), at)
        self._node = _cell(mapping.node or Cell(value=node), at)
        self._cpu, self._job = _cell(mapping.cpu, at), _cell(mapping.job, at)
        self._omitted = source.omitted
        if unnamed := [column[:60] for column in heading if column not in at]:
            self._omitted[f"column| that the mapping does not name ({', '.join(unnamed)[:300]})"] = len(unnamed)
        self._date = _cell(mapping.date, at)
        form = (ISO, "UTC") if mapping.date is None else (mapping.date.form, mapping.date.timezone)
        self._seconds = date_reader(*form) if source.date_s is None else lambda _: source.date_s or 0.0
        self._state_at = None if mapping.state is None else at[mapping.state.column]
        self._states = {} if mapping.state is None else mapping.state.by_text()
        self._stratum_at = [at[column] for column in mapping.stratum]
        self._strata: dict[tuple[str, ...], str] = {}
        # of a table with a column a factor: name, unit and place of each
        self._factors = [(name, unit_of(each.unit), at[each.column]) for name, each in (mapping.factors or {}).items()]
        self._factor, self._unit = _cell(mapping.factor, at), _cell(mapping.unit, at)
        self._value_at = -1 if mapping.value is None else at[mapping.value]

    def rows(self) -> Iterator[tuple[_Job, list[tuple[str, float]]]]:
        """The job of each row, with its values by factor."""
        reader = csv.reader(self._uncommented(), delimiter=self._delimiter, strict=True)
        try:
            for cells in reader:
                if cells:
                    stripped = [cell.strip() for cell in cells]
                    job = self._job_of(stripped)
                    yield job, self._values(stripped, job.state)
        except csv.Error as problem:
            raise InputError(f"{self._name}:{self._number}: is no row of CSV ({problem})") from None
        except InputError as problem:
            if str(problem).startswith(f"{self._name}:"):  # of a line that could not be read
                raise
            raise InputError(f"{self._name}:{self._number}: {problem}") from None

    def _uncommented(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            if line[:1] != "#" and line.strip():
                yield line

    def _heading(self) -> list[str]:
        first = next(self._uncommented(), "")
        self._delimiter: str = self._mapping.delimiter or max(_DELIMITERS, key=first.count)
        try:
            names = next(csv.reader([first], delimiter=self._delimiter, strict=True), [])
        except csv.Error as problem:
            raise InputError(f"{self._name}:{self._number}: is no heading of CSV ({problem})") from None
        return [name.strip() for name in names]

    def _place(self, column: str, heading: list[str]) -> int:
        if heading.count(column) != 1:
            problem = "no" if column not in heading else "more than one"
            raise InputError(
                f"{self._name}:{max(self._number, 1)}: {problem} column {column[:60]!r}, which the mapping names; "
                f"there are {', '.join(heading)[:300] or 'none'}"
            )
        return heading.index(column)

    def _job_of(self, cells: list[str]) -> _Job:
        if len(cells) != self._width:
            raise InputError(f"has {len(cells)} cells, and the heading {self._width}")
        cluster, node = self._cluster(cells), self._node(cells)
        if not node:
            raise InputError("the node is empty")
        cpu = WHOLE_NODE if self._mapping.cpu is None else _cpu(self._cpu(cells))
        started_s = self._seconds(self._date(cells))
        job = digest("csv", cluster, node, started_s) if self._mapping.job is None else self._job(cells)
        if not job:
            raise InputError("the job is empty")
        return _Job(cluster, node, cpu, job, started_s, self._stratum(cells), self._state(cells))

    def _values(self, cells: list[str], state: str) -> list[tuple[str, float]]:
        """Factors and values in SI units; those that a job that is done has not, it does not have at all."""
        if self._mapping.factors is not None:
            texts = [(name, unit, cells[place]) for name, unit, place in self._factors]
        else:
            unit = unit_of(self._unit(cells))
            if not (name := self._factor(cells)):
                raise InputError("the factor is empty")
            texts = [(unit.named(name), unit, cells[self._value_at])]
        if state != "done":
            return [(name, math.nan) for name, _, _ in texts]
        there = [text for text in texts if text[2].lower() not in NO_VALUE]
        if len(there) < len(texts):
            self._omitted["cell| without a value"] += len(texts) - len(there)
        return [(name, self._number_of(text, unit, name)) for name, unit, text in there]

    def _stratum(self, cells: list[str]) -> str:
        if not self._stratum_at:
            return ""
        texts = tuple(cells[place] for place in self._stratum_at)
        return self._strata.get(texts) or self._strata.setdefault(texts, digest(list(texts)))

    def _state(self, cells: list[str]) -> str:
        if self._state_at is None:
            return "done"
        text = cells[self._state_at]
        if text not in self._states:
            known = ", ".join(map(repr, self._states))
            raise InputError(f"the state is {text[:40]!r}; the mapping has {known[:200]}: add it there")
        return self._states[text]

    def _number_of(self, text: str, unit: Unit, factor: str) -> float:
        plain = text.replace(",", ".") if self._mapping.decimal == "," else text
        number = number_of_text(plain)
        value = math.nan if number is None else unit.to_si(number)
        if not math.isfinite(value):
            point = "; decimal: ',' in the mapping reads decimal commas" if "," in plain else ""
            raise InputError(f"{factor[:60]} is {text[:40]!r}; it must be a finite number, or empty{point}")
        return value


def _cell(cell: Cell | None, at: dict[str, int]) -> Callable[[list[str]], str]:
    """What takes the text of a cell out of a row."""
    if cell is None or cell.column is None:
        value = "" if cell is None else cell.value or ""
        return lambda _: value
    place = at[cell.column]
    return lambda cells: cells[place]


def _cpu(text: str) -> int:
    try:
        number = int(text) if text.isascii() and "_" not in text and len(text) < 20 else _MAX_CPUS
    except ValueError:
        number = _MAX_CPUS
    if not WHOLE_NODE <= number < _MAX_CPUS:
        raise InputError(
            f"the cpu is {text[:40]!r}; it must be the number of a processor, or {WHOLE_NODE} for the node"
        )
    return number

"""Output of Google Benchmark: `--benchmark_out=FILE`, `--benchmark_out_format=json`.

A run of the program is a job; each benchmark, with its arguments, has the factors NAME_real_time_s, NAME_cpu_time_s,
NAME_B_per_s, NAME_items_per_s and NAME_COUNTER. The value is the mean of the repetitions.
"""

import math
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.documents import read_json
from lepaute.watch.foreign.rows import MAX_BYTES, Row, Source, digest, finite_number, node_of, table_of
from lepaute.watch.foreign.units import ISO, date_at
from lepaute.watch.values import WHOLE_NODE

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TIMES = ("real_time", "cpu_time")
#: Rates whose unit is known.
_RATES = {"bytes_per_second": "B_per_s", "items_per_second": "items_per_s"}
#: Fields of a benchmark that are numbers and no counters.
_NO_COUNTERS = {
    "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations", *_TIMES,
    "cpu_coefficient", "real_coefficient", "rms",
}  # fmt: skip
#: Fields of the context that the library writes, of the machine and the moment; others are the user's
#: (--benchmark_context), and say what was measured.
_OF_THE_MACHINE = {
    "date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "aslr_enabled", "caches",
    "load_avg", "json_schema_version",
}  # fmt: skip
#: Ends of names of aggregates, where a version does not yet say which rows are some.
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")


@dataclass(slots=True)
class _Benchmark:
    """values: of each measure, of all repetitions;  means: of those of which only aggregates are in the file."""

    values: dict[str, list[float]] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    repetitions: set[int] = field(default_factory=set)  # by their numbers
    repeated: object = None  # how often it was to be
    failed: bool = False


def is_google_benchmark(source: Source) -> bool:
    head = source.data[:4000].lstrip()
    return head[:1] == b"{" and b'"context"' in head and (b'"benchmarks"' in source.data)


def read_google_benchmark(source: Source, cluster: str, node: str) -> pd.DataFrame:
    """The factor values of a file; raises InputError, with the place, for what Google Benchmark would not write.

    A benchmark that ended in an error is `failed`; one that was skipped without an error has no rows. The stratum is
    the program's name, the library's version and build, the number of repetitions, and what --benchmark_context says.
    """
    document = read_json(source.data.removeprefix(b"\xef\xbb\xbf"), source.name, most_bytes=MAX_BYTES)
    context = _field(document, "context", dict, source.name)
    entries = _field(document, "benchmarks", list, source.name)
    where = f"{source.name}: context"
    started_s = date_at(ISO, _field(context, "date", str, where), where)
    host, path = context.get("host_name", ""), context.get("executable")
    node = node_of(node, host if isinstance(host, str) else "", source.name)
    program = PurePath(path).name if isinstance(path, str) else ""
    built = {key: value for key, value in context.items() if key not in _OF_THE_MACHINE}
    job = digest(document)
    rows: list[Row] = []
    for name, benchmark in _benchmarks(entries, source).items():
        stratum = digest("google-benchmark", program, built, benchmark.repeated)
        head = (cluster, node, WHOLE_NODE, job, started_s, stratum)
        if benchmark.failed:
            rows += [Row(*head, f"{name}_{time}_s", math.nan, "failed") for time in _TIMES]
            continue
        measures = benchmark.means | {
            key: math.fsum(value / len(values) for value in values) for key, values in benchmark.values.items()
        }
        rows += [Row(*head, f"{name}_{key}", value, "done") for key, value in measures.items()]
    return table_of(rows, source.name)


def _benchmarks(entries: list[Any], source: Source) -> dict[str, _Benchmark]:
    """By the name of the run, in the order of the file."""
    benchmarks: dict[str, _Benchmark] = {}
    for number, entry in enumerate(entries):
        where = f"{source.name}: benchmarks[{number}]"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is no object; give the file that --benchmark_out wrote")
        full = _field(entry, "name", str, where)
        run = entry.get("run_name", full)
        if not isinstance(run, str) or not run.strip():
            raise InputError(f"{where}: run_name is {_quoted(run)}; a name is expected")
        aggregate = _aggregate(entry, full)
        if entry.get("skipped") is True or aggregate not in (None, "mean"):
            source.omitted[
                "benchmark| that was skipped" if entry.get("skipped") is True else f"row| of aggregates ({aggregate})"
            ] += 1
            continue
        run = run if aggregate is None or "run_name" in entry else run.removesuffix("_mean")
        where = f"{where} ({run[:60]})"
        benchmark = benchmarks.setdefault(run, _Benchmark(repeated=entry.get("repetitions")))
        if aggregate is None:
            _add_repetition(benchmark, entry, where)
        else:
            benchmark.means |= _measures(entry, where)
    return benchmarks


def _aggregate(entry: dict[str, Any], name: str) -> str | None:
    """Which aggregate the row is; None for a repetition."""
    if "run_type" in entry:
        return str(entry.get("aggregate_name", "")) if entry["run_type"] == "aggregate" else None
    ending = next((aggregate for aggregate in _AGGREGATES if name.endswith(aggregate)), None)
    return None if ending is None else ending[1:]


def _add_repetition(benchmark: _Benchmark, entry: dict[str, Any], where: str) -> None:
    repetition = entry.get("repetition_index")
    if isinstance(repetition, int):
        if repetition in benchmark.repetitions:
            raise InputError(f"{where}: repetition {repetition} is there twice; give benchmarks names of their own")
        benchmark.repetitions.add(repetition)
    if entry.get("error_occurred") is True:
        benchmark.failed = True
        return
    for key, value in _measures(entry, where).items():
        benchmark.values.setdefault(key, []).append(value)


def _measures(entry: dict[str, Any], where: str) -> dict[str, float]:
    """Values in SI units by what they are called behind the benchmark's name."""
    unit = entry.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in _SECONDS:
        raise InputError(f"{where}: time_unit is {_quoted(unit)}; it must be {', '.join(_SECONDS)}")
    measures = {}
    for key in _TIMES:
        value = finite_number(entry.get(key))
        if value is None or value < 0.0:
            raise InputError(f"{where}: {key} is {_quoted(entry.get(key))}; a time is a number of 0 or more")
        measures[f"{key}_s"] = value * _SECONDS[unit]
    for key, content in entry.items():
        value = None if key in _NO_COUNTERS else finite_number(content)
        if value is not None:  # a rate of nothing in no time is NaN
            measures[_RATES.get(key, key)] = value
    return measures


def _field(content: object, key: str, type_: type[Any], where: str) -> Any:
    if not isinstance(content, dict) or key not in content:
        raise InputError(f"{where}: has no {key!r}; give the file that --benchmark_out wrote")
    if not isinstance(content[key], type_):
        expected = {"dict": "an object", "list": "a list", "str": "a text"}[type_.__name__]
        raise InputError(f"{where}: {key} is {_quoted(content[key])}; {expected} is expected")
    return content[key]


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

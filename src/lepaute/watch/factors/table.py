"""An archive as rows of the table of factor values, with a row for what is absent; the kinds of factors.

A kind is a function that takes an archive and gives values. Beside those of this package, two ways to plug one in:

* a distribution declares it as an entry point of the group `lepaute.watch.factors`:

      [project.entry-points."lepaute.watch.factors"]
      stream = "my_package.stream:stream_factors"

* a program registers it: `lepaute.watch.factors.register("stream", stream_factors)`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from math import isnan, nan

import pandas as pd

from lepaute.errors import InputError, LepauteError
from lepaute.kit.printable import printable
from lepaute.measure.archive import Archive
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.dgemm import (
    MODEL_FACTORS,
    RATE,
    SENTINEL_RATE,
    SIZE,
    coefficients,
    performance,
    planned_factors,
)
from lepaute.watch.factors.hardware import BANDWIDTH, BUFFERS, disk, memory, monitoring, network, workloads
from lepaute.watch.factors.value import FactorValue, differences, stratum_of
from lepaute.watch.values import COLUMNS, WHOLE_NODE, check_values

GROUP = "lepaute.watch.factors"
Measure = Callable[["Archive"], Iterable[FactorValue]]


@dataclass(frozen=True, slots=True)
class Kind:
    """everywhere : each node measures them all, so that a node without one has lost it"""

    name: str
    measure: Callable[[ArchivedRun], Iterable[FactorValue]]
    everywhere: bool = False


BUILT_IN = (
    Kind("performance", performance, everywhere=True),
    Kind("regression", coefficients, everywhere=True),
    Kind("monitoring", monitoring),
    Kind("memory", memory, everywhere=True),
    Kind("network", network),
    Kind("disk", disk, everywhere=True),
    Kind("workloads", workloads, everywhere=True),
)
_registered: dict[str, Measure] = {}


def register(name: str, measure: Measure) -> None:
    """Adds a kind of factors for the archives that this program ingests from now on.

    measure : takes a lepaute.Archive, gives FactorValues; nothing for archives without these factors
    Raises InputError for a name that is taken by another function.
    """
    if name in {kind.name for kind in BUILT_IN} or _registered.get(name, measure) is not measure:
        raise InputError(f"there is a kind of factors {printable(str(name)[:60])!r} already; give another name")
    _registered[name] = measure


def unregister(name: str) -> None:
    """Removes a kind that was registered; one that is not there is no error."""
    _registered.pop(name, None)


def kinds() -> tuple[Kind, ...]:
    """All of them: of this package, of installed distributions in the order of their names, and those registered.

    Raises InputError if one of a distribution cannot be loaded, or two have the same name.
    """
    known = {kind.name: kind for kind in BUILT_IN}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        origin = printable(point.dist.name) if point.dist is not None else "an installed distribution"
        if point.name in known:
            raise InputError(f"two kinds of factors are named {printable(point.name)!r} ({origin}); uninstall one")
        known[point.name] = Kind(point.name, _guarded(point.name, _loaded(point, origin), origin))
    for name, measure in _registered.items():
        if name in known:
            raise InputError(f"two kinds of factors are named {printable(name)!r}; register it under another name")
        known[name] = Kind(name, _guarded(name, measure, "registered"))
    return tuple(known.values())


def _loaded(point: EntryPoint, origin: str) -> Measure:
    try:
        measure = point.load()
    except Exception as problem:  # noqa: BLE001  whatever foreign code raises
        raise InputError(
            f"the factors {printable(point.name)!r} of {origin} cannot be loaded: {_one_line(problem)}; "
            "mend or uninstall it"
        ) from None
    if not callable(measure):
        raise InputError(f"the factors {printable(point.name)!r} of {origin} are no function")
    return measure  # type: ignore[no-any-return]


def _guarded(name: str, measure: Measure, origin: str) -> Callable[[ArchivedRun], Iterable[FactorValue]]:
    """The function of somebody else, with one clear line for whatever it does wrong."""

    def guarded(run: ArchivedRun) -> Iterable[FactorValue]:
        try:
            values = list(measure(run.archive))
        except LepauteError:
            raise
        except Exception as problem:
            raise InputError(
                f"{run.archive.path}: the factors {printable(name)!r} ({origin}) failed: {_one_line(problem)}"
            ) from problem
        for value in values:
            if not isinstance(value, FactorValue):
                raise InputError(
                    f"the factors {printable(name)!r} ({origin}) gave a {type(value).__name__}; they give FactorValues"
                )
        return values

    return guarded


def _one_line(problem: Exception) -> str:
    return printable(f"{type(problem).__name__}: {problem}")[:300]


@dataclass(frozen=True, slots=True)
class _Row:
    """A value with its state, and its conditions; None if those of what is absent are not known."""

    value: FactorValue
    state: str
    conditions: Mapping[str, str] | None


def factors_of(archive: "Archive", cluster: str = "") -> "pd.DataFrame":
    """The factor values of an archive, as watch.values says; `values_of` of Store.ingest takes this function.

    Of a node that is done there is a row for each factor it measured; of a node that failed, was aborted or is missing,
    one with that state and no value for each factor that the design would have given. A factor that every node
    measures and one has lost is `missing` there. No row where nothing is known of what should have been measured.
    Raises InputError, FitError or ArchiveError, one line, for an archive whose tables cannot be.
    """
    run = ArchivedRun(archive)
    rows = [
        {
            "cluster": cluster,
            "node": row.value.node,
            "cpu": row.value.cpu,
            "job": run.job,
            "started_s": run.started_s,
            "stratum": "" if row.conditions is None else stratum_of(row.conditions),
            "factor": row.value.factor,
            "value": row.value.value if row.state == "done" else nan,
            "state": row.state,
            "archive": archive.id,
        }
        for row in list(_rows(run))  # what is wrong with tables is told before a missing date
    ]
    return check_values(pd.DataFrame(rows, columns=list(COLUMNS)))


def strata_of(archive: "Archive") -> dict[str, dict[str, str]]:
    """Stratum -> its conditions, of all values of an archive."""
    conditions = (row.conditions for row in _rows(ArchivedRun(archive)) if row.conditions is not None)
    return {stratum_of(condition): dict(condition) for condition in conditions}


def why_strata_differ(a: "Archive", b: "Archive", factor: str) -> tuple[str, ...]:
    """Why values of a factor in two archives are not comparable: a line a condition that differs; none if they are.

    Nodes and processors of the same name are compared; where there are none, the first of each.
    Raises InputError if one of the archives does not have the factor.
    """
    first, second = _conditions(a, factor), _conditions(b, factor)
    pairs = [(first[key], second[key]) for key in sorted(first.keys() & second.keys())]
    pairs = pairs or [(next(iter(first.values())), next(iter(second.values())))]
    return tuple(dict.fromkeys(line for before, after in pairs for line in differences(before, after)))


def _conditions(archive: "Archive", factor: str) -> dict[tuple[str, int], Mapping[str, str]]:
    rows = list(_rows(ArchivedRun(archive)))
    of_machine = {
        (row.value.node, row.value.cpu): row.conditions
        for row in rows
        if row.value.factor == factor and row.conditions is not None
    }
    if not of_machine:
        known = ", ".join(sorted({row.value.factor for row in rows})) or "none"
        raise InputError(f"{archive.path}: does not have the factor {printable(factor[:60])!r}; it has {known}")
    return of_machine


def _rows(run: ArchivedRun) -> Iterator[_Row]:
    measured: dict[tuple[str, int, str], _Row] = {}
    everywhere: set[str] = set()
    for kind in kinds():
        for value in kind.measure(run):
            if value.node not in run.states:
                raise InputError(
                    f"{run.archive.path}: the observations name the node {printable(value.node)[:60]!r}, which the "
                    "archive does not describe; correct its metadata or measure again"
                )
            key = (value.node, value.cpu, value.factor)
            if key in measured:
                raise InputError(
                    f"{run.archive.path}: {value.factor} of node {value.node}, cpu {value.cpu} is given twice, the "
                    f"second time by the factors {kind.name!r}; name one of them otherwise"
                )
            state = "missing" if isnan(value.value) else "done"
            measured[key] = _Row(value, state, {**run.protocol, **value.conditions})
            if kind.everywhere:
                everywhere.add(value.factor)
    yield from (row for row in measured.values() if run.states[row.value.node] == "done")
    yield from _absent(run, measured, everywhere)


def _absent(run: ArchivedRun, measured: Mapping[tuple[str, int, str], _Row], everywhere: set[str]) -> Iterator[_Row]:
    """Rows of nodes that are not done, and of factors that a node that is done has lost."""
    #: Factor -> processor -> conditions, of the first node that has it.
    known: dict[str, dict[int, Mapping[str, str] | None]] = {}
    for (_, cpu, factor), row in measured.items():
        known.setdefault(factor, {}).setdefault(cpu, row.conditions)
    for factor in _planned(run):
        known.setdefault(factor, {})
    for node, state in run.states.items():
        own = set(run.cpus(node))
        for factor, by_cpu in known.items():
            if state == "done" and factor not in everywhere:
                continue
            for cpu in [cpu for cpu in by_cpu if cpu == WHOLE_NODE or not own or cpu in own] or own or [WHOLE_NODE]:
                if state == "done" and (node, cpu, factor) in measured:
                    continue
                absent = FactorValue(node, factor, nan, cpu)
                yield _Row(absent, "missing" if state == "done" else state, by_cpu.get(cpu))


def _planned(run: ArchivedRun) -> tuple[str, ...]:
    """The factors that a run would have given, by its design: what is absent where it failed before it measured them.

    None if its design is not known; of a calibration those of dgemm and its sentinels, no messages.
    """
    if run.is_calibration:
        return (RATE, SENTINEL_RATE, *MODEL_FACTORS)
    try:
        design = run.design
    except LepauteError:  # a design that cannot be read says nothing of what was planned
        return ()
    if design is None:
        return ()
    if set(SIZE) <= set(design.columns):
        return planned_factors(design)
    return (BANDWIDTH,) if set(design.columns) >= BUFFERS else ()

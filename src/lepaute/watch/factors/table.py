"""An archive as rows of the table of factor values, with a row for what is absent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.printable import printable
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.planned import planned_factors
from lepaute.watch.factors.registry import kinds
from lepaute.watch.factors.stratum import differences, stratum_of
from lepaute.watch.factors.value import FactorValue
from lepaute.watch.values import COLUMNS, WHOLE_NODE, check_values

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.archive import Archive


@dataclass(frozen=True, slots=True)
class _Row:
    """A value with its state, and its conditions; None where those of what is absent are not known."""

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
    import pandas as pd

    run = ArchivedRun(archive)
    rows = list(_rows(run))
    if not rows:
        return check_values(pd.DataFrame(columns=list(COLUMNS)))
    started_s = run.started_s
    return check_values(
        pd.DataFrame(
            [
                {
                    "cluster": cluster,
                    "node": row.value.node,
                    "cpu": row.value.cpu,
                    "job": run.job,
                    "started_s": started_s,
                    "stratum": "" if row.conditions is None else stratum_of(row.conditions),
                    "factor": row.value.factor,
                    "value": row.value.value if row.state == "done" else nan,
                    "state": row.state,
                    "archive": archive.id,
                }
                for row in rows
            ],
            columns=list(COLUMNS),
        )
    )


def strata_of(archive: "Archive") -> dict[str, dict[str, str]]:
    """Stratum -> its conditions, of all values of an archive."""
    return {
        stratum_of(row.conditions): dict(row.conditions)
        for row in _rows(ArchivedRun(archive))
        if row.conditions is not None
    }


def why_strata_differ(a: "Archive", b: "Archive", factor: str) -> tuple[str, ...]:
    """Why values of a factor in two archives are not comparable: a line a condition that differs; none if they are.

    Nodes and processors of the same name are compared; where there are none, the first of each.
    Raises InputError where one of the archives does not have the factor.
    """
    first, second = _conditions(a, factor), _conditions(b, factor)
    pairs = [(first[key], second[key]) for key in sorted(first.keys() & second.keys())]
    pairs = pairs or [(next(iter(first.values())), next(iter(second.values())))]
    return tuple(dict.fromkeys(line for before, after in pairs for line in differences(before, after)))


def _conditions(archive: "Archive", factor: str) -> dict[tuple[str, int], Mapping[str, str]]:
    rows = list(_rows(ArchivedRun(archive)))
    found = {
        (row.value.node, row.value.cpu): row.conditions
        for row in rows
        if row.value.factor == factor and row.conditions is not None
    }
    if not found:
        known = ", ".join(sorted({row.value.factor for row in rows})) or "none"
        raise InputError(f"{archive.path}: does not have the factor {printable(factor[:60])!r}; it has {known}")
    return found


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
    for factor in planned_factors(run):
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

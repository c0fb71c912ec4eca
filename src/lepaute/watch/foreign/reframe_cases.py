"""Test cases that ReFrame ran, as its performance logs and its results database have them, and their factor values.

A factor is `TEST:VARIABLE` with the unit at its end, such as `copy_test %size_MB=16:rate_B_per_s`; the name of a test
has its parameters. A value that was measured is one, also where it missed its reference: what is usual on the machine
is for the tests to say.
"""

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lepaute.errors import InputError
from lepaute.watch.foreign.rows import Row, digest, machine_of
from lepaute.watch.foreign.units import si_unit
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
    what      : WHAT_RAN of it
    where     : place in the file, for messages
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


def rows_of(cases: Iterable[Case], cluster: str, node: str) -> list[Row]:
    """The rows of all cases.

    A case that failed before it had variables has the rows of those that other cases of its test have. One that came
    to no node, and so has no value, has no rows.
    Raises InputError, with the place, for a value of no node, for an unknown result, and where a node is given although
    the cases ran on several.
    """
    kept = [case for case in cases if case.result != SKIPPED]
    several = sorted({case.nodes for case in kept if case.nodes})
    if node and len(several) > 1:
        raise InputError(
            f"{kept[0].where}: the node is given, {node[:40]!r}, and cases ran on {len(several)} nodes, such as "
            f"{several[0][:40]!r} and {several[1][:40]!r}; leave it out"
        )
    names: dict[str, dict[str, None]] = {}
    for case in kept:
        names.setdefault(case.name, {}).update(dict.fromkeys(_factor(case, each)[0] for each in case.variables))
    rows = []
    for case in kept:
        if case.result not in STATES:
            raise InputError(
                f"{case.where}: the result is {case.result[:40]!r}; there are {', '.join(STATES)}, {SKIPPED}"
            )
        measured = any(value is not None for value, _ in case.variables.values())
        if not (node or case.nodes or measured):
            continue
        machine = machine_of(cluster or case.system, node, case.nodes, case.where)
        head = (*machine, WHOLE_NODE, _job(case), case.ended_s, digest("reframe", sorted(case.what.items())))
        if not case.variables and STATES[case.result] != "missing":
            rows += [Row(*head, factor, math.nan, STATES[case.result]) for factor in names[case.name] or (case.name,)]
        for variable in case.variables:
            factor, value = _factor(case, variable)
            rows.append(Row(*head, factor, value, STATES[case.result] if math.isnan(value) else "done"))
    return rows


def _factor(case: Case, variable: str) -> tuple[str, float]:
    """Name and value in SI units; NaN where there is none. A unit that is not known stays, at the end of the name."""
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

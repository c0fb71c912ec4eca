"""Measuring until the interval that the measurement is for is narrow enough."""

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from math import fsum
from numbers import Real
from pathlib import Path

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.journal import drop_broken_end
from lepaute.kit.numbers import of_type, texts
from lepaute.measure.design import Design
from lepaute.measure.experiment.entries import AddedRow, MeasuredRow, ReachedLevel
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.raw_files import Value
from lepaute.stats.stopping import Target, assess, next_round

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Until:
    """When enough has been measured.

    column   : what is recorded and shall be known, such as duration_s, in any unit
    target   : how narrow its interval shall be, in every level
    per      : the factors whose combinations are the levels; all factors of the design unless given
    budget_s : of all further rounds together, by the wall clock; None: until the target's `most`
    """

    column: str = "duration_s"
    target: Target = field(default_factory=Target)
    per: Sequence[str] | None = None
    budget_s: float | None = None
    table: str = "observations"

    def __post_init__(self) -> None:
        of_type(self.target, "the target of Until", Target, "a Target, such as lp.Target(0.02)")
        if self.per is not None:
            texts(self.per, "per of Until", "['size_bytes']")
        if self.budget_s is not None:
            of_type(self.budget_s, "budget_s of Until", Real, "seconds")

    def levels(self, design: Design) -> dict[Key, list[Mapping[str, Value]]]:
        """The rows of a design by level. Raises InputError for a factor that it does not have."""
        levels: dict[Key, list[Mapping[str, Value]]] = {}
        for row in design:
            levels.setdefault(tuple(str(row[name]) for name in self.factors(design)), []).append(row)
        return levels

    def factors(self, design: Design) -> tuple[str, ...]:
        """The factors whose combinations are the levels. Raises InputError for one that the design does not have."""
        factors = design.columns if self.per is None else tuple(self.per)
        for name in factors:
            if name not in design.columns:
                raise InputError(f"the design has no factor {name!r}; it has {', '.join(design.columns)}")
        return factors


def check_recorded(workspace: Workspace, design: Design, until: Until) -> bool:
    """Whether anything has been recorded yet. Raises InputError if the column is missing, or has no numbers."""
    path = workspace.folder / "raw" / f"{until.table}.csv"
    observed(path, until.column, until.factors(design), {})
    return path.is_file()


def rounds(
    workspace: Workspace, design: Design, until: Until, seed: int, tell: Callable[[str], None]
) -> Iterator[tuple[int, Mapping[str, Value]]]:
    """Further rows, (number, factors), numbered on from the design's, in shuffled rounds, until every level is known.

    A round is written down before its first row is measured, so that a run that is resumed goes on inside it. It ends
    early where the budget does. At the end what each level has reached is written down.
    """
    factors, levels = until.factors(design), until.levels(design)
    began_s = time.monotonic()

    def left_s() -> float | None:
        return None if until.budget_s is None else max(0.0, until.budget_s - (time.monotonic() - began_s))

    planned = workspace.noted(AddedRow)
    while True:
        done = workspace.done()
        for entry in planned:
            if left_s() == 0.0:
                break
            if entry.design_row not in done:
                yield entry.design_row, entry.row
        seen = observed(workspace.folder / "raw" / f"{until.table}.csv", until.column, factors, levels)
        needed = next_round(seen, until.target, seconds=left_s(), costs_s=_costs_s(workspace, design, factors))
        earlier = workspace.noted(AddedRow)
        number = 1 + max((entry.round for entry in earlier), default=0)
        rng = np.random.default_rng([seed, number])
        rows = [levels[key][int(rng.integers(len(levels[key])))] for key, count in needed.items() for _ in range(count)]
        if not rows:
            break
        first = len(design) + len(earlier)
        order = rng.permutation(len(rows))
        planned = [AddedRow(number, first + position, dict(rows[int(index)])) for position, index in enumerate(order)]
        for entry in planned:
            workspace.note(entry)
        short = sum(map(bool, needed.values()))
        measurements = "1 more measurement" if len(planned) == 1 else f"{len(planned)} more measurements"
        tell(f"round {number}: {measurements}, for {short} of {len(needed)} levels")
    _note_reached(workspace, until, factors, seen, tell)


def _costs_s(workspace: Workspace, design: Design, factors: Sequence[str]) -> dict[Key, float]:
    """How long a row of each level took, in the mean, of the levels of which that was noted."""
    rows: dict[int, Mapping[str, Value]] = dict(enumerate(design))
    rows |= {entry.design_row: entry.row for entry in workspace.noted(AddedRow)}
    took: dict[Key, list[float]] = {}
    for entry in workspace.noted(MeasuredRow):
        if entry.wall_s is not None and (row := rows.get(entry.design_row)) is not None:
            took.setdefault(tuple(str(row[name]) for name in factors), []).append(entry.wall_s)
    return {key: fsum(values) / len(values) for key, values in took.items()}


def _note_reached(
    workspace: Workspace,
    until: Until,
    factors: Sequence[str],
    seen: Mapping[Key, Sequence[float]],
    tell: Callable[[str], None],
) -> None:
    short = 0
    for key, values in seen.items():
        progress = assess(values, until.target, ended=True)
        short += not progress.reached
        workspace.note(
            ReachedLevel(
                level=dict(zip(factors, key, strict=True)),
                column=until.column,
                observations=len(values),
                estimate=progress.estimate,
                low=progress.interval.low,
                high=progress.interval.high,
                reached=progress.reached,
                told=str(progress),
            )
        )
    outcome = (
        "every level is known well enough" if not short else f"{short} of {len(seen)} levels did not reach their target"
    )
    tell(f"{outcome}: {until.column} within {100 * until.target.relative_half_width:g} %")


def observed(path: Path, column: str, factors: Sequence[str], levels: Mapping[Key, object]) -> dict[Key, list[float]]:
    """What has been recorded in each level, as it came. Raises InputError if the column is missing."""
    seen: dict[Key, list[float]] = {key: [] for key in levels}
    if not path.is_file():
        return seen
    drop_broken_end(path)
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(dropwhile(lambda line: line.startswith("#@"), file))
        for name in (column, *factors):
            if name not in (reader.fieldnames or ()):
                known = ", ".join(reader.fieldnames or ())
                raise InputError(f"{path.name}: nothing was recorded as {name}; name a column of {known}")
        for row in reader:
            if row[column]:
                value = _number(path.name, column, row[column])
                if (key := tuple(row[name] for name in factors)) in seen:
                    seen[key].append(value)
    return seen


def _number(table: str, column: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{table}: {column} is {cell[:40]!r}; until= needs a column of numbers") from None

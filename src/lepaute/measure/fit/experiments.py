"""What can be fitted to an experiment that is no calibration: tests of its factors, and the memory hierarchy."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pandas

from lepaute.errors import FitError
from lepaute.kit.notebook import table_html
from lepaute.kit.text import natural_order
from lepaute.measure.archive import Archive
from lepaute.measure.archive.setups.topology import data_caches
from lepaute.measure.design.generators import BLOCK, BLOCKS
from lepaute.measure.design.table import parse_design
from lepaute.measure.fit.memory import MemoryHierarchy, hierarchy_text, is_memory, memory_hierarchy
from lepaute.measure.fit.observations.columns import Place, check_durations
from lepaute.measure.fit.observations.factors import (
    DURATION,
    FactorTest,
    factor_frame,
    factor_table,
    factor_tests,
    sentence,
)
from lepaute.measure.observation_columns import COLUMNS_BY_NAME, MAX_LEVELS, factors_of

#: What a column is taken for that is no factor.
_ROLES = {"size": "a size", "process": "part of a process", "time": "a time", "note": "a note"}
_TABLES = "observations/"
_DESIGN = "design.csv"


@dataclass(frozen=True, repr=False)
class Findings:
    """table: the observations that were looked at.

    factor_tests: of every factor that was varied in them; none of a memory hierarchy, where most matter
    hierarchies : of the memory of each node
    untested    : columns that may be factors, and the reason why each was not tested
    """

    table: str
    factor_tests: tuple[FactorTest, ...]
    hierarchies: tuple[MemoryHierarchy, ...]
    untested: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        about = [f"{test.factor} matters" if test.matters else test.factor for test in self.factor_tests]
        about += [f"memory of {hierarchy.node}" for hierarchy in self.hierarchies]
        return f"<Findings of {self.table}: {', '.join(about)}>"

    def __str__(self) -> str:
        tests = [factor_table(self.factor_tests)] if self.factor_tests else []
        return "\n\n".join([*tests, *map(hierarchy_text, self.hierarchies), *self.notes])

    @property
    def notes(self) -> list[str]:
        if not self.untested:
            return []
        names = ", ".join(f"{name} ({why})" for name, why in self.untested.items())
        return [f"not tested: {names}; --factor NAME (factors=) tests it"]

    def _repr_html_(self) -> str:
        if not self.factor_tests:
            return f"<pre>{escape(str(self))}</pre>"
        return table_html(
            f"{self.table}: {self.factor_tests[0].column}",
            ("factor", "kernel", "reference", "level", "ratio", "low", "high", "p (Holm)"),
            [
                (test.factor, test.kernel, test.reference, row.level, row.ratio, row.low, row.high, test.p_holm)
                for test in self.factor_tests
                for row in test.effects
            ],
            [*map(sentence, self.factor_tests), *self.notes],
        )

    def to_frame(self) -> pandas.DataFrame:
        """The tests of factors, a row for each level but the reference, see `factor_frame`."""
        return factor_frame(self.factor_tests)


def findings(archive: Archive | str | Path, factors: Collection[str] = (), column: str = DURATION) -> list[Findings]:
    """The findings for every table of observations with `column`. Raises FitError if there is none, or nothing varies.

    factors : columns that are factors besides those that are declared and those of the archive's design; sizes are
              tested where they are named here
    column  : what is compared: durations, or another result that was recorded, such as a rate
    """
    archive = Archive.open(archive)
    design = _design_columns(archive)
    declared = None if design is None else (*design, *factors)
    results, columns, looked_at = [], set(), False
    untested: dict[str, str] = {}
    for name in archive.members():
        if not name.startswith(_TABLES) or not name.endswith(".parquet"):
            continue
        table = archive.table(name)
        columns |= set(map(str, table.columns))
        if column not in table.columns or len(table) == 0 or not set(factors) <= set(table.columns):
            continue
        looked_at = True
        check_durations(table, Place(archive.path, name), column)
        if is_memory(table):
            results.append(Findings(name, (), tuple(_hierarchies(archive, table))))
        else:
            names = factors_of(table, declared)
            names = (*names, *(name for name in factors if name not in names))
            untested |= _untested(table, design, {*names, column})
            if tests := factor_tests(table, factors=names, column=column):
                results.append(Findings(name, tests, (), untested))
    if not results:
        reasons = [_nothing(column, factors, columns, columns - set(design or ()), looked_at=looked_at)]
        reasons += Findings("", (), (), untested).notes if looked_at else []
        raise FitError(f"{archive.path}: {'; '.join(reasons)}")
    return results


def _untested(table: pandas.DataFrame, design: Collection[str] | None, tested: Collection[str]) -> dict[str, str]:
    """The other columns with several levels: of a design all, without one those of few levels."""
    untested = {}
    for name in table.columns.difference(list(tested), sort=False):
        levels = table[name].nunique()
        if levels < 2 or (levels > MAX_LEVELS if design is None else name not in design):
            continue
        role = (COLUMNS_BY_NAME[name].role if name in COLUMNS_BY_NAME else None) or "time"
        untested[str(name)] = f"{levels} levels" if levels > MAX_LEVELS else f"{_ROLES[role]} by its name"
    return untested


def _nothing(
    column: str, factors: Collection[str], columns: Collection[str], recorded: Collection[str], *, looked_at: bool
) -> str:
    if looked_at:
        return (
            "no factor has several levels; there is nothing to fit; factors are the columns of the design but sizes, "
            "and those that are named (factors=, --factor); durations by size: lp.fit.segment"
        )
    unknown = [name for name in (column, *factors) if name not in columns]
    missing = f"no table of observations has a column {unknown[0]}" if unknown else "no table has all these columns"
    own = sorted(name for name in recorded if name not in COLUMNS_BY_NAME)
    return f"{missing}; there is nothing to fit; name what was recorded with column= (--column)" + (
        f": {', '.join(own)}" if own else ""
    )


def _design_columns(archive: "Archive") -> tuple[str, ...] | None:
    """The columns of the design that the experiment followed, but the numbers of its blocks; None if it had none."""
    if _DESIGN not in archive.members():
        return None
    design = parse_design(_text(archive, _DESIGN), f"{archive.path}: {_DESIGN}")
    return tuple(name for name in design.columns if name != BLOCK or BLOCKS not in design.header)


def _hierarchies(archive: "Archive", table: pandas.DataFrame) -> "Iterator[MemoryHierarchy]":
    nodes = table["node"].astype(str) if "node" in table.columns else table["stride"].map(lambda _: "")
    for node in sorted(set(nodes), key=natural_order):
        rows = table[(nodes == node).to_numpy()]
        thread = int(rows["cpu"].iloc[0]) if "cpu" in rows.columns else 0
        processor = _text(archive, f"environment/{node}/cpuinfo.txt").splitlines()
        yield memory_hierarchy(
            rows,
            data_caches(_text(archive, f"environment/{node}/lstopo.xml"), thread),
            node=node,
            virtual=any(line.startswith("flags") and " hypervisor" in line for line in processor),
        )


def _text(archive: "Archive", member: str) -> str:
    return archive.read_bytes(member).decode(errors="replace") if member in archive.members() else ""

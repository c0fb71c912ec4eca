"""What can be fitted to an experiment that is no calibration: tests of its factors, and the memory hierarchy."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.archive.setups.topology import Cache, data_caches
from lepaute.design.table import parse_design
from lepaute.errors import FitError
from lepaute.fit.memory.hierarchy import MemoryHierarchy, is_memory, memory_hierarchy
from lepaute.fit.observations.checks import Place, check_durations
from lepaute.fit.observations.columns import factors_of
from lepaute.fit.observations.factors import FactorTest, factor_tests
from lepaute.kit.ordering import natural_order

if TYPE_CHECKING:
    import pandas

    from lepaute.archive import Archive

_TABLES = "observations/"
_DESIGN = "design.csv"


@dataclass(frozen=True)
class Findings:
    """table: the observations that were looked at.

    factor_tests: of every factor that was varied in them; none where they show a memory hierarchy, of which most
                  factors are known to matter
    hierarchies : of the memory of each node
    """

    table: str
    factor_tests: tuple[FactorTest, ...]
    hierarchies: tuple[MemoryHierarchy, ...]


def findings(archive: "Archive", factors: Collection[str] = ()) -> list[Findings]:
    """Of every table of observations that has durations. Raises FitError where there is none, or nothing varies.

    factors : columns that are factors besides those that are declared and those of the archive's design
    """
    design = _design_columns(archive)
    declared = None if design is None else (*design, *factors)
    results = []
    for name in archive.members():
        if not name.startswith(_TABLES) or not name.endswith(".parquet"):
            continue
        table = archive.table(name)
        if "duration_s" not in table.columns or len(table) == 0:
            continue
        check_durations(table, Place(archive.path, name))
        if is_memory(table):
            results.append(Findings(name, (), tuple(_hierarchies(archive, table))))
        elif tests := factor_tests(table, factors=factors_of(table, declared)):
            results.append(Findings(name, tests, ()))
    if not results:
        raise FitError(
            f"{archive.path}: no table of observations has durations (duration_s) under several levels of a factor; "
            "there is nothing to fit; factors are the columns of the design and those that --factor names"
        )
    return results


def _design_columns(archive: "Archive") -> tuple[str, ...] | None:
    """The columns of the design that the experiment followed; None where it had none."""
    if _DESIGN not in archive.members():
        return None
    return parse_design(_text(archive, _DESIGN), f"{archive.path}: {_DESIGN}").columns


def _hierarchies(archive: "Archive", table: "pandas.DataFrame") -> "Iterator[MemoryHierarchy]":
    """Of every core that was measured: the nodes in their order."""
    nodes = table["node"].astype(str) if "node" in table.columns else table["stride"].map(lambda _: "")
    for node in sorted(set(nodes), key=natural_order):
        rows = table[(nodes == node).to_numpy()]
        thread = int(rows["cpu"].iloc[0]) if "cpu" in rows.columns else 0
        yield memory_hierarchy(rows, _caches(archive, node, thread), node=node, virtual=_is_virtual(archive, node))


def _caches(archive: "Archive", node: str, thread: int) -> tuple[Cache, ...]:
    return data_caches(_text(archive, f"environment/{node}/lstopo.xml"), thread)


def _is_virtual(archive: "Archive", node: str) -> bool:
    """Whether the processor says that a hypervisor is between it and the system."""
    lines = _text(archive, f"environment/{node}/cpuinfo.txt").splitlines()
    return any(line.startswith("flags") and " hypervisor" in line for line in lines)


def _text(archive: "Archive", member: str) -> str:
    return archive.read_bytes(member).decode(errors="replace") if member in archive.members() else ""

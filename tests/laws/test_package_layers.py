"""Imports within lepaute point one way, those in functions too."""

import ast
import functools
import re
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from lepaute.measure.schedulers import SCHEDULERS
from scripts.limits import walk

PACKAGE = Path(__file__).parents[2] / "src" / "lepaute"
#: What every package shares, and what it may import of lepaute besides itself.
OF_LEPAUTE = {
    "kit": {"errors", "version"},
    "stats": {"errors", "version", "kit", "_core"},  # the compiled core, which imports nothing of ours
    "trace": {"errors", "version", "kit", "stats", "report"},
    "store": {"errors", "version", "kit", "stats", "archive"},
    "report": {"errors", "version", "kit", "stats"},
}
#: A module or sub-package of `lepaute.fit`, and what it may import of `fit`.
OF_FIT = {
    "numeric": set(),
    "mixtures": {"numeric"},
    "observations": {"numeric"},
    "segmentation": {"numeric"},
    "duration_tables": {"numeric"},
    "segment_report": {"duration_tables", "segmentation"},
    "ping_pongs": {"duration_tables", "segmentation"},
    "kernels": {"numeric", "mixtures", "observations"},
    "messages": {"numeric", "mixtures", "observations", "segmentation"},
    "memory": {"numeric", "segmentation"},
    "variability": {"numeric", "observations", "kernels"},
    "population": {"numeric", "observations", "kernels", "variability"},
    "diagnostics": {"numeric", "observations", "kernels", "variability"},
    "report": {"numeric", "diagnostics"},
    "experiments": {"observations", "memory"},
    "fitted_models": {"numeric", "observations", "kernels", "messages", "variability"},
}
#: A sub-package of `lepaute.measure`, and those that it may import: an experiment does not know of calibrations.
OF_MEASURE = {
    "node_agent": set(),
    "schedulers": set(),
    "nodes": {"node_agent", "schedulers"},
    "experiment": {"node_agent", "schedulers", "nodes"},
    "calibration": {"node_agent", "schedulers", "nodes", "experiment"},
}


def imports(text: str) -> list[tuple[str, bool]]:
    """What a module imports, by its whole name, and whether type checkers alone do (`if TYPE_CHECKING`)."""
    names = []
    for node, _, for_types in walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [(alias.name, for_types) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:  # relative ones stay in their package
            names += [(f"{node.module}.{alias.name}", for_types) for alias in node.names]
    return names


@functools.cache
def imports_of_files() -> dict[Path, list[tuple[str, bool]]]:
    """Of each module of lepaute, by its path in the package."""
    return {path.relative_to(PACKAGE): imports(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def parts(names: Iterable[tuple[str, bool]], above: str = "lepaute", *, types: bool = True) -> set[str]:
    """The first names below `above`."""
    return {
        name.removeprefix(f"{above}.").split(".")[0]
        for name, for_types in names
        if name.startswith(f"{above}.") and (types or not for_types)
    }


def test_no_two_packages_need_each_other() -> None:
    needs: dict[str, set[str]] = {}
    for path, names in imports_of_files().items():
        package = path.parts[0]
        if len(path.parts) > 1:
            needs[package] = needs.get(package, set()) | parts(names, types=False) - {package}
    assert len(needs) > 10
    TopologicalSorter(needs).prepare()  # raises CycleError


@pytest.mark.parametrize(("folder", "may_import"), [("", OF_LEPAUTE), ("fit", OF_FIT), ("measure", OF_MEASURE)])
def test_a_part_imports_only_the_parts_below_it(folder: str, may_import: dict[str, set[str]]) -> None:
    """A circle, or an arrow that points upwards, makes two parts one: neither can be read or changed alone."""
    wrong = {}
    for path, names in imports_of_files().items():
        if not path.is_relative_to(folder):
            continue
        part = path.relative_to(folder).with_suffix("").parts[0]
        assert folder != "fit" or part in {*may_import, "__init__"}
        upwards = parts(names, f"lepaute.{folder}".removesuffix(".")) - {part} - may_import.get(part, set())
        if folder == "measure":
            upwards &= may_import.keys()
        if part in may_import and upwards:
            wrong[str(path)] = upwards
    assert not wrong


def test_nobody_imports_the_command_line() -> None:
    users = [path for path, names in imports_of_files().items() if "cli" in parts(names)]
    assert not [str(path) for path in users if path.parts[0] != "cli"]


def test_no_other_file_asks_for_the_name_of_a_scheduler() -> None:
    """Another scheduler is a module and a line in the registry, only while nobody else decides by names."""
    names = "|".join(each for each in SCHEDULERS if each != "local")  # also a word for other things
    name = re.compile(rf'(?:==|!=|\bin\b|\bnot in\b)\s*\(?"({names})"')
    asking = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        if "schedulers" not in path.parts
        for line in path.read_text().splitlines()
        if name.search(line)
    ]
    assert not asking


def test_the_test_of_imports_can_fail() -> None:
    for_types = "if TYPE_CHECKING:\n    import lepaute.fit\n"
    names = imports(f"{for_types}def f():\n    from lepaute.cli.main import x\nimport lepaute.kit.files")
    assert parts(names) == {"cli", "fit", "kit"}
    assert parts(names, types=False) == {"cli", "kit"}
    assert parts(names, "lepaute.cli") == {"main"}

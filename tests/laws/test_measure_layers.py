"""Dependencies within `lepaute.measure` point one way, and only its schedulers know the names of schedulers."""

import ast
import re
from pathlib import Path

from lepaute.measure.schedulers import SCHEDULERS

MEASURE = Path(__file__).parents[2] / "src" / "lepaute" / "measure"
#: A sub-package, and those of `measure` that it may import.
MAY_IMPORT = {
    "node_agent": set(),
    "schedulers": set(),
    "nodes": {"node_agent", "schedulers"},
    "experiment": {"node_agent", "schedulers", "nodes"},
    "calibration": {"node_agent", "schedulers", "nodes", "experiment"},
}


def imported_parts(path: Path) -> set[str]:
    """The sub-packages of `lepaute.measure` that a file imports, in functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[2] for name in names if name.startswith("lepaute.measure.")} & MAY_IMPORT.keys()


def test_every_part_of_measure_imports_only_the_parts_below_it() -> None:
    """An experiment that knew of calibrations could not be read, changed or reused without them."""
    wrong = {}
    for part, below in MAY_IMPORT.items():
        for path in (MEASURE / part).rglob("*.py"):
            if upwards := imported_parts(path) - {part} - below:
                wrong[str(path.relative_to(MEASURE))] = upwards
    assert not wrong


def test_no_other_file_asks_for_the_name_of_a_scheduler() -> None:
    """Another scheduler is a module and a line in the registry, only while nobody else decides by names."""
    names = "|".join(each for each in SCHEDULERS if each != "local")  # also a word for other things
    name = re.compile(rf'(?:==|!=|\bin\b|\bnot in\b)\s*\(?"({names})"')
    source = MEASURE.parent
    asking = [
        f"{path.relative_to(source)}: {line.strip()}"
        for path in source.rglob("*.py")
        if "schedulers" not in path.parts
        for line in path.read_text().splitlines()
        if name.search(line)
    ]
    assert not asking


def test_an_import_inside_a_function_is_seen(tmp_path: Path) -> None:
    """The check itself can fail."""
    (tmp_path / "a.py").write_text("def f():\n    from lepaute.measure.calibration import entries\n")
    assert imported_parts(tmp_path / "a.py") == {"calibration"}

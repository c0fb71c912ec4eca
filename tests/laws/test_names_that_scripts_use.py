"""What scripts, validations, benchmarks and examples import from the package is there: no type checker reads them."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("scripts", "validation", "benchmarks", "examples")
FILES = sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".sh"))
#: Of Python inside of a shell script.
IMPORT = re.compile(r"^from lepaute[\w.]* import [\w, ]+$", re.MULTILINE)


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name, of each name that a file takes from the package."""
    text = path.read_text()
    if path.suffix == ".sh":
        text = "\n".join(IMPORT.findall(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lepaute":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.slow
def test_every_name_is_there() -> None:
    used = {(module, name): path for path in FILES for module, name in imports(path)}
    assert len(used) > 100
    lacking = [
        f"{path.relative_to(ROOT)}: {module}.{name}"
        for (module, name), path in used.items()
        if not hasattr(import_module(module), name) and find_spec(f"{module}.{name}") is None
    ]
    assert not lacking

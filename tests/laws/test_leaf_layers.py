"""What every package shares stands below all of them."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "lepaute"
#: A leaf, and what of ours it may import besides itself.
MAY_IMPORT = {
    "kit": {"errors", "version"},
    "stats": {"errors", "version", "kit", "_core"},  # the compiled core, which imports nothing of ours
    "trace": {"errors", "version", "kit", "stats", "report"},
    "store": {"errors", "version", "kit", "stats", "archive"},
    "report": {"errors", "version", "kit", "stats"},
}


def imported_parts(path: Path) -> set[str]:
    """The parts of `lepaute` that a file imports, in functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:  # relative ones stay in their package
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("lepaute.")}


def test_leaves_import_nothing_above_them() -> None:
    wrong = {
        str(path.relative_to(PACKAGE)): upwards
        for leaf, allowed in MAY_IMPORT.items()
        for path in (PACKAGE / leaf).rglob("*.py")
        if (upwards := imported_parts(path) - allowed - {leaf})
    }
    assert not wrong


def test_nobody_imports_the_command_line() -> None:
    users = [path for path in PACKAGE.rglob("*.py") if "cli" in imported_parts(path)]
    assert not [str(path.relative_to(PACKAGE)) for path in users if path.relative_to(PACKAGE).parts[0] != "cli"]

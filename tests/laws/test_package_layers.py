"""The packages of lepaute import each other one way."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import lepaute

PACKAGE = Path(lepaute.__file__).parent


def imported(text: str) -> Iterator[str]:
    """The packages of lepaute, by the first name below it, that a module imports, at its top or in a function.

    What is imported for type checkers alone (`if TYPE_CHECKING`) is left out.
    """
    tree = ast.parse(text)
    for_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("lepaute."))
        elif isinstance(node, ast.ImportFrom) and node.module == "lepaute":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lepaute."):
            yield (node.module or "").split(".")[1]


@functools.cache
def arrows() -> dict[str, set[str]]:
    """Package -> those it imports, but for itself."""
    result = {}
    for folder in sorted(path.parent for path in PACKAGE.glob("*/__init__.py")):
        files = list(folder.rglob("*.py"))
        names = {name for file in files for name in imported(file.read_text(encoding="utf-8"))}
        result[folder.name] = names - {folder.name}
    return result


def test_no_two_packages_need_each_other() -> None:
    needs = arrows()
    reached = {package: set(names) for package, names in needs.items()}
    for _ in needs:
        for names in reached.values():
            names |= {further for name in list(names) for further in needs.get(name, ())}
    assert [package for package, names in reached.items() if package in names] == []


def test_the_test_of_imports_can_fail() -> None:
    for_types = "if TYPE_CHECKING:\n    import lepaute.fit\n"
    text = f"{for_types}def f():\n    from lepaute.cli.main import x\nimport lepaute.kit.files"
    assert sorted(imported(text)) == ["cli", "kit"]

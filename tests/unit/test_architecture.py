"""The page of the architecture tells the truth: which package imports which, the files that it names, the decisions."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "lepaute"
DESIGN = ROOT / "docs" / "design"
PAGE = (DESIGN / "architecture.md").read_text(encoding="utf-8")

#: What every package may import; `kit` has only these two besides itself.
EVERYWHERE = {"errors", "version", "kit", "_core"}


def stated() -> dict[str, set[str]]:
    """The packages in the order of the page's table, and what it says that they import."""
    table = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*)\|$", PAGE, re.MULTILINE)
    return {package: set(re.findall(r"\w+", imports)) for package, imports in table}


def imported(package: str) -> set[str]:
    """The other packages and modules of Lepaute that some file of `package` imports, when loaded or when used."""
    found = set()
    for path in (SOURCES / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                names = [f"lepaute.{alias.name}" for alias in node.names] if module == "lepaute" else [module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found |= {name.split(".")[1] for name in names if name.startswith("lepaute.")}
    return found - {package, "__version__"}


def test_every_package_is_in_the_table() -> None:
    packages = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file()}
    assert set(stated()) == packages


@pytest.mark.parametrize("package", [name for name in stated() if name != "cli"])
def test_a_package_imports_what_the_table_says(package: str) -> None:
    assert imported(package) - EVERYWHERE == stated()[package]


def test_a_package_imports_only_what_stands_above_it() -> None:
    above: set[str] = set()
    for package in stated():
        assert imported(package) - EVERYWHERE <= above, package
        above.add(package)
    assert imported("kit") <= {"errors", "version"}


def test_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`([\w/]+(?:\.(?:py|cpp|md)|/))`", PAGE)) - {"cli/COMMAND.py"}
    assert len(named) > 15
    places = (SOURCES, SOURCES / "simulate", ROOT)
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_the_index_has_the_records_of_every_subject() -> None:
    """Their titles are those of the pages' headings, which Sphinx lists."""
    pages = {f"decisions/{page.stem}" for page in (DESIGN / "decisions").glob("*.md")}
    lines = (DESIGN / "index.md").read_text(encoding="utf-8").splitlines()
    assert sorted(pages) == sorted(line for line in lines if line.startswith("decisions/"))

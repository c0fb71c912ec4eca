"""What documents and scripts name is there, and the engine knows no application."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lepaute.cli import COMMANDS
from lepaute.cli.commands import built

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: A command up to the end of its line or code span; what follows ` -- ` is another program's.
LINE = re.compile(r"lepaute ([a-z]+)((?: [^`\n|;]*)?)")


def options(command: Any) -> Iterator[str]:
    """All long options of a command and of those below it."""
    for parameter in command.params:
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def documented(name: str) -> dict[str, str]:
    """Option -> the document that names it after this command."""
    result = {}
    for document in DOCUMENTS:
        for command, words in LINE.findall(document.read_text(encoding="utf-8")):
            if command == name:
                ours = words.partition(" -- ")[0]
                result |= dict.fromkeys(re.findall(r"(?<!\S)--[a-z][a-z-]+", ours), document.name)
    return result


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_option_in_the_documents_is_one_of_its_command(name: str) -> None:
    known = {"--help", *options(built(name)[0]), *(["--check", "--np"] if name == "predict" else [])}
    assert {option: where for option, where in documented(name).items() if option not in known} == {}


def test_the_documents_name_options() -> None:
    assert "--network-condition" in documented("fit")
    assert sum(len(documented(command.name)) for command in COMMANDS) > 40


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


CORE = Path(__file__).parents[2] / "core"
#: What each layer may include, itself among it; applications stand on all of them.
MAY_INCLUDE = {
    "rng": {"rng"}, "net": {"net"}, "models": {"models", "net", "rng"}, "mpi": {"mpi", "models", "net", "rng"},
}  # fmt: skip


def layers_included(path: Path) -> set[str]:
    """The folders of core/ that a file includes."""
    return set(re.findall(r'^\s*#\s*include\s*"([^"/]+)/', path.read_text(encoding="utf-8"), flags=re.MULTILINE))


@pytest.mark.parametrize("layer", MAY_INCLUDE)
def test_a_layer_of_the_engine_includes_no_layer_above_it(layer: str) -> None:
    files = [path for path in (CORE / layer).rglob("*") if path.suffix in (".cpp", ".hpp")]
    assert len(files) >= 2  # so that a wrong folder does not pass
    found = {path.name: layers_included(path) - MAY_INCLUDE[layer] for path in files}
    assert {name: more for name, more in found.items() if more} == {}


def test_no_application_includes_another() -> None:
    applications = sorted(path.name for path in (CORE / "apps").iterdir())
    assert {"hpl", "stencil"} <= set(applications)
    for application in applications:
        for path in (CORE / "apps" / application).iterdir():
            included = re.findall(r'#include "apps/(\w+)/', path.read_text(encoding="utf-8"))
            assert set(included) <= {application}, path.name


def test_the_test_of_includes_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a.hpp").write_text('#include <vector>\n  #include "apps/hpl/simulation.hpp"\n', encoding="utf-8")
    assert layers_included(tmp_path / "a.hpp") == {"apps"}

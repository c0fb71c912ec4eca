"""The engine serves any application: what it is made of does not know one."""

import re
from pathlib import Path

import pytest

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

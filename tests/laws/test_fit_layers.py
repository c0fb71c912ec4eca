"""Dependencies between the sub-packages of `lepaute.fit` point one way."""

import ast
from pathlib import Path

FIT = Path(__file__).parents[2] / "src" / "lepaute" / "fit"
#: A sub-package, or a module of `fit` itself, and what it may import of `fit`.
MAY_IMPORT = {
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


def imported_parts(path: Path) -> set[str]:
    """The parts of `lepaute.fit` that a file imports, in functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[2] for name in names if name.startswith("lepaute.fit.")}


def test_every_part_of_fit_imports_only_the_parts_below_it() -> None:
    """A circle, or an arrow that points upwards, makes two parts one: neither can be read or changed alone."""
    wrong = {}
    for path in FIT.rglob("*.py"):
        part = path.relative_to(FIT).with_suffix("").parts[0]
        if part != "__init__" and (upwards := imported_parts(path) - {part} - MAY_IMPORT[part]):
            wrong[str(path.relative_to(FIT))] = upwards
    assert not wrong


def test_an_import_inside_a_function_is_seen(tmp_path: Path) -> None:
    """The check itself can fail: most heavy imports stand inside functions."""
    (tmp_path / "a.py").write_text("def f():\n    from lepaute.fit.report import write_report\n")
    assert imported_parts(tmp_path / "a.py") == {"report"}

"""Each notebook of the examples runs from its first cell to its last."""

import shutil
from pathlib import Path

import pytest
from support_limits import HANG_S

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_is_kept_without_output(notebook: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    document = nbformat.read(notebook, as_version=4)
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    folder = shutil.copytree(notebook.parent, tmp_path / "example")
    NotebookClient(document, timeout=HANG_S, resources={"metadata": {"path": str(folder)}}).execute()
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)

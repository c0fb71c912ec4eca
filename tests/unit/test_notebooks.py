"""Each notebook of the examples runs, and `lepaute examples` copies each topic whole."""

import shutil
from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.cli.example_files import TOPICS, example_folder

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize(
    "notebook",
    [pytest.param(path, marks=[pytest.mark.nodes] * (path.stem == "own_experiment")) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_and_is_kept_without_output(notebook: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    document = nbformat.read(notebook, as_version=4)
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    folder = shutil.copytree(notebook.parent, tmp_path / "example")
    NotebookClient(document, timeout=HANG_S, resources={"metadata": {"path": str(folder)}}).execute()
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)


@pytest.mark.slow
def test_pictures_and_tables_are_shown_below_the_cell_that_makes_them_once() -> None:
    import nbformat
    from nbclient import NotebookClient

    cells = [
        "import lepaute as lp\nfound = lp.predict(lp.Hpl(n=2000, p=2, q=2), 'dahu', runs=3)",
        "axes = found.plot()",
        "line = lp.fit.segment([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 15, 16, 17, 18])\nline.plot()",
        "found",
    ]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    NotebookClient(document, timeout=HANG_S).execute()
    warned, axes, line, table = (cell.outputs for cell in document.cells)
    pictures = [["image/png" in output.get("data", {}) for output in outputs].count(True) for outputs in (axes, line)]
    assert pictures == [1, 1]
    assert "<table" in table[0]["data"]["text/html"]
    told = "".join(output.get("text", "") for output in warned)
    assert "PredictionWarning: dlocswp is not modelled by the platform" in told


def test_every_folder_of_the_examples_is_listed(output_of) -> None:
    assert TOPICS.keys() == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert all(topic in output_of("examples") for topic in TOPICS)


def test_the_package_brings_the_examples_of_the_sources() -> None:
    for path in EXAMPLES.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (example_folder() / path.relative_to(EXAMPLES)).read_bytes() == path.read_bytes()


def test_a_topic_is_copied_whole_and_again_only_with_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output_of, refusal_of
) -> None:
    monkeypatch.chdir(tmp_path)
    output_of("examples", "studies", "watch")
    copied = tmp_path / "examples" / "watch" / "fleet.csv"
    assert copied.read_bytes() == (EXAMPLES / "watch" / "fleet.csv").read_bytes()
    copied.write_text("mine")
    refusal_of("examples", "all")
    assert copied.read_text() == "mine"
    assert not (tmp_path / "examples" / "stencil").exists()
    output_of("examples", "all", "--force")
    assert copied.read_bytes() == (EXAMPLES / "watch" / "fleet.csv").read_bytes()
    assert (tmp_path / "examples" / "stencil" / "stencil.c").is_file()

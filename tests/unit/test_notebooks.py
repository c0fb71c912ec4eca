"""Notebooks and copies of the examples, and pictures."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from support_limits import HANG_S

from lepaute.cli.example_files import TOPICS, example_folder
from lepaute.errors import InputError
from lepaute.kit.picture import entitle, foot_of, new_figure, own_figure, picture_files, write_picture
from lepaute.measure.archive.setups.topology import Cache
from lepaute.measure.fit import segment
from lepaute.measure.fit.memory import finding, hierarchy_text, memory_hierarchy, plot_hierarchies
from lepaute.measure.verify import comparison
from lepaute.measure.verify.plot import plot as plot_verification
from lepaute.simulate import Hpl, PredictionRequest, predict, predict_all
from lepaute.simulate.prediction.plot import plot_scaling, plot_sweep
from lepaute.simulate.prediction.sweep import Sweep, scaling

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


def test_the_package_brings_the_examples_of_the_sources_and_lists_every_folder(output_of) -> None:
    assert TOPICS.keys() == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert all(topic in output_of("examples") for topic in TOPICS)
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


WORDS = ["predict", "hpl", "-p", "dahu", "--n", "3000", "--runs", "12"]


@pytest.fixture(scope="module")
def prediction():
    return predict(Hpl(n=3000), "dahu", runs=12)


def title_of(figure: Figure) -> str:
    return figure.get_suptitle().replace("\n", " ")


def units_of(figure: Figure) -> list[str]:
    """Labels of the axes whose ticks have no unit of their own."""
    figure.draw_without_rendering()
    labels = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [text.get_text() for text in axis.get_ticklabels() if text.get_visible()]
            if axis.get_label_text() and not any(tick[-1:].isalpha() for tick in ticks):
                labels.append(axis.get_label_text())
    return labels


def test_the_title_of_a_prediction_is_the_first_line_of_the_terminal(prediction, tmp_path, output_of):
    first = output_of(*WORDS, "--plot", tmp_path / "runs").splitlines()[0]
    title = title_of(own_figure(prediction.plot(tmp_path / "again.png")))
    assert first.startswith(title)
    assert "(95 %: " in title
    # A name without an ending is written as both, and a viewer of the SVG finds the words too.
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")
    assert title in (tmp_path / "runs.svg").read_text()
    assert not (tmp_path / "runs").exists()


def test_a_prediction_shows_runs_mean_interval_and_real_runs_in_seconds(prediction, tmp_path):
    time_s = prediction.time_s
    axes = prediction.plot(tmp_path / "runs.svg", real_s=[time_s.mean, 2.0 * time_s.high])
    assert axes.get_xlabel() == "time of a run (s)"
    assert axes.get_ylabel() == "probability density (1/s)"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["95 % of further runs", "mean", "12 simulated runs", "2 real runs, 1 of them inside"]
    (mean,) = [line for line in axes.lines if line.get_label() == "mean"]
    assert mean.get_xdata()[0] == time_s.mean
    inside = axes.collections[1].get_paths()[0].get_extents()
    assert (inside.x0, inside.x1) == pytest.approx((time_s.low, time_s.high))
    with pytest.raises(InputError, match="a real run took 0 s"):
        prediction.plot(real_s=[0])


def test_a_sweep_marks_the_best_and_scaling_has_the_sentence_of_the_terminal(tmp_path, output_of):
    grids = predict_all(
        [Hpl(n=3000, p=p, q=q) for p, q in ((1, 1), (1, 2), (2, 2))], "dahu", PredictionRequest(runs=12)
    )
    axes = plot_sweep(Sweep(tuple(grids)))
    assert {"fastest"} < {text.get_text() for text in own_figure(axes).legends[0].get_texts()}
    assert axes.get_xlabel() == "rate (Gflop/s), mean and 95 % of further runs"
    figure = plot_scaling(scaling(grids), tmp_path / "s.png")
    assert units_of(figure) == ["ranks", "time of a run (s)", "ranks", "efficiency against 1 rank (%)"]
    assert output_of(*WORDS, "--grid", "1x1,1x2,2x2").splitlines()[0] == title_of(figure)
    assert "36 simulated runs" in foot_of(figure)


def test_a_segmentation_shows_fit_breakpoints_intervals_and_residuals():
    x = np.append(0.0, 2.0 ** np.arange(21))
    line = segment(x, np.where(x <= 1024.0, 1e-6 + 1e-9 * x, 5e-6 + 1e-9 * x) * (1.0 + 0.01 * np.sin(7.0 * x)))
    figure = line.plot()
    upper, lower = figure.axes
    names = {text.get_text() for text in upper.get_legend().get_texts()}
    drawn = {"fitted lines", "breakpoint", "95 % interval of a breakpoint", "measured"}
    assert names == {*drawn, "one breakpoint more: not chosen"}
    points = next(each for each in upper.lines if each.get_label() == "measured").get_xdata()
    assert (len(points), min(points)) == (22, 0.5), "what is 0 stands at the left end"
    assert [text.get_text() for text in upper.texts] == ["1 KiB"]
    assert units_of(figure) == ["duration (s)", "off the line (%)"]
    assert title_of(figure) == line.finding()
    assert lower.get_xlabel() == "size (bytes)"


def test_the_memory_hierarchy_names_its_levels_and_has_the_figures_of_the_terminal(tmp_path):
    sizes = [1 << power for power in range(10, 25)]
    rows = [
        {"size_bytes": size, "stride": 1, "element_bytes": 8, "unroll": 8, "read_bytes": 1e9, "duration_s": time_s}
        for size in sizes
        for time_s in np.array([1.0, 1.01, 1.02]) * (0.01 if size <= 1 << 15 else 0.02 if size <= 1 << 20 else 0.1)
    ]
    found = memory_hierarchy(pandas.DataFrame(rows), [Cache(1, 1 << 15, 1), Cache(2, 1 << 20, 1)], node="n1")
    figure = plot_hierarchies((found,), tmp_path / "m", "memory.zip")
    ends = re.fullmatch(r"From ([0-9.]+ GB/s) in L1 to ([0-9.]+ GB/s) in memory \(one core of n1\)", title_of(figure))
    told = re.findall(r"[KM]iB: ([0-9.]+ GB/s)", hierarchy_text(found))
    assert [told[0], told[-1]] == list(ends.groups())
    unknown = finding(memory_hierarchy(pandas.DataFrame(rows), [], node=""))
    assert unknown == f"From {told[0]} up to 32 KiB to {told[-1]} up to 16 MiB (one core)"
    assert [text.get_text() for text in figure.axes[0].texts] == ["L1\n32 KiB", "L2\n1 MiB", "memory"]
    assert units_of(figure) == ["bandwidth of reading, median (GB/s)"]
    assert foot_of(figure).startswith("memory.zip · lepaute ")
    assert {path.name for path in tmp_path.iterdir()} == {"m.png", "m.svg"}


def test_a_verification_has_the_sentence_of_the_terminal_and_every_error(tmp_path):
    table = pandas.DataFrame({
        "case": [0, 1], "n": [2000, 4000], "nb": 128, "p": 1, "q": 2, "variant": "WR11C2R4", "flop_count": [1e9, 8e9],
        "measured_rate_gflops": [1.0, 4.0], "predicted_rate_gflops": [1.0, 3.6],
        "predicted_time_s": [1.0, 2.2], "low_s": [0.9, 1e-4], "high_s": [1.1, 2.4], "n_runs": 2, "n_disturbed": 0,
        "only_disturbed": False, "measured_time_s": [1.0, 2.0], "n_counting": 2, "n_inside": [2, 1],
        "mean_low_s": [0.9, 2.1], "mean_high_s": [1.1, 2.3], "error_percent": [0.0, 10.0],
        "inside_interval": np.array([True, False], dtype=object),
    })  # fmt: skip
    runs = pandas.DataFrame({"case": [0, 0, 1, 1], "time_s": [0.99, 1.01, 1.98, 2.02], "disturbed": False})
    figure = plot_verification(table, runs, tmp_path / "verification", "HPL here", "platform p, seed 1")
    assert title_of(figure) == f"{comparison.finding(table)} HPL here"
    assert figure.axes[0].get_ylim()[1] < 10.0, "the interval ends at 80,000 Gflop/s"
    assert [each.get_marker() for each in figure.axes[0].lines].count("^") == 1, "where it is cut"
    assert foot_of(figure) == "platform p, seed 1"
    assert [text.get_text() for text in figure.axes[1].texts] == ["+0.0 %", "+10.0 %\noutside"]
    labels = [figure.axes[0].get_ylabel(), figure.axes[1].get_ylabel()]
    assert labels == ["rate of the solver (Gflop/s)", "duration, off the measured mean (%)"]
    assert {path.name for path in tmp_path.iterdir()} == {"verification.png", "verification.svg"}


def test_the_name_of_a_picture_says_what_is_written(tmp_path):
    names = {"a.png": ["a.png"], "a.SVG": ["a.SVG"], "a.pdf": ["a.pdf"], "a": ["a.png", "a.svg"]}
    for name, files in names.items():
        assert [path.name for path in picture_files(tmp_path / name)] == files
    assert picture_files(Path("/dev/null")) == (Path("/dev/null"),)
    for name in ("a.jpg", "a.v2"):
        with pytest.raises(InputError, match="a picture's name ends in"):
            picture_files(tmp_path / name)
    figure = new_figure((4.0, 3.0), for_file=True)
    figure.subplots()
    entitle(figure, "A finding", "made of nothing")
    for kind, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        write_picture(figure, tmp_path / f"p{kind}")
        written = (tmp_path / f"p{kind}").read_bytes()
        assert written.startswith(magic)
        write_picture(figure, tmp_path / f"p{kind}")
        assert (tmp_path / f"p{kind}").read_bytes() == written, "the same picture has the same bytes"


@settings(max_examples=20)
@given(finding=st.text("abc 0123456789.%()", min_size=1, max_size=300), width=st.sampled_from([4.0, 7.0, 13.0]))
def test_title_and_foot_stay_inside_their_figure_and_off_the_axes(finding: str, width: float) -> None:
    figure = new_figure((width, 4.0), for_file=True)
    axes = figure.subplots()
    axes.set_xlabel("time (s)")
    entitle(figure, " ".join(word[:20] for word in finding.split()) or "none", "platform p · seed 1 · lepaute " * 3)
    figure.draw_without_rendering()
    texts = [text.get_window_extent() for text in (figure._suptitle, *figure.texts)]  # type: ignore[attr-defined]
    inside = figure.bbox
    assert all(text.x1 <= inside.x1 and text.y0 >= inside.y0 and text.y1 <= inside.y1 for text in texts)
    assert texts[-1].y1 <= axes.xaxis.label.get_window_extent().y0

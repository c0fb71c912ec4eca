"""Pages of a verification, a segmentation and two traces: in a real browser, escaped, in the colours of either mode."""

import re
from pathlib import Path

import pytest
from oracles.traces_by_hand import hpl_like
from support_pages import Elements, widths_offline

from lepaute.cli.main import main
from lepaute.kit.picture import BLUE, RED, new_figure
from lepaute.kit.report.figures import figure_svg
from lepaute.kit.report.page import _sentence
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.compare_report import page as trace_page

DATA = Path(__file__).parent.parent / "data"
HOSTILE = '<img src=x onerror="alert(1)">&'


def of_segmentation(folder: Path) -> str:
    path = folder / "of_segmentation.html"
    file = DATA / "duration_tables" / "osu_three_protocols.txt"
    assert main(["segment", str(file), "--report", str(path)]) == 0
    return path.read_text()


def of_verification(folder: Path) -> str:
    path = folder / "of_verification.html"
    file = DATA / "hpl_out" / "HPL.out"
    assert main(["verify", "hpl", "--results", str(file), "-p", "dahu", "--runs", "2", "--report", str(path)]) == 0
    return path.read_text()


def of_traces(_folder: Path) -> str:
    found = compare_traces(hpl_like(ranks=4, steps=6), hpl_like(ranks=4, steps=6))
    return trace_page(
        found, f"left {HOSTILE}", "right", [f"n: {HOSTILE} and 3"], f"lepaute trace compare '{HOSTILE}' b"
    )


@pytest.fixture(scope="module", params=[of_segmentation, of_verification, of_traces], ids=lambda made: made.__name__)
def page_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.html"
    path.write_text(request.param(folder))
    return path


def test_the_page_is_a_finding_then_its_evidence_then_what_is_folded(page_file: Path) -> None:
    text = page_file.read_text()
    parts = [text.index(f'<section id="{name}"') for name in ("answer", "evidence", "details")]
    assert parts == sorted(parts)
    assert text.index('<p class="verdict') < text.index("<svg") < text.index("<details>")
    page = Elements(text)
    assert "script" not in page.tags
    assert "onerror" not in re.sub(r"&lt;.*?&gt;", "", text), "names are no markup"
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.ids) == len(set(page.ids))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1600, 1000, 400])
def test_the_page_opens_offline_without_a_complaint_and_fits_its_width(browser, page_file: Path, width: int) -> None:
    assert min(widths_offline(browser, page_file, width)) >= 500, "the picture scrolls where the page is narrower"


def test_a_figure_has_the_colours_of_the_page_and_every_text_in_its_font() -> None:
    """Also texts of several lines and those of logarithmic axes, which Matplotlib writes otherwise."""
    figure = new_figure((4.0, 3.0), for_file=True)
    axes = figure.subplots()
    axes.plot([1.0, 2.0], [1.0, 1000.0], color=BLUE)
    axes.plot([1.0, 2.0], [2.0, 500.0], color=RED)
    axes.set_yscale("log")
    axes.set_xlabel("first line\nsecond line")
    svg = figure_svg(figure, HOSTILE)
    assert "first line" in svg
    assert "second line" in svg
    assert "tspan" in svg
    assert "font-family" not in svg
    assert {"var(--blue)", "var(--second)", "var(--ink)"} <= set(re.findall(r"var\(--[a-z]+\)", svg))
    assert not re.findall("#000000|#ffffff|" + BLUE + "|" + RED, svg)
    assert "<img" not in svg


def test_of_an_answer_stands_out_what_comes_before_a_semicolon_that_is_not_in_parentheses() -> None:
    assert _sentence("After 1 B (95 %: 1; 2), then (3; 4); the rest") == (
        "<strong>After 1\u00a0B (95\u00a0%: 1; 2), then (3; 4)</strong>; the rest."
    )
    assert _sentence("One (without an end; of it") == "<strong>One (without an end</strong>; of it."
    assert _sentence("No more.") == "<strong>No more</strong>."


def test_a_page_of_several_tables_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.txt"
    latency = "# OSU MPI {} v7.4\n# Size          Latency (us)\n1 1.0\n2 1.1\n4 1.2\n8 1.5\n"
    file.write_text(latency.format("Latency Test") + latency.format("Multi Latency Test"))
    assert main(["segment", str(file), "--report", str(tmp_path / "p.html")]) == 2
    assert "--report is of one table; choose it with --table" in capsys.readouterr().err

"""Pages of a verification, a segmentation, traces and a replay: in a real browser, escaped, in either mode."""

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path

import pytest
from oracles.traces_by_hand import hpl_like
from support_pages import Elements, text_of, widths_offline

from lepaute.cli.main import main
from lepaute.kit.picture import BLUE, RED, new_figure
from lepaute.kit.report.page import _number_columns, _sentence, figure_svg, write_report
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.compare_report import page as trace_page
from lepaute.watch.report.history import ChangeAlarm, Day
from lepaute.watch.report.replay_page import Replayed, page
from lepaute.watch.report.summary import Change, Regression, Suspicion

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
    assert main(["verify", "hpl", "--results", str(file), "-p", "dahu", "--runs", "2", "--report", str(path)]) == 1
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


def test_columns_of_numbers_are_known_by_all_their_cells():
    rows = [["1000", "1x2", "0.0125 to 0.0317", "-14.1 %", "–", "64 KiB"], ["20", "2x1", "up to", "+2 %", "–", "-"]]
    assert _number_columns(rows) == {0, 3, 5}


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


HOSTILE_NAME = "<script>alert(1)</script>"


def replayed(*, alarms: bool = True) -> Replayed:
    """Ten days; on the fifth an alarm of a change two days before, and something suspicious."""
    machines = (("c", HOSTILE_NAME, 0),)
    change = Change("dgemm_rate_flops", -1, -0.1, -0.12, -0.08, 1)
    first = dt.date(2026, 1, 1)
    alarm = ChangeAlarm("c", machines, first + dt.timedelta(2), (change,), worse=True)
    suspicion = Suspicion("c", machines, (first + dt.timedelta(4),), (change,), ("j4",), 1e-7)
    days = [Day(first + dt.timedelta(number), 24, 0, (), ()) for number in range(10)]
    days[4] = replace(days[4], suspicious_tests=3, alarms=(alarm,) * alarms, suspicions=(suspicion,))
    regression = Regression("c", machines, alarm.since, first + dt.timedelta(4), (change,), ())
    return Replayed(days, (regression,) if alarms else (), 240, 0.05, 1e-4, "12 nodes")


def test_the_page_begins_with_what_would_have_been_found_when_and_what_may_be_false() -> None:
    text = page(replayed())
    elements = Elements(text)
    assert "Replayed 10 days: 1 alarm, the first on 2026-01-05" in text_of(text)
    assert ">2 days</dt>" in text, "from the change to its alarm"
    assert ">5\u00a0%</dt>" in text
    assert HOSTILE_NAME not in text
    assert "script" not in elements.tags
    assert all(link.startswith("#") and link[1:] in elements.ids for link in elements.links)
    assert "2026-01-01</text>" in text, "dates, and not numbers of days"
    quiet = page(replayed(alarms=False))
    assert "Replayed 10 days: no alarm" in quiet
    assert ("red: days" in text, "red: days" in quiet) == (True, False), "of what is drawn"


def test_the_page_fits_a_screen_and_a_telephone_without_a_network(browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_report(file, lambda: page(replayed()), replayed().to_dict)
    for width in (400, 1000):
        (shown,) = widths_offline(browser, file, width)
        assert shown > 250


def test_a_replay_without_days_is_a_page_too() -> None:
    assert "No day has a test or an alarm" in page(Replayed((), (), 0, 0.05, 1e-4, "no node"))

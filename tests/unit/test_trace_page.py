"""The page of a trace: what it says of planted traces, and how a real browser shows it, zooms it and prints it."""

from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.traces_by_hand import call, exchange, hpl_like, trace
from support_pages import Elements, text_of, widths_offline

from lepaute.simulate.trace import colours, write_trace
from lepaute.simulate.trace.breakdown import breakdown_of, split
from lepaute.simulate.trace.finding import finding_of
from lepaute.simulate.trace.page import page, write_report
from lepaute.simulate.trace.timeline import TICKS, segments

HOSTILE = '</script><img src=x onerror="alert(1)">&'


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_report(hpl_like(ranks=4, steps=6), path, "lepaute trace breakdown t.parquet --report page.html")
    return path


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_the_answer_names_the_rank_that_waits_most_and_for_whom():
    found = finding_of(breakdown_of(exchange(late_s=2.0)))
    # Rank 0 computes for 2 s and sends for 1 s, while rank 1 waits 2 s and receives for 1 s.
    assert found.sentence == (
        "33.3 % of the ranks' time is computing, 33.3 % waiting, 33.3 % transfer and overhead; "
        "rank 1 waits most, 66.7 % of its time, mostly for rank 0"
    )
    assert (found.waiting.rank, found.waiting.whom, found.waiting.time_s) == (1, 0, 2.0)


@settings(deadline=None)
@given(
    durations=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    gaps=st.lists(st.integers(0, 20), min_size=60, max_size=60),
    most=st.integers(1, 80),
)
def test_segments_have_all_time_of_each_kind_whether_put_together_or_not(durations, gaps, most):
    calls, at = [], [0.0, 0.0]
    for number, duration in enumerate(durations):
        rank, name = number % 2, ("dgemm", "dtrsm", "dlaswp00N")[number % 3]
        calls.append(call(rank, name, at[rank], float(duration)))
        at[rank] += duration + gaps[number]
    made = trace(*calls)
    if made.end_s.max() == 0:
        return
    spent = colours.classes(made, split(made)[0])
    found = segments(made, spent, most)
    assert found.counts.sum() == len(found.codes) == len(found.ticks)
    assert found.shortest_s == 0 or len(found.codes) <= most or found.shortest_s >= found.high_s - found.low_s
    low, tick_s = 0, (found.high_s - found.low_s) / TICKS
    for rank, count in zip(found.ranks, found.counts, strict=True):
        codes, ticks = found.codes[low : low + count], found.ticks[low : low + count]
        low += count
        assert ticks.sum() == TICKS
        for name, place in found.kinds[1:]:
            mine = [code for code, kind in enumerate(found.kinds) if kind == (name, place)]
            expected_s = made.duration_s[(made.rank == rank) & made.named(name)].sum()
            assert ticks[numpy.isin(codes, mine)].sum() * tick_s == pytest.approx(expected_s, abs=len(calls) * tick_s)


# ---- how it is shown -------------------------------------------------------------------------------------------------


def test_names_are_no_markup_and_links_lead_somewhere():
    made = trace(
        call(0, HOSTILE, 0.0, 1.0), call(1, "dgemm", 0.0, 2.0), application=HOSTILE, warnings=[HOSTILE], hosts=[HOSTILE]
    )
    text = page(made, HOSTILE)
    found = Elements(text)
    assert "img" not in found.tags
    assert found.tags.count("script") == 2, "the calls and what draws them"
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert all(len(image["aria-label"]) > 20 for image in found.images)


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_the_page_opens_offline_without_a_complaint_and_fits_its_width(browser, page_file, width):
    assert min(widths_offline(browser, page_file, width)) >= 250


def opened(browser, path: Path, **more):
    tab = browser.new_page(viewport={"width": 1000, "height": 900}, **more)
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-ready=yes]")
    return tab


def test_calls_are_drawn_in_their_colours_zoomed_and_told(browser, page_file):
    tab = opened(browser, page_file)
    canvas = tab.locator("#gantt")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()

    def colour(share: float, row: int) -> list[int]:
        return tab.evaluate(
            """([share, row]) => { const c = document.getElementById("gantt");
            return [...c.getContext("2d").getImageData(share * c.width, (row + 0.4) * c.height / 4, 1, 1).data]; }""",
            [share, row],
        )

    # Of each step, 4.5 s long, rank 1 waits for the first second of the first step, and computes from 1.1 to 4.1 s.
    assert colour(0.5 / 27, 1)[:3] == [0xD5, 0x5E, 0x00]
    assert colour(2.5 / 27, 1)[:3] == [0x00, 0x72, 0xB2]
    tab.mouse.move(box["x"] + box["width"] * 2.5 / 27, box["y"] + box["height"] * 1.4 / 4)
    assert "rank 1 at 2." in tab.locator("#point").inner_text()
    assert "dgemm" in tab.locator("#point").inner_text()
    dates = tab.locator(".marks .date").all_inner_texts()
    assert dates[0] == "0 s"
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 5)
    tab.mouse.up()
    assert tab.locator(".marks .date").all_inner_texts() != dates
    canvas.dblclick()
    assert tab.locator(".marks .date").all_inner_texts() == dates
    canvas.press("+")
    assert tab.locator(".marks .date").all_inner_texts() != dates
    tab.get_by_role("button", name="all").click()
    assert tab.locator(".marks .date").all_inner_texts() == dates


def test_the_command_writes_a_page_that_says_what_the_data_do_and_refuses_other_names(
    tmp_path, monkeypatch, json_of, refusal_of
):
    monkeypatch.chdir(tmp_path)
    write_trace(exchange(), Path("t.parquet"))
    data = json_of("trace", "breakdown", "t.parquet", "--report", "p.html", "--json")
    text = text_of(Path("p.html").read_text())
    assert "lepaute trace breakdown t.parquet --report p.html" in text
    assert data["answer"] + "." in text
    assert ".html" in refusal_of("trace", "breakdown", "t.parquet", "--report", "p.txt")

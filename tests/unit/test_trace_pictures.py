"""Pictures and the page of traces: windows, time that is neither lost nor made, and a real browser."""

import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.traces_by_hand import call, exchange, hpl_like, trace
from support_pages import Elements, text_of, widths_offline

from lepaute.simulate.trace import colours, write_trace
from lepaute.simulate.trace.breakdown import CATEGORIES, COMPUTE, OWN_CODE, breakdown_of, finding_of, split
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.compare_report import plot_comparison
from lepaute.simulate.trace.gantt import plot_gantt
from lepaute.simulate.trace.page import by_rank, page, write_report
from lepaute.simulate.trace.report import plot_breakdown
from lepaute.simulate.trace.timeline import TICKS, binned, segments
from lepaute.simulate.trace.viewers import events, write_perfetto


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


def test_of_a_long_trace_a_few_steps_in_the_middle_are_drawn(tmp_path: Path) -> None:
    made = hpl_like(ranks=4, steps=60)
    window = plot_gantt(made, tmp_path / "g.png")
    assert is_png(tmp_path / "g.png")
    step_s = made.end_s.max() / 60
    assert 2 <= round((window.high_s - window.low_s) / step_s) <= 8
    assert window.low_s < made.end_s.max() / 2 < window.high_s


def test_of_very_many_ranks_an_even_selection_is_drawn(tmp_path: Path) -> None:
    window = plot_gantt(hpl_like(ranks=100, steps=2), tmp_path / "g.png")
    assert len(window.ranks) == 64
    assert (window.ranks[0], window.ranks[-1]) == (0, 99)


def test_the_window_that_was_asked_for_is_drawn(tmp_path: Path) -> None:
    made = hpl_like(ranks=4, steps=10)
    window = plot_gantt(made, tmp_path / "g.png", ranks=[1, 3], steps=(2, 3))
    assert (window.ranks, window.low_s) == ((1, 3), pytest.approx(2 * 4.5))
    assert plot_gantt(made, tmp_path / "g.png", low_s=1.0, high_s=2.5).high_s == 2.5


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.floats(0, 10), st.lists(st.floats(0, 3), min_size=3, max_size=3)), min_size=1, max_size=20),
    st.integers(1, 50),
)
def test_the_bins_of_a_strip_hold_all_the_time_of_the_calls(calls: list[tuple[float, list[float]]], bins: int) -> None:
    start_s, seconds = numpy.array([start for start, _ in calls]), numpy.array([parts for _, parts in calls])
    # 10 s of starts and at most 9 s for each call: all of it lies inside the window.
    shares = binned(start_s, seconds, -1.0, 20.0, bins)
    numpy.testing.assert_allclose(shares.sum(axis=0) * 21.0 / bins, seconds.sum(axis=0), atol=1e-9)


# What eyes without red or green receptors make of linear RGB (Machado, Oliveira and Fernandes 2009, full severity).
PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))


@pytest.mark.parametrize("vision", [PROTANOPIA, DEUTERANOPIA])
def test_every_two_classes_can_be_told_apart_by_colour_blind_eyes(vision: tuple[tuple[float, ...], ...]) -> None:
    from matplotlib.colors import to_rgb

    seen = [numpy.array(vision) @ numpy.array(to_rgb(style.colour)) ** 2.2 for style in colours.CALLS]
    seen = [numpy.clip(colour, 0, 1) ** (1 / 2.2) for colour in seen]
    for i, one in enumerate(seen):
        for other in seen[:i]:
            assert numpy.linalg.norm(one - other) > 0.12, (i, one, other)


@pytest.mark.slow
def test_breakdown_and_comparison_are_drawn(tmp_path: Path) -> None:
    plot_breakdown(breakdown_of(hpl_like(ranks=60, steps=3)), tmp_path / "b.png", "title", "foot")
    plot_comparison(compare_traces(exchange(1.0), exchange(2.0)), tmp_path / "c.png", "one", "other")
    assert is_png(tmp_path / "b.png")
    assert is_png(tmp_path / "c.png")


def test_the_events_have_the_form_of_the_trace_event_format(tmp_path: Path) -> None:
    count = write_perfetto(hpl_like(ranks=3, steps=4), tmp_path / "p.json")
    found = json.loads((tmp_path / "p.json").read_text())
    assert set(found) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert len(found["traceEvents"]) == count
    for event in found["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        wanted = {
            "M": {"args"}, "X": {"ts", "dur", "cat", "args"}, "s": {"ts", "id", "cat"}, "f": {"ts", "id", "cat", "bp"},
        }  # fmt: skip
        assert wanted[event["ph"]] <= set(event)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_an_arrow_ends_in_the_wait_that_completed_the_receive() -> None:
    made = trace(
        call(0, "MPI_Isend", 0.0, 0.1, peer=1, tag=1, size_bytes=8, completion=3),
        call(0, "MPI_Waitall", 1.0, 0.5, completion=3),
        call(1, "MPI_Irecv", 0.0, 0.1, peer=0, tag=1, size_bytes=8, completion=9),
        call(1, "MPI_Waitall", 2.0, 0.5, completion=9),
    )
    begin, end = (next(event for event in events(made) if event["ph"] == phase) for phase in "sf")
    assert (begin["tid"], begin["ts"]) == (0, 0.0)
    assert (end["tid"], end["ts"]) == (1, pytest.approx(2.5e6, abs=0.01))


def test_each_call_is_an_event_on_the_line_of_its_rank_with_its_sizes() -> None:
    calls = [event for event in events(exchange()) if event["ph"] == "X"]
    assert [(event["name"], event["tid"]) for event in calls] == [("dgemm", 0), ("MPI_Send", 0), ("MPI_Recv", 1)]
    assert calls[0]["args"] == {"step": 0, "m": 10, "n": 20, "k": 5, "gflops": 0.0}
    assert calls[1]["args"] == {"step": 0, "peer": 1, "tag": 7, "size_bytes": 800}
    assert (calls[1]["ts"], calls[1]["dur"]) == (2e6, 1e6)


def test_nodes_are_processes_and_phases_that_cross_calls_have_a_line_of_their_own() -> None:
    crossing = trace(
        call(0, "dgemm", 0.0, 2.0, m=1, n=1, k=1),
        call(0, "pdupdate", 1.0, 2.0),
        call(1, "pdupdate", 0.0, 2.0),
        call(1, "dgemm", 0.5, 1.0, m=1, n=1, k=1),
        nodes=[0, 1],
        hosts=["ant", "bee"],
    )
    found = list(events(crossing))
    assert {event["args"]["name"] for event in found if event["name"] == "process_name"} == {"ant", "bee"}
    lines = {(event["pid"], event["name"]): event["tid"] for event in found if event["ph"] == "X"}
    assert lines[0, "pdupdate"] != lines[0, "dgemm"]
    assert lines[1, "pdupdate"] == lines[1, "dgemm"]


HOSTILE = '</script><img src=x onerror="alert(1)">&'


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_report(hpl_like(ranks=4, steps=6), path, "lepaute trace breakdown t.parquet --report page.html")
    return path


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
    found = segments(made, colours.classes(made, split(made)[0]), most)
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


def test_a_caption_names_the_colours_that_are_drawn():
    found, values, captions = breakdown_of(hpl_like(ranks=2, steps=2)), numpy.zeros((2, len(CATEGORIES))), []
    for category in (OWN_CODE, COMPUTE):
        values[:, category] = 1.0
        captions.append(by_rank(replace(found, by_rank_s=values)).caption)
    assert captions[0] == "The time of each rank. Colours as above."
    assert captions[1].endswith("Blue: all other computing; the rest as above.")


def test_names_are_no_markup_and_links_lead_somewhere():
    made = trace(
        call(0, HOSTILE, 0.0, 1.0), call(1, "dgemm", 0.0, 2.0), application=HOSTILE, warnings=[HOSTILE], hosts=[HOSTILE]
    )
    found = Elements(page(made, HOSTILE))
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

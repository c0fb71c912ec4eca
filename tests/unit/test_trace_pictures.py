"""Pictures of traces: which window is drawn, that time is neither lost nor made, and files that other tools open."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.traces_by_hand import call, exchange, hpl_like, trace

from lepaute.errors import InputError
from lepaute.simulate.trace import colours
from lepaute.simulate.trace.breakdown import breakdown_of
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.compare_report import plot_comparison
from lepaute.simulate.trace.gantt import Window, _messages_in, plot_gantt
from lepaute.simulate.trace.report import plot_breakdown
from lepaute.simulate.trace.timeline import binned
from lepaute.simulate.trace.viewers import events, write_perfetto


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


def test_a_short_trace_is_drawn_whole(tmp_path: Path) -> None:
    made = hpl_like(ranks=4, steps=5)
    window = plot_gantt(made, tmp_path / "g.png")
    assert is_png(tmp_path / "g.png")
    assert window.ranks == (0, 1, 2, 3)
    assert (window.low_s, window.high_s) == (0.0, made.end_s.max())


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


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"ranks": [2, 9]}, "rank 9 is not in the trace; it holds 0-3"),
        ({"steps": (70, 71)}, "steps 70:71 are not in the trace; it holds 0 to 9"),
        ({"low_s": 2.0, "high_s": 1.0}, "--from must be less than --to"),
        ({"low_s": 1e6}, "--from must be less than --to"),
        ({"low_s": 1e6, "high_s": 2e6}, "no calls between"),
    ],
)
def test_a_window_with_nothing_in_it_is_refused(tmp_path: Path, arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        plot_gantt(hpl_like(ranks=4, steps=10), tmp_path / "g.png", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "g.png").exists()


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


def test_kernels_have_the_colour_of_their_kind() -> None:
    named = {"dgemm": colours.DGEMM, "dgemm_nn": colours.DGEMM, "dtrsm_left": colours.DTRSM, "idamax": colours.PANEL}
    named |= {
        "dlaswp01T": colours.COPIES,
        "dlatcpy": colours.COPIES,
        "pdfact_glue": colours.GLUE,
        "dtrsv": colours.PANEL,
    }
    assert {name: colours.class_of_kernel(name) for name in named} == named


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
    made = hpl_like(ranks=300, steps=3)
    plot_breakdown(breakdown_of(made), tmp_path / "b.png", "title", "foot")
    plot_comparison(compare_traces(exchange(1.0), exchange(2.0)), tmp_path / "c.png", "one", "other")
    assert is_png(tmp_path / "b.png")
    assert is_png(tmp_path / "c.png")


# ---- Perfetto --------------------------------------------------------------------------------------------------------


def test_the_events_have_the_form_of_the_trace_event_format(tmp_path: Path) -> None:
    made = hpl_like(ranks=3, steps=4)
    count = write_perfetto(made, tmp_path / "p.json")
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


def test_a_name_that_ends_with_gz_is_compressed(tmp_path: Path) -> None:
    made = hpl_like(ranks=3, steps=40)
    assert write_perfetto(made, tmp_path / "p.json.gz") == write_perfetto(made, tmp_path / "p.json")
    assert gzip.decompress((tmp_path / "p.json.gz").read_bytes()) == (tmp_path / "p.json").read_bytes()
    assert (tmp_path / "p.json.gz").stat().st_size < (tmp_path / "p.json").stat().st_size / 8


def test_nodes_of_a_simulation_have_the_numbers_of_the_platform() -> None:
    made = exchange()
    simulated = replace(made, metadata={"source": "simulation", "nodes": [0, 1], "first_node": 1})
    assert [event["args"]["name"] for event in events(simulated) if event["name"] == "process_name"] == [
        "node 1",
        "node 2",
    ]
    recorded = replace(made, metadata={"source": "recording", "nodes": [0, 1], "hosts": ["dahu-3", "dahu-7"]})
    assert [event["args"]["name"] for event in events(recorded) if event["name"] == "process_name"] == [
        "dahu-3",
        "dahu-7",
    ]


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
    made = exchange()
    calls = [event for event in events(made) if event["ph"] == "X"]
    assert [(event["name"], event["tid"]) for event in calls] == [("dgemm", 0), ("MPI_Send", 0), ("MPI_Recv", 1)]
    assert calls[0]["args"] == {"step": 0, "m": 10, "n": 20, "k": 5, "gflops": 0.0}
    assert calls[1]["args"] == {"step": 0, "peer": 1, "tag": 7, "size_bytes": 800}
    assert (calls[1]["ts"], calls[1]["dur"]) == (2e6, 1e6)


def test_an_arrow_goes_from_inside_the_send_to_inside_the_receive() -> None:
    made = exchange()
    start, end = (event for event in events(made) if event["ph"] in "sf")
    assert start["id"] == end["id"]
    assert (start["tid"], end["tid"]) == (0, 1)
    assert 2e6 <= start["ts"] < 3e6
    assert 0 <= end["ts"] < 3e6
    assert start["ts"] < end["ts"]


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


def test_the_arrows_of_a_window_are_those_of_the_whole_trace() -> None:
    # Rank 0 sends each second what rank 1 receives 0.6 s later. The window begins between the first send and its
    # receive; paired within the window alone, the first receive would go with the second send, back in time.
    made = trace(
        *(call(0, "MPI_Send", float(i), 0.1, size_bytes=8.0, peer=1, tag=7) for i in range(4)),
        *(call(1, "MPI_Recv", i + 0.5, 0.1, size_bytes=8.0, peer=0, tag=7) for i in range(4)),
    )
    send, end = _messages_in(made, Window((0, 1), 0.4, 2.2))
    assert made.start_s[send].tolist() == [0.0, 1.0, 2.0]
    assert made.end_s[end].tolist() == pytest.approx([0.6, 1.6, 2.6])

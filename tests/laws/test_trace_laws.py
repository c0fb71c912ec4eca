"""What holds for every trace of a simulated run, and for those of SMPI."""

import random
from pathlib import Path

import numpy
import pytest
from oracles.paje_by_hand import PajeByHand, posted

from lepaute.errors import InputError
from lepaute.simulate import Hpl, Prediction, predict
from lepaute.simulate.platform import load_platform
from lepaute.simulate.trace import read_trace, write_trace
from lepaute.simulate.trace.breakdown import split
from lepaute.simulate.trace.messages import match_messages
from lepaute.simulate.trace.smpi import convert
from lepaute.simulate.trace.table import PHASE
from lepaute.simulate.tracing import CATEGORIES, MAX_ROWS, TraceRequest

RUNS = {
    "two rings": Hpl(n=2000, p=2, q=4),
    "no look-ahead, swap in 5 rows": Hpl(n=1500, p=5, q=1, depth=0),
    "long broadcast, rolls": Hpl(n=1500, p=3, q=4, bcast="long", swap="spread-roll"),
    "two panels ahead, column-major": Hpl(n=1500, nb=64, p=4, q=2, depth=2, bcast="1ring-modified", pmap="column"),
    "across nodes": Hpl(n=3000, p=6, q=8),
}


@pytest.fixture(scope="module", params=RUNS.values(), ids=RUNS.keys())
def traced(request: pytest.FixtureRequest) -> Prediction:
    return predict(request.param, load_platform("dahu"), runs=1, seed=5, trace=TraceRequest())


def test_the_rows_of_a_rank_follow_without_a_gap_and_add_up_to_its_time_in_every_category(traced: Prediction) -> None:
    trace, breakdown = traced.trace, traced.breakdown
    parts, _ = split(trace)
    by_rank = numpy.zeros((breakdown.ranks, len(CATEGORIES)))
    numpy.add.at(by_rank, trace.rank, parts[:, : len(CATEGORIES)])
    numpy.testing.assert_allclose(by_rank, breakdown.by_rank_s, rtol=1e-9, atol=1e-9)
    assert breakdown.by_rank_s.sum(axis=1).max() == pytest.approx(traced.run_list[0].time_s, rel=1e-9)
    assert sum(breakdown.total_s.values()) == pytest.approx(breakdown.ranks * breakdown.time_s, rel=1e-9)
    numpy.testing.assert_allclose(breakdown.by_step_s.sum(axis=0), breakdown.by_rank_s.sum(axis=0), rtol=1e-9)
    calls = trace.where(trace.kind != PHASE)
    for rank in calls.ranks:
        own = calls.where(calls.rank == rank)
        assert own.start_s[0] == 0.0
        numpy.testing.assert_allclose(own.start_s[1:], own.end_s[:-1], rtol=0, atol=1e-9)


def test_every_send_is_received_with_its_size_after_it_began(traced: Prediction) -> None:
    trace = traced.trace
    matches = match_messages(trace)
    assert len(matches.send) == traced.simulation.messages
    assert (trace.size_bytes[matches.send] == trace.size_bytes[matches.receive]).all()
    assert (trace.end_s[matches.end] >= trace.start_s[matches.send]).all()


def test_a_trace_changes_nothing_and_survives_its_file(traced: Prediction, tmp_path) -> None:
    again = predict(traced.application, load_platform("dahu"), runs=1, seed=5)
    assert again.trace is None
    assert again.run_list == traced.run_list
    write_trace(traced.trace, tmp_path / "t.parquet")
    read = read_trace(tmp_path / "t.parquet")
    for column in ("rank", "step", "kind", "start_s", "duration_s", "size_bytes", "late_s"):
        numpy.testing.assert_array_equal(getattr(read, column), getattr(traced.trace, column))
    assert [read.names[i] for i in read.name] == [traced.trace.names[i] for i in traced.trace.name]


def test_chosen_ranks_and_steps_are_the_rows_of_the_whole_trace_which_are_estimated_well(traced: Prediction) -> None:
    hpl, whole = traced.application, traced.trace
    estimate = hpl.on().trace_rows(range(hpl.ranks), range(-(-hpl.n // hpl.nb)))
    assert 1 / 3 < estimate / len(whole) < 3
    chosen = TraceRequest(ranks=(1, 4), steps=(2, 3))
    part = predict(traced.application, load_platform("dahu"), runs=1, seed=5, trace=chosen).trace
    same = whole.where(numpy.isin(whole.rank, (1, 4)) & numpy.isin(whole.step, (2, 3)))
    numpy.testing.assert_array_equal(part.start_s, same.start_s)
    numpy.testing.assert_array_equal(part.name, same.name)


def test_of_a_large_run_the_edges_of_the_grid_and_the_middle_are_traced() -> None:
    large = Hpl(n=500_000, p=32, q=32)
    found = TraceRequest().narrowed(large)
    assert found.ranks == large.on().trace_ranks() == (*range(32), *range(32, 1024, 32))
    assert found.steps[0] < 500_000 / 128 / 2 < found.steps[-1]
    assert 0 < large.on().trace_rows(found.ranks, found.steps) <= MAX_ROWS
    assert Hpl(n=1000, p=3, q=2, pmap="column").on().trace_ranks() == (0, 1, 2, 3)
    assert TraceRequest().narrowed(Hpl(n=2000, p=2, q=2)) == TraceRequest()
    mine = TraceRequest(ranks=tuple(range(1024)), steps=tuple(range(3000)))
    assert mine.narrowed(large) == mine


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    plain, file = posted().text().encode(), tmp_path / "smpi.trace"
    for length in range(0, len(plain), 7):
        file.write_bytes(plain[:length])
        with pytest.raises(InputError, match=r"^[^\n]*$"):
            convert(file)


def test_messages_of_random_programs_find_their_calls(tmp_path: Path) -> None:
    """Blocking sends and receives in random order: each receive must get the peer, tag and size of its own send."""
    draw = random.Random(4)
    for _ in range(30):
        ranks = draw.randrange(2, 6)
        made = PajeByHand(ranks, "PMPI_Send", "PMPI_Recv")
        expected: list[list[tuple[int, int, float]]] = [[] for _ in range(ranks)]
        sent: list[tuple[int, int, int, int]] = []
        at_s = 0.0
        for _ in range(60):
            at_s += 0.01
            if sent and draw.random() < 0.5:
                # Messages of the same pair and tag do not overtake each other.
                one = draw.choice(sent)
                one = next(other for other in sent if other[:3] == one[:3])
                sent.remove(one)
                source, target, tag, size = one
                made.push(at_s, target, "PMPI_Recv", "9999")
                made.end(at_s, target, f"{source + 1}_{target + 1}_{tag}")
                made.pop(at_s, target)
                expected[target].append((source, tag, float(size)))
            else:
                source, target, tag = draw.randrange(ranks), draw.randrange(ranks), draw.randrange(3)
                size = draw.randrange(1000)
                made.send(at_s, source, "1", f"{source + 1}_{target + 1}_{tag}", size)
                sent.append((source, target, tag, size))
        (tmp_path / "t").write_text(made.text())
        trace = convert(tmp_path / "t")
        for rank in range(ranks):
            own = trace.named(("MPI_Recv",)) & (trace.rank == rank)
            found = zip(trace.peer[own].tolist(), trace.tag[own].tolist(), trace.size_bytes[own].tolist(), strict=True)
            assert list(found) == expected[rank]

"""What holds for the analysis of every trace: of simulated runs at random, and of a real one."""

import random
from math import prod
from pathlib import Path
from typing import Any

import numpy
import pytest
from support_own import Mixed, fixed

import lepaute as lp
from lepaute.simulate import Hpl, Stencil, predict
from lepaute.simulate.analysis import Analysis, analysis_of
from lepaute.simulate.analysis.critical_path import MESSAGE, PIECES
from lepaute.simulate.analysis.efficiency import ideal_network
from lepaute.simulate.platform import load_platform
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.breakdown import COMPUTE, LATE, OWN_CODE
from lepaute.simulate.trace.messages import message_rows
from lepaute.simulate.tracing import TraceRequest

RECORDING = Path(__file__).parents[2] / "examples" / "recordings" / "lammps-lj.parquet"


def random_course(seed: int) -> Any:
    """Ranks that compute for random times, and between them exchange, shift or meet at random."""

    def course(me: Any, application: Any) -> Any:
        shared, own = random.Random(seed), random.Random(seed * 1000 + me.rank)
        for _ in me.steps(12):
            yield me.compute(application.unit, own.uniform(1e-6, 1e-4))
            what, size = shared.choice(("shift", "late", "meet", "root")), shared.choice((8, 5000, 300_000))
            shift = shared.randrange(1, me.size)
            if what == "shift":
                got = yield me.irecv((me.rank - shift) % me.size, 1)
                sent = yield me.isend((me.rank + shift) % me.size, size, 1)
                yield me.compute(application.unit, own.uniform(0.0, 5e-5))
                yield me.wait(got)
                yield me.wait(sent)
            elif what == "late" and me.rank < 2:
                yield me.send(1, size, 2) if me.rank == 0 else me.receive(0, 2)
            elif what == "meet":
                yield me.allreduce(size)
            elif what == "root":
                yield me.bcast(size, shift)

    return course


RUNS = {
    **{f"random ranks {seed}": lambda seed=seed: fixed(random_course(seed), ranks=2 + seed % 6) for seed in range(6)},
    "operations of parts": lambda: Mixed(in_parts=True),
    "stencil": lambda: Stencil(cells=(32, 32, 32), grid=(2, 2, 1), iterations=5, cell_time_s=1e-8),
    "HPL, two rings": lambda: Hpl(n=1500, p=2, q=3),
    "HPL without look-ahead": lambda: Hpl(n=1000, p=3, q=2, depth=0, bcast="long"),
    "HPL across nodes": lambda: Hpl(n=2000, p=6, q=8),
}


@pytest.fixture(scope="module", params=[*RUNS, "a recording"])
def trace(request: pytest.FixtureRequest) -> Trace:
    if request.param not in RUNS:
        return read_trace(RECORDING)
    application = RUNS[request.param]()
    made = predict(application, load_platform("dahu"), runs=1, seed=3, trace=TraceRequest()).trace
    assert made is not None
    return made


@pytest.fixture(scope="module")
def analysis(trace: Trace) -> Analysis:
    return analysis_of(trace)


def test_the_critical_path_is_as_long_as_the_run_and_has_no_gap(analysis: Analysis) -> None:
    path, run = analysis.path, analysis.trace
    assert path.length_s == pytest.approx(float(run.end_s.max()) - analysis.begin_s, rel=1e-12)
    assert path.length_s == pytest.approx(analysis.runtime_s, rel=1e-12)
    assert (path.start_s[:-1] == path.end_s[1:]).all()
    assert (path.duration_s > 0).all()
    # Each piece lies in its row, but what came before it of a message or an operation.
    at_rank = ~numpy.isin(path.piece, [PIECES.index("messages"), PIECES.index("collective operations")]) & (
        path.row >= 0
    )
    rounding_s = 1e-9 * analysis.runtime_s
    assert (path.start_s[at_rank] >= run.start_s[path.row[at_rank]] - rounding_s).all()
    assert (path.end_s[path.row >= 0] <= run.end_s[path.row[path.row >= 0]] + rounding_s).all()
    assert (run.rank[path.row[path.row >= 0]] == path.rank[path.row >= 0]).all()
    moves = path.piece == MESSAGE
    assert (path.origin[moves] != path.receiver[moves]).all()
    other_end = numpy.where(path.origin == path.rank, path.receiver, path.origin)
    assert (path.rank[1:] == other_end[:-1]).all()


def test_the_path_computes_no_longer_than_the_ideal_run_takes(analysis: Analysis) -> None:
    """On an ideal network all dependencies are still there; without probes that chose what came next, no others."""
    ideal_s = analysis.efficiencies.ideal_s or 0.0
    if "MPI_Iprobe" not in analysis.trace.names:
        assert analysis.path.seconds_by(analysis.path.piece)[0,] <= ideal_s * (1 + 1e-3)
    assert analysis.efficiencies.useful_s.max() <= ideal_s * (1 + 1e-12)


def test_the_efficiencies_multiply_and_their_computing_is_the_breakdowns(analysis: Analysis) -> None:
    found = analysis.efficiencies
    assert prod(found.factors.values()) == pytest.approx(found.parallel, rel=1e-12)
    assert found.load_balance * found.communication == pytest.approx(found.parallel, rel=1e-12)
    useful_s = analysis.breakdown.by_rank_s[:, [COMPUTE, OWN_CODE]].sum(axis=1)  # with what recording calls took
    numpy.testing.assert_allclose(found.useful_s, useful_s, rtol=1e-3 if analysis.trace.is_recording else 1e-9)


def test_all_parts_sum_to_the_whole(analysis: Analysis) -> None:
    by_rank_s, waits = analysis.breakdown.by_rank_s, analysis.waits
    ranks = numpy.array(analysis.trace.ranks)
    late_s = numpy.bincount(numpy.searchsorted(ranks, waits.rank), weights=waits.time_s, minlength=len(ranks))
    numpy.testing.assert_allclose(late_s, by_rank_s[:, LATE], rtol=1e-9, atol=1e-12)
    assert sum(entry["time_s"] for entry in waits.by_cause(analysis.trace)) == pytest.approx(late_s.sum(), abs=1e-12)
    assert (waits.whom != waits.rank).all()
    computed_s = by_rank_s[:, [COMPUTE, OWN_CODE]].sum()
    for regions in filter(None, (analysis.phases, analysis.computing)):
        assert sum(region.useful_s.sum() for region in regions) == pytest.approx(computed_s, rel=1e-9)
    sends, _ = message_rows(analysis.trace)
    assert analysis.pairs.messages.sum() == len(sends)
    assert analysis.pairs.size_bytes.sum() == analysis.trace.size_bytes[sends].sum()
    assert analysis.nodes is not None
    assert analysis.nodes.size_bytes.sum() == analysis.pairs.size_bytes.sum()
    assert analysis.nodes.time_s.sum() == pytest.approx(analysis.pairs.time_s.sum(), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_ideal_run_time_of_a_trace_is_that_of_the_application_on_an_ideal_network(seed: int) -> None:
    application = fixed(random_course(seed), ranks=2 + seed % 6)
    dahu = load_platform("dahu")
    ideal = dahu.model_copy(update={"network": ideal_network()})
    nothing = lp.Layers.only()
    made = predict(application, dahu, runs=1, layers=nothing, trace=TraceRequest()).trace
    on_ideal = predict(application, ideal, runs=1, layers=nothing).time_s.mean
    assert made is not None
    assert analysis_of(made).efficiencies.ideal_s == pytest.approx(on_ideal, rel=1e-9)

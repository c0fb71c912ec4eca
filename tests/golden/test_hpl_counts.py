"""What the simulated HPL sends and computes, against counts of the real one (scripts/record_hpl_counts.py)."""

import pytest
from support_hpl_counts import GLUE, PHASES, UNIT_S, Counted, counted_runs, pivots_of, simulated

from lepaute.simulate.apps.hpl.parameters import BROADCASTS, FORMS, SWAPS

RUNS = list(counted_runs())
SERIES = sorted({run.series for run in RUNS})


def runs_of(series: str) -> list[Counted]:
    return [run for run in RUNS if run.series == series]


def test_all_grids_broadcasts_swaps_depths_and_forms_are_counted() -> None:
    assert {run.hpl.bcast for run in RUNS} == set(BROADCASTS)
    assert {run.hpl.swap for run in RUNS} == set(SWAPS)
    assert {(run.hpl.l1, run.hpl.u) for run in RUNS} == {(l1, u) for l1 in FORMS for u in FORMS}
    assert {0, 1, 2} <= {run.hpl.depth for run in RUNS}
    grids = {(run.hpl.p, run.hpl.q) for run in RUNS}
    assert {(1, q) for q in range(2, 9)} | {(p, 1) for p in range(2, 9)} <= grids
    assert {(2, 2), (2, 3), (3, 2), (2, 4), (4, 2)} <= grids


@pytest.mark.parametrize("series", SERIES)
def test_every_rank_sends_as_many_messages_and_bytes_as_in_the_real_program(series: str) -> None:
    for run in runs_of(series):
        result = simulated(run.hpl, pivots_of(run.hpl.n))
        ranks = [[(int(messages), int(size)) for messages, size in rank] for rank in result.rank_sent]
        for index, phase in enumerate(PHASES):
            assert [rank[index] for rank in ranks] == run.sent[phase], (phase, run.hpl)
        others = [entry for rank in ranks for entry in rank]
        exchanged = result.messages - sum(messages for messages, _ in others), result.bytes - sum(b for _, b in others)
        assert exchanged == tuple(map(sum, zip(*run.sent["pivots"], strict=True))), run.hpl


@pytest.mark.parametrize("series", SERIES)
def test_the_kernels_do_the_work_of_the_real_program_in_as_many_calls(series: str) -> None:
    for run in runs_of(series):
        uses = simulated(run.hpl, pivots_of(run.hpl.n)).kernels
        called = {name for name, use in uses.items() if use.calls and name not in GLUE}
        assert called == set(run.kernels), run.hpl
        for name, (calls, work) in run.kernels.items():
            assert uses[name].time_s / UNIT_S == pytest.approx(work, rel=1e-9), (name, run.hpl)
            if not run.probes:
                assert uses[name].calls == calls, (name, run.hpl)

"""Collective calls that a replay takes as they were measured, and campaigns that measure those of a recording."""

from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.replays import call, replayed, write
from support_comparisons import campaign

import lepaute as lp
from lepaute.errors import InputError
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.comparison.measuring import campaign_for
from lepaute.simulate.apps.replay.collectives import MeasuredCall, MeasuredCalls

TOOK_S = 0.25


def measured(*codes: str, sd_log: float = 0.0, error: float = 0.0, took_s: float = TOOK_S) -> MeasuredCalls:
    calls = [MeasuredCall(code, 3, 8.0, took_s, sd_log, error) for code in codes]
    return MeasuredCalls("mpich of made.zip", "mpich", tuple(calls))


def meeting(path: Path, name: str, root: int = -1, size_bytes: float = 8.0) -> Path:
    """Three ranks that compute so long, and meet."""
    rows = [call(rank, name, root, size_bytes, start_s=s, comm=0) for rank, s in enumerate((1.0, 2.0, 4.0))]
    return write(path, rows, mpi="MPICH Version: 4.0.2")


@pytest.mark.parametrize(
    ("name", "code", "root", "ends_s"),
    [
        ("Allreduce", "allreduce", -1, (4.25, 4.25, 4.25)),
        ("Alltoallv", "alltoallv", -1, (4.25, 4.25, 4.25)),
        ("Bcast", "bcast", 1, (2.25, 2.25, 4.25)),  # the others wait for the root alone
        ("Scatter", "scatter", 2, (4.25, 4.25, 4.25)),
        ("Reduce", "reduce", 0, (4.25, 2.25, 4.25)),  # the root waits for all, nobody else waits
    ],
)
def test_who_waits_for_whom(tmp_path: Path, name: str, code: str, root: int, ends_s: tuple[float, ...]) -> None:
    path = meeting(tmp_path / "run.parquet", name, root, 24.0 if name.startswith("Alltoall") else 8.0)
    prediction = replayed(path, own_code=1.0, collectives=measured(code))
    of_ranks_s = prediction.breakdown.by_rank_s.sum(axis=1)
    assert of_ranks_s == pytest.approx(ends_s, rel=1e-9)
    assert prediction.first.time_s == pytest.approx(max(ends_s), rel=1e-9)
    assert not prediction.first.messages


def test_single_calls_and_their_mean_are_drawn(tmp_path: Path) -> None:
    calls = [
        call(rank, "Allreduce", -1, 8.0, start_s=float(1 + number), comm=0) for rank in range(3) for number in range(50)
    ]
    path = write(tmp_path / "run.parquet", calls)
    base_s = 50.0  # seconds of computing

    def times(layers: lp.Layers, **of_calls: float) -> np.ndarray:
        replay = lp.TraceReplay(path, own_code=1.0, collectives=measured("allreduce", took_s=0.5, **of_calls))
        prediction = lp.predict(replay, "dahu", runs=400, layers=layers)
        return np.array([run.time_s for run in prediction.run_list]) - base_s

    noise = times(lp.Layers.only("noise"), sd_log=0.4, error=0.1)
    assert noise.mean() == pytest.approx(25.0, rel=0.02)
    relative_sd = np.sqrt(np.expm1(0.16))  # of a lognormal call
    assert noise.std() == pytest.approx(0.5 * relative_sd * np.sqrt(50), rel=0.15)
    errors = times(lp.Layers.only("collectives"), sd_log=0.4, error=0.1)
    mine = measured("allreduce", "bcast", took_s=0.5, sd_log=0.4, error=0.1)
    alone = mine.except_for("bcast", measured("bcast"))  # what stays has the same error in each run
    again = lp.predict(
        lp.TraceReplay(path, own_code=1.0, collectives=alone), "dahu", runs=400, layers=lp.Layers.only("collectives")
    )
    assert [run.time_s - base_s for run in again.run_list] == pytest.approx(errors)
    assert errors.mean() == pytest.approx(25.0, rel=0.02)
    assert errors.std() == pytest.approx(2.5, rel=0.15)


def test_sizes_between_are_interpolated_and_others_by_rules(tmp_path: Path) -> None:
    calls = MeasuredCalls(
        "x", "mpich", tuple(MeasuredCall("bcast", 4, s, t, 0.1, 0.2) for s, t in ((8, 1e-6), (800, 4e-6)))
    )
    between = calls.call("bcast", 80.0, 4)
    assert between is not None
    assert between.mean_s == pytest.approx(2e-6)
    below = calls.call("bcast", 1.0, 4)
    assert below is not None
    assert below.mean_s == 1e-6
    for code, size, members in (("bcast", 801.0, 4), ("bcast", 80.0, 8), ("reduce", 80.0, 4)):
        assert calls.call(code, size, members) is None
    path = meeting(tmp_path / "run.parquet", "Allreduce")
    by_rules = replayed(path, own_code=1.0, collectives="mpich")
    prediction = replayed(path, own_code=1.0, collectives=measured("bcast"))
    assert prediction.first.time_s == by_rules.first.time_s
    (caveat,) = [text for text in prediction.warnings if "MPI_Allreduce" in text]
    assert caveat == (
        "MPI_Allreduce by the rules of mpich: mpich of made.zip was not measured with such ranks and sizes"
    )


def test_a_campaign_gives_means_and_errors_of_undisturbed_calls(tmp_path: Path) -> None:
    archive = campaign(tmp_path / "made.zip", sizes=(8, 4096), disturbed={1, 2})
    calls = lp.compare.measured_calls(archive, "mpich")
    table = mpi_campaign.calls(archive)
    counts = ~table["trial"] & ~table["disturbed"] & ~table["started_late"] & (table["library"] == "mpich")
    table = table[counts & (table["operation"] == "Bcast") & (table["size_bytes"] == 4096)]
    means = table.groupby("mpirun")["global_s"].mean()
    (bcast,) = [one for one in calls.calls if one[:3] == ("bcast", 2, 4096.0)]
    assert bcast.mean_s == pytest.approx(means.mean())
    assert bcast.error == pytest.approx(means.std() / means.mean() / np.sqrt(len(means)))
    assert {one.code for one in calls.calls} == {"bcast", "allreduce"}


def test_campaigns_that_cannot_be_taken(tmp_path: Path) -> None:
    disturbed = campaign(tmp_path / "disturbed.zip", disturbed=True)
    varied = campaign(tmp_path / "varied.zip", levels=("warm", "cold"))
    for archive, library, words in (
        (disturbed, "mpich", "disturbed.zip does not have a blocking collective operation in two"),
        (campaign(tmp_path / "few.zip", blocks=2), "mpich", "few.zip does not have"),
        (disturbed, None, "disturbed.zip has the libraries openmpi, mpich; name one of these"),
        (disturbed, "intel", "disturbed.zip has the libraries openmpi, mpich; name one of these"),
        (varied, "mpich", "varied.zip varies cache"),
    ):
        with pytest.raises(InputError, match=words):
            lp.compare.measured_calls(archive, library)
    with pytest.raises(InputError, match=r"collectives is 'intel'; it must be one of auto, openmpi, mpich, or what"):
        lp.TraceReplay(tmp_path / "run.parquet", collectives="intel")


def test_the_ratio_of_two_measured_libraries_is_that_of_their_calls(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run.parquet",
        [call(rank, "Bcast", 0, 8.0, start_s=1e-5 * number, comm=0) for rank in range(2) for number in range(1, 400)],
    )
    archive: Archive = campaign(tmp_path / "made.zip", blocks=30, longer=log(1.3))
    runs = [
        lp.predict(lp.TraceReplay(path, own_code=1.0, collectives=lp.compare.measured_calls(archive, label)), "dahu")
        for label in ("openmpi", "mpich")
    ]
    taken: list[Any] = [prediction.application for prediction in runs]
    before, after = (next(one.mean_s for one in replay.collectives.calls if one.code == "bcast") for replay in taken)
    assert after / before == pytest.approx(exp(log(1.3)), rel=0.02)
    own_s = 4e-3
    truth = (own_s + 399 * after) / (own_s + 399 * before)
    difference = lp.difference(*runs)
    assert difference.low < truth < difference.high
    assert difference.ratio == pytest.approx(truth, rel=0.02)
    assert difference.is_told_apart


def test_a_campaign_for_a_recording_has_its_cases(tmp_path: Path) -> None:
    rows = []
    for rank in range(4):
        rows += [
            call(rank, "Allreduce", -1, 12.0, start_s=1.0, duration_s=0.6, comm=0),
            call(rank, "Alltoall", -1, 4096.0, start_s=2.0, duration_s=0.3, comm=0),
            call(rank, "Barrier", -1, 0.0, start_s=3.0, duration_s=0.02, comm=0),
            call(rank, "Bcast", 0, 100.0, start_s=4.0, duration_s=0.05, comm=1 + rank // 2),
            call(rank, "Comm_split", -1, 0.0, start_s=0.5, duration_s=0.03, comm=0),
        ]
    asked, caveats = campaign_for(write(tmp_path / "run.parquet", rows))
    assert asked["rows"] == (
        *(("Allreduce", "blocking", 12), ("Alltoall", "blocking", 1024), ("Barrier", "blocking", 0)),
    )
    assert asked["primary"] == asked["rows"][:2]
    assert (asked["ranks"], asked["datatype"], asked["sizes_bytes"]) == (4, "MPI_INT", (0, 12, 1024))
    assert caveats == [
        f"not measured: {what} of the time in collective calls"
        for what in ("MPI_Bcast of 2 ranks, 5.0 %", "MPI_Comm_split, 3.0 %")
    ]
    alone = write(tmp_path / "alone.parquet", [call(rank, "Bcast", 0, 1.0, comm=1 + rank) for rank in range(2)])
    with pytest.raises(InputError, match="has no blocking collective call of all its ranks"):
        campaign_for(alone)

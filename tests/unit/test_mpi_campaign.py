"""Reading the archive of a campaign: run-times and skews worked out by hand from clocks with known models."""

from pathlib import Path
from typing import Any

import pandas
import pytest

from lepaute.errors import ArchiveError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.metadata import Metadata
from lepaute.measure.archive.mpi_campaign import CALLS, CLOCKS, KIND, MPIRUNS, calls, facts, mpiruns
from lepaute.measure.archive.setups import metadata_facts

_START_NS = 1_700_000_000_000_000_000  # more digits than a double has


def _row(rank: int, call: int, start_ns: int, end_ns: int, **more: Any) -> dict[str, Any]:
    usual = {
        "mpirun": 0, "batch": 0, "operation": "Bcast", "form": "blocking", "size_bytes": 8,
        "synchronisation": "window", "returned_ns": end_ns, "marks": 0, "window_ns": 50_000,
    }  # fmt: skip
    return {**usual, "rank": rank, "call": call, "start_ns": start_ns, "end_ns": end_ns, **more}


def _model(rank: int, **more: Any) -> dict[str, Any]:
    usual = {"mpirun": 0, "before_batch": 0, "x0_ns": _START_NS, "y0_ns": _START_NS, "drift": 0.0}
    errors = {"variance_ns2": 0.0, "drift_variance": 0.0, "covariance_ns": 0.0, "bound_ns": 0.0}
    return {**usual, **errors, "rank": rank, **more}


def _archive(folder: Path, rows: list[dict[str, Any]], models: list[dict[str, Any]], kind: str = KIND) -> Archive:
    runs = [
        {"mpirun": 0, "library": "openmpi", "block": 0, "place": 1, "trial": False, "attempt": 0},
        {"mpirun": 1, "library": "mpich", "block": 0, "place": 0, "trial": False, "attempt": 1},
    ]
    ends = [
        {"outcome": "complete", "disturbed": False, "started_s": 1.0},
        {"outcome": "failed", "disturbed": True, "started_s": 0.0},
    ]
    about = {"kind": kind, "created": "2026-01-01T00:00:00Z", KIND: {"ranks": 2, "libraries": [{"label": "openmpi"}]}}
    with ArchiveWriter(folder / "campaign.zip", about) as writer:
        writer.add_table(CALLS, pandas.DataFrame(rows))
        writer.add_table(CLOCKS, pandas.DataFrame(models))
        writer.add_table(MPIRUNS, pandas.DataFrame([{**run, **end} for run, end in zip(runs, ends, strict=True)]))
    return Archive.open(folder / "campaign.zip")


def test_both_run_times_and_the_skew_follow_from_the_clocks(tmp_path: Path) -> None:
    """Rank 1's clock is 1000 ns ahead and loses half a part in a thousand: at its 101000 rank 0's is 100050."""
    models = [_model(0), _model(1, x0_ns=_START_NS + 1000, drift=0.0005, variance_ns2=9.0, bound_ns=4.0)]
    rows = [
        _row(0, 0, _START_NS + 100_000, _START_NS + 100_700),
        _row(1, 0, _START_NS + 101_000, _START_NS + 103_000, marks=1),
        # Rank 0 is the first to start and the last to end: the clock of rank 1 has no part in it.
        _row(1, 1, _START_NS + 201_000, _START_NS + 201_100, marks=2),
        _row(0, 1, _START_NS + 200_000, _START_NS + 203_000),
    ]
    measured = calls(_archive(tmp_path, rows, models))
    first, second = (measured.iloc[number] for number in range(2))
    assert first["local_s"] == pytest.approx(2000e-9)
    # From rank 0's start at 100000 to rank 1's end, which reads 102000 after the origin and is 102051.
    assert (first["global_s"], first["start_skew_s"]) == (pytest.approx(2051e-9), pytest.approx(50e-9))
    # 1.96 deviations of 3 ns and the bound of 4 ns
    assert first["start_skew_low_s"] == pytest.approx((50 - 9.88) * 1e-9, abs=1e-11)
    assert first["start_skew_high_s"] == pytest.approx((50 + 9.88) * 1e-9, abs=1e-11)
    assert first["global_deviation_s"] == pytest.approx(3e-9)
    assert first["global_bound_s"] == pytest.approx(4e-9)
    assert (bool(first["started_late"]), bool(first["exceeded_window"])) == (True, False)
    assert second["global_s"] == pytest.approx(3000e-9)
    assert (second["global_deviation_s"], second["global_bound_s"]) == (0.0, 0.0)
    assert (bool(second["started_late"]), bool(second["exceeded_window"])) == (False, True)
    assert second["since_start_s"] == pytest.approx(100_000e-9)
    assert measured["window_s"].tolist() == pytest.approx([50e-6, 50e-6])


def test_the_last_model_before_a_batch_counts(tmp_path: Path) -> None:
    models = [_model(0), _model(1), _model(0, before_batch=2), _model(1, before_batch=2, y0_ns=_START_NS + 500)]
    rows = [_row(rank, 0, _START_NS, _START_NS + 100, batch=batch) for batch in range(4) for rank in range(2)]
    measured = calls(_archive(tmp_path, rows, models))
    assert measured["start_skew_s"].tolist() == pytest.approx([0.0, 0.0, 500e-9, 500e-9])


def test_calls_carry_what_became_of_their_mpirun_and_none_is_dropped(tmp_path: Path) -> None:
    rows = [
        *(_row(rank, call, _START_NS, _START_NS + 100) for call in (-1, 0) for rank in range(2)),
        *(_row(rank, 0, _START_NS, _START_NS + 100, mpirun=1) for rank in range(2)),
        _row(0, 1, _START_NS, _START_NS + 100, mpirun=1),  # rank 1 died in it
    ]
    models = [_model(rank, mpirun=mpirun) for mpirun in range(2) for rank in range(2)]
    archive = _archive(tmp_path, rows, models)
    measured = calls(archive)
    assert measured[["library", "failed", "disturbed", "attempt"]].to_numpy().tolist() == [
        ["openmpi", False, False, 0],
        ["mpich", True, True, 1],
    ]
    assert calls(archive, warm_up=True)["call"].tolist() == [-1, 0, 0]
    assert mpiruns(archive)["library"].tolist() == ["openmpi", "mpich"]
    assert facts(archive).labels == ("openmpi",)
    assert facts(archive).precision == 0.0  # missing


def test_a_campaign_without_calls_is_an_empty_table(tmp_path: Path) -> None:
    rows = [_row(0, -1, _START_NS, _START_NS + 100)]
    assert calls(_archive(tmp_path, rows, [_model(0)])).empty


def test_another_archive_is_refused(tmp_path: Path) -> None:
    archive = _archive(tmp_path, [_row(0, 0, _START_NS, _START_NS)], [_model(0)], kind="calibration")
    with pytest.raises(ArchiveError, match="is of kind calibration, not of a comparison of MPI libraries"):
        calls(archive)


def test_a_table_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    row = _row(0, 0, _START_NS, _START_NS)
    del row["marks"]
    with pytest.raises(ArchiveError, match="has no column marks"):
        calls(_archive(tmp_path, [row], [_model(0)]))


def test_what_a_campaign_found_out_is_no_difference_of_setups() -> None:
    about = {"kind": KIND, KIND: {"blocks": 7, "capped": True, "cases": [{"calls": 9}], "ranks": 2}}
    shown = [fact.what for _, fact in metadata_facts(Metadata.of(about), about)]
    assert "comparison.ranks" in shown
    assert not [what for what in shown if "cases" in what or "blocks" in what or "capped" in what]

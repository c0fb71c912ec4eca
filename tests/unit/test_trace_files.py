"""Trace files: what is written is what is read, and a file of another kind is refused in one line."""

from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.traces_by_hand import call, exchange, trace

from lepaute.errors import InputError
from lepaute.simulate.trace import read_trace, trace_of_columns, write_trace
from lepaute.simulate.trace.table import check_metadata


def test_a_column_that_means_nothing_may_be_left_out() -> None:
    columns = {"rank": numpy.array([0]), "start_s": numpy.array([0.0]), "duration_s": numpy.array([1.0])}
    columns |= {"kind": numpy.array([0]), "name": numpy.array([0])}
    made = trace_of_columns(columns, ["dgemm"], {})
    assert made.step.tolist() == [-1]
    assert made.peer.tolist() == [-1]
    assert numpy.isnan(made.late_s).all()


def test_calls_stand_in_the_order_of_rank_and_start_and_a_phase_before_what_it_holds() -> None:
    made = trace(
        call(1, "dgemm", 0.0, 1.0), call(0, "dscal", 2.0, 1.0), call(0, "idamax", 0.0, 1.0), call(0, "pdfact", 0.0, 3.0)
    )
    assert [made.names[i] for i in made.name] == ["pdfact", "idamax", "dscal", "dgemm"]


def parquet(path: Path, table: pa.Table, **metadata: str) -> Path:
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


GOOD = {"rank": [0], "start_s": [0.0], "duration_s": [1.0], "kind": ["kernel"], "name": ["dgemm"]}
FORMAT = {"lepaute-trace": '{"format": "lepaute-trace/1"}'}


@pytest.mark.parametrize(
    ("columns", "metadata", "complaint"),
    [
        (GOOD, {}, "not a Lepaute trace: the Parquet metadata 'lepaute-trace' is missing"),
        (GOOD, {"lepaute-trace": "3"}, "is not a JSON object"),
        (GOOD, {"lepaute-trace": '{"format": "lepaute-trace/9"}'}, "its format is 'lepaute-trace/9'"),
        ({**GOOD, "rank": ["zero"]}, FORMAT, "the column rank has the type string; it is int32"),
        ({**GOOD, "rank": [None]}, FORMAT, "the column rank has"),
        ({**GOOD, "kind": ["nap"]}, FORMAT, "kind is 'nap'"),
        ({**GOOD, "kind": [3]}, FORMAT, "the column kind has the type int64; it is text"),
        ({**GOOD, "duration_s": [-1.0]}, FORMAT, "duration_s of row 0 is -1.0; it is at least 0"),
        ({**GOOD, "start_s": [float("nan")]}, FORMAT, "start_s of row 0 is nan"),
        ({**GOOD, "rank": [-2]}, FORMAT, "rank of row 0 is -2"),
        ({name: GOOD[name] for name in GOOD if name != "name"}, FORMAT, "the column name is missing"),
        ({name: GOOD[name] for name in GOOD if name != "start_s"}, FORMAT, "the required column start_s is missing"),
    ],
)
def test_a_table_that_is_no_trace_is_refused_in_a_line_that_says_why(tmp_path, columns, metadata, complaint):
    path = parquet(tmp_path / "t.parquet", pa.table(columns), **metadata)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)


def test_a_file_that_is_no_parquet_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("rank,start_s\n0,1\n")
    with pytest.raises(InputError, match=r"of no format that is read: Parquet"):
        read_trace(tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"no such file"):
        read_trace(tmp_path / "none.parquet")


def test_more_ranks_than_are_simulated_are_refused_when_the_file_is_opened() -> None:
    with pytest.raises(InputError, match="t: 1073741824 ranks; at most 4194304 are simulated"):
        check_metadata({"ranks": 2**30}, "t")


def test_an_empty_trace_is_a_trace(tmp_path: Path) -> None:
    whole = exchange()
    write_trace(whole.where(whole.rank > 99), tmp_path / "t.parquet")
    assert len(read_trace(tmp_path / "t.parquet")) == 0

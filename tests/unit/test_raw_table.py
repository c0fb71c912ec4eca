"""What was recorded comes back as it was."""

from pathlib import Path

import pandas
import pytest

from lepaute.measure.archive.reader import table_of
from lepaute.measure.raw_files import Table, Value, table_blocks


def read_table(path: Path) -> pandas.DataFrame:
    """In one block, and equal to what it is in blocks of two rows, of the same types."""
    (whole,) = table_blocks(path)
    pandas.testing.assert_frame_equal(whole, pandas.concat(table_blocks(path, rows=2), ignore_index=True))
    return whole


def written(path: Path, column: list[Value]) -> list[object]:
    table = Table(path, {"generator": "test"})
    for value in column:
        table.add({"x": value, "after": 1})
    table.close()
    frame = read_table(path)
    assert frame["after"].tolist() == [1] * len(column)
    return [None if pandas.isna(value) else value for value in frame["x"].tolist()]


@pytest.mark.parametrize(
    "column",
    [
        ["a # b", "#", "#@head=1"], ["#@head=1", "x"], ["007", "1"], ["NA", "null", "None", "nan", ""],
        ["1e5", "1_000", " 1", "٣"], ["inf", "0.5"], ['a,"b"', "c;d", "'"], ["True", "true"], [True, False],
        [True, None, False], [1, 2, -3], [2**63 - 1, None, 1], [0.1, 1e-300, -0.0, 1e22], [1, 0.5], [0.5, None],
        [None, None],
    ],
)  # fmt: skip
def test_every_value_comes_back_as_it_was_recorded(tmp_path: Path, column: list[Value]) -> None:
    got = written(tmp_path / "raw.csv", column)
    assert got == column
    assert [type(value) for value in got] == [type(value) for value in column] or column == [1, 0.5]


def test_a_number_too_large_for_a_column_of_numbers_stays_a_text(tmp_path: Path) -> None:
    assert written(tmp_path / "raw.csv", [2**63, 1]) == ["9223372036854775808", "1"]


def test_names_of_nodes_are_texts_also_where_they_are_numbers(tmp_path: Path) -> None:
    table = Table(tmp_path / "raw.csv", {})
    table.add({"node": "17"})
    table.close()
    assert read_table(tmp_path / "raw.csv")["node"].tolist() == ["17"]


def test_an_empty_file_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "raw.csv").write_text("")
    assert read_table(tmp_path / "raw.csv").empty


def test_a_csv_member_of_an_archive_keeps_what_follows_a_hash_sign() -> None:
    frame = table_of("raw/x.csv", b"#@seed=1\n# more\nsaid,n\na # b,1\n#,2\n")
    assert frame["said"].tolist() == ["a # b", "#"]
    assert frame["n"].tolist() == [1, 2]

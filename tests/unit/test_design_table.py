"""The design table on disk: what goes in comes out, and what is wrong is said with its place."""

from pathlib import Path

import pytest

from lepaute.design import Design, read_design
from lepaute.errors import DesignError

GOOD = "#@generator=test\n#@seed=3\ndesign_row,operation,size_bytes\n0,recv,1\n1,pingpong,64\n"


@pytest.mark.parametrize(
    ("found", "wrong", "line", "message"),
    [
        ("1,pingpong,64", "1,pingpong,-8", 5, "size_bytes is -8; expected an integer >= 0"),
        ("1,pingpong,64", "1,pingpong,64.5", 5, "size_bytes is 64.5; expected an integer >= 0"),
        ("1,pingpong,64", "1,pingpong, 64", 5, "size_bytes is  64; expected an integer >= 0"),
        ("1,pingpong,64", "1,pingpong,", 5, "size_bytes is ; expected an integer >= 0"),
        ("0,recv,1", "0,receive,1", 4, "operation is receive; expected one of recv, isend"),
        ("1,pingpong,64", "2,pingpong,64", 5, "design_row is 2; expected 1"),
        ("1,pingpong,64", "1,pingpong", 5, "2 values; expected 3"),
        ("design_row,", "row,", 3, "the first column is 'row'; expected design_row"),
        ("size_bytes", "size", 3, "no design has the columns operation,size"),
        ("#@seed=3", "# seed 3", 2, "expected #@key=value"),
    ],
)
def test_a_wrong_line_is_named_with_its_number_and_what_was_expected(tmp_path, found, wrong, line, message):
    assert found in GOOD
    path = tmp_path / "d.csv"
    path.write_text(GOOD.replace(found, wrong))
    with pytest.raises(DesignError) as caught:
        read_design(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_empty_or_not_text_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x80")
    for name, message in (("none.csv", "cannot be read"), ("empty.csv", "no line of column"), ("binary.csv", "text")):
        with pytest.raises(DesignError, match=message) as caught:
            read_design(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_design_made_in_python_is_checked_as_a_file_is() -> None:
    with pytest.raises(DesignError, match="row 0: m is 0; expected an integer >= 1"):
        Design({}, ("kind", "m", "n", "k"), (("dgemm", 0, 1, 1),))
    with pytest.raises(DesignError, match="row 0 has 3 values for 4 columns"):
        Design({}, ("kind", "m", "n", "k"), (("dgemm", 1, 1),))
    with pytest.raises(DesignError, match="line break"):
        Design({"note": "two\nlines"}, ("operation", "size_bytes"), ())

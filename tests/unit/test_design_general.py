"""General designs: fractions, mixes, blocks, summaries; and damaged design files."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

import lepaute as lp
from lepaute.errors import DesignError
from lepaute.measure.design import Design, fraction, full_factorial, read_design, table, write_design
from lepaute.measure.design.summary import summary_of


def two_levels(count: int) -> dict[str, list[int]]:
    return {name: [-1, 1] for name in "abcdefghijk"[:count]}


@pytest.mark.parametrize(
    ("factors", "runs", "resolution"),
    # The table of fractions by factors and runs in Box, Hunter and Hunter, Statistics for Experimenters.
    [
        *[(3, 4, "III"), (4, 8, "IV"), (5, 16, "V"), (5, 8, "III"), (6, 16, "IV"), (6, 32, "VI"), (7, 8, "III")],
        *[(7, 16, "IV"), (7, 32, "IV"), (7, 64, "VII"), (8, 16, "IV"), (8, 64, "V"), (9, 16, "III"), (9, 32, "IV")],
    ],
)
def test_the_search_finds_the_resolution_of_the_published_table(factors: int, runs: int, resolution: str) -> None:
    design = lp.design.fractional(two_levels(factors), count=runs, seed=1)
    assert len(set(design.rows)) == runs
    assert design.header["resolution"] == resolution


@pytest.mark.parametrize(("factors", "runs"), [(11, 32), (8, 16)])
def test_more_factors_than_can_be_searched_still_keep_main_effects_clear_of_pairs(monkeypatch, factors, runs):
    monkeypatch.setattr(fraction, "_MAX_WORDS", 30_000)  # 330 sets of 16 words would be searched for 8 factors
    assert lp.design.fractional(two_levels(factors), count=runs, seed=1).header["resolution"] == "IV"


def test_a_search_that_would_take_too_long_says_what_to_give() -> None:
    factors = {f"f{i:02}": [0, 1] for i in range(30)}
    with pytest.raises(DesignError, match="would take too long to search; name them, such as f29=f00"):
        lp.design.fractional(factors, count=2**18, seed=1)


def test_aliases_of_either_half_fraction_of_four_factors_are_the_textbook_ones() -> None:
    design = lp.design.fractional(two_levels(4), generators=["d=a*b*c"], replications=2, seed=1)
    # I = abcd: main effects with interactions of three, pairs with the pairs that remain
    assert design.header["defining_relation"] == "I=a*b*c*d"
    assert design.header["aliases"] == "a*b=c*d; a*c=b*d; b*c=a*d"
    assert design.header["fraction"] == "1/2"
    assert all(row["d"] == row["a"] * row["b"] * row["c"] for row in design)  # type: ignore[operator]
    assert set(Counter(design.rows).values()) == {2}
    plus = lp.design.fractional(two_levels(3), generators=["c=a*b"], seed=1)
    minus = lp.design.fractional(two_levels(3), generators=["c=-a*b"], seed=1)
    assert not set(plus.rows) & set(minus.rows)
    assert minus.header["defining_relation"] == "I=-a*b*c"
    assert minus.header["aliases"] == "a=-b*c; b=-a*c; c=-a*b"


def test_nine_runs_of_four_factors_with_three_levels_are_an_orthogonal_array() -> None:
    factors = {name: [0, 1, 2] for name in "abcd"}
    design = lp.design.fractional(factors, count=9, seed=1)  # Taguchi's L9 exists: the search reaches it for this seed
    assert design.header["pair_imbalance"] == "0"
    for one in "abcd":
        for two in "abcd":
            if one < two:
                assert set(Counter((row[one], row[two]) for row in design).values()) == {1}


def test_whole_numbers_become_real_where_another_part_has_real_ones() -> None:
    whole = lp.design.full_factorial({"x": [1, 2]}, seed=1)
    real = lp.design.full_factorial({"x": [0.5]}, seed=1)
    assert sorted(lp.design.mix(whole, real, seed=1).column("x")) == [0.5, 1.0, 2.0]  # type: ignore[type-var]
    with pytest.raises(DesignError, match="x has texts in one design and numbers in another"):
        lp.design.mix(whole, lp.design.full_factorial({"x": ["a"]}, seed=1), seed=1)


def test_a_summary_counts_treatments_replications_and_incomplete_blocks() -> None:
    design = lp.design.full_factorial({"a": [1, 2], "op": ["x", "y", "z"]}, replications=2, blocks=3, seed=1)
    summary = summary_of(design)
    assert (summary.treatments, summary.replications, summary.blocks, summary.complete) == (6, (2, 2), 3, True)
    torn = lp.design.Design(design.header, design.columns, design.rows[:-1])
    assert summary_of(torn).complete is False
    assert summary_of(torn).replications == (1, 2)
    assert summary_of(lp.design.Design(design.header, design.columns, ())).treatments == 0


MESSAGES = "#@generator=test\n#@seed=3\ndesign_row,operation,size_bytes\n0,recv,1\n1,pingpong,64\n"
GOOD = '#@generator=test\n#@columns=op:text,size_bytes:int,ratio:real\ndesign_row,op,size_bytes,ratio\n0,"a,b",1,0.5\n'


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
        ("design_row,operation", "row,operation", 3, "the first column is 'row'; expected design_row"),
        ("operation,size_bytes", "operation,size", 3, "no design has the columns operation,size"),
        ("#@seed=3", "# seed 3", 2, "expected #@key=value"),
        ("1,0.5", "1.0,0.5", 4, "size_bytes is 1.0; expected a whole number"),
        ("1,0.5", "9223372036854775808,0.5", 4, "size_bytes is 9223372036854775808; expected a whole number"),
        ("1,0.5", "1,nan", 4, "ratio is nan; expected a finite number"),
        ("1,0.5", "1,1e999", 4, "ratio is 1e999; expected a finite number"),
        ("1,0.5", "1, 0.5", 4, "ratio is  0.5; expected a finite number"),
        ('"a,b"', '"a,b', 4, "a misplaced quote"),
        ('"a,b"', '"a"b', 4, "a misplaced quote"),
        ('"a,b"', "a\x07b", 4, "op is a?b; expected a text of one line"),
        ('"a,b"', "a,b", 4, "5 values; expected 4"),
        ("op:text", "op:word", 3, "column op has the type 'word'; expected one of int, real, text"),
        ("op:text", "op", 3, "column op has the type ''"),
        ("op:text", "o-p:text", 3, "a factor cannot be named 'o-p'"),
        ("op:text", "ratio:text", 3, "two columns are named ratio"),
        ("op:text,", "", 3, "the header declares size_bytes:int,ratio:real"),
        ("#@generator=test", "#@columns=a:int", 2, "the header 'columns' is given twice"),
    ],
)
def test_a_wrong_line_is_named_with_its_number_and_what_was_expected(tmp_path, found, wrong, line, message):
    good = GOOD if found in GOOD else MESSAGES
    assert found in good
    path = tmp_path / "d.csv"
    path.write_text(good.replace(found, wrong), encoding="utf-8")
    with pytest.raises(DesignError) as caught:
        read_design(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_spreadsheet_adds_is_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert list(read_design(path)) == [{"op": "a,b", "size_bytes": 1, "ratio": 0.5}]


def test_a_file_without_end_is_refused_before_it_fills_the_memory(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table, "MAX_LINE_BYTES", 1 << 16)
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes(1 << 20)))
    with pytest.raises(DesignError, match=r"x.gz:1: too long for a design table; the most is 65536 bytes a line"):
        read_design(tmp_path / "x.gz")
    with pytest.raises(DesignError, match="/dev/zero: is a pipe, a device or a socket"):
        read_design("/dev/zero")


def test_a_file_of_too_many_bytes_or_cells_is_refused_where_it_passes_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "d.csv"
    write_design(full_factorial({"a": list(range(100))}, seed=1), path)
    monkeypatch.setattr(table, "MAX_CELLS", 150)
    with pytest.raises(DesignError, match=r":83: more than 150 cells"):  # 7 lines before the rows, 2 cells a row
        read_design(path)
    monkeypatch.setattr(table, "MAX_BYTES", 300)
    with pytest.raises(DesignError, match="300 in all"):
        read_design(path)


def test_more_columns_than_a_design_may_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    names = [f"c{i}" for i in range(201)]
    declared = ",".join(f"{name}:int" for name in names)
    path.write_text(f"#@columns={declared}\ndesign_row,{','.join(names)}\n")
    with pytest.raises(DesignError, match="more than 200 columns"):
        read_design(path)


@pytest.mark.parametrize("value", ["two\nlines", "a\rb", "\x00", "\u2028", "\ud800", "x" * 5000])
def test_a_text_that_is_not_one_printable_line_is_refused(value: str) -> None:
    with pytest.raises(DesignError, match="texts of one line"):
        full_factorial({"op": [value, "b"]}, seed=1)
    with pytest.raises(DesignError, match="expected a text of one line"):
        Design({"columns": "op:text"}, ("op",), ((value,),))


def test_a_design_made_in_python_is_checked_as_a_file_is() -> None:
    with pytest.raises(DesignError, match="row 0: m is 0; expected an integer >= 1"):
        Design({}, ("kind", "m", "n", "k"), (("dgemm", 0, 1, 1),))
    with pytest.raises(DesignError, match="row 0 has 3 values for 4 columns"):
        Design({}, ("kind", "m", "n", "k"), (("dgemm", 1, 1),))
    with pytest.raises(DesignError, match="line break"):
        Design({"note": "two\nlines"}, ("operation", "size_bytes"), ())

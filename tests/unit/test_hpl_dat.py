"""HPL.dat read as HPL reads it, and the files of HPL that Lepaute writes in its form."""

from dataclasses import replace
from pathlib import Path

import pytest

from lepaute.errors import InputError
from lepaute.measure.verify.real_run import hpl_input_text
from lepaute.simulate import Hpl, PredictionRequest, predict_all
from lepaute.simulate.apps.hpl.hpl_dat import HplDat, parse_hpl_dat, read_hpl_dat
from lepaute.simulate.apps.hpl.hpl_out import report, result_line
from lepaute.simulate.apps.hpl.parameters import check_sayable
from lepaute.simulate.platform import load_platform

FILE = Path(__file__).parents[1] / "data" / "hpl_dat" / "HPL.dat"
LINES = FILE.read_text().splitlines()
# What HPCC's file, the same up to line 31, goes on with.
HPCC_TAIL = """##### This line (no. 32) is ignored (it serves as a separator). ######
0                      		Number of additional problem sizes for PTRANS
1200 10000 30000        	values of N
0                       	number of additional blocking sizes for PTRANS
40 9 8 13 13 20 16 32 64       	values of NB
"""


def with_line(number: int, text: str) -> str:
    """The file with another line at `number`, from 1."""
    return "\n".join([*LINES[: number - 1], text, *LINES[number:]]) + "\n"


@pytest.mark.parametrize(
    ("line", "text", "field", "value"),
    [
        (3, "", "output_file", "HPL.out"),
        (4, "8 file", "device", 8),
        (4, "HPL.out", "device", 6),  # what no prediction needs is not refused
        (4, "", "device", 6),
        (13, "strict", "threshold", 16.0),
        (13, "nan", "threshold", 16.0),
        (27, "-64", "swap_threshold", (0,)),  # with SWAP 0
        (27, "none", "swap_threshold", (64,)),
        (6, "29 30\tNs", "n", (29, 30)),
        (9, "1", "pmap", ("column",)),
        (13, "-1.0e0", "threshold", -1.0),
        (15, "0 2 PFACTs", "pfact", ("left", "right")),
        (17, "+8", "nbmin", (8,)),
        (19, "3# a comment without a blank", "ndiv", (3,)),
        (19, "3 4 5 6", "ndiv", (3,)),
        (23, "4 5 BCASTs", "bcast", ("long", "long-modified")),
        (25, "0", "depth", (0,)),
        (26, "1", "swap", ("spread-roll",)),
        (26, "2", "swap", ("mix",)),
        (27, "0", "swap_threshold", (0,)),
        (28, "1", "l1", ("no-transposed",)),
        (29, "1", "u", ("no-transposed",)),
        (30, "0", "equil", (False,)),
        (31, "16", "align", (16,)),
    ],
)
def test_each_value_is_read_from_its_line(line, text, field, value):
    dat = parse_hpl_dat(with_line(line, text))
    assert (dat.values[field] if field in dat.values else getattr(dat, field)) == value


def test_hpcc_s_file_and_lines_that_end_as_on_windows_say_the_same():
    plain = read_hpl_dat(FILE)
    assert parse_hpl_dat(FILE.read_text() + HPCC_TAIL) == plain
    assert parse_hpl_dat(FILE.read_text().replace("\n", "\r\n")) == plain
    assert parse_hpl_dat("\ufeff" + FILE.read_text().rstrip("\n")) == plain


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        (5, "0", "number of values of N is 0; HPL takes 1 to 20"),
        (5, "21", "number of values of N is 21; HPL takes 1 to 20"),
        (5, "two", "number of values of N is 'two'"),
        (5, "", "number of values of N is missing, the line is blank"),
        (6, "1000 Ns", "N has 1 value where 2 were announced"),
        (6, "1000", "N has 1 value where 2 were announced"),
        (6, "", "N has 0 values where 2 were announced"),
        (6, "1000 0", "N is 0; it is at least 1"),
        (6, "1000 -5", "N is -5; it is at least 1"),
        (6, "1e4 2000", "N is '1e4'; write a whole number"),
        (6, "1000 20.5", "N is '20.5'; write a whole number"),
        (6, "10k 20k", "N is '10k'; write a whole number"),
        (6, "1000,2000 Ns", "N is '1000,2000'"),
        (6, "1000 3000000000", "N is 3000000000; HPL's integers end at 2147483647"),
        (6, "      1000 2000", "N: HPL itself would read 1000 1000 here"),
        (6, "1000 2000" + " " * 300, "has 309 characters; HPL reads 252 of a line"),
        (8, "0 64", "NB is 0; it is at least 1"),
        (9, "2", "PMAP is 2; the codes are 0 row, 1 column"),
        (10, "3", "P has 2 values where 3 were announced"),
        (11, "0 1", "P is 0"),
        (12, "2", "Q has 1 value where 2 were announced"),
        (15, "1 3", "PFACT is 3; the codes are 0 left, 1 crout, 2 right"),
        (17, "0", "NBMIN is 0; it is at least 1"),
        (19, "1", "NDIV is 1; it is at least 2"),
        (21, "-1", "RFACT is -1; the codes are 0 left"),
        (23, "1 6", "BCAST is 6; the codes are 0 1ring"),
        (25, "-1", "DEPTH is -1; it is at least 0"),
        (26, "3", "SWAP is 3; the codes are 0 binary-exchange"),
        (28, "2", "L1 is 2; the codes are 0 transposed"),
        (29, "2", "U is 2; the codes are 0 transposed"),
        (30, "2", "equilibration is 2; the codes are 0 no, 1 yes"),
        (31, "0", "memory alignment is 0; it is at least 1"),
    ],
)
def test_what_hpl_would_not_or_not_so_read_is_refused_with_its_line(line, text, words):
    with pytest.raises(InputError) as refusal:
        parse_hpl_dat(with_line(line, text), "HPL.dat")
    # The line that announces too many values is right in itself: the list behind it is where they lack.
    at = line + 1 if line == 10 else line
    assert str(refusal.value).startswith(f"HPL.dat:{at}: ")
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("removed", "complaint"),
    [
        ((18, 19), "HPL.dat:18: '# of recursive panel fact.' belongs to line 20, and HPL takes this line for the "
                   "number of values of NDIV; add the 2 lines missing before it"),
        ((13,), "HPL.dat:13: '# of panel fact' belongs to line 14, and HPL takes this line for the threshold; add the "
                "1 line missing"),
        ((8,), "HPL.dat:8: 'PMAP process mapping (0=Row-,1=Column-major)' belongs to line 9, and HPL takes this line "
               "for NB;"),
        ((2,), "HPL.dat:5: 'Ns' belongs to line 6"),
    ],
)  # fmt: skip
def test_a_missing_line_is_named_where_it_is_missing(removed, complaint):
    for lines in (LINES, parse_hpl_dat("\n".join(LINES)).text().splitlines()):
        left = [line for number, line in enumerate(lines, start=1) if number not in removed]
        with pytest.raises(InputError) as refusal:
            parse_hpl_dat("\n".join(left))
        if lines is LINES:
            assert str(refusal.value).startswith(complaint)
        assert str(refusal.value)[: len("HPL.dat:18:")] == complaint[: len("HPL.dat:18:")]


def test_a_line_too_many_is_named():
    with pytest.raises(
        InputError, match=r"HPL.dat:18: 'NBMINs .>= 1.' belongs to line 17, .*; remove the 1 line too many"
    ):
        parse_hpl_dat("\n".join([*LINES[:16], LINES[16], *LINES[16:]]))


@pytest.mark.parametrize(
    ("option", "given", "word"),
    [
        *(("bcast", each, "1ring-modified") for each in ("1ringM", "1RINGM", "1rM", "1Ring-Modified", "1")),
        *(("bcast", each, "long-modified") for each in ("BlongM", "LnM")),
        *(("swap", each, "spread-roll") for each in ("long", "Spread-roll (long)", "SPREAD-ROLL")),
        *(("swap", "Mix", "mix"), ("swap", "bin-exch", "binary-exchange"), ("pfact", "Crout", "crout")),
        *(("pmap", "Column-major", "column"), ("l1", "No-Transposed", "no-transposed"), ("equil", "Yes", True)),
    ],
)
def test_options_take_hpl_s_own_names_in_any_case(option, given, word, refusal_of, json_of):
    words = ["predict", "hpl", "-p", "dahu", "--n", "300", "--runs", "1", "--json", f"--{option}", given]
    assert json_of(*words)["parameters"][option] == word
    assert f"{option} is 'magic'; it must be one of " in refusal_of(*words[:-1], "magic")


def test_the_combinations_come_in_the_order_of_hpl_s_own_loops():
    # Grids outermost, then N, NB, DEPTH, BCAST, RFACT, PFACT, NBMIN, NDIV.
    dat = HplDat(
        {
            "p": (2, 1), "q": (2, 4), "n": (1000, 2000), "nb": (64, 128), "depth": (0, 1),
            "bcast": ("2ring", "1ring"), "rfact": ("left", "right"), "pfact": ("crout", "left"), "nbmin": (2, 4),
            "ndiv": (2, 3), "pmap": ("column",), "swap": ("mix",), "swap_threshold": (60,), "l1": ("transposed",),
            "u": ("no-transposed",), "equil": (False,), "align": (4,),
        }
    )  # fmt: skip
    found = dat.combinations(threads_per_rank=2)
    names = ("p", "n", "nb", "depth", "bcast", "rfact", "pfact", "nbmin", "ndiv")
    assert len(found) == 2 ** len(names)
    changes = [sum(getattr(a, at) != getattr(b, at) for at in names) for a, b in zip(found, found[1:], strict=False)]
    assert changes == [((number ^ (number - 1)).bit_length()) for number in range(1, 2 ** len(names))]
    assert [one.ndiv for one in found[:4]] == [2, 3, 2, 3]
    assert found[0] == Hpl(
        n=1000, nb=64, p=2, q=2, depth=0, bcast="2ring", swap="mix", swap_threshold=60, pfact="crout", rfact="left",
        nbmin=2, ndiv=2, pmap="column", l1="transposed", u="no-transposed", equil=False, align=4, threads_per_rank=2,
    )  # fmt: skip
    assert (found[-1].p, found[-1].q, found[-1].ndiv) == (1, 4, 3)


def test_more_combinations_than_anyone_can_predict_are_refused():
    dat = read_hpl_dat(FILE)
    many = HplDat(dat.values | {"n": tuple(range(1, 10**5))})
    with pytest.raises(InputError, match="asks for 1599984 combinations"):
        many.combinations()


# Printed by the real HPL 2.0 for N = 2000, NB = 128, 1 x 2, DEPTH 1, 2ring, RFACT right, NDIV 2, PFACT Crout, NBMIN 2.
REAL_LINE = "WR12R2C2        2000   128     1     2               0.09              5.998e+01"


def test_a_line_of_results_has_the_columns_of_the_real_one():
    line = result_line(Hpl(n=2000, p=1, q=2), 0.0891, 59.98)
    # The rate has one digit more, as in later versions of HPL.
    assert line.split() == [*REAL_LINE.split()[:-1], "5.9980e+01"]
    assert line[:68] == REAL_LINE[:68]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "WR12R2C2"),
        ({"pmap": "column"}, "WC12R2C2"),
        ({"depth": 0}, "WR02R2C2"),
        ({"bcast": "long-modified"}, "WR15R2C2"),
        ({"rfact": "crout", "pfact": "right", "nbmin": 4, "bcast": "1ring-modified"}, "WR11C2R4"),
        ({"rfact": "left", "pfact": "left", "ndiv": 3, "nbmin": 16}, "WR12L3L16"),
    ],
)
def test_the_variant_is_encoded_as_hpl_prints_it(change, code):
    assert replace(Hpl(n=100), **change).variant == code


def test_a_script_that_reads_hpl_s_columns_reads_the_means():
    dat = HplDat(HplDat.of(Hpl(n=500)).values | {"n": (500, 1000), "nb": (64, 128)})
    predictions = predict_all(dat.combinations(), load_platform("dahu"), PredictionRequest(runs=2))
    text = report(dat, predictions)
    rows = [line.split()[:7] for line in text.splitlines() if line.startswith("WR")]
    assert [row[1:5] for row in rows] == [[n, nb, "1", "1"] for n in ("500", "1000") for nb in ("64", "128")]
    for row, prediction in zip(rows, predictions, strict=True):
        assert float(row[5]) == pytest.approx(prediction.time_s.mean, abs=0.005)
        assert float(row[6]) == pytest.approx(prediction.rate_gflops.mean, rel=1e-4)


# A file that HPL 2.0 was seen to run with our defaults (N 4000 on 1x2), values only: what HPL reads.
KNOWN_GOOD = [
    *("1", "4000", "1", "128", "0", "1", "1", "2", "-1.0"),  # sizes, blocks, mapping, grid, threshold
    *("1", "1", "1", "2", "1", "2", "1", "2"),  # PFACT, NBMIN, NDIV, RFACT
    *("1", "2", "1", "1", "0", "128", "0", "0", "1", "8"),  # BCAST, DEPTH, SWAP, L1, U, equilibration, alignment
]


def values_of(text: str) -> list[str]:
    """What HPL reads: the first word of each line after two titles, the output file and the device."""
    return [line.split()[0] for line in text.splitlines()[4:]]


def test_the_defaults_give_the_file_that_real_hpl_ran_with_and_a_parameter_changes_its_line_alone():
    assert values_of(hpl_input_text(Hpl(n=4000, p=1, q=2))) == KNOWN_GOOD
    # Line numbers count from the first value, in the order in which HPL_pdinfo reads them.
    base = Hpl(n=4000, p=1, q=2)
    changes = {
        1: ({"n": 5000}, "5000"), 4: ({"pmap": "column"}, "1"), 10: ({"pfact": "left"}, "0"),
        12: ({"nbmin": 4}, "4"), 14: ({"ndiv": 3}, "3"), 16: ({"rfact": "crout"}, "1"),
        18: ({"bcast": "long-modified"}, "5"), 20: ({"depth": 0}, "0"), 21: ({"swap": "mix"}, "2"),
        22: ({"swap_threshold": 64}, "64"), 23: ({"l1": "no-transposed"}, "1"), 24: ({"u": "no-transposed"}, "1"),
        25: ({"equil": False}, "0"), 26: ({"align": 16}, "16"),
    }  # fmt: skip
    for line, (change, expected) in changes.items():
        values = values_of(hpl_input_text(replace(base, **change)))
        different = [i for i, (old, new) in enumerate(zip(KNOWN_GOOD, values, strict=True)) if old != new]
        assert different == [line], change
        assert values[line] == expected, change


def test_an_option_that_only_the_native_engine_has_is_refused_for_the_real_hpl() -> None:
    check_sayable(Hpl(n=100, threads_per_rank=2), "threads_per_rank")
    with pytest.raises(InputError, match="the real HPL does not have copy_l, pivots; leave the default"):
        check_sayable(Hpl(n=100, copy_l=True, pivots="first-row"))

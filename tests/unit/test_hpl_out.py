"""The files of HPL in its own form: the input that Lepaute writes, and its predictions as HPL's report."""

from dataclasses import replace

import pytest

from lepaute.errors import InputError
from lepaute.measure.verify.real_run import hpl_input_text
from lepaute.simulate import Hpl, PredictionRequest, predict_all
from lepaute.simulate.apps.hpl.hpl_dat import HplDat
from lepaute.simulate.apps.hpl.hpl_out import report, result_line
from lepaute.simulate.apps.hpl.parameters import check_sayable
from lepaute.simulate.platform import load_platform

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


def test_the_defaults_give_the_file_that_real_hpl_ran_with():
    assert values_of(hpl_input_text(Hpl(n=4000, p=1, q=2))) == KNOWN_GOOD


def test_each_parameter_changes_its_own_line_and_no_other():
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

"""Predictions in the form of HPL's own report."""

from dataclasses import replace

import pytest

from lepaute.simulate import Hpl, PredictionRequest, predict_all
from lepaute.simulate.apps.hpl.hpl_dat import HplDat
from lepaute.simulate.apps.hpl.hpl_out import report, result_line
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

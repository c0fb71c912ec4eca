"""Predictions in the form of HPL's own report, HPL.out, for eyes and scripts that know it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.simulate.hpl import BROADCASTS

if TYPE_CHECKING:
    from lepaute.simulate.hpl import Hpl
    from lepaute.simulate.hpl_dat import HplDat
    from lepaute.simulate.prediction import Prediction, Spread

WIDTH = 80
LETTERS = {"left": "L", "crout": "C", "right": "R", "row": "R", "column": "C"}
FACTORISATION_NAMES = {"left": "Left", "crout": "Crout", "right": "Right"}
BROADCAST_NAMES = dict(zip(BROADCASTS, ("1ring", "1ringM", "2ring", "2ringM", "Blong", "BlongM"), strict=True))
A_LINE = 8  # values of a list on a line


def variant(hpl: "Hpl") -> str:
    """The code of the algorithms as HPL prints it: WR11C2R4.

    W, mapping (R or C), DEPTH, code of BCAST, RFACT, NDIV, PFACT, NBMIN.
    """
    return (
        f"W{LETTERS[hpl.pmap]}{hpl.depth}{BROADCASTS.index(hpl.bcast)}"
        f"{LETTERS[hpl.rfact]}{hpl.ndiv}{LETTERS[hpl.pfact]}{hpl.nbmin}"
    )


def result_line(hpl: "Hpl", time_s: float, rate_gflops: float) -> str:
    """One line of results in the columns of HPL: T/V, N, NB, P, Q, time in seconds, rate in Gflop/s."""
    return f"{variant(hpl)}{hpl.n:12d} {hpl.nb:5d} {hpl.p:5d} {hpl.q:5d} {time_s:18.2f}     {rate_gflops:18.4e}"


def report(dat: "HplDat", predictions: Sequence["Prediction"], version: str) -> str:
    """The report on all combinations of an HPL.dat: parameters, then the table of results, a line a prediction.

    The columns of HPL hold the means; the ends of the 95 % prediction intervals stand to the right of them, where what
    reads HPL's seven columns does not look.
    """
    first = predictions[0]
    runs = len(first.run_list)
    lines = [
        "=" * WIDTH,
        f"HPL, predicted by Lepaute {version} and not run",
        f"Platform {first.platform_name} ({first.platform_sha256[:16]})",
        f"{runs} simulated run(s), from seed {first.seed}",
        "=" * WIDTH,
        "",
        "T/V: mapping, DEPTH, BCAST, RFACT, NDIV, PFACT, NBMIN. Time and Gflops: means of the runs.",
        "",
        *parameter_lines(dat),
        "",
        "=" * WIDTH,
        "T/V                N    NB     P     Q               Time                 Gflops"
        + ("" if runs == 1 else "   95 % interval of time and of Gflops"),
        "-" * WIDTH,
    ]
    for prediction in predictions:
        line = result_line(prediction.hpl, prediction.time_s.mean, prediction.rate_gflops.mean)
        lines.append((line + interval(prediction.time_s) + interval(prediction.rate_gflops)).rstrip())
    lines += ["=" * WIDTH, "", f"{len(predictions)} combination(s) predicted."]
    return "\n".join(lines) + "\n"


def parameter_lines(dat: "HplDat") -> list[str]:
    """The parameters as HPL lists them, eight values of a list on a line."""
    swap = {
        "binary-exchange": "Binary-exchange",
        "spread-roll": "Spread-roll (long)",
        "mix": f"Mix (threshold = {dat.swap_threshold})",
    }[dat.swap]
    return [
        *wrapped("N", dat.ns),
        *wrapped("NB", dat.nbs),
        f"PMAP   : {dat.pmap.capitalize()}-major process mapping",
        *wrapped("P", [p for p, _ in dat.grids]),
        *wrapped("Q", [q for _, q in dat.grids]),
        *wrapped("PFACT", [FACTORISATION_NAMES[word] for word in dat.pfacts]),
        *wrapped("NBMIN", dat.nbmins),
        *wrapped("NDIV", dat.ndivs),
        *wrapped("RFACT", [FACTORISATION_NAMES[word] for word in dat.rfacts]),
        *wrapped("BCAST", [BROADCAST_NAMES[word] for word in dat.bcasts]),
        *wrapped("DEPTH", dat.depths),
        f"SWAP   : {swap}",
        f"L1     : {dat.l1} form",
        f"U      : {dat.u} form",
        f"EQUIL  : {'yes' if dat.equil else 'no'}",
        f"ALIGN  : {dat.align} double precision words",
    ]


def wrapped(name: str, values: Sequence[object]) -> list[str]:
    """`NAME   : values`, each in eight columns."""
    rows = [values[at : at + A_LINE] for at in range(0, len(values), A_LINE)]
    heads = [f"{name:<7}:", *[" " * 8] * (len(rows) - 1)]
    return [head + "".join(f"{value!s:>8} " for value in row).rstrip() for head, row in zip(heads, rows, strict=True)]


def interval(spread: "Spread") -> str:
    """The two ends, to stand to the right of HPL's columns; nothing where there is no interval."""
    if spread.low is None or spread.high is None:
        return ""
    return f"   {spread.low:>9.4g} .. {spread.high:<9.4g}"

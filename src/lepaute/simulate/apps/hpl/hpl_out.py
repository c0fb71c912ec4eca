"""Predictions in the form of HPL's own report, HPL.out, for eyes and scripts that know it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lepaute.simulate.apps.hpl.hpl_dat import HplDat, of_whole_file
from lepaute.simulate.apps.hpl.parameters import SWAPS, Hpl, places
from lepaute.simulate.prediction.warnings import caveats

if TYPE_CHECKING:
    from lepaute.simulate.prediction.prediction import Prediction, Spread

WIDTH = 80
RESULTS_HEADER = "T/V                N    NB     P     Q               Time                 Gflops"
A_LINE = 8  # values of a list on a line


def result_line(hpl: Hpl, time_s: float, rate_gflops: float) -> str:
    """One line of results in the columns of HPL: T/V, N, NB, P, Q, time in seconds, rate in Gflop/s."""
    return f"{hpl.variant}{hpl.n:12d} {hpl.nb:5d} {hpl.p:5d} {hpl.q:5d} {time_s:18.2f}     {rate_gflops:18.4e}"


def report(dat: "HplDat", predictions: Sequence["Prediction"]) -> str:
    """The report on all combinations of an HPL.dat: parameters, then the table of results, a line a prediction.

    The columns of HPL hold the means; the ends of the 95 % prediction intervals stand to the right of them, where what
    reads HPL's seven columns does not look, and so do the words "not comparable". `caveat_lines` go below it in a file.
    """
    first = predictions[0]
    runs = len(first.run_list)
    lines = [
        "=" * WIDTH,
        f"HPL, predicted by Lepaute {first.version} and not run",
        f"Platform {first.platform_name} ({first.platform_sha256[:16]})",
        f"{runs} simulated run(s), from seed {first.seed}",
        "=" * WIDTH,
        "",
        "T/V: mapping, DEPTH, BCAST, RFACT, NDIV, PFACT, NBMIN. Time and Gflops: means of the runs.",
        "",
        *parameter_lines(dat),
        "",
        "=" * WIDTH,
        RESULTS_HEADER + ("" if runs == 1 else "   95 % interval of time and of Gflops"),
        "-" * WIDTH,
    ]
    for prediction in predictions:
        line = result_line(cast(Hpl, prediction.application), prediction.time_s.mean, prediction.rate_gflops.mean)
        ends = interval(prediction.time_s) + interval(prediction.rate_gflops)
        lines.append((line + ends + ("" if prediction.comparable else "   not comparable")).rstrip())
    lines += ["=" * WIDTH, "", f"{len(predictions)} combination(s) predicted."]
    return "\n".join(lines) + "\n"


def caveat_lines(predictions: Sequence["Prediction"]) -> str:
    """What a reader of the report must know, a line each."""
    return "".join(f"Caveat: {each}\n" for each in caveats(predictions))


def real_report(title: str, runs: "Sequence[tuple[Hpl, float]]") -> str:
    """Real runs in the form of HPL's report: parameters, then a line for each of the (run, seconds).

    Runs that no one HPL.dat has are reported one file after the other, as HPL appends to its output.
    """
    of_files: dict[tuple[object, ...], list[tuple[Hpl, float]]] = {}
    for run in runs:
        of_files.setdefault(of_whole_file(run[0]), []).append(run)
    reports = []
    for of_file in of_files.values():
        lines = [
            *("=" * WIDTH, title, "=" * WIDTH, ""),
            *parameter_lines(HplDat.covering([hpl for hpl, _ in of_file])),
            *("", "=" * WIDTH, RESULTS_HEADER, "-" * WIDTH),
            *(result_line(hpl, time_s, hpl.rate_gflops(time_s)) for hpl, time_s in of_file),
            *("=" * WIDTH, "", f"{len(of_file)} run(s), without a residual check."),
        ]
        reports.append("\n".join(lines) + "\n")
    return "\n".join(reports)


def parameter_lines(dat: "HplDat") -> list[str]:
    """The parameters as HPL lists them, eight values of a list on a line."""
    lines = []
    for field, place in places():
        words = [("no", "yes")[value] if isinstance(value, bool) else value for value in dat.values[field]]
        values = [place.codes[word] for word in words] if place.codes else dat.values[field]
        if place.several or place.beside:
            lines += wrapped(place.name, values)
        elif field == "swap" and values == [SWAPS["mix"]]:
            lines.append(f"{place.name:<7}: {values[0]} (threshold = {dat.values['swap_threshold'][0]})")
        elif place.name:
            lines.append(f"{place.name:<7}: {values[0]}{place.report}")
    return lines


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

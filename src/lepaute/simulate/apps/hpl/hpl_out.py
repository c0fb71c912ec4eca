"""HPL's own report, HPL.out: predictions and real runs written in its form, and what the real HPL printed (HPL.out,
hpccoutf.txt, a job's log) read as runs and their times.

A line of results holds N, NB, the grid and the code of the algorithms. What it does not say (row swap, forms of L1 and
U, equilibration, alignment) is in the list of parameters above the table; a file without one needs them from elsewhere.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import asctime
from typing import TYPE_CHECKING, Any, NoReturn, cast

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.kit.hpl_output import ALGORITHMS, FAILED, PARAMETER_LINE, PrintedResult, ResultLines
from lepaute.kit.text import counted
from lepaute.simulate.apps.hpl.hpl_dat import HplDat, by_file
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, FACTORISATIONS, SWAPS, Hpl, places
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
        *_parameter_lines(dat),
        "",
        "=" * WIDTH,
        RESULTS_HEADER + ("" if runs == 1 else "   95 % interval of time and of Gflops"),
        "-" * WIDTH,
    ]
    for prediction in predictions:
        line = result_line(cast(Hpl, prediction.application), prediction.time_s.mean, prediction.rate_gflops.mean)
        ends = interval(prediction.time_s) + interval(prediction.rate_gflops)
        lines.append((line + ends + ("" if prediction.comparable else "   not comparable")).rstrip())
    lines += ["=" * WIDTH, "", f"{counted(len(predictions), 'combination')} predicted."]
    return "\n".join(lines) + "\n"


def caveat_lines(predictions: Sequence["Prediction"]) -> str:
    return "".join(f"Caveat: {caveat}\n" for caveat in caveats(predictions))


def real_report(title: str, runs: "Sequence[tuple[Hpl, float, datetime]]") -> str:
    """Real runs in the form of HPL's report: parameters, then a line for each of the (run, seconds, its start).

    Below each line is its start, as HPL from 2.1 on prints it, here in UTC: without it no watch takes the result.
    Runs that no one HPL.dat has are reported one file after the other, as HPL appends to its output.
    """
    reports = []
    for of_file in by_file(runs):
        lines = [
            *("=" * WIDTH, title, "=" * WIDTH, ""),
            *_parameter_lines(HplDat.covering([hpl for hpl, _, _ in of_file])),
            *("", "=" * WIDTH, RESULTS_HEADER, "-" * WIDTH),
            *(
                line
                for hpl, time_s, start in of_file
                for line in (
                    result_line(hpl, time_s, hpl.rate_gflops(time_s)),
                    f"HPL_pdgesv() start time {asctime(start.astimezone(UTC).timetuple())}",
                )
            ),
            *("=" * WIDTH, "", f"{len(of_file)} run(s), without a residual check."),
        ]
        reports.append("\n".join(lines) + "\n")
    return "\n".join(reports)


def _parameter_lines(dat: "HplDat") -> list[str]:
    """The parameters as HPL lists them, eight values of a list on a line."""
    lines = []
    for field, place in places():
        printed = place.codes or {}
        values = [printed.get(value, value) for value in dat.values[field]]
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
    if not spread.has_interval:
        return ""
    return f"   {spread.low:>9.4g} .. {spread.high:<9.4g}"


MAX_BYTES = 64 << 20
THRESHOLD = re.compile(r"(?P<name>.*?) \(threshold = (?P<threshold>\d{1,9})\)")
#: Fields of Hpl that each line says.
SAID_BY_LINES = frozenset({"n", "nb", "p", "q", *ALGORITHMS.groupindex})


@dataclass(frozen=True, slots=True)
class HplResult:
    """One real run.

    time_s: the finer of time and rate as printed;  line: its number in the file, from 1
    assumed: fields of hpl that nothing said, which have their defaults
    """

    hpl: Hpl
    time_s: float
    line: int
    failed: bool = False  # its residual check
    assumed: tuple[str, ...] = ()


def read_hpl_results(path: Path, given: Mapping[str, Any], dat: "HplDat | None" = None) -> list[HplResult]:
    """The results of the file; arguments and errors as in parse_hpl_results."""
    text = read_bytes(path, "results of HPL (HPL.out)", MAX_BYTES).decode(errors="replace")
    return parse_hpl_results(text, path.name, given, dat)


def parse_hpl_results(text: str, name: str, given: Mapping[str, Any], dat: "HplDat | None" = None) -> list[HplResult]:
    """The results in the text of a file of that name, in its order.

    given: fields of Hpl by other means, such as threads_per_rank, or what a file without list of parameters leaves out
    dat: the HPL.dat of the runs, which says what neither the file nor `given` does
    Raises InputError, naming the line, where there is no result, where the file says otherwise than `given` or `dat`,
    or a line contradicts itself.
    """
    results: list[HplResult] = []
    of_dat = {} if dat is None else {field: values[0] for field, values in dat.values.items()}
    known = {field: value for field, value in of_dat.items() if field not in SAID_BY_LINES} | {**given}
    listed: dict[str, Any] = {}
    lines = ResultLines(name)
    for number, line in enumerate(text.splitlines(), start=1):
        if (printed := lines.result(line, number)) is not None:
            results.append(_result(printed, {**known, **listed}, name, number))
            if dat is not None and (contradiction := dat.contradiction(results[-1].hpl, given)):
                _fail(name, number, contradiction)
        elif (match := PARAMETER_LINE.search(line)) is not None:
            said = _parameter(match["name"], match["text"], name, number)
            for field, value in said.items():
                if given.get(field, value) != value:
                    _fail(name, number, f"--{field.replace('_', '-')} is {value!r} there, not {given[field]!r}")
            listed |= said
        elif results and FAILED.search(line):
            results[-1] = replace(results[-1], failed=True)
    if not results:
        raise InputError(
            f"{name}: has no line of results of HPL (WR... or WC..., N, NB, P, Q, time, Gflops); give what xhpl "
            "printed, its HPL.out, or hpccoutf.txt of HPCC"
        )
    return results


def default_of(field: str) -> str:
    """Default of a field, as the command line takes it."""
    hpl = Hpl(n=1)
    value = hpl.threshold if field == "swap_threshold" else getattr(hpl, field)
    return str(int(value) if isinstance(value, bool) else value)


def _result(printed: PrintedResult, known: Mapping[str, Any], name: str, number: int) -> HplResult:
    letters = {word[0].upper(): word for word in FACTORISATIONS}
    match = ALGORITHMS.fullmatch(printed.code)
    if match is None:
        _fail(
            name,
            number,
            f"{printed.code!r} is no code of HPL's own algorithms, as WR11C2R4 is (W, PMAP, DEPTH, BCAST, RFACT, NDIV, "
            "PFACT, NBMIN); other algorithms cannot be simulated",
        )
    if int(match["bcast"]) >= len(BROADCASTS):
        _fail(name, number, f"broadcast {match['bcast']} is none of HPL's, 0 to {len(BROADCASTS) - 1}")
    said: dict[str, Any] = {
        **{field: getattr(printed, field) for field in ("n", "nb", "p", "q")},
        **{field: int(match[field]) for field in ("depth", "ndiv", "nbmin")},
        "pmap": "row" if match["pmap"] == "R" else "column",
        "bcast": list(BROADCASTS)[int(match["bcast"])],
        "rfact": letters[match["rfact"]],
        "pfact": letters[match["pfact"]],
    }
    try:
        hpl = Hpl(**said, **known)
    except InputError as error:
        raise InputError(f"{name}:{number}: {error}") from None
    assumed = tuple(field for field, _ in places() if field not in SAID_BY_LINES and field not in known)
    # only a mix of both swaps looks at the threshold
    assumed = tuple(field for field in assumed if field != "swap_threshold" or hpl.swap == "mix")
    return HplResult(hpl, printed.time_s, number, assumed=assumed)


def _parameter(name: str, text: str, file: str, number: int) -> dict[str, Any]:
    field, dat = next((field, dat) for field, dat in places() if dat.name == name or field.upper() == name)
    said: dict[str, Any] = {}
    if (match := THRESHOLD.fullmatch(text)) is not None:
        text, said["swap_threshold"] = match["name"], int(match["threshold"])
    if dat.codes is None:
        digits = re.match(r"\d{1,9}(?!\d)", text)
        return {field: int(digits[0])} if digits else _fail(file, number, f"{name} is {text[:80]!r}, no number")
    words = {printed: word for word, printed in dat.codes.items()}
    if text not in words:
        _fail(file, number, f"{name} is {text[:80]!r}; HPL prints {' or '.join(words)}")
    said[field] = words[text]
    return said


def _fail(name: str, number: int, problem: str) -> NoReturn:
    raise InputError(f"{name}:{number}: {problem}")

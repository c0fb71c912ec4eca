"""What HPL prints, line by line: results, parameters above them, failed residual checks, dates.

HPL rounds: it gives the time two decimals and the rate four or five digits. The finer of both is a run's duration.
"""

import re
from dataclasses import dataclass

from lepaute.errors import InputError

#: Of our own tables, which have the form of HPL's.
PREDICTED = "HPL, predicted by Lepaute"

#: What a line of results must have; HPL's own has no other column, and these in this order.
_COLUMNS = ("N", "NB", "P", "Q", "Time", "Gflops")
_LONGEST_ROW = 500
_NUMBER = r"\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?"
# "WR12R2C2        2000   128     1     2               0.09              5.998e+01", behind a launcher's prefix too;
# also of programs with other algorithms: NVIDIA's "WC0 ...", AMD's "WRC07R8C48c 211 ..." with a column more.
_RESULT = re.compile(
    rf"(?<![\w/.-])(?P<code>W[RC][A-Z]?\d[0-9A-Za-z]{{0,30}})(?=(?:[ \t]+{_NUMBER}(?!\S)){{2}})(?P<cells>.{{0,2000}})"
)
_ANY_ROW = re.compile(rf"(?P<code>\S{{0,60}}[A-Za-z]\S{{0,60}})(?:[ \t]+{_NUMBER}(?!\S)){{6}}")
_COLUMN_NAMES = re.compile(r"(?<![\w/.-])T/V(?P<others>(?:[ \t]+\S{1,60}){1,40})")
_MIXED_PRECISION = re.compile(r"\s{0,20}(?P<name>(?:roc)?HPL[-_ ]?(?:AI|MxP))(?![a-z])", re.IGNORECASE)
#: Time and rate of a line are of one run: within their rounding they agree up to this.
_MAX_DISAGREEMENT = 0.02
#: HPL's own code of the algorithms; others have other codes.
ALGORITHMS = re.compile(
    r"W(?P<pmap>[RC])(?P<depth>\d{1,6})(?P<bcast>\d)(?P<rfact>[LCR])(?P<ndiv>\d{1,6})(?P<pfact>[LCR])(?P<nbmin>\d{1,6})"
)
PARAMETER_LINE = re.compile(r"(?<![\w/.-])(?P<name>SWAP|L1|U|EQUIL|ALIGN)\s*: +(?P<text>\S.{0,200}?)\s*$")
HEADING = re.compile(r"^HPLinpack \d[\d.]* +-- +High-Performance Linpack benchmark", re.MULTILINE)
FAILED = re.compile(r"\|\|Ax-b\|\|[^=]{0,200}=\s{0,60}\S{1,60} \.{1,60} FAILED")
#: When a run began, in ctime's form and the local time of where it ran (HPL from 2.1 on), behind its line of results.
START_LINE = re.compile(r"HPL_pdgesv\(\) start time (?P<date>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})")
#: When HPCC came to a section, in seconds since the epoch, before what is printed there.
HPCC_TIME = re.compile(r"^Current time \((?P<epoch_s>\d{1,12})\) is ")


def is_hpl_output(text: str) -> bool:
    """Whether HPL, or a table in its form, printed this: its heading, or a line of results."""
    return HEADING.search(text) is not None or any(_ANY_ROW.match(match[0]) for match in _RESULT.finditer(text))


@dataclass(frozen=True, slots=True)
class PrintedResult:
    """One line of results.

    code: of the algorithms, with all that stands before N, such as AMD's SWP;  time, rate: as printed, s and Gflop/s
    time_s: the finer of both
    """

    code: str
    n: int
    nb: int
    p: int
    q: int
    time: str
    rate: str
    time_s: float


class ResultLines:
    """The results among the lines of a file, given one after the other; the heading above says which column is which.

    Where there is none, as among lines that somebody cut out, the columns are HPL's own.
    """

    def __init__(self, name: str) -> None:
        """name: of the file, for messages."""
        self._name = name
        self._columns = list(_COLUMNS)
        self._below_heading = False
        self._mixed = ""

    def result(self, line: str, number: int) -> PrintedResult | None:
        """What line `number` says, None if it is no line of results.

        Raises InputError, with file and line, for predictions, for results in mixed precision, for a line where the
        first result is due that is of no known form, and where time and rate are not of one run of that size.
        """
        where = f"{self._name}:{number}"
        if PREDICTED in line:
            raise InputError(f"{where}: holds predictions of Lepaute, nothing that ran; give the real HPL's output")
        names = _COLUMN_NAMES.search(line)
        columns = names["others"].split() if names else []
        if {"N", "Time"} <= set(columns):
            self._columns, self._below_heading = columns, True
            return None
        if (match := _RESULT.search(line)) is not None:
            self._below_heading = False
            self._check_program(line[: match.start()], where)
            return self._read(match["code"], match["cells"].split(), where)
        if (mixed := _MIXED_PRECISION.match(line)) is not None:
            self._mixed = mixed["name"]
        if line.lstrip().startswith("==="):
            self._below_heading = False
        if self._below_heading and (row := _ANY_ROW.search(line[:_LONGEST_ROW])) is not None:
            raise InputError(
                f"{where}: {row['code'][:60]!r} stands where HPL has its code of the algorithms, WR... or WC...; this "
                "program's results are not known"
            )
        return None

    def _check_program(self, before: str, where: str) -> None:
        """Raises InputError if something but a launcher's or grep's prefix says that it is no result of HPL."""
        word = re.split(r"[:>\]|)\s]", before.rstrip())[-1][-60:]
        program = self._mixed or (word if re.search(r"[A-Za-z]", word.removesuffix("Z")) else "")
        if re.fullmatch(r"(?i)(?:roc)?HPL[-_ ]?(?:AI|MxP)", program):
            raise InputError(
                f"{where}: is a result of {program}, which computes in mixed precision and is not comparable with HPL; "
                "leave it out, or give a CSV file with dates and rates as a factor of its own"
            )
        if program:
            raise InputError(f"{where}: {program!r} stands before the result; that program's results are not known")

    def _read(self, code: str, cells: list[str], where: str) -> PrintedResult:
        text = {}
        for name in _COLUMNS:
            if self._columns.count(name) != 1:
                raise InputError(f"{where}: the heading above the result has {name!r} not exactly once")
            at = self._columns.index(name)
            text[name] = cells[at] if at < len(cells) else ""
            if not re.fullmatch(_NUMBER if name in ("Time", "Gflops") else r"\d{1,10}", text[name]):
                raise InputError(
                    f"{where}: {name} is {text[name][:40]!r}, no such number; the columns are T/V, "
                    f"{', '.join(self._columns)[:200]}"
                )
        n, nb, p, q = (int(text[name]) for name in _COLUMNS[:4])
        time, rate = text["Time"], text["Gflops"]
        code = " ".join([code, *cells[: self._columns.index("N")]])
        return PrintedResult(code, n, nb, p, q, time, rate, _time_s(n, time, rate, where))


def _time_s(n: int, time: str, rate: str, where: str) -> float:
    """The finer of time and rate; raises InputError if they are not of one run."""
    if float(time) == 0.0 and float(rate) == 0.0:
        raise InputError(f"{where}: time and rate are zero; a run of that size has no result that could be compared")
    # A run of 5 ms is printed as 0.01 s: what was rounded lies anywhere within half a digit, for both.
    (shortest_s, longest_s), (lowest, highest) = _rounded_from(time), _rounded_from(rate)
    flop = flop_count(n)
    least = lowest * 1e9 * shortest_s * (1 - _MAX_DISAGREEMENT)
    most = highest * 1e9 * longest_s * (1 + _MAX_DISAGREEMENT)
    if not (flop > 0.0 and least <= flop <= most):
        raise InputError(f"{where}: {time} s and {rate} Gflop/s are not of one run with N = {n}")
    return flop / (float(rate) * 1e9) if _half_digit(rate) < _half_digit(time) else float(time)


def flop_count(n: int) -> float:
    """Operations that HPL counts: 2/3 n^3 + 3/2 n^2."""
    return (2.0 / 3.0) * n**3 + 1.5 * n**2


def _rounded_from(number: str) -> tuple[float, float]:
    """The lowest and the highest value that is printed as this decimal number."""
    digits, _, exponent = number.lower().partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return max(0.0, float(number) - half), float(number) + half


def _half_digit(number: str) -> float:
    """Largest relative error of a decimal number as printed; infinite for zero."""
    value = float(number)
    return (_rounded_from(number)[1] - value) / value if value else float("inf")

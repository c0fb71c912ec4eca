"""What HPL prints, line by line: results, parameters above them, failed residual checks, dates.

HPL rounds: it gives the time two decimals and the rate four or five digits. The finer of both is a run's duration.
"""

import re

#: Of our own tables, which have the form of HPL's.
PREDICTED = "HPL, predicted by Lepaute"

_COLUMNS = (
    r"\s+(?P<n>\d{1,10})\s+(?P<nb>\d{1,10})\s+(?P<p>\d{1,10})\s+(?P<q>\d{1,10})"
    r"\s+(?P<time>\d{1,15}(?:\.\d{1,15})?)\s+(?P<rate>\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?)(?!\S)"
)
# "WR12R2C2        2000   128     1     1               0.40              1.351e+01", behind a launcher's prefix too.
RESULT_LINE = re.compile(
    r"(?<![\w/.-])W(?P<pmap>[RC])(?P<depth>\d{1,6})(?P<bcast>\d)(?P<rfact>[LCR])(?P<ndiv>\d{1,6})(?P<pfact>[LCR])"
    rf"(?P<nbmin>\d{{1,6}}){_COLUMNS}"
)
#: Also those of programs with other algorithms, such as NVIDIA's: "WC0     571392  1024   4   8    98.05   1.268e+06".
ANY_RESULT_LINE = re.compile(rf"(?<![\w/.-])(?P<variant>W[RC][0-9A-Z]{{1,30}}){_COLUMNS}")
PARAMETER_LINE = re.compile(r"(?<![\w/.-])(?P<name>SWAP|L1|U|EQUIL|ALIGN)\s*: +(?P<text>\S.{0,200}?)\s*$")
HEADING = re.compile(r"^HPLinpack \d[\d.]* +-- +High-Performance Linpack benchmark", re.MULTILINE)
FAILED = re.compile(r"\|\|Ax-b\|\|[^=]{0,200}=\s{0,60}\S{1,60} \.{1,60} FAILED")
#: When a run began, in ctime's form and the local time of where it ran (HPL from 2.1 on), behind its line of results.
START_LINE = re.compile(r"HPL_pdgesv\(\) start time (?P<date>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})")
#: When HPCC came to a section, in seconds since the epoch, before what is printed there.
HPCC_TIME = re.compile(r"^Current time \((?P<epoch_s>\d{1,12})\) is ")


def is_hpl_output(text: str) -> bool:
    """Whether HPL, or a table in its form, printed this: its heading, or a line of results."""
    return HEADING.search(text) is not None or RESULT_LINE.search(text) is not None


def flop_count(n: int) -> float:
    """Operations that HPL counts: 2/3 n^3 + 3/2 n^2."""
    return (2.0 / 3.0) * n**3 + 1.5 * n**2


def finer_time_s(flop: float, time: str, rate: str) -> float:
    """Duration of a run of so many operations as printed: the finer of time and rate is taken."""
    return flop / (float(rate) * 1e9) if half_digit(rate) < half_digit(time) else float(time)


def rounded_from(number: str) -> tuple[float, float]:
    """The lowest and the highest value that is printed as this decimal number."""
    digits, _, exponent = number.lower().partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return max(0.0, float(number) - half), float(number) + half


def half_digit(number: str) -> float:
    """Largest relative error of a decimal number as printed; infinite for zero."""
    value = float(number)
    return (rounded_from(number)[1] - value) / value if value else float("inf")

"""Results that the real HPL printed (HPL.out, hpccoutf.txt, a job's log), read as runs and their times.

A line of results holds N, NB, the grid and the code of the algorithms. What it does not say (row swap, forms of L1 and
U, equilibration, alignment) is in the list of parameters above the table; a file without one needs them from elsewhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.kit.hpl_output import ALGORITHMS, FAILED, PARAMETER_LINE, PrintedResult, ResultLines
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, FACTORISATIONS, Hpl, places

MOST_BYTES = 64 << 20
THRESHOLD = re.compile(r"(?P<name>.*?) \(threshold = (?P<threshold>\d{1,9})\)")
#: Fields of Hpl that each line says.
SAID_BY_LINES = frozenset({"n", "nb", "p", "q", "pmap", "depth", "bcast", "rfact", "ndiv", "pfact", "nbmin"})


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


def read_hpl_results(path: Path, given: Mapping[str, Any]) -> list[HplResult]:
    """The results of the file; arguments and errors as in parse_hpl_results."""
    text = read_bytes(path, "results of HPL (HPL.out)", MOST_BYTES).decode(errors="replace")
    return parse_hpl_results(text, path.name, given)


def parse_hpl_results(text: str, name: str, given: Mapping[str, Any]) -> list[HplResult]:
    """The results in the text of a file of that name, in its order.

    given: fields of Hpl by other means, such as threads_per_rank, or what a file without list of parameters leaves out
    Raises InputError, naming the line, where there is no result, where the file says otherwise than `given`, or a
    line contradicts itself.
    """
    results: list[HplResult] = []
    listed: dict[str, Any] = {}
    lines = ResultLines(name)
    for number, line in enumerate(text.splitlines(), start=1):
        if (printed := lines.result(line, number)) is not None:
            results.append(_result(printed, {**given, **listed}, name, number))
        elif (match := PARAMETER_LINE.search(line)) is not None:
            said = _parameter(match["name"], match["text"], name, number)
            for field, value in said.items():
                if given.get(field, value) != value:
                    _fail(name, number, f"{field} is {value!r} there, {given[field]!r} is asked for; leave that out")
            listed |= said
        elif results and FAILED.search(line):
            last = results[-1]
            results[-1] = replace(last, failed=True)
    if not results:
        raise InputError(
            f"{name}: has no line of results of HPL (WR... or WC..., N, NB, P, Q, time, Gflops); give what xhpl "
            "printed, its HPL.out, or hpccoutf.txt of HPCC"
        )
    return results


def default_of(field: str) -> str:
    """What a field has unless something says otherwise, as the command line takes it."""
    hpl = Hpl(n=1)
    value = hpl.threshold if field == "swap_threshold" else getattr(hpl, field)
    return str(int(value) if isinstance(value, bool) else value)


def _that_matter(fields: tuple[str, ...], hpl: Hpl) -> tuple[str, ...]:
    """Without the threshold of the row swap, which only a mix of both swaps looks at."""
    return tuple(field for field in fields if field != "swap_threshold" or hpl.swap == "mix")


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
    return HplResult(hpl, printed.time_s, number, assumed=_that_matter(assumed, hpl))


def _parameter(name: str, text: str, file: str, number: int) -> dict[str, Any]:
    """The fields that a line of the list of parameters says."""
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
    said[field] = words[text] == "yes" if field == "equil" else words[text]
    return said


def _fail(name: str, number: int, problem: str) -> NoReturn:
    raise InputError(f"{name}:{number}: {problem}")

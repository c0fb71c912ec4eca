"""HPL.dat, the input file of HPL: every combination of parameters of one command, read and written.

HPL reads its file by position: line by line, on each line the values first, then free text. The same file, longer, is
HPCC's hpccinf.txt; what follows line 31 is not HPL's. Where HPL silently takes something else than what stands there
(a code that does not exist, a number with a point, values that it counts off wrongly), reading fails and says so.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.kit.hpl_output import is_hpl_output
from lepaute.kit.options import MAX_COMBINATIONS, options_of
from lepaute.kit.text import counted
from lepaute.simulate.apps.hpl.parameters import MOST, Hpl, code_of, places

LINES = 31  # of HPL itself; HPCC's file goes on after them
MAX_VALUES = 20  # HPL's limit of values in a list
MAX_CHARACTERS = 252  # of a line; what is beyond, HPL reads as if it were the next line

WORD = re.compile(r"\S+")
LIKE_A_NUMBER = re.compile(r"[+-]?\.?[0-9]")
NUMBER_THEN_TEXT = re.compile(r"([+-]?[0-9]+)(?:[^\w.,].*)?")  # "1" and "1#", not "1e4", "1.5", "1,2" or "1k"

Number = TypeVar("Number", int, float)
Run = TypeVar("Run", bound=tuple[Any, ...])


class DatLines:
    """A reader that is at one line of the file after the other; every method raises InputError naming the line."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self.lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
        if self.lines[-1] == "":
            self.lines.pop()
        self.line = 0
        if "\0" in text:
            raise InputError(f"{name}: is no text file; HPL.dat has {LINES} lines of text")
        if not text.strip():
            raise InputError(f"{name}: is empty; HPL.dat has {LINES} lines")

    def word(self, what: str, default: str) -> str:
        """The first word of the next line, `default` where it is blank."""
        return next(iter(self._next(what).split()), default)

    def unused(self, what: str, default: Number) -> Number:
        """The number at the start of the next line, `default` where there is none: nobody needs it."""
        word = next(iter(self._next(what).split()), "")
        try:
            value = type(default)(word)
        except ValueError:
            return default
        return value if abs(value) <= MOST else default  # nor NaN

    def count(self, what: str) -> int:
        """The next line as the number of values of what follows."""
        count = self._integer(self._first(f"number of {what}"), f"number of {what}", None)
        if not 1 <= count <= MAX_VALUES:
            self._fail(f"number of {what} is {count}; HPL takes 1 to {MAX_VALUES} values")
        return count

    def values(
        self, what: str, count: int | None, choices: Mapping[str, Any], least: float | None = None
    ) -> tuple[Any, ...]:
        """`count` values on the next line, or the one at its start (None): whole numbers, or codes of choices."""
        words = [self._first(what)] if count is None else self._words(what, count)
        if choices:
            return tuple(self._choice(word, what, choices) for word in words)
        return tuple(self._integer(word, what, least) for word in words)

    def _next(self, what: str) -> str:
        if self.line == len(self.lines):
            raise InputError(
                f"{self._name}: ends after line {self.line}, where {what} should follow; HPL.dat has {LINES} lines, "
                "every one needed"
            )
        line = self.lines[self.line]
        self.line += 1
        if len(line) > MAX_CHARACTERS:
            self._fail(
                f"has {len(line)} characters; HPL reads {MAX_CHARACTERS} of a line and takes the rest for the next"
            )
        return line

    def _first(self, what: str) -> str:
        words = self._next(what).split(maxsplit=1)
        if not words:
            self._fail(f"{what} is missing, the line is blank; HPL finds its values by the number of the line")
        return words[0]

    def _words(self, what: str, count: int) -> list[str]:
        """The first `count` words of the next line, where HPL finds the same ones."""
        line = self._next(what)
        words = line.split()[:count]
        values = list(itertools.takewhile(NUMBER_THEN_TEXT.fullmatch, words))
        if len(values) < count and not LIKE_A_NUMBER.match("".join(words[len(values) : len(values) + 1])):
            given = counted(len(values), "value")
            self._fail(f"{what} has {given} where {count} were announced; add values or correct the number")
        seen = _words_as_hpl_counts(line, count)
        if seen != words:
            self._fail(
                f"{what}: HPL itself would read {' '.join(seen)} here, since it steps over one blank only "
                "between values; write the values from the first column, with one blank between them"
            )
        return words

    def _integer(self, word: str, what: str, least: float | None) -> int:
        match = NUMBER_THEN_TEXT.fullmatch(word)
        if match is None:
            self._fail(f"{what} is {word!r}; write a whole number, without point, suffix or exponent")
        value = int(match[1])
        if least is not None and value < least:
            self._fail(f"{what} is {value}; it is at least {least:g}")
        if abs(value) > MOST:
            self._fail(f"{what} is {value}; HPL's integers end at {MOST}")
        return value

    def _choice(self, word: str, what: str, choices: Mapping[str, Any]) -> Any:
        value = self._integer(word, what, None)
        if not 0 <= value < len(choices):
            meanings = ", ".join(f"{code} {name}" for code, name in enumerate(choices))
            self._fail(f"{what} is {value}; the codes are {meanings}")
        return list(choices.values())[value]

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(f"{self._name}:{self.line}: {problem}")


def _words_as_hpl_counts(line: str, count: int) -> list[str]:
    """The words that HPL's own way of going along a line finds.

    It takes the next word after any blanks, but then steps on by the length of the word and one character from where it
    was, not from where the word stood: further blanks make it fall behind and read a value twice, or half of one.
    """
    seen: list[str] = []
    position = 0
    for _ in range(count):
        match = WORD.search(line, position)
        seen.append(match[0] if match else seen[-1] if seen else "")
        position += len(seen[-1]) + 1
    return seen


TO_STDOUT = 6  # HPL's device numbers: 6 standard output, 7 standard error, anything else its file
MAX_BYTES = 1 << 20
DEFAULT_THRESHOLD, DEFAULT_SWAP_THRESHOLD = 16.0, 64
OUTPUT_LINE, DEVICE_LINE, THRESHOLD_LINE = 3, 4, 13  # the lines that hold no parameter of a run


@dataclass(frozen=True, slots=True)
class HplDat:
    """Contents of an HPL.dat: its runs, and where HPL writes its report.

    values : by field of Hpl, in the order of the file: all values of the parameter, one where HPL has one. Those of p
             and of q go together: grids are their pairs
    threshold : of the residual check, not positive for no check
    """

    values: dict[str, tuple[Any, ...]]
    threshold: float = DEFAULT_THRESHOLD
    output_file: str = "HPL.out"
    device: int = TO_STDOUT

    @classmethod
    def of(cls, hpl: Hpl, *, threshold: float = DEFAULT_THRESHOLD, device: int = TO_STDOUT) -> Self:
        """The file of exactly one run."""
        parameters = hpl.parameters()
        return cls({name: (parameters[name],) for name, _ in places()}, threshold=threshold, device=device)

    @classmethod
    def covering(cls, hpls: Sequence[Hpl]) -> Self:
        """The file with all values of these runs, each once, in their order; its combinations may be more than these.

        Raises InputError if they differ in a parameter of which a file has one value, such as the row swap.
        """
        of_runs = [_in_file(hpl) for hpl in hpls]
        values: dict[str, tuple[Any, ...]] = {}
        for name, dat in places():
            if dat.beside:
                continue
            together = [name, *(other for other, beside in places() if beside.beside == name)]
            rows = list(dict.fromkeys(tuple(run[each] for each in together) for run in of_runs))
            if len(rows) > 1 and not dat.several:
                raise InputError(f"runs with {dat.what} {' and '.join(str(row[0]) for row in rows)} are of no one file")
            values |= dict(zip(together, zip(*rows, strict=True), strict=True))
        return cls(values)

    def combinations(self, **others: Any) -> list[Hpl]:
        """All runs, in the order in which HPL makes them: the process grid varies slowest, NDIV fastest.

        others: by field of Hpl, what the file does not say, such as threads_per_rank; the same for all runs
        Raises InputError if there are more than a hundred thousand.
        """
        names, lists = self._lists()
        size = math.prod(map(len, lists))
        if size > MAX_COMBINATIONS:
            raise InputError(f"HPL.dat asks for {size} combinations; shorten its lists to at most {MAX_COMBINATIONS}")
        fields = list(itertools.chain(*names))
        return [
            Hpl(**dict(zip(fields, itertools.chain(*chosen), strict=True)), **others)
            for chosen in itertools.product(*lists)
        ]

    def _lists(self) -> tuple[list[list[str]], list[list[tuple[Any, ...]]]]:
        """The fields of each loop, the outermost first, and their values; a grid has two fields."""
        known = sorted(places(), key=lambda place: -1 if place[1].loop is None else place[1].loop)
        names = [[name, *(q for q, dat in known if dat.beside == name)] for name, dat in known if not dat.beside]
        return names, [list(zip(*map(self.values.__getitem__, together), strict=True)) for together in names]

    def contradiction(self, hpl: Hpl, besides: Iterable[str] = ()) -> str:
        """What a run has that no run of the file has, but for the fields `besides`; empty where there is none."""
        known, run = dict(places()), _in_file(hpl)
        for names, rows in zip(*self._lists(), strict=True):
            value = tuple(run[name] for name in names)
            if value not in rows and names[0] not in besides and (names != ["swap_threshold"] or hpl.swap == "mix"):
                each = ([known[name].what for name in names], value, *rows)
                what, here, *there = (" x ".join(map(str, words)) for words in each)
                return f"{what} is {here}, and HPL.dat has {', '.join(there)}"
        return ""

    def unlike(self, hpls: Iterable[Hpl]) -> int:
        """Number of runs of the file that are none of these, which are of it."""
        names, lists = self._lists()
        several = {tuple(getattr(hpl, name) for name in itertools.chain(*names)) for hpl in hpls}
        return math.prod(len(set(rows)) for rows in lists) - len(several)

    def text(self) -> str:
        """The file, as HPL reads it: two titles, output file, device, then a count and a list for each parameter."""
        lines = {
            1: ("HPL input file", ""),
            2: ("written by Lepaute", ""),
            OUTPUT_LINE: (self.output_file, "output file"),
            DEVICE_LINE: (str(self.device), "device out (6 = stdout, 7 = stderr, else the file)"),
            THRESHOLD_LINE: (str(self.threshold), "threshold (not positive: no residual check)"),
        }
        for name, dat in places():
            values = self.values[name]
            if dat.several:
                lines[dat.line - 1] = (str(len(values)), f"number of {dat.several}")
            # One blank between values, or HPL counts them off wrongly.
            codes = ", ".join(f"{code} = {word}" for code, word in enumerate(dat.words))
            meaning = f"{dat.name or dat.what} ({codes})" if codes else dat.name or dat.what
            lines[dat.line] = (" ".join(str(code_of(dat, value)) for value in values), meaning)
        return "".join(f"{value:<12} {meaning}".rstrip() + "\n" for _, (value, meaning) in sorted(lines.items()))


def read_hpl_dat(path: Path) -> HplDat:
    """The HPL.dat at `path`; raises InputError with its name and the line for what HPL would not or not so read."""
    text = read_bytes(path, "an HPL.dat", MAX_BYTES).decode(errors="replace")
    try:
        return parse_hpl_dat(text, path.name)
    except InputError:
        if not is_hpl_output(text):
            raise
    raise InputError(
        f"{path.name}: is output of HPL (HPL.out), not its input; `lepaute verify hpl --results {path.name}` compares "
        "it with predictions, and --dat takes the HPL.dat of that run"
    )


def parse_hpl_dat(text: str, name: str = "HPL.dat") -> HplDat:
    """Runs described by `text`; `name` is named in the InputError that is raised for what it cannot say.

    Where a line cannot be read and the text behind the values tells that lines are missing before, that is said. What
    no prediction needs (device, threshold, swapping threshold without a mix) has its default where it is not read.
    """
    lines = DatLines(text, name)
    try:
        return _parsed(lines)
    except InputError:
        found = _first_misplaced(lines.lines[: lines.line])
        if found is None:
            raise
    meant = {dat.line: dat.what for _, dat in places()}
    meant |= {dat.line - 1: f"the number of values of {dat.what}" for _, dat in places() if dat.several}
    line, label, home = found
    place, many = meant.get(line, "the threshold"), counted(abs(home - line), "line")
    remedy = f"add the {many} missing" if home > line else f"remove the {many} too many"
    raise InputError(
        f"{name}:{line}: {label!r} belongs to line {home}, and HPL takes this line for {place}; {remedy} before it"
    )


def _parsed(lines: DatLines) -> HplDat:
    for _ in range(2):
        lines.word("a title", "")
    output_file = lines.word("output file name", default="HPL.out")
    device = lines.unused("device out", TO_STDOUT)
    values: dict[str, tuple[Any, ...]] = {}
    threshold = 0.0
    options = options_of(Hpl)
    for field, dat in places():
        if dat.line > THRESHOLD_LINE > lines.line:
            threshold = lines.unused("threshold", DEFAULT_THRESHOLD)
        if field == "swap_threshold" and values["swap"] != ("mix",):
            values[field] = (max(0, lines.unused(dat.what, DEFAULT_SWAP_THRESHOLD)),)
            continue
        count = None
        if dat.several:
            count = lines.count(f"values of {dat.what}")
        elif dat.beside:
            count = len(values[dat.beside])
        least = options[field].minimum if dat.least is None else dat.least
        values[field] = lines.values(dat.what, count, dat.words, least)
    return HplDat(values, threshold, output_file, device)


def _in_file(hpl: Hpl) -> dict[str, Any]:
    """The parameters, whose swapping threshold is the same for all runs that have no mix of swaps."""
    return hpl.parameters() | ({} if hpl.swap == "mix" else {"swap_threshold": DEFAULT_SWAP_THRESHOLD})


def by_file(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs, each an Hpl and what belongs to it, by the HPL.dat that has them: where parameters of which a file has
    one value are the same."""
    several = {name for name, dat in places() if dat.several}
    single = [name for name, dat in places() if not dat.several and dat.beside not in several]
    files: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        parameters = _in_file(run[0])
        files.setdefault(tuple(parameters[name] for name in single), []).append(run)
    return list(files.values())


#: By the number of the line, as in HPL's own file and in Lepaute's: of counts without the "# " or "number " before, of
#: parameters their names where these are not HPL's abbreviations.
_LABELS = {
    5: r"of (?:problems?|matrix) sizes?",
    7: r"of (?:nbs?\b|block)",
    9: r"^pmap\b|process mapping",
    10: r"of process grids?",
    13: r"^threshold",
    14: r"of panel fact",
    16: r"stopping criteri",
    18: r"panels in recursion",
    20: r"of recursive (?:panel )?fact",
    22: r"of broadcasts?",
    24: r"of look-?ahead",
    27: r"swapping threshold",
    30: r"^equil",
    31: r"align",
}
_PATTERNS = {
    line: re.compile(pattern, re.IGNORECASE)
    for line, pattern in sorted(({dat.line: rf"^{dat.name}s?\b" for _, dat in places()} | _LABELS).items())
}


def _first_misplaced(lines: Sequence[str]) -> tuple[int, str, int] | None:
    """The first of the lines, from the file's first on, that has the label of another one; the label, and whose."""
    for number, text in enumerate(lines, start=1):
        words = text.split()
        while words and re.match(r"[+-]?\.?[0-9]", words[0]):
            words.pop(0)
        label = " ".join(words)[:80]
        homes = [line for line, pattern in _PATTERNS.items() if pattern.search(label)]
        if homes and number not in homes and number >= min(_PATTERNS):
            return number, label, homes[0]
    return None

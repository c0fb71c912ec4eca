"""The lines of an HPL.dat, taken one after the other as HPL takes them, each value checked."""

import itertools
import re
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from lepaute.errors import InputError

LINES = 31  # of HPL itself; HPCC's file goes on after them
MOST_VALUES = 20  # HPL's limit of values in a list
MOST_CHARACTERS = 252  # of a line; what is beyond, HPL reads as if it were the next line
LARGEST = 2**31 - 1  # HPL's integers

WORD = re.compile(r"\S+")
LIKE_A_NUMBER = re.compile(r"[+-]?\.?[0-9]")
NUMBER_THEN_TEXT = re.compile(r"([+-]?[0-9]+)(?:[^\w.,].*)?")  # "1" and "1#", not "1e4", "1.5", "1,2" or "1k"

Number = TypeVar("Number", int, float)


class DatLines:
    """A reader that is at one line of the file after the other; every method raises InputError naming the line."""

    def __init__(self, text: str, name: str) -> None:
        """text: of the whole file; name: of the file, for messages."""
        self._name = name
        self._lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
        if self._lines[-1] == "":
            self._lines.pop()
        self._at = 0  # number of the line that was read last, from 1
        if "\0" in text:
            raise InputError(f"{name}: is no text file; HPL.dat has {LINES} lines of text")
        if not text.strip():
            raise InputError(f"{name}: is empty; HPL.dat has {LINES} lines")

    def skip(self, lines: int) -> None:
        """Passes over lines that mean nothing to HPL."""
        for _ in range(lines):
            self._next("a title")

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
        return value if abs(value) <= LARGEST else default  # nor NaN

    def count(self, what: str) -> int:
        """The next line as the number of values of what follows."""
        count = self._integer(self._first(f"number of {what}"), f"number of {what}", None)
        if not 1 <= count <= MOST_VALUES:
            self._fail(f"number of {what} is {count}; HPL takes 1 to {MOST_VALUES} values")
        return count

    def values(
        self, what: str, count: int | None, codes: Iterable[str] | None = None, least: float | None = None
    ) -> tuple[Any, ...]:
        """`count` values on the next line, or the one at its start (None): whole numbers, or the words of codes."""
        words = [self._first(what)] if count is None else self._words(what, count)
        if codes is None:
            return tuple(self._integer(word, what, least) for word in words)
        choices = tuple(codes)
        return tuple(self._choice(word, what, choices) for word in words)

    def taken(self) -> list[str]:
        """The lines that were read so far."""
        return self._lines[: self._at]

    @property
    def line(self) -> int:
        """Number of the line that was read last, from 1."""
        return self._at

    def _next(self, what: str) -> str:
        if self._at == len(self._lines):
            raise InputError(
                f"{self._name}: ends after line {self._at}, where {what} should follow; HPL.dat has {LINES} lines, "
                "every one needed"
            )
        line = self._lines[self._at]
        self._at += 1
        if len(line) > MOST_CHARACTERS:
            self._fail(
                f"has {len(line)} characters; HPL reads {MOST_CHARACTERS} of a line and takes the rest for the next"
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
            self._fail(
                f"{what} has {len(values)} value(s) where {count} were announced; add values or correct the number"
            )
        seen = words_as_hpl_counts(line, count)
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
        if abs(value) > LARGEST:
            self._fail(f"{what} is {value}; HPL's integers end at {LARGEST}")
        return value

    def _choice(self, word: str, what: str, words: tuple[str, ...]) -> str:
        value = self._integer(word, what, None)
        if not 0 <= value < len(words):
            meanings = ", ".join(f"{code} {name}" for code, name in enumerate(words))
            self._fail(f"{what} is {value}; the codes are {meanings}")
        return words[value]

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(f"{self._name}:{self._at}: {problem}")


def words_as_hpl_counts(line: str, count: int) -> list[str]:
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

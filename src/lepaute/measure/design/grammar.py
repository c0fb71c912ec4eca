"""Factors as text: what the command line takes and what a design's header keeps.

    NAME=LEVEL,LEVEL,...                        levels; quotes make a text of a number, or hold a comma
    NAME,NAME=VALUE,VALUE;VALUE,VALUE           factors that vary together: tuples between semicolons
    NAME=uniform:LOW:HIGH                       NAME=loguniform:LOW:HIGH
    NAME=logspace:LOW:HIGH:COUNT                levels at equal ratios
    NAME,NAME=uniformproduct:LOW:HIGH:MOST,MOST[:LEAST,LEAST]       and loguniformproduct

A number with a decimal point or a negative exponent is real, any other is whole: 1e6 is 1000000, and so is 1M; Ki, Mi
and Gi are powers of 1024.
"""

import math
import re

from lepaute.errors import DesignError, LepauteError
from lepaute.kit.quantities import BINARY, DECIMAL
from lepaute.measure.design import factors
from lepaute.measure.design.columns import Value, cell_of, is_integer, quoted, shortened, split_cells, text_of

_WHOLE = re.compile(r"(-?[0-9]{1,40})(?:[eE]\+?([0-9]{1,2}))?(k|M|G|Ki|Mi|Gi)?")
_REAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
_SUFFIXES = DECIMAL | BINARY
_DISTRIBUTION = re.compile(r"(uniform|loguniform|logspace|uniformproduct|loguniformproduct):(.*)")
#: A header names the levels of a factor up to this length; of more it gives the number and the two ends.
_LONGEST_LEVELS = 20_000

#: Texts that were hardly meant as one: a range as the only level, and sizes with suffixes that are none here.
_RANGE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?::|\.\.)-?[0-9]+(?:\.[0-9]+)?")
_SIZE = re.compile(r"[0-9]+(?:\.[0-9]+)? ?(?:[kKMG]i?[bB]?|[bB])")

_EXAMPLE = "write NAME=LEVEL,LEVEL,... or NAME=loguniform:LOW:HIGH"


def parse_factor(text: str) -> tuple[factors.Names, factors.Factor]:
    """The names and the factor that a text describes; raises DesignError with what to write."""
    name, equals, given = text.partition("=")
    if not equals or not name or not given or "\n" in text:
        raise DesignError(f"factor {shortened(text)!r}: {_EXAMPLE}")
    names = tuple(part.strip() for part in name.split(","))
    try:
        distribution = _DISTRIBUTION.fullmatch(given)
        if distribution:
            return names, _distribution(names, distribution[1], distribution[2].split(":"))
        if len(names) == 1:
            return names, factors.levels_of(names, _column(split_cells(given)))
        rows = [split_cells(item) for item in _split_tuples(given)]
        if any(len(row) != len(names) for row in rows):
            example = ";".join(",".join([str(number)] * len(names)) for number in (8, 16))
            raise ValueError(f"each tuple has {len(names)} values: {shortened(name)}={example}")
        columns = [_column([row[place] for row in rows]) for place in range(len(names))]
        return names, factors.levels_of(names, list(zip(*columns, strict=True)))
    except LepauteError:
        raise
    except (ValueError, DesignError) as problem:
        raise DesignError(f"factor {shortened(text)!r}: {problem}") from None


def factor_text(names: factors.Names, factor: factors.Factor) -> str:
    """The text from which `parse_factor` makes the same names and factor; of very many levels only a summary."""
    return f"{','.join(names)}={_levels_text(factor)}"


def _levels_text(factor: factors.Factor) -> str:
    if isinstance(factor, factors.Levels):
        text = ";".join(",".join(map(_word, level)) for level in factor.values)
        if len(factor.types) == 1:
            text = ",".join(_word(value) for (value,) in factor.values)
        if len(text) > _LONGEST_LEVELS:
            first, last = (",".join(map(_word, level)) for level in (factor.values[0], factor.values[-1]))
            return f"{len(factor.values)} levels, the first {first[:1000]}, the last {last[:1000]}"
        return text
    word = "loguniform" if isinstance(factor, factors.Range | factors.Product) and factor.logarithmic else "uniform"
    if isinstance(factor, factors.Range):
        return f"{word}:{_word(factor.low)}:{_word(factor.high)}"
    if isinstance(factor, factors.Product):
        most, least = (",".join(map(str, bounds)) for bounds in (factor.most, factor.least))
        return f"{word}product:{_word(factor.low)}:{_word(factor.high)}:{most}:{least}"
    raise TypeError(f"no text for {type(factor)}")


def number_of(text: str) -> int | float:
    """The whole or real number that a text stands for; raises ValueError."""
    whole = _WHOLE.fullmatch(text)
    if whole:
        digits, exponent, suffix = whole.groups()
        value: int = int(digits) * 10 ** int(exponent or 0) * _SUFFIXES.get(suffix or "", 1)
        if is_integer(value):
            return value
        raise ValueError(f"{shortened(text)} does not fit 64 bits; write it with a decimal point")
    if _REAL.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    raise ValueError(f"{shortened(text)!r} is not a number such as 1024, 4Ki, 1e6 or 0.5")


def _split_tuples(text: str) -> list[str]:
    """Parts between the semicolons that are outside quotes."""
    parts = text.split('"')  # those with an odd number are inside; a doubled quote leaves an empty one outside
    parts[::2] = [part.replace(";", "\n") for part in parts[::2]]
    return '"'.join(parts).split("\n")


def _column(given: list[str]) -> list[Value]:
    """The values of one factor: numbers where all its cells are numbers without quotes, else texts."""
    cells = [cell.strip() for cell in given]
    numbers = sum(bool(_WHOLE.fullmatch(cell) or _REAL.fullmatch(cell)) for cell in cells)
    if numbers == len(cells):
        return [number_of(cell) for cell in cells]
    if numbers:
        raise ValueError('levels are numbers and texts; put the numbers in quotes where they are texts: "1",all')
    if len(cells) == 1 and _RANGE.fullmatch(cells[0]):
        raise ValueError(
            f"{cells[0]} is no range; write uniform:1:4, loguniform:1:1e6 or logspace:1:1Mi:21, or list the levels"
        )
    if sized := next((cell for cell in cells if _SIZE.fullmatch(cell)), None):
        raise ValueError(f"{sized} is no number; write 64k (thousands) or 64Ki (times 1024), or quote it as a text")
    if "" in cells:
        raise ValueError('a level is empty; write "" for an empty text')
    return [text_of(cell) for cell in cells]


def _distribution(names: factors.Names, word: str, arguments: list[str]) -> factors.Factor:
    if word in {"uniform", "loguniform"} and len(arguments) == 2:
        low, high = map(number_of, arguments)
        return factors.uniform(low, high) if word == "uniform" else factors.log_uniform(low, high)
    if word == "logspace" and len(arguments) == 3:
        low, high, count = map(number_of, arguments)
        return factors.levels_of(names, factors.log_spaced(low, high, count))  # type: ignore[arg-type]
    if word.endswith("product") and len(arguments) in {3, 4}:
        low, high = map(number_of, arguments[:2])
        most, *least = ([number_of(part) for part in bounds.split(",")] for bounds in arguments[2:])
        make = factors.uniform_product if word == "uniformproduct" else factors.log_uniform_product
        return make(low, high, most=most, least=least[0] if least else None)  # type: ignore[arg-type]
    form = {"logspace": "LOW:HIGH:COUNT", "uniform": "LOW:HIGH", "loguniform": "LOW:HIGH"}
    raise ValueError(f"write {word}:{form.get(word, 'LOW:HIGH:MOST,MOST')}")


def _word(value: Value) -> str:
    """A value such that `parse_factor` reads it with its type."""
    if isinstance(value, float):
        text = repr(value)
        mantissa, e, exponent = text.partition("e")
        return text if "." in text else f"{mantissa}.0{e}{exponent}"
    if isinstance(value, str):
        cell = cell_of(value)
        special = any(form.fullmatch(cell) for form in (_WHOLE, _REAL, _DISTRIBUTION, _RANGE, _SIZE)) or ";" in cell
        return quoted(value) if special and not cell.startswith('"') else cell
    return cell_of(value)

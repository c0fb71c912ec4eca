"""Factors that a campaign varies beside its libraries (section 5 of "MPI Benchmarking Revisited", table VI), by name:

| factor | levels |
|---|---|
| pinning | core: rank r on the r-th core of its machine; spread: on its sockets in turn; none: not bound |
| cache | warm, cold |
| pages | of message buffers: default, small, huge |
| frequency | a governor: performance and powersave set the highest and the lowest frequency |
| compiler | of the probe: commands that the library's mpicc takes in its own compiler's place |
| flags | of the probe, such as -O2, behind its own |
| mca.NAME | values of a parameter of Open MPI |
| NAME in capitals | values of a variable of the environment, or unset |

Every library is measured with every combination, in the same blocks.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import OPEN_MPI

PINNING, CACHE, PAGES, FREQUENCY, COMPILER, FLAGS = "pinning", "cache", "pages", "frequency", "compiler", "flags"
#: The levels of factors that have no others.
_LEVELS = {PINNING: ("core", "spread", "none"), CACHE: ("warm", "cold"), PAGES: ("default", "small", "huge")}
_FREE = {
    FREQUENCY: re.compile(r"[a-z_]{2,15}"),
    COMPILER: re.compile(r"[A-Za-z0-9_./+-]{1,100}"),
    FLAGS: re.compile(r"-[A-Za-z0-9_=+-]{1,100}(?: -[A-Za-z0-9_=+-]{1,100})*"),
}
_MCA = re.compile(r"mca\.([a-z][a-z0-9_]{1,80})")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{1,80}")
UNSET = "unset"
MAX_CELLS = 64


@dataclass(frozen=True, slots=True)
class Factor:
    """name: as the table says; levels: the first is what the others are compared with"""

    name: str
    levels: tuple[str, ...]


def parse_factors(texts: Sequence[str]) -> tuple[Factor, ...]:
    """Factors NAME=a,b. Raises InputError for an unknown name, a level that it does not have, fewer than two, and for
    more combinations than MAX_CELLS."""
    factors = [_parse_factor(text) for text in texts]
    names = [factor.name for factor in factors]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise InputError(f"--factor {twice} is given twice; give all its levels at once")
    cells = math.prod(len(factor.levels) for factor in factors)
    if cells > MAX_CELLS:
        raise InputError(f"--factor: there are {cells} combinations of levels; give at most {MAX_CELLS}")
    return tuple(factors)


def _parse_factor(text: str) -> Factor:
    name, separator, values = text.partition("=")
    levels = tuple(value.strip() for value in values.split(","))
    if not separator or len(levels) < 2 or not all(levels):
        raise InputError(f"--factor is {text[:60]!r}; write NAME=a,b with two levels at least, such as cache=warm,cold")
    if len(set(levels)) < len(levels):
        raise InputError(f"--factor {name}: a level is given twice")
    if (known := _LEVELS.get(name)) is not None:
        for level in levels:
            if level not in known:
                raise InputError(f"--factor {name} has {level[:40]!r}; choose of {', '.join(known)}")
    elif (form := _FREE.get(name)) is not None:
        for level in levels:
            if not form.fullmatch(level):
                raise InputError(f"--factor {name} has {level[:40]!r}, which is no {name}")
    elif not (_MCA.fullmatch(name) or _VARIABLE.fullmatch(name)):
        raise InputError(
            f"--factor {name[:40]!r} is unknown; choose of {', '.join((*_LEVELS, *_FREE))}, mca.PARAMETER or a VARIABLE"
        )
    elif any("\0" in level or not level.isprintable() for level in levels):
        raise InputError(f"--factor {name}: a level has characters that are not printable")
    return Factor(name, levels)


def combinations(factors: Sequence[Factor]) -> list[dict[str, str]]:
    """Every combination of levels, those of the last factor changing fastest; one, empty, without factors."""
    chosen = itertools.product(*(factor.levels for factor in factors))
    return [dict(zip((factor.name for factor in factors), levels, strict=True)) for levels in chosen]


def variables_of(levels: Mapping[str, str], family: str) -> dict[str, str]:
    """The variables of the environment that these levels set for ranks of a library."""
    variables: dict[str, str] = {}
    for name, level in levels.items():
        if level == UNSET:
            continue
        if match := _MCA.fullmatch(name):
            variables |= {f"OMPI_MCA_{match[1]}": level} if family == OPEN_MPI else {}
        elif _VARIABLE.fullmatch(name):
            variables[name] = level
    return variables


def control_of(levels: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the machines (`Machine.control`)."""
    return {"governor": levels[FREQUENCY]} if FREQUENCY in levels else {}


@dataclass(frozen=True, slots=True)
class Build:
    """How the probe is compiled beside the usual; both empty: as usual."""

    compiler: str = ""
    flags: str = ""

    @property
    def key(self) -> str:
        return re.sub(r"[^A-Za-z0-9_.+=-]", "-", f"{self.compiler}{self.flags}")


USUAL = Build()


def build_of(levels: Mapping[str, str]) -> Build:
    """The build of the probe that these levels ask for."""
    return Build(levels.get(COMPILER, ""), levels.get(FLAGS, ""))

"""Conditions that a probe sets itself, as factors of a dgemm design: what operands hold, and whether they are warm."""

import re
from collections.abc import Sequence
from itertools import product

from lepaute.design.arrange import arranged
from lepaute.design.cells import Value, shortened
from lepaute.design.columns import DeclaredColumn
from lepaute.design.sizes import Triple
from lepaute.design.table import Design
from lepaute.errors import DesignError

#: What every operand of dgemm holds where a design does not say: what the models are fitted to.
RANDOM = "random"
#: Columns of the conditions, in a design and in the observations made of it.
CONTENT, WARM = "content", "warm"
MOST_MASKED_BITS = 53

_CONTENT = re.compile(r"random|sequential|constant(?::-?[0-9]{1,6}(?:\.[0-9]{1,12})?)?|masked:([0-9]{1,2})")


def with_conditions(
    design: Design,
    *,
    contents: Sequence[str] = (RANDOM,),
    warm: Sequence[int] = (0,),
    replications: int = 1,
    blocks: int | None = None,
    seed: int,
) -> Design:
    """Every row of a dgemm design under every combination of the conditions, in a random order of its own.

    contents: random (uniform in [-0.5, 0.5)), constant (all 0.5) or constant:VALUE, sequential (from -0.5 to 0.5 over
              the pool that operands are taken from), or masked:BITS: random numbers of 53 bits whose BITS lowest are 0
    warm    : 0 for operands at a random place of a large pool, 1 for operands that an untimed call has just used
    blocks  : see `lepaute.design.blocks`
    Raises DesignError for a content that no probe knows and for a design of another kind.
    """
    for content in contents:
        check_content(content)
    if any(value not in (0, 1) for value in warm):
        raise DesignError(f"warm is {shortened(str(list(warm)))}; its levels are 0 (a random place) and 1 (just used)")
    for what, levels in ((CONTENT, contents), (WARM, warm)):
        if not levels or len(set(levels)) != len(levels):
            raise DesignError(f"{what} has {len(levels)} levels, {len(set(levels))} of them different; give each once")
    if design.columns != ("kind", "m", "n", "k"):
        raise DesignError(f"conditions belong to dgemm, and the design has {shortened(','.join(design.columns), 200)}")
    columns = [DeclaredColumn("kind", "text"), *(DeclaredColumn(size, "int") for size in "mnk")]
    columns += [DeclaredColumn(CONTENT, "text"), DeclaredColumn(WARM, "int")]
    rows: list[tuple[Value, ...]] = [
        (*row, content, state) for row, content, state in product(design.rows, contents, warm)
    ]
    arguments = {f"dgemm.{key}": text for key, text in design.header.items()}
    arguments |= {CONTENT: ",".join(contents), WARM: ",".join(map(str, warm))}
    return arranged("dgemm", seed, columns, rows, arguments=arguments, replications=replications, blocks=blocks)


def content_design(
    seed: int,
    *,
    sizes: Sequence[Triple],
    contents: Sequence[str],
    warm: Sequence[int] = (0,),
    replications: int = 1,
) -> Design:
    """The same few products under every combination of the conditions, `replications` times, fully shuffled."""
    plain = Design({"generator": "lepaute design dgemm"}, ("kind", "m", "n", "k"), tuple(("dgemm", *s) for s in sizes))
    return with_conditions(plain, contents=contents, warm=warm, replications=replications, seed=seed)


def check_content(text: str) -> None:
    """Raises DesignError where no probe knows how to fill a matrix so."""
    match = _CONTENT.fullmatch(text)
    if not match or (match[1] is not None and int(match[1]) > MOST_MASKED_BITS):
        raise DesignError(
            f"content is {shortened(text)!r}; it is random, constant, constant:VALUE, sequential, or masked:BITS with "
            f"BITS from 0 to {MOST_MASKED_BITS}"
        )

"""`lepaute design factorial|fractional|latin|sample|mix`: tables over any factors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.design_output import Out, Seed, write
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.design.distributions import Factor
    from lepaute.design.factors import Names

Factors = Annotated[
    list[str],
    typer.Option(
        "--factor",
        "-f",
        help="size_bytes=1,1Ki,1Mi or op=send,recv or n=uniform:1:100 or n=loguniform:1:1e6 or "
        "'m,k=64,8;128,16'; once for each factor. docs/design.md has the rest.",
        show_default=False,
    ),
]
Replications = Annotated[int, typer.Option(help="Rows of each treatment (in each block).", min=1)]
Blocks = Annotated[
    int | None,
    typer.Option(help="Blocks, one after the other, each with every treatment, shuffled.", min=1, show_default=False),
]
Count = Annotated[int, typer.Option(help="How many treatments.", min=1, show_default=False)]


def factorial(
    factor: Factors, replications: Replications = 1, blocks: Blocks = None, seed: Seed = 1, out: Out = None
) -> None:
    """All combinations of the levels, in random order."""
    from lepaute.design import full_factorial

    write(full_factorial(_factors(factor), replications=replications, blocks=blocks, seed=seed), out)


def fractional(
    factor: Factors,
    generator: Annotated[
        list[str] | None,
        typer.Option("--generator", "-g", help="Of a two-level fraction: d=a*b*c.", show_default=False),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Number of treatments.", min=1, show_default=False)] = None,
    replications: Replications = 1,
    blocks: Blocks = None,
    seed: Seed = 1,
    out: Out = None,
) -> None:
    """Some of the combinations: regular two-level fractions, or balanced subsets for any numbers of levels."""
    from lepaute.design import fractional as make

    design = make(
        _factors(factor), generators=generator or (), runs=runs, replications=replications, blocks=blocks, seed=seed
    )
    write(design, out)


def latin(
    factor: Factors,
    count: Count,
    replications: Replications = 1,
    blocks: Blocks = None,
    seed: Seed = 1,
    out: Out = None,
) -> None:
    """A Latin hypercube: one treatment in each of COUNT strata of every factor."""
    from lepaute.design import latin_hypercube

    write(latin_hypercube(_factors(factor), count=count, replications=replications, blocks=blocks, seed=seed), out)


def sample(
    factor: Factors,
    count: Count,
    replications: Replications = 1,
    blocks: Blocks = None,
    seed: Seed = 1,
    out: Out = None,
) -> None:
    """Independent draws of every factor."""
    from lepaute.design import sample as make

    write(make(_factors(factor), count=count, replications=replications, blocks=blocks, seed=seed), out)


def mix(
    files: Annotated[list[Path], typer.Argument(help="Designs.", metavar="FILE...")],
    kinds: Annotated[
        str | None, typer.Option(help="A name for each, for a first column `kind`: memory,network.", show_default=False)
    ] = None,
    blocks: Blocks = None,
    seed: Seed = 1,
    out: Out = None,
) -> None:
    """One table of several designs, shuffled across all of them; what a design has not is empty in its rows."""
    from lepaute.design import blocks as in_blocks
    from lepaute.design import mix as make
    from lepaute.design import read_design

    check_outputs({"--output": out}, inputs=files)
    names = kinds.split(",") if kinds is not None else None
    design = make(*(read_design(file) for file in files), kinds=names, seed=seed)
    write(design if blocks is None else in_blocks(design, count=blocks, seed=seed), out)


def _factors(texts: list[str]) -> "dict[Names, Factor]":
    from lepaute.design.grammar import parse_factor
    from lepaute.errors import DesignError

    factors: dict[Names, Factor] = {}
    for text in texts:
        names, factor = parse_factor(text)
        if names in factors:
            raise DesignError(f"--factor {','.join(names)} is given twice; give all its levels in one")
        factors[names] = factor
    return factors

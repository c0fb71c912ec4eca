"""`lepaute design factorial|fractional|latin|sample|mix`: tables over any factors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.design_output import Seed, Table
from lepaute.cli.options import with_options_of
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


@with_options_of(Table, "table")
def factorial(
    factor: Factors, table: Table, replications: Replications = 1, blocks: Blocks = None, seed: Seed = 1
) -> None:
    """All combinations of the levels, in random order."""
    from lepaute.design import full_factorial

    table.write(full_factorial(_factors(factor), replications=replications, blocks=blocks, seed=seed))


@with_options_of(Table, "table")
def fractional(
    factor: Factors,
    table: Table,
    generator: Annotated[
        list[str] | None,
        typer.Option("--generator", "-g", help="Of a two-level fraction: d=a*b*c.", show_default=False),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Number of treatments.", min=1, show_default=False)] = None,
    replications: Replications = 1,
    blocks: Blocks = None,
    seed: Seed = 1,
) -> None:
    """Some of the combinations: regular two-level fractions, or balanced subsets for any numbers of levels."""
    from lepaute.design import fractional as make

    design = make(
        _factors(factor), generators=generator or (), runs=runs, replications=replications, blocks=blocks, seed=seed
    )
    table.write(design)


@with_options_of(Table, "table")
def latin(
    factor: Factors,
    table: Table,
    count: Count,
    replications: Replications = 1,
    blocks: Blocks = None,
    seed: Seed = 1,
) -> None:
    """A Latin hypercube: one treatment in each of COUNT strata of every factor."""
    from lepaute.design import latin_hypercube

    table.write(latin_hypercube(_factors(factor), count=count, replications=replications, blocks=blocks, seed=seed))


@with_options_of(Table, "table")
def sample(
    factor: Factors,
    table: Table,
    count: Count,
    replications: Replications = 1,
    blocks: Blocks = None,
    seed: Seed = 1,
) -> None:
    """Independent draws of every factor."""
    from lepaute.design import sample as make

    table.write(make(_factors(factor), count=count, replications=replications, blocks=blocks, seed=seed))


@with_options_of(Table, "table")
def mix(
    files: Annotated[list[Path], typer.Argument(help="Designs.", metavar="FILE...")],
    table: Table,
    kinds: Annotated[
        str | None, typer.Option(help="A name for each, for a first column `kind`: memory,network.", show_default=False)
    ] = None,
    blocks: Blocks = None,
    seed: Seed = 1,
) -> None:
    """One table of several designs, shuffled across all of them; what a design has not is empty in its rows."""
    from lepaute.design import blocks as in_blocks
    from lepaute.design import mix as make
    from lepaute.design import read_design

    check_outputs({"--output": table.output}, inputs=files, force=table.force)
    names = kinds.split(",") if kinds is not None else None
    design = make(*(read_design(file) for file in files), kinds=names, seed=seed)
    table.write(design if blocks is None else in_blocks(design, count=blocks, seed=seed))


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

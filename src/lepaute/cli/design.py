"""`lepaute design`: tables of what will be measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lepaute.design import Design

app = typer.Typer(help="Tables of what will be measured, fully shuffled.", no_args_is_help=True)

Seed = Annotated[int, typer.Option(help="The same seed gives the same table, byte for byte.", min=0)]
Out = Annotated[Path | None, typer.Option(help="File to write; standard output unless given.", show_default=False)]


@app.command()
def dgemm(
    seed: Seed = 1,
    out: Out = None,
    products: Annotated[int, typer.Option(help="How many products m*n*k; all permutations of each are measured.")] = 60,
    lowest: Annotated[float, typer.Option(help="Lowest product.")] = 1e3,
    highest: Annotated[float, typer.Option(help="Highest product.")] = 1.3e9,
    max_n: Annotated[int, typer.Option(help="Largest m and n.", min=1)] = 8000,
    max_k: Annotated[int, typer.Option(help="Largest k.", min=1)] = 2048,
) -> None:
    """Calls of dgemm: products spread evenly over decades, all permutations, and sizes that HPL uses."""
    from lepaute.design import dgemm_design

    _write(
        dgemm_design(seed, products=products, product_range=(lowest, highest), most=(max_n, max_n, max_k)),
        out,
    )


@app.command()
def p2p(
    seed: Seed = 1,
    out: Out = None,
    max_bytes: Annotated[int, typer.Option(help="Largest message.", min=1)] = 64 << 20,
) -> None:
    """MPI point-to-point operations: sizes 10^U, kinds interleaved."""
    from lepaute.design import p2p_design

    _write(p2p_design(seed, size_range_bytes=(1, max_bytes)), out)


@app.command(name="hpl-step")
def hpl_step(
    seed: Seed = 1,
    out: Out = None,
    rows: Annotated[int, typer.Option(help="How many pieces of HPL's factorisation.")] = 24,
    nb: Annotated[int, typer.Option("--nb", help="Columns of a panel.")] = 128,
    max_n: Annotated[int, typer.Option(help="Order of the largest matrix.")] = 8000,
) -> None:
    """Short pieces of HPL's factorisation, at sizes that a run passes through."""
    from lepaute.design import hpl_step_design

    _write(hpl_step_design(seed, rows=rows, nb=nb, max_n=max_n), out)


def _write(design: "Design", out: Path | None) -> None:
    if out is None:
        print(design.to_csv(), end="")
    else:
        from lepaute.design import write_design

        write_design(design, out)

"""`lepaute design`: tables of what will be measured."""

from typing import Annotated

import typer

from lepaute.cli import design_dgemm, design_factors, design_look
from lepaute.cli.design_output import Seed, Table
from lepaute.cli.options import with_options_of

app = typer.Typer(help="Tables of what will be measured, fully shuffled.", no_args_is_help=True)
app.command()(design_dgemm.dgemm)
for general in (
    design_factors.factorial,
    design_factors.fractional,
    design_factors.latin,
    design_factors.sample,
    design_factors.mix,
    design_look.show,
    design_look.picture,
):
    app.command()(general)


@app.command()
@with_options_of(Table, "table")
def p2p(
    table: Table,
    seed: Seed = 1,
    max_bytes: Annotated[str, typer.Option(help="Largest message.")] = "64M",
) -> None:
    """MPI point-to-point operations: sizes 10^U, kinds interleaved."""
    from lepaute.design import p2p_design
    from lepaute.kit.quantities import size_of

    table.write(p2p_design(seed, size_range_bytes=(1, size_of(max_bytes, "--max-bytes"))))


@app.command()
@with_options_of(Table, "table")
def ring(
    table: Table,
    seed: Seed = 1,
    ranks: Annotated[int, typer.Option(help="Ranks in the ring.", min=2, max=1_000_000)] = 2,
    sizes: Annotated[
        int, typer.Option(help="Message sizes of each operation; each is in all conditions.", min=1, max=100_000)
    ] = 16,
    max_bytes: Annotated[str, typer.Option(help="Largest message.")] = "64M",
) -> None:
    """Messages in a ring of ranks that stand idle, compute, poll, or do both: four conditions, interleaved."""
    from lepaute.design import ring_design
    from lepaute.kit.quantities import size_of

    table.write(ring_design(seed, ranks=ranks, sizes=sizes, size_range_bytes=(1, size_of(max_bytes, "--max-bytes"))))


@app.command(name="hpl-step")
@with_options_of(Table, "table")
def hpl_step(
    table: Table,
    seed: Seed = 1,
    rows: Annotated[int, typer.Option(help="How many pieces of HPL's factorisation.", max=1_000_000)] = 24,
    nb: Annotated[str, typer.Option("--nb", help="Columns of a panel: 64,128. Each has as many rows.")] = "64,128,256",
    max_n: Annotated[int, typer.Option(help="Order of the largest matrix.", max=2**31 - 1)] = 8000,
) -> None:
    """Short pieces of HPL's factorisation, at sizes that a run passes through."""
    from lepaute.design import hpl_step_design
    from lepaute.kit.quantities import numbers_of

    table.write(hpl_step_design(seed, rows=rows, nbs=numbers_of(nb, "--nb"), max_n=max_n))


@app.command()
@with_options_of(Table, "table")
def memory(
    table: Table,
    seed: Seed = 1,
    max_bytes: Annotated[str, typer.Option(help="Largest buffer; the smallest has 1 KiB.")] = "64M",
    strides: Annotated[str, typer.Option(help="Every how many elements one is read.")] = "1,2,4,8,16",
    element_bytes: Annotated[str, typer.Option(help="Widths of an element.")] = "4,8,16",
    unrolls: Annotated[str, typer.Option(help="How often the loop is unrolled.")] = "1,8",
    allocations: Annotated[int, typer.Option(help="Buffers of each size.", min=1, max=10_000)] = 4,
    repetitions: Annotated[int, typer.Option(help="Rows of each combination.", min=1)] = 1,
) -> None:
    """Passes over memory: buffer size, stride, width, unrolling and allocation, all combinations."""
    from lepaute.design import memory_design
    from lepaute.design.memory import SIZES_BYTES
    from lepaute.errors import InputError
    from lepaute.kit.quantities import numbers_of, size_of

    most = size_of(max_bytes, "--max-bytes")
    if most < SIZES_BYTES[0]:
        raise InputError(f"--max-bytes is {max_bytes}; the smallest buffer has {SIZES_BYTES[0]} bytes")
    design = memory_design(
        seed,
        sizes_bytes=[size for size in SIZES_BYTES if size <= most],
        strides=numbers_of(strides, "--strides"),
        element_bytes=numbers_of(element_bytes, "--element-bytes"),
        unrolls=numbers_of(unrolls, "--unrolls"),
        allocations=allocations,
        repetitions=repetitions,
    )
    table.write(design)


@app.command()
@with_options_of(Table, "table")
def collective(
    table: Table,
    seed: Seed = 1,
    operations: Annotated[str | None, typer.Option(help="Some of the operations: bcast,barrier. Default: all.")] = None,
    max_bytes: Annotated[str, typer.Option(help="Largest message; sizes are powers of 4.")] = "16M",
    ranks: Annotated[str, typer.Option(help="Numbers of ranks: 2,4,8.")] = "2",
    repetitions: Annotated[int, typer.Option(help="Rows of each combination.", min=1)] = 20,
) -> None:
    """MPI collective operations: operation, size, ranks, all combinations."""
    from lepaute.design import collective_design
    from lepaute.design.collective import SIZED, SIZES_BYTES, UNSIZED
    from lepaute.kit.quantities import numbers_of, size_of

    most = size_of(max_bytes, "--max-bytes")
    design = collective_design(
        seed,
        operations=operations.split(",") if operations is not None else SIZED + UNSIZED,
        sizes_bytes=[size for size in SIZES_BYTES if size <= most],
        ranks=numbers_of(ranks, "--ranks"),
        repetitions=repetitions,
    )
    table.write(design)

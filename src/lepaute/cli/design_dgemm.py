"""`lepaute design dgemm`: general sizes, or those that an application uses."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.design_output import Seed, Table
from lepaute.cli.options import flags_of, is_given, with_options_of
from lepaute.simulate.apps.hpl import Hpl

if TYPE_CHECKING:
    from lepaute.design import Design

GENERAL = ("products", "lowest", "highest", "max_n", "max_k", "sizes", "fixed_k")
OF_HPL = ("platform", *(flag.argument for flag in flags_of(Hpl)))
LOG_PRODUCT = "log-product"
#: Nobody measures as many; a number with a digit too many shall not keep the machine busy for hours.
MOST_ROWS = 1_000_000


@with_options_of(Hpl, "values", may_lack=("n",), make=dict)
@with_options_of(Table, "table")
def dgemm(
    context: typer.Context,
    values: dict[str, Any],
    table: Table,
    seed: Seed = 1,
    sizes: Annotated[
        str, typer.Option(help="General sizes: log-product, independent, product (uniform) or fixed-k.")
    ] = LOG_PRODUCT,
    products: Annotated[
        int,
        typer.Option(
            help="How many products m*n*k (log-product); all permutations of each are measured.", max=MOST_ROWS
        ),
    ] = 60,
    lowest: Annotated[float, typer.Option(help="Lowest product (log-product).")] = 1e3,
    highest: Annotated[float, typer.Option(help="Highest product.")] = 1.3e9,
    max_n: Annotated[int, typer.Option(help="Largest m and n.", min=1, max=2**31 - 1)] = 8000,
    max_k: Annotated[int, typer.Option(help="Largest k.", min=1, max=2**31 - 1)] = 2048,
    fixed_k: Annotated[str, typer.Option("--k", help="Values of k of fixed-k: 128,256,512.")] = "128",
    rows: Annotated[
        int | None, typer.Option(help="How many calls; not with log-product.", min=1, max=MOST_ROWS)
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(
            help="What the operands hold, a factor: random,constant,sequential,masked:40.", show_default=False
        ),
    ] = None,
    warm: Annotated[
        str | None,
        typer.Option(
            help="A factor: 0 for operands at a random place, 1 for operands just used; 0,1.", show_default=False
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--for", metavar="hpl", help="Sizes that this application uses: hpl.")
    ] = None,
    platform: Annotated[
        str | None, typer.Option("--platform", "-p", help="Where it runs, for the shares of time; else like dahu.")
    ] = None,
) -> None:
    """Calls of dgemm: sizes of a general design, or with --for hpl those that a run of HPL makes.

    With --content or --warm every call is made under all combinations of these.
    """
    from lepaute.errors import InputError
    from lepaute.kit.quantities import numbers_of

    def written(design: "Design") -> None:
        table.write(under_conditions(design, content, warm, seed))

    if target is None:
        refuse(context, OF_HPL, "describes a run of HPL; say --for hpl with it")
        if sizes == LOG_PRODUCT:
            from lepaute.design import dgemm_design

            refuse(context, ("rows", "fixed_k"), f"is not for {LOG_PRODUCT}; say --sizes, or --products")
            most = (max_n, max_n, max_k)
            written(dgemm_design(seed, products=products, product_range=(lowest, highest), most=most))
            return
        from lepaute.design import dgemm_sizes_design

        refuse(context, ("products", "lowest"), f"is for {LOG_PRODUCT} only; say --rows and --highest")
        if sizes != "fixed-k":
            refuse(context, ("fixed_k",), "is for --sizes fixed-k only")
        general = dgemm_sizes_design(
            seed,
            sizes,
            count=360 if rows is None else rows,
            highest_product=highest,
            most=(max_n, max_n, max_k),
            fixed_k=numbers_of(fixed_k, "--k"),
        )
        written(general)
        return
    if target != "hpl":
        raise InputError(f"--for is {target!r}; the application whose calls are known is hpl")
    refuse(context, GENERAL, "is for general sizes; --for hpl takes those of the run")
    if values["n"] is None:
        raise InputError("give the run of HPL: --n N, with --nb and --grid")
    written(for_hpl(Hpl(**values), platform, seed, 400 if rows is None else rows))


def under_conditions(design: "Design", content: str | None, warm: str | None, seed: int) -> "Design":
    """The design with every call under all combinations of contents and states of the operands, where asked for."""
    from lepaute.design import with_conditions
    from lepaute.kit.quantities import numbers_of

    if content is None and warm is None:
        return design
    states = numbers_of(warm, "--warm") if warm is not None else [0]
    contents = content.split(",") if content is not None else ["random"]
    return with_conditions(design, contents=contents, warm=states, seed=seed)


def for_hpl(hpl: Hpl, platform: str | None, seed: int, rows: int) -> "Design":
    """The design for one run: its calls from a simulation, passed on as a table."""
    from lepaute.design import dgemm_calls_design
    from lepaute.platform import load_platform
    from lepaute.simulate.apps.hpl.kernel_calls import kernel_calls

    calls = kernel_calls(hpl, None if platform is None else load_platform(platform), seed=seed)
    parameters = hpl.parameters()
    about: dict[str, object] = {
        "for": "hpl",
        **{
            name: parameters[name]
            for name in ("n", "nb", "p", "q", "depth", "nbmin", "ndiv", "pfact", "rfact", "u", "l1")
        },
        "times_of_platform": calls.platform,
        "steps_looked_at": calls.steps,
        "ranks_looked_at": calls.ranks,
    }
    return dgemm_calls_design(seed, calls.sizes_of(("dgemm", "dgemm_nn")), rows=rows, about=about)


def refuse(context: typer.Context, names: tuple[str, ...], why: str) -> None:
    """Raises InputError for an option that was given and has no effect."""
    from lepaute.errors import InputError

    words = {"fixed_k": "k"}
    for name in names:
        if is_given(context, name):
            raise InputError(f"--{words.get(name, name).replace('_', '-')} {why}")

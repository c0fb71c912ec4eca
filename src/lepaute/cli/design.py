"""`lepaute design`: tables of what will be measured, of kinds that probes know or over any factors; what they hold."""

import sys
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.options import (
    FORCE_HELP,
    JSON_HELP,
    TELLS_OF_A_FILE,
    App,
    AsJson,
    Details,
    Force,
    PictureFile,
    argument,
    flags_of,
    option,
    refuse_options,
    with_options_of,
)
from lepaute.cli.simulation import note_unused
from lepaute.cli.terminal import json_text, say
from lepaute.errors import DesignError, InputError
from lepaute.kit.later import later
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import picture_files
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import numbers_of, parse_size
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, exact_number
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.platform import load_platform

if TYPE_CHECKING:
    from lepaute.measure import design as designs
    from lepaute.measure.design import Design, grammar
    from lepaute.measure.design import plot as plots
    from lepaute.measure.design import summary as summaries
    from lepaute.measure.design.factors import Factor, Names
    from lepaute.measure.design.summary import DesignSummary, FactorSummary
else:
    designs = later("lepaute.measure.design")
    grammar, plots = later("lepaute.measure.design.grammar"), later("lepaute.measure.design.plot")
    summaries = later("lepaute.measure.design.summary")

app = App(help="Tables of what will be measured, fully shuffled.", no_args_is_help=True)

LOG_PRODUCT = "log-product"
#: Nobody measures as many; a number with a digit too many shall not keep the machine busy for hours.
MAX_ROWS = 1_000_000
FIRST_ROWS = 5
#: Lines of the header that say how the table came about; those of the parts of a mix are left to --json.
MAX_HEADER_LINES = 25
#: Factors that are told without --details.
MAX_FACTORS = 5


@dataclass(frozen=True)
class Table:
    """Where the table goes, and its seed; raises InputError where it cannot go there, before it is made."""

    output: Path | None = option_field(None, "file to write; default: standard output", also=("-o",))
    force: bool = option_field(False, FORCE_HELP)
    seed: int = option_field(1, "The same seed gives the same table, byte for byte.", minimum=0)
    as_json: bool = option_field(False, JSON_HELP, name="json")

    def __post_init__(self) -> None:
        if self.as_json and self.output is None:
            raise InputError(f"--json {TELLS_OF_A_FILE}")
        check_outputs({"--output": self.output}, force=self.force)

    def write(self, design: "Design") -> None:
        if self.output is None:
            # Names and texts are in UTF-8 in a file, so also here, whatever the terminal's encoding.
            sys.stdout.flush()
            getattr(sys.stdout, "reconfigure", lambda **_: None)(encoding="utf-8")
            print(design.to_csv(), end="")
        else:
            designs.write_design(design, self.output)
            summary = summaries.summary_of(design)
            if self.as_json:
                print(json_text({"output": str(self.output), **_as_object(design, summary)}))
                return
            say(f"{self.output}: {summary.sentence}")
            say("\n".join(_factor_lines(summary)), 4)


@dataclass(frozen=True)
class GeneralSizes:
    """Calls of dgemm that no application is behind."""

    sizes: str = option_field(LOG_PRODUCT, "General sizes: log-product, independent, product (uniform) or fixed-k.")
    products: int = option_field(
        60, "How many products m*n*k (log-product); all permutations of each are measured.", maximum=MAX_ROWS
    )
    lowest: float = option_field(1e3, "Lowest product (log-product).")
    highest: float = option_field(1.3e9, "Highest product.")
    max_n: int = option_field(8000, "Largest m and n.", minimum=1, maximum=2**31 - 1)
    max_k: int = option_field(2048, "Largest k.", minimum=1, maximum=2**31 - 1)
    fixed_k: str = option_field("128", "Values of k of fixed-k: 128,256,512.", name="k")


@app.command()
@with_options_of(Hpl, "values", may_lack=("n",), make=dict)
def dgemm(
    context: typer.Context,
    values: dict[str, Any],
    table: Table,
    general: GeneralSizes,
    rows: Annotated[int | None, option("How many calls; not with log-product.", min=1, max=MAX_ROWS)] = None,
    content: Annotated[
        str | None, option("Contents of operands, a factor: random,constant,sequential,masked:40.")
    ] = None,
    warm: Annotated[str | None, option("A factor: 0: operands at a random place, 1: operands just used; 0,1.")] = None,
    target: Annotated[str | None, option("Sizes of this application: hpl.", "--for", metavar="hpl")] = None,
    platform: Annotated[
        str | None, option("Where it runs, for shares of time; else as dahu.", "--platform", "-p")
    ] = None,
) -> None:
    """Calls of dgemm: sizes of a general design, or with --for hpl those that a run of HPL makes.

    With --content or --warm every call is made under all combinations of these. General tables hold (1, 1, 1) and,
    where their bounds allow, (2048, 2048, 2048), by which two of them are compared.
    """
    of_hpl = ("platform", *(flag.argument for flag in flags_of(Hpl)))
    if target is None:
        refuse_options(context, of_hpl, "a run of HPL is described with --for hpl")
        design = _general_sizes(context, general, rows, table.seed)
    else:
        if target != "hpl":
            raise InputError(f"--for is {target!r}; the application whose calls are known is hpl")
        refuse_options(context, vars(general), "--for hpl takes the sizes of the run")
        if values["n"] is None:
            raise InputError("give the run of HPL: --n N, with --nb and --grid")
        if platform is None:
            refuse_options(context, ("threads_per_rank",), "threads need the times of a --platform")
        design = _sizes_of_hpl(Hpl(**values), platform, table.seed, rows or 400)
    if content is not None or warm is not None:
        states = numbers_of(warm, "--warm") if warm is not None else [0]
        contents = content.split(",") if content is not None else ["random"]
        design = designs.with_conditions(design, contents=contents, warm=states, seed=table.seed)
    table.write(design)
    if target is not None:
        note_unused(
            context, Hpl, [dict.fromkeys(("swap_threshold", "equil", "align"), "no call of dgemm depends on it")]
        )


def _general_sizes(context: typer.Context, general: GeneralSizes, rows: int | None, seed: int) -> "Design":
    most = (general.max_n, general.max_n, general.max_k)
    if general.sizes == LOG_PRODUCT:
        refuse_options(context, ("rows", "fixed_k"), f"--sizes {LOG_PRODUCT} takes --products")
        between = (general.lowest, general.highest)
        return designs.dgemm_design(seed, products=general.products, product_range=between, most=most, same_calls=True)
    refuse_options(context, ("products", "lowest"), f"--sizes other than {LOG_PRODUCT} take --rows and --highest")
    if general.sizes != "fixed-k":
        refuse_options(context, ("fixed_k",), "--sizes fixed-k alone takes values of k")
    law: dict[str, Any] = {"count": rows or 360, "highest_product": general.highest, "most": most}
    fixed_k = numbers_of(general.fixed_k, "--k")
    return designs.dgemm_sizes_design(seed, general.sizes, **law, fixed_k=fixed_k, same_calls=True)


def _sizes_of_hpl(hpl: Hpl, platform: str | None, seed: int, rows: int) -> "Design":
    """The design for one run: its calls from a simulation, passed on as a table."""
    from lepaute.simulate.apps.hpl.kernel_calls import kernel_calls

    calls = kernel_calls(hpl, None if platform is None else load_platform(platform), seed=seed)
    parameters = hpl.parameters()
    names = ("n", "nb", "p", "q", "depth", "nbmin", "ndiv", "pfact", "rfact", "u", "l1")
    about: dict[str, object] = {
        "for": "hpl",
        **{name: parameters[name] for name in names},
        "times_of_platform": calls.platform,
        "steps_looked_at": calls.steps,
        "ranks_looked_at": calls.ranks,
    }
    return designs.dgemm_calls_design(seed, calls.sizes_of(("dgemm", "dgemm_nn")), rows=rows, about=about)


@dataclass(frozen=True)
class Factors:
    """What varies, and how often each treatment is there."""

    factor: list[str] = option_field(
        MISSING,
        "size_bytes=1,1Ki,1Mi or op=send,recv or n=uniform:1:100 or n=loguniform:1:1e6 or 'm,k=64,8;128,16'; once for "
        "each factor. docs/reference/designs.md has the rest.",
        also=("-f",),
    )
    replications: int = option_field(1, "Rows of each treatment (in each block).", minimum=1)
    blocks: int | None = option_field(None, "Successive blocks, each with every treatment, shuffled.", minimum=1)

    def levels(self) -> "dict[Names, Factor]":
        """The factors, parsed; raises DesignError for one that is given twice."""
        factors: dict[Names, Factor] = {}
        for text in self.factor:
            names, factor = grammar.parse_factor(text)
            if names in factors:
                raise DesignError(f"--factor {','.join(names)} is given twice; give all its levels in one")
            factors[names] = factor
        return factors


Count = Annotated[int, option("How many treatments.", min=1, show_default=False)]


@app.command()
def factorial(factors: Factors, table: Table) -> None:
    """All combinations of the levels, in random order."""
    replications, blocks = factors.replications, factors.blocks
    table.write(designs.full_factorial(factors.levels(), replications=replications, blocks=blocks, seed=table.seed))


@app.command()
def fractional(
    factors: Factors,
    table: Table,
    generator: Annotated[list[str] | None, option("Two-level fraction: d=a*b*c.", "--generator", "-g")] = None,
    count: Annotated[int | None, option("How many treatments.", min=1)] = None,
) -> None:
    """Some of the combinations: regular two-level fractions, or balanced subsets for any numbers of levels."""
    _write_treatments(partial(designs.fractional, generators=generator or ()), factors, count, table)


@app.command()
def latin(factors: Factors, count: Count, table: Table) -> None:
    """A Latin hypercube: one treatment in each of COUNT strata of every factor."""
    _write_treatments(designs.latin_hypercube, factors, count, table)


@app.command()
def sample(factors: Factors, count: Count, table: Table) -> None:
    """Independent draws of every factor."""
    _write_treatments(designs.sample, factors, count, table)


def _write_treatments(make: Callable[..., "Design"], factors: Factors, count: int | None, table: Table) -> None:
    levels, replications = factors.levels(), factors.replications
    table.write(make(levels, count=count, replications=replications, blocks=factors.blocks, seed=table.seed))


@app.command()
@with_options_of(Factors, "factors", leave_out=("factor", "replications"), make=dict)
def mix(
    files: Annotated[list[Path], argument("FILE...", "Designs.")],
    table: Table,
    factors: dict[str, Any],
    kinds: Annotated[str | None, option("Names of a first column `kind`: memory,network.")] = None,
) -> None:
    """One table of several designs, shuffled across all of them; what a design has not is empty in its rows."""
    check_outputs({"--output": table.output}, inputs=files, force=table.force)
    names, blocks = kinds.split(",") if kinds is not None else None, factors["blocks"]
    design = designs.mix(*(designs.read_design(file) for file in files), kinds=names, seed=table.seed)
    table.write(design if blocks is None else designs.blocks(design, count=blocks, seed=table.seed))


File = Annotated[Path, argument("FILE", "A design.")]


@app.command()
def show(file: File, details: Details = False, as_json: AsJson = False) -> None:
    """Prints how many rows and treatments, the factors with their levels or ranges, and the first rows."""
    design = designs.read_design(file)
    summary = summaries.summary_of(design)
    if as_json:
        print(json_text(_as_object(design, summary)))
        return
    say(f"{file}: {summary.sentence}")
    say("\n".join([*_factor_lines(summary, details=details), *(_header_lines(design) if details else [])]), 4)
    print("\n".join(_first_rows(design, terminal_columns())))


def _as_object(design: "Design", summary: "DesignSummary") -> dict[str, Any]:
    return {"header": dict(design.header), **asdict(summary)}


@app.command()
def picture(file: File, output: PictureFile, force: Force = False) -> None:
    """Draws what is covered: each pair of factors, and each factor against the order of execution."""
    check_outputs({"--output": picture_files(output)}, inputs=[file], force=force)
    design = designs.read_design(file)
    plots.plot_design(design, output, title=file.name)
    factors = counted(len(design.columns), "factor")
    say(f"{' and '.join(map(str, picture_files(output)))}: {counted(len(design), 'row')} and {factors} of {file}")


def _header_lines(design: "Design") -> list[str]:
    arguments = [(key, text) for key, text in design.header.items() if not key.startswith("part.")]
    return [f"  {key}: {_cut(text, 110)}" for key, text in arguments[:MAX_HEADER_LINES] if key != "columns"]


def _factor_lines(summary: "DesignSummary", *, details: bool = False) -> list[str]:
    factors = summary.factors if details else summary.factors[:MAX_FACTORS]
    more = len(summary.factors) - len(factors)
    lines = [_factor_line(factor, details=details) for factor in factors]
    return [*lines, f"  and {counted(more, 'more factor')}: lepaute design show --details"] if more else lines


def _factor_line(factor: "FactorSummary", *, details: bool) -> str:
    line = f"  {factor.name} ({factor.type}): {counted(factor.distinct, 'level')}"
    if factor.counts:
        same = {count for _, count in factor.counts}
        levels = ", ".join(
            _level_text(v) if len(same) == 1 else f"{_level_text(v)} ({counted(n, 'row')})" for v, n in factor.counts
        )
        line += f", {_cut(levels, 160)}"
        line += f"; {counted(next(iter(same)), 'row')} each" if len(same) == 1 and factor.distinct > 1 else ""
    elif factor.low is not None:
        ends = (exact_number(end) if isinstance(end, float) else _level_text(end) for end in (factor.low, factor.high))
        line += f", from {' to '.join(ends)}"
    if factor.empty:
        line += f"; empty in {counted(factor.empty, 'row')}"
    if details and factor.with_order is not None:
        line += f"; rank correlation with the order {factor.with_order:+.2f}"
    return line


def _first_rows(design: "Design", width: int) -> list[str]:
    rows = [
        [str(i), *(_cut(designs.columns.cell_of(v), 24) for v in row)] for i, row in enumerate(design.rows[:FIRST_ROWS])
    ]
    lines = [f"  {line}" for line in shown_table(["row", *design.columns], rows, width, left=()).splitlines()]
    more = len(design) - FIRST_ROWS
    return lines + ([f"  and {counted(more, 'more row')}"] if more > 0 else [])


def _level_text(value: object) -> str:
    return designs.columns.cell_of(value) if isinstance(value, (int, float, str)) else "nothing"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


MaxBytes = Annotated[str, option("Largest message.")]


@app.command()
def p2p(table: Table, max_bytes: MaxBytes = "64M") -> None:
    """MPI point-to-point operations: sizes 10^U, kinds interleaved."""
    table.write(designs.p2p_design(table.seed, size_range_bytes=(1, parse_size(max_bytes, "--max-bytes"))))


@app.command()
def ring(
    table: Table,
    ranks: Annotated[int, option("Ranks in the ring.", min=2, max=1_000_000)] = 2,
    sizes: Annotated[int, option("Message sizes of each operation, in all conditions.", min=1, max=100_000)] = 16,
    max_bytes: MaxBytes = "64M",
) -> None:
    """Messages in a ring of ranks that stand idle, compute, poll, or do both: four conditions, interleaved."""
    most = parse_size(max_bytes, "--max-bytes")
    table.write(designs.ring_design(table.seed, ranks=ranks, sizes=sizes, size_range_bytes=(1, most)))


@app.command(name="hpl-step")
def hpl_step(
    table: Table,
    rows: Annotated[int, option("How many pieces of HPL's factorisation.", max=1_000_000)] = 24,
    nb: Annotated[str, option("Columns of a panel: 64,128. Each has as many rows.")] = "64,128,256",
    max_n: Annotated[int, option("Order of the largest matrix.", max=2**31 - 1)] = 8000,
) -> None:
    """Short pieces of HPL's factorisation, at sizes that a run passes through."""
    table.write(designs.hpl_step_design(table.seed, rows=rows, nbs=numbers_of(nb, "--nb"), max_n=max_n))


@app.command()
def memory(
    table: Table,
    max_bytes: Annotated[str, option("Largest buffer; the smallest has 1 KiB.")] = "64M",
    strides: Annotated[str, option("Every how many elements one is read.")] = "1,2,4,8,16",
    element_bytes: Annotated[str, option("Widths of an element.")] = "4,8,16",
    unrolls: Annotated[str, option("How often the loop is unrolled.")] = "1,8",
    allocations: Annotated[int, option("Buffers of each size.", min=1, max=10_000)] = 4,
    replications: Annotated[int, option("Rows of each combination.", min=1)] = 1,
) -> None:
    """Passes over memory: buffer size, stride, width, unrolling and allocation, all combinations."""
    most = parse_size(max_bytes, "--max-bytes")
    if most < designs.memory.SIZES_BYTES[0]:
        raise InputError(f"--max-bytes is {max_bytes}; the smallest buffer has {designs.memory.SIZES_BYTES[0]} bytes")
    design = designs.memory_design(
        table.seed,
        sizes_bytes=[size for size in designs.memory.SIZES_BYTES if size <= most],
        strides=numbers_of(strides, "--strides"),
        element_bytes=numbers_of(element_bytes, "--element-bytes"),
        unrolls=numbers_of(unrolls, "--unrolls"),
        allocations=allocations,
        replications=replications,
    )
    table.write(design)


@app.command()
def collective(
    table: Table,
    operations: Annotated[str | None, option("Some of the operations: bcast,barrier. Default: all.")] = None,
    max_bytes: Annotated[str, option("Largest message; sizes are powers of 4.")] = "16M",
    ranks: Annotated[str, option("Numbers of ranks: 2,4,8.", "-np", "--np", "--ranks")] = "2",
    replications: Annotated[int, option("Rows of each combination.", min=1)] = 20,
) -> None:
    """MPI collective operations: operation, size, ranks, all combinations."""
    most, known = parse_size(max_bytes, "--max-bytes"), designs.messages
    design = designs.collective_design(
        table.seed,
        operations=operations.split(",") if operations is not None else known.SIZED + known.UNSIZED,
        sizes_bytes=[size for size in known.SIZES_BYTES if size <= most],
        ranks=numbers_of(ranks, "--ranks"),
        replications=replications,
    )
    table.write(design)

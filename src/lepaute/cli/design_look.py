"""`lepaute design show|picture`: what a table holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import Force

if TYPE_CHECKING:
    from lepaute.design import Design
    from lepaute.design.summary import DesignSummary, FactorSummary

File = Annotated[Path, typer.Argument(help="A design.", show_default=False)]

FIRST_ROWS = 5
#: Lines of the header that say how the table came about; those of the parts of a mix are left to --json.
MOST_HEADER_LINES = 25


def show(
    file: File, as_json: Annotated[bool, typer.Option("--json", help="One JSON object and nothing else.")] = False
) -> None:
    """Prints the factors with their levels or ranges, replications, blocks, balance, and the first rows."""
    import json
    from dataclasses import asdict

    from lepaute.design import read_design
    from lepaute.design.summary import summary_of

    design = read_design(file)
    summary = summary_of(design)
    if as_json:
        print(json.dumps({"header": dict(design.header), **asdict(summary)}, indent=2))
        return
    print("\n".join([*_about(design, summary), "", *map(_factor_line, summary.factors), "", *_first_rows(design)]))


def picture(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="The PNG to write.", show_default=False)],
    force: Force = False,
) -> None:
    """Draws what is covered: each pair of factors, and each factor against the order of execution."""
    from lepaute.design import read_design
    from lepaute.design.plot import plot_design
    from lepaute.kit.outputs import check_outputs

    check_outputs({"--output": output}, inputs=[file], force=force)
    plot_design(read_design(file), output, title=file.name)


def _about(design: "Design", summary: "DesignSummary") -> list[str]:
    fewest, most = summary.replications
    times = "each once" if most == 1 else f"each {fewest} times" if fewest == most else f"each {fewest} to {most} times"
    where = ""
    if summary.blocks:
        complete = "each holds every treatment" if summary.complete else "not every block holds every treatment"
        where = f" in a block; {summary.blocks} blocks, {complete}"
    lines = [f"{summary.rows} rows: {summary.treatments} treatments, {times}{where}"]
    arguments = {key: text for key, text in design.header.items() if not key.startswith("part.")}
    lines += [
        f"  {key}: {_cut(text, 110)}" for key, text in list(arguments.items())[:MOST_HEADER_LINES] if key != "columns"
    ]
    return lines


def _factor_line(factor: "FactorSummary") -> str:
    line = f"  {factor.name} ({factor.type}): {factor.distinct} different"
    if factor.counts:
        same = {count for _, count in factor.counts}
        levels = ", ".join(f"{_level(v)}" if len(same) == 1 else f"{_level(v)} ({n} rows)" for v, n in factor.counts)
        line += f": {_cut(levels, 160)}"
        line += f"; {next(iter(same))} rows each" if len(same) == 1 and factor.distinct > 1 else ""
    elif factor.low is not None:
        line += f", from {_level(factor.low)} to {_level(factor.high)}"
    if factor.empty:
        line += f"; empty in {factor.empty} rows"
    if factor.with_order is not None:
        line += f"; rank correlation with the order {factor.with_order:+.2f}"
    return line


def _first_rows(design: "Design") -> list[str]:
    from lepaute.design.cells import cell_of
    from lepaute.kit.tables import text_table

    rows = [["row", *design.columns]]
    rows += [[str(i), *(_cut(cell_of(v), 24) for v in row)] for i, row in enumerate(design.rows[:FIRST_ROWS])]
    lines = [f"  {line}" for line in text_table(rows[0], rows[1:], left=()).splitlines()]
    more = len(design) - FIRST_ROWS
    return lines + ([f"  ... and {more} more"] if more > 0 else [])


def _level(value: object) -> str:
    from lepaute.design.cells import cell_of

    return cell_of(value) if isinstance(value, (int, float, str)) else "nothing"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."

"""`lepaute segment FILE`: at which sizes durations change their line, of OSU's and Intel's benchmarks or of CSV."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import Force
from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.fit.duration_tables import DurationTable


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="output of an OSU or Intel MPI benchmark, or CSV")],
    unit: Annotated[
        str,
        typer.Option("--unit", metavar="UNIT", help="where the file tells none: s, ms, us, ns; of rates MB/s, Gb/s"),
    ] = "",
    x: Annotated[str, typer.Option("--x", metavar="COLUMN", help="of CSV: the column of sizes")] = "",
    y: Annotated[str, typer.Option("--y", metavar="COLUMN", help="the column of durations, or of rates")] = "",
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="COLUMN=VALUE", help="of CSV: only these rows; may be repeated"),
    ] = None,
    table: Annotated[
        str, typer.Option("--table", metavar="NAME", help="of several tables those whose name contains this")
    ] = "",
    breakpoints: Annotated[
        int | None, typer.Option("--breakpoints", metavar="N", help="how many; default: as many as the sizes prove")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective", metavar="WHICH", help="log: relative errors, no negative coefficient; weighted, ordinary"
        ),
    ] = "log",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.png", help="picture of points and lines")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object, in seconds and bytes")] = False,
    force: Force = False,
) -> None:
    """Find the sizes at which durations change their line (protocols of an MPI library, caches), and each line.

    Says also what the sizes were too few for.
    """
    from lepaute.cli.segment_text import as_object, axis_labels, text_of
    from lepaute.fit import segment
    from lepaute.fit.duration_tables import SECONDS, read_durations

    check_outputs({"--plot": plot}, inputs=[file], force=force)
    tables = read_durations(file, x=x or None, y=y or None, unit=unit or None, only=_conditions(where or ()))
    chosen = _named(tables, table, file)
    if plot is not None and len(chosen) > 1:
        raise InputError(f"--plot draws one table; choose it with --table: {_names(chosen)}")
    objects = []
    for number, one in enumerate(chosen):
        line = segment(one.x, one.duration_s, objective=objective, n_breakpoints=breakpoints)  # type: ignore[arg-type]
        if plot is not None:
            x_label, y_label = axis_labels(one)
            line.plot(plot, x_label=x_label, y_label=y_label, y_unit=SECONDS[one.unit])
        if as_json:
            objects.append(as_object(one, line))
        else:
            print(("\n" if number else "") + text_of(one, line))
    if as_json:
        print(json.dumps({"file": str(file), "tables": objects}, indent=2))
    if plot is not None:
        print(f"wrote {plot}", file=sys.stderr)


def _conditions(texts: "list[str] | tuple[()]") -> dict[str, str]:
    conditions = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"--where is {text!r:.60}; it is COLUMN=VALUE such as operation=send")
        conditions[name] = value
    return conditions


def _named(tables: "tuple[DurationTable, ...]", part: str, file: Path) -> "list[DurationTable]":
    chosen = [one for one in tables if part.lower() in one.name.lower()]
    if not chosen:
        raise InputError(f"{file}: no table is named {part!r:.60}; there are {_names(tables)}")
    return chosen


def _names(tables: "list[DurationTable] | tuple[DurationTable, ...]") -> str:
    return "; ".join(one.name for one in tables)

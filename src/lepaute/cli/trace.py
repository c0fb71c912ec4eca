"""`lepaute trace`: what is in a trace, and its pictures."""

from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import Force
from lepaute.kit.outputs import check_output_folder, check_outputs

app = typer.Typer(help="Show, draw, break down and compare traces.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A trace (Parquet).", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.command()
def show(file: File, as_json: Json = False) -> None:
    """Prints what a trace holds: where it comes from, and its calls by name."""
    import json

    from lepaute.trace import read_trace
    from lepaute.trace.describe import description, facts

    trace = read_trace(file)
    print(json.dumps(facts(trace), indent=1, default=str) if as_json else description(trace))


@app.command()
def gantt(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="The PNG to write.", show_default=False)],
    ranks: Annotated[
        str | None, typer.Option("--ranks", help="Ranks to draw, such as 0-3,7; by default all, at most 64.")
    ] = None,
    steps: Annotated[str | None, typer.Option("--steps", help="First and last panel to draw, such as 10-12.")] = None,
    low_s: Annotated[float | None, typer.Option("--from", help="Draw from this time on, in seconds.")] = None,
    high_s: Annotated[float | None, typer.Option("--to", help="Draw up to this time, in seconds.")] = None,
    force: Force = False,
) -> None:
    """Draws the calls of each rank over time; of a long trace a few steps in its middle, below an overview."""
    import sys

    from lepaute.errors import InputError
    from lepaute.kit.quantities import numbers_of, span_of
    from lepaute.trace import read_trace
    from lepaute.trace.gantt import plot_gantt

    if steps is not None and (low_s is not None or high_s is not None):
        raise InputError("give either --steps, or --from and --to")
    check_outputs({"--output": output}, inputs=[file], force=force)
    chosen = None if ranks is None else numbers_of(ranks, "--ranks")
    span = None if steps is None else span_of(steps, "--steps")
    window = plot_gantt(read_trace(file), output, chosen, span, low_s, high_s)
    print(f"{output}: {len(window.ranks)} ranks from {window.low_s:.6g} to {window.high_s:.6g} s", file=sys.stderr)


@app.command()
def convert(
    file: Annotated[
        Path, typer.Argument(metavar="SMPI.trace", help="What smpirun -trace wrote (Paje).", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The Parquet to write.", show_default=False)],
    force: Force = False,
) -> None:
    """Makes a trace of what SimGrid's SMPI wrote, for all the other commands here.

    smpirun -trace -trace-file SMPI.trace --cfg=tracing/smpi/computing:yes --cfg=tracing/smpi/sleeping:yes
    --cfg=tracing/smpi/display-sizes:yes --cfg=tracing/precision:12 ...
    """
    import sys

    from lepaute.trace import write_trace
    from lepaute.trace.smpi import convert as convert_smpi
    from lepaute.version import __version__

    check_outputs({"--output": output}, inputs=[file], force=force)
    trace = convert_smpi(file, {"version": __version__})
    write_trace(trace, output)
    for warning in trace.metadata["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{output}: {len(trace)} calls of {len(trace.ranks)} ranks; lepaute trace show {output}", file=sys.stderr)


@app.command()
def perfetto(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="The JSON or JSON.gz to write.", show_default=False)],
    force: Force = False,
) -> None:
    """Writes the trace for ui.perfetto.dev or Chrome's about:tracing."""
    import sys

    from lepaute.trace import read_trace
    from lepaute.trace.perfetto import write_perfetto, written_text

    check_outputs({"--output": output}, inputs=[file], force=force)
    print(written_text(output, write_perfetto(read_trace(file), output)), file=sys.stderr)


@app.command()
def otf2(
    file: File, output: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.", show_default=False)]
) -> None:
    """Writes the trace in OTF2, for Vampir and other tools of Score-P; needs the Python package otf2."""
    import sys

    from lepaute.trace import read_trace
    from lepaute.trace.otf2_archive import write_otf2

    check_output_folder(output, "--output")
    count = write_otf2(read_trace(file), output)
    print(f"{output}: {count} events; open {output / 'traces.otf2'}", file=sys.stderr)


@app.command()
def breakdown(
    file: File,
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also write a PNG with bars.")] = None,
    force: Force = False,
) -> None:
    """Prints where the time of each rank went: computing, overhead, waiting, transfer, contention, probes."""
    import json

    from lepaute.trace import read_trace
    from lepaute.trace.breakdown import breakdown_of
    from lepaute.trace.describe import headline
    from lepaute.trace.report import breakdown_dict, breakdown_text, plot_breakdown

    check_outputs({"--plot": plot}, inputs=[file], force=force)
    trace = read_trace(file)
    time_spent = breakdown_of(trace)
    print(json.dumps(breakdown_dict(time_spent), indent=1) if as_json else breakdown_text(time_spent))
    if plot is not None:
        plot_breakdown(time_spent, plot, headline(trace))


@app.command()
def compare(
    left: Annotated[Path, typer.Argument(metavar="LEFT", help="A trace.", show_default=False)],
    right: Annotated[
        Path, typer.Argument(metavar="RIGHT", help="Another trace of the same program.", show_default=False)
    ],
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also write a PNG.")] = None,
    force: Force = False,
    same: Annotated[bool, typer.Option("--same", help="Exit with status 1 if calls, order or sizes differ.")] = False,
) -> None:
    """Compares two traces of the same program call by call: counts, sizes, order, durations."""
    import json
    import sys

    from lepaute.trace import read_trace
    from lepaute.trace.compare import compare_traces, parameters_that_differ
    from lepaute.trace.compare_report import comparison_dict, comparison_text, plot_comparison
    from lepaute.trace.describe import headline

    check_outputs({"--plot": plot}, inputs=[left, right], force=force)
    one, other = read_trace(left), read_trace(right)
    for difference in parameters_that_differ(one.metadata, other.metadata):
        print(f"warning: the traces are from different runs: {difference}", file=sys.stderr)
    comparison = compare_traces(one, other)
    if as_json:
        print(json.dumps(comparison_dict(comparison), indent=1))
    else:
        print(comparison_text(comparison, f"{left}: {headline(one)}", f"{right}: {headline(other)}"))
    if plot is not None:
        plot_comparison(comparison, plot, headline(one), headline(other))
    if same and not comparison.same_sizes:
        raise typer.Exit(1)

"""`lepaute record` and `lepaute trace`: traces of real runs, what is in a trace, and its pictures."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import App, AsJson, Details, Force, PictureFile, argument, option, page_option
from lepaute.cli.terminal import json_text, note, tell, warn
from lepaute.errors import InputError
from lepaute.kit.files import check_output, is_stream, write_atomic
from lepaute.kit.later import later
from lepaute.kit.outputs import check_output_folder, check_outputs
from lepaute.kit.picture import files_of, picture_files
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import numbers_of, span_of
from lepaute.kit.report.page import check_page_name
from lepaute.kit.text import ranks_text, seconds
from lepaute.measure.record import record as record_run
from lepaute.simulate.trace import Trace, read_trace, write_trace
from lepaute.simulate.trace import report as reports
from lepaute.simulate.trace.breakdown import breakdown_of
from lepaute.simulate.trace.compare import compare_traces, parameters_that_differ
from lepaute.simulate.trace.compare_report import comparison_dict, comparison_text, page, plot_comparison
from lepaute.simulate.trace.page import write_report
from lepaute.simulate.trace.reading import read_foreign
from lepaute.simulate.trace.table import caveats_of
from lepaute.simulate.trace.viewers import write_otf2, write_perfetto
from lepaute.simulate.trace.viewers import written_text as viewer_written
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.simulate import analysis
else:
    analysis = later("lepaute.simulate.analysis")

app = App(help="Show, draw, break down, analyze and compare traces.", no_args_is_help=True)

File = Annotated[Path, argument("FILE", "A trace (Parquet).")]


def record(
    words: Annotated[list[str], argument("-- mpirun ... PROGRAM", "The command to run.")],
    output: Annotated[Path, option("The trace to write.", "--output", "-o")] = Path("trace.parquet"),
    mpicc: Annotated[
        Path | None, option("The program's MPI library, by its compiler, prefix or name; by default that of mpirun.")
    ] = None,
    dat: Annotated[Path | None, option("Input file of xhpl-lepaute; by default HPL.dat.")] = None,
    solve: Annotated[int, option("Which of the runs in HPL.dat, from 1.", min=1)] = 1,
    every_call: Annotated[bool, option("Record each unsuccessful probe, merging none.", "--every-call")] = False,
    force: Force = False,
) -> None:
    """Runs a program under MPI and records its MPI and BLAS calls, at some 50 nanoseconds a call.

    lepaute record -o trace.parquet -- mpirun -np 2 PROGRAM. The program must use its MPI and BLAS as shared libraries.
    The word xhpl-lepaute is the HPL that is built here, whose own loops and phases are recorded too; it reads HPL.dat.
    Exit status 1 where the program fails; the trace then holds what it did up to that point.
    """
    check_outputs({"--output": output}, inputs=[dat], force=force)
    trace = record_run(
        words,
        workspace=Path() if is_stream(check_output(output)) else output.parent,
        mpicc=mpicc,
        dat=dat,
        solve=solve,
        every_call=every_call,
        progress=note,
    )
    _write(trace, output)
    if causes := trace.metadata["disturbed_by"]:
        warn([f"the run was disturbed on this machine: {'; '.join(causes)}"])
    if returncode := trace.metadata["returncode"]:
        note(f"lepaute: the program failed (exit status {returncode})")
        raise typer.Exit(1)


def _write(trace: Trace, output: Path) -> None:
    """Writes a trace that was made of something, and tells what is in it."""
    write_trace(trace, output)
    warn(caveats_of(trace.metadata))
    note(reports.written_text(output, trace))


@app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """Prints what a trace holds: where it comes from, and its calls by name."""
    trace = read_trace(file)
    print(json_text(reports.facts(trace), default=str) if as_json else reports.description(trace, terminal_columns()))


@app.command()
def gantt(
    file: File,
    output: PictureFile,
    ranks: Annotated[str | None, option("Ranks to draw, such as 0-3,7; by default all, at most 64.")] = None,
    steps: Annotated[str | None, option("First and last panel to draw, such as 10-12.")] = None,
    low_s: Annotated[float | None, option("Draw from this time on, in seconds.", "--from")] = None,
    high_s: Annotated[float | None, option("Draw up to this time, in seconds.", "--to")] = None,
    force: Force = False,
) -> None:
    """Draws the calls of each rank over time; of a long trace a few steps in its middle, below an overview."""
    from lepaute.simulate.trace.gantt import plot_gantt

    if steps is not None and (low_s is not None or high_s is not None):
        raise InputError("give either --steps, or --from and --to")
    check_outputs({"--output": picture_files(output)}, inputs=[file], force=force)
    chosen = None if ranks is None else numbers_of(ranks, "--ranks")
    span = None if steps is None else span_of(steps, "--steps")
    window = plot_gantt(read_trace(file), output, chosen, span, low_s, high_s)
    note(f"{output}: {ranks_text(len(window.ranks))} from {seconds(window.low_s)} to {seconds(window.high_s)}")


@app.command()
def convert(
    file: Annotated[Path, argument("FOREIGN", "A file or folder of another program.")],
    output: Annotated[Path, option("The Parquet to write.", "--output", "-o", show_default=False)],
    flop_rate: Annotated[
        float | None, option("Of smpirun -trace-ti: its flop/s (smpi/host-speed); default: dgemm's.", metavar="FLOP/S")
    ] = None,
    force: Force = False,
) -> None:
    """Makes a trace of what another program wrote; the other commands read that as well, each time anew.

    SimGrid's SMPI: smpirun -trace-ti (its list of files, or their folder), or, with times, smpirun -trace -trace-file
    SMPI.trace --cfg=tracing/smpi/computing:yes --cfg=tracing/smpi/sleeping:yes --cfg=tracing/smpi/display-sizes:yes
    --cfg=tracing/precision:12 ...  OTF2 of Score-P: its folder, or traces.otf2; needs the Python package otf2.
    Paraver of Extrae: the .prv, its .pcf beside it. GOAL of LogGOPSim.
    """
    if flop_rate is not None and not 1.0 <= flop_rate <= 1e18:
        raise InputError(f"--flop-rate is {flop_rate:g}; it is flop/s of a core, such as 1e9")
    check_outputs({"--output": output}, inputs=[file], force=force)
    _write(read_foreign(file, {"version": __version__}, rate=flop_rate), output)


@app.command()
def perfetto(
    file: File,
    output: Annotated[Path, option("The JSON or JSON.gz to write.", "--output", "-o", show_default=False)],
    force: Force = False,
) -> None:
    """Writes the trace for ui.perfetto.dev or Chrome's about:tracing."""
    check_outputs({"--output": output}, inputs=[file], force=force)
    note(viewer_written(output, write_perfetto(read_trace(file), output)))


@app.command()
def otf2(
    file: File, output: Annotated[Path, option("The folder to make.", "--output", "-o", show_default=False)]
) -> None:
    """Writes the trace in OTF2, for Vampir and other tools of Score-P; needs the Python package otf2."""
    check_output_folder(output, "--output")
    count = write_otf2(read_trace(file), output)
    note(f"{output}: {count} events; open {output / 'traces.otf2'}")


@app.command()
def breakdown(
    file: File,
    as_json: AsJson = False,
    plot: Annotated[Path | None, option("Also a picture with bars, .png or .svg.")] = None,
    report: Annotated[Path | None, page_option("Also write a page with all calls over time.")] = None,
    details: Details = False,
    force: Force = False,
) -> None:
    """Prints where the time of each rank went: computing, overhead, waiting, transfer, contention, probes."""
    check_outputs({"--plot": files_of(plot), "--report": report}, inputs=[file], force=force)
    check_page_name(report)
    trace = read_trace(file)
    time_spent = breakdown_of(trace)
    if plot is not None:
        reports.plot_breakdown(time_spent, plot, reports.headline(trace), reports.foot(trace))
    if report is not None:
        write_report(trace, report, shlex.join(["lepaute", "trace", "breakdown", str(file), "--report", str(report)]))
    text = reports.breakdown_text(time_spent, terminal_columns(), details=details)
    print(json_text(reports.breakdown_dict(time_spent)) if as_json else text)


@app.command()
def analyze(
    file: File,
    platform: Annotated[
        str | None, option("Also efficiencies of a replay on this platform.", "--platform", "-p")
    ] = None,
    as_json: AsJson = False,
    report: Annotated[Path | None, page_option("Also write a page with pictures and all tables.")] = None,
    details: Details = False,
    force: Force = False,
) -> None:
    """Prints what a run lost, and to what: efficiencies, critical path, wait states, messages, imbalance.

    Efficiencies are those of POP: parallel = load balance x serialisation x transfer, by a replay on an ideal network.
    Wait states have Scalasca's names, with the rank that was waited for.
    """
    check_outputs({"--report": report}, inputs=[file], force=force)
    check_page_name(report)
    result = analysis.analysis_of(read_trace(file), path=file, platform=platform)
    if report is not None:
        words = ["lepaute", "trace", "analyze", str(file), *([] if platform is None else ["-p", platform])]
        write_atomic(report, analysis.page(result, shlex.join([*words, "--report", str(report)])))
    if as_json:
        print(json_text(analysis.analysis_dict(result)))
        return
    tell(result.sentence, analysis.facts_of(result), result.caveats, details=details)
    print(f"\n{analysis.tables_text(result, terminal_columns(), details=details)}")


@app.command()
def compare(
    left: Annotated[Path, argument("LEFT", "A trace.")],
    right: Annotated[Path, argument("RIGHT", "Another trace of the same program.")],
    as_json: AsJson = False,
    plot: Annotated[Path | None, option("Also a picture, .png or .svg.")] = None,
    report: Annotated[Path | None, page_option("Also write a page: the finding, pictures, all calls.")] = None,
    force: Force = False,
    same: Annotated[bool, option("Exit with status 1 if calls, order or sizes differ.", "--same")] = False,
) -> None:
    """Compares two traces of the same program call by call: counts, sizes, order, durations."""
    check_outputs({"--plot": files_of(plot), "--report": report}, inputs=[left, right], force=force)
    check_page_name(report)
    one, other = read_trace(left), read_trace(right)
    differences = parameters_that_differ(one.metadata, other.metadata)
    warn(f"the traces are from different runs: {difference}" for difference in differences)
    comparison = compare_traces(one, other)
    if as_json:
        print(json_text(comparison_dict(comparison)))
    else:
        titles = (f"{left}: {reports.headline(one)}", f"{right}: {reports.headline(other)}")
        print(comparison_text(comparison, *titles, terminal_columns()))
    if plot is not None:
        plot_comparison(comparison, plot, reports.headline(one), reports.headline(other))
    if report is not None:
        command = shlex.join(["lepaute", "trace", "compare", str(left), str(right), "--report", str(report)])
        write_atomic(report, page(comparison, reports.headline(one), reports.headline(other), differences, command))
    if same and not comparison.same_sizes:
        raise typer.Exit(1)

"""`lepaute emulate`: the code of an MPI program, or of HPL, on a simulated machine, by SimGrid/SMPI."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.emulate_hpl import hpl
from lepaute.cli.emulate_trace import EmulatedTrace
from lepaute.cli.option_fields import with_options_of
from lepaute.cli.output_options import Force
from lepaute.cli.simulation_options import (
    AsJson,
    PlatformName,
    Runs,
    Seed,
    Settings,
    TraceFiles,
    Uncertainty,
    platform_of,
)

if TYPE_CHECKING:
    from lepaute.simulate.smpi.request import Folding, Private

app = typer.Typer()
#: What is meant where the first word is none of the commands: lepaute emulate -p PLATFORM -np N -- PROGRAM ARGS.
DEFAULT = "program"


@app.callback()
def group() -> None:
    """Run the code of an MPI program on a simulated machine, by SimGrid/SMPI; BLAS takes simulated time.

    lepaute emulate -p PLATFORM -np N -- PROGRAM ARGS: the same as lepaute emulate program, whose --help lists options.
    """


@app.command()
@with_options_of(Uncertainty, "uncertainty")
@with_options_of(TraceFiles, "traces", leave_out=("trace_ranks", "trace_steps"))
def program(
    platform: PlatformName,
    ranks: Annotated[str, typer.Option("-np", "--np", help="number of ranks; several, as 1,2,4,8, for their speed-up")],
    uncertainty: Uncertainty,
    traces: TraceFiles,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM ARGS", help="The program.", show_default=False)
    ] = None,
    source: Annotated[Path | None, typer.Option("--source", help="folder to build the program from")] = None,
    make: Annotated[str, typer.Option("--make", help="command that builds it")] = "make",
    binary: Annotated[
        Path | None, typer.Option("--binary", help="a program built with the compilers of 'lepaute emulate compilers'")
    ] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", help="a function that returns at once")] = None,
    fold: Annotated[
        str | None, typer.Option("--fold", help="allocations of this size or more share memory: 1M")
    ] = None,
    private: Annotated[
        list[str] | None,
        typer.Option("--private", help="WHERE[@FIRST-LAST]: not folded; WHERE is file.c, file.c:LINE or a function"),
    ] = None,
    computing: Annotated[
        str, typer.Option("--computing", help="outside of BLAS and LAPACK: measured here, or none")
    ] = "measured",
    contention: Annotated[
        bool,
        typer.Option(
            "--contention/--no-contention", help="run once more to see what slows down where ranks share memory"
        ),
    ] = True,
    memory_share: Annotated[
        float | None,
        typer.Option("--memory-share", help="share of it that waits for memory, 0 to 1, instead", min=0.0, max=1.0),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--time-pattern", help=r"regular expression for the seconds that the program prints: 'time: (\S+) s'"
        ),
    ] = None,
    collectives: Annotated[
        str | None,
        typer.Option(
            "--collectives", help="algorithms as in openmpi, mpich, mvapich2 or intelmpi; SMPI's own unless given"
        ),
    ] = None,
    settings: Settings = None,
    runs: Runs = 1,
    seed: Seed = 1,
    timeout: Annotated[float, typer.Option("--timeout", help="wall seconds of a run")] = 3600.0,
    stall: Annotated[float, typer.Option("--stall", help="wall seconds without an MPI call or simulated time")] = 120.0,
    stack: Annotated[int, typer.Option("--stack", help="KiB of each rank", min=64, max=1 << 30)] = 1024,
    shared_globals: Annotated[
        bool, typer.Option("--shared-globals", help="global variables are the same for all ranks")
    ] = False,
    every_probe: Annotated[bool, typer.Option("--every-probe", help="simulate each turn of a loop of probes")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="a PNG of time and efficiency over the ranks")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Runs PROGRAM on NP ranks of a simulated machine; BLAS and LAPACK take the time of the platform's models.

    Its time is the one that it prints (--time-pattern), else that between MPI_Pcontrol(1) and MPI_Pcontrol(0), else
    that of the whole program.
    """
    import signal

    from lepaute.cli.emulate_text import readable, tell_progress
    from lepaute.cli.scaling_text import scaling_text
    from lepaute.errors import InputError
    from lepaute.kit.outputs import check_outputs
    from lepaute.kit.printable import unfiltered
    from lepaute.platform import load_platform
    from lepaute.simulate import Program, predict_all
    from lepaute.simulate.prediction.plot import plot_scaling
    from lepaute.simulate.prediction.sweep import scaling
    from lepaute.simulate.smpi.building import build_program, program_in
    from lepaute.simulate.smpi.emulate import Options, Smpi
    from lepaute.simulate.smpi.process import Limits

    if computing not in ("none", "measured"):
        raise InputError(f"--computing is {computing!r}; it is measured or none")
    if source is not None and binary is not None:
        raise InputError("--source builds the program and --binary names one that is built; give one of them")
    if skip and source is None:
        raise InputError("--skip takes effect when the program is linked; give --source and --make")
    given = words or []
    if not given and binary is None:
        raise InputError("no program is named; write it after two dashes: lepaute emulate ... -- PROGRAM ARGS")
    counts = _counts_of(ranks, traces, plot)
    check_outputs({**traces.outputs, "--plot": plot}, inputs=[platform, binary, *uncertainty.inputs], force=force)
    layers, learnt = uncertainty.layers(), uncertainty.learnt()
    # A batch system ends a job with SIGTERM: SimGrid's process must end too, and its folder go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given_platform = load_platform(platform)
    _, overrides = platform_of(given_platform, settings)
    options = Options(
        computing="measured" if computing == "measured" else "none",
        contention=contention,
        memory_share=memory_share,
        privatize=not shared_globals,
        folding=folding_of(fold, private or []),
        limits=Limits(timeout, stall),
        stack_kib=stack,
        value_pattern=pattern,
        collectives=collectives,
        sleeping_probes=not every_probe,
    )
    with EmulatedTrace(traces) as kept:
        with tell_progress() as on_progress:
            path = binary or Path(given[0])
            arguments = given if binary is not None else given[1:]
            if source is not None:
                path = program_in(build_program(source, make, skip or [], kept.folder), given[0])
            predictions = predict_all(
                [Program(path, tuple(arguments), count, options=options) for count in counts],
                given_platform,
                runs=runs,
                seed=seed,
                layers=layers,
                settings=overrides,
                transfer=learnt,
                lag_s=uncertainty.lag_s,
                engine=Smpi(
                    on_line=None if as_json else lambda line: print(line, file=unfiltered(sys.stdout), flush=True),
                    on_complaint=lambda line: print(line, file=unfiltered(sys.stderr), flush=True),
                    on_progress=on_progress,
                    keep=kept.keep,
                ),
            )
        points = scaling(predictions) if len(predictions) > 1 else []
        if as_json:
            objects = [prediction.to_dict() for prediction in predictions]
            several = {"predictions": objects, "scaling": [point.to_dict() for point in points]}
            json.dump(several if points else objects[0], sys.stdout, indent=2)
            sys.stdout.write("\n")
        else:
            print(scaling_text(points) if points else readable(predictions[0]), file=sys.stderr)
        if plot is not None:
            plot_scaling(points, plot)
        kept.write(predictions[0])


app.command()(hpl)


@app.command("compilers")
def print_compilers() -> None:
    """Prints the folder of mpicc, mpicxx and mpif90 that build programs for emulation: put it first on PATH."""
    from lepaute.simulate.smpi.building import compilers

    print(compilers())


def _counts_of(ranks: str, traces: TraceFiles, plot: Path | None) -> tuple[int, ...]:
    """The numbers of ranks; raises InputError where an output does not go with them."""
    from lepaute.errors import InputError
    from lepaute.kit.quantities import numbers_of

    counts = numbers_of(ranks, "-np")
    if len(counts) > 1 and traces.asked_for:
        raise InputError("a trace is of one run; give one number of ranks to -np")
    if len(counts) == 1 and plot is not None:
        raise InputError("--plot shows several numbers of ranks; give them to -np, as 1,2,4,8")
    return counts


def folding_of(fold: str | None, private: list[str]) -> "Folding":
    """The folding that the options describe; raises InputError for an invalid one."""
    from lepaute.errors import InputError
    from lepaute.kit.quantities import size_of
    from lepaute.simulate.smpi.request import Folding

    if fold is None:
        if private:
            raise InputError("--private says what is not folded, and nothing is: give --fold SIZE")
        return Folding()
    size = size_of(fold, "--fold")
    return Folding(size, private=tuple(private_of(text) for text in private))


def private_of(text: str) -> "Private":
    """WHERE or WHERE@FIRST-LAST; raises InputError for anything else."""
    import re

    from lepaute.errors import InputError
    from lepaute.simulate.smpi.request import Private

    where, separator, span = text.partition("@")
    if not where or any(character.isspace() for character in where):
        raise InputError(
            f"--private {text!r}: name a file, file:line or function, such as panel.c:120 or panel.c@0-4096"
        )
    if not separator:
        return Private(where)
    match = re.fullmatch(r"(-?[0-9]{1,18})-(-?[0-9]{1,18})", span)
    if match is None:
        raise InputError(f"--private {text[:80]!r}: bytes are FIRST-LAST, such as 0-4096 or -64--1 (from the end)")
    return Private(where, int(match[1]), int(match[2]))

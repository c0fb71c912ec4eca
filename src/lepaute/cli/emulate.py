"""`lepaute emulate`: the code of an MPI program, or of HPL, on a simulated machine, by SimGrid/SMPI."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from lepaute.cli.options import App, AsJson, Details, Force, with_options_of
from lepaute.cli.simulation import Placement, Simulation, TraceFiles, applications_of
from lepaute.cli.terminal import json_text, note, simulated_date
from lepaute.errors import InputError
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of
from lepaute.kit.printable import terminal_columns, unfiltered
from lepaute.kit.quantities import numbers_of, size_of
from lepaute.kit.temporary import temporary_folder
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.apps.hpl.parameters import HplFiles

if TYPE_CHECKING:
    from lepaute.simulate import Mapping, Prediction
    from lepaute.simulate.application import Application
    from lepaute.simulate.smpi.emulate import Keep, Options
    from lepaute.simulate.smpi.request import Folding, Private

app = App(
    help="Run the code of an MPI program on a simulated machine, by SimGrid/SMPI; BLAS takes simulated time.\n\n"
    "lepaute emulate -p PLATFORM -np N -- PROGRAM ARGS: the same as lepaute emulate program, whose --help lists "
    "options."
)
#: What is meant where the first word is none of the commands: lepaute emulate -p PLATFORM -np N -- PROGRAM ARGS.
DEFAULT = "program"


@dataclass(frozen=True)
class EmulatedRuns(Simulation):
    """An emulation takes long: one run."""

    runs: int = option_field(1, "simulated runs")


@dataclass(frozen=True)
class ProgramOptions:
    """How a program is built and emulated."""

    source: Path | None = option_field(None, "folder to build the program from")
    make: str = option_field("make", "command that builds it")
    binary: Path | None = option_field(None, "a program built with the compilers of 'lepaute emulate compilers'")
    skip: list[str] | None = option_field(None, "make this function return immediately")
    fold: str | None = option_field(None, "allocations of this size or more share memory: 1M")
    private: list[str] | None = option_field(
        None, "WHERE[@FIRST-LAST]: not folded; WHERE is file.c, file.c:LINE or a function"
    )
    computing: str = option_field("measured", "outside of BLAS and LAPACK: measured here, or none")
    contention: bool = option_field(
        True, "run once more to measure memory contention between ranks", name="contention/--no-contention"
    )
    memory_share: float | None = option_field(
        None,
        "fraction of the program's own computing that is bound by memory, 0 to 1, instead of that run",
        minimum=0.0,
        maximum=1.0,
    )
    pattern: str | None = option_field(
        None, r"regular expression for the seconds that the program prints: 'time: (\S+) s'", name="time-pattern"
    )
    collectives: str | None = option_field(
        None, "algorithms as in openmpi, mpich, mvapich2 or intelmpi; default: each run draws one"
    )
    timeout: float = option_field(3600.0, "wall seconds of a run")
    stall: float = option_field(120.0, "wall seconds without an MPI call or simulated time")
    stack: int = option_field(1024, "KiB of each rank", minimum=64, maximum=1 << 30)
    shared_globals: bool = option_field(False, "global variables are the same for all ranks")
    every_probe: bool = option_field(False, "simulate each turn of a loop of probes")

    def check(self, words: list[str]) -> None:
        """Raises InputError for options that contradict each other, or where they and the words name no program."""
        if self.computing not in ("none", "measured"):
            raise InputError(f"--computing is {self.computing!r}; it is measured or none")
        if self.source is not None and self.binary is not None:
            raise InputError("--source builds the program and --binary names one that is built; give one of them")
        if self.skip and self.source is None:
            raise InputError("--skip takes effect when the program is linked; give --source and --make")
        if not words and self.binary is None:
            raise InputError("no program is named; write it after two dashes: lepaute emulate ... -- PROGRAM ARGS")

    def for_engine(self) -> "Options":
        """As the engine takes them."""
        from lepaute.simulate.smpi.emulate import Options
        from lepaute.simulate.smpi.process import Limits

        return Options(
            computing="measured" if self.computing == "measured" else "none",
            contention=self.contention,
            memory_share=self.memory_share,
            privatize=not self.shared_globals,
            folding=folding_of(self.fold, self.private or []),
            limits=Limits(self.timeout, self.stall),
            stack_kib=self.stack,
            value_pattern=self.pattern,
            collectives=self.collectives,
            sleeping_probes=not self.every_probe,
        )

    def program(self, words: list[str], folder: Path) -> tuple[Path, tuple[str, ...]]:
        """The program, which is built in the folder where there is a source, and its arguments."""
        from lepaute.simulate.smpi.building import build_program, program_in

        if self.binary is not None:
            return self.binary, tuple(words)
        if self.source is not None:
            built = build_program(self.source, self.make, self.skip or [], folder)
            return program_in(built, words[0]), tuple(words[1:])
        return Path(words[0]), tuple(words[1:])


@app.command()
@with_options_of(TraceFiles, "traces", leave_out=("trace_ranks", "trace_steps"))
def program(
    simulation: EmulatedRuns,
    ranks: Annotated[
        str, typer.Option("-np", "--np", "--ranks", help="number of ranks; several, as 1,2,4,8, for their speed-up")
    ],
    traces: TraceFiles,
    options: ProgramOptions,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM ARGS", help="The program.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="a picture of time and efficiency over the ranks, .png or .svg")
    ] = None,
    force: Force = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Runs PROGRAM on NP ranks of a simulated machine; BLAS and LAPACK take the time of the platform's models.

    Its time is the one that it prints (--time-pattern), else that between MPI_Pcontrol(1) and MPI_Pcontrol(0), else
    that of the whole program.
    """
    from lepaute.cli.prediction_answer import answered_emulation, answered_scaling
    from lepaute.simulate import Program
    from lepaute.simulate.prediction.plot import plot_scaling
    from lepaute.simulate.prediction.sweep import scaling
    from lepaute.simulate.smpi.emulate import Smpi

    words = words or []
    options.check(words)
    counts = _counts_of(ranks, traces, plot)
    check_outputs(
        {**traces.outputs, "--plot": files_of(plot)}, inputs=[options.binary, *simulation.inputs], force=force
    )
    how = options.for_engine()
    simulation.read()
    with temporary_folder("lepaute-emulate-", plain=True) as folder:
        with simulated_date(simulation.runs * len(counts), how.limits.timeout_s) as (on_progress, on_share, end_line):
            path, arguments = options.program(words, folder)
            engine = Smpi(
                # What the program prints is its own: it also reaches a terminal as it is.
                on_line=None if as_json else partial(_pass_on, unfiltered(sys.stdout), end_line),
                on_complaint=partial(_pass_on, unfiltered(sys.stderr), end_line),
                on_progress=on_progress,
                keep=_keep(traces, folder),
            )
            programs = [Program(path, arguments, count, options=how) for count in counts]
            predictions = simulation.predicted(programs, engine=engine, progress=on_share)
        points = scaling(predictions) if len(predictions) > 1 else []
        if as_json:
            objects = [prediction.to_dict() for prediction in predictions]
            several = {"predictions": objects, "scaling": [point.to_dict() for point in points]}
            print(json_text(several if points else objects[0]))
        else:
            width = terminal_columns(sys.stderr)
            if sys.stdout.isatty() and sys.stderr.isatty():
                note("")  # apart from what the program printed
            note(
                answered_scaling(points, width, details=details)
                if points
                else answered_emulation(predictions[0], width, details=details)
            )
        if plot is not None:
            plot_scaling(points, plot)
        _write_trace(traces, folder, predictions[0])


@app.command()
@with_options_of(HplFiles, "files", leave_out=("output", "memory_fraction"))
@with_options_of(Hpl, "values", may_lack=("n",), make=dict)
@with_options_of(TraceFiles, "traces", leave_out=("trace_ranks", "trace_steps"))
def hpl(
    context: typer.Context,
    simulation: EmulatedRuns,
    files: HplFiles,
    values: dict[str, Any],
    placement: Placement,
    traces: TraceFiles,
    timeout: Annotated[float, typer.Option(help="wall seconds of a run")] = 3600.0,
    force: Force = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Emulates the real HPL with simulated kernels: what `predict hpl` predicts, by its own code."""
    from lepaute.cli.prediction_answer import answered
    from lepaute.measure.hpl_source import SHA256, unpack_source
    from lepaute.simulate.apps.hpl.emulation import START_S, build_hpl_smpi
    from lepaute.simulate.smpi.emulate import Smpi
    from lepaute.simulate.smpi.process import Limits

    check_outputs(traces.outputs, inputs=[*simulation.inputs, *files.inputs, *placement.inputs], force=force)
    hpls, from_file = applications_of(context, Hpl, values, files, simulation.read)
    machine = simulation.read()
    mapping = placement.on(machine, hpls[0].threads_per_rank)
    built = build_hpl_smpi(unpack_source, SHA256)
    with temporary_folder("lepaute-emulate-", plain=True) as folder:
        runs, whole_s = simulation.runs * len(hpls), _whole_s(simulation, hpls, mapping)
        with simulated_date(runs, timeout, whole_s) as (on_progress, on_share, _):
            engine = Smpi(built, limits=Limits(timeout), on_progress=on_progress, keep=_keep(traces, folder))
            predictions = simulation.predicted(hpls, mapping=mapping, engine=engine, progress=on_share)
        if as_json:
            objects = [prediction.to_dict() for prediction in predictions]
            print(json_text({"predictions": objects} if from_file else objects[0]))
        else:
            width = terminal_columns(sys.stdout)
            print("\n".join(answered(each, machine, width, details=details) for each in predictions))
        part = (START_S, START_S + predictions[0].run_list[0].time_s)
        _write_trace(traces, folder, predictions[0], part)


def _whole_s(simulation: EmulatedRuns, hpls: "Sequence[Application]", mapping: "Mapping") -> float | None:
    """The simulated date at which the only run will end, by a quick prediction; None where that is not quick."""
    from lepaute.simulate.apps.hpl.emulation import START_S
    from lepaute.simulate.prediction.predicting import expected_run_s

    if len(hpls) > 1 or simulation.runs > 1 or expected_run_s(hpls, simulation.read(), runs=1, mapping=mapping):
        return None
    return START_S + simulation.predicted(hpls, mapping=mapping)[0].time_s.mean


def _pass_on(stream: TextIO, end_line: Callable[[], None], line: str) -> None:
    """Prints a line of the program below that of the progress."""
    end_line()
    print(line, file=stream, flush=True)


@app.command("compilers")
def print_compilers() -> None:
    """Prints the folder of mpicc, mpicxx and mpif90 that build programs for emulation: put it first on PATH."""
    from lepaute.simulate.smpi.building import compilers

    print(compilers())


def _keep(traces: TraceFiles, folder: Path) -> "Keep | None":
    """What the emulation is to keep in the folder for the requested trace; None where there is none."""
    from lepaute.simulate.smpi.emulate import Keep

    names = ("smpi.trace", "smpi.kernels", "smpi.calls", "smpi.nodes")
    return Keep(*(folder / name for name in names)) if traces.requested else None


def _write_trace(
    traces: TraceFiles, folder: Path, prediction: "Prediction", part: tuple[float, float] | None = None
) -> None:
    """Writes the requested files of the first run: SMPI's own trace with the kernels and the calls of MPI put into it.

    part : simulated dates between which calls begin that are kept; the first becomes 0
    """
    if not traces.requested:
        return
    from lepaute.trace.kernels import merge_kernels, read_kernels
    from lepaute.trace.recorded_calls import merge_calls
    from lepaute.trace.smpi import convert

    metadata = {
        "application": prediction.application.name,
        "platform": prediction.platform_name,
        "seed": prediction.seed,
        "ranks": prediction.application.ranks,
        **json.loads((folder / "smpi.nodes").read_text(encoding="utf-8")),
    }
    trace = merge_calls(convert(folder / "smpi.trace", metadata), folder / "smpi.calls")
    if (folder / "smpi.kernels").is_file():
        trace = merge_kernels(trace, read_kernels(folder / "smpi.kernels"))
    if part is not None:
        trace = trace.where((trace.start_s >= part[0]) & (trace.start_s < part[1]))
        trace = replace(trace, start_s=trace.start_s - part[0])
    traces.write(trace)


def _counts_of(ranks: str, traces: TraceFiles, plot: Path | None) -> tuple[int, ...]:
    counts = numbers_of(ranks, "-np")
    if len(counts) > 1 and traces.requested:
        raise InputError("a trace is of one run; give one number of ranks to -np")
    if len(counts) == 1 and plot is not None:
        raise InputError("--plot shows several numbers of ranks; give them to -np, as 1,2,4,8")
    return counts


def folding_of(fold: str | None, private: list[str]) -> "Folding":
    """The folding that the options describe; raises InputError for an invalid one."""
    from lepaute.simulate.smpi.request import Folding

    if fold is None:
        if private:
            raise InputError("--private says what is not folded, and nothing is: give --fold SIZE")
        return Folding()
    return Folding(size_of(fold, "--fold"), private=tuple(private_of(text) for text in private))


def private_of(text: str) -> "Private":
    """WHERE or WHERE@FIRST-LAST; raises InputError for anything else."""
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

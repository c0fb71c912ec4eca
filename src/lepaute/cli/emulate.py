"""`lepaute emulate`: the code of an MPI program, or of HPL, on a simulated machine, by SimGrid/SMPI."""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from lepaute.cli.against import alternatives, compared_with
from lepaute.cli.options import App, AsJson, Details, Force, argument, option, with_options_of
from lepaute.cli.prediction_answer import answered, answered_emulation, answered_scaling
from lepaute.cli.simulation import Placement, Simulation, TraceFiles, applications_of, note_unused
from lepaute.cli.terminal import FASTER, announce, answer_in, json_text, note, simulated_date
from lepaute.errors import InputError, LepauteError
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of
from lepaute.kit.printable import UNLIMITED, terminal_columns, unfiltered
from lepaute.kit.quantities import numbers_of
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.hpl_source import SHA256, unpack_source
from lepaute.simulate.apps.hpl import Hpl, HplFiles
from lepaute.simulate.prediction.predicting import check_runs, expected_run_s, predict_all
from lepaute.simulate.prediction.sweep import Sweep, scaling
from lepaute.simulate.smpi.building import build_program, compilers, program_in
from lepaute.simulate.smpi.process import Limits
from lepaute.simulate.smpi.settings import ProgramSettings

if TYPE_CHECKING:
    from lepaute.simulate import Prediction
    from lepaute.simulate.apps.program import ProgramRun
    from lepaute.simulate.smpi.emulate import Keep, Smpi

app = App(
    help="Run the code of an MPI program on a simulated machine, by SimGrid/SMPI; BLAS takes simulated time.\n\n"
    "lepaute emulate -p PLATFORM -np N -- PROGRAM ARGS: the same as lepaute emulate program, whose --help lists "
    "options."
)
#: What is meant where the first word is none of the commands: lepaute emulate -p PLATFORM -np N -- PROGRAM ARGS.
DEFAULT = "program"
#: From so many ranks on, one in so many is tried first, for so many seconds at most, to tell what all will take.
_MANY_RANKS, _RANKS_OF_TRIAL, _TRIAL_S = 256, 16, 60.0


@dataclass(frozen=True)
class EmulatedRuns(Simulation):
    """An emulation takes long: one run."""

    runs: int = option_field(1, "simulated runs")


@dataclass(frozen=True)
class ProgramOptions(ProgramSettings):
    """How a program is built and emulated."""

    source: Path | None = option_field(None, "folder to build the program from")
    make: str = option_field("make", "command that builds it")
    binary: Path | None = option_field(None, "a program built with the compilers of 'lepaute emulate compilers'")
    skip: list[str] | None = option_field(None, "make this function return immediately")

    def check(self, words: list[str]) -> None:
        """Raises InputError for options that contradict each other, or where they and the words name no program."""
        if self.source is not None and self.binary is not None:
            raise InputError("--source builds the program and --binary names one that is built; give one of them")
        if self.skip and self.source is None:
            raise InputError("--skip takes effect when the program is linked; give --source and --make")
        if self.make != "make" and self.source is None:
            raise InputError("--make builds what is in the folder --source; give it too")
        if not words and self.binary is None:
            raise InputError("no program is named; write it after two dashes: lepaute emulate ... -- PROGRAM ARGS")

    def unused(self) -> list[str]:
        """Options that have no effect beside the others."""
        of_computing = {"--no-contention": not self.contention, "--memory-share": self.memory_share is not None}
        return [name for name, has_value in of_computing.items() if has_value and self.computing == "none"]

    def program(self, words: list[str], folder: Path) -> tuple[Path, tuple[str, ...]]:
        """The program, which is built in the folder where there is a source, and its arguments."""
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
    ranks: Annotated[str, option("number of ranks; several, as 1,2,4,8, for their speed-up", "-np", "--np", "--ranks")],
    placement: Placement,
    traces: TraceFiles,
    options: ProgramOptions,
    words: Annotated[list[str] | None, argument("-- PROGRAM ARGS", "The program.")] = None,
    against: Annotated[
        list[str] | None,
        option(
            "FIELD=VALUE: also with this parameter, such as collectives=mpich, or platform=NAME, mapping=random "
            "or a field of the platform as --set takes it, and the ratio"
        ),
    ] = None,
    plot: Annotated[Path | None, option("picture of time and efficiency over the ranks, .png, .svg")] = None,
    force: Force = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Runs PROGRAM on NP ranks of a simulated machine; BLAS and LAPACK take the time of the platform's models.

    Its time is the one that it prints (--time-pattern), else that between MPI_Pcontrol(1) and MPI_Pcontrol(0), else
    that of the whole program.
    """
    from lepaute.simulate.apps.program import ProgramRun
    from lepaute.simulate.prediction.plot import plot_scaling
    from lepaute.simulate.smpi.emulate import Smpi

    options.check(words or [])
    counts = numbers_of(ranks, "-np")
    traces.check_single(len(counts))
    if len(counts) == 1 and plot is not None:
        raise InputError("--plot shows several numbers of ranks; give them to -np, as 1,2,4,8")
    inputs = [options.binary, *simulation.inputs, *placement.inputs]
    check_outputs({**traces.outputs, "--plot": files_of(plot)}, inputs=inputs, force=force)
    options.for_engine()
    check_runs(counts, simulation.runs)
    mapping = placement.on(simulation.read(), 1)
    with temporary_folder("lepaute-emulate-", plain=True) as folder:
        path, arguments = options.program(words or [], folder)
        settings = {field.name: getattr(options, field.name) for field in fields(ProgramSettings)}
        first = ProgramRun(program=path, np=counts[0], arguments=shlex.join(arguments), **settings)
        programs = [replace(first, np=count).application for count in counts]
        others = alternatives(against or [], programs, simulation, placement, first)
        besides = len(others) + (len(others) + len(counts) > 1)  # the first one once more, with other noise
        parts, runs, in_all = besides + 1, simulation.runs * (len(counts) + besides), sum(counts) + besides * counts[0]
        with simulated_date(
            runs,
            options.timeout,
            announced=_announced(replace(first, np=max(counts)), simulation, Smpi(limits=Limits(_TRIAL_S)), in_all),
        ) as (on_progress, on_share, end_line):
            engine = Smpi(
                # What the program prints is its own: it also reaches a terminal as it is.
                on_line=None if as_json else partial(_pass_on, unfiltered(sys.stdout), end_line),
                on_complaint=partial(_pass_on, unfiltered(sys.stderr), end_line),
                on_progress=on_progress,
                keep=_keep(traces, folder),
            )
            request = simulation.request(engine=engine, mapping=mapping)
            predictions = predict_all(
                programs, simulation.given_platform, request, progress=lambda share: on_share(share / parts)
            )
            quiet = replace(engine, on_line=None, on_complaint=None, keep=None)
            silent = [replace(p, request=p.request and replace(p.request, engine=quiet)) for p in predictions]

            def tell(_: str, share: float) -> None:
                on_share((1 + share * besides) / parts)

            compared = compared_with(silent[0], others, tell, quiet) if others else []
            Sweep(tuple(silent)).repeat_references(tell)
        points = scaling(silent) if len(silent) > 1 else []
        if as_json:
            objects = [prediction.to_dict() for prediction in predictions]
            if compared:
                objects[0]["differences"] = [each.to_dict() for each in compared]
            answer = answered_scaling(points, UNLIMITED) if points else answered_emulation(predictions[0], UNLIMITED)
            shown = {"predictions": objects, "scaling": [point.to_dict() for point in points]} if points else objects[0]
            print(json_text({"answer": answer_in(answer), **shown}))
        else:
            width = terminal_columns(sys.stderr)
            if sys.stdout.isatty() and sys.stderr.isatty():
                note("")  # apart from what the program printed
            for other in compared:  # who asks for a difference reads it first
                note(other.text(width, details=details))
            note(
                answered_scaling(points, width, details=details)
                if points
                else answered_emulation(
                    predictions[0], width, besides=[other.prediction for other in compared], details=details
                )
            )
        if plot is not None:
            plot_scaling(points, plot)
        _write_trace(traces, folder, predictions[0])
    for name in options.unused():
        note(f"lepaute: {name} has no effect: no computing is timed")


def _announced(run: "ProgramRun", simulation: EmulatedRuns, engine: "Smpi", ranks: int) -> bool:
    """Whether a trial on some of many ranks says how long the emulation of so many in all takes, which is announced."""
    if run.np < _MANY_RANKS:
        return False
    trial = replace(run, np=run.np // _RANKS_OF_TRIAL).application
    note(f"lepaute: trying {trial.ranks} of {run.np} ranks, to tell how long all will take")
    try:
        (tried,) = predict_all([trial], simulation.read(), simulation.request(engine=engine, runs=1))
    except LepauteError as problem:
        note(f"lepaute: the trial tells nothing: {problem}")
        return False
    wall_s = tried.simulation.wall_s * simulation.runs * ranks / trial.ranks
    announce(wall_s, f"if each rank does what it did in the trial; {FASTER}")
    return True


@app.command()
@with_options_of(HplFiles, "files", leave_out=("output", "memory_fraction"))
@with_options_of(Hpl, "values", may_lack=("n",), several=Hpl.about.several, make=dict)
@with_options_of(TraceFiles, "traces", leave_out=("trace_ranks", "trace_steps"))
def hpl(
    context: typer.Context,
    simulation: EmulatedRuns,
    files: HplFiles,
    values: dict[str, Any],
    placement: Placement,
    traces: TraceFiles,
    timeout: Annotated[float, option("wall seconds of a run")] = 3600.0,
    force: Force = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Emulates the real HPL with simulated kernels: what `predict hpl` predicts, by its own code."""
    from lepaute.simulate.apps.hpl.emulation import START_S, build_hpl_smpi
    from lepaute.simulate.smpi.emulate import Smpi

    check_outputs(traces.outputs, inputs=[*simulation.inputs, *files.inputs, *placement.inputs], force=force)
    hpls, from_file = applications_of(context, Hpl, values, files, simulation.read)
    traces.check_single(len(hpls))
    mapping = placement.on(simulation.read(), hpls[0].threads_per_rank)
    # refuses what does not fit on the platform; the only case, where that is quick, tells how long a run will be
    is_quick = expected_run_s(hpls, simulation.read(), runs=1, mapping=mapping) is None and len(hpls) == 1
    request = simulation.request(mapping=mapping)
    quick = predict_all(hpls, simulation.given_platform, request) if is_quick else ()
    runs, whole_s = simulation.runs * len(hpls), quick[0].time_s.mean if quick else None
    built = build_hpl_smpi(unpack_source, SHA256)
    with temporary_folder("lepaute-emulate-", plain=True) as folder:
        with simulated_date(runs, timeout, whole_s) as (tell, on_share, _):
            on_date = lambda date_s: tell(max(0.0, date_s - START_S))  # noqa: E731
            engine = Smpi(built, limits=Limits(timeout), on_progress=on_date, keep=_keep(traces, folder))
            request = replace(request, engine=engine)
            predictions = predict_all(hpls, simulation.given_platform, request, progress=on_share)
        if as_json:
            objects = [prediction.to_dict() for prediction in predictions]
            content = {"predictions": objects} if from_file or len(hpls) > 1 else objects[0]
            answer = "; ".join(answer_in(answered(case, UNLIMITED)) for case in predictions)
            print(json_text({"answer": answer, **content}))
        else:
            width = terminal_columns()
            print("\n".join(answered(prediction, width, details=details) for prediction in predictions))
        part = (START_S, START_S + predictions[0].run_list[0].time_s)
        _write_trace(traces, folder, predictions[0], part)
    note_unused(context, Hpl, [run.unused for run in hpls])


def _pass_on(stream: TextIO, end_line: Callable[[], None], line: str) -> None:
    """Prints a line of the program below that of the progress."""
    end_line()
    print(line, file=stream, flush=True)


@app.command("compilers")
def print_compilers() -> None:
    """Prints the folder of mpicc, mpicxx and mpif90 that build programs for emulation: put it first on PATH."""
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
    from lepaute.simulate.trace.kernels import merge_kernels, read_kernels
    from lepaute.simulate.trace.recorded_calls import merge_calls
    from lepaute.simulate.trace.smpi import convert

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

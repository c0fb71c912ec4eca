"""`lepaute predict NAME`: how long an application will take on a platform, and with one thing changed."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lepaute.cli.against import Compared, alternatives, compared_with
from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.options import FORCE_HELP, App, Details, flags_of, with_options_of
from lepaute.cli.simulation import Placement, Simulation, TraceFiles, applications_of, note_unused, own_class
from lepaute.cli.terminal import BAR_AFTER_S, announce, json_text, note, progress_bar
from lepaute.errors import InputError
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of
from lepaute.kit.printable import terminal_columns
from lepaute.kit.text import counted
from lepaute.simulate.apps import APPLICATIONS, application_class
from lepaute.simulate.apps.own import OwnFiles
from lepaute.simulate.apps.own.loading import names_a_class
from lepaute.simulate.prediction.wording import NOT_SAMPLED

if TYPE_CHECKING:
    from lepaute.simulate import Application, Mapping, Prediction
    from lepaute.simulate.application import Files
    from lepaute.simulate.conditions import Fidelity
    from lepaute.simulate.platform import Platform
    from lepaute.simulate.prediction.sweep import ScalingPoint
    from lepaute.simulate.tracing import TraceRequest


@dataclass(frozen=True)
class PredictOptions:
    """What the command tells besides the prediction, and how."""

    against: list[str] | None = option_field(
        None,
        "FIELD=VALUE: also with this parameter, such as nb=256, or platform=NAME, mapping=random or a field of the "
        "platform as --set takes it, and the ratio",
    )
    parts: bool | None = option_field(
        None, "break down the interval by cause; default: only if quick", name="parts/--no-parts"
    )
    as_json: bool = option_field(False, "one JSON object on standard output", name="json")
    plot: Path | None = option_field(
        None, "a picture of the distribution, or of all combinations; .png, .svg, or without an ending both"
    )
    force: bool = option_field(False, FORCE_HELP)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command group: with the one application that the arguments name, or with all."""
    app = App(help="How long an application will take on a platform; FILE.py:CLASS is one of your own.")
    if arguments and names_a_class(arguments[0]):
        others = (Simulation, Placement, TraceFiles, PredictOptions, OwnFiles)
        taken = {flag.argument for options in others for flag in flags_of(options)} | {"fidelity", "details"}
        app.command(arguments[0])(command_of(own_class(arguments[0], "predict", taken)))
        return app
    if arguments and arguments[0] not in APPLICATIONS and Path(arguments[0]).is_file():
        which = "hpl" if Path(arguments[0]).suffix == ".dat" else "trace"
        raise InputError(f"{arguments[0]} is a file; name its application: lepaute predict {which} {arguments[0]}")
    for name in [name for name in arguments[:1] if name in APPLICATIONS] or APPLICATIONS:
        app.command(name)(command_of(application_class(name)))
    return app


def command_of(application: "type[Application]") -> Callable[..., None]:
    """The command that predicts an application: its options, its files, and what all commands have."""
    may_lack = tuple(application.__dataclass_fields__) if application.about.files.input_option else ()  # type: ignore[attr-defined]
    lists = application.about.files.several_in_file
    *fidelities, last = application.about.fidelities

    @with_options_of(application.about.files, "files")
    @with_options_of(
        application, "values", may_lack=may_lack, several=application.about.several, make=dict, lists=lists
    )
    def command(
        context: typer.Context,
        simulation: Simulation,
        files: "Files",
        values: dict[str, Any],
        placement: Placement,
        traces: TraceFiles,
        options: PredictOptions,
        fidelity: Annotated[str, typer.Option(help=f"{', '.join(fidelities)} or {last}")] = "auto",
        details: Details = False,
    ) -> None:
        outputs = {**files.outputs, "--plot": files_of(options.plot), **traces.outputs}
        check_outputs(outputs, inputs=[*simulation.inputs, *files.inputs, *placement.inputs], force=options.force)
        applications, from_file = applications_of(context, application, values, files, simulation.read)
        for problem in filter(None, map(files.refutes, applications)):
            complain(problem)
            raise typer.Exit(1)
        _predict(
            applications,
            simulation,
            placement,
            traces,
            options,
            files,
            cast("Fidelity", fidelity),
            from_file=from_file,
            details=details,
        )
        note_unused(context, application, [run.unused for run in applications])

    what = "time and rate" if application.about.rate is not None else "time"
    command.__doc__ = (
        f"Predicts the {what} of {application.about.summary}, with the 95 % prediction interval for one further run."
    )
    return command


def _predict(
    applications: "list[Application]",
    simulation: Simulation,
    placement: Placement,
    traces: TraceFiles,
    options: PredictOptions,
    files: "Files",
    fidelity: "Fidelity",
    *,
    from_file: bool,
    details: bool,
) -> None:
    from lepaute.simulate.native import Native
    from lepaute.simulate.prediction.controls import usual_runs
    from lepaute.simulate.prediction.sweep import repeat_references, scaling

    request = _narrowed(traces.request(), applications)
    machine = simulation.read()
    mapping = placement.on(machine, applications[0].threads_per_rank)
    others = alternatives(options.against or [], applications, simulation, placement)
    simulated = "full" if request and fidelity == "auto" else fidelity
    runs = usual_runs(applications, Native(), simulated) if simulation.runs is None else simulation.runs
    simulation = replace(simulation, runs=runs)
    parts = _tells_parts(options.parts, applications, simulation, runs, simulated)
    extra_runs = _runs_besides(applications, simulation, simulated, parts=parts)
    run_s = announced(applications, machine, runs, mapping, simulated, extra_runs)
    try:
        with progress_bar(BAR_AFTER_S) as tell:
            predictions = simulation.predicted(
                applications,
                mapping=mapping,
                fidelity=fidelity,
                trace=request,
                progress=lambda share: tell("simulating", share),
                run_s=run_s,
                parts=parts,
            )
            compared = compared_with(predictions[0], others, tell) if others else []
            if len(predictions) > 1:
                repeat_references(predictions, tell)
    except KeyboardInterrupt:
        complain("interrupted")
        os._exit(INTERRUPTED)  # a normal exit would wait for the runs that are under way
    if fidelity == "sampled" and all(prediction.fidelity == "full" for prediction in predictions):
        note(f"lepaute: --fidelity {NOT_SAMPLED}")
    problems = {application.problem.words for application in applications}
    ranks = {application.ranks for application in applications}
    points: list[ScalingPoint] = []
    if len(problems) == 1 and len(ranks) > 1 and not from_file:
        points = scaling(predictions)
    if options.as_json:
        _print_as_json(predictions, points, compared, as_list=from_file)
    else:
        print("\n".join(_texts(predictions, points, compared, machine, files, details=details)))
    if options.plot is not None:
        _draw(predictions, points, options.plot)
    traces.write(predictions[0].trace)
    files.write(predictions)


def _narrowed(request: "TraceRequest | None", applications: "Sequence[Application]") -> "TraceRequest | None":
    """The request, of a part of a large run, which is then announced on standard error."""
    if request is None or len(applications) > 1:
        return request
    (application,) = applications
    request.check(application)
    part = request.narrowed(application)
    parts = []
    if part.ranks is not None and request.ranks is None:
        parts.append(f"{len(part.ranks)} of {application.ranks} ranks (--trace-ranks chooses others)")
    if part.steps is not None and request.steps is None:
        parts.append(f"steps {part.steps[0]} to {part.steps[-1]} (--trace-steps chooses others)")
    if parts:
        note(f"lepaute: the trace of the whole run would be too long; tracing {', '.join(parts)}")
    return part


def _tells_parts(
    given: bool | None, applications: "Sequence[Application]", simulation: Simulation, runs: int, fidelity: str
) -> bool:
    from lepaute.simulate.prediction.parts import are_free

    if given and runs < 2:
        raise InputError("--parts is about an interval, and one run has none; give --runs 2 or more")
    if given is not None:
        return given
    layers = simulation.layers()
    return len(applications) == 1 and are_free(applications[0], simulation.machine, layers, runs, fidelity)


def _runs_besides(
    applications: "Sequence[Application]", simulation: Simulation, fidelity: str, *, parts: bool
) -> float:
    """What the parts of the interval, and to judge what extrapolation does to it, cost at most, in runs."""
    from lepaute.simulate.prediction import parts as interval_parts
    from lepaute.simulate.prediction import trust

    machine, layers = simulation.machine, simulation.layers()
    shares = [(application, application.on().simulated_share(fidelity)) for application in applications]
    besides = 0.0
    if parts:
        besides += max(interval_parts.cost_in_runs(app, machine, layers) / share for app, share in shares)
    return besides + max(trust.cost_in_runs(app, machine) / share for app, share in shares)


def announced(
    applications: "Sequence[Application]",
    machine: "Platform",
    runs: int,
    mapping: "Mapping",
    fidelity: "Fidelity" = "auto",
    extra_runs: float = 0.0,
) -> list[float] | None:
    """Seconds that a run of each will take, where it matters; a long prediction is announced on standard error.

    extra_runs : that tell the parts of the interval, and what extrapolation does to it
    """
    from lepaute.simulate import conditions, tasks
    from lepaute.simulate.prediction import controls, predicting

    run_s = predicting.expected_run_s(applications, machine, runs=runs, mapping=mapping, fidelity=fidelity)
    if run_s is None:
        return None
    cores = tasks.available_cores()
    wall_s = tasks.estimated_wall_s(run_s, runs + extra_runs, cores)
    if wall_s > tasks.WORTH_MEASURING_S:
        priced_s = sum(controls.pricing_s(app, conditions.Conditions(machine)) for app in applications) / cores
        wall_s = (wall_s + priced_s) * tasks.slowdown(cores)
    if wall_s > tasks.WORTH_TELLING_S:
        count = len(applications)
        what = f"{counted(count, 'combination')} x {counted(runs, 'run')}" if count > 1 else counted(runs, "run")
        besides = ", and those that tell what the interval is made of" if extra_runs else ""
        announce(wall_s, f"{what} on {counted(cores, 'core')}{besides}")
    return run_s


def _print_as_json(
    predictions: "Sequence[Prediction]",
    points: "Sequence[ScalingPoint]",
    compared: Sequence[Compared],
    *,
    as_list: bool,
) -> None:
    """points : of several grids;  as_list : a single prediction, too."""
    objects = [prediction.to_dict() for prediction in predictions]
    if compared:
        objects[0]["differences"] = [each.to_dict() for each in compared]
    if len(objects) == 1 and not as_list:
        print(json_text(objects[0]))
        return
    from lepaute.simulate.prediction.sweep import Sweep

    several = {"predictions": objects, **Sweep(tuple(predictions)).to_dict()}
    if points:
        several["scaling"] = [point.to_dict() for point in points]
    print(json_text(several))


def _texts(
    predictions: "Sequence[Prediction]",
    points: "Sequence[ScalingPoint]",
    compared: Sequence[Compared],
    machine: "Platform",
    files: "Files",
    *,
    details: bool,
) -> list[str]:
    from lepaute.cli.prediction_answer import answered, answered_scaling, answered_sweep

    width = terminal_columns()
    if len(predictions) == 1:
        return [  # who asks for a difference reads it first
            *(each.text(width, details=details) for each in compared),
            answered(predictions[0], machine, width, details=details),
        ]
    if points:
        return [answered_scaling(points, width, details=details)]
    report = files.report(predictions) if details and not any(files.outputs.values()) else None
    return [text for text in (answered_sweep(predictions, width, details=details), report) if text is not None]


def _draw(predictions: "Sequence[Prediction]", points: "Sequence[ScalingPoint]", path: Path) -> None:
    from lepaute.simulate.prediction.plot import plot_scaling, plot_sweep
    from lepaute.simulate.prediction.sweep import Sweep

    if points:
        plot_scaling(points, path)
    elif len(predictions) > 1:
        plot_sweep(Sweep(tuple(predictions)), path)
    else:
        predictions[0].plot(path)

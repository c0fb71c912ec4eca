"""`lepaute predict NAME`: how long an application will take on a platform, and with one thing changed."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.against import Alternative, Compared, alternatives, both_measured, compared_with
from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.options import FORCE_HELP, App, Details, flags_of, option, with_options_of
from lepaute.cli.simulation import Placement, Simulation, TraceFiles, applications_of, note_unused, own_class
from lepaute.cli.terminal import BAR_AFTER_S, announce, answer_in, json_text, note, progress_bar
from lepaute.errors import InputError
from lepaute.kit.files import is_file
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of
from lepaute.kit.printable import UNLIMITED, terminal_columns
from lepaute.kit.text import counted
from lepaute.simulate.apps import APPLICATIONS, application_class
from lepaute.simulate.apps.own import OwnFiles
from lepaute.simulate.apps.own.loading import names_a_class
from lepaute.simulate.prediction.wording import NOT_SAMPLED

if TYPE_CHECKING:
    from lepaute.simulate import Application, PredictionRequest
    from lepaute.simulate.application import Files
    from lepaute.simulate.platform import Platform
    from lepaute.simulate.prediction.sweep import ScalingPoint, Sweep
    from lepaute.simulate.tracing import TraceRequest


@dataclass(frozen=True)
class PredictOptions:
    """What the command tells besides the prediction, and how."""

    against: list[str] | None = option_field(
        None,
        "FIELD=VALUE: also with this parameter, such as nb=256, or platform=NAME, mapping=random or a field of the "
        "platform as --set takes it, and the ratio",
    )
    parts: bool | None = option_field(None, "split the interval by cause; default: if quick", name="parts/--no-parts")
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
    if arguments and arguments[0].startswith("-") and arguments[0] not in ("-h", "--help"):
        raise InputError(f"no application before {arguments[0]}: {', '.join(APPLICATIONS)} or FILE.py:CLASS")
    if arguments and arguments[0] not in APPLICATIONS and is_file(arguments[0]):
        which = "hpl" if Path(arguments[0]).suffix == ".dat" else "trace"
        raise InputError(f"{arguments[0]} is a file; name its application: lepaute predict {which} {arguments[0]}")
    for name in [name for name in arguments[:1] if name in APPLICATIONS] or APPLICATIONS:
        app.command(name)(command_of(application_class(name)))
    return app


def command_of(application: "type[Application]") -> Callable[..., None]:
    """The command that predicts an application: its options, its files, and what all commands have."""
    may_lack = tuple(application.__dataclass_fields__) if application.about.files.input_option else ()  # type: ignore[attr-defined]
    *fidelities, last = application.about.fidelities

    @with_options_of(application.about.files, "files")
    @with_options_of(application, "values", may_lack=may_lack, several=application.about.several, make=dict)
    def command(
        context: typer.Context,
        simulation: Simulation,
        files: "Files",
        values: dict[str, Any],
        placement: Placement,
        traces: TraceFiles,
        options: PredictOptions,
        fidelity: Annotated[str, option(f"{', '.join(fidelities)} or {last}")] = "auto",
        details: Details = False,
    ) -> None:
        outputs = {**files.outputs, "--plot": files_of(options.plot), **traces.outputs}
        check_outputs(outputs, inputs=[*simulation.inputs, *files.inputs, *placement.inputs], force=options.force)
        applications, from_file = applications_of(context, application, values, files, simulation.read)
        for is_same, text in filter(None, map(files.checked, applications)):
            if not is_same:
                complain(text)
                raise typer.Exit(1)
            note(f"lepaute: {text}")
        trace = _narrowed(traces.request(), applications)
        mapping = placement.on(simulation.read(), applications[0].threads_per_rank)
        applications, against = both_measured(applications, options.against or [])
        others = alternatives(against, applications, simulation, placement)
        request = simulation.request(mapping=mapping, fidelity=fidelity, trace=trace)
        request = _completed(request, applications, simulation.machine, options.parts)
        sweep, compared = _predicted(applications, simulation, request, others)
        if fidelity == "sampled" and all(prediction.fidelity == "full" for prediction in sweep.predictions):
            note(f"lepaute: --fidelity {NOT_SAMPLED}")
        points = [] if from_file else sweep.scaling_points
        if options.as_json:
            (text, *_) = _texts(sweep, points, (), files, UNLIMITED, details=False)
            print(json_text({"answer": answer_in(text), **_content(sweep, points, compared, as_list=from_file)}))
        else:
            print("\n".join(_texts(sweep, points, compared, files, terminal_columns(), details=details)))
        if options.plot is not None:
            _draw(sweep, points, options.plot)
        traces.write(sweep.predictions[0].trace)
        files.write(sweep.predictions)
        note_unused(context, application, [run.unused for run in applications])

    what = "time and rate" if application.about.rate is not None else "time"
    command.__doc__ = (
        f"Predicts the {what} of {application.about.summary}, with the 95 % prediction interval for one further run."
    )
    return command


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


def _completed(
    request: "PredictionRequest", applications: "Sequence[Application]", platform: "Platform", parts: bool | None
) -> "PredictionRequest":
    """With the number of runs, and whether the interval is broken down into its parts."""
    from lepaute.simulate.native import Native
    from lepaute.simulate.prediction.controls import usual_runs
    from lepaute.simulate.prediction.parts import are_free

    runs, fidelity = request.runs, request.simulated_fidelity
    if runs is None:
        runs = usual_runs(applications, Native(), fidelity)
    if parts and runs < 2:
        raise InputError("--parts is about an interval, and one run has none; give --runs 2 or more")
    if parts is None:
        parts = len(applications) == 1 and are_free(applications[0], platform, request.layers, runs, fidelity)
    return replace(request, runs=runs, parts=parts)


def _predicted(
    applications: "Sequence[Application]",
    simulation: Simulation,
    request: "PredictionRequest",
    others: list[Alternative],
) -> "tuple[Sweep, list[Compared]]":
    """The predictions, and what the first one is compared with."""
    from lepaute.simulate import predict_all
    from lepaute.simulate.prediction.sweep import Sweep

    platform = simulation.machine
    run_s = announced(applications, platform, request, _runs_besides(applications, platform, request))
    try:
        with progress_bar(BAR_AFTER_S) as tell:
            progress = partial(tell, "simulating")
            predictions = predict_all(applications, simulation.given_platform, request, progress=progress, run_s=run_s)
            compared = compared_with(predictions[0], others, tell) if others else []
            sweep = Sweep(tuple(predictions))
            sweep.repeat_references(tell)
    except KeyboardInterrupt:
        complain("interrupted")
        os._exit(INTERRUPTED)  # a normal exit would wait for the runs that are under way
    return sweep, compared


def _runs_besides(applications: "Sequence[Application]", platform: "Platform", request: "PredictionRequest") -> float:
    """What the parts of the interval, and to judge what extrapolation does to it, cost at most, in runs."""
    from lepaute.simulate.prediction import parts, trust

    shares = [application.on().simulated_share(request.simulated_fidelity) for application in applications]
    costs = [[trust.cost_in_runs(application, platform) for application in applications]]
    if request.parts:
        costs.append([parts.cost_in_runs(application, platform, request.layers) for application in applications])
    return sum(max(cost / share for cost, share in zip(each, shares, strict=True)) for each in costs)


def announced(
    applications: "Sequence[Application]", platform: "Platform", request: "PredictionRequest", extra_runs: float = 0.0
) -> list[float] | None:
    """Seconds that a run of each will take, where it matters; a long prediction is announced on standard error.

    extra_runs : that tell the parts of the interval, and what extrapolation does to it
    """
    from lepaute.simulate import conditions, tasks
    from lepaute.simulate.prediction import controls, predicting

    runs, fidelity = request.runs or 1, request.simulated_fidelity
    run_s = predicting.expected_run_s(applications, platform, runs=runs, mapping=request.mapping, fidelity=fidelity)
    if run_s is None:
        return None
    cores = tasks.available_cores()
    wall_s = tasks.estimated_wall_s(run_s, runs + extra_runs, cores)
    if wall_s > tasks.WORTH_MEASURING_S:
        priced_s = sum(controls.pricing_s(app, conditions.Conditions(platform)) for app in applications) / cores
        wall_s = (wall_s + priced_s) * tasks.slowdown(cores)
    if wall_s > tasks.WORTH_TELLING_S:
        count = len(applications)
        what = f"{counted(count, 'combination')} x {counted(runs, 'run')}" if count > 1 else counted(runs, "run")
        besides = ", and those that tell what the interval is made of" if extra_runs else ""
        announce(wall_s, f"{what} on {counted(cores, 'core')}{besides}")
    return run_s


def _content(
    sweep: "Sweep", points: "Sequence[ScalingPoint]", compared: Sequence[Compared], *, as_list: bool
) -> dict[str, Any]:
    """The JSON;  points : of several grids;  as_list : a single prediction, too."""
    objects = [prediction.to_dict() for prediction in sweep.predictions]
    if compared:
        objects[0]["differences"] = [other.to_dict() for other in compared]
    if len(objects) == 1 and not as_list:
        return objects[0]
    scaling = {"scaling": [point.to_dict() for point in points]} if points else {}
    return {"predictions": objects, **sweep.to_dict(), **scaling}


def _texts(
    sweep: "Sweep",
    points: "Sequence[ScalingPoint]",
    compared: Sequence[Compared],
    files: "Files",
    width: int,
    *,
    details: bool,
) -> list[str]:
    from lepaute.cli.prediction_answer import answered, answered_scaling, answered_sweep

    predictions = sweep.predictions
    if len(predictions) == 1:  # who asks for a difference reads it first
        differences = [other.text(width, details=details) for other in compared]
        besides = [other.prediction for other in compared]
        return [*differences, answered(predictions[0], width, besides=besides, details=details)]
    if points:
        return [answered_scaling(points, width, details=details)]
    report = files.report(predictions) if details and not any(files.outputs.values()) else None
    return [answered_sweep(sweep, width, details=details), *([] if report is None else [report])]


def _draw(sweep: "Sweep", points: "Sequence[ScalingPoint]", path: Path) -> None:
    from lepaute.simulate.prediction.plot import plot_scaling, plot_sweep

    if points:
        plot_scaling(points, path)
    elif len(sweep.predictions) > 1:
        plot_sweep(sweep, path)
    else:
        sweep.predictions[0].plot(path)

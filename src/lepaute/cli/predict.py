"""`lepaute predict NAME`: how long an application will take on a platform."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.option_fields import with_options_of
from lepaute.cli.output_options import Force
from lepaute.cli.predict_against import Against, alternatives
from lepaute.cli.simulation_options import (
    AsJson,
    Placement,
    PlatformName,
    Runs,
    Seed,
    Settings,
    TraceFiles,
    Uncertainty,
    applications_of,
    note,
    platform_of,
)
from lepaute.simulate.apps import APPLICATIONS, application_class

if TYPE_CHECKING:
    from lepaute.cli.predict_against import Compared
    from lepaute.platform import Platform
    from lepaute.simulate import Application, Layers, Mapping, Prediction
    from lepaute.simulate.application import Files
    from lepaute.simulate.prediction.sweep import ScalingPoint
    from lepaute.simulate.tracing import TraceRequest

BAR_AFTER_S = 2.0


def command_of(application: "type[Application]") -> Callable[..., None]:
    """The command that predicts an application: its options, its files, and what all commands have."""
    may_lack = tuple(application.__dataclass_fields__) if application.files.input_option else ()  # type: ignore[attr-defined]

    lists = application.files.several_in_file

    @with_options_of(application.files, "files")
    @with_options_of(application, "values", may_lack=may_lack, several="grid", make=dict, lists=lists)
    @with_options_of(Placement, "placement")
    @with_options_of(Uncertainty, "uncertainty")
    @with_options_of(TraceFiles, "traces")
    def command(
        context: typer.Context,
        platform: PlatformName,
        files: "Files",
        values: dict[str, Any],
        placement: Placement,
        uncertainty: Uncertainty,
        traces: TraceFiles,
        settings: Settings = None,
        runs: Runs = 10,
        seed: Seed = 1,
        fidelity: Annotated[str, typer.Option("--fidelity", help=listed(application.fidelities))] = "auto",
        against: Against = None,
        parts: Annotated[
            bool | None,
            typer.Option("--parts/--no-parts", help="what the interval is made of; where that is quick, unless given"),
        ] = None,
        as_json: AsJson = False,
        plot: Annotated[Path | None, typer.Option("--plot", help="a PNG of the runs, or of all combinations")] = None,
        force: Force = False,
    ) -> None:
        from lepaute.cli.progress import progress_bar
        from lepaute.kit.outputs import check_outputs
        from lepaute.platform import load_platform
        from lepaute.simulate import predict_all

        check_outputs(
            {**files.outputs, "--plot": plot, **traces.outputs},
            inputs=[platform, *files.inputs, *placement.inputs, *uncertainty.inputs],
            force=force,
        )
        layers, learnt = uncertainty.layers(), uncertainty.learnt()
        applications, from_file = applications_of(context, application, values, files)
        request = narrowed(traces.request(), applications)
        given_platform = load_platform(platform)
        machine, overrides = platform_of(given_platform, settings)
        mapping = placement.on(machine, applications[0].threads_per_rank)
        others = alternatives(against or [], applications, machine, settings, placement)
        simulated = "full" if request and fidelity == "auto" else fidelity
        parts = asked_parts(parts, applications, machine, layers, runs, simulated)
        extra_runs = runs_of_parts(applications, machine, layers, simulated) if parts else 0.0
        if runs > 1:
            extra_runs += runs_of_trust(applications, machine, simulated)
        run_s = announced(applications, machine, runs, mapping, simulated, extra_runs)
        try:
            with progress_bar(BAR_AFTER_S) as tell:
                predictions = predict_all(
                    applications,
                    given_platform,
                    runs=runs,
                    seed=seed,
                    layers=layers,
                    settings=overrides,
                    mapping=mapping,
                    fidelity=fidelity,
                    trace=request,
                    progress=lambda share: tell("simulating", share),
                    run_s=run_s,
                    parts=parts,
                    transfer=learnt,
                    lag_s=uncertainty.lag_s,
                )
                compared = [
                    other.compared(predictions[0], repeat, tell) for repeat, other in enumerate(others, start=1)
                ]
        except KeyboardInterrupt:
            complain("interrupted")
            os._exit(INTERRUPTED)  # a normal exit would wait for the runs that are under way
        points = points_of(predictions, from_file)
        print_results(predictions, points, compared, machine, files, as_json=as_json, as_list=from_file)
        if plot is not None:
            draw(predictions, points, plot)
        traces.write(predictions[0].trace)
        files.write(predictions)

    what = "time and rate" if application.rate is not None else "time"
    command.__doc__ = (
        f"Predicts the {what} of {application.summary}, with the 95 % prediction interval for one further run."
    )
    return command


def points_of(predictions: "Sequence[Prediction]", from_file: bool) -> "list[ScalingPoint]":
    """The predictions of several grids in relation to that on the fewest ranks; none for anything else."""
    from lepaute.simulate.prediction.sweep import scaling

    return scaling(predictions) if len(predictions) > 1 and not from_file else []


def print_results(
    predictions: "Sequence[Prediction]",
    points: "Sequence[ScalingPoint]",
    compared: "Sequence[Compared]",
    machine: "Platform",
    files: "Files",
    *,
    as_json: bool,
    as_list: bool,
) -> None:
    """The predictions on standard output; points : of several grids;  as_list : a single one in the JSON, too."""
    from lepaute.cli.predict_text import readable, summary
    from lepaute.cli.scaling_text import scaling_text
    from lepaute.simulate.prediction.sweep import Sweep

    if as_json:
        objects = [prediction.to_dict() for prediction in predictions]
        if compared:
            objects[0]["differences"] = [one.to_dict() for one in compared]
        several = {"predictions": objects, **Sweep(tuple(predictions)).to_dict()}
        if points:
            several["scaling"] = [point.to_dict() for point in points]
        json.dump(several if as_list or points else objects[0], sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif len(predictions) == 1:
        print(readable(predictions[0], machine))
        for one in compared:
            print(one.text())
    elif points:
        print(scaling_text(points))
    else:
        if not any(files.outputs.values()) and (report := files.report(predictions)) is not None:
            print(report)
        print(summary(predictions))


def draw(predictions: "Sequence[Prediction]", points: "Sequence[ScalingPoint]", path: Path) -> None:
    """The picture of one prediction, of several grids, or of all combinations."""
    from lepaute.simulate.prediction.plot import plot_scaling, plot_sweep

    if points:
        plot_scaling(points, path)
    elif len(predictions) > 1:
        plot_sweep(predictions, path)
    else:
        predictions[0].plot(path)


def listed(words: Sequence[str]) -> str:
    """In words: auto, full or sampled."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def narrowed(request: "TraceRequest | None", applications: "Sequence[Application]") -> "TraceRequest | None":
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


def asked_parts(
    given: bool | None,
    applications: "Sequence[Application]",
    machine: "Platform",
    layers: "Layers",
    runs: int,
    fidelity: str,
) -> bool:
    """Whether the parts of the interval are told; unless said, for a single combination whose parts cost little."""
    from lepaute.errors import InputError
    from lepaute.simulate.prediction.parts import are_free

    if given and runs < 2:
        raise InputError("--parts is about an interval, and one run has none; give --runs 2 or more")
    if given is not None:
        return given
    (application, *others) = applications
    return not others and are_free(application, machine, layers, runs, fidelity)


def runs_of_parts(applications: "Sequence[Application]", machine: "Platform", layers: "Layers", fidelity: str) -> float:
    """What the parts of each cost, at most, in runs of the prediction."""
    from lepaute.simulate.prediction.parts import cost_in_runs

    return max(cost_in_runs(each, machine, layers) / each.simulated_share(fidelity) for each in applications)


def runs_of_trust(applications: "Sequence[Application]", machine: "Platform", fidelity: str) -> float:
    """What it costs to judge what extrapolation does to each, at most, in runs of the prediction."""
    from lepaute.simulate.prediction.trust import cost_in_runs

    return max(cost_in_runs(each, machine) / each.simulated_share(fidelity) for each in applications)


def announced(
    applications: "Sequence[Application]",
    machine: "Platform",
    runs: int,
    mapping: "Mapping",
    fidelity: str,
    extra_runs: float,
) -> list[float] | None:
    """Seconds that a run of each will take, where it matters; a long prediction is announced on standard error.

    extra_runs : that tell the parts of the interval, and what extrapolation does to it
    """
    from lepaute.kit.text import duration
    from lepaute.simulate.prediction.predicting import expected_run_s
    from lepaute.simulate.tasks import WORTH_TELLING_S, available_cores, estimated_wall_s

    run_s = expected_run_s(applications, machine, runs=runs, mapping=mapping, fidelity=fidelity)
    if run_s is None:
        return None
    cores = available_cores()
    wall_s = estimated_wall_s(run_s, runs + extra_runs, cores)
    if wall_s > WORTH_TELLING_S:
        count = len(applications)
        what = f"{count} combination(s) x {runs} run(s)" if count > 1 else f"{runs} run(s)"
        besides = ", and those that tell what the interval is made of" if extra_runs else ""
        note(f"lepaute: this will take about {duration(wall_s)}: {what} on {cores} core(s){besides}")
    return run_s


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command group: with the one application that the arguments name, or with all."""
    app = typer.Typer(help="How long an application will take on a platform.")
    app.callback()(lambda: None)
    names = [name for name in arguments[:1] if name in APPLICATIONS] or APPLICATIONS
    for name in names:
        app.command(name)(command_of(application_class(name)))
    return app

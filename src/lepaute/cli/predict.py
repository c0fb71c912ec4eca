"""`lepaute predict NAME`: how long an application will take on a platform, and with one thing changed."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_type_hints

import typer

from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.options import FORCE_HELP, App, Details, Flag, flags_of, with_options_of
from lepaute.cli.simulation import Placement, Simulation, TraceFiles, applications_of, platform_of
from lepaute.cli.terminal import BAR_AFTER_S, announce, answer_text, details_text, json_text, note, progress_bar
from lepaute.errors import InputError
from lepaute.kit.options import option_field, options_of
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of
from lepaute.kit.printable import terminal_columns
from lepaute.kit.text import counted
from lepaute.simulate.apps import APPLICATIONS, application_class
from lepaute.simulate.apps.own.loading import loaded, names_a_class
from lepaute.simulate.prediction.warnings import BLOCK_SIZES_GUESSED, caveats

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Application, Mapping, Prediction
    from lepaute.simulate.application import Fidelity, Files
    from lepaute.simulate.prediction.comparing import Difference
    from lepaute.simulate.prediction.sweep import ScalingPoint
    from lepaute.simulate.tracing import TraceRequest


@dataclass(frozen=True)
class PredictOptions:
    """What the command tells besides the prediction, and how."""

    against: list[str] | None = option_field(
        None, "FIELD=VALUE: also with this parameter, such as nb=256, or platform=NAME, and the ratio"
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
        own = loaded(arguments[0])
        others = (Simulation, Placement, TraceFiles, PredictOptions)
        taken = {each.argument for options in others for each in flags_of(options)} | {"fidelity", "details"}
        if both := sorted(taken & set(options_of(own))):
            raise InputError(f"{own.title}.{both[0]}: lepaute predict has an option of that name; give it another one")
        app.command(arguments[0])(command_of(own))
        return app
    for name in [name for name in arguments[:1] if name in APPLICATIONS] or APPLICATIONS:
        app.command(name)(command_of(application_class(name)))
    return app


def command_of(application: "type[Application]") -> Callable[..., None]:
    """The command that predicts an application: its options, its files, and what all commands have."""
    may_lack = tuple(application.__dataclass_fields__) if application.files.input_option else ()  # type: ignore[attr-defined]
    lists = application.files.several_in_file
    *fidelities, last = application.fidelities

    @with_options_of(application.files, "files")
    @with_options_of(application, "values", may_lack=may_lack, several=application.several, make=dict, lists=lists)
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

    what = "time and rate" if application.rate is not None else "time"
    command.__doc__ = (
        f"Predicts the {what} of {application.summary}, with the 95 % prediction interval for one further run."
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

    request = _narrowed(traces.request(), applications)
    machine = simulation.read()
    mapping = placement.on(machine, applications[0].threads_per_rank)
    others = alternatives(options.against or [], applications, simulation, placement)
    simulated = "full" if request and fidelity == "auto" else fidelity
    runs = usual_runs(applications, Native(), simulated) if simulation.runs is None else simulation.runs
    simulation = replace(simulation, runs=runs)
    parts = _tells_parts(options.parts, applications, simulation, runs, simulated)
    extra_runs = _runs_besides(applications, simulation, runs, simulated, parts=parts)
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
            compared = [other.compared(predictions[0], repeat, tell) for repeat, other in enumerate(others, start=1)]
    except KeyboardInterrupt:
        complain("interrupted")
        os._exit(INTERRUPTED)  # a normal exit would wait for the runs that are under way
    problems, ranks = ({getattr(each, of) for each in applications} for of in ("problem", "ranks"))
    points: list[ScalingPoint] = []
    if len(problems) == 1 and len(ranks) > 1 and not from_file:
        from lepaute.simulate.prediction.sweep import scaling

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
    applications: "Sequence[Application]", simulation: Simulation, runs: int, fidelity: str, *, parts: bool
) -> float:
    """What the parts of the interval, and to judge what extrapolation does to it, cost at most, in runs."""
    from lepaute.simulate.prediction import parts as interval_parts
    from lepaute.simulate.prediction import trust

    machine, layers = simulation.machine, simulation.layers()
    besides = 0.0
    if parts:
        besides += max(
            interval_parts.cost_in_runs(each, machine, layers) / each.simulated_share(fidelity) for each in applications
        )
    if runs > 1:
        besides += max(trust.cost_in_runs(each, machine) / each.simulated_share(fidelity) for each in applications)
    return besides


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
    from lepaute.simulate.prediction.predicting import expected_run_s
    from lepaute.simulate.tasks import WORTH_TELLING_S, available_cores, estimated_wall_s

    run_s = expected_run_s(applications, machine, runs=runs, mapping=mapping, fidelity=fidelity)
    if run_s is None:
        return None
    cores = available_cores()
    wall_s = estimated_wall_s(run_s, runs + extra_runs, cores)
    if wall_s > WORTH_TELLING_S:
        count = len(applications)
        what = f"{counted(count, 'combination')} x {counted(runs, 'run')}" if count > 1 else counted(runs, "run")
        besides = ", and those that tell what the interval is made of" if extra_runs else ""
        announce(wall_s, f"{what} on {counted(cores, 'core')}{besides}")
    return run_s


def _print_as_json(
    predictions: "Sequence[Prediction]",
    points: "Sequence[ScalingPoint]",
    compared: "Sequence[Compared]",
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
    compared: "Sequence[Compared]",
    machine: "Platform",
    files: "Files",
    *,
    details: bool,
) -> list[str]:
    from lepaute.cli.prediction_answer import answered, answered_scaling, answered_sweep

    width = terminal_columns(sys.stdout)
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

    if points:
        plot_scaling(points, path)
    elif len(predictions) > 1:
        plot_sweep(predictions, path)
    else:
        predictions[0].plot(path)


@dataclass(frozen=True)
class Alternative:
    """The run with one thing changed.

    field : as the command line has it;  value, before : as a person reads them
    """

    field: str
    value: str
    before: str
    application: "Application"
    platform: "Platform"
    mapping: "Mapping"

    @property
    def name(self) -> str:
        """In words: nb 256 against 128."""
        return f"{self.field} {self.value} against {self.before}"

    def compared(self, reference: "Prediction", repeat: int, tell: Callable[[str, float], None]) -> "Compared":
        """Predicts it under the conditions of `reference`, as run `repeat` of each day."""
        from lepaute.simulate import difference, predict

        assert reference.conditions is not None
        prediction = predict(
            self.application,
            self.platform,
            runs=len(reference.run_list),
            seed=reference.seed,
            layers=reference.conditions.layers,
            applied=reference.settings,
            mapping=self.mapping,
            fidelity=reference.conditions.fidelity,
            repeat=repeat,
            transfer=reference.conditions.transfer,
            progress=lambda share: tell(f"simulating {self.name}", share),
        )
        return Compared(self, difference(reference, prediction), prediction, reference)


@dataclass(frozen=True)
class Compared:
    """An alternative and what came of it, beside the reference."""

    alternative: Alternative
    difference: "Difference"
    prediction: "Prediction"
    reference: "Prediction"

    def text(self, width: int, *, details: bool = False) -> str:
        """What a person reads on a terminal of `width` columns."""
        alternative, text = self.alternative, self.difference.text
        if not self.difference.shared:
            text += "; models fitted apart, so that no errors cancel"
        if not self.comparable:
            doubtful = self.reference if self.prediction.comparable else self.prediction
            value = alternative.value if doubtful is self.prediction else alternative.before
            text += f"; not comparable, at {value} {'; '.join(doubtful.trust.reasons)}"
        if not details:
            return answer_text(f"{alternative.name}: {text}", (), self.caveats, width)
        warnings = [f"  warning: {alternative.field} {alternative.value}: {caveat}" for caveat in self.caveats]
        return details_text(f"{alternative.name}: {text}", "\n".join(warnings), width).rstrip("\n")

    @property
    def caveats(self) -> list[str]:
        """What a reader of the difference must know besides the warnings of the reference."""
        joint = caveats([self.reference, self.prediction])
        further = [warning for warning in self.prediction.warnings if warning not in self.reference.warnings]
        return further + [caveat for caveat in joint if caveat == BLOCK_SIZES_GUESSED]

    @property
    def comparable(self) -> bool:
        """Whether both are."""
        return self.prediction.comparable and self.reference.comparable

    def to_dict(self) -> dict[str, Any]:
        """An entry of `differences` in the JSON."""
        alternative = self.alternative
        return {
            "field": alternative.field,
            "value": alternative.value,
            "against": alternative.before,
            **self.difference.to_dict(),
            "comparable": self.comparable,
            "trust": self.prediction.trust.to_dict(),
            "caveats": self.caveats,
            "time_s": self.prediction.time_s.to_dict(),
        }


def alternatives(
    texts: Sequence[str], applications: "Sequence[Application]", simulation: Simulation, placement: Placement
) -> list[Alternative]:
    """The runs that --against asks for, checked before anything is simulated.

    Raises InputError for a field or value that cannot be, or where several combinations are predicted.
    """
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.prediction.predicting import usual_engine

    if texts and len(applications) > 1:
        raise InputError(f"--against compares one combination with others, and there are {len(applications)}; give one")
    result = []
    for text in texts:
        name, separator, value = text.partition("=")
        field = name.strip().removeprefix("--").replace("_", "-")
        if not separator or not field or not value:
            raise InputError(f"--against {text[:80]!r}: write FIELD=VALUE, such as nb=256 or platform=NAME")
        try:
            if field == "platform":
                other = _on_platform(value, applications[0], simulation, placement)
            else:
                other = _with_value(field, value, applications[0], simulation.machine, placement)
            conditions = Conditions(other.platform, mapping=other.mapping)
            usual_engine(other.application).on(conditions).prepare(other.application)
        except InputError as error:
            raise InputError(f"--against {text[:80]}: {error}") from None
        result.append(other)
    return result


def _on_platform(name: str, application: "Application", simulation: Simulation, placement: Placement) -> Alternative:
    machine, (other, _) = simulation.machine, platform_of(name, simulation.settings)
    if other.sha256 == machine.sha256:
        raise InputError("that is the platform already; give another one")
    shown = other.name if other.name != machine.name else name
    mapping = placement.on(other, application.threads_per_rank)
    return Alternative("platform", shown, machine.name, application, other, mapping)


def _with_value(
    field: str, value: str, application: "Application", machine: "Platform", placement: Placement
) -> Alternative:
    flags = {flag.name.removeprefix("--").partition("/")[0]: flag for flag in flags_of(type(application))}
    if field not in flags:
        raise InputError(f"{application.title} has no parameter {field[:80]!r}; give {', '.join(flags)} or platform")
    flag = flags[field]
    values = flag.values(_converted(flag, value, type(application)))
    changed: Application = replace(application, **values)  # type: ignore[type-var]
    if changed == application:
        raise InputError(f"{field} has that value already; give another one")
    mapping = placement.on(machine, changed.threads_per_rank)
    return Alternative(field, _shown(flag, changed), _shown(flag, application), changed, machine, mapping)


def _converted(flag: Flag, text: str, application: type) -> Any:
    """The text as the command line would have converted it for this option."""
    if flag.is_text:
        return text
    hint = flag.option.given_as or get_type_hints(application)[flag.fields[0].name]
    type_ = next((part for part in get_args(hint) if part is not type(None)), hint)
    if type_ is bool:
        if text not in ("yes", "no"):
            raise InputError(f"{flag.name} is {text[:80]!r}; it is yes or no")
        return text == "yes"
    try:
        return type_(text) if type_ in (int, float, Path) else text
    except ValueError:
        number = "whole number" if type_ is int else "number"
        raise InputError(f"{flag.name} is {text[:80]!r}; it must be a {number}") from None


def _shown(flag: Flag, application: "Application") -> str:
    values = [getattr(application, field.name) for field in flag.fields]
    if isinstance(values[0], tuple):
        values = list(values[0])
    return "x".join(("no", "yes")[value] if isinstance(value, bool) else str(value) for value in values)

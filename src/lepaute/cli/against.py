"""`--against FIELD=VALUE` of `predict` and `emulate`: the run with one thing changed, and the ratio."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_type_hints

from lepaute.cli.options import Flag, flags_of
from lepaute.cli.simulation import Placement, Simulation, platform_of, read_measured
from lepaute.cli.terminal import answer_text, details_text
from lepaute.errors import InputError
from lepaute.simulate.apps.replay.collectives import AUTO, MeasuredCalls, MeasuredFile, collectives_of, library_of
from lepaute.simulate.prediction.warnings import BLOCK_SIZES_GUESSED, caveats
from lepaute.simulate.prediction.wording import span_of

if TYPE_CHECKING:
    from lepaute.simulate import Application, Mapping, Prediction
    from lepaute.simulate.engine import Engine
    from lepaute.simulate.platform import Platform
    from lepaute.simulate.prediction.comparing import Difference


@dataclass(frozen=True)
class Alternative:
    """The run with one thing changed: a field, as the command line has it; value, before : as a person reads them."""

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

    def needs_other_noise(self, reference: "Prediction") -> bool:
        """Whether `reference` has to be simulated once more to be compared with this."""
        from lepaute.simulate.prediction.comparing import Pairing

        assert reference.conditions is not None
        conditions = replace(reference.conditions, platform=self.platform)
        return Pairing.of(reference.application, reference.conditions, self.application, conditions).needs_other_noise

    def compared(
        self, reference: "Prediction", progress: Callable[[float], None], engine: "Engine | None" = None
    ) -> "Compared":
        """Predicts it under the conditions of `reference`; engine: None: the usual one."""
        from lepaute.simulate import difference, predict_all

        assert reference.request is not None
        request = reference.request.like(reference.settings, mapping=self.mapping, engine=engine)
        (prediction,) = predict_all([self.application], self.platform, request, progress=progress)
        return Compared(self, difference(reference, prediction), prediction, reference)


def compared_with(
    reference: "Prediction",
    others: Sequence[Alternative],
    tell: Callable[[str, float], None],
    engine: "Engine | None" = None,
) -> "list[Compared]":
    """All of them; tell : called with what is simulated, and the share of all that is done."""
    from lepaute.simulate.prediction.predicting import repeated

    again = any(other.needs_other_noise(reference) for other in others)
    steps = len(others) + again

    def progress(at: int, what: str) -> Callable[[float], None]:
        return lambda share: tell(f"simulating {what}", (at + share) / steps)

    if again:
        repeated(reference, progress(0, "the run once more, with other noise"))
    return [other.compared(reference, progress(at, other.name), engine) for at, other in enumerate(others, start=again)]


@dataclass(frozen=True)
class Compared:
    """An alternative and what came of it, beside the reference."""

    alternative: Alternative
    difference: "Difference"
    prediction: "Prediction"
    reference: "Prediction"

    def text(self, width: int, *, details: bool = False) -> str:
        """What a person reads on a terminal of `width` columns; its caveats only with details."""
        alternative, text = self.alternative, f"{self.difference.text}, {span_of(self.prediction.time_s)}"
        if not self.difference.shared:
            text += "; models fitted apart, so that no errors cancel"
        if not self.comparable:
            doubtful = self.reference if self.prediction.comparable else self.prediction
            value = alternative.value if doubtful is self.prediction else alternative.before
            text += f"; not comparable, at {value} {'; '.join(doubtful.trust.reasons)}"
        if not details:
            return answer_text(f"{alternative.name}: {text}", (), (), width)
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
        return self.prediction.comparable and self.reference.comparable

    def to_dict(self) -> dict[str, Any]:
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
    texts: Sequence[str],
    applications: "Sequence[Application]",
    simulation: Simulation,
    placement: Placement,
    described: Any = None,
) -> list[Alternative]:
    """The runs that --against asks for, checked before anything is simulated.

    described : the application in the words of the command line, where it is not that itself (`ProgramRun`)
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
            elif field == "mapping":
                application = applications[0]
                before = placement.on(simulation.machine, application.threads_per_rank)
                after = Placement(value, placement.mapping_seed).on(simulation.machine, application.threads_per_rank)
                if after == before:
                    raise InputError("that is the mapping already; give another one")
                files = placement.rankfile or placement.hostfile
                shown = placement.mapping if files is None else files.name
                other = Alternative("mapping", value.casefold(), shown, application, simulation.machine, after)
            elif "." in field:
                other = _set(name.strip(), value, applications[0], simulation.machine, placement)
            else:
                other = _with_value(field, value, described or applications[0], simulation.machine, placement)
            conditions = Conditions(other.platform, mapping=other.mapping)
            usual_engine(other.application).on(conditions).prepare(other.application)
        except InputError as error:
            raise InputError(f"--against {text[:80]}: {error}") from None
        result += [other, *_operation_by_operation(applications[0], other)]
    return result


def _on_platform(name: str, application: "Application", simulation: Simulation, placement: Placement) -> Alternative:
    machine, (other, _) = simulation.machine, platform_of(name, simulation.settings)
    if other.sha256 == machine.sha256:
        raise InputError("that is the platform already; give another one")
    shown = other.name if other.name != machine.name else name
    mapping = placement.on(other, application.threads_per_rank)
    return Alternative("platform", shown, machine.name, application, other, mapping)


def _set(field: str, value: str, application: "Application", machine: "Platform", placement: Placement) -> Alternative:
    from lepaute.simulate.platform import override

    other = override(machine, {field: value})
    if other.sha256 == machine.sha256:
        raise InputError("the platform has that value already; give another one")
    mapping = placement.on(other, application.threads_per_rank)
    return Alternative(field, value, "the unchanged platform", application, other, mapping)


def _with_value(field: str, value: str, described: Any, machine: "Platform", placement: Placement) -> Alternative:
    before = _application(described)
    flags = {flag.name.removeprefix("--").partition("/")[0]: flag for flag in flags_of(type(described))}
    if field not in flags:
        known = f"{', '.join(flags)}, platform, mapping or a field of the platform"
        raise InputError(f"{before.title} has no parameter {field[:80]!r}; give {known}")
    flag = flags[field]
    changed = replace(described, **read_measured(flag.values(flag.converted(value, get_type_hints(type(described))))))
    if changed == described:
        raise InputError(f"{field} has that value already; give another one")
    application = _application(changed)
    mapping = placement.on(machine, application.threads_per_rank)
    return Alternative(field, _shown(flag, changed), _shown(flag, described), application, machine, mapping)


def _application(described: Any) -> "Application":
    from lepaute.simulate import Application

    application: Application = described if isinstance(described, Application) else described.application
    return application


def _shown(flag: Flag, described: Any) -> str:
    values = [getattr(described, field.name) for field in flag.fields]
    if isinstance(values[0], tuple):
        values = list(values[0])
    if values == [None]:
        return "the default"
    return "x".join(("no", "yes")[value] if isinstance(value, bool) else str(value) for value in values)


def both_measured(applications: "list[Application]", against: Sequence[str]) -> "tuple[list[Application], list[str]]":
    """A replay, and the texts of --against, where one names an archive: both are of measured calls then, that of the
    recording's library, as far as the archive has it, and that of the other one."""
    texts = list(against)
    for at, text in enumerate(texts):
        name, _, value = text.partition("=")
        known = name.strip() == "collectives" and len(applications) == 1 and hasattr(applications[0], "collectives")
        file = collectives_of(value) if known and ".zip" in value else None
        if not isinstance(file, MeasuredFile):
            continue
        from lepaute.measure.archive import Archive
        from lepaute.measure.archive.mpi_campaign import facts

        replayed: Any = applications[0]
        libraries = facts(Archive.open(file.path)).libraries
        recorded = library_of(replayed.recorded_with)
        same = [library.label for library in libraries if library_of(library.family) == recorded]
        first, *others = sorted((library.label for library in libraries), key=lambda label: label not in same)
        if file.library and file.library == first:
            first, others = others[0] if others else first, [first]
        if not file.library and len(others) != 1:
            raise InputError(f"--against {text[:80]}: name one of {', '.join(others)}: {file.path}:LIBRARY")
        texts[at] = f"collectives={file.path}:{file.library or others[0]}"
        if replayed.collectives == AUTO:
            calls = read_measured({"collectives": MeasuredFile(file.path, first)})
            applications = [replace(replayed, **calls)]
    return applications, texts


def _operation_by_operation(reference: Any, other: Alternative) -> list[Alternative]:
    """Where both are replays that take the measured calls of two libraries, of several operations: the reference with a
    single one of the other library."""
    before, after = (getattr(replay, "collectives", None) for replay in (reference, other.application))
    if not (isinstance(before, MeasuredCalls) and isinstance(after, MeasuredCalls)):
        return []
    measured = {call.code for call in before.calls} & {call.code for call in after.calls}
    codes = [code for code in reference.operations if code in measured]
    replays = [replace(reference, collectives=before.except_for(code, after)) for code in codes if len(codes) > 1]
    return [replace(other, application=replay, value=str(replay.collectives)) for replay in replays]

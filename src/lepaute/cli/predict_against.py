"""`lepaute predict --against FIELD=VALUE`: the same run with one thing changed, and how much longer it takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from lepaute.cli.option_fields import Flag, flags_of
from lepaute.cli.simulation_options import Placement, platform_of
from lepaute.simulate.prediction.warnings import BLOCK_SIZES_GUESSED, caveats

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Application, Mapping, Prediction
    from lepaute.simulate.prediction.comparing import Difference

Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against", help="FIELD=VALUE: also with this parameter, such as nb=256, or platform=NAME, and the ratio"
    ),
]
PLATFORM = "platform"


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
        before = frozenset(reference.warnings)
        return Compared(self, difference(reference, prediction), prediction, before, reference)


@dataclass(frozen=True)
class Compared:
    """An alternative and what came of it.

    warned : warnings of the reference, which are not repeated;  reference : what it is compared with
    """

    alternative: Alternative
    difference: "Difference"
    prediction: "Prediction"
    warned: frozenset[str]
    reference: "Prediction"

    def text(self) -> str:
        """What a person reads."""
        alternative = self.alternative
        apart = "" if self.difference.shared else "; models fitted apart, so that no errors cancel"
        lines = [f"  {alternative.name}: {self.difference.text}{apart}{self._not_comparable}"]
        lines += [f"  warning: {alternative.field} {alternative.value}: {each}" for each in self.caveats]
        return "\n".join(lines)

    @property
    def caveats(self) -> list[str]:
        """What a reader of the difference must know besides the warnings of the reference."""
        joint = caveats([self.reference, self.prediction])
        own = [each for each in self.prediction.warnings if each not in self.warned]
        return own + [each for each in joint if each == BLOCK_SIZES_GUESSED]

    @property
    def _not_comparable(self) -> str:
        if self.comparable:
            return ""
        which = next(one for one in (self.prediction, self.reference) if not one.comparable)
        what = self.alternative.value if which is self.prediction else self.alternative.before
        return f"; not comparable, at {what} {'; '.join(which.trust.reasons)}"

    @property
    def comparable(self) -> bool:
        """Whether both are."""
        return self.prediction.comparable and self.reference.comparable

    def to_dict(self) -> dict[str, Any]:
        """An entry of `differences` in the JSON."""
        alternative = self.alternative
        of = {"field": alternative.field, "value": alternative.value, "against": alternative.before}
        return (
            of
            | self.difference.to_dict()
            | {
                "comparable": self.comparable,
                "trust": self.prediction.trust.to_dict(),
                "caveats": self.caveats,
                "time_s": self.prediction.time_s.to_dict(),
            }
        )


def alternatives(
    texts: Sequence[str],
    applications: "Sequence[Application]",
    machine: "Platform",
    settings: list[str] | None,
    placement: Placement,
) -> list[Alternative]:
    """The runs that --against asks for, checked before anything is simulated.

    settings : of the command line; another platform gets them too
    Raises InputError for a field or value that cannot be, or where several combinations are predicted.
    """
    from lepaute.errors import InputError

    if texts and len(applications) > 1:
        raise InputError(f"--against compares one combination with others, and there are {len(applications)}; give one")
    return [_alternative(text, applications[0], machine, settings, placement) for text in texts]


def _alternative(
    text: str, application: "Application", machine: "Platform", settings: list[str] | None, placement: Placement
) -> Alternative:
    from lepaute.errors import InputError
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.prediction.predicting import usual_engine

    name, separator, value = text.partition("=")
    field = name.strip().removeprefix("--").replace("_", "-")
    if not separator or not field or not value:
        raise InputError(f"--against {text[:80]!r}: write FIELD=VALUE, such as nb=256 or platform=NAME")
    try:
        if field == PLATFORM:
            found = _elsewhere(value, application, machine, settings, placement)
        else:
            found = _changed(field, value, application, machine, placement)
        usual_engine(found.application).on(Conditions(found.platform, mapping=found.mapping)).prepare(found.application)
    except InputError as error:
        raise InputError(f"--against {text[:80]}: {error}") from None
    return found


def _elsewhere(
    name: str, application: "Application", machine: "Platform", settings: list[str] | None, placement: Placement
) -> Alternative:
    """The same on another platform, with the same settings."""
    from lepaute.errors import InputError

    other, _ = platform_of(name, settings)
    if other.sha256 == machine.sha256:
        raise InputError("that is the platform already; give another one")
    shown = other.name if other.name != machine.name else name
    mapping = placement.on(other, application.threads_per_rank)
    return Alternative(PLATFORM, shown, machine.name, application, other, mapping)


def _changed(
    field: str, value: str, application: "Application", machine: "Platform", placement: Placement
) -> Alternative:
    """The same with another value of one parameter."""
    from lepaute.errors import InputError

    flags = {flag.name.removeprefix("--").partition("/")[0]: flag for flag in flags_of(type(application))}
    if field not in flags:
        raise InputError(f"{application.title} has no parameter {field[:80]!r}; give {', '.join(flags)} or platform")
    flag = flags[field]
    values = flag.values(_given(flag, value, type(application)))
    changed: Application = replace(application, **values)  # type: ignore[type-var]
    if changed == application:
        raise InputError(f"{field} has that value already; give another one")
    mapping = placement.on(machine, changed.threads_per_rank)
    return Alternative(field, _shown(flag, changed), _shown(flag, application), changed, machine, mapping)


def _given(flag: Flag, text: str, application: type) -> Any:
    """The text as the command line would have converted it for this option."""
    from lepaute.errors import InputError

    if len(flag.fields) > 1 or flag.option.parse is not None:
        return text
    hint = flag.option.given_as or get_type_hints(application)[flag.fields[0].name]
    kind = next((one for one in get_args(hint) if one is not type(None)), hint)
    if kind is bool:
        if text not in ("yes", "no"):
            raise InputError(f"{flag.name} is {text[:80]!r}; it is yes or no")
        return text == "yes"
    try:
        return kind(text) if kind in (int, float, Path) else text
    except ValueError:
        raise InputError(
            f"{flag.name} is {text[:80]!r}; it must be a {'whole ' if kind is int else ''}number"
        ) from None


def _shown(flag: Flag, application: "Application") -> str:
    values = [getattr(application, field.name) for field in flag.fields]
    if isinstance(values[0], tuple):
        values = list(values[0])
    return "x".join(("no", "yes")[value] if isinstance(value, bool) else str(value) for value in values)

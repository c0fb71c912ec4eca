"""What single fields of a study file hold: numbers, levels, paths, formulas, times, and the class of its mappings."""

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from lepaute.errors import InputError
from lepaute.kit.expressions import Expression
from lepaute.kit.notebook import Listed, Public
from lepaute.kit.quantities import lag_of
from lepaute.study.evaluation import Point

#: What a factor's path may begin with.
ROOTS = ("application", "platform", "population", "scale", "noise", "mapping")


def fault(problem: str, *at: str | int) -> PydanticCustomError:
    """An error of the value under validation; `at` leads to the field at fault."""
    return PydanticCustomError("fault", "{problem}", {"problem": problem, "at": list(at)})


def _plain_number(value: object) -> object:
    if isinstance(value, bool):
        raise fault(f"is {str(value).lower()}; a number is expected")
    if isinstance(value, str):  # PyYAML reads 1e-6, for want of a dot, as a text
        try:
            return float(value)
        except ValueError:
            raise fault(f"is {value[:60]!r}; a number is expected") from None
    return value


def _level(value: object) -> object:
    if isinstance(value, str | int | float | bool) or value is None:
        return Point({"level": value})["level"]
    raise fault(f"is {value!r:.60}; a level is a number, a text, true, false or null (scenarios take any value)")


def _path(text: str) -> str:
    root, _, inner = text.replace("[", ".").partition(".")
    if root not in ROOTS or len(text) > 200 or (not inner and root != "platform"):
        known = ", ".join(f"{each}.…" for each in ROOTS)
        raise fault(f"is {text[:80]!r}; a path begins with {known}")
    return text


def _expression(text: str) -> str:
    try:
        Expression(text)
    except InputError as error:
        raise fault(str(error)) from None
    return text


def _lag(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise fault(f"is {value!r:.60}; it is a time such as 90s, 30min, 2h or 3d")
    try:
        lag_of(str(value))
    except InputError:
        raise fault(f"is {str(value)[:60]!r}; it is a time such as 90s, 30min, 2h or 3d") from None
    return str(value)


Real = Annotated[float, BeforeValidator(_plain_number)]
Positive = Annotated[Real, Field(gt=0)]
_Nodes = Annotated[int, Field(ge=1)]
#: How many nodes a machine has, or how many of each group, by its name.
NodeNumbers = _Nodes | Annotated[dict[Annotated[str, Field(max_length=60)], _Nodes], Field(min_length=1)]
Level = Annotated[Any, AfterValidator(_level)]
Lag = Annotated[str, BeforeValidator(_lag)]
FieldPath = Annotated[str, AfterValidator(_path)]
#: By path; a scenario that sets nothing may be written as `name:`.
Fields = Annotated[dict[FieldPath, Any], BeforeValidator(lambda value: {} if value is None else value)]
Formula = Annotated[str, AfterValidator(_expression)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,79}$")]


class _ListedModel(Listed, type(BaseModel)):  # type: ignore[misc]  # Pydantic's metaclass has no public name
    pass


class Value(Public, BaseModel, metaclass=_ListedModel):  # type: ignore[metaclass]  # as above
    """What all values of a study file share: they do not change, know all their fields, and hold finite numbers."""

    _unlisted: ClassVar[frozenset[str]] = frozenset(name for name in dir(BaseModel) if not name.startswith("_"))
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

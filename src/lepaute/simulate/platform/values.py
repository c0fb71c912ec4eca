"""What all values of a platform are made of: numbers with their limits, terms, covariances, modes, and refusals."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, dataclass_transform

from annotated_types import Ge, Gt, Le, Len

from lepaute.kit.notebook import Public

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema, PydanticCustomError

#: Nodes, or switches: more would take gigabytes and minutes to join, whatever runs on them.
MAX_NODES = 200_000
#: Cores of all nodes together.
MAX_CORES = 1 << 24
#: Cables of a topology.
MAX_CABLES = 4_000_000
MAX_MODES = 8
#: How exactly weights must add up to 1, the mean of modes to 0 and their variance to 1.
TOLERANCE = 1e-6


def fault(problem: str, *at: str | int, remedy: str = "Correct the value.") -> "PydanticCustomError":
    """An error whose text is `problem` (what is wrong, after the field's path) and `remedy`; `at` leads from the value
    under validation down to the field at fault."""
    from pydantic_core import PydanticCustomError

    return PydanticCustomError("fault", "{problem}. {remedy}", {"problem": problem, "remedy": remedy, "at": list(at)})


def refuse_twice(items: Iterable[object], noun: str, *at: str | int) -> None:
    """Raises the fault, at the field `at`, of items of which two are equal."""
    items = list(items)
    if len(set(items)) < len(items):
        raise fault(f"has the same {noun} twice", *at, remedy="Remove one.")


def _plain_number(value: object) -> object:
    # True is 1.0 to pydantic, and a YAML "yes" in the place of a number is never meant as one.
    if isinstance(value, bool):
        raise fault(f"is {str(value).lower()}; a number is expected")
    return value


def _each_term_once(polynomial: object) -> object:
    # 1, "1" and 0x1 are different keys to YAML
    terms = list(map(constant_term, polynomial)) if isinstance(polynomial, dict) else []
    twice = next((term for position, term in enumerate(terms) if term in terms[:position]), None)
    if twice is not None:
        raise fault(f"has the term {twice} twice", remedy="Remove one.")
    return polynomial


def constant_term(value: object) -> object:
    """The term itself; "1" for 1, as which YAML reads the key of the constant term where it is not quoted."""
    return "1" if value == 1 and not isinstance(value, bool) else value


def validate_term(term: str) -> str:
    """`term` itself.  Raises the fault of a term with other letters than m, n, k, or not in their order."""
    letters = "".join(sorted(term, key="mnk".find))
    if term != "1" and (not term or any(letter not in "mnk" for letter in term)):
        unknown = sorted(set(term) - set("mnk"))
        what = f"has the unknown letter{'s' * (len(unknown) > 1)} {', '.join(unknown)}" if unknown else "is empty"
        raise fault(
            f"is not a term: it {what}; a term is a product of m, n and k such as mnk or nn, or 1",
            remedy="Correct the term.",
        )
    if term != letters:
        raise fault(f"is the term {letters} with its letters out of order", remedy=f"Write {letters}.")
    return term


def _ordered(bounds: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= bounds[0] <= bounds[1] <= MAX_COUNTED:
        found = ", ".join(str(bound)[:40] for bound in bounds)
        raise fault(f"is [{found}]; bounds must be [low, high] with 0 <= low <= high < 2^63")
    return bounds


@dataclass(frozen=True)
class Check:
    """A part of an annotation: what Pydantic checks besides the type.

    before, after : called with the value before and after its type is checked; they return it
    pattern : regular expression of a text
    """

    after: Callable[[Any], Any] | None = None
    before: Callable[[Any], Any] | None = None
    pattern: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core.core_schema import no_info_after_validator_function, no_info_before_validator_function

        schema = handler(source)
        if self.pattern is not None:
            schema = {**schema, "pattern": self.pattern}
        if self.after is not None:
            schema = no_info_after_validator_function(self.after, schema)
        return schema if self.before is None else no_info_before_validator_function(self.before, schema)


#: -0.0 predicts what 0.0 does, and is not to have another digest.
Number = Annotated[float, Check(before=_plain_number, after=lambda value: value + 0.0)]
NonNegative = Annotated[Number, Ge(0)]
Positive = Annotated[Number, Gt(0)]
#: The engine has 64 bits for a count.
MAX_COUNTED = 2**63 - 1
Count = Annotated[int, Ge(1), Le(MAX_COUNTED)]
#: So many numbers are drawn for an effect of Student's distribution (core/models/machine.hpp).
DegreesOfFreedom = Annotated[int, Ge(1), Le(1_000_000)]
NodeCount = Annotated[int, Ge(1), Le(MAX_NODES)]
CoreCount = Annotated[int, Ge(1), Le(65_536)]
#: A product of parameters: "mnk", "mn", "nn", ..., or "1" for the constant.
Term = Annotated[str, Check(before=constant_term, after=validate_term)]
#: Seconds (or seconds of standard deviation) per unit of each term; may be negative.
Polynomial = Annotated[dict[Term, Number], Check(before=_each_term_once)]
#: Smallest and largest of something counted, both included.
Interval = Annotated[tuple[int, int], Check(after=_ordered)]
#: Inclusive bounds of some of the parameters.
Bounds = dict[Literal["m", "n", "k"], Interval]
#: (intercept_s, per_byte_s): seconds of processor time for a message.
Overhead = tuple[NonNegative, NonNegative]
Rows = tuple[tuple[Number, ...], ...]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(Public):
    """Base of all values: they do not change, know all their fields, and hold finite numbers.

    They are dataclasses, which Pydantic checks where they are made from their fields or from the content of a file;
    `__post_init__` raises the faults of fields that do not fit together. Pydantic is loaded only then, since that takes
    longer than a small prediction.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}
    _unlisted: ClassVar[frozenset[str]] = frozenset(
        f"model_{name}" for name in ("construct", "copy", "dump", "json_schema", "validate")
    )

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, init=False)(cls)

    def __init__(self, /, **values: Any) -> None:
        vars(self).update(vars(self.model_validate(values)))

    @classmethod
    def model_validate(cls, content: Any) -> Self:
        """Validates the content of a file and returns an instance.  Raises Pydantic's ValidationError."""
        checked: Self = _adapter(cls).validate_python(content)
        return checked

    @classmethod
    def model_construct(cls, **values: Any) -> Self:
        """Without a check; what is left out has its default."""
        made = object.__new__(cls)
        for each in fields(cls):
            vars(made)[each.name] = each.default if each.default_factory is MISSING else each.default_factory()
        vars(made).update(values)
        return made

    def model_copy(self, *, update: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """With other values of some fields, which are not checked."""
        return self.model_construct(**{each.name: getattr(self, each.name) for each in fields(self)} | dict(update))

    def model_dump(self, **how: Any) -> dict[str, Any]:
        """As content of a file; with the options of Pydantic's TypeAdapter.dump_python."""
        content: dict[str, Any] = _adapter(type(self)).dump_python(self, **how)
        return content

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of a file's content."""
        return _adapter(cls).json_schema()


@cache
def _adapter(cls: "type[Value]") -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


class Covariance(Value):
    """Variances and covariances of the coefficients of `terms`: matrix[i][j] is that of terms[i] and terms[j].

    A value always has its terms in the order of `in_order`, whatever the order in the file: the draws depend on it,
    and so equal covariances predict equal durations.
    """

    terms: tuple[Term, ...]
    matrix: Rows

    def __post_init__(self) -> None:
        refuse_twice(self.terms, "term", "terms")
        check_covariance(self.matrix, len(self.terms), "matrix")
        order = sorted(range(len(self.terms)), key=lambda i: _place(self.terms[i]))
        if order != list(range(len(order))):
            rows = tuple(tuple(self.matrix[i][j] for j in order) for i in order)
            # the value is frozen, and still being made
            object.__setattr__(self, "terms", tuple(self.terms[i] for i in order))
            object.__setattr__(self, "matrix", rows)


def in_order(terms: Iterable[str]) -> list[str]:
    """`terms` as `lepaute fit` orders them: by falling degree, products of different letters first, then m, n, k."""
    return sorted(terms, key=_place)


def _place(term: str) -> tuple[int, int, list[int]]:
    return (0, 0, []) if term == "1" else (-len(term), -len(set(term)), ["mnk".find(letter) for letter in term])


def named(rows: Any, mean: Any) -> Any:
    """The covariance `rows` of a file of an earlier version, which did not name the terms, with those of `mean`.

    They were in the order of the keys of `mean`, which many programs change when they save the file again. So they are
    taken only where the keys have the order of `lepaute fit`; sorted keys have it only where sorting changes nothing.
    Raises the fault of another order; keys that are no terms are left to the validation of `mean`.
    """
    terms = [str(term) for term in mean] if isinstance(mean, dict) else []
    expected = in_order(terms)
    if terms != expected and all(term == "1" or set(term) <= set("mnk") for term in terms):
        raise fault(
            f"does not name its terms, and the keys of mean ({', '.join(terms)}) are not in the order in which they "
            f"are written ({', '.join(expected)}), as after saving with sorted keys: which row is which is unknown",
            "covariance",
            remedy="Use the original file, or write covariance: {terms: [...], matrix: [[...], ...]}.",
        )
    return {"terms": terms, "matrix": rows}


def check_covariance(rows: Rows, size: int, *at: str | int) -> None:
    """Raises the fault, at the field `at`, of a matrix that is not square, not symmetric, or has a variance below 0."""
    if len(rows) != size or any(len(row) != size for row in rows):
        problem = f"must be square, {size} x {size}: a row and a column for each term"
        raise fault(problem, *at, remedy="Complete it, or write null.")
    for i in range(size):
        if rows[i][i] < 0:
            raise fault(f"is {rows[i][i]!r}; a variance must be >= 0", *at, i, i)
        for j in range(i):
            scale = (rows[i][i] * rows[j][j]) ** 0.5
            if abs(rows[i][j] - rows[j][i]) > 1e-9 * scale:
                other = f"{at[-1]}[{j}][{i}] is {rows[j][i]!r}"
                problem = f"is {rows[i][j]!r}, but {other}; a covariance must be symmetric"
                raise fault(problem, *at, i, j, remedy="Make them equal.")
            if abs(rows[i][j]) > scale * (1 + 1e-6):
                raise fault(f"is {rows[i][j]!r}, a correlation beyond 1", *at, i, j)


class Mode(Value):
    """A normal mode: the share of draws that come from it, and their mean and standard deviation."""

    weight: Annotated[Positive, Le(1)]
    mean: Number
    sd: NonNegative


def _standardised(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    total = sum(mode.weight for mode in modes)
    if abs(total - 1.0) > TOLERANCE:
        raise fault(f"has weights that add up to {total:.9g} instead of 1", remedy="Divide each by their sum.")
    mean = sum(mode.weight * mode.mean for mode in modes)
    variance = sum(mode.weight * (mode.mean**2 + mode.sd**2) for mode in modes)
    if abs(mean) > TOLERANCE or abs(variance - 1.0) > TOLERANCE:
        raise fault(
            f"has the mean {mean:.9g} and the variance {variance:.9g}; a mixture is in units of sigma, with "
            "mean 0 and variance 1",
            remedy="Subtract the mean from each mode's mean, divide means and sd by the square root of the variance.",
        )
    return modes


#: Modes whose mixture has mean 0 and variance 1, so that it stands wherever another noise of variance 1 could.
Modes = Annotated[tuple[Mode, ...], Len(1, MAX_MODES), Check(after=_standardised)]


def core_modes(modes: tuple[Mode, ...] | None) -> list[tuple[float, float, float]]:
    """(cumulative weight, mean, sd) of each mode as the engine takes them; empty for None."""
    rows, cumulative = [], 0.0
    for mode in modes or ():
        cumulative += mode.weight
        rows.append((cumulative, mode.mean, mode.sd))
    return rows

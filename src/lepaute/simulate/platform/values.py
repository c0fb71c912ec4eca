"""What all values of a platform are made of: numbers with their limits, terms, covariances, modes, and refusals."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from lepaute.kit.models import AfterValidator, BeforeValidator, ConfigDict, Field, Record, model_validator

if TYPE_CHECKING:
    from pydantic_core import PydanticCustomError

#: Nodes, or switches: more would take gigabytes and minutes to join, whatever runs on them.
MOST_NODES = 200_000
#: Cores of all nodes together.
MOST_CORES = 1 << 24
#: Cables of a topology.
MOST_CABLES = 4_000_000
MOST_MODES = 8
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


def known_letters(term: str) -> str:
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
    if not 0 <= bounds[0] <= bounds[1] <= MOST_COUNTED:
        found = ", ".join(str(bound)[:40] for bound in bounds)
        raise fault(f"is [{found}]; bounds must be [low, high] with 0 <= low <= high < 2^63")
    return bounds


#: -0.0 predicts what 0.0 does, and is not to have another digest.
Number = Annotated[float, BeforeValidator(_plain_number), AfterValidator(lambda value: value + 0.0)]
NonNegative = Annotated[Number, Field(ge=0)]
Positive = Annotated[Number, Field(gt=0)]
#: The engine has 64 bits for a count.
MOST_COUNTED = 2**63 - 1
Count = Annotated[int, Field(ge=1, le=MOST_COUNTED)]
#: So many numbers are drawn for an effect of Student's distribution (core/models/machine.hpp).
DegreesOfFreedom = Annotated[int, Field(ge=1, le=1_000_000)]
NodeCount = Annotated[int, Field(ge=1, le=MOST_NODES)]
CoreCount = Annotated[int, Field(ge=1, le=65_536)]
#: A product of parameters: "mnk", "mn", "nn", ..., or "1" for the constant.
Term = Annotated[str, BeforeValidator(constant_term), AfterValidator(known_letters)]
#: Seconds (or seconds of standard deviation) per unit of each term; may be negative.
Polynomial = Annotated[dict[Term, Number], BeforeValidator(_each_term_once)]
#: Smallest and largest of something counted, both included.
Interval = Annotated[tuple[int, int], AfterValidator(_ordered)]
#: Inclusive bounds of some of the parameters.
Bounds = dict[Literal["m", "n", "k"], Interval]
#: (intercept_s, per_byte_s): seconds of processor time for a message.
Overhead = tuple[NonNegative, NonNegative]
Rows = tuple[tuple[Number, ...], ...]


class Value(Record):
    """What all values share: they do not change, know all their fields, and hold finite numbers."""

    # defer_build: the validators of the parts are never used on their own while a file is read, and to build them all
    # takes longer than to read the file.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Covariance(Value):
    """Variances and covariances of the coefficients of `terms`: matrix[i][j] is that of terms[i] and terms[j].

    A value always has its terms in the order of `in_order`, whatever the order in the file: the draws depend on it,
    and so equal covariances predict equal durations.
    """

    terms: tuple[Term, ...]
    matrix: Rows

    @model_validator(mode="after")
    def _is_one_and_in_order(self) -> Self:
        refuse_twice(self.terms, "term", "terms")
        check_covariance(self.matrix, len(self.terms), "matrix")
        order = sorted(range(len(self.terms)), key=lambda i: _place(self.terms[i]))
        if order != list(range(len(order))):
            rows = tuple(tuple(self.matrix[i][j] for j in order) for i in order)
            # the value is frozen, and still being made
            object.__setattr__(self, "terms", tuple(self.terms[i] for i in order))
            object.__setattr__(self, "matrix", rows)
        return self


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

    weight: Annotated[Positive, Field(le=1)]
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
Modes = Annotated[tuple[Mode, ...], Field(min_length=1, max_length=MOST_MODES), AfterValidator(_standardised)]


def core_modes(modes: tuple[Mode, ...] | None) -> list[tuple[float, float, float]]:
    """(cumulative weight, mean, sd) of each mode as the engine takes them; empty for None."""
    rows, cumulative = [], 0.0
    for mode in modes or ():
        cumulative += mode.weight
        rows.append((cumulative, mode.mean, mode.sd))
    return rows

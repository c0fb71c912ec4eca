"""What all values of a platform are made of: numbers with their limits, terms, and the text of a refusal."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


def fault(problem: str, *at: str | int, remedy: str = "Correct the value.") -> PydanticCustomError:
    """An error whose text is `problem` (what is wrong, after the field's path) and `remedy`; `at` leads from the value
    under validation down to the field at fault."""
    return PydanticCustomError("fault", "{problem}. {remedy}", {"problem": problem, "remedy": remedy, "at": list(at)})


def _plain_number(value: object) -> object:
    # True is 1.0 to pydantic, and a YAML "yes" in the place of a number is never meant as one.
    if isinstance(value, bool):
        raise fault(f"is {str(value).lower()}; a number is expected")
    return value


def _unsigned_zero(value: float) -> float:
    return value + 0.0  # -0.0 predicts what 0.0 does, and is not to have another digest


def _each_term_once(polynomial: object) -> object:
    # 1, "1" and 0x1 are different keys to YAML
    if isinstance(polynomial, dict):
        terms = [_term(key) for key in polynomial]
        twice = next((term for position, term in enumerate(terms) if term in terms[:position]), None)
        if twice is not None:
            raise fault(f"has the term {twice} twice", remedy="Remove one.")
    return polynomial


def _term(value: object) -> object:
    # YAML reads the key of the constant term as an integer where it is not quoted.
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
    if not 0 <= bounds[0] <= bounds[1]:
        raise fault(f"is [{bounds[0]}, {bounds[1]}]; bounds must be [low, high] with 0 <= low <= high")
    return bounds


Number = Annotated[float, BeforeValidator(_plain_number), AfterValidator(_unsigned_zero)]
NonNegative = Annotated[Number, Field(ge=0)]
Positive = Annotated[Number, Field(gt=0)]
#: The engine has 64 bits for a count.
Count = Annotated[int, Field(ge=1, le=2**63 - 1)]
#: Nodes, or switches: more would take gigabytes and minutes to join, whatever runs on them.
MOST_NODES = 200_000
#: Cores of all nodes together.
MOST_CORES = 1 << 24
#: Cables of a topology.
MOST_CABLES = 4_000_000
NodeCount = Annotated[int, Field(ge=1, le=MOST_NODES)]
CoreCount = Annotated[int, Field(ge=1, le=65_536)]
#: A product of parameters: "mnk", "mn", "nn", ..., or "1" for the constant.
Term = Annotated[str, BeforeValidator(_term), AfterValidator(known_letters)]
#: Seconds (or seconds of standard deviation) per unit of each term; may be negative.
Polynomial = Annotated[dict[Term, Number], BeforeValidator(_each_term_once)]
#: Inclusive bounds of some of the parameters.
Bounds = dict[Literal["m", "n", "k"], Annotated[tuple[int, int], AfterValidator(_ordered)]]
#: (intercept_s, per_byte_s): seconds of processor time for a message.
Overhead = tuple[NonNegative, NonNegative]


class Value(BaseModel):
    """What all values share: they do not change, know all their fields, and hold finite numbers."""

    # defer_build: the validators of the parts are never used on their own while a file is read, and to build them all
    # takes longer than to read the file.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

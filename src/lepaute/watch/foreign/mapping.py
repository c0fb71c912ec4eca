"""The mapping file of a CSV file: which column says what, in YAML.

cluster: {value: dahu}
node: node
date: {column: start, form: epoch_s}
factors:
  mean_frequency_Hz: {column: frequency, unit: GHz}
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from lepaute.errors import InputError
from lepaute.kit.documents import composed, fields_at, guess, line_in, read_text, read_yaml, shown, spoken
from lepaute.watch.foreign.units import ISO, date_reader, unit_of

#: Cells that hold no value, whatever their case.
NO_VALUE = ("", "-", "na", "n/a", "nan", "none", "null")


def _fault(problem: str, *at: str) -> PydanticCustomError:
    """An error of the fields themselves; `at` leads from the value that is checked to the one at fault."""
    return PydanticCustomError("fault", "{problem}", {"problem": problem, "at": list(at)})


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _column(value: object) -> object:
    return {"column": value} if isinstance(value, str) else value


def _text(value: object) -> object:
    # what is a number or a truth value to YAML is the text of a cell here
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Name = Annotated[str, Field(min_length=1)]
Text = Annotated[str, BeforeValidator(_text)]


class Cell(_Part):
    """A column, or the same value for all rows."""

    column: Name | None = None
    value: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.column is None) == (self.value is None):
            raise _fault("needs either a column or a value: write the name of the column, or {value: ...}")
        return self


class Date(Cell):
    """form and time zone (of dates that do not say theirs) as `units.date_reader` takes them."""

    form: str = ISO
    timezone: str = "UTC"

    @model_validator(mode="after")
    def _readable(self) -> Self:
        try:
            read = date_reader(self.form, self.timezone)
            if self.value is not None:
                read(self.value)
        except InputError as problem:
            raise _fault(f"is wrong: {problem}") from None
        return self


class Factor(_Part):
    """A column of values in this unit."""

    column: Name
    unit: Text

    @model_validator(mode="after")
    def _known(self) -> Self:
        try:
            unit_of(self.unit)
        except InputError as problem:
            raise _fault(f"is wrong: {problem}", "unit") from None
        return self


class States(_Part):
    """A column, and the texts in it that mean each state."""

    column: Name
    done: tuple[Text, ...] = ()
    failed: tuple[Text, ...] = ()
    aborted: tuple[Text, ...] = ()
    missing: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        texts = [*self.done, *self.failed, *self.aborted, *self.missing]
        if not self.done:
            raise _fault("does not say which texts mean that a job is done: add done: [...]")
        if (twice := next((text for text in texts if texts.count(text) > 1), None)) is not None:
            raise _fault(f"has {twice!r} for two states; remove one")
        return self

    def by_text(self) -> dict[str, str]:
        """Text -> state."""
        return {text: state for state in ("done", "failed", "aborted", "missing") for text in getattr(self, state)}


SomeCell = Annotated[Cell, BeforeValidator(_column)]


class Mapping(_Part):
    """Meaning of each column of a CSV file.

    factors : of a table with a column a factor: name of the factor, its column and unit
    factor, value, unit : of a table with a row a value instead: columns of the factor's name, of the value and of its
              unit; names get the unit at their end
    stratum : columns whose texts together say what is comparable
    cluster, node, cpu, job and date may be left out: as in the arguments, the whole node, a digest of machine and date.
    """

    cluster: SomeCell | None = None
    node: SomeCell | None = None
    cpu: SomeCell | None = None
    job: SomeCell | None = None
    date: Annotated[Date, BeforeValidator(_column)] | None = None
    factors: dict[Name, Factor] | None = None
    factor: SomeCell | None = None
    value: Name | None = None
    unit: SomeCell | None = None
    state: States | None = None
    stratum: tuple[Name, ...] = ()
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    decimal: Literal[".", ","] = "."

    @model_validator(mode="after")
    def _factors(self) -> Self:
        long = {"factor": self.factor, "value": self.value, "unit": self.unit}
        missing = [name for name, given in long.items() if given is None]
        if self.factors is not None and len(missing) < 3:
            raise _fault("has factors, and factor, value or unit as well: remove one or the other")
        if self.factors is None and missing:
            raise _fault(
                "has no factors: add factors, a column each, or for a table with a row a value factor, value and unit"
                if len(missing) == 3
                else f"has no {missing[0]}: a table with a row a value needs factor, value and unit"
            )
        for name, factor in (self.factors or {}).items():
            unit = unit_of(factor.unit)
            if (right := unit.named(name)) != name:
                values = f"has its values in {factor.unit}, which become {unit.suffix}"
                raise _fault(f"{values}: name it {right}", "factors", name)
        if self.factors == {}:
            raise _fault("is empty: add a factor", "factors")
        return self

    def columns(self) -> tuple[str, ...]:
        """All columns that it names, each once."""
        cells = (self.cluster, self.node, self.cpu, self.job, self.date, self.factor, self.unit)
        column_names = [cell.column for cell in cells if cell is not None and cell.column is not None]
        column_names += [*self.stratum, *(factor.column for factor in (self.factors or {}).values())]
        column_names += [self.value] if self.value is not None else []
        column_names += [self.state.column] if self.state is not None else []
        return tuple(dict.fromkeys(column_names))


def read_mapping(path: str | Path) -> Mapping:
    """The mapping of a YAML file; raises InputError, with file and line, for what is none."""
    return parse_mapping(read_text(path, "a mapping of columns, in YAML"), str(path))


def parse_mapping(text: str, origin: str) -> Mapping:
    """The mapping of a YAML text; origin: the name of the text, for messages."""
    content = read_yaml(text, origin)
    if not isinstance(content, dict):
        kind = "empty" if content is None else f"a {type(content).__name__}"
        raise InputError(f"{origin}: is {kind}; a mapping says which columns hold node, date and factors")
    try:
        return Mapping.model_validate(content)
    except ValidationError as error:
        raise _described(error, text, origin) from None


def _described(error: ValidationError, text: str, origin: str) -> InputError:
    """One line on the first fault, an unknown field before a missing one, and on how many more there are."""
    faults = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    first, more = faults[0], len(faults) - 1
    path = tuple(step for step in first["loc"] if step != "[key]") + tuple(first.get("ctx", {}).get("at", ()))
    root = composed(text)
    line = "" if root is None else f":{line_in(path, root)}"
    others = f" ({more} more fault{'s' * (more > 1)})" if more else ""
    return InputError(f"{origin}{line}: {spoken(path)[:200]} {_problem(first, path)}{others}")


def _problem(detail: ErrorDetails, path: tuple[str | int, ...]) -> str:
    kind = detail["type"]
    if kind == "fault":
        return str(detail["msg"])[:600]
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        known: list[Any] = fields_at(Mapping, path[:-1])
        if len(path) == 3 and path[0] == "factors":
            known = list(Factor.model_fields)
        return f"is no field of a mapping{guess(str(path[-1]), known)}; there are {', '.join(known)}"
    if kind == "literal_error":
        return f"is {shown(detail['input'])}; it must be {detail['ctx']['expected']}"
    if kind in ("string_type", "string_too_short"):
        return f"is {shown(detail['input'])}; a text is expected, in quotes where it looks like a number"
    if kind in ("model_type", "dict_type", "tuple_type"):
        wanted = {"model_type": "fields in braces", "dict_type": "fields", "tuple_type": "a list in brackets"}[kind]
        return f"is {shown(detail['input'])}; {wanted} are expected".replace("brackets are", "brackets is")
    return f"is {shown(detail['input'])}; {detail['msg'][:1].lower()}{detail['msg'][1:200]}"

"""A study file: what is asked, of which application and platform, what varies, and how much it may cost."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from lepaute.errors import InputError
from lepaute.kit.documents import Steps, composed, fields_at, guess, line_in, read_text, read_yaml, spoken
from lepaute.kit.documents import shown as shown_value
from lepaute.kit.expressions import Expression
from lepaute.kit.text import exact_number
from lepaute.simulate.apps import APPLICATIONS
from lepaute.simulate.apps.own.loading import names_a_class
from lepaute.study.evaluation import COLUMNS, SCENARIO, Point, same
from lepaute.study.fields import FieldPath, Fields, Formula, Lag, Level, Name, NodeNumbers, Positive, Real, Value, fault

FORMAT: Final = "lepaute-study/1"
QUESTIONS = ("whatif", "tune", "sensitivity", "capacity")
_LONGEST_FAULT = 500
_MAPPING_EXAMPLES = {
    "application": "{name: hpl, n: 20k, grid: 8x16}",
    "factor": "{path: application.nb, levels: [64, 128]}",
    "factors": "{nb: {path: application.nb, levels: [64, 128]}}",
    "scenarios": "{baseline: {}, half the bandwidth: {scale.bandwidth: 0.5}}",
}
#: Of all factors together, where they are crossed.
MAX_POINTS = 1_000_000
RESPONSES = ("time_s", "rate_gflops", "energy_j", "gflops_per_watt")


class Distribution(Value):
    """The distribution of a factor: (log-)uniform from low to high, or (log)normal with mean and sd of the value."""

    kind: Literal["uniform", "log-uniform", "normal", "lognormal"]
    low: Real | None = None
    high: Real | None = None
    mean: Real | None = None
    sd: Positive | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        wanted = ("low", "high") if "uniform" in self.kind else ("mean", "sd")
        for name in ("low", "high", "mean", "sd"):
            if (getattr(self, name) is None) == (name in wanted):
                said = "is missing" if name in wanted else "is no part of it"
                raise fault(f"{said}; a {self.kind} distribution has {' and '.join(wanted)}", name)
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise fault(f"is {self.high:g}; it must be above low, which is {self.low:g}", "high")
        if self.kind == "log-uniform" and (self.low or 0.0) <= 0.0:
            raise fault(f"is {self.low:g}; with a logarithm it must be above 0", "low")
        if self.kind == "lognormal" and (self.mean or 0.0) <= 0.0:
            raise fault(f"is {self.mean:g}; with a logarithm it must be above 0", "mean")
        return self


class Factor(Value):
    """What varies: the field at `path` of the application or the platform, or a knob, by levels, range or distribution.

    times   : values are multiples of what the base has there, at every place that the path matches ([*])
    log     : the range is divided evenly on the logarithm;  integer : values are whole numbers
    """

    path: FieldPath
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=10_000)] | None = None
    range: tuple[Real, Real] | None = None
    distribution: Distribution | None = None
    log: bool = False
    integer: bool = False
    times: bool = False

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Of a range, or of a distribution that has some; None of levels, and of a normal distribution."""
        if self.range is not None:
            return self.range
        found = self.distribution
        return None if found is None or found.low is None or found.high is None else (found.low, found.high)

    @model_validator(mode="after")
    def _has_values(self) -> Self:
        given = [name for name in ("levels", "range", "distribution") if getattr(self, name) is not None]
        if len(given) != 1:
            raise fault(f"has {' and '.join(given) or 'no values'}; give one of levels, range and distribution")
        if self.levels is not None:
            texts = [Point({"level": level}) for level in self.levels]
            if len(set(texts)) < len(texts):
                raise fault("has a level twice; give each once", "levels")
            if self.log or self.integer:
                raise fault("goes with a range or a distribution, not with levels", "log" if self.log else "integer")
            if self.times and not all(isinstance(level, int | float) for level in self.levels):
                raise fault("has a level that is no number, and times multiplies by it", "levels")
        if self.range is not None:
            low, high = self.range
            if not low < high:
                raise fault(f"is [{low:g}, {high:g}]; write [low, high] with low < high", "range")
            if self.log and low <= 0.0:
                raise fault(f"begins at {low:g}; with log it must begin above 0", "range")
        return self


class Placed(Value):
    """Ranks on cores in an order that is drawn from the seed, or as a file says.

    file  : a hostfile, whose slots may also be taken in random order, or a rankfile; from the folder of the study
    hosts : which node a host of the file is: that of the number at the end of its name, or one after the other
    """

    kind: Literal["random", "hostfile", "rankfile"]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    file: Annotated[str, Field(min_length=1)] | None = None
    hosts: Literal["by-number", "in-order"] = "by-number"

    @model_validator(mode="after")
    def _has_its_file(self) -> Self:
        if self.kind != "random":
            if self.file is None:
                raise fault(f"is missing; a mapping by {self.kind} names it", "file")
            if "seed" in self.model_fields_set:
                raise fault("is of a random order, and the file places the ranks; remove it", "seed")
        elif self.file is None and "hosts" in self.model_fields_set:
            raise fault("is of the hosts of a file, and there is none; remove it", "hosts")
        return self


class Base(Value):
    """What does not vary.

    application : its name, or its class as FILE.py:CLASS, and its fields as on the command line of `lepaute predict`;
                  or program: one that `lepaute emulate` can run, from the folder of the study, with np, arguments and
                  options of `lepaute emulate`
    platform    : a shipped name or a file, from the folder of the study;  set : fields of it, as `--set` takes them
    nodes       : a hypothetical cluster of this many nodes like the platform, drawn from `seed` (platform synthesize)
    without     : layers of uncertainty that are not drawn;  transfer : file of a layer learnt from other studies, from
                  the folder of the study;  lag : time since the calibration, such as 2h
    state       : undisturbed, or any: runs may meet the slow state of the machine, the default of capacity
    """

    application: dict[str, Any]
    platform: Annotated[str, Field(min_length=1)]
    set: dict[str, Any] = Field(default_factory=dict)
    nodes: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    mapping: Literal["sequential", "random"] | Placed = "sequential"
    without: tuple[str, ...] = ()
    transfer: Annotated[str, Field(min_length=1)] | None = None
    lag: Lag | None = None
    state: Literal["undisturbed", "any"] | None = None
    fidelity: Literal["auto", "full", "sampled"] = "auto"

    @model_validator(mode="after")
    def _names_an_application(self) -> Self:
        if self.nodes is None and "seed" in self.model_fields_set:
            raise fault("draws the cluster of base.nodes, which is not given; remove it (of runs: seed)", "seed")
        given = self.application.get("class")
        if given is not None and "name" not in self.application:
            if not isinstance(given, str) or not names_a_class(given):
                raise fault(f"is {given!r:.60}; it is FILE.py:CLASS", "application", "class")
            return self
        if given is None and isinstance(self.application.get("program"), str):
            return self
        given = self.application.get("name")
        if not isinstance(given, str) or given not in APPLICATIONS:
            said = "is missing" if given is None else f"is {given!r:.60}"
            raise fault(f"{said}; applications are {', '.join(APPLICATIONS)}", "application", "name")
        return self


class Budget(Value):
    """What a study may cost, whichever is reached first.

    simulations : at most;  seconds : until the answer: with fewer runs, or simulations, where these take longer
    precision   : in per cent: enough when the answer's 95 % interval is as narrow, half its width
    """

    simulations: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    seconds: Positive | None = None
    precision: Annotated[Real, Field(gt=0, lt=100)] | None = None


class WhatIf(Value):
    """Of the question whatif: every level of one factor against its base level, at each combination of the others.

    factor  : that is compared; unless given scenario, or the only factor
    base    : its level that the others are compared with; the first unless given
    best_of : factors of which each level takes what is best for it, such as the grid
    same_noise : all have the same noise: the effect of the change alone, not what two real runs would differ by
    """

    factor: Name = SCENARIO
    base: Level = None
    best_of: tuple[Name, ...] = ()
    same_noise: bool = False


class Capacity(Value):
    """Of the question capacity: machines put together of the parts of a catalogue.

    catalogue : a YAML file, from the folder of the study: parts with kind, price, watts and what they set
    nodes     : numbers of nodes that are looked at, or of each group, {new: 4, old: 4}
    price, watts : of a machine, at most
    """

    catalogue: Annotated[str, Field(min_length=1)]
    nodes: Annotated[tuple[NodeNumbers, ...], Field(min_length=1, max_length=100)]
    price: Positive | None = None
    watts: Positive | None = None


class PublishedResult(Value):
    """What was published of a configuration.

    at     : levels of the compared factor and of the others; what is left out holds for any
    change : of the first response against the base, in per cent;  value : of the first response itself
    """

    at: Annotated[dict[Name, Level], Field(min_length=1)]
    change: Real | None = None
    value: Real | None = None

    @model_validator(mode="after")
    def _has_a_figure(self) -> Self:
        if (self.change is None) == (self.value is None):
            raise fault("has no figure, or two; give one of change (in per cent) and value")
        return self

    @property
    def text(self) -> str:
        """As a table has it: 36 % more, 0.5 % less, or the value."""
        if self.change is None:
            return exact_number(self.value or 0.0)
        return f"{exact_number(abs(self.change))} % {'less' if self.change < 0.0 else 'more'}"


class Published(Value):
    """Figures that others published of the same question, shown beside those of the study (question whatif).

    source : of the figures, and how its set-up differs
    """

    source: Annotated[str, Field(min_length=1, max_length=1000)]
    results: Annotated[tuple[PublishedResult, ...], Field(min_length=1, max_length=10_000)]


class Study(Value):
    """The whole of a study file.

    scenarios  : by name, the fields that each sets (any value); together they are the levels of a factor `scenario`
    responses  : that are reported;  derived : further ones, as expressions over factors, fields of the application,
                 nodes, ranks and responses
    runs, seed : run i of every configuration uses seed + i: all see the same machines and days
    constraints: expressions over factors and fields of the application that hold at every point
    """

    format: Literal["lepaute-study/1"] = FORMAT
    question: Literal["whatif", "tune", "sensitivity", "capacity"]
    title: Annotated[str, Field(max_length=1000)] = ""
    base: Base
    factors: dict[Name, Factor] = Field(default_factory=dict)
    scenarios: dict[Annotated[str, Field(min_length=1, max_length=80)], Fields] = Field(default_factory=dict)
    responses: tuple[Name, ...] = ("time_s",)
    derived: dict[Name, Formula] = Field(default_factory=dict)
    runs: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    seed: Annotated[int, Field(ge=0, lt=2**62)] = 1
    budget: Budget = Budget.model_construct(simulations=None, seconds=None, precision=None)
    constraints: tuple[Formula, ...] = ()
    whatif: WhatIf | None = None
    capacity: Capacity | None = None
    published: Published | None = None

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """The constraints."""
        return tuple(Expression(text) for text in self.constraints)

    @cached_property
    def formulas(self) -> dict[str, Expression]:
        """The derived responses."""
        return {name: Expression(text) for name, text in self.derived.items()}

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """Of each factor that has levels, scenarios among them."""
        found = {name: factor.levels for name, factor in self.factors.items() if factor.levels is not None}
        return {SCENARIO: tuple(self.scenarios), **found} if self.scenarios else found

    @property
    def compared(self) -> WhatIf:
        """What the question whatif compares, with its defaults."""
        asked = self.whatif or WhatIf.model_validate({})
        if asked.factor == SCENARIO and not self.scenarios and len(self.levels) == 1:
            asked = asked.model_copy(update={"factor": next(iter(self.levels))})
        known = self.levels.get(asked.factor, ())
        return asked.model_copy(update={"base": known[0]}) if asked.base is None and known else asked

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self._asks_one_question()
        paths: dict[str, str] = {}
        for name, factor in self.factors.items():
            if factor.path in paths:
                raise fault(f"is the path of {paths[factor.path]} already", "factors", name, "path")
            paths[factor.path] = name
        for response in self.responses:
            if response not in (*RESPONSES, *self.derived):
                known = ", ".join((*RESPONSES, *self.derived))
                raise fault(f"has {response[:60]!r}; responses are {known}, and those under derived", "responses")
        for section, names, taken in (
            ("factors", self.factors, {*COLUMNS, *RESPONSES, SCENARIO}),
            ("derived", self.derived, {*COLUMNS, *RESPONSES, *self.factors, SCENARIO}),
        ):
            for name in taken.intersection(names):
                raise fault("is the name of something else already: a column of the results; rename it", section, name)
        count = 1
        for name, levels in self.levels.items():
            count *= len(levels)
            if count > MAX_POINTS:
                raise fault(f"has too many levels: all together more than {MAX_POINTS} points", "factors", name)
        return self._whatif_is_about_its_factors()

    def _asks_one_question(self) -> None:
        for section, question in (("whatif", "whatif"), ("capacity", "capacity"), ("published", "whatif")):
            if question != self.question and getattr(self, section) is not None:
                raise fault(f"is of the question {question}, and this one is {self.question}; remove it", section)
        if self.question == "capacity" and self.capacity is None:
            raise fault("is missing: give a catalogue of parts, and numbers of nodes", "capacity")
        if not self.factors and not self.scenarios and self.capacity is None:
            raise fault("is missing: nothing varies; give factors, or scenarios", "factors")

    def _whatif_is_about_its_factors(self) -> Self:
        if self.question != "whatif":
            return self
        asked = self.compared
        if asked.factor not in self.levels:
            what = "scenarios" if asked.factor == SCENARIO else f"the levels of {asked.factor}"
            name = next(iter(self.levels), "NAME")
            raise fault(
                f"compares {what}, and there are none; give scenarios, or name the factor with levels that is "
                f"compared: whatif: {{factor: {name}}}",
                *(("whatif", "factor") if self.whatif else ("question",)),
            )
        known = self.levels[asked.factor]
        if len(known) < 2:
            at = ("scenarios",) if asked.factor == SCENARIO else ("factors", asked.factor, "levels")
            raise fault("has one alone, and nothing to compare it with; give another", *at)
        if not any(same(asked.base, level) for level in known):
            raise fault(f"is {asked.base!r:.60}; levels are {', '.join(map(str, known))[:200]}", "whatif", "base")
        for place, name in enumerate(asked.best_of):
            if name not in self.levels or name == asked.factor:
                raise fault(f"is {name}; name another factor that has levels", "whatif", "best_of", place)
        for place, result in enumerate(self.published.results if self.published else ()):
            for name, level in result.at.items():
                if not any(same(level, one) for one in self.levels.get(name, ())):
                    levels = ", ".join(map(str, self.levels.get(name, ())))
                    levels = levels or f"none; factors are {', '.join(self.levels)}"
                    problem = f"is {level!r:.60}; levels of {name[:60]} are {levels[:200]}"
                    raise fault(problem, "published", "results", place, "at", name)
        for name, factor in self.factors.items():
            if factor.levels is None:
                raise fault("has no levels, and whatif simulates all combinations of levels", "factors", name)
        return self


def load_study(path: "str | Path | Study") -> Study:
    """The study of a file; one that is loaded stays as it is.

    Raises InputError with one line: file, line, field, what is wrong, what to do.
    """
    return path if isinstance(path, Study) else parse_study(read_text(path, "a study file"), str(path))


def parse_study(text: str, origin: str = "study") -> Study:
    """The study in the YAML `text`; `origin` is its name in messages.  Raises InputError."""
    return study_of(read_yaml(text, origin), text, origin)


def study_of(content: object, text: str | None = None, origin: str = "study") -> Study:
    """The study of plain values, which were read from `text` (None: from no file).  Raises InputError."""
    try:
        return Study.model_validate(content)
    except ValidationError as error:
        raise described(error, content, text, origin) from None


def study_text(study: Study) -> str:
    """The study as YAML, without default values."""
    import yaml

    content = {"format": study.format, **study.model_dump(mode="json", exclude_defaults=True)}
    text: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    return text


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the file format."""
    for part in Value.__subclasses__():  # Pydantic before 2.13 writes no default whose model was deferred
        part.model_rebuild()
    return Study.model_json_schema() | {"$id": FORMAT, "title": "A study of Lepaute"}


def described(error: "ValidationError", content: object, text: str | None, origin: str) -> InputError:
    """The error of a refused study: one line on its first fault, and how many more there are."""
    if not isinstance(content, dict):
        actual = {"NoneType": "empty", "str": "text"}.get(name := type(content).__name__, f"a {name}")
        return InputError(
            f"{origin}: is {actual}; a study is a mapping, as 'lepaute study ready nb-and-grid --print' shows"
        )
    found = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    # A mapping in the place of a word is no word: what is wrong inside of it says more.
    faults = [it for it in found if it["type"] != "literal_error" or not isinstance(it["input"], dict)] or found
    first = faults[0]
    # A member of a union has its name as a step, which no file has.
    unions = ("literal[", "Placed", "function-after[")
    steps = [step for step in first["loc"] if step != "[key]" and not str(step).startswith(unions)]
    path = (*steps, *first.get("ctx", {}).get("at", ()))
    more = f" ({len(faults) - 1} more fault{'s' * (len(faults) > 2)})" if len(faults) > 1 else ""
    return located(path, f"{_problem(first, path)}{more}", text, origin)


def located(path: Steps, problem: str, text: str | None, origin: str) -> InputError:
    """The error that the value at `path` has a problem."""
    root = None if text is None else composed(text)
    where = origin if root is None else f"{origin}:{line_in(path, root)}"
    if len(problem) > _LONGEST_FAULT:
        problem = f"{problem[: _LONGEST_FAULT // 2]} ... {problem[-_LONGEST_FAULT // 2 :]}"
    return InputError(f"{where}: {spoken(path)} {problem}")


def _problem(detail: "ErrorDetails", path: Steps) -> str:
    kind, given = detail["type"], shown_value(detail["input"])
    if kind == "fault":
        return detail["msg"]
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        if len(path) == 1 and path[0] in Base.model_fields:
            return "is not a field of a study: it belongs under base"
        if path == ("parts",):
            return "is of a catalogue, which is no study; check the study whose capacity names it"
        return f"is not a field of a study{guess(str(path[-1]), fields_at(Study, path[:-1]))}; remove or rename it"
    if kind in ("dict_type", "model_type"):
        place = "factor" if len(path) == 2 and path[0] == "factors" else str(path[-1])
        return f"is {given}; write a mapping, such as {_MAPPING_EXAMPLES.get(place, '{name: value}')}"
    if kind == "literal_error":
        return f"is {given}; it must be {detail['ctx']['expected']}"
    if kind == "string_pattern_mismatch":
        return f"is {given}; a name has letters, digits and _, and begins with no digit"
    return f"is {given}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"

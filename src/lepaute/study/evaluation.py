"""What every question of a study is written against: trials go in, a row of results each comes out.

An `Evaluate` may simulate in this process, on a cluster, look results up in a store, or in a table of real runs.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite, nan
from typing import Any, NamedTuple, Protocol

from lepaute.errors import InputError
from lepaute.kit.later import np, npt
from lepaute.kit.text import duration
from lepaute.simulate.prediction.parts import sampling_sd_of
from lepaute.simulate.prediction.prediction import Spread, spread_of
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.control_variates import Controls
from lepaute.stats.decision import Decision

Value = str | int | float | bool | None

#: Factor whose levels are the names of a study's scenarios.
SCENARIO = "scenario"
#: Columns of the tables of results, besides factors and responses.
COLUMNS = frozenset({"comparable", "extrapolated_share", "refusal", "repeat", "runs", "seed", "value"})
#: Whole numbers above are not exact as floating-point numbers.
_EXACT = 2**53
#: Responses of which less is better; of any other (rates, rates per watt), more is.
LESS_IS_BETTER = frozenset({"time_s", "energy_j", "cost"})
#: Noun and unit of each response; derived ones go by their names.
RESPONSES: Mapping[str, tuple[str, str]] = {
    "time_s": ("the time", "s"),
    "rate_gflops": ("the rate", "Gflop/s"),
    "energy_j": ("the energy", "J"),
    "gflops_per_watt": ("the rate per watt", "Gflop/s/W"),
}
#: What changes a response by a smaller share, whichever way, matters little.
LITTLE = 0.03
#: Levels that are named one by one.
MAX_NAMED = 6


class Point(Mapping[str, Value]):
    """A value for each factor: immutable, hashable, in the order of the names, and the same for equal JSON.

    A floating-point number that is whole becomes an integer: 2.0 and 2 are one value, true and 1 are two.
    Raises InputError for a value that is no plain one.
    """

    __slots__ = ("_text", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = {str(name): _plain(str(name), values[name]) for name in sorted(values)}
        self._text = json.dumps(self._values, separators=(",", ":"), ensure_ascii=False)

    def to_json(self) -> str:
        """Canonical: equal points have equal texts."""
        return self._text

    def with_(self, **values: Value) -> "Point":
        """This point with other values of some factors."""
        return Point({**self._values, **values})

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Point) else NotImplemented

    def __repr__(self) -> str:
        return f"Point({self._values!r})"

    def __str__(self) -> str:
        """For people: nb=128, p=16."""
        return ", ".join(f"{name}={shown(value)}" for name, value in self._values.items())

    def __reduce__(self) -> tuple[Any, ...]:
        return Point, (self._values,)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run. Trials of equal seeds see the same machine on the same day, at whatever point: common random numbers.

    repeat : which of several runs on that machine and day; they differ in their noise alone. Those after the first
        are what another point is compared with
    drawn  : of a run that judges the point: what it draws (`DRAWN` of simulate/prediction/trust); empty: all
    priced : of a run that is priced, so that its outcome has controls: for this many runs, from its own seed on
    """

    point: Point
    seed: int
    repeat: int = 0
    drawn: str = ""
    priced: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}; it is a whole number from 0 to 2^63 - 1")
        if not 0 <= self.repeat < 2**31:
            raise InputError(f"repeat is {self.repeat}; it is a whole number from 0 to 2^31 - 1")

    @property
    def is_of_study(self) -> bool:
        """Whether it is one of the study's own runs; those that judge a point, are priced or are what others are
        compared with, cost no budget."""
        return not (self.drawn or self.priced or self.repeat)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial.

    responses    : such as time_s, rate_gflops, energy_j, gflops_per_watt, cost; those that are known
    extrapolated : share of computing that is outside of the fitted ranges of models;  messages_outside : share that
        messages of sizes outside have of computing and moving messages
    refusal      : why there are no responses; None if there are
    sampling_sd  : relative standard deviation of the error of sampling in the times; 0 of full simulations
    sampling_changes : what each window left out would change the time by, where that is known
    caveats      : the warnings of the prediction, but for that it is not comparable (study/trust.py)
    guesses_block_size : whether most of it rests on a dgemm of which nobody says at which sizes it was measured
    controls     : of the runs that a priced trial is for; None if the engine cannot tell
    """

    trial: Trial
    responses: Mapping[str, float] = field(default_factory=dict)
    extrapolated: float = 0.0
    refusal: str | None = None
    sampling_sd: float = 0.0
    messages_outside: float = 0.0
    caveats: tuple[str, ...] = ()
    guesses_block_size: bool = False
    sampling_changes: tuple[float, ...] | None = None
    controls: Controls | None = field(default=None, repr=False)

    def __getitem__(self, response: str) -> float:
        """A response; raises InputError if it is not known."""
        if response not in self.responses:
            why = self.refusal or f"known are {', '.join(self.responses)}"
            raise InputError(f"there is no response {response[:80]!r} at {self.trial.point}: {why}")
        return self.responses[response]


class Further(NamedTuple):
    """What would decide what is open, if everything is as it seems so far;  simulations : that are missing for it."""

    means: str
    simulations: int

    def text(self, simulation_s: float | None = None) -> str:
        """In words; simulation_s : seconds that one took, all workers together."""
        more = f", about {duration(simulation_s * self.simulations)} more," if simulation_s else ""
        return f"{self.means}{more} would decide"


class Answer(Protocol):
    """What a question gives: for a person, and as a JSON object.

    sentence : the answer without a full stop;  further : what would decide what it leaves open, where that is known
    trusts   : of the points that it judged;  decision : that it leaves little open
    """

    @property
    def sentence(self) -> str: ...

    @property
    def further(self) -> Further | None: ...

    @property
    def text(self) -> str: ...

    @property
    def trusts(self) -> Mapping[Point, Trust]: ...

    @property
    def decision(self) -> Decision: ...

    def to_dict(self) -> dict[str, Any]: ...


def answered(answer: Answer, simulation_s: float | None = None) -> str:
    """The first line of an answer; simulation_s : as of `Further.text`."""
    return "; ".join([answer.sentence, *([answer.further.text(simulation_s)] if answer.further else [])])


#: Outcomes of trials, in the order of the trials. A trial that cannot be has a refusal; nothing is raised for it.
Evaluate = Callable[[Sequence[Trial]], list[Outcome]]


def trials_of(points: Iterable[Point], runs: int, seed: int = 1, *, first: int = 0, repeat: int = 0) -> list[Trial]:
    """The runs `first` to `first + runs - 1` of each point, run i with seed + i, one point after the other."""
    return [Trial(point, seed + run, repeat) for point in points for run in range(first, first + runs)]


def by_point(outcomes: Iterable[Outcome]) -> dict[Point, list[Outcome]]:
    """The outcomes of each point, in their order."""
    groups: dict[Point, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.trial.point, []).append(outcome)
    return groups


def sampling_sd_of_mean(outcomes: Iterable[Outcome]) -> float:
    """Relative standard deviation of the error of sampling that these runs of a point have in common, as of a
    prediction; 0 of full simulations."""
    each = list(outcomes)
    if any(one.sampling_sd and one.sampling_changes is None for one in each):
        return max(one.sampling_sd for one in each)
    return sampling_sd_of(one.sampling_changes for one in each)


def spread(outcomes: Sequence[Outcome], response: str, controls: Controls | None = None) -> Spread:
    """Of a response over the runs of a point, as a prediction has it: every mean that a study states is this one.

    No interval where a derived response is below 0.
    """
    values = [outcome[response] for outcome in outcomes]
    if min(values) < 0.0:
        return Spread(fsum(values) / len(values), nan, nan)
    return spread_of(values, sampling_sd_of_mean(outcomes), controls)


def common_table(
    outcomes: Iterable[Outcome], responses: Sequence[str]
) -> "tuple[list[Point], npt.NDArray[np.float64], dict[Point, str]]":
    """The points of which no trial was refused; their values, shape (points, responses, seeds that all have); the
    other points, each with the reason. Raises InputError if no point or no seed is left.
    """
    groups = by_point(outcomes)
    refused = {
        point: reason for point, each in groups.items() if (reason := next(filter(None, (o.refusal for o in each)), ""))
    }
    usual = {point: {one.trial.seed: one for one in each} for point, each in groups.items() if point not in refused}
    if not usual:
        raise InputError(f"no point could be simulated: {next(iter(refused.values()), 'there is none')}")
    seeds = sorted(set.intersection(*map(set, usual.values())))
    if not seeds:
        raise InputError("the points have no seed in common; simulate all with the same seeds")
    values = [[[of_seed[seed][name] for seed in seeds] for name in responses] for of_seed in usual.values()]
    return list(usual), np.array(values, dtype=np.float64), refused


class Once:
    """An `Evaluate` that evaluates each trial once, however often it is asked; known : outcomes that cost nothing.

    asked : trials that were evaluated so far
    """

    def __init__(self, evaluate: Evaluate, known: Iterable[Outcome] = ()) -> None:
        self._evaluate = evaluate
        self._known = {outcome.trial: outcome for outcome in known}
        self.asked = 0

    @property
    def outcomes(self) -> list[Outcome]:
        """Of all trials so far."""
        return list(self._known.values())

    def missing(self, trials: Iterable[Trial]) -> list[Trial]:
        """Those that are not known, each once."""
        return [trial for trial in dict.fromkeys(trials) if trial not in self._known]

    def __call__(self, trials: Sequence[Trial]) -> list[Outcome]:
        if new := self.missing(trials):
            self._known |= dict(zip(new, self._evaluate(new), strict=True))
            self.asked += len(new)
        return [self._known[trial] for trial in trials]


def _plain(name: str, value: object) -> Value:
    if isinstance(value, float):
        if not isfinite(value):
            raise InputError(f"factor {name[:80]} is {value}; it is a finite number")
        return int(value) if value.is_integer() and abs(value) <= _EXACT else value
    if value is None or isinstance(value, str | int):
        return value
    if hasattr(value, "item"):  # a scalar of NumPy
        return _plain(name, value.item())
    raise InputError(f"factor {name[:80]} is {value!r:.80}; a value is a number, a text, true, false or null")


def same(one: Value, other: Value) -> bool:
    """Whether two levels are one, as 1 and 1.0 are, and 1 and true are not."""
    return Point({"level": one}) == Point({"level": other})


def shown(value: Value) -> str:
    """As people read it, and a study file has it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def sign_of(response: str) -> float:
    """What a response is multiplied by, so that less is better."""
    return 1.0 if response in LESS_IS_BETTER else -1.0


def noun(response: str) -> str:
    """Of a response: the time, the rate, cost."""
    return RESPONSES.get(response, (response, ""))[0]


def label(response: str) -> str:
    """Of an axis or a column: time, s."""
    name, unit = RESPONSES.get(response, (response, ""))
    return f"{name.removeprefix('the ')}, {unit}" if unit else name


def amount_of(response: str, values: Spread) -> str:
    """The mean of a response, with the digits that its interval gives it: 15.7 s, 3.03 Tflop/s, cost 166,400."""
    unit = RESPONSES.get(response, ("", ""))[1]
    return values.amount(unit) if unit else f"{label(response)} {values.figure()}"


def called(point: Point) -> str:
    """A configuration by its factors; a scenario by its name alone."""
    others = Point({name: value for name, value in point.items() if name != SCENARIO})
    return ", ".join(text for text in (str(point.get(SCENARIO, "")), str(others)) if text)


def begun(text: str) -> str:
    """With a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(names: Sequence[Any]) -> str:
    """a, b and c; of many the first ones and the last one."""
    words = [name if isinstance(name, str) else shown(name) for name in names]
    if len(words) > MAX_NAMED:
        return ", ".join([*words[: MAX_NAMED - 2], "...", words[-1]])
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""The question capacity: which machine, of the parts of a catalogue, on the Pareto front of time, cost and energy.

A point is on the front where none is better in all responses. Equal seeds are one machine at all points, so a front is
drawn whole, with all points together: what controls explain at one of their draws, and of the rest normal draws with
the mean and the covariance of what was simulated, since seeds are few.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, inf, prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from lepaute.errors import InputError
from lepaute.kit.documents import read_text, read_yaml
from lepaute.simulate.prediction.prediction import Spread
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.control_variates import Controls, adjusted
from lepaute.stats.decision import Decision
from lepaute.study.evaluation import (
    SCENARIO,
    Evaluate,
    Outcome,
    Point,
    amount_of,
    answered,
    begun,
    by_point,
    called,
    common_table,
    label,
    listed,
    noun,
    sign_of,
    spread,
    trials_of,
)
from lepaute.study.fields import FieldPath, Name, Real, Value
from lepaute.study.group_counts import NODE, PricedMachine, choices_of, machine_of
from lepaute.study.schema import described
from lepaute.study.trust import Judge, Pricing, decision_of

if TYPE_CHECKING:
    from lepaute.stats.expanding import Booleans, Floats
    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import Study


#: Responses of the front of machines.
JUDGED = ("time_s", "cost", "energy_j")
#: What the best in each is called; of time and cost together, what takes the least of their product.
BEST = {"time_s": "fastest", "cost": "cheapest", "energy_j": "least energy", "rate_gflops": "fastest"}
#: Of less probability it is said.
SURE = 0.95
MAX_MACHINES = 10_000
#: Of the front, at most.
DRAWS, MAX_POINTS = 2000, 5000

NotNegative = Annotated[Real, Field(ge=0)]


class Part(Value):
    """Something to buy.

    kind  : a machine has one part of each kind; exactly one kind is `node`
    price : in any one currency;  watts : that it draws while the machine computes, beside what the platform says
    per   : how many are needed: one a node, one a machine, or one for this many nodes
    ranks : of a node: processes that run on it;  group : of nodes of the platform, in machines of several
    set   : fields of the application and the platform, as factors name them
    """

    kind: Name
    price: NotNegative
    watts: NotNegative = 0.0
    per: Literal["node", "machine"] | Annotated[int, Field(ge=1)] = "node"
    ranks: Annotated[int, Field(ge=1)] | None = None
    group: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    set: dict[FieldPath, Any] = Field(default_factory=dict)

    def count(self, nodes: int) -> int:
        """How many a machine of this many nodes needs."""
        if isinstance(self.per, int):
            return ceil(nodes / self.per)
        return nodes if self.per == "node" else 1


class Catalogue(Value):
    """Parts by name."""

    parts: dict[Annotated[str, Field(min_length=1, max_length=60)], Part] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Member:
    """A point: its responses, and the probability that it is on the front; first : that it is the best in each of
    `_superlatives`, none from one seed."""

    point: Point
    spreads: dict[str, Spread]
    probability: float
    first: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "point": dict(self.point),
            "probability_on_front": self.probability,
            "responses": {name: one.to_dict() for name, one in self.spreads.items()},
        }


@dataclass(frozen=True, slots=True)
class Front:
    """All points, those on the front with the largest probability first; refused: points that cannot be."""

    responses: tuple[str, ...]
    members: tuple[Member, ...]
    refused: dict[Point, str]
    trusts: Mapping[Point, Trust] = field(default_factory=dict)

    @property
    def likely(self) -> tuple[Member, ...]:
        """On the front with a probability of a half or more, in the order of the first response."""
        return tuple(member for member in self.by_first if member.probability >= 0.5)

    @property
    def by_first(self) -> list[Member]:
        """All, in the order of the first response."""
        return sorted(self.members, key=lambda one: one.spreads[self.responses[0]].mean)

    @property
    def decision(self) -> Decision:
        """That some are likely on the front."""
        return decision_of(bool(self.likely), self.trusts.values())

    def comparable(self, member: Member) -> bool:
        """Whether it may be called better or worse than others."""
        return member.point not in self.trusts or self.trusts[member.point].comparable

    @property
    def text(self) -> str:
        """The sentence, and a line for each thing that one is best in."""
        return "\n".join([answered(self), *(f"  {name}: {text}" for name, text in self.facts)])

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is best in what, and how sure that is; how many are worth considering."""
        found = []
        for words, names, best, doubt in self._bests():
            figures = ", ".join(amount_of(name, best.spreads[name]) for name in self.responses)
            least = f", the least {' × '.join(map(_subject, names))}" if len(names) > 1 else ""
            found.append((words, f"{called(best.point)} ({figures}){least}{doubt and f', {doubt}'}"))
        return [*found, ("front", self._count)]

    @property
    def sentence(self) -> str:
        """What is best in the first response, and what in the last, or for the money, with these figures."""
        first, *_, last = self._bests()
        of_machine: dict[str, list[str]] = {}
        for words, _, best, doubt in (first, last):
            figures = ", ".join(amount_of(name, best.spreads[name]) for name in dict.fromkeys([*first[1], *last[1]]))
            texts = of_machine.setdefault(f"{called(best.point)} ({figures})", [])
            texts.append(f"{words}{doubt and f' ({doubt})'}")
        return begun("; ".join(f"{listed(texts)}: {machine}" for machine, texts in of_machine.items()))

    def _bests(self) -> list[tuple[str, tuple[str, ...], Member, str]]:
        """What the best is called, in which responses, which it is, and how likely that is where it is not sure."""
        found = []
        for place, (words, names) in enumerate(_superlatives(self.responses).items()):
            best = self._best(names)
            chance = best.first[place] if best.first else 1.0
            doubts = [f"with a probability of {100.0 * chance:.0f} %"] if chance < SURE else []
            doubts += [] if self.comparable(best) else ["not comparable"]
            found.append((words, names, best, ", ".join(doubts)))
        return found

    @property
    def further(self) -> None:
        """Nothing is known that would decide more."""

    def _best(self, responses: Sequence[str]) -> Member:
        """The one with the best mean, or product of means, among those that are likely on the front."""
        among = self.likely or self.members
        return min(among, key=lambda member: prod(member.spreads[name].mean ** sign_of(name) for name in responses))

    @property
    def _count(self) -> str:
        """How many are likely on the front, and what that means."""
        verb, those = ("is", "it") if len(self.likely) == 1 else ("are", "them")
        nouns = listed(list(map(_subject, self.responses)))
        at_once = " at once" if len(self.responses) > 1 else ""
        found = f"{len(self.likely)} of {len(self.members)} {verb} worth considering"
        return f"{found}: no other is likely to beat {those} in {nouns}{at_once}"

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Titles, and a row for each that is likely on the front: its responses, and how likely it is there."""
        return ("configuration", *map(label, self.responses), "on the front"), [
            (
                called(one.point),
                *(one.spreads[name].figure() for name in self.responses),
                f"{100.0 * one.probability:.0f} %{'' if self.comparable(one) else '; not comparable'}",
            )
            for one in self.likely
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "responses": list(self.responses),
            "points": [member.to_dict() | {"comparable": self.comparable(member)} for member in self.members],
            "refused": [{"point": dict(point), "reason": reason} for point, reason in self.refused.items()],
        }


def _superlatives(responses: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What the best is called, and in the product of which responses it is that."""
    known: dict[str, tuple[str, ...]] = {BEST.get(name, f"best in {_subject(name)}"): (name,) for name in responses}
    if {"time_s", "cost"} <= set(responses):
        del known[BEST["cost"]]
        known["best for the money"] = ("time_s", "cost")
    return known


def _subject(response: str) -> str:
    return noun(response).removeprefix("the ")


def capacity(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> Front:
    """The machines on the Pareto front of time, cost and energy; `study` has them as its scenarios."""
    outcomes = evaluate(trials_of(configurations.points(), study.runs, study.seed))
    groups, judge = by_point(outcomes), Judge(evaluate)
    controls = Pricing(configurations, evaluate)(groups)
    answer = _front_of_machines(outcomes, machines_of(study, configurations.folder), study.seed, controls)
    return replace(answer, trusts=judge({member.point: groups[member.point] for member in answer.members}))


def machines_of(study: "Study", folder: Path | None = None) -> list[PricedMachine]:
    """All machines of the study's numbers of nodes within its price and power, cheapest first; folder : of the file.

    Raises InputError for a catalogue that cannot be, where there are no nodes among its parts, where two parts set one
    field to different values, or where the budget allows no machine.
    """
    section = study.capacity
    if section is None:
        raise InputError("the study has no section capacity; give a catalogue of parts, and numbers of nodes")
    catalogue = _catalogue((folder or Path()) / section.catalogue)
    kinds: dict[str, list[str]] = {}
    for name, part in catalogue.parts.items():
        kinds.setdefault(part.kind, []).append(name)
    if NODE not in kinds:
        raise InputError(f"no part is of the kind {NODE}; kinds are {', '.join(kinds)}")
    every = ((nodes, chosen) for nodes in section.nodes for chosen in choices_of(catalogue.parts, kinds, nodes))
    choices = list(islice(every, MAX_MACHINES + 1))
    if len(choices) > MAX_MACHINES:
        raise InputError(f"the parts make more than {MAX_MACHINES} machines; leave some out")
    priced = [machine_of(catalogue.parts, chosen, nodes) for nodes, chosen in choices]
    machines = list({machine.name: machine for machine in priced}.values())
    price, watts = section.price or inf, section.watts or inf
    affordable = [machine for machine in machines if machine.price <= price and machine.watts <= watts]
    if not affordable:
        cheapest = min(machines, key=lambda one: one.price)
        raise InputError(
            f"no machine is within capacity.price and capacity.watts; the cheapest, {cheapest.name}, costs "
            f"{cheapest.price:g} and draws {cheapest.watts:g} W"
        )
    return sorted(affordable, key=lambda one: (one.price, one.name))


def _catalogue(path: Path) -> Catalogue:
    """Of a file; raises InputError with one line: file, line, field, what is wrong."""
    text = read_text(path, "a catalogue of parts")
    content = read_yaml(text, str(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: is no catalogue; it has parts, by name: {{kind, price, watts, set}}")
    try:
        return Catalogue.model_validate(content)
    except ValidationError as error:
        raise described(error, content, text, str(path)) from None


def _front_of_machines(
    outcomes: Iterable[Outcome], machines: Sequence[PricedMachine], seed: int, controls: Mapping[Point, Controls]
) -> Front:
    """The front of time, cost and energy; of the points of each machine (its grids, its block sizes) the fastest.

    Energy is what the platform says, and what the parts draw beside it; that of parts alone where it says nothing.
    Raises InputError if no machine could be simulated.
    """
    of_name = {machine.name: machine for machine in machines}
    chosen: dict[str, tuple[float, list[Outcome]]] = {}
    refused: list[Outcome] = []
    for point, each in by_point(outcomes).items():
        usual = [one for one in each if one.refusal is None]
        if len(usual) < len(each):
            refused += each
            continue
        mean_s = spread(usual, "time_s", controls.get(point)).mean
        name = str(point[SCENARIO])
        if name not in chosen or mean_s < chosen[name][0]:
            chosen[name] = (mean_s, [_with_costs(one, of_name[name]) for one in usual])
    if not chosen:
        why = next((one.refusal for one in refused if one.refusal), "there is none")
        raise InputError(f"no machine could be simulated: {why}")
    others = [one for one in refused if str(one.trial.point[SCENARIO]) not in chosen]
    return front([*(one for _, each in chosen.values() for one in each), *others], JUDGED, seed=seed, controls=controls)


def _with_costs(outcome: Outcome, machine: PricedMachine) -> Outcome:
    energy = outcome.responses.get("energy_j", 0.0) + machine.watts * outcome["time_s"]
    if energy == 0.0:
        raise InputError(f"{machine.name} draws nothing: neither its parts nor the platform say what; give watts")
    return replace(outcome, responses={**outcome.responses, "cost": machine.price, "energy_j": energy})


def front(
    outcomes: Iterable[Outcome],
    responses: Sequence[str],
    *,
    seed: int = 1,
    controls: Mapping[Point, Controls] | None = None,
) -> Front:
    """The front of points that have the same seeds; seed : of the draws;  controls : of points that were priced.

    Raises InputError for fewer than two responses, no point, a response that is not above 0, or no common seed.
    """
    if len(responses) < 2:
        raise InputError(f"a front of {', '.join(responses)}; a front is of two responses or more")
    outcomes = list(outcomes)
    points, values, refused = common_table(outcomes, responses)
    if len(points) > MAX_POINTS:
        raise InputError(f"a front of {len(points)} points; it is of {MAX_POINTS} at most")
    if values.min() <= 0.0:
        raise InputError("a response is not above 0, and a front is of logarithms")
    signs = np.array(list(map(sign_of, responses)))
    groups, runs = by_point(outcomes), values.shape[2]
    # Not where seeds were left out, which other points lack.
    known = [(controls or {}).get(point) if len(groups[point]) == runs else None for point in points]
    of_best = [[responses.index(name) for name in names] for names in _superlatives(responses).values()]
    chances, firsts = _on_front(np.log(values) * signs[None, :, None], known, of_best, seed)
    members = []
    for at, point in enumerate(points):
        common = sorted(groups[point], key=lambda one: one.trial.seed)
        spreads = {name: spread(common, name, (controls or {}).get(point)) for name in responses}
        members.append(Member(point, spreads, float(chances[at]), tuple(map(float, firsts[at]))))
    members.sort(key=lambda one: -one.probability)
    return Front(tuple(responses), tuple(members), refused)


def is_on_front(values: "Floats") -> "Booleans":
    """Which rows of (points, responses), less being better, no other row beats: as good in all and better in one."""
    found = np.ones(len(values), dtype=bool)
    for at, one in enumerate(values):
        found[at] = not ((values <= one).all(axis=1) & (values < one).any(axis=1)).any()
    return found


def _on_front(
    logs: "Floats", controls: Sequence[Controls | None], of_best: Sequence[Sequence[int]], seed: int
) -> "tuple[Floats, Floats]":
    """Probability of each point, and that it is the best in each product of responses, which are the numbers in
    `of_best`; logs of shape (points, responses, seeds), controls of the points."""
    count = logs.shape[2]
    if count == 1:
        return is_on_front(logs[:, :, 0]).astype(np.float64), np.empty((len(logs), 0))
    rows = [[adjusted(of.tolist(), known) for of in point] for point, known in zip(logs, controls, strict=True)]
    adjusted_logs = np.array([[one.logs for one in point] for point in rows])
    middle = adjusted_logs.mean(axis=2)
    wider = np.array([[sqrt((1.0 + one.widening) / (count - 1 - one.estimated)) for one in point] for point in rows])
    apart = (adjusted_logs - middle[:, :, None]) * wider[:, :, None]
    length = max(len(one.explained) for point in rows for one in point)
    explained = np.array([[np.resize(one.explained or 0.0, length) for one in point] for point in rows])
    generator = np.random.default_rng(seed)
    draws = max(200, min(DRAWS, 4_000_000 // len(logs) ** 2 + 1))
    degrees = count - 1 - max(one.estimated for point in rows for one in point)
    scale = np.sqrt(degrees / generator.chisquare(degrees, draws))
    places = generator.integers(length, size=draws) if length else None
    hits, firsts = np.zeros(len(logs)), np.zeros((len(logs), len(of_best)))
    for draw in range(draws):
        drawn = middle + scale[draw] * (apart @ generator.standard_normal(count))
        drawn = drawn if places is None else drawn + explained[:, :, places[draw]]
        hits += is_on_front(drawn)
        for place, columns in enumerate(of_best):
            firsts[drawn[:, columns].sum(axis=1).argmin(), place] += 1.0
    return hits / draws, firsts / draws

"""The question capacity of a study file: which machine, of the parts of a catalogue."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lepaute.errors import InputError
from lepaute.study.evaluation import SCENARIO, Evaluate, Outcome, by_point, trials_of
from lepaute.study.pareto import Front, front
from lepaute.study.schema import FieldPath, Name, Real, Value
from lepaute.study.trust import Judge

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations
    from lepaute.study.pareto import Front
    from lepaute.study.schema import Study

RESPONSES = ("time_s", "cost", "energy_j")
NODE = "node"
MOST_MACHINES = 10_000

NotNegative = Annotated[Real, Field(ge=0)]


class Part(Value):
    """Something to buy.

    kind  : a machine has one part of each kind; exactly one kind is `node`
    price : in any one currency;  watts : that it draws while the machine computes, beside what the platform says
    per   : how many are needed: one a node, one a machine, or one for so many nodes
    ranks : of a node: processes that run on it
    set   : fields of the application and the platform, as factors name them
    """

    kind: Name
    price: NotNegative
    watts: NotNegative = 0.0
    per: Literal["node", "machine"] | Annotated[int, Field(ge=1)] = "node"
    ranks: Annotated[int, Field(ge=1)] | None = None
    set: dict[FieldPath, Any] = Field(default_factory=dict)

    def count(self, nodes: int) -> int:
        """How many a machine of so many nodes needs."""
        if isinstance(self.per, int):
            return ceil(nodes / self.per)
        return nodes if self.per == "node" else 1


class Catalogue(Value):
    """Parts by name."""

    parts: dict[Annotated[str, Field(min_length=1, max_length=60)], Part] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Machine:
    """Parts put together; fields: what it sets."""

    name: str
    parts: tuple[str, ...]
    nodes: int
    price: float
    watts: float
    fields: Mapping[str, Any]


def load_catalogue(path: str | Path) -> Catalogue:
    """The catalogue of a file; raises InputError with one line: file, line, field, what is wrong."""
    from pydantic import ValidationError

    from lepaute.kit.documents import read_text, read_yaml
    from lepaute.study.faults import described

    text = read_text(path, "a catalogue of parts")
    content = read_yaml(text, str(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: is no catalogue; it has parts, by name: {{kind, price, watts, set}}")
    try:
        return Catalogue.model_validate(content)
    except ValidationError as error:
        raise described(error, content, text, str(path)) from None


def machines(
    catalogue: Catalogue, nodes: Sequence[int], *, price: float | None = None, watts: float | None = None
) -> list[Machine]:
    """All machines of these numbers of nodes within a price and a power, the cheapest first.

    Raises InputError where there are no nodes among the parts, where two parts set one field to different values, or
    where the budget allows no machine.
    """
    kinds: dict[str, list[str]] = {}
    for name, part in catalogue.parts.items():
        kinds.setdefault(part.kind, []).append(name)
    if NODE not in kinds:
        raise InputError(f"no part is of the kind {NODE}; kinds are {', '.join(kinds)}")
    if not nodes or min(nodes) < 1:
        raise InputError(f"nodes is {list(nodes)}; give numbers of nodes of 1 or more")
    total = len(nodes)
    for names in kinds.values():
        total *= len(names)
    if total > MOST_MACHINES:
        raise InputError(f"the parts make {total} machines; leave some out, at most {MOST_MACHINES} are looked at")
    found = [
        _machine(catalogue, chosen, count) for count in dict.fromkeys(nodes) for chosen in product(*kinds.values())
    ]
    usual = [one for one in found if (price is None or one.price <= price) and (watts is None or one.watts <= watts)]
    if not usual:
        cheapest = min(found, key=lambda one: one.price)
        raise InputError(
            f"no machine is within the budget; the cheapest, {cheapest.name}, costs {cheapest.price:g} and draws "
            f"{cheapest.watts:g} W"
        )
    return sorted(usual, key=lambda one: (one.price, one.name))


def with_machines(study: "Study", found: Sequence[Machine]) -> "Study":
    """The study whose scenarios are the machines, beside its own factors; raises InputError where it has scenarios."""
    if study.scenarios:
        raise InputError("a study of capacity has no scenarios: the machines of the catalogue are its scenarios")
    return study.model_copy(update={"scenarios": {one.name: dict(one.fields) for one in found}})


def answered(outcomes: Iterable[Outcome], found: Sequence[Machine], *, seed: int = 1) -> Front:
    """The front of time, cost and energy; of the points of each machine (its grids, its block sizes) the fastest.

    Energy is what the platform says, and what the parts draw beside it; that of parts alone where it says nothing.
    Raises InputError where no machine could be simulated.
    """
    of_name = {one.name: one for one in found}
    chosen: dict[str, tuple[float, list[Outcome]]] = {}
    refused: list[Outcome] = []
    for point, each in by_point(outcomes).items():
        usual = [one for one in each if one.refusal is None]
        if len(usual) < len(each):
            refused += each
            continue
        mean = sum(log(one["time_s"]) for one in usual) / len(usual)
        name = str(point[SCENARIO])
        if name not in chosen or mean < chosen[name][0]:
            chosen[name] = (mean, [_with_costs(one, of_name[name]) for one in usual])
    if not chosen:
        why = next((one.refusal for one in refused if one.refusal), "there is none")
        raise InputError(f"no machine could be simulated: {why}")
    best = [one for _, each in chosen.values() for one in each]
    left = [one for one in refused if str(one.trial.point[SCENARIO]) not in chosen]
    return front([*best, *left], RESPONSES, seed=seed)


def _machine(catalogue: Catalogue, names: Sequence[str], nodes: int) -> Machine:
    parts = {name: catalogue.parts[name] for name in names}
    fields: dict[str, Any] = {}
    for name, part in parts.items():
        for field, value in part.set.items():
            if fields.get(field, value) != value:
                raise InputError(
                    f"part {name} sets {field} to {value!r:.40}, and another part to {fields[field]!r:.40}"
                )
            fields[field] = value
    fields["platform.nodes.count"] = nodes
    ranks = next(part.ranks for part in parts.values() if part.kind == NODE)
    if ranks is not None:
        fields.setdefault("application.grid", _grid(nodes * ranks))
    price = sum(part.count(nodes) * part.price for part in parts.values())
    watts = sum(part.count(nodes) * part.watts for part in parts.values())
    others = [name for name, part in parts.items() if part.kind != NODE]
    node = next(name for name, part in parts.items() if part.kind == NODE)
    return Machine(", ".join([f"{nodes} x {node}", *others]), tuple(names), nodes, price, watts, fields)


def _grid(ranks: int) -> str:
    """The grid nearest to square of all these processes, no higher than wide."""
    height = next(p for p in range(int(ranks**0.5), 0, -1) if ranks % p == 0)
    return f"{height}x{ranks // height}"


def _with_costs(outcome: Outcome, machine: Machine) -> Outcome:
    time_s = outcome["time_s"]
    energy = outcome.responses.get("energy_j", 0.0) + machine.watts * time_s
    costs = {"cost": machine.price, "energy_j": energy}
    if energy == 0.0:
        raise InputError(f"{machine.name} draws nothing: neither its parts nor the platform say what; give watts")
    return replace(outcome, responses={**outcome.responses, **costs})


def machines_of(study: "Study", folder: Path | None = None) -> list[Machine]:
    """The machines within the budget, the cheapest first; folder : of the study file.

    Raises InputError for a catalogue that cannot be, or a budget that allows no machine.
    """
    asked = study.capacity
    if asked is None:
        raise InputError("the study has no section capacity; give a catalogue of parts, and numbers of nodes")
    catalogue = load_catalogue((folder or Path()) / asked.catalogue)
    return machines(catalogue, asked.nodes, price=asked.price, watts=asked.watts)


def study_of_machines(study: "Study", folder: Path | None = None) -> "Study":
    """The study whose scenarios are the machines."""
    return with_machines(study, machines_of(study, folder))


def capacity(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> "Front":
    """The machines on the Pareto front of time, cost and energy; `study` has them as its scenarios."""
    outcomes = evaluate(trials_of(configurations.points(), study.runs, study.seed))
    found = answered(outcomes, machines_of(study, configurations.folder), seed=study.seed)
    groups, judge = by_point(outcomes), Judge(evaluate)
    chosen = {one.point: groups[one.point] for one in found.members}
    return replace(found, trusts=judge(chosen) if study.runs > 1 else {})

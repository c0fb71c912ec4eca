"""From a point of a study to what is simulated there: application, platform, mapping, layers."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from threading import RLock
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.quantities import lag_of, whole_of
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions, Layers, State, at_lag, read_transfer
from lepaute.simulate.machine.mapping import Mapping as RankMapping
from lepaute.simulate.machine.mapping import platform_slots, read_hostfile, read_rankfile
from lepaute.simulate.machine.memory import check_memory
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.components import KNOBS, with_components
from lepaute.simulate.platform.io import with_values
from lepaute.simulate.platform.nodes import most_ranks
from lepaute.simulate.platform.population import known_population
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.trust import weaknesses_of
from lepaute.stats.decision import Weakness
from lepaute.study.components import (
    WHICH,
    build_application,
    multiple,
    platform_fields,
    slowest_nodes,
    with_population_knobs,
)
from lepaute.study.evaluation import SCENARIO, Point, Trial
from lepaute.study.schema import Placed, Study
from lepaute.version import __version__

#: Parameters of applications that decide which rank computes what.
_GEOMETRY = ("p", "q", "grid", "pmap")
#: Configurations that are kept; each holds a platform.
_MAX_KEPT = 256


@dataclass(frozen=True)
class Configuration:
    """What is simulated at a point."""

    application: "Application"
    conditions: Conditions

    @cached_property
    def about(self) -> dict[str, Any]:
        """All that decides the results but platform, seed, repeat and version."""
        application, conditions = self.application, self.conditions
        code = application.on(conditions.platform).code
        place = (conditions.platform, application.ranks, application.threads_per_rank)
        return {
            "application": application.name,
            "parameters": application.parameters(),
            "mapping": conditions.mapping.to_dict(*place),
            "choices": conditions.choices,
            "fidelity": conditions.fidelity,
            **({"code": code} if code else {}),
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that decides the results but seed and repeat."""
        content = self.about | {"platform": self.conditions.platform_sha256, "version": __version__}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def key(self, trial: Trial) -> str:
        """Of a simulation: the same one has the same key, whichever study asks for it."""
        kind = f" {trial.drawn}" if trial.drawn else f" priced for {trial.priced}" if trial.priced else ""
        return hashlib.sha256(f"{self.digest} {trial.seed} {trial.repeat}{kind}".encode()).hexdigest()

    def repeated(self, repeat: int) -> Conditions:
        """The conditions of another run on the same machines and days."""
        return self.conditions if repeat == 0 else replace(self.conditions, repeat=repeat)

    @cached_property
    def geometry(self) -> tuple[object, ...]:
        """Which rank computes what on which cores."""
        parameters = self.application.parameters()
        return tuple(self._cores), *(str(parameters.get(name)) for name in _GEOMETRY), self.application.threads_per_rank

    @property
    def nodes(self) -> int:
        """Nodes that hold ranks."""
        return len({core // self.conditions.platform.nodes.cores for core in self._cores})

    @cached_property
    def _cores(self) -> Sequence[int]:
        application = self.application
        return self.conditions.mapping.cores(self.conditions.platform, application.ranks, application.threads_per_rank)


class Configurations:
    """The configuration of each point of a study, made once; can be sent to another process.

    folder : of the study file, which names of platform files are relative to
    Raises InputError or PlatformError if the base cannot be.
    """

    def __init__(self, study: Study, folder: Path | None = None) -> None:
        self.study, self.folder = study, folder
        self._platforms = {name: load_platform(_located(name, folder)) for name in _platform_names(study)}
        transfer = study.base.transfer
        self._transfer = None if transfer is None else read_transfer((folder or Path()) / transfer)
        self._keep_nothing()

    def _keep_nothing(self) -> None:
        self._kept: OrderedDict[Point, Configuration] = OrderedDict()
        self._bases: dict[str, Platform] = {}
        self._made_platforms: OrderedDict[str, Platform] = OrderedDict()
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {"study": self.study, "folder": self.folder, "_platforms": self._platforms, "_transfer": self._transfer}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep_nothing()

    @property
    def platform_digests(self) -> dict[str, str]:
        """SHA-256 of each platform that the study names, before anything is set or scaled."""
        return {name: platform.sha256 for name, platform in self._platforms.items()}

    def at(self, point: Point) -> Configuration:
        """The configuration of a point; raises InputError or PlatformError if there can be none."""
        with self._lock:
            known = self._kept.get(point)
            if known is not None:
                self._kept.move_to_end(point)
                return known
            made = self._made(self._values(point))
            self._kept[point] = made
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
            return made

    def weaknesses(self, points: Iterable[Point]) -> tuple[Weakness, ...]:
        """Those of platforms and applications, which leave a decision as it is; `trust.caveats` says them, too."""
        made = map(self.at, points)
        return tuple({weak: 0 for at in made for weak in weaknesses_of(at.application, at.conditions.platform)})

    def check(self, point: Point) -> Application:
        """The application at a point; raises InputError or PlatformError where any part cannot be."""
        values = self._values(point)
        application = build_application(self._application_values(values), self.folder)
        self._mapping(values, self._platform(values), application)
        return application

    def points(self) -> list[Point]:
        """All combinations of levels that the constraints allow, in the order of the file, the last factor fastest."""
        levels = self.study.levels
        combinations = (Point(dict(zip(levels, values, strict=True))) for values in product(*levels.values()))
        return [point for point in combinations if self.allows(point)]

    def allows(self, point: Point) -> bool:
        """Whether all constraints hold; raises InputError for one that has no value."""
        return all(expression.holds(self.names(point)) for expression in self.study.expressions)

    def names(self, point: Point) -> dict[str, Any]:
        """What expressions know at a point: factors, and fields of the application."""
        return self.fields(point) | dict(point)

    def fields(self, point: Point) -> dict[str, Any]:
        """The fields of the application at a point, and its ranks, as far as it can be made."""
        values = self._application_values(self._values(point))
        known = {name: value for name, value in values.items() if name not in WHICH}
        try:
            application = build_application(values, self.folder)
        except InputError:
            return known
        return known | application.parameters() | {"ranks": application.ranks}

    def derived(self, point: Point, responses: Mapping[str, float]) -> dict[str, float]:
        """The derived responses of a run."""
        if not self.study.formulas:
            return {}
        known = self.names(point) | {"nodes": self.at(point).nodes} | dict(responses)
        for name, formula in self.study.formulas.items():
            known[name] = formula.number(known)
        return {name: known[name] for name in self.study.formulas}

    def _values(self, point: Point) -> dict[str, Any]:
        """Value by path: of the factors, then of the scenario."""
        values: dict[str, Any] = {}
        for name, value in point.items():
            if name == SCENARIO and self.study.scenarios:
                continue
            if name not in self.study.factors:
                raise InputError(f"there is no factor {name[:80]!r}; factors are {', '.join(self.study.factors)}")
            values[self.study.factors[name].path] = value
        if self.study.scenarios:
            scenario = point.get(SCENARIO, next(iter(self.study.scenarios)))
            if scenario not in self.study.scenarios:
                known = ", ".join(self.study.scenarios)
                raise InputError(f"there is no scenario {str(scenario)[:80]!r}; scenarios are {known}")
            values |= self.study.scenarios[str(scenario)]
        return values

    @cached_property
    def _times(self) -> frozenset[str]:
        """Paths whose values are multiples of the base's."""
        return frozenset(factor.path for factor in self.study.factors.values() if factor.times)

    def _application_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the application at a point, as a study file has them."""
        fields = dict(self.study.base.application)
        for path, value in values.items():
            root, _, name = path.partition(".")
            if root == "application":
                fields[name] = multiple(path, fields.get(name), value) if path in self._times else value
        return fields

    def _made(self, values: Mapping[str, Any]) -> Configuration:
        application = build_application(self._application_values(values), self.folder)
        platform = self._platform(values)
        mapping = self._mapping(values, platform, application)
        study = self.study
        platform, lag = at_lag(platform, None if study.base.lag is None else lag_of(study.base.lag))
        usual: State = "any" if study.question == "capacity" and platform.slow_state is not None else "undisturbed"
        conditions = Conditions(
            *(platform, Layers.without(study.base.without), mapping, study.base.fidelity),
            transfer=self._transfer,
            lag=lag,
            state=study.base.state or usual,
        )
        check_memory(application, platform, mapping.cores(platform, application.ranks, application.threads_per_rank))
        return Configuration(application, conditions)

    def _platform(self, values: Mapping[str, Any]) -> Platform:
        """One for all points that have the same."""
        kept = {path: value for path, value in values.items() if not path.startswith(("application.", "mapping."))}
        text = json.dumps(kept, sort_keys=True)
        if text not in self._made_platforms:
            self._made_platforms[text] = self._made_platform(kept)
            if len(self._made_platforms) > _MAX_KEPT:
                self._made_platforms.popitem(last=False)
        return self._made_platforms[text]

    def _made_platform(self, values: Mapping[str, Any]) -> Platform:
        name = str(values.get("platform", self.study.base.platform))
        if name not in self._platforms:
            raise InputError(f"platform {name[:80]!r} is none of this study's: {', '.join(self._platforms)}")
        if name not in self._bases:
            self._bases[name] = _with_fields(self._platforms[name], self.study.base.set)
        platform = _with_fields(self._bases[name], platform_fields(values, self._times, self._bases[name]))
        population = {path: value for path, value in values.items() if path.startswith("population.")}
        if self.study.base.nodes is not None:
            platform = self._synthesized(platform, population)
        elif population:
            platform = with_population_knobs(platform, population)
        return with_components(platform, {path: value for path, value in values.items() if path.startswith(KNOBS)})

    def _synthesized(self, like: "Platform", population: Mapping[str, Any]) -> "Platform":
        base = self.study.base
        factors = {path.removeprefix("population."): value for path, value in population.items()}
        if unknown := sorted(set(factors) - {"spatial", "temporal"}):
            raise InputError(f"population.{unknown[0]} does not go with base.nodes, whose nodes are drawn once")
        assert base.nodes is not None
        threads = whole_of(str(base.application.get("threads_per_rank", 1)), "application.threads_per_rank")
        return synthesize(
            like, known_population(like), nodes=base.nodes, seed=base.seed, threads=max(1, threads), **factors
        )

    def _mapping(self, values: Mapping[str, Any], platform: "Platform", application: "Application") -> RankMapping:
        chosen = self.study.base.mapping
        placed = chosen if isinstance(chosen, Placed) else None
        knobs = {path.removeprefix("mapping."): value for path, value in values.items() if path.startswith("mapping.")}
        if unknown := sorted(set(knobs) - {"kind", "seed", "without_slowest"}):
            raise InputError(f"mapping.{unknown[0]} is no knob; they are mapping.kind, .seed and .without_slowest")
        order: Any = knobs.get("kind", chosen if placed is None else placed.kind)
        seed = knobs.get("seed", 1 if placed is None else placed.seed)
        if "kind" in knobs and order not in ("sequential", "random"):
            raise InputError(f"mapping.kind is {order!r:.60}; it is sequential or random")
        seeded = "seed" in knobs or (placed is not None and "seed" in placed.model_fields_set)
        is_crossed = any(factor.path == "mapping.kind" for factor in self.study.factors.values())
        if seeded and order != "random" and not is_crossed:  # of crossed factors the seed counts where it is random
            raise InputError(
                f"mapping.seed is of a random mapping, and this one is {order}: it would change nothing; leave it out, "
                "or set mapping.kind: random"
            )
        without = knobs.get("without_slowest", 0)
        for name, value in (("seed", seed), ("without_slowest", without)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"mapping.{name} is {value!r:.60}; it is a whole number of 0 or more")
        threads = application.threads_per_rank
        slots, source = None, None
        if placed is not None and placed.file is not None:
            read = read_rankfile if placed.kind == "rankfile" else read_hostfile
            of_file = read((self.folder or Path()) / placed.file, platform, threads, hosts=placed.hosts)
            slots, source = of_file.slots, of_file.source
        if without:
            left_out = set(slowest_nodes(platform, without, threads))
            every = slots or platform_slots(platform, most_ranks(platform, threads), threads)
            slots = tuple(slot for slot in every if slot.node not in left_out)
            source = f"{source or 'the platform'} without the {without} slowest nodes"
        if order == "hostfile":
            order = "sequential"
        return RankMapping(order, seed if order == "random" else 1, slots, source)


def _with_fields(platform: "Platform", fields: Mapping[str, Any]) -> "Platform":
    return with_values(platform, fields) if fields else platform


def _platform_names(study: Study) -> list[str]:
    named = [study.base.platform]
    for factor in study.factors.values():
        if factor.path == "platform":
            named += map(str, factor.levels or ())
    named += [str(scenario["platform"]) for scenario in study.scenarios.values() if "platform" in scenario]
    return list(dict.fromkeys(named))


def _located(name: str, folder: Path | None) -> str | Path:
    """A platform's file, from the folder of the study; or its name."""
    if folder is None or ("/" not in name and not name.endswith((".yaml", ".yml"))):
        return name
    return folder / name

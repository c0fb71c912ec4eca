"""What the values of a point make: the application, fields of the platform, its population, and the slowest nodes.

application.FIELD    as on the command line of `lepaute predict`; a grid is one value, such as 8x4
platform.FIELD       [*] and * stand for all elements of a list or a mapping
population.spatial   standard deviations between CPUs, times a number;  population.temporal: between days
population.weight[I] share of the nodes that are of group I; the others share the rest as before
population.draw      what each run draws anew: none, days or nodes-and-days
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import fsum
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.documents import guess
from lepaute.kit.options import option_of, word_of
from lepaute.kit.quantities import product_of, whole_of
from lepaute.simulate.application import Application
from lepaute.simulate.apps import application_class
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.apps.program import ProgramRun
from lepaute.simulate.machine.population import scaled as scaled_population
from lepaute.simulate.platform.components import number_of
from lepaute.simulate.platform.io import with_population
from lepaute.simulate.platform.kernel_model import UPDATE, value_of
from lepaute.simulate.platform.nodes import refuse_groups
from lepaute.simulate.platform.population import Population, population_of
from lepaute.simulate.platform.schema import Platform

POPULATION = ("spatial", "temporal", "draw", "weight[I]")

#: Of the fields of `application`: which one it is.
WHICH = ("name", "class", "program")


def build_application(values: Mapping[str, Any], folder: Path | None = None) -> "Application":
    """The application of `values`: its name, its class as FILE.py:CLASS in `folder` or a program there, and its fields.

    Raises InputError for a field that it does not have, and for a value that cannot be.
    """
    which = next(each for each in WHICH if each in values)
    cls: Any = ProgramRun
    if which != "program":
        cls = application_class(values["name"]) if which == "name" else loaded(values["class"], folder)
    names = _members(cls)
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        if name == which != "program":
            continue
        if name not in names:
            raise InputError(
                f"application.{name[:60]} is no field of {values[which]}{guess(name, list(names))}; "
                f"it has {', '.join(names)}"
            )
        arguments |= _arguments(cls, name, names[name], value)
        is_path = any(field.name == name and field.type in (Path, "Path") for field in fields(cls))
        if folder is not None and isinstance(value, str) and is_path:
            arguments[name] = folder / value
    try:
        described = cls(**arguments)
    except TypeError:
        needed = {one.name for one in fields(cls) if one.default is MISSING and one.default_factory is MISSING}
        missing = [name for name, members in names.items() if needed & set(members) - set(arguments)]
        raise InputError(f"application.{missing[0] if missing else which} is missing; give it") from None
    application: Application = described.application if cls is ProgramRun else described
    return application


def _members(cls: Any) -> dict[str, tuple[str, ...]]:
    """The name of each field in a study file -> the fields of the class; p and q of HPL are `grid`."""
    options = {field.name: option for field in fields(cls) if (option := option_of(field)) is not None}
    counts = Counter(option.name for option in options.values() if option.name)
    together: dict[str, tuple[str, ...]] = {}
    for field in fields(cls):
        shared = options[field.name].name if field.name in options else None
        name = shared if shared and counts[shared] > 1 else field.name
        together[name] = (*together.get(name, ()), field.name)
    return together


def _arguments(cls: Any, name: str, members: tuple[str, ...], value: Any) -> dict[str, Any]:
    if len(members) > 1:
        form = f"{' x '.join(member.upper() for member in members)} such as {'x'.join('8' for _ in members)}"
        return dict(zip(members, product_of(str(value), f"application.{name}", form), strict=True))
    field = next(field for field in fields(cls) if field.name == members[0])
    option = option_of(field)
    if field.type is bool and not isinstance(value, bool):
        value = str(value)  # 0 and 1, as on the command line
    if isinstance(value, str) and option is not None and option.choices:
        value = word_of(value, option.choices, name, option.aliases)
    elif isinstance(value, str) and option is not None and option.parse is not None:
        value = option.parse(value)
    elif isinstance(value, str) and field.type in (int, int | None):
        value = whole_of(value, f"application.{name}")
    elif isinstance(value, int | float) and not isinstance(value, bool) and field.type in (str, str | None):
        value = str(value)  # as on the command line
    elif isinstance(value, int) and not isinstance(value, bool) and field.type in (float, float | None):
        value = float(value)
    return {members[0]: value}


def platform_fields(values: Mapping[str, Any], multiples: frozenset[str], platform: "Platform") -> dict[str, Any]:
    """The fields of the platform that values set, with each [*] written out; multiples : paths of factors that multiply
    what is there. Raises InputError if a path leads nowhere, or to no number that could be multiplied.
    """
    result: dict[str, Any] = {}
    content: Any = None
    for path, value in values.items():
        if not path.startswith("platform."):
            continue
        field = path.removeprefix("platform.")
        if "*" not in field and path not in multiples:
            result[field] = value
            continue
        content = platform.model_dump() if content is None else content
        for place, before in _matching(field, content):
            result[place] = multiple(path, before, value) if path in multiples else value
    return result


def multiple(path: str, before: Any, factor: Any) -> Any:
    """A value of the base times a factor; raises InputError if it is no number."""
    if isinstance(before, str):
        before = whole_of(before, path)
    if isinstance(before, bool) or not isinstance(before, int | float):
        raise InputError(f"{path} is {before!r:.60} in the base, and no number to be multiplied")
    product_ = before * factor
    return round(product_) if isinstance(before, int) else float(product_)


def _matching(field: str, content: Any) -> list[tuple[str, Any]]:
    """Each place that a path with [*] stands for, and the value there."""
    places: list[tuple[str, Any]] = [("", content)]
    for word in re.findall(r"\[(?:\d+|\*)\]|[^.\[\]]+", field):
        further: list[tuple[str, Any]] = []
        for place, value in places:
            if word == "[*]" and isinstance(value, list | tuple):
                further += [(f"{place}[{at}]", each) for at, each in enumerate(value)]
            elif word == "*" and isinstance(value, dict):
                further += [(f"{place}.{key}", each) for key, each in value.items()]
            elif isinstance(value, dict) and word in value:
                further.append((f"{place}.{word}", value[word]))
            elif word.startswith("[") and isinstance(value, list | tuple) and int(word[1:-1]) < len(value):
                further.append((f"{place}{word}", value[int(word[1:-1])]))
        places = further
    if not places:
        raise InputError(f"the platform has no field {field[:100]}")
    return [(place.removeprefix("."), value) for place, value in places]


def with_population_knobs(platform: "Platform", knobs: Mapping[str, Any]) -> "Platform":
    """`platform` with the knobs population.… applied to its population, or to the one that is shipped for it.

    Runs draw days unless `draw` is given; nodes too if the platform does, or population.spatial or a weight is set.
    """
    population = population_of(platform)
    nodes_too = platform.population is not None and population.draw == "nodes-and-days"
    spatial, temporal, draw = 1.0, 1.0, None
    for path, value in knobs.items():
        name = path.removeprefix("population.")
        if name == "draw":
            draw = value
        elif name == "spatial":
            spatial, nodes_too = _sd_factor(path, value), True
        elif name == "temporal":
            temporal = _sd_factor(path, value)
        elif match := re.fullmatch(r"weight\[(\d{1,3})\]", name):
            population, nodes_too = _weighted(population, int(match[1]), number_of(path, value)), True
        else:
            raise InputError(f"{path} is no knob of a population; they are {', '.join(POPULATION)}")
    usual = "nodes-and-days" if nodes_too else "days"
    chosen = scaled_population(population, spatial, temporal)
    return with_population(platform, chosen.model_dump() | {"draw": usual if draw is None else draw})


def slowest_nodes(platform: "Platform", count: int, threads: int = 1) -> list[int]:
    """The places, from 0, of the `count` nodes with the slowest dgemm of this many threads; of equal ones the first.

    Raises InputError if the nodes do not differ, or there are not so many.
    """
    refuse_groups(platform, "slowest nodes to leave out")
    model = platform.kernel("dgemm", threads) or platform.kernel("dgemm")
    table = None if model is None else model.pieces[-1].per_cpu
    if table is None:
        raise InputError(
            f"the nodes of platform {platform.name} do not differ in dgemm, so that none is the slowest; take one "
            "whose nodes were calibrated apart, or draw nodes (base: {nodes: N})"
        )
    if not 0 <= count < platform.nodes.count:
        raise InputError(f"{count} nodes cannot be left out of {platform.nodes.count}")
    terms = table.mean_terms
    slowest = [0.0] * platform.nodes.count
    for row in table.rows:
        place = int(row[0]) - platform.nodes.first_number
        slowest[place] = max(slowest[place], value_of(dict(zip(terms, row[2 : 2 + len(terms)], strict=True)), *UPDATE))
    return sorted(range(len(slowest)), key=lambda place: (-slowest[place], place))[:count]


def _sd_factor(path: str, value: Any) -> float:
    factor = number_of(path, value)
    if not 0.0 <= factor <= 1e6:
        raise InputError(f"{path} is {factor:g}; a factor of standard deviations is 0 to 1e6")
    return factor


def _weighted(population: "Population", number: int, weight: float) -> "Population":
    groups = population.groups
    if not number < len(groups) or len(groups) < 2:
        raise InputError(f"population.weight[{number}]: the population has {len(groups)} group(s), from 0")
    if not 0.0 < weight < 1.0:
        raise InputError(f"population.weight[{number}] is {weight:g}; a share of the nodes is above 0 and below 1")
    others = fsum(group.weight for place, group in enumerate(groups) if place != number)
    shares = {place: (1.0 - weight) * group.weight / others for place, group in enumerate(groups)} | {number: weight}
    weighted = tuple(group.model_copy(update={"weight": shares[place]}) for place, group in enumerate(groups))
    return population.model_copy(update={"groups": weighted, "group_of_node": None})

"""Whether a study can be run at all, before anything is simulated."""

from typing import Any

from lepaute.errors import LepauteError
from lepaute.kit.yaml_faults import guess
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import SCENARIO, Point
from lepaute.study.faults import located
from lepaute.study.schema import Study


def check_study(configurations: Configurations, text: str | None = None, origin: str = "study") -> None:
    """Raises InputError, with the line in `text`, where the base or a single level of a factor cannot be.

    What cannot be only together with other levels is a refused trial, and not an error.
    """
    study = configurations.study

    def tried(point: Point, *at: str | int) -> None:
        try:
            configurations.check(point)
        except LepauteError as error:
            raise located(at, f"cannot be: {error}", text, origin) from None

    for name in study.scenarios:
        tried(Point({SCENARIO: name}), "scenarios", name)
    if not study.scenarios:
        tried(_first_levels(study), "base")
    for name, factor in study.factors.items():
        start = _first_levels(study)
        for place, level in enumerate(factor.levels or ()):
            tried(start.with_(**{name: level}), "factors", name, "levels", place)
        for bound in factor.bounds or ():
            tried(start.with_(**{name: round(bound) if factor.integer else bound}), "factors", name)
    names = configurations.names(_first_levels(study))
    for place, expression in enumerate(study.expressions):
        _check_names(expression.names, names, ("constraints", place), text, origin)
    known = set(names) | {"nodes", "ranks", "time_s", "rate_gflops", "energy_j", "gflops_per_watt"}
    for name, formula in study.formulas.items():
        _check_names(formula.names, known, ("derived", name), text, origin)
        known.add(name)
    if all(factor.levels is not None for factor in study.factors.values()) and not configurations.points():
        raise located(("constraints",), "hold at no point; loosen one", text, origin)


def _check_names(used: Any, known: Any, at: tuple[str | int, ...], text: str | None, origin: str) -> None:
    for name in sorted(used):
        if name not in known:
            message = f"has the unknown name {name}{guess(name, sorted(known))}; known are {', '.join(sorted(known))}"
            raise located(at, message, text, origin)


def _first_levels(study: Study) -> Point:
    """A point in the midst of things: the first level of each factor, the beginning of each range."""
    values: dict[str, Any] = {name: levels[0] for name, levels in study.levels.items()}
    for name, factor in study.factors.items():
        if factor.levels is None:
            spread = factor.distribution
            value = factor.bounds[0] if factor.bounds else (spread.mean if spread else None)
            values[name] = round(value) if factor.integer and value is not None else value
    return Point(values)

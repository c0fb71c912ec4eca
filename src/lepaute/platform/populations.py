"""Populations of shipped platforms, in files beside them: the platforms, and their digests, stay as they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lepaute.errors import PlatformError
from lepaute.kit.documents import read_text, read_yaml

if TYPE_CHECKING:
    from lepaute.platform.population import Population
    from lepaute.platform.schema import Platform

FOLDER = Path(__file__).resolve().parent.parent / "platforms" / "populations"
#: The daily calibrations that stand for the days of a shipped platform, as for its layer `days`.
POPULATION_OF: Mapping[str, str] = {
    "dahu-2019-04": "dahu-slow-nodes",
    "dahu-2019-07": "dahu-good",
    "dahu-2019-10": "dahu-slow-nodes",
    "dahu-2020-01": "dahu-good",
    "dahu-2020-01-loaded": "dahu-good",
}


def population_of(platform: "Platform") -> "Population":
    """The population of `platform`: its own, or the one that is shipped for its name.

    Raises PlatformError where there is none.
    """
    population = known_population(platform)
    if population is None:
        raise PlatformError(
            f"platform {platform.name} has no population to draw nodes from; fit one to calibrations of several days "
            "with 'lepaute platform population', or use a platform that has one, such as dahu"
        )
    return population


def known_population(platform: "Platform") -> "Population | None":
    """As `population_of`, None where there is none."""
    if platform.population is not None:
        return platform.population
    content = shipped_population(platform.name)
    if content is None:
        return None
    from lepaute.platform.population import Population

    return Population.model_validate(content)


def shipped_population(name: str) -> dict[str, Any] | None:
    """The content of the population that is shipped for the platform `name`; None where there is none."""
    if name not in POPULATION_OF:
        return None
    path = FOLDER / f"{POPULATION_OF[name]}.yaml"
    content: dict[str, Any] = read_yaml(read_text(path, "a shipped population"), str(path))
    return content


def population_text(population: "Population", header: str) -> str:
    """The YAML form of `population`, after the lines of `header` as comments; ten digits of each number."""
    content = _rounded(population.model_dump(mode="json", exclude_none=True))
    text: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True)
    return "".join(f"# {line}\n" for line in header.splitlines()) + text


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value

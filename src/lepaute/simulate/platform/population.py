"""The population that the CPUs of a platform are drawn from: how much CPUs differ, and one CPU from day to day.

Those of shipped platforms stand in files beside them: the platforms, and their digests, stay as they are.

For cpu p of a node of group g on day d, with θ the coefficients of a kernel's duration (Cornebize's thesis, equations
4.2 to 4.5 and the mixture after them; the part common to a day and the factors of single CPUs are ours):

    θ_p ~ N(mean_g, covariance_spatial_g)       g drawn for each node by the weights
    θ_pd = θ_p + common_d + scale_p * own_pd    common_d ~ N(0, covariance_common), own_pd ~ N(0, covariance_temporal)
    log scale_p ~ N(0, covariance_log_scale)    a factor for each coefficient
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Len

from lepaute.errors import PlatformError
from lepaute.kit.documents import read_text, read_yaml
from lepaute.simulate.platform.values import (
    TOLERANCE,
    Check,
    Count,
    Number,
    Positive,
    Rows,
    Value,
    check_covariance,
    constant_term,
    fault,
    refuse_twice,
    validate_term,
)
from lepaute.stats.cholesky import lower_factor

if TYPE_CHECKING:
    from lepaute.simulate.platform.schema import Platform

#: Largest variance of logarithms of factors; far beyond what CPUs do: one of 44 would have a factor above e^20.
LARGEST_LOG_VARIANCE = 100.0
FOLDER = Path(__file__).resolve().parent.parent / "platforms" / "populations"
#: The daily calibrations that stand for the days of a shipped platform, as for its layer `days`.
POPULATION_OF: Mapping[str, str] = {
    "dahu-2019-04": "dahu-slow-nodes",
    "dahu-2019-07": "dahu-good",
    "dahu-2019-10": "dahu-slow-nodes",
    "dahu-2020-01": "dahu-good",
    "dahu-2020-01-loaded": "dahu-good",
}
Draw = Literal["none", "days", "nodes-and-days"]


def _known(term: str) -> str:
    validate_term(term.removeprefix("sd:"))
    return term


#: A term of the mean, such as mnk or 1, or of the standard deviation of a call, such as sd:mnk.
Coefficient = Annotated[str, Check(before=constant_term, after=_known)]


class Group(Value):
    """Nodes that are alike: their share of all nodes, and the spread of their CPUs.

    covariance_temporal, covariance_log_scale : of its CPUs, where they differ from those of the population
    """

    weight: Annotated[Number, Gt(0), Le(1)]
    mean: tuple[Number, ...]
    covariance_spatial: Rows
    covariance_temporal: Rows | None = None
    covariance_log_scale: Rows | None = None


class Population(Value):
    """The coefficients `terms` of kernel `kernel` run by `threads` threads, as random variables.

    draw : what each run draws anew: nothing, the day, or all nodes and the day
    group_of_node : position in `groups` of the group of each node of this platform; null where it is not known
    covariance_temporal : of a cpu's own part of a day;  covariance_common : of the part that all CPUs share, null: none
    covariance_log_scale : of the logarithms of the factors that the own parts of a cpu are multiplied by; null: all 1
    scale_of_cpu : these factors of the CPUs of this platform, node by node; null where they are not known
    """

    kernel: Annotated[str, Check(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")] = "dgemm"
    threads: Count = 1
    terms: Annotated[tuple[Coefficient, ...], Len(1)]
    draw: Draw = "days"
    groups: Annotated[tuple[Group, ...], Len(1)]
    group_of_node: tuple[Annotated[int, Ge(0)], ...] | None = None
    covariance_temporal: Rows
    covariance_common: Rows | None = None
    covariance_log_scale: Rows | None = None
    scale_of_cpu: tuple[tuple[Positive, ...], ...] | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        refuse_twice(self.terms, "term", "terms")
        if all(term.startswith("sd:") for term in self.terms):
            raise fault("has no terms of the mean", "terms", remedy="Add one, such as mnk.")
        size = len(self.terms)
        total = sum(group.weight for group in self.groups)
        if abs(total - 1.0) > TOLERANCE:
            raise fault(f"have weights that sum to {total:g}", "groups", remedy="Make them sum to 1.")
        _check_covariances(self, size)
        for position, group in enumerate(self.groups):
            if len(group.mean) != size:
                raise fault(f"has {len(group.mean)} values for {size} terms", "groups", position, "mean")
            _check_covariances(group, size, "groups", position)
        for position, row in enumerate(self.scale_of_cpu or ()):
            if len(row) != size:
                raise fault(f"has {len(row)} values for {size} terms", "scale_of_cpu", position)
        for position, number in enumerate(self.group_of_node or ()):
            if number >= len(self.groups):
                raise fault(f"is {number}; groups are 0 to {len(self.groups) - 1}", "group_of_node", position)


def _check_covariances(holder: Group | Population, size: int, *at: str | int) -> None:
    """Raises the fault of a field that is no covariance of `size` coefficients."""
    for name in ("covariance_spatial", "covariance_temporal", "covariance_common", "covariance_log_scale"):
        rows: Rows | None = getattr(holder, name, None)
        if rows is None:
            continue
        check_covariance(rows, size, *at, name)
        try:
            lower_factor(rows)
        except ValueError:
            problem = "is not positive semi-definite: a linear combination of the coefficients has a negative variance"
            raise fault(problem, *at, name) from None
        largest = max(row[term] for term, row in enumerate(rows))
        if name == "covariance_log_scale" and largest > LARGEST_LOG_VARIANCE:
            what = f"has a variance of {largest:g}; logarithms of factors vary by {LARGEST_LOG_VARIANCE:g} at most"
            raise fault(what, *at, name)


def population_of(platform: "Platform") -> Population:
    """The population of `platform`: its own, or the one that is shipped for its name.

    Raises PlatformError if there is none.
    """
    population = known_population(platform)
    if population is None:
        raise PlatformError(
            f"platform {platform.name} has no population to draw nodes from; fit one to calibrations of several days "
            "with 'lepaute platform population', or use a platform that has one, such as dahu"
        )
    return population


def known_population(platform: "Platform") -> Population | None:
    """As `population_of`, None if there is none."""
    if platform.population is not None:
        return platform.population
    content = shipped_population(platform.name)
    return None if content is None else Population.model_validate(content)


def shipped_population(name: str) -> dict[str, Any] | None:
    """The content of the population that is shipped for the platform `name`; None if there is none."""
    if name not in POPULATION_OF:
        return None
    path = FOLDER / f"{POPULATION_OF[name]}.yaml"
    content: dict[str, Any] = read_yaml(read_text(path, "a shipped population"), str(path))
    return content

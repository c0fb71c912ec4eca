"""The population that the CPUs of a platform are drawn from: how much CPUs differ, and one CPU from day to day.

For cpu p of a node of group g on day d, with θ the coefficients of a kernel's duration (Cornebize's thesis, equations
4.2 to 4.5 and the mixture after them; the part common to a day and the factors of single CPUs are ours):

    θ_p ~ N(mean_g, covariance_spatial_g)       g drawn for each node by the weights
    θ_pd = θ_p + common_d + scale_p * own_pd    common_d ~ N(0, covariance_common), own_pd ~ N(0, covariance_temporal)
    log scale_p ~ N(0, covariance_log_scale)    a factor for each coefficient
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from lepaute.platform.covariance import Rows, check_covariance
from lepaute.platform.values import Count, Number, Positive, Value, fault, known_letters
from lepaute.stats.cholesky import lower_factor

#: Of logarithms of factors; far beyond what CPUs do: one of 44 would have a factor above e^20.
LARGEST_LOG_VARIANCE = 100.0
Draw = Literal["none", "days", "nodes-and-days"]


def _constant(value: object) -> object:
    # YAML reads the constant term as an integer where it is not quoted.
    return "1" if value == 1 and not isinstance(value, bool) else value


def _known(term: str) -> str:
    known_letters(term.removeprefix("sd:"))
    return term


#: A term of the mean, such as mnk or 1, or of the standard deviation of a call, such as sd:mnk.
Coefficient = Annotated[str, BeforeValidator(_constant), AfterValidator(_known)]


class Group(Value):
    """Nodes that are alike: their share of all nodes, and the spread of their CPUs.

    covariance_temporal, covariance_log_scale : of its CPUs, where they differ from those of the population
    """

    weight: Annotated[Number, Field(gt=0, le=1)]
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

    kernel: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")] = "dgemm"
    threads: Count = 1
    terms: Annotated[tuple[Coefficient, ...], Field(min_length=1)]
    draw: Draw = "days"
    groups: Annotated[tuple[Group, ...], Field(min_length=1)]
    group_of_node: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    covariance_temporal: Rows
    covariance_common: Rows | None = None
    covariance_log_scale: Rows | None = None
    scale_of_cpu: tuple[tuple[Positive, ...], ...] | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        if len(set(self.terms)) < len(self.terms):
            raise fault("has the same term twice", "terms", remedy="Remove one.")
        if all(term.startswith("sd:") for term in self.terms):
            raise fault("has no terms of the mean", "terms", remedy="Add one, such as mnk.")
        size = len(self.terms)
        if abs(sum(group.weight for group in self.groups) - 1.0) > 1e-6:
            total = sum(group.weight for group in self.groups)
            raise fault(f"have weights that sum to {total:g}", "groups", remedy="Make them sum to 1.")
        _check_spreads(self, size)
        for position, group in enumerate(self.groups):
            if len(group.mean) != size:
                raise fault(f"has {len(group.mean)} values for {size} terms", "groups", position, "mean")
            _check_spreads(group, size, "groups", position)
        for position, row in enumerate(self.scale_of_cpu or ()):
            if len(row) != size:
                raise fault(f"has {len(row)} values for {size} terms", "scale_of_cpu", position)
        for position, number in enumerate(self.group_of_node or ()):
            if number >= len(self.groups):
                raise fault(f"is {number}; groups are 0 to {len(self.groups) - 1}", "group_of_node", position)
        return self


def _check_spreads(holder: Group | Population, size: int, *at: str | int) -> None:
    """Raises the fault of a field that is no covariance of `size` coefficients."""
    for name in ("covariance_spatial", "covariance_temporal", "covariance_common", "covariance_log_scale"):
        rows: Rows | None = getattr(holder, name, None)
        if rows is None:
            continue
        check_spread(rows, size, *at, name)
        largest = max(row[term] for term, row in enumerate(rows))
        if name == "covariance_log_scale" and largest > LARGEST_LOG_VARIANCE:
            what = f"has a variance of {largest:g}; logarithms of factors vary by {LARGEST_LOG_VARIANCE:g} at most"
            raise fault(what, *at, name)


def check_spread(rows: Rows, size: int, *at: str | int) -> None:
    """Raises the fault of a matrix that is no covariance of `size` coefficients."""
    check_covariance(rows, size, *at)
    try:
        lower_factor(rows)
    except ValueError:
        raise fault(
            "is not positive semi-definite: a linear combination of the coefficients has a negative variance", *at
        ) from None

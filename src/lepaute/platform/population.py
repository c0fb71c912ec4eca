"""The population that the CPUs of a platform are drawn from: how much CPUs differ, and one CPU from day to day.

For cpu p of a node of group g on day d, with θ the coefficients of a kernel's duration (Cornebize's thesis, equations
4.2 to 4.5 and the mixture after them; the part common to a day is ours):

    θ_p ~ N(mean_g, covariance_spatial_g)   g drawn for each node by the weights
    θ_pd = θ_p + common_d + own_pd          common_d ~ N(0, covariance_common), own_pd ~ N(0, covariance_temporal)
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from lepaute.platform.covariance import Rows, check_covariance
from lepaute.platform.values import Count, Number, Value, fault, known_letters
from lepaute.stats.cholesky import lower_factor

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

    covariance_temporal : of single CPUs from day to day, where it differs from that of the population
    """

    weight: Annotated[Number, Field(gt=0, le=1)]
    mean: tuple[Number, ...]
    covariance_spatial: Rows
    covariance_temporal: Rows | None = None


class Population(Value):
    """The coefficients `terms` of kernel `kernel` run by `threads` threads, as random variables.

    draw : what each run draws anew: nothing, the day, or all nodes and the day
    group_of_node : position in `groups` of the group of each node of this platform; null where it is not known
    covariance_temporal : of a cpu's own part of a day;  covariance_common : of the part that all CPUs share, null: none
    """

    kernel: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")] = "dgemm"
    threads: Count = 1
    terms: Annotated[tuple[Coefficient, ...], Field(min_length=1)]
    draw: Draw = "days"
    groups: Annotated[tuple[Group, ...], Field(min_length=1)]
    group_of_node: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    covariance_temporal: Rows
    covariance_common: Rows | None = None
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
        for position, group in enumerate(self.groups):
            if len(group.mean) != size:
                raise fault(f"has {len(group.mean)} values for {size} terms", "groups", position, "mean")
            check_spread(group.covariance_spatial, size, "groups", position, "covariance_spatial")
            if group.covariance_temporal is not None:
                check_spread(group.covariance_temporal, size, "groups", position, "covariance_temporal")
        check_spread(self.covariance_temporal, size, "covariance_temporal")
        if self.covariance_common is not None:
            check_spread(self.covariance_common, size, "covariance_common")
        for position, number in enumerate(self.group_of_node or ()):
            if number >= len(self.groups):
                raise fault(f"is {number}; groups are 0 to {len(self.groups) - 1}", "group_of_node", position)
        return self


def check_spread(rows: Rows, size: int, *at: str | int) -> None:
    """Raises the fault of a matrix that is no covariance of `size` coefficients."""
    check_covariance(rows, size, *at)
    try:
        lower_factor(rows)
    except ValueError:
        raise fault(
            "is not positive semi-definite: a linear combination of the coefficients has a negative variance", *at
        ) from None

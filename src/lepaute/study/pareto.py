"""Which points are on the Pareto front of several responses, with what probability: none is better in all of them.

Equal seeds are one machine at all points, so a front is drawn whole, with all points together: normal draws with the
mean and the covariance of what was simulated, since seeds are few.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.intervals import prediction_interval
from lepaute.study.evaluation import LESS_IS_BETTER, Outcome, Point, by_point
from lepaute.study.wording import RESPONSES, amount, called, listed, noun

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

DRAWS = 2000
MOST_POINTS = 5000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Geometric mean and 95 % prediction interval; all three equal for what does not vary, such as a price."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Member:
    """A point: its responses, and the probability that it is on the front."""

    point: Point
    spreads: dict[str, Bounds]
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """An entry of the JSON."""
        return {
            "point": dict(self.point),
            "probability_on_front": self.probability,
            "responses": {
                name: {"mean": one.middle, "low": one.low, "high": one.high} for name, one in self.spreads.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Front:
    """All points, those on the front with the largest probability first; refused: points that cannot be.

    trusts : of the points that were judged
    """

    responses: tuple[str, ...]
    members: tuple[Member, ...]
    refused: dict[Point, str]
    trusts: Mapping[Point, Trust] = field(default_factory=dict)

    @property
    def likely(self) -> tuple[Member, ...]:
        """On the front with a probability of a half or more, in the order of the first response."""
        found = [one for one in self.members if one.probability >= 0.5]
        return tuple(sorted(found, key=lambda one: one.spreads[self.responses[0]].middle))

    def comparable(self, member: Member) -> bool:
        """Whether it may be called better or worse than others."""
        return member.point not in self.trusts or self.trusts[member.point].comparable

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        parts = [
            f"{called(one.point)} ({', '.join(_said(name, one.spreads[name].middle) for name in self.responses)}"
            f"{'' if self.comparable(one) else '; not comparable'})"
            for one in self.likely[:6]
        ]
        rest = len(self.likely) - len(parts)
        more = f" and {rest} more" if rest > 0 else ""
        verb = "is" if len(self.likely) == 1 else "are"
        nouns = listed([noun(name).removeprefix("the ") for name in self.responses])
        count = f"{len(self.likely)} of {len(self.members)}"
        return f"{count} {verb} likely on the front of {nouns}: {'; '.join(parts)}{more}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "responses": list(self.responses),
            "points": [one.to_dict() | {"comparable": self.comparable(one)} for one in self.members],
            "refused": [{"point": dict(point), "reason": reason} for point, reason in self.refused.items()],
        }


def _said(response: str, value: float) -> str:
    text = amount(response, value)
    return text if response in RESPONSES else f"{response} {text}"


def front(outcomes: Iterable[Outcome], responses: Sequence[str], *, seed: int = 1) -> Front:
    """The front of points that have the same seeds; seed : of the draws.

    Raises InputError for fewer than two responses, no point, a response that is not above 0, or no common seed.
    """
    import numpy as np

    groups = by_point(outcomes)
    refused = {
        point: reason for point, each in groups.items() for reason in [next((o.refusal for o in each if o.refusal), "")]
        if reason
    }  # fmt: skip
    usual = {point: each for point, each in groups.items() if point not in refused}
    if len(responses) < 2 or not usual or len(usual) > MOST_POINTS:
        raise InputError(
            f"{len(responses)} responses of {len(usual)} points; a front is of two responses or more and of 1 to "
            f"{MOST_POINTS} points"
        )
    seeds = sorted(set.intersection(*({one.trial.seed for one in each} for each in usual.values())))
    if not seeds:
        raise InputError("the points have no seed in common; simulate all with the same seeds")
    by_seed = {point: {one.trial.seed: one for one in each} for point, each in usual.items()}
    values = np.array([[[by_seed[point][at][name] for at in seeds] for name in responses] for point in usual])
    if values.min() <= 0.0:
        raise InputError("a response is not above 0, and a front is of logarithms")
    signs = np.array([1.0 if name in LESS_IS_BETTER else -1.0 for name in responses])
    chances = _on_front(np.log(values) * signs[None, :, None], seed)
    members = []
    for at, point in enumerate(usual):
        spreads = {name: _bounds(values[at, place].tolist()) for place, name in enumerate(responses)}
        members.append(Member(point, spreads, float(chances[at])))
    members.sort(key=lambda one: -one.probability)
    return Front(tuple(responses), tuple(members), refused)


def is_on_front(values: "Floats") -> "npt.NDArray[np.bool_]":
    """Which rows of (points, responses), less being better, no other row beats: as good in all and better in one."""
    import numpy as np

    found = np.ones(len(values), dtype=bool)
    for at, one in enumerate(values):
        found[at] = not ((values <= one).all(axis=1) & (values < one).any(axis=1)).any()
    return found


def _on_front(logs: "Floats", seed: int) -> "Floats":
    """Probability of each point; logs of shape (points, responses, seeds)."""
    import numpy as np

    count = logs.shape[2]
    if count == 1:
        alone: Floats = is_on_front(logs[:, :, 0]).astype(np.float64)
        return alone
    middle = logs.mean(axis=2)
    apart = logs - middle[:, :, None]
    generator = np.random.default_rng(seed)
    draws = max(200, min(DRAWS, 4_000_000 // len(logs) ** 2 + 1))
    scale = np.sqrt((count - 1) / generator.chisquare(count - 1, draws) * (1.0 + 1.0 / count) / (count - 1))
    hits = np.zeros(len(logs))
    for each in range(draws):
        hits += is_on_front(middle + scale[each] * (apart @ generator.standard_normal(count)))
    found: Floats = hits / draws
    return found


def _bounds(values: Sequence[float]) -> Bounds:
    from math import exp, log

    middle = exp(sum(map(log, values)) / len(values))
    low, high = prediction_interval(values)
    if low is None or high is None or high - low < 1e-12 * middle:
        return Bounds(middle, middle, middle)
    return Bounds(middle, low, high)

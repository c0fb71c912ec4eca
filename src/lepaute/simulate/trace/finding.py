"""What a trace amounts to: what the time went into, who waits most and for whom, and in which step."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy

from lepaute.kit.text import percent
from lepaute.simulate.trace.breakdown import LATE, Breakdown

#: Names of the categories of a breakdown, in their order, as parts of the time.
WORDS = (
    "computing",
    "call overhead",
    "waiting",
    "transfer",
    "contention",
    "probing",
    "the program's own code",
    "waiting for a core",
    "not accounted for",
)
#: Parts with less of the time are not in the sentence, and a rank that waits less does not wait.
MIN_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rank, or the step, with the most waiting.

    rank   : that waits most;  share: of its time;  time_s: in all
    whom   : the rank that it waits for longest, None if that is not known;  whom_share: of its waiting
    step   : in which all ranks together wait most, None if there are no steps;  step_share: of all waiting in steps
    """

    rank: int
    share: float
    time_s: float
    whom: int | None
    whom_share: float
    step: int | None
    step_share: float


@dataclass(frozen=True, slots=True)
class Finding:
    """shares : of the time of all ranks, by WORDS;  waiting : None if nothing waits."""

    shares: dict[str, float]
    waiting: Waiting | None

    @property
    def sentence(self) -> str:
        """82.4 % of the ranks' time is computing, 10.7 % waiting, 6.4 % transfer; rank 3 waits most, ..."""
        largest = sorted(self.shares.items(), key=lambda one: -one[1])
        phrases = [f"{percent(share)} {name}" for name, share in largest if share >= MIN_SHARE] or ["nothing"]
        first, *others = phrases
        parts = ", ".join([first.replace(" % ", " % of the ranks' time is ", 1), *others])
        waiting = self.waiting
        if waiting is None:
            return parts
        mostly = "mostly" if waiting.whom_share >= 0.5 else f"{percent(waiting.whom_share)} of that"
        whom = "" if waiting.whom is None else f", {mostly} for rank {waiting.whom}"
        return f"{parts}; rank {waiting.rank} waits most, {percent(waiting.share)} of its time{whom}"

    def to_dict(self) -> dict[str, Any]:
        return {"answer": self.sentence, **asdict(self)}


def finding_of(breakdown: Breakdown) -> Finding:
    total = breakdown.by_rank_s.sum(axis=0)
    whole = float(total.sum())
    shares = {name: float(value) / whole if whole > 0 else 0.0 for name, value in zip(WORDS, total, strict=True)}
    if breakdown.estimated:  # as the parts of a call are not known
        shares = {("transfer and overhead" if name == "transfer" else name): share for name, share in shares.items()}
    return Finding(shares, _waiting(breakdown))


def _waiting(breakdown: Breakdown) -> Waiting | None:
    time_s = breakdown.by_rank_s.sum(axis=1)
    late_s = breakdown.by_rank_s[:, LATE]
    share = numpy.divide(late_s, time_s, out=numpy.zeros(len(late_s)), where=time_s > 0)
    if not len(share) or share.max() < MIN_SHARE:
        return None
    row = int(share.argmax())
    rank = breakdown.ranks[row]
    waits = breakdown.waits
    mine = numpy.flatnonzero((waits.rank == rank) & (waits.whom >= 0))
    longest = int(mine[waits.time_s[mine].argmax()]) if len(mine) else -1
    in_steps = breakdown.by_step_s[:, LATE] if breakdown.steps else numpy.zeros(0)
    has_steps = len(in_steps) > 1 and in_steps.sum() > 0
    return Waiting(
        rank,
        float(share[row]),
        float(late_s[row]),
        int(waits.whom[longest]) if longest >= 0 else None,
        float(waits.time_s[longest] / late_s[row]) if longest >= 0 else 0.0,
        breakdown.steps[int(in_steps.argmax())] if has_steps else None,
        float(in_steps.max() / in_steps.sum()) if has_steps else 0.0,
    )

"""What is worth a look in a stream, though no alarm: a small change of its level, or a wider scatter.

Of each value, the factor of `change_evidence` is the likelihood ratio of an alternative: a level LEVELS standard
deviations higher or lower, a scatter WIDER times as wide. Page's CUSUM (Biometrika 41, 1954) compares with a bound the
largest of the products of such factors over all days on which the change may have begun; the sum over these days,

    S = (S + 1 on the first value of a day, else S) f(z),

that of Shiryaev and Roberts, is as quick, and its level needs no simulation. The mean of f is at most 1 where nothing
changes, so S less the days so far is a supermartingale, and P(S >= c on any of the first T days) <= T / c (Pollak,
Annals of Statistics 13, 1985; Shin, Ramdas & Rinaldo, New England Journal of Statistics in Data Science 1, 2023). The
mean of S over the alternatives keeps that, and the union over streams, whatever they have in common.

Level, scale and correlation of a stream are those of `ChangeEvidence`. But a level that goes on learning takes a small
change in before it is found. So while the CUSUM, which a stream without a change exceeds one time in SUSPICIOUS, is
above that, a level that is settled learns nothing. Then z has a mean, the error of the level, and the bound above is an
approximation, as it is where the correlation is estimated; tests/promises/test_worth_a_look.py counts.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from lepaute.stats.change_evidence import Alternative, ChangeEvidence, factors
from lepaute.stats.expanding import Booleans, Floats, Integers

#: Where nothing changes, the chance that a fleet has anything worth a look in this many days.
CHANCE, DAYS = 0.05, 100
#: In standard deviations of an innovation, of which a correlation of neighbours, known within its error, takes a part.
LEVELS: tuple[Alternative, ...] = ((0.7, 1.0), (1.5, 1.0))
WIDER: tuple[Alternative, ...] = ((0.0, 3.0),)
#: From so large a CUSUM on nothing is learned of a level that rests on this many values, as if they were independent.
SUSPICIOUS, SETTLED = 20.0, 60
#: A smaller fleet counts as one of this many streams: it tells too little of how its days hang together.
ALIKE = 12
#: Values that a level remembers: longer than for alarms, which a small change would be lost in.
MEMORY = 1000


@dataclass(slots=True)
class SmallChanges(ChangeEvidence):
    """As ChangeEvidence, but that `evidence` is S, for days instead of for ever; 0 before anything was judged.

    begins : whether the next value of the stream is the first one of its day, shape (streams,)
    """

    DIRECTED: ClassVar[int] = 2 * len(LEVELS)
    PRODUCTS: ClassVar[int] = DIRECTED + len(WIDER)
    begins: Booleans = field(init=False)

    def __post_init__(self) -> None:
        self.begin_day()

    def begin_day(self) -> None:
        """The values that follow are of another day."""
        self.begins = np.ones(len(self.count), np.bool_)

    evidence = ChangeEvidence.evidence_so_far  # S of each stream

    def _multiply(self, tested: Booleans, z: Floats, reduced: Floats, degrees: Integers) -> None:
        levels = factors(z, degrees, LEVELS, reduced)
        # a scale too small by chance is so for all values, unlike a level; half as many degrees leave room for that
        wider = factors(z, np.maximum(degrees // 2, 1), WIDER)
        self._accumulate(tested, self.begins, np.concatenate([levels, wider], axis=1))
        self.begins &= ~tested

    def _held(self) -> Booleans:
        return np.asarray((self.squares[:, 0, 0] >= SETTLED) & (self.largest.max(axis=1) >= SUSPICIOUS), np.bool_)


def enough(fleets: Floats | Integers) -> float:
    """The least S that is worth a look, where fleets of this many streams are watched."""
    return DAYS * float(np.maximum(fleets, ALIKE).sum()) / CHANCE

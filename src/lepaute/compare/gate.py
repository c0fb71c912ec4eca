"""Whether a library became slower by more than what is allowed, for a pipeline that has to stop then."""

from dataclasses import dataclass

from lepaute.compare.verdicts import SIGNIFICANT, Verdict
from lepaute.compare.wording import operation_name, size_text
from lepaute.kit.text import counted

#: Rows that a sentence names.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """slower   : rows of which the right library is shown to take longer by more than the share
    undecided: rows of which it may: the interval holds both more and less
    """

    right: str
    share: float
    slower: tuple[Verdict, ...]
    undecided: tuple[Verdict, ...]
    rows: int

    @property
    def sentence(self) -> str:
        """The answer, in one line."""
        limit = f"{100 * self.share:g} %"
        if self.slower:
            return f"{self.right} is slower by more than {limit} in {_named(self.slower)}"
        if self.undecided:
            rows = _named(self.undecided)
            return f"{self.right} is shown to be slower by more than {limit} in no row; undecided: {rows}"
        return f"{self.right} is slower by more than {limit} in none of {counted(self.rows, 'row')}"


def gate(verdicts: tuple[Verdict, ...], right: str, share: float) -> Gate:
    """share: of the left library's time, 0.05 for 5 %"""
    slower = tuple(one for one in verdicts if one.p_corrected <= SIGNIFICANT and one.low > 1 + share)
    undecided = tuple(one for one in verdicts if one not in slower and one.high > 1 + share)
    return Gate(right, share, slower, undecided, len(verdicts))


def _named(rows: tuple[Verdict, ...]) -> str:
    names = [f"{operation_name(one)} of {size_text(one.size_bytes)}" for one in rows[:MOST_NAMED]]
    more = [f"{len(rows) - MOST_NAMED} more"] if len(rows) > MOST_NAMED else []
    return f"{counted(len(rows), 'row')}: {', '.join([*names, *more])}"

"""What is shown, and how well: the type from which the words, colour, exit status and JSON of an answer follow.

A question has a claim: that two differ, that a library is slower than it may be, that a run is as predicted. What was
measured decides for it, against it ("shown not") or neither way ("not shown"). How well it was measured counts first:
some weaknesses leave nothing to decide, whatever the figures are, and that is unknown; others are said beside it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal, TypeVar

Answer = Literal["for", "against", "undecided", "unknown"]
T = TypeVar("T")
State = Literal["fine", "notable", "unable"]
Cause = Literal["failed", "disturbed", "too few", "outside", "partly outside", "copied", "approximated"]
#: Of each weakness, whether it leaves nothing to decide.
SPOILS: Mapping[Cause, bool] = {
    "failed": True,  # its own check calls a result wrong
    "disturbed": True,  # everything was, by other load
    "too few": True,  # the clearest difference could not be shown by as many, or there is no interval
    "outside": True,  # models used so far outside their ranges that they decide
    "partly outside": False,
    "copied": False,  # from another machine, or assumed
    "approximated": False,  # an algorithm stands for another one
}


@dataclass(frozen=True, slots=True)
class Weakness:
    """text: in words, with figures"""

    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Made by the functions below alone; weaknesses: of what was measured, those that spoil it first."""

    answer: Answer
    weaknesses: tuple[Weakness, ...] = ()

    @classmethod
    def of(cls, shown: bool, contrary: bool, weaknesses: Iterable[Weakness] = ()) -> "Decision":
        """shown, contrary: whether the measurement, taken to be sound, supports or contradicts the claim."""
        ordered = tuple(sorted(weaknesses, key=lambda weakness: not SPOILS[weakness.cause]))
        if ordered and SPOILS[ordered[0].cause]:
            return cls("unknown", ordered)
        return cls("for" if shown else "against" if contrary else "undecided", ordered)

    @classmethod
    def of_ratio(
        cls, low: float | None, high: float | None, weaknesses: Iterable[Weakness] = (), margin: float | None = None
    ) -> "Decision":
        """That a ratio with this interval is not 1; margin: a difference of a smaller share is none.

        None or NaN: no interval, which is unknown
        """
        if low is None or high is None or isnan(low) or isnan(high):
            return cls.of(False, False, (*weaknesses, Weakness("too few", "no interval")))
        none = margin is not None and 1.0 / (1.0 + margin) <= low and high <= 1.0 + margin
        return cls.of(low > 1.0 or high < 1.0, none, weaknesses)

    @classmethod
    def of_several(cls, decisions: "Iterable[Decision]", first: Answer = "for") -> "Decision":
        """`first` where any is so, else unknown, undecided, and the other way; unknown where there is none."""
        several = tuple(decisions)
        weaknesses = dict.fromkeys(weakness for decision in several for weakness in decision.weaknesses)
        order: tuple[Answer, ...] = (first, "unknown", "undecided", "for", "against")
        there = {decision.answer for decision in several} or {"unknown"}
        return cls(next(answer for answer in order if answer in there), tuple(weaknesses))

    def beside(self, weaknesses: Iterable[Weakness]) -> "Decision":
        """The same, with further weaknesses that leave it as it is."""
        return Decision(self.answer, tuple(dict.fromkeys((*self.weaknesses, *weaknesses))))

    @property
    def is_shown(self) -> bool:
        """Whether it is decided for the claim."""
        return self.answer == "for"

    @property
    def is_decided(self) -> bool:
        """Whether it is decided, either way."""
        return self.answer in ("for", "against")

    @property
    def reasons(self) -> tuple[str, ...]:
        """The weaknesses in words: where nothing is known, those that are why."""
        return tuple(weak.text for weak in self.weaknesses if self.answer != "unknown" or SPOILS[weak.cause])

    def pick(self, shown: T, against: T, undecided: T, unknown: T) -> T:
        """What belongs to its answer."""
        return {"for": shown, "against": against, "undecided": undecided, "unknown": unknown}[self.answer]

    def words(self, shown: str, against: str, undecided: str = "not shown", unknown: str = "not tested") -> str:
        """What is said of it; of what is unknown with the reasons."""
        why = "; ".join(self.reasons)
        return self.pick(shown, against, undecided, f"{unknown}: {why}" if why else unknown)

    def state(self, *good: Answer) -> State:
        """The colour of a page: fine for the good answers alone."""
        return "unable" if self.answer == "unknown" else "fine" if self.answer in good else "notable"

    def status(self, wrong: Answer, *, strict: bool = False) -> int:
        """Of a command with a limit: 1 for the wrong answer, 3 for what is unknown; strict: and for undecided."""
        if self.answer == wrong:
            return 1
        return 3 if self.answer == "unknown" or (strict and self.answer == "undecided") else 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "decision": self.answer,
            "weaknesses": [{"cause": weakness.cause, "text": weakness.text} for weakness in self.weaknesses],
        }

"""Goals, and whether they are met."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that was to be reached; `met` None: it could not be judged."""

    what: str
    goal: str
    reached: str
    met: bool | None
    published: str = ""


def at_most(what: str, limit: float, reached: float, unit: str = "%", published: str = "") -> Goal:
    """A number that must not exceed `limit`; NaN where nothing was simulated."""
    if math.isnan(reached):
        return Goal(what, f"at most {limit:g} {unit}", "nothing simulated", None, published)
    return Goal(what, f"at most {limit:g} {unit}", f"{reached:.2f} {unit}", reached <= limit, published)


def at_least(what: str, limit: float, reached: float, seen: str = "") -> Goal:
    """A percentage that must not fall below `limit`; seen : what the table says, if not that percentage."""
    return Goal(what, f"at least {limit:g} %", seen or f"{reached:.1f} %", bool(reached >= limit))


def goals_table(goals: Sequence[Goal]) -> str:
    """The goals as Markdown."""
    words = {True: "yes", False: "NO", None: "not judged"}
    rows = [(goal.what, goal.goal, goal.reached, goal.published, words[goal.met]) for goal in goals]
    return markdown(("", "goal", "reached", "published emulation", "met"), rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(header)}", *lines[1:]])


def reached(goals: Sequence[Goal], beginning: str) -> str:
    """What was reached of the first goal whose name begins so, in the words of the table."""
    return next(goal.reached for goal in goals if goal.what.startswith(beginning))


def status(goals: Sequence[Goal]) -> int:
    """Exit status: 1 where a goal is missed or could not be judged."""
    return 0 if all(goal.met for goal in goals) else 1

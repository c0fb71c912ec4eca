"""Which runs are made again because other load disturbed them."""

from collections.abc import Sequence

from lepaute.measure.calibration.attempt import Attempt
from lepaute.measure.calibration.entries import AttemptEntry

#: Repetitions of a run that other load disturbed, at the end of its block: load that stays cannot be outlived.
MOST_REPETITIONS = 2


def next_repetition(attempts: Sequence[Attempt], block: int, most_s: float) -> Attempt | None:
    """The last attempt of the run of `block` that is to be repeated next; None when no repetition is due or allowed.

    attempts: all of one node so far. Due are runs without an undisturbed attempt, those with the fewest attempts
    first, in the order in which they ran.
    most_s  : all repetitions together last no longer; one that would go beyond, if it took as long as the last
    attempt, is passed over
    """
    spent_s = sum(attempt.wall_s for attempt in attempts if attempt.number > 0)
    last = {attempt.run.name: attempt for attempt in attempts if attempt.run.block == block}
    due = [
        attempt
        for attempt in last.values()
        if attempt.disturbed and attempt.number < MOST_REPETITIONS and spent_s + attempt.wall_s <= most_s
    ]
    return min(due, key=lambda attempt: attempt.number, default=None)


def disturbance_warning(entries: Sequence[AttemptEntry]) -> str | None:
    """How many runs were disturbed at first, how many of them repeated, how many have no undisturbed attempt.

    entries: of attempts, in their order
    """
    runs: dict[tuple[str, int, str], list[AttemptEntry]] = {}
    for entry in entries:
        runs.setdefault((entry.node, entry.block, entry.name), []).append(entry)
    disturbed = [attempts for attempts in runs.values() if attempts[0].disturbed]
    if not disturbed:
        return None
    repeated = sum(len(attempts) > 1 for attempts in disturbed)
    remaining = sum(all(attempt.disturbed for attempt in attempts) for attempts in disturbed)
    return (
        f"{len(disturbed)} of {len(runs)} probe runs were disturbed by other load (blocks.json): "
        f"{repeated} repeated, {remaining} without an undisturbed attempt"
    )

"""The mean of durations without the few longest: what a machine takes as a rule, its regular interruptions included."""

from collections.abc import Sequence


def upper_trimmed_mean(values: Sequence[float], share: float = 0.05) -> float:
    """The mean of all values but the largest `share` of them, rounded down; of n >= 1 values in any unit.

    A median does not see a machine that is taken away for a few milliseconds in every ten, as a hypervisor does, and a
    mean sees every single interruption.
    """
    ordered = sorted(values)
    kept = ordered[: len(ordered) - int(share * len(ordered))]
    return sum(kept) / len(kept)

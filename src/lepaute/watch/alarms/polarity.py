"""Which direction of a factor is worse, by the unit at the end of its name."""

#: Larger is better: rates. Looked at first, since `_B_per_s` ends in `_s`.
_RATES = ("_flops", "_per_s", "_Hz")
#: Smaller is better: durations, whole or for a piece of work, and temperatures.
_COSTS = ("_s", "_degC")
_PER_WORK = "_s_per_"


def worse_direction(factor: str) -> int:
    """-1 where a smaller value is worse, 1 where a larger one is, 0 where neither is, as of a power."""
    if factor.endswith(_RATES):
        return -1
    if factor.endswith(_COSTS) or _PER_WORK in factor:
        return 1
    return 0


def is_worse(factor: str, direction: int) -> bool:
    """Whether a change in this direction (-1, 1) is for the worse; of a factor without a better side, any is."""
    return worse_direction(factor) in (0, direction)

"""Change of level, counted pair by pair; obviously right, and of the third power of the length."""

from collections.abc import Sequence


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


def pairs_across(values: Sequence[float]) -> list[int]:
    """U(k), k = 1 to n - 1: pairs of a value before k and one from k on that rise, less those that fall."""
    places = range(1, len(values))
    return [sum(sign(late - early) for early in values[:k] for late in values[k:]) for k in places]


def largest_change(values: Sequence[float]) -> tuple[int, int]:
    """(first place of the largest |U|, largest less smallest U with 0 at both ends)."""
    u = pairs_across(values)
    sizes = [abs(pairs) for pairs in u]
    return 1 + sizes.index(max(sizes)), max([*u, 0]) - min([*u, 0])


def theil_sen(dates: Sequence[float], values: Sequence[float]) -> tuple[float, int]:
    """(median slope of all pairs, rising less falling pairs)."""
    pairs = [(i, j) for j in range(len(values)) for i in range(j)]
    slopes = sorted((values[j] - values[i]) / (dates[j] - dates[i]) for i, j in pairs)
    middle = len(slopes) // 2
    median = slopes[middle] if len(slopes) % 2 else (slopes[middle - 1] + slopes[middle]) / 2
    return median, sum(sign(values[j] - values[i]) for i, j in pairs)

"""Which grids HPL can be run on with fewer processes."""

#: A grid leaves at most this share of the processes out, unless there is no other.
IDLE_SHARE = 0.1
#: And is at most so much longer than wide; HPL's documentation advises nearly square ones.
MOST_ASPECT = 4.0
MOST_GRIDS = 4


def grids_within(ranks: int, like: tuple[int, int]) -> list[tuple[int, int]]:
    """Grids P x Q of at most `ranks` processes, lying as `like` does (P <= Q or P >= Q), at most MOST_GRIDS.

    The fewest idle processes first, then the nearest to square. Where that leaves none, the grid with the fewest idle.
    """
    tall = like[0] > like[1]
    least = max(1, ranks - int(IDLE_SHARE * ranks))
    found = [
        (p, used // p)
        for used in range(ranks, least - 1, -1)
        for p in range(int(used**0.5), 0, -1)
        if used % p == 0 and used // p <= MOST_ASPECT * p
    ]
    if not found:
        # The nearest to square of each width, of which the one with the fewest idle processes.
        found = sorted(
            ((p, ranks // p) for p in range(1, int(ranks**0.5) + 1)),
            key=lambda grid: (ranks - grid[0] * grid[1] > IDLE_SHARE * ranks, grid[1] / grid[0]),
        )[:1]
    return [(q, p) if tall else (p, q) for p, q in found[:MOST_GRIDS]]

"""Sizes at which the costs of messages change, the same for all operations."""

import math

from lepaute.fit.messages import Series
from lepaute.fit.segmentation import segment_jointly

#: Of one protocol; the information criterion mostly asks for fewer.
MOST_BREAKPOINTS = 5
#: Distinct sizes of every series in a segment.
LEAST_SIZES = 5
#: A series with fewer points says nothing of where it changes.
FEWEST_POINTS = 12


def shared_breakpoints(parts: list[Series]) -> list[float]:
    """Sizes that cut all series at once, by the logarithmic errors of a line each; how many, by the criterion."""
    pairs = [(part.size_bytes, part.capped_s) for part in parts if len(part) >= FEWEST_POINTS]
    if not pairs:
        return []
    joint = segment_jointly(pairs, objective="log", most_breakpoints=MOST_BREAKPOINTS, least_points=LEAST_SIZES)
    return [math.floor(size) for size in joint.breakpoints]

"""Run by an interpreter that has Apache Otava: on which day it first reports a change in each stream.

    PYTHON otava_days.py STREAMS.npy RESULT.npy P_VALUE...

STREAMS : shape (streams, days). Each day it is given the stream up to then, as a nightly run would be, with the window
and the least size that it has by default. RESULT: shape (p-values, streams), the day, -1 for never. Streams
are given as lists: of an array, version 0.8.0 does not take the window.
"""

import sys

import numpy as np
from otava.analysis import compute_change_points

FIRST_DAY = 4


def first_day(stream: list[float], max_p_value: float) -> int:
    for day in range(FIRST_DAY, len(stream)):
        found, _ = compute_change_points(stream[: day + 1], max_pvalue=max_p_value)
        if found:
            return day
    return -1


if __name__ == "__main__":
    streams = np.load(sys.argv[1])
    days = [[first_day(stream, float(p)) for stream in streams.tolist()] for p in sys.argv[3:]]
    np.save(sys.argv[2], np.array(days))

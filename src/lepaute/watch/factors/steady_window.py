"""The part of a run in which its frequency, temperature and power are taken to be steady.

Minutes 2 to 4 of the test, as in Cornebize's thesis (section 9.2.1). A shorter run has less of it, or nothing: which
part it was belongs to the stratum, as a processor that has been busy for a minute is cooler than after three.
"""

from dataclasses import dataclass

START_S, END_S = 120.0, 240.0
#: Three samples at the usual period of the monitor.
_LEAST_S = 15.0


@dataclass(frozen=True, slots=True)
class Window:
    """From start_s to end_s after the test began; name: the same for runs whose windows are comparable."""

    start_s: float
    end_s: float
    name: str


def steady_window(duration_s: float) -> Window:
    """Of a test that took so long: minutes 2 to 4, what a shorter one has of them, or else the test's second half."""
    if duration_s >= END_S:
        return Window(START_S, END_S, "minutes 2 to 4")
    if duration_s >= START_S + _LEAST_S:
        return Window(START_S, duration_s, "from minute 2 to the end, before minute 4")
    return Window(duration_s / 2, duration_s, "second half of a run that is over by minute 2")

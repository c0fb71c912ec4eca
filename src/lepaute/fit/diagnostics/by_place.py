"""Residuals against place: is one core, or one host, slower than the others?"""

import numpy as np

from lepaute.fit.diagnostics.flag import Check, Limits, unable
from lepaute.fit.diagnostics.number_text import percent
from lepaute.fit.diagnostics.residuals import Classed
from lepaute.fit.numeric import Floats, Integers

#: Between the slowest and the fastest: half of it is what the mean over places is off by on each.
PLACES = Limits(0.05, 0.20)
#: Processes that a place must have: what lasts in a place shows only against what changes from process to process.
FEWEST_PROCESSES = 3


def places(calls: Classed, *, hosts: bool = False) -> Check:
    """Differences between cores, or between hosts, that last over processes: Kruskal and Wallis' test of processes.

    A process is one value, the mean of its calls over that of all with its setting (probe); processes are independent
    as far as one can know, calls of one are not.
    """
    kind, what = ("hosts", "hosts") if hosts else ("cores", "cores")
    names = calls.of.hosts if hosts else calls.of.places
    labels = np.array(names, dtype=object)[calls.of.place] if len(calls.of) else np.zeros(0, dtype=object)
    known, place = np.unique(labels.astype(str), return_inverse=True)
    if len(known) < 2:
        return unable(kind, PLACES, f"All calls were made on one of the {what}." if len(known) else "No calls.")
    values, of_place = _processes(calls, place.astype(np.int64))
    groups = [values[of_place == number] for number in range(len(known))]
    able = [number for number, group in enumerate(groups) if len(group) >= FEWEST_PROCESSES]
    if len(able) < 2:
        return unable(
            kind, PLACES, f"Too few processes on each of the {what} to tell a lasting difference from one of a process."
        )
    if np.ptp(np.concatenate([groups[number] for number in able])) == 0.0:
        return Check(kind, 0.0, 0.0, 1.0, PLACES, "", f"All {what} take the same time.")
    from scipy.stats import kruskal

    means = {number: float(groups[number].mean()) for number in able}
    slow, fast = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    size = means[slow] / means[fast] - 1.0 if means[fast] > 0 else 0.0
    test = kruskal(*[groups[number] for number in able])
    return Check(
        kind,
        size,
        float(test.statistic),
        float(test.pvalue),
        PLACES,
        f"{known[slow]} takes {percent(size)} longer than {known[fast]}, beyond what the model says of each: look at "
        "its clock rate, its cooling and what else runs there; if it persists, give it a model of its own.",
        f"The {len(able)} {what} take the same time: the slowest {percent(size)} longer than the fastest.",
    )


def _processes(calls: Classed, place: Integers) -> tuple[Floats, Integers]:
    """Mean level of each (process, place) over that of its setting, and its place."""
    key = calls.of.process * (int(place.max()) + 1) + place
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    mean = np.bincount(number, weights=calls.level) / np.bincount(number)
    setting = calls.of.setting[first]
    result = mean.copy()
    for one in np.unique(setting):
        inside = setting == one
        result[inside] = mean[inside] / np.median(mean[inside])
    return result, place[first]

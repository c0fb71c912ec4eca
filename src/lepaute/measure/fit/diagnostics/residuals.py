"""What was measured beside what the model says: the arrays that all diagnostics of a subject look at."""

from dataclasses import dataclass

import numpy as np

from lepaute.measure.fit.numeric import Booleans, Floats, Integers
from lepaute.stats.robust import robust_sd

#: Classes of size, equally wide in the logarithm of the predicted duration.
CLASSES = 8
#: A class with fewer calls joins its neighbour.
MIN_OF_CLASS = 30
#: Beyond this many robust standard deviations above the median of its class a call was interrupted: it is cut there, so
#: that the other diagnostics do not tell of it, and counted by `outliers`. Of a half-normal none is beyond.
CUT_SD = 8.0
#: Interruptions are rare; where more of a class are beyond the cut, it has two modes, and nothing is cut.
MAX_CUT = 0.1
#: From this many processes on they are the units of the tests; of fewer, parts of them are.
ENOUGH_PROCESSES = 8
UNITS = 24


@dataclass(frozen=True, slots=True)
class Residuals:
    """Calls of one subject, all vectors of shape (calls,), in the order in which they were made.

    subject     : as text, such as "kernel dgemm"
    size        : to draw the calls against: bytes of a message, or the product of a kernel's parameters
    size_name   : with its unit
    measured_s  : the clock's cost subtracted
    predicted_s : mean by the model, > 0
    deviation_s : standard deviation of single calls by the model, > 0
    time_s      : when the call began, from the first of all
    process     : number of the process; place: of the core among all; setting: of what distinguishes processes by
                  design (the probe), which are not compared with each other
    places      : names of the cores; hosts: of the node of each
    modelled    : False if the reference is the calls' running median; noise_modelled: so the deviation
    weighs_time : a class of size matters by its share of the time, as in an application
    """

    subject: str
    size: Floats
    size_name: str
    measured_s: Floats
    predicted_s: Floats
    deviation_s: Floats
    time_s: Floats
    process: Integers
    place: Integers
    setting: Integers
    places: tuple[str, ...]
    hosts: tuple[str, ...]
    modelled: bool = True
    noise_modelled: bool = True
    weighs_time: bool = False

    def __len__(self) -> int:
        return len(self.measured_s)

    @property
    def ratio(self) -> Floats:
        """Measured over predicted."""
        return self.measured_s / self.predicted_s


@dataclass(frozen=True, slots=True)
class Classed:
    """The same calls in classes of size, with what the classes have in common taken off.

    of      : the calls
    number  : class of each call, 0 for the shortest; counts: calls in each
    ratio   : measured / predicted, cut where a call was interrupted
    mean    : of the ratio in each class; scale: robust standard deviation of the ratio in each class
    expected: the mean of its class for each call, times what its setting differs by
    cut     : True for the calls that were cut
    unit    : number of the group of calls that counts as one observation; calls of different units are independent as
              far as one can know, calls of one unit need not be
    """

    of: Residuals
    number: Integers
    counts: Integers
    ratio: Floats
    mean: Floats
    scale: Floats
    expected: Floats
    cut: Booleans
    unit: Integers

    @property
    def level(self) -> Floats:
        """Ratio over what is expected: what neither size, setting nor interruptions explain; about 1."""
        return self.ratio / self.expected

    def by_process(self) -> tuple[Floats, Integers]:
        """Residuals in standard deviations, the mean of each process off, one process after the other; its numbers."""
        value = (self.ratio - self.expected) / np.maximum(self.scale[self.number], 1e-12)
        _, number = np.unique(self.of.process, return_inverse=True)
        value -= (np.bincount(number, weights=value) / np.bincount(number))[number]
        order = np.argsort(number, kind="stable")
        return value[order], number[order]

    def time_share(self) -> Floats:
        time_s = np.bincount(self.number, weights=self.of.measured_s, minlength=len(self.counts))
        return time_s / max(float(time_s.sum()), 1e-300)


def classed(calls: Residuals) -> Classed:
    number = _classes_of(calls.predicted_s)
    count = int(number.max()) + 1 if len(number) else 0
    ratio = calls.ratio
    capped = ratio.copy()
    scale = np.zeros(count)
    mean = np.ones(count)
    for which in range(count):
        inside = number == which
        values = ratio[inside]
        middle = float(np.median(values))
        # Of the upper side alone: noise is skewed, and interruptions are what the cut is for.
        scale[which] = max(robust_sd(values, middle), 1e-9 * abs(middle))
        cut = middle + CUT_SD * scale[which]
        if np.mean(values > cut) <= MAX_CUT:
            capped[inside] = np.minimum(values, cut)
        mean[which] = max(float(capped[inside].mean()), 1e-300)
    return Classed(
        calls,
        number,
        np.bincount(number, minlength=count),
        capped,
        mean,
        scale,
        mean[number] * _of_settings(calls, capped, mean[number]),
        ratio > capped,
        units_of(calls),
    )


def _of_settings(calls: Residuals, ratio: Floats, mean: Floats) -> Floats:
    """For each call, how much longer than the others those of its setting take, by their sums."""
    if len(calls) == 0:
        return np.ones(0)
    _, setting = np.unique(calls.setting, return_inverse=True)
    measured, expected = (np.bincount(setting, weights=part * calls.predicted_s) for part in (ratio, mean))
    factor: Floats = np.maximum(measured / np.maximum(expected, 1e-300), 1e-300)
    return factor[setting]


def _classes_of(predicted_s: Floats) -> Integers:
    """Class of each call by its predicted duration: equally wide in its logarithm, none with too few calls."""
    if len(predicted_s) == 0:
        return np.zeros(0, dtype=np.int64)
    logs = np.log(predicted_s)
    low, high = np.quantile(logs, [0.001, 0.999])
    if high - low < 1e-9:
        return np.zeros(len(logs), dtype=np.int64)
    edges = list(np.linspace(low, high, CLASSES + 1)[1:-1])
    while edges:
        counts = np.bincount(np.searchsorted(edges, logs), minlength=len(edges) + 1)
        smallest = int(np.argmin(counts))
        if counts[smallest] >= MIN_OF_CLASS:
            break
        # It joins the smaller of its neighbours.
        if smallest == 0 or (smallest < len(edges) and counts[smallest + 1] < counts[smallest - 1]):
            del edges[smallest]
        else:
            del edges[smallest - 1]
    return np.searchsorted(np.array(edges), logs).astype(np.int64)


def units_of(calls: Residuals) -> Integers:
    """Processes, or parts of them in the order of time where there are few; numbered from 0."""
    processes = len(np.unique(calls.process))
    return parts_of(calls.process, 1 if processes >= ENOUGH_PROCESSES else -(-UNITS // max(processes, 1)))


def parts_of(process: Integers, parts: int) -> Integers:
    """Each process cut into `parts` of as many calls as can be, in the order of its calls; numbered from 0."""
    _, number, counts = np.unique(process, return_inverse=True, return_counts=True)
    if parts == 1:
        return number.astype(np.int64)
    order = np.argsort(number, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.empty(len(process), dtype=np.int64)
    place[order] = np.arange(len(process)) - first[number[order]]
    return np.unique(number * parts + place * parts // counts[number], return_inverse=True)[1].astype(np.int64)

"""What means and repetitions of a measurement would be, drawn from the calls and mpiruns that were made.

Are means of 30 calls normal, which textbooks take as enough, or of 500 (figure 13 and section 5.1 of Hunold &
Carpen-Amarie, "MPI Benchmarking Revisited")? No verdict rests on that. How far repetitions of a whole measurement
differ: run-times of trials over the least of them (figure 29 and section 6.3).
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas
from scipy import stats

from lepaute.errors import InputError
from lepaute.measure.compare.summaries import ROW
from lepaute.stats.expanding import Floats

#: Observations in a mean; means that are drawn of each.
OBSERVATIONS = (30, 500)
MEANS = 500
#: A row with fewer calls tells little of the tails that matter here.
MIN_CALLS = 100
SIGNIFICANT = 0.05
#: Repetitions of a measurement.
TRIALS = 30


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """Means of random samples of the calls of a row, drawn with replacement.

    calls        : that were drawn from, those of all mpiruns, without any filter
    observations : in each mean
    means_s      : float64, shape (MEANS,), increasing, seconds
    p_value      : that they are normal (Shapiro & Wilk); 1 where all are equal
    skewness     : of the means, 0 for normal ones
    """

    library: str
    operation: str
    form: str
    size_bytes: int
    calls: int
    observations: int
    means_s: Floats
    p_value: float
    skewness: float

    @property
    def is_normal(self) -> bool:
        """Whether the test does not reject it."""
        return self.p_value > SIGNIFICANT


def sample_means(calls: pandas.DataFrame, duration: str, seed: int = 13) -> tuple[SampleMeans, ...]:
    """For each library and row with MIN_CALLS calls or more, and each number of OBSERVATIONS.

    calls : columns library, ROW and `duration` (seconds); those without a duration (NaN) are left out
    """
    generator = np.random.default_rng(seed)
    result = []
    for key, table in calls[calls[duration].notna()].groupby(["library", *ROW], observed=True):
        library, operation, form, size_bytes = cast("tuple[str, str, str, int]", key)
        values = table[duration].to_numpy(dtype=np.float64)
        if len(values) < MIN_CALLS:
            continue
        for observations in OBSERVATIONS:
            means = np.sort(generator.choice(values, (MEANS, observations)).mean(axis=1))
            row = str(library), str(operation), str(form), int(size_bytes)
            result.append(SampleMeans(*row, len(values), observations, means, *_shape(means)))
    return tuple(result)


def normality_sentence(found: tuple[SampleMeans, ...]) -> str:
    """In how many rows means of each number of observations are normal; empty if nothing was drawn."""
    if not found:
        return ""
    counts = {
        observations: [one.is_normal for one in found if one.observations == observations]
        for observations in OBSERVATIONS
    }
    parts = [f"means of {observations} calls are normal in {sum(each)}" for observations, each in counts.items()]
    return f"of {len(counts[OBSERVATIONS[0]])} rows and libraries, {', '.join(parts)} (Shapiro and Wilk, 5 %)"


def _shape(means: Floats) -> tuple[float, float]:
    spread = float(np.std(means))
    if spread == 0.0:
        return 1.0, 0.0
    scaled = (means - means.mean()) / spread
    return float(stats.shapiro(scaled).pvalue), float(np.mean(scaled**3))


def normalised(values: npt.ArrayLike) -> Floats:
    """Values of trials over the least of them. Raises InputError if one is not above 0 and finite, or none is."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not (np.isfinite(array) & (array > 0)).all():
        raise InputError("the run-times of trials must be above 0, and at least one")
    return np.asarray(array / array.min())


def resampled_trials(values: npt.ArrayLike, mpiruns: int, generator: np.random.Generator) -> Floats:
    """Normalised run-times of TRIALS repetitions of a measurement, each the mean of this many mpiruns.

    values : one for each mpirun that was made, shape (n,), of which mpiruns are drawn with replacement: repetitions at
             another hour, on a machine in another state, differ by more
    """
    return normalised(generator.choice(np.asarray(values, dtype=np.float64), (TRIALS, mpiruns)).mean(axis=1))

"""Breakpoints of published measurements: the four data sets of the thesis, and 16 series against pycewise.

Fixed before any result was looked at:

* the four data sets of Cornebize (2021), section 4.3.2: the durations of memcpy for 200 sizes
  (network_fit/memcpy_small.csv), and three generated anew: 200 sizes 10^U between the smallest and the largest real
  one, durations by the fit of the real ones with the breakpoints 16,000, 1,071,669 and 5,629,667 bytes given, and with
  noise none, normal of standard deviation 5e-9 s, or normal of 2e-12 s for each byte; seed 432. A true breakpoint of
  these is the largest size drawn that is not above the one given;
* goals there: with three breakpoints asked for, exactly the true ones; with the number free, the true ones among them;
* the 16 series of network_fit/pycewise_data.csv (four operations on four clusters, 200 sizes each): pycewise 0.1.4
  from PyPI with its logarithmic mode, and ours with as many breakpoints as it finds; goal: a sum of squared
  logarithmic residuals, computed from the predictions of each, no larger in any series;
* objective log, defaults of lepaute.fit.segment: the criterion was chosen on models with known truth before
  (validation/segmentation_truth.py, which also tells the one thing that was changed after a first look). Speed:
  benchmarks/segmentation.py.
"""

import numpy as np
import pandas
from support.report import Goal, Options, markdown, run_study

from lepaute.measure.fit.segmentation import SegmentedLine, segment

MEMCPY, SERIES = "network_fit/memcpy_small.csv", "network_fit/pycewise_data.csv"
TRUE_BYTES = (16_000.0, 1_071_669.0, 5_629_667.0)
SEED = 432


def data_sets(options: Options) -> dict[str, tuple[np.ndarray, np.ndarray, tuple[float, ...]]]:
    """Sizes, durations and true breakpoints by name."""
    real = pandas.read_csv(options.data(MEMCPY))
    x, y = real["size"].to_numpy(float), real["duration"].to_numpy(float)
    line = segment(x, y, breakpoints=TRUE_BYTES)
    rng = np.random.default_rng(SEED)
    sets = {"memcpy": (x, y, TRUE_BYTES)}
    for name, sd in (("no noise", lambda _: 0.0), ("5e-9 s", lambda _: 5e-9), ("2e-12 s/B", lambda size: 2e-12 * size)):
        sizes = np.round(10 ** rng.uniform(np.log10(x.min()), np.log10(x.max()), len(x)))
        durations = line.predict(sizes) + sd(sizes) * rng.normal(size=len(sizes))
        true = tuple(float(sizes[sizes <= place].max()) for place in TRUE_BYTES)
        sets[name] = (sizes, durations, true)
    return sets


def compared(options: Options) -> pandas.DataFrame:
    """A row a data set and question."""
    rows = []
    for name, (x, y, true) in data_sets(options).items():
        for asked in (3, None):
            fitted = segment(x, y, n_breakpoints=asked)
            rows.append(
                {
                    "what": "set",
                    "name": name,
                    "asked": "free" if asked is None else str(asked),
                    "true": listed(true),
                    "breakpoints": listed(fitted.breakpoints),
                    "gains": ", ".join(f"{gain:.3g}" for gain in fitted.gains),
                    "residual": f"{residual(fitted, x, y):.6g}",
                }
            )
    table = pandas.read_csv(options.data(SERIES))
    groups = list(table.groupby(["experiment", "cluster"]))
    for (experiment, cluster), own in groups[: 1 if options.quick else None]:
        x, y = own["msg_size"].to_numpy(float), own["duration"].to_numpy(float)
        theirs, predicted = pycewise(x, y)
        fitted = segment(x, y, n_breakpoints=len(theirs))
        free = segment(x, y)
        rows.append(
            {
                "what": "series",
                "name": f"{experiment} {cluster}",
                "asked": str(len(theirs)),
                "breakpoints": listed(fitted.breakpoints),
                "residual": f"{residual(fitted, x, y):.6g}",
                "pycewise_breakpoints": listed(theirs),
                "pycewise_residual": f"{float(np.sum((np.log(y) - np.log(predicted)) ** 2)):.6g}",
                "free": str(len(free.breakpoints)),
            }
        )
    return pandas.DataFrame(rows)


def pycewise(x: np.ndarray, y: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Breakpoints and predictions of pycewise."""
    from pycewise import compute_regression

    found = compute_regression(list(x), list(y), mode="log")
    return [float(place) for place in found.breakpoints], np.array([found.predict(size) for size in x])


def residual(fitted: SegmentedLine, x: np.ndarray, y: np.ndarray) -> float:
    """Sum of squared residuals of the logarithm."""
    return float(np.sum((np.log(y) - np.log(fitted.predict(x))) ** 2))


def listed(places: "tuple[float, ...] | list[float]") -> str:
    return ", ".join(f"{place:.0f}" for place in places)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    goals = []
    sets = frame[frame["what"] == "set"]
    for name in dict.fromkeys(sets["name"]):
        own = sets[sets["name"] == name].set_index("asked")
        three, free = own.loc["3", "breakpoints"], own.loc["free", "breakpoints"]
        true = own.loc["3", "true"]
        goals.append(Goal(f"{name}: three asked for", true, three, three == true))
        among = set(true.split(", ")) <= set(free.split(", "))
        goals.append(Goal(f"{name}: number free", "the three among them", f"{free.count(',') + 1} found", among))
    series = frame[frame["what"] == "series"]
    worse = series["residual"].astype(float) > series["pycewise_residual"].astype(float) * (1 + 1e-9)
    what = "squared residuals at the number of pycewise"
    goals.append(Goal(what, "no larger in any", f"larger in {worse.sum()}", not worse.any()))
    return goals


def text(frame: pandas.DataFrame) -> str:
    free = frame[(frame["what"] == "set") & (frame["asked"] == "free")]
    gains = [(row["name"], row["breakpoints"], row["gains"]) for _, row in free.iterrows()]
    return f"""## Breakpoints of published measurements

The four data sets of section 4.3.2 of the thesis (three of them generated anew) and the 16 series of its figure 4.8,
against pycewise 0.1.4 (`validation/segmentation.py`).

{{goals}}

With the number of breakpoints free, each further breakpoint divides the sum of squares by:

{markdown(("data", "breakpoints chosen", "gains of the 1st, 2nd, ..."), gains)}

{{cases}}
"""


if __name__ == "__main__":
    run_study(compared, judged, text, needs=(MEMCPY, SERIES), dtype=str)

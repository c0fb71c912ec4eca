"""How often the breakpoints of random piecewise models are found, and what a breakpoint should cost.

Fixed before any result was looked at:

* models: support/piecewise_models.py; 200 (seeds 1 to 200) to choose the criterion with, 200 fresh (1001 to 1200);
  found: the true number of breakpoints, each at most 2 sizes away;
* criteria: n log(RSS / n) + charge * log n, charges of K segments: bic 3K - 1; thesis 4K - 1 (Cornebize 2021, 4.3.2);
  hos 2K + 3 (K - 1) (Hall, Osborn and Sakkas 2013); double 2 (3K - 1); lwz 0.299 (log n)^1.1 (3K - 1) (Liu, Wu and
  Zidek 1997); hos5 2K + 5 (K - 1). Rule: the most found among the first 200, of equal ones the smaller charge;
* objective log, at most 12 breakpoints, at least 2 sizes a segment.

Changed after a first look: segments had at least 5 sizes (97.5 % of the first 200 found with hos5, chosen then as now),
so that for the memcpy durations of segmentation.py 9,573 and 17,257 bytes stood for 16,000.
"""

from collections.abc import Callable

import numpy as np
import pandas
from support.piecewise_models import Model, judged, random_model
from support.report import Options, markdown, run_study

from lepaute.measure.fit.segmentation import Partition, segment

CHOICE, FRESH = range(1, 201), range(1001, 1201)
FAR = 2

Charge = Callable[[np.ndarray, float], np.ndarray]
CHARGES: dict[str, Charge] = {
    "bic": lambda k, _: 3 * k - 1,
    "thesis": lambda k, _: 4 * k - 1,
    "hos": lambda k, _: 2 * k + 3 * (k - 1),
    "double": lambda k, _: 2 * (3 * k - 1),
    "lwz": lambda k, n: 0.299 * np.log(n) ** 1.1 * (3 * k - 1),
    "hos5": lambda k, _: 2 * k + 5 * (k - 1),
}


def searched(options: Options) -> pandas.DataFrame:
    """A row a model and criterion: whether the true breakpoints were found, how many were, and that of the default."""
    rows = []
    for part, seeds in (("choice", CHOICE), ("fresh", FRESH)):
        for seed in list(seeds)[: 4 if options.quick else None]:
            model = random_model(seed)
            fitted = segment(model.x, model.y)
            places = {name: chosen(fitted.candidates, len(model.sizes), charge) for name, charge in CHARGES.items()}
            places["default"] = fitted.breakpoints
            covered = covering(model, fitted.breakpoints, fitted.breakpoint_intervals)
            for name, breakpoints in places.items():
                of_model = {"relative_sd": model.relative_sd, "noise": model.kind}
                row = {"part": part, "seed": seed, **judged(model, name, breakpoints, FAR, **of_model)}
                row["least_signal"] = min(model.signal, default=np.nan)
                rows.append({**row, "covered": covered if name == "default" else ""})
    return pandas.DataFrame(rows)


def chosen(candidates: tuple[Partition, ...], points: int, charge: Charge) -> tuple[float, ...]:
    """The breakpoints of the least criterion."""
    counts = np.arange(1, len(candidates) + 1)
    left = np.array([candidate.residual for candidate in candidates])
    criterion = points * np.log(left / points) + charge(counts, points) * np.log(points)
    return candidates[int(np.argmin(criterion))].breakpoints


def covering(model: Model, breakpoints: tuple[float, ...], intervals: tuple[tuple[float, float], ...]) -> str:
    """Of the breakpoints found, as "covered/all": how many true jumps lie in the interval of theirs."""
    if len(breakpoints) != len(model.cuts):
        return ""
    inside = [
        low <= model.sizes[cut] and model.sizes[cut + 1] <= high
        for (low, high), cut in zip(intervals, model.cuts, strict=True)
    ]
    return f"{sum(inside)}/{len(inside)}"


def text(frame: pandas.DataFrame) -> str:
    rows = [[name] for name in (*CHARGES, "default")]
    for row in rows:
        for part in ("choice", "fresh"):
            own = frame[(frame["part"] == part) & (frame["criterion"] == row[0])]
            more, fewer = own["chosen"] > own["breakpoints"], own["chosen"] < own["breakpoints"]
            row += [share(own["found"]), share(more), share(fewer)]
    fresh = frame[(frame["part"] == "fresh") & (frame["criterion"] == "default")]
    noisy = fresh[fresh["relative_sd"] > 0.03]
    pairs = [str(cell).split("/") for cell in fresh["covered"] if "/" in str(cell)]
    covered, total = sum(int(a) for a, _ in pairs), sum(int(b) for _, b in pairs)
    counts = ("too many", "too few")
    header = ("criterion", "found (200 to choose with)", *counts, "found (200 fresh)", *counts)
    return f"""## Breakpoints of synthetic models

Random piecewise models with 0 to 5 breakpoints, 100 to 400 sizes and noise that grows with the duration; "found": the
true number, each at most 2 sizes away (`validation/segmentation_truth.py`). The penalty of a breakpoint was chosen on
the first 200 only.

{markdown(header, rows)}

The 95 % intervals of breakpoints contain {covered} of {total} true ones (fresh models with the correct number); with
noise of 3 to 10 %, {share(noisy["found"])} of {len(noisy)} models are found. {{cases}}
"""


def share(values: pandas.Series) -> str:
    """Per cent of what is true."""
    return f"{100 * values.mean():.1f} %"


if __name__ == "__main__":
    run_study(searched, lambda _: [], text)

"""How often the breakpoints of random piecewise models are found, in series of many sizes and in tables of few.

Fixed before any result was looked at:

* models of 100 to 400 sizes: random_model of support/piecewise_models.py, 200 (seeds 1 to 200), on which the charge of
  a breakpoint was chosen among six, and 200 fresh (1001 to 1200); found: the true number, each at most 2 sizes away;
* tables of 11 to 45 sizes with one duration each, as OSU and IMB write them: table_model, 400 (1 to 400), on which the
  criterion of few sizes was chosen among seven, and 400 fresh (1001 to 1400); each at most 1 size away;
* objective log, at most 12 breakpoints, at least 2 sizes a segment. What else was tried, and how the choice was made:
  docs/design/decisions/segmentation.md, and earlier versions of this file and of segmentation_tables.py.

Changed after a first look: segments had at least 5 sizes (97.5 % of the first 200 found), so that for the memcpy
durations of segmentation.py 9,573 and 17,257 bytes stood for 16,000; three degrees of freedom have to be left, since
lines of six and seven sizes were cut.
"""

import numpy as np
import pandas
from support.piecewise_models import Model, found, random_model, table_model
from support.report import Options, markdown, run_study

from lepaute.measure.fit.segmentation import segment

#: Name of a row, seeds, and how many sizes a breakpoint may be away; tables of few sizes: 1.
PARTS = (
    ("100 to 400 sizes, chosen with", range(1, 201), 2),
    ("100 to 400 sizes, fresh", range(1001, 1201), 2),
    ("11 to 45 sizes, chosen with", range(1, 401), 1),
    ("11 to 45 sizes, fresh", range(1001, 1401), 1),
)


def searched(options: Options) -> pandas.DataFrame:
    """A row a model: whether the true breakpoints were found, and how many were."""
    rows = []
    for part, seeds, far in PARTS:
        for seed in list(seeds)[: 4 if options.quick else None]:
            grid, model = ("", random_model(seed)) if far > 1 else table_model(seed)
            fitted = segment(model.x, model.y)
            row = {"part": part, "seed": seed, "grid": grid, "criterion": "default", "points": len(model.sizes)}
            row |= {"relative_sd": model.relative_sd, "noise": model.kind, "breakpoints": len(model.cuts)}
            row |= {"chosen": len(fitted.breakpoints), "found": found(model, fitted.breakpoints, far)}
            row["covered"] = covering(model, fitted.breakpoints, fitted.breakpoint_intervals)
            rows.append(row | {"least_signal": min(model.signal, default=np.nan)})
    return pandas.DataFrame(rows)


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
    rows = []
    for part, *_ in PARTS:
        own = frame[frame["part"] == part]
        more, fewer = own["chosen"] > own["breakpoints"], own["chosen"] < own["breakpoints"]
        rows.append((part, share(own["found"]), share(more[own["breakpoints"] == 0]), share(more), share(fewer)))
    fresh = frame[frame["part"] == PARTS[1][0]]
    noisy = fresh[fresh["relative_sd"] > 0.03]
    pairs = [str(cell).split("/") for cell in fresh["covered"] if "/" in str(cell)]
    covered, total = sum(int(a) for a, _ in pairs), sum(int(b) for _, b in pairs)
    return f"""## Breakpoints of synthetic models

Random piecewise models with 0 to 5 breakpoints (few sizes: 3) and noise that grows with the duration; "found": the true
number, each at most 2 sizes away (1); "line cut": of models without a breakpoint
(`validation/segmentation_truth.py`).

{markdown(("models", "found", "line cut", "too many", "too few"), rows)}

The 95 % intervals of breakpoints contain {covered} of {total} true ones (fresh models with the correct number); with
noise of 3 to 10 %, {share(noisy["found"])} of {len(noisy)} models are found. {{cases}}
"""


def share(values: pandas.Series) -> str:
    """Per cent of what is true."""
    return f"{100 * values.mean():.1f} %"


if __name__ == "__main__":
    run_study(searched, lambda _: [], text)

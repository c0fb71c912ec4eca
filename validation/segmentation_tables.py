"""How many breakpoints a table of 11 to 45 sizes with one duration each proves, as OSU and IMB write them.

Fixed before any result was looked at:

* models: table_model of support/piecewise_models.py; 400 (seeds 1 to 400) to choose the criterion with, 400 fresh (1001
  to 1400);
* found: the true number of breakpoints, each at most 1 size away;
* criteria of K segments, n sizes, the least wins; the penalty is hos5 of segmentation_truth.py, (2K + 5 (K - 1)) log n.
  parameters: n log(RSS / n) + penalty with fewer parameters, so counted, than n (what there was); free: as long as 2K +
  (K - 1) < n; variance1, 3: n log(RSS / f) with f = n - 2K - (K - 1), or 3 (K - 1) (Hall, Osborn and Sakkas 2013);
  degrees1 to 3: sum over k < K of f(k + 1) log(RSS(k + 1) / RSS(k)), f with 1, 2 or 3 a breakpoint: F's tail with so
  few degrees of freedom. f is 1 at least; n large, all are the same;
* rule: the most found among the first 400, of those that cut at most 5 % of the models without breakpoints, and find at
  most 1 % less than hos5 among the 200 of segmentation_truth.py; of equal ones that with fewer too many.

Added after a first look: three degrees of freedom have to be left, since lines of six and seven sizes were cut.
"""

from collections.abc import Callable

import numpy as np
import pandas
from segmentation_truth import share
from support.piecewise_models import judged, random_model, table_model
from support.report import Options, markdown, run_study

from lepaute.measure.fit.segmentation import Partition, segment

CHOICE, FRESH, MANY = range(1, 401), range(1001, 1401), range(1, 201)
FAR, FAR_OF_MANY = 1, 2

Rule = Callable[[np.ndarray, int], np.ndarray]


def _penalty(count: int, n: int) -> np.ndarray:
    k = np.arange(1, count + 1)
    return (2 * k + 5 * (k - 1)) * np.log(n)


def _freedom(count: int, n: int, of_breakpoint: int) -> np.ndarray:
    k = np.arange(1, count + 1)
    return n - 2.0 * k - of_breakpoint * (k - 1)


def _whole(of_breakpoint: int) -> Rule:
    def value(left: np.ndarray, n: int) -> np.ndarray:
        f = _freedom(len(left), n, of_breakpoint)
        return np.where(f >= 1, n * np.log(left / n) + _penalty(len(left), n), np.inf)

    return value


def _variance(of_breakpoint: int) -> Rule:
    def value(left: np.ndarray, n: int) -> np.ndarray:
        f = _freedom(len(left), n, of_breakpoint)
        return np.where(f >= 1, n * np.log(left / np.maximum(f, 1)) + _penalty(len(left), n), np.inf)

    return value


def _degrees(of_breakpoint: int) -> Rule:
    def value(left: np.ndarray, n: int) -> np.ndarray:
        f = _freedom(len(left), n, of_breakpoint)
        steps = f[1:] * np.log(left[1:] / left[:-1])
        sums = np.concatenate([[0.0], np.cumsum(steps)])
        return np.where(f >= 1, sums + _penalty(len(left), n), np.inf)

    return value


RULES: dict[str, Rule] = {
    "parameters": _whole(5),
    "free": _whole(1),
    "variance1": _variance(1),
    "variance3": _variance(3),
    "degrees1": _degrees(1),
    "degrees2": _degrees(2),
    "degrees3": _degrees(3),
}
SHOWN = ("parameters", "free", "variance1", "variance3", "default")


def searched(options: Options) -> pandas.DataFrame:
    """A row a model and criterion, the default of lepaute.fit.segment among these."""
    rows = []
    for part, seeds in (("choice", CHOICE), ("fresh", FRESH), ("many", MANY)):
        for seed in list(seeds)[: 8 if options.quick else None]:
            grid, model = table_model(seed) if part != "many" else ("many", random_model(seed))
            fitted = segment(model.x, model.y)
            places = {name: chosen(fitted.candidates, len(model.sizes), rule) for name, rule in RULES.items()}
            places["default"] = fitted.breakpoints
            far = FAR_OF_MANY if part == "many" else FAR
            for name, breakpoints in places.items():
                columns = judged(model, name, breakpoints, far, relative_sd=f"{model.relative_sd:.6g}")
                rows.append({"part": part, "seed": seed, "grid": grid, **columns})
    return pandas.DataFrame(rows)


def chosen(candidates: tuple[Partition, ...], points: int, rule: Rule) -> tuple[float, ...]:
    """The breakpoints of the least criterion."""
    left = np.maximum([candidate.residual for candidate in candidates], points * 1e-12)
    return candidates[int(np.argmin(rule(left, points)))].breakpoints


def text(frame: pandas.DataFrame) -> str:
    rows = [[name] for name in SHOWN]
    for row in rows:
        for part in ("fresh", "many"):
            own = frame[(frame["part"] == part) & (frame["criterion"] == row[0])]
            row.append(share(own["found"]))
            if part == "fresh":
                more, fewer = own["chosen"] > own["breakpoints"], own["chosen"] < own["breakpoints"]
                row += [share(more[own["breakpoints"] == 0]), share(more), share(fewer)]
    header = ("criterion", "found (400 fresh)", "line cut", "too many", "too few", "found (100 to 400 sizes)")
    return f"""## Breakpoints of tables with one duration a size

Tables of 11 to 45 sizes such as those of OSU and IMB, with 0 to 3 breakpoints and noise of 0.3 to 10 %; "found": the
true number, each at most one size away; "line cut": of the models without a breakpoint
(`validation/segmentation_tables.py`). The criterion was chosen on 400 other models.

{markdown(header, rows)}

{{cases}}
"""


if __name__ == "__main__":
    run_study(searched, lambda _: [], text)

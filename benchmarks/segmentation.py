"""Speed of segmentation beside pycewise, at 10,000 points, and what the candidates of the logarithm cost beyond 500.

    .venv/bin/python benchmarks/segmentation.py [--repeat N]

Fixed before any result was looked at. Data: random piecewise models (validation/support/piecewise_models.py). Times are
CPU seconds of this process, ours and pycewise's in turn, medians; pycewise 0.1.4 (PyPI) with its logarithmic mode on
models of 200 sizes, ours with its defaults: all of 0 to 12 breakpoints, intervals included. Goals: at least 100 times
faster than pycewise; 10,000 points in under 2 s. The gap: sum of squares of the cuts found among 100 merged points of
models with 500 sizes over that of the exact cuts, for every number of breakpoints up to 5.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "validation"))
from support.piecewise_models import random_model

from lepaute.measure.fit.segmentation import segment
from lepaute.measure.fit.segmentation.points import MAX_CANDIDATES, best_cuts, points_of

SIZES = 200
FIRST_SEED = 2001
LARGE = 10_000


def cpu_s(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def beside_pycewise(repeat: int) -> float:
    """Prints a row a model; the median ratio."""
    from pycewise import compute_regression

    ratios = []
    for seed in range(FIRST_SEED, FIRST_SEED + repeat):
        model = random_model(seed, SIZES)
        x, y = model.x, model.y
        theirs = cpu_s(lambda x=x, y=y: compute_regression(list(x), list(y), mode="log"))
        ours = statistics.median(cpu_s(lambda x=x, y=y: segment(x, y)) for _ in range(3))
        ratios.append(theirs / ours)
        print(f"{len(x)} sizes: pycewise {theirs:.2f} s, ours {1e3 * ours:.1f} ms, ratio {ratios[-1]:.0f}")
    return statistics.median(ratios)


def at_ten_thousand(repeat: int) -> float:
    """Prints a row an objective; the largest median in seconds."""
    rng = np.random.default_rng(10)
    x = np.unique(10 ** rng.uniform(0, 9, LARGE))
    alone = 1e-6 + 1e-9 * x
    three = np.where(x < 3e3, alone, np.where(x < 1e6, 8e-6 + 2e-10 * x, 3e-5 + 1e-10 * x))
    worst = 0.0
    for (name, true), objective in product((("line", alone), ("three lines", three)), ("log", "weighted", "ordinary")):
        y = true * rng.lognormal(0, 0.05, len(x))
        took = statistics.median(
            cpu_s(lambda objective=objective, y=y: segment(x, y, objective=objective)) for _ in range(repeat)
        )
        print(f"{len(x)} points, {name}, {objective}: {took:.2f} s")
        worst = max(worst, took)
    return worst


def gap(repeat: int) -> float:
    """Prints and returns the largest ratio of what is left, candidates over exact."""
    ratios = []
    for seed in range(FIRST_SEED, FIRST_SEED + 4 * repeat):
        model = random_model(seed, MAX_CANDIDATES)
        points = points_of(model.x, model.y, "log")
        exact = best_cuts([points], [1.0], False, 2, 13)
        rough = best_cuts([points], [1.0], False, 2, 13, most_exact=100)
        ratios += [one / other for (_, one), (_, other) in zip(rough[:6], exact[:6], strict=True)]
    quantiles = np.quantile(ratios, [0.5, 0.9, 1.0])
    found = ", ".join(f"{name} {value:.4f}" for name, value in zip(("median", "90 %", "most"), quantiles, strict=True))
    print(f"squares left by 100 candidates over those of the exact cuts, 500 sizes: {found}")
    return float(quantiles[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--repeat", type=int, default=5, help="models beside pycewise, and repetitions of the large one"
    )
    repeat = parser.parse_args().repeat
    ratio, large_s = beside_pycewise(repeat), at_ten_thousand(repeat)
    gap(repeat)
    print(f"pycewise over ours, median: {ratio:.0f} (goal: at least 100)")
    print(f"10,000 points, slowest objective: {large_s:.2f} s (goal: under 2 s)")
    return 0 if ratio >= 100 and large_s < 2 else 1


if __name__ == "__main__":
    sys.exit(main())

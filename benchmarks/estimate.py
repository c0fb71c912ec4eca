"""The estimate of how long a prediction takes, which is told before it starts, beside what the prediction then takes.

    .venv/bin/python benchmarks/estimate.py [REPETITIONS]

CPU time on both sides; estimate and run in turn. Prints the median ratio of each case; exits with 1 where one is not
within a factor of 2.
"""

import statistics
import sys
import time

from lepaute.platform import load_platform
from lepaute.simulate import Hpl, predict
from lepaute.simulate import estimate as estimates
from lepaute.simulate.predicting import expected_run_s

CASES = [
    Hpl(n=60_000, p=8, q=8),
    Hpl(n=20_000, nb=256, p=8, q=8),
    Hpl(n=20_000, p=16, q=16),
    Hpl(n=50_000, p=4, q=8, depth=0),
    Hpl(n=20_000, p=7, q=9, bcast="1ring"),
    Hpl(n=30_000, p=64, q=1),
    Hpl(n=50_000, p=4, q=64, nb=200),
    Hpl(n=20_000, p=32, q=32),
    Hpl(n=200_000, p=1, q=1),
    Hpl(n=20_000, p=16, q=16, bcast="long-modified", depth=0, swap="spread-roll"),
]


def main() -> int:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    estimates.WORTH_MEASURING_S = 0.0  # short runs too
    platform = load_platform("dahu")
    ratios: dict[Hpl, list[float]] = {hpl: [] for hpl in CASES}
    for _ in range(repetitions):
        for hpl in CASES:
            expected = expected_run_s([hpl], platform, runs=10)
            assert expected is not None
            began_s = time.process_time()
            predict(hpl, platform, runs=1)
            ratios[hpl].append(expected[0] / (time.process_time() - began_s))
    print("| HPL | median of estimate / took | smallest | largest |\n|---|---|---|---|")
    for hpl, seen in ratios.items():
        median = statistics.median(seen)
        print(
            f"| N = {hpl.n}, NB = {hpl.nb}, {hpl.p}x{hpl.q}, {hpl.bcast}, depth {hpl.depth} |"
            f" {median:.2f} | {min(seen):.2f} | {max(seen):.2f} |"
        )
    return 0 if all(0.5 < statistics.median(seen) < 2.0 for seen in ratios.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

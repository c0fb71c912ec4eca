"""The estimate of how long a prediction or a study takes, which is told before it starts, beside what it then takes.

    .venv/bin/python benchmarks/estimate.py [REPETITIONS] [--only TEXT] [--largest] [--load PROCESSES]

Of predictions CPU time on both sides, of ready studies wall time, beside so many processes that compute; estimate and
run in turn. Prints the median ratio of each case; exits with 1 where one is not within a factor of 2.
--largest: those of exascale-like too, minutes long.
"""

import argparse
import statistics
import subprocess
import sys
import time

from lepaute.simulate import Hpl, predict
from lepaute.simulate.apps.hpl import work
from lepaute.simulate.platform import load_platform
from lepaute.simulate.prediction.predicting import expected_run_s
from lepaute.study.checking import opened_study, rehearsed
from lepaute.study.ready import Subject, ready_study
from lepaute.study.running import run_study
from lepaute.study.session import Session

FACTOR = 2.0
STUDIES = ("rank-mapping", "components", "nb-and-grid", "scaling")
CASES = [
    ("dahu", "full", Hpl(n=60_000, p=8, q=8)),
    ("dahu", "full", Hpl(n=20_000, nb=256, p=8, q=8)),
    ("dahu", "full", Hpl(n=20_000, p=16, q=16)),
    ("dahu", "full", Hpl(n=50_000, p=4, q=8, depth=0)),
    ("dahu", "full", Hpl(n=30_000, p=64, q=1)),
    ("dahu", "full", Hpl(n=50_000, p=4, q=64, nb=200)),
    ("dahu", "full", Hpl(n=20_000, p=32, q=32)),
    ("dahu", "full", Hpl(n=150_000, p=1, q=1)),
    ("dahu", "full", Hpl(n=20_000, p=16, q=16, bcast="long-modified", depth=0, swap="spread-roll")),
    ("dahu", "sampled", Hpl(n=500_000, p=32, q=32)),
    ("stampede-like", "sampled", Hpl(n=4_000_000, nb=1024, p=64, q=64)),
    ("stampede-like", "sampled", Hpl(n=3_875_000, nb=1024, p=77, q=78)),
]
LARGEST = [
    ("exascale-like", "full", Hpl(n=150 * 1024, nb=1024, p=256, q=294)),
    ("exascale-like", "sampled", Hpl(n=24_000_000, nb=1024, p=256, q=294)),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repetitions", type=int, nargs="?", default=5)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--load", type=int, default=0, help="processes that compute meanwhile")
    options = parser.parse_args()
    work.WORTH_MEASURING_S = 0.0  # short runs too
    ratios: dict[str, list[float]] = {}
    took_s: dict[str, list[float]] = {}
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    for _ in range(options.repetitions):
        for name in [study for study in STUDIES if options.only in study]:
            study = ready_study(name, Subject("dahu", load_platform("dahu"), {"n": 20_000, "grid": "8x8"}))
            with Session(opened_study(study)[1]) as session:
                expected_s = rehearsed(session).wall_s
            assert expected_s is not None
            began_s = time.monotonic()
            run_study(study, scheduler="threads")
            took_s.setdefault(name, []).append(time.monotonic() - began_s)
            ratios.setdefault(name, []).append(expected_s / took_s[name][-1])
        for platform_name, fidelity, hpl in [*CASES, *(LARGEST if options.largest else [])]:
            name = f"{platform_name}, N = {hpl.n:,}, NB = {hpl.nb}, {hpl.p} x {hpl.q}, {hpl.bcast}, depth {hpl.depth}"
            name += f", {fidelity}"
            if options.only not in name:
                continue
            platform = load_platform(platform_name)
            expected = expected_run_s([hpl], platform, runs=10, fidelity=fidelity)
            assert expected is not None
            began_s = time.process_time()
            predict(hpl, platform, runs=1, fidelity=fidelity)
            took_s.setdefault(name, []).append(time.process_time() - began_s)
            ratios.setdefault(name, []).append(expected[0] / took_s[name][-1])
    for process in others:
        process.kill()
    print("| HPL | took, CPU s | median of estimate / took | smallest | largest |\n|---|---|---|---|---|")
    for name, seen in ratios.items():
        print(
            f"| {name} | {statistics.median(took_s[name]):.2f} | {statistics.median(seen):.2f} |"
            f" {min(seen):.2f} | {max(seen):.2f} |"
        )
    return 0 if all(1 / FACTOR < statistics.median(seen) < FACTOR for seen in ratios.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

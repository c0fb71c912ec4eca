"""Time from the shell of one prediction, start-up included, beside that of an interpreter that does nothing.

    .venv/bin/python benchmarks/predict_startup.py [REPETITIONS]

The two are run in turn, so that drift of the machine's speed hits both. Prints medians and checks the answer; exits
with 1 when the median is above half a second.
"""

import json
import resource
import statistics
import subprocess
import sys
import time

PREDICT = ["predict", "hpl", "-p", "dahu", "--n", "20k", "--nb", "128", "--grid", "8x8", "--runs", "1", "--json"]
LIMIT_S = 0.5


def timed(arguments: list[str]) -> tuple[float, float, str]:
    """(wall seconds, user seconds, standard output) of a process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    output = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, output


def main() -> int:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    ours, nothing, answers = [], [], set()
    for _ in range(repetitions):
        wall_s, user_s, output = timed([sys.executable, "-m", "lepaute.cli.main", *PREDICT])
        ours.append((wall_s, user_s))
        prediction = json.loads(output)
        answers.add((prediction["time_s"]["mean"], prediction["simulation"]["messages"]))
        nothing.append(timed([sys.executable, "-c", "pass"])[0])
    if len(answers) != 1:
        print(f"the same prediction gave {len(answers)} answers: {answers}")
        return 1
    wall_s = statistics.median(wall for wall, _ in ours)
    print("| what | median wall s | median user s |\n|---|---|---|")
    print(f"| lepaute {' '.join(PREDICT)} | {wall_s:.3f} | {statistics.median(user for _, user in ours):.3f} |")
    print(f"| the interpreter alone | {statistics.median(nothing):.3f} | |")
    return 0 if wall_s < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())

"""What many runs of one prediction take, and the rows of an experiment: CPU time and peak memory of processes.

    .venv/bin/python benchmarks/many_runs.py [REPETITIONS] [--before SOURCES]

Medians; with --before, another version's `src` in turn with this one's. Of the predictions, all that both versions tell
but times and memory of the simulation itself must be equal; exits with 1 where it is not.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
_LEPAUTE = ["-m", "lepaute.cli.main"]
_SMALL = ["predict", "hpl", "-p", "dahu", "--n", "1k", "--nb", "128", "--grid", "1x2", "--json"]
PREDICTIONS = {
    f"{name}, {runs} run{'s' * (runs > 1)}": [*words, "--runs", str(runs)]
    for name, words, several in (
        ("N = 20,000, 8 x 8", ["predict", "hpl", "-p", "dahu", "--n", "20k", "--grid", "8x8", "--json"], (1, 20)),
        ("N = 100,000, 4 x 4", ["predict", "hpl", "-p", "dahu", "--n", "100k", "--grid", "4x4", "--json"], (1, 20)),
        ("N = 1,000, 1 x 2", _SMALL, (1_000, 10_000)),
    )
    for runs in several
}
ROWS = (1_000, 200_000)
JOB = """
import lepaute as lp


class Rows(lp.Job):
    def run(self):
        for number in range(int(self.parameters["rows"])):
            self.record(node="here", duration_s=1e-3 * (1 + number % 97 / 97), size_bytes=number % 1000, what="call")
"""
#: Runs the words after it and tells CPU seconds and the peak of memory, bytes, of that process on standard error.
MEASURED = """
import resource, subprocess, sys
status = subprocess.run([sys.executable, *sys.argv[1:]]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=sys.stderr)
sys.exit(status)
"""


def measured(words: list[str], sources: Path, folder: Path) -> tuple[float, float, str]:
    """(CPU seconds, peak of memory in bytes, standard output) of Python with these words."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(sources)},
    )
    cpu_s, peak_bytes = map(float, done.stderr.split()[-2:])
    return cpu_s, peak_bytes, done.stdout


def answer(output: str) -> str:
    """What a prediction says, without what its simulation took."""
    prediction = json.loads(output)
    prediction["simulation"] = prediction["simulation"]["messages"]
    return json.dumps(prediction)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repetitions", nargs="?", type=int, default=3)
    parser.add_argument("--before", type=Path, help="`src` of the version to compare with")
    arguments = parser.parse_args()
    versions = {**({"before": arguments.before.resolve()} if arguments.before else {}), "now": SOURCES}
    figures: dict[tuple[str, str], list[tuple[float, float]]] = {}
    answers: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "rows.py").write_text(JOB)
        experiments = {
            f"lepaute run, {rows:,} rows": [*"run rows.py --quiet --force -o x.zip --set".split(), f"rows={rows}"]
            for rows in ROWS
        }
        for _ in range(arguments.repetitions):
            for name, words in {**PREDICTIONS, **experiments}.items():
                for version, sources in versions.items():
                    cpu_s, peak_bytes, output = measured([*_LEPAUTE, *words], sources, folder)
                    figures.setdefault((name, version), []).append((cpu_s, peak_bytes))
                    if name in PREDICTIONS:
                        answers.setdefault(name, set()).add(answer(output))
    print("| what | " + " | ".join(f"{version}, CPU s | {version}, MB" for version in versions) + " |")
    print("|---" * (1 + 2 * len(versions)) + "|")
    for name in {**PREDICTIONS, **experiments}:
        cells = []
        for version in versions:
            cpu, peak = (statistics.median(each) for each in zip(*figures[name, version], strict=True))
            cells.append(f"{cpu:.2f} | {peak / 1e6:.0f}")
        print(f"| {name} | {' | '.join(cells)} |")
    return int(any(len(each) > 1 for each in answers.values()))


if __name__ == "__main__":
    sys.exit(main())

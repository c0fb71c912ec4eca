"""What short commands take from the shell, start-up included: CPU time (user and system) of processes, medians.

    .venv/bin/python benchmarks/predict_startup.py [REPETITIONS] [--before SOURCES]

All are run in turn, so that drift of the machine's speed hits them alike; with --before, those of another version's
`src` too, each beside its own. The first run of each, which fills caches, is not counted. Checks that the prediction is
the same each time; exits with 1 where a command takes more than is wanted.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from many_runs import measured

SOURCES = Path(__file__).resolve().parent.parent / "src"
_HPL = ["predict", "hpl", "-p", "dahu", "--nb", "128", "--runs", "1", "--json"]
#: Words of commands, and the CPU seconds wanted.
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    "lepaute --help": (["--help"], 0.1),
    "completion of a command": (["__complete", "pre"], 0.1),
    "completion of an option": (["__complete", "predict", "hpl", "--pf"], 0.1),
    "completion of a platform": (["__complete", "predict", "hpl", "-p", "da"], 0.1),
    "lepaute predict hpl --help": (["predict", "hpl", "--help"], None),
    "lepaute platform list": (["platform", "list"], None),
    "lepaute predict hpl -p dahu --n 1k --nb 128 --grid 2x2 --runs 1 --json": (
        [*_HPL, "--n", "1k", "--grid", "2x2"],
        0.15,
    ),
    "the same, --n 20k --grid 8x8": ([*_HPL, "--n", "20k", "--grid", "8x8"], 0.15),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repetitions", nargs="?", type=int, default=20)
    parser.add_argument("--before", type=Path, help="`src` of the version to compare with")
    arguments = parser.parse_args()
    versions = [*([arguments.before.resolve()] if arguments.before else []), SOURCES]
    took_s: dict[tuple[str, Path], list[float]] = {}
    answers = set()
    for repetition in range(arguments.repetitions + 1):
        for name, (words, _) in COMMANDS.items():
            for sources in versions:
                seconds, _, output = measured(["-m", "lepaute.cli.main", *words], sources, Path())
                if words[-1] == "8x8":
                    prediction = json.loads(output)
                    answers.add((prediction["time_s"]["mean"], prediction["simulation"]["messages"]))
                if repetition:
                    took_s.setdefault((name, sources), []).append(seconds)
    nothing_s = statistics.median(measured(["-c", "pass"], SOURCES, Path())[0] for _ in range(arguments.repetitions))
    if len(answers) != 1:
        print(f"the same prediction gave {len(answers)} answers: {answers}")
        return 1
    print(f"| what | {'before, CPU s | ' if arguments.before else ''}now, CPU s | wanted |")
    print(f"|---|{'---|' * len(versions)}---|")
    slow = False
    for name, (_, wanted_s) in COMMANDS.items():
        medians = [statistics.median(took_s[name, sources]) for sources in versions]
        slow |= wanted_s is not None and medians[-1] > wanted_s
        wanted = "–" if wanted_s is None else f"≤ {wanted_s:g}"
        print(f"| {name} | {' | '.join(f'{median:.3f}' for median in medians)} | {wanted} |")
    print(f"| the interpreter alone | {'| ' if arguments.before else ''}{nothing_s:.3f} | – |")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())

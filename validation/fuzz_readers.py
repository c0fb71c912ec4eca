"""Damaged archives given to every reader: each must answer, or refuse in one line of plain characters.

    .venv/bin/python validation/fuzz_readers.py [COUNT] [--seed S] [--minutes M]

COUNT mutants (default 2,000; `make test` runs 1,000) of archives of experiments, made by tests/archive_mutants.py:
bytes flipped, cut and spliced, header fields changed, members swapped, values of documents replaced; most sealed
again, so that the layers behind the seal are reached. Each is opened, shown, verified, compared, its tables read, and
extracted.
Fixed before it was first run: any exception but a LepauteError, any character that a terminal could obey, any file
outside of the folder of the extraction is a failure; so is a mutant that takes more than 10 s. A failing mutant is
kept, its name printed. Exit status 1 where there is one.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from archive_mutants import mutate_archives
from archive_readers import OPENED, REFUSED, read_everything
from support_archive import Node, experiment_archive, failed_archive

from lepaute.archive import Archive
from lepaute.archive.setups.setup import setup_of

_TOO_LONG_S = 10.0
FAILED, SLOW = "failed", "slow"


def main() -> int:
    """Runs the mutants and prints a table; the exit status."""
    arguments = _arguments()
    results: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="lepaute-fuzz-") as name:
        folder = Path(name)
        originals = [
            experiment_archive(folder / "whole.zip"),
            failed_archive(folder / "failed.zip"),
            experiment_archive(folder / "small.zip", [Node("node1")]),
        ]
        whole = Archive.open(originals[0])
        other, known = setup_of(whole), frozenset(whole.members())
        mutant = folder / "mutant.zip"
        end = time.monotonic() + 60 * arguments.minutes
        longest_s = 0.0
        for number, way in enumerate(mutate_archives(originals, mutant, arguments.count, arguments.seed)):
            start = time.monotonic()
            try:
                result = read_everything(mutant, other, folder / "out", known)
            except Exception:  # noqa: BLE001  what is looked for
                result = FAILED
                kept = Path(tempfile.gettempdir()) / f"lepaute-mutant-{arguments.seed}-{number}.zip"
                kept.write_bytes(mutant.read_bytes())
                print(f"mutant {number} ({way}), kept as {kept}:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
            took_s = time.monotonic() - start
            longest_s = max(longest_s, took_s)
            results[way, result] += 1
            if took_s > _TOO_LONG_S:
                results[way, SLOW] += 1
            if time.monotonic() > end:
                print(f"stopped after {arguments.minutes:g} minutes", file=sys.stderr)
                break
    _print(results, longest_s)
    return 1 if any(result in (FAILED, SLOW) for _, result in results) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Damaged archives given to every reader.")
    parser.add_argument("count", nargs="?", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--reference", help="not needed here; the other scripts of this folder take it")
    return parser.parse_args()


def _print(results: "Counter[tuple[str, str]]", longest_s: float) -> None:
    ways = sorted({way for way, _ in results})
    columns = (REFUSED, OPENED, FAILED, SLOW)
    print(f"| {'archives: what was changed':<26} | mutants | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for way in [*ways, "all"]:
        of_way = {
            result: sum(n for (w, r), n in results.items() if r == result and way in (w, "all")) for result in columns
        }
        mutants = sum(of_way[result] for result in (REFUSED, OPENED, FAILED))
        print(f"| {way:<26} | {mutants} | " + " | ".join(str(of_way[result]) for result in columns) + " |")
    print(f"longest: {longest_s:.2f} s")


if __name__ == "__main__":
    sys.exit(main())

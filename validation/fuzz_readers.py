"""Damaged archives and design files given to every reader: each must answer, or refuse in one line of plain characters.

    .venv/bin/python validation/fuzz_readers.py [COUNT] [--seed S] [--minutes M] [--only archives|designs]

COUNT mutants (default 2,000; `make test` runs 1,000) of archives of experiments, made by tests/archive_mutants.py:
bytes flipped, cut and spliced, header fields changed, members swapped, values of documents replaced; most sealed
again, so that the layers behind the seal are reached. Each is opened, shown, verified, compared, its tables read, and
extracted. And COUNT mutants of design files, made by tests/oracles/mutated_designs.py: each is read, and what is still
a design must come back equal from its own text.
Fixed before it was first run: any exception but a LepauteError, any character that a terminal could obey, any file
outside of the folder of the extraction is a failure; so is a mutant that takes more than 10 s. A failing mutant is
kept, its name printed; that of a design is printed. Exit status 1 where there is one.
The 10 s were by the wall clock at first, and are CPU time since a run at the lowest priority beside a load of 50.
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
from oracles.mutated_designs import mutate_designs
from support_archive import Node, experiment_archive, failed_archive

from lepaute.archive import Archive
from lepaute.archive.setups.setup import setup_of

_TOO_LONG_S = 10.0
FAILED, SLOW = "failed", "slow"


#: Designs between two looks at the clock.
_DESIGNS_AT_ONCE = 1000

#: (what was changed, what became of it) -> how many.
Results = Counter[tuple[str, str]]


def main() -> int:
    """Runs the mutants and prints a table of each kind; the exit status."""
    arguments = _arguments()
    parts = {"designs": _designs, "archives": _archives}
    failed = False
    for name, part in parts.items():
        if arguments.only in (None, name):
            began_s = time.monotonic()
            results, longest_s = part(arguments, began_s + 60 * arguments.minutes)
            _print(name, results, longest_s, time.monotonic() - began_s)
            failed = failed or any(result in (FAILED, SLOW) for _, result in results)
    return 1 if failed else 0


def _archives(arguments: argparse.Namespace, end: float) -> tuple[Results, float]:
    """(what became of them, the longest time that one took)."""
    results: Results = Counter()
    longest_s = 0.0
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
        for number, way in enumerate(mutate_archives(originals, mutant, arguments.count, arguments.seed)):
            start = time.process_time()
            try:
                result = read_everything(mutant, other, folder / "out", known)
            except Exception:  # noqa: BLE001  what is looked for
                result = FAILED
                kept = Path(tempfile.gettempdir()) / f"lepaute-mutant-{arguments.seed}-{number}.zip"
                kept.write_bytes(mutant.read_bytes())
                print(f"mutant {number} ({way}), kept as {kept}:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
            took_s = time.process_time() - start
            longest_s = max(longest_s, took_s)
            results[way, result] += 1
            if took_s > _TOO_LONG_S:
                results[way, SLOW] += 1
                print(f"mutant {number} of seed {arguments.seed} ({way}) took {took_s:.1f} s", file=sys.stderr)
            if time.monotonic() > end:
                print(f"stopped after {arguments.minutes:g} minutes", file=sys.stderr)
                break
    return results, longest_s


def _designs(arguments: argparse.Namespace, end: float) -> tuple[Results, float]:
    """The same for design files; the longest time is that of a batch, divided by its size."""
    results: Results = Counter()
    longest_s = 0.0
    way = "bytes, lines, cells"
    for first in range(0, arguments.count, _DESIGNS_AT_ONCE):
        count = min(_DESIGNS_AT_ONCE, arguments.count - first)
        start = time.process_time()
        try:
            outcome = mutate_designs(count, arguments.seed * 1_000_000 + first)
        except AssertionError:
            results[way, FAILED] += 1
            print(f"designs {first} and up:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
        else:
            results[way, OPENED] += outcome.read
            results[way, REFUSED] += outcome.refused
        took_s = time.process_time() - start
        longest_s = max(longest_s, took_s / count)
        if took_s > _TOO_LONG_S * count:
            results[way, SLOW] += count
        if time.monotonic() > end:
            print(f"stopped after {arguments.minutes:g} minutes", file=sys.stderr)
            break
    return results, longest_s


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Damaged archives and design files given to every reader.")
    parser.add_argument("count", nargs="?", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="of each kind, at most")
    parser.add_argument("--only", choices=("archives", "designs"), help="one kind alone")
    parser.add_argument("--reference", help="not needed here; the other scripts of this folder take it")
    return parser.parse_args()


def _print(kind: str, results: Results, longest_s: float, all_s: float) -> None:
    ways = sorted({way for way, _ in results})
    columns = (REFUSED, OPENED, FAILED, SLOW)
    title = f"{kind}: what was changed"
    print(f"| {title:<26} | mutants | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for way in [*ways, *(["all"] if len(ways) > 1 else [])]:
        of_way = {
            result: sum(n for (w, r), n in results.items() if r == result and way in (w, "all")) for result in columns
        }
        mutants = sum(of_way[result] for result in (REFUSED, OPENED, FAILED))
        print(f"| {way:<26} | {mutants} | " + " | ".join(str(of_way[result]) for result in columns) + " |")
    print(f"longest: {longest_s:.2g} s of CPU time; all: {all_s:.0f} s\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())

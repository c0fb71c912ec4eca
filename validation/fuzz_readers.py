"""Damaged inputs given to every reader: each must be read, or refused in one line that can be printed.

COUNT mutants (default 2,000; `make fuzz` runs 200,000, `make test` 4,000 with a seed of its own) shared by the kinds of
input in tests/mutants/readers.py, fewer of those that take longer to read, and archives of experiments
(tests/mutants/archives.py), most of them sealed again. What is read goes through all that precedes a simulation.
Each kind is read in a process with bounds of memory and CPU time, so that a crash or a hang is one more result.
Fixed before it was first run: any exception but a LepauteError, a message that is no printable line of 2,000
characters at most, a file outside of the folder of an extraction, a crash, 10 s of CPU time or 1 GiB are failures.
Exit status 1 where there is one; its traceback, or the archive that is kept, are printed.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from mutants.pool import CRASHED, SLOW, Source, read_all
from mutants.readers import FAILED, KINDS, READ, REFUSED, Outcome, outcomes

ARCHIVE = "archive"
ARCHIVE_SHARE = 0.5
MAX_CPU_S = 10.0
BAD = (FAILED, SLOW, CRASHED)


def main() -> int:
    parser = argparse.ArgumentParser(description="Damaged inputs given to every reader.")
    parser.add_argument("count", nargs="?", type=int, default=2000, help="mutants of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="at most")
    parser.add_argument("--only", nargs="+", choices=(*KINDS, ARCHIVE), help="some kinds alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--reference", help="not needed here; the other scripts of this folder take it")
    arguments = parser.parse_args()
    kinds = arguments.only or [*KINDS, ARCHIVE]
    memory = Path("/dev/shm")  # a disk takes ten times as long as the readers
    folder = Path(tempfile.mkdtemp(prefix="lepaute-fuzz-", dir=memory if memory.is_dir() else None))
    began_s = time.monotonic()
    results: Counter[tuple[str, str]] = Counter()
    sources = {kind: source_of(kind, arguments.seed, folder) for kind in kinds}
    shares = {kind: KINDS[kind].share if kind in KINDS else ARCHIVE_SHARE for kind in kinds}
    counts = {kind: max(1, round(arguments.count * share / sum(shares.values()))) for kind, share in shares.items()}
    for kind, outcome in read_all(sources, counts, arguments.processes, MAX_CPU_S):
        results[kind, outcome.result] += 1
        if outcome.result in BAD:
            print(f"{kind} {outcome.number} of seed {arguments.seed} ({outcome.way}): {outcome.problem}", flush=True)
        if time.monotonic() > began_s + 60 * arguments.minutes:
            print(f"stopped after {arguments.minutes:g} minutes", file=sys.stderr)
            break
    print_table(kinds, results, time.monotonic() - began_s)
    if any(result in BAD for _, result in results):
        return 1  # the folder has the archives that failed
    shutil.rmtree(folder)
    return 0


def source_of(kind: str, seed: int, folder: Path) -> Source:
    """The mutants of one kind; their files stand in folders of their own."""

    def source(first: int, count: int) -> Iterator[Outcome]:
        own = folder / f"{kind}-{first}"
        own.mkdir()
        if kind == ARCHIVE:
            from mutants.archives import archive_outcomes

            return archive_outcomes(first, count, seed, own)
        return outcomes(kind, first, count, seed, own)

    return source


def print_table(kinds: list[str], results: Counter[tuple[str, str]], took_s: float) -> None:
    """A line for each kind."""
    columns = (REFUSED, READ, *BAD)
    print("| input    | mutants | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for kind in (*kinds, "all"):
        counts = [sum(n for (k, r), n in results.items() if r == column and kind in (k, "all")) for column in columns]
        print(f"| {kind:<8} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |")
    print(f"{took_s:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())

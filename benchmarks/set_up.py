"""What a simulation costs before and beside its events, from 64 to 75,264 ranks: CPU time and memory.

    .venv/bin/python benchmarks/set_up.py

exascale-like, NB = 1024. Start: a run of HPL with one column, of which nearly all is set-up (the machine's day, the
engine, a program for each rank); least of 3. Memory: engine_bytes of a run of 5 steps of a large matrix, and without
what a run on one rank has (links and flows of 9,408 nodes). Goal: linear, no grid takes more than 1.25 times the
bytes a rank of another.
"""

import sys
import time

from lepaute.simulate import Hpl
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.native import Native, simulate
from lepaute.simulate.platform import load_platform

GRIDS = [(1, 1), (8, 8), (32, 32), (64, 64), (128, 147), (256, 294)]
NB = 1024
MAX_RATIO = 1.25


def main() -> int:
    began_s = time.process_time()
    platform = load_platform("exascale-like")
    machine_of(platform)
    print(f"Platform and machine: {time.process_time() - began_s:.3f} s.\n")
    print("| ranks | mapping, s | start, s | engine, MB | bytes a rank |\n|---|---|---|---|---|")
    alone_bytes, rank_bytes = 0, []
    for p, q in GRIDS:
        began_s = time.process_time()
        Mapping().cores(platform, p * q)
        mapping_s = time.process_time() - began_s
        measure = Native().on(Conditions(platform)).measure
        tiny = Hpl(n=1, nb=NB, p=p, q=q)
        start_s = min(measure(tiny, tiny) for _ in range(3))
        engine_bytes = bytes_of(Hpl(n=20_000 * NB, nb=NB, p=p, q=q), platform)
        alone_bytes = alone_bytes or engine_bytes
        each = (engine_bytes - alone_bytes) / (p * q)
        rank_bytes += [each] if p * q > 1 else []
        print(f"| {p * q:,} | {mapping_s:.3f} | {start_s:.3f} | {engine_bytes / 1e6:.1f} | {each:.0f} |", flush=True)
    return 0 if max(rank_bytes) <= MAX_RATIO * min(rank_bytes) else 1


def bytes_of(hpl: Hpl, platform) -> int:
    """engine_bytes of 5 steps."""
    layers = Conditions(platform).layers.to_core()
    cores = Mapping().cores(platform, hpl.ranks)
    return simulate(hpl.on(platform), machine_of(platform), layers, cores, 1, trial_steps=4).engine_bytes


if __name__ == "__main__":
    sys.exit(main())

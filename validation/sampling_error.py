"""How far predictions from windows of the steps are from those of all steps, and whether the interval holds it.

python validation/sampling_error.py [--set chosen|held-out] [--small N] [--large N]

Draws runs of HPL at random, simulates each in full and sampled, with the same seed and all layers, and prints, for
small and large grids, the error, the standard deviation that predictions add for it (simulate/fidelity.py) and how many
errors lie within 1.96 of it. `chosen`: grids and block sizes like those by which the two constants were chosen.
`held-out`: others.
"""

import argparse
import math
import random
from typing import NamedTuple

from lepaute.platform import load_platform
from lepaute.simulate import Hpl
from lepaute.simulate.fidelity import sampling_sd
from lepaute.simulate.predicting import simulate_one


class Kind(NamedTuple):
    """Grids, block sizes and numbers of steps to draw from."""

    grids: tuple[tuple[int, int], ...]
    nbs: tuple[int, ...]
    steps: tuple[int, int]


NBS = {"chosen": (64, 96, 128, 192, 256), "held-out": (80, 112, 144, 160, 224)}
SMALL = {
    "chosen": ((1, 4), (2, 2), (4, 2), (4, 4), (2, 6), (8, 2), (6, 5), (4, 8), (8, 8), (3, 5)),
    "held-out": ((1, 6), (3, 4), (5, 4), (4, 6), (8, 4), (2, 8), (7, 7), (1, 2)),
}
LARGE = {
    "chosen": ((16, 16), (8, 16), (16, 8), (32, 16), (16, 32), (32, 32), (4, 64), (12, 20)),
    "held-out": ((10, 20), (16, 24), (20, 20), (4, 48), (24, 8), (8, 32)),
}
SEEDS = {"chosen": 2, "held-out": 5}
PLATFORMS = ("dahu", "dahu-2019-10")


def drawn(generator: random.Random, kind: Kind) -> tuple[Hpl, str]:
    """A run of HPL and the platform."""
    p, q = generator.choice(kind.grids)
    nb = generator.choice(kind.nbs)
    n = generator.randint(*kind.steps) * nb + generator.randint(0, nb - 1)
    bcast = generator.choice(["1ring", "2ring", "1ring-modified", "long", "long-modified"])
    swap = generator.choice(["binary-exchange", "spread-roll"])
    hpl = Hpl(n=n, nb=nb, p=p, q=q, depth=generator.choice([0, 1, 1]), bcast=bcast, swap=swap)
    return hpl, generator.choice(PLATFORMS)


def errors(kind: Kind, count: int, seed: int) -> list[tuple[float, float]]:
    """(logarithm of sampled over full time, its stated standard deviation) of runs that are really sampled."""
    generator, platforms = random.Random(seed), {name: load_platform(name) for name in PLATFORMS}
    found = []
    for index in range(count):
        hpl, name = drawn(generator, kind)
        full = simulate_one(hpl, platforms[name], seed=index + 1, fidelity="full")
        sampled = simulate_one(hpl, platforms[name], seed=index + 1, fidelity="sampled")
        if sampled.sampling is not None:
            found.append((math.log(sampled.time_s / full.time_s), sampling_sd([sampled])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=sorted(NBS), default="held-out")
    parser.add_argument("--small", type=int, default=200)
    parser.add_argument("--large", type=int, default=30)
    words = parser.parse_args()
    chosen = words.set
    print(f"set {chosen}\n")
    print("| ranks | runs | rms error | largest | median of the stated sd | rms of error / sd | within 1.96 sd |")
    print("|---|---|---|---|---|---|---|")
    for name, kind, count in (
        ("up to 64", Kind(SMALL[chosen], NBS[chosen], (500, 900)), words.small),
        ("128 and more", Kind(LARGE[chosen], NBS[chosen], (640, 1000)), words.large),
    ):
        found = errors(kind, count, SEEDS[chosen])
        if not found:
            continue
        scores = [error / sd for error, sd in found]
        rms = math.sqrt(sum(error**2 for error, _ in found) / len(found))
        print(
            f"| {name} | {len(found)} | {100 * rms:.2f} % | {100 * max(abs(error) for error, _ in found):.2f} % "
            f"| {100 * sorted(sd for _, sd in found)[len(found) // 2]:.2f} % "
            f"| {math.sqrt(sum(score**2 for score in scores) / len(scores)):.2f} "
            f"| {sum(abs(score) <= 1.96 for score in scores)} of {len(scores)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

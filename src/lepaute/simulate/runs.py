"""The runs of a prediction: run i is simulated with seed + i, several at a time."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lepaute.errors import InputError

DEFAULT_RUNS = 10

Result = TypeVar("Result")


def simulate_runs(
    one: Callable[[int], Result], seed: int, runs: int, progress: Callable[[int], None] | None = None
) -> list[Result]:
    """The results of `one(seed)` to `one(seed + runs - 1)`, in this order whatever the number of threads.

    one : simulates one run and does not hold the interpreter's lock meanwhile
    progress : called with the number of runs done
    Raises InputError for a number of runs or a seed that cannot be, and what `one` raises.
    """
    if runs < 1:
        raise InputError(f"runs is {runs}; at least one run is simulated")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; it is a whole number from 0 to 2^63 - 1")
    results = []
    with ThreadPoolExecutor(min(runs, os.cpu_count() or 1)) as pool:
        for result in pool.map(one, range(seed, seed + runs)):
            results.append(result)
            if progress is not None:
                progress(len(results))
    return results

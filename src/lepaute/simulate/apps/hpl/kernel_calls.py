"""Which kernel calls a run of HPL makes, without running it: a table of sizes, how often and how long."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lepaute.simulate.apps.hpl.parameters import Hpl
from lepaute.simulate.conditions import Layers
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.predicting import predict
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.table import KERNEL
from lepaute.simulate.tracing import TraceRequest

#: What is looked at: this many steps spread over the run, and ranks drawn, as long as the trace has fewer rows.
MAX_STEPS, MAX_RANKS, MAX_ROWS = 64, 64, 400_000
#: With more steps x ranks than this, windows of the steps are simulated instead of all.
MAX_FULL_STEPS_X_RANKS = 2_000_000


@dataclass(frozen=True, slots=True)
class KernelCallTable:
    """Kernel calls of all ranks of a run by kernel and size, as estimated from some of its ranks and steps.

    kernel, m, n, k : shape (sizes,), each combination once
    calls, time_s   : how often, and the seconds that they take in all on the platform that was assumed
    """

    kernel: tuple[str, ...]
    m: "NDArray[np.int64]"
    n: "NDArray[np.int64]"
    k: "NDArray[np.int64]"
    calls: "NDArray[np.float64]"
    time_s: "NDArray[np.float64]"
    steps: int
    ranks: int
    platform: str

    def sizes_of(self, kernels: tuple[str, ...]) -> list[tuple[int, int, int, float, float]]:
        """Rows (m, n, k, calls, time_s) of these kernels."""
        columns = (self.m, self.n, self.k, self.calls, self.time_s)
        rows = zip(self.kernel, *(column.tolist() for column in columns), strict=True)
        return [row for kernel, *row in rows if kernel in kernels]  # type: ignore[misc]  # five columns


def kernel_calls(hpl: Hpl, platform: "Platform | None" = None, *, seed: int = 1) -> KernelCallTable:
    """The kernel calls of a run, from a simulated one: some ranks of some steps stand for all.

    Ranks are drawn by the seed; see `_steps_meant` for the steps. Sizes hardly depend on the
    platform (only where an update is cut at a probe that finds a message), times do.

    platform : where it runs, or None for nodes like those of the shipped `dahu`, as many as it takes
    Raises InputError for a run that does not fit onto the platform.
    """
    if platform is None:
        hpl = replace(hpl, threads_per_rank=1)
        platform = load_platform("dahu")
        nodes = -(-hpl.ranks // platform.nodes.cores)
        platform = platform if nodes <= platform.nodes.count else override(platform, {"nodes.count": str(nodes)})
    rng = np.random.default_rng(seed)
    ranks = tuple(sorted(int(r) for r in rng.choice(hpl.ranks, min(hpl.ranks, MAX_RANKS), replace=False)))
    sampled = hpl.steps * hpl.ranks > MAX_FULL_STEPS_X_RANKS
    steps = tuple(int(s) for s in np.unique((np.arange(MAX_STEPS) + 0.5) * hpl.steps / MAX_STEPS))
    expected = hpl.on().trace_rows(ranks, steps if not sampled else range(0, hpl.steps, max(1, hpl.steps // 240)))
    if expected > MAX_ROWS:
        ranks = ranks[:: int(np.ceil(expected / MAX_ROWS))]
    request = TraceRequest(ranks, None if sampled else steps)
    prediction = predict(
        hpl, platform, runs=1, seed=seed, layers=Layers.only(), fidelity="sampled" if sampled else "full", trace=request
    )
    assert prediction.trace is not None
    return _table(prediction.trace, hpl, len(ranks), platform.name)


def _steps_meant(seen: "NDArray[np.int64]", steps: int) -> "NDArray[np.float64]":
    """How many steps each of those that were looked at stands for; shape of seen, which rises; the sum is `steps`.

    A stretch of successive steps stands for those that are nearer to it than to the next one, its steps in equal parts:
    at the ends of a window some calls of a step are missing, so that one alone must not stand for many.
    """
    begins = np.concatenate([[True], np.diff(seen) > 1])
    stretch = np.cumsum(begins) - 1
    first, last = seen[begins], seen[np.append(np.flatnonzero(begins)[1:] - 1, len(seen) - 1)]
    share = np.diff(np.concatenate([[-0.5], (first[1:] + last[:-1]) / 2.0, [steps - 0.5]]))
    result: NDArray[np.float64] = (share / np.bincount(stretch))[stretch]
    return result


def _table(trace: "Trace", hpl: Hpl, n_ranks: int, platform: str) -> KernelCallTable:
    calls = trace.where((trace.kind == KERNEL) & (trace.step >= 0))
    seen, position = np.unique(calls.step, return_inverse=True)
    weight = _steps_meant(seen, hpl.steps)[position] * hpl.ranks / n_ranks
    key = np.stack([calls.name.astype(np.int64), *(np.rint(v).astype(np.int64) for v in (calls.m, calls.n, calls.k))])
    sizes, which = np.unique(key, axis=1, return_inverse=True)
    which = which.reshape(-1)
    often, time_s = (
        np.bincount(which, value, minlength=sizes.shape[1]).astype(np.float64)
        for value in (weight, weight * calls.duration_s)
    )
    names = tuple(trace.names[code] for code in sizes[0])
    return KernelCallTable(names, sizes[1], sizes[2], sizes[3], often, time_s, len(seen), n_ranks, platform)

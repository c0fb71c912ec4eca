"""How long the runs of a plan take, reckoned from their designs; for announcements, and to hold the time to its bound.

The rates are those of a core of today (a virtual machine of 2025, all its cores busy); the rate of dgemm is the node's.
Cores work in parallel, so that none of this depends on their number, but for the start of processes and the messages of
a column.
"""

import math
from collections.abc import Iterable

from lepaute.measure.plan import CONTENT, CONTENTS, P2P, RING, SERIAL, STEPS, PlannedRun
from lepaute.measure.sentinel import MOST_SHARE

#: Start of a process by itself, of an mpirun, and of each of its ranks; of each process until its first call.
_PROCESS_S, _MPIRUN_S, _RANK_S = 0.05, 0.25, 0.012
#: Memory that is written for the first time, random numbers, and what is read and written: seconds a byte.
_TOUCH_S, _RANDOM_S, _COPY_S = 2.0e-10, 1.5e-10, 2.5e-10
#: Rates as shares of that of a large dgemm: of HPL's update, and of the factorisation of a panel.
_UPDATE_SHARE, _PANEL_SHARE = 0.8, 0.1
#: A pivot of a panel is agreed upon in log2 of the ranks rounds.
_ROUND_S = 3e-6
#: A call of a kernel of no size; an exchange of messages of no size with what the probe does around it.
_CALL_S, _EXCHANGE_S = 2e-6, 5e-4
#: Messages move through memory that both ranks share, to and fro: seconds a byte of the sizes in a design.
_P2P_S, _RING_S = 6e-10, 1e-9
#: Tests of send-completion semantics on one node; and what comes before the first run and after the last.
SEMANTICS_S, AROUND_S = 5.0, 6.0


def reckoned_s(runs: Iterable[PlannedRun], gflops: float) -> float:
    """Seconds that runs on one node take, one after the other; gflops: of a large dgemm on one core."""
    return sum(run_s(run, gflops) for run in runs)


def calibration_s(runs: Iterable[PlannedRun], gflops: float) -> float:
    """Seconds of the calibration of one node, undisturbed, with as many sentinels as there may be."""
    return AROUND_S + SEMANTICS_S + reckoned_s(runs, gflops) / (1.0 - MOST_SHARE)


def run_s(run: PlannedRun, gflops: float) -> float:
    """Seconds of one run."""
    rate = gflops * 1e9 * run.threads
    if run.probe in SERIAL:
        return _PROCESS_S + 0.002 * run.ranks + _dgemm_s(run, rate)
    start_s = _MPIRUN_S + _RANK_S * run.ranks
    if run.probe in (P2P, RING):
        sizes = [int(str(size)) for size in run.design.column("size_bytes")]
        byte_s = _P2P_S if run.probe == P2P else _RING_S
        return start_s + len(sizes) * _EXCHANGE_S + byte_s * sum(sizes) + 8 * _TOUCH_S * max(sizes)
    return start_s + _steps_s(run, rate)


def _dgemm_s(run: PlannedRun, rate: float) -> float:
    products = [(int(str(row[1])), int(str(row[2])), int(str(row[3]))) for row in run.design.rows]
    flops = 2.0 * sum(m * n * k for m, n, k in products)
    operands = 8.0 * max(m * n + max(m, n) * k for m, n, k in products)
    pools = max(2.0 * operands, 256 << 20) * (len(CONTENTS) if run.probe == CONTENT else 1)
    pools = min(pools, run.most_bytes or math.inf)
    return flops / rate + len(products) * _CALL_S + pools * (_TOUCH_S + _RANDOM_S)


def _steps_s(run: PlannedRun, rate: float) -> float:
    column = 1 if run.probe == STEPS else run.ranks
    rounds = math.ceil(math.log2(column)) if column > 1 else 0
    total_s, largest = 0.0, 0.0
    for row in run.design.rows:
        m, n, nb, _chunks, steps = (int(str(cell)) for cell in row[1:6])
        own = m / column
        bytes_here = 8.0 * own * n
        largest = max(largest, bytes_here)
        total_s += _RANDOM_S * bytes_here + _COPY_S * bytes_here
        for step in range(steps):
            rows, columns = max(own - step * nb / column, 0.0), n - step * nb
            total_s += 2.0 * rows * columns * nb / (rate * _UPDATE_SHARE) + nb**2 * rows / (rate * _PANEL_SHARE)
            total_s += 3 * 8.0 * _COPY_S * nb * columns + nb * (rounds * _ROUND_S + 8 * _CALL_S)
    return total_s + _TOUCH_S * largest

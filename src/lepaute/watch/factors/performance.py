"""Performance of dgemm: over all sizes, at one fixed size, and of the sentinels of a calibration.

A rate is the work of all calls over the time of all calls, as in Cornebize's thesis, section 9.2: not the mean of the
rates of calls, which is that of the small ones. It is that of one core, since calls of several cores are added up.
"""

from collections.abc import Iterator

import numpy as np

from lepaute.fit.numeric import Booleans
from lepaute.fit.observations.columns import SENTINELS, checked_table
from lepaute.stats.intervals import upper_trimmed_mean
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.dgemm_calls import DgemmCalls, dgemm_calls
from lepaute.watch.factors.value import FactorValue

RATE, RATE_AT_SIZE, SENTINEL_RATE = "dgemm_rate_flops", "dgemm_2048_rate_flops", "sentinel_rate_flops"
FIXED_SIZE = 2048


def performance(run: ArchivedRun) -> Iterator[FactorValue]:
    """The rates of each processor; what was not measured has none."""
    for calls in dgemm_calls(run):
        yield _rate(calls, RATE, np.ones(len(calls), np.bool_))
        fixed = (calls.m == FIXED_SIZE) & (calls.n == FIXED_SIZE) & (calls.k == FIXED_SIZE)
        if fixed.any():
            yield _rate(calls, RATE_AT_SIZE, fixed)
    yield from _sentinels(run)


def _rate(calls: DgemmCalls, factor: str, mask: Booleans) -> FactorValue:
    time_s = float(calls.duration_s[mask].sum())
    rate = float(calls.flop[mask].sum()) / time_s if time_s > 0 else np.nan
    return FactorValue(calls.node, factor, rate, calls.cpu, calls.conditions)


def _sentinels(run: ArchivedRun) -> Iterator[FactorValue]:
    """The fixed dgemm that a calibration repeats on all cores: mean over its sentinels and the cores of a processor.

    Those that other load disturbed are left out where at least half of a node's were not, as in fits.
    """
    if not run.is_calibration or SENTINELS not in run.archive.members():
        return
    table = checked_table(run.archive, SENTINELS)
    nodes = run.nodes_of(table)
    if nodes is None or len(table) == 0:
        return
    table = table.assign(node=nodes, net_s=(table["duration_s"] - table["clock_cost_s"]).clip(lower=1e-9))
    for node, rows in table.groupby("node", sort=True):
        order = rows.groupby("order")["disturbed"].first().astype(bool)
        kept = order[~order].index if 2 * int((~order).sum()) >= len(order) else order.index
        rows = rows[rows["order"].isin(kept)]  # noqa: PLW2901
        threads = rows["pu"] if "pu" in rows else rows["cpu"]
        socket = threads.map({thread: run.cpu_of(str(node), int(thread)) for thread in threads.unique()})
        size = [int(rows[letter].iloc[0]) for letter in "mnk"]
        conditions = {**run.blas(str(node)), "size of the sentinel": " x ".join(map(str, size))}
        for cpu, mine in rows.groupby(socket, sort=True):
            level = mine.groupby(["order", "cpu"])["net_s"].agg(lambda seconds: upper_trimmed_mean(seconds.tolist()))
            rate = 2.0 * float(np.prod(np.array(size, np.float64))) / float(level.mean())
            yield FactorValue(str(node), SENTINEL_RATE, rate, int(cpu), conditions)

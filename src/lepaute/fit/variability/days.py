"""What differs between the blocks of a campaign, which stand for days: fresh processes, other pages, other clocks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.observations.calls import Calls


@dataclass(frozen=True, slots=True)
class BlockEffects:
    """Relative effect of each block on kernel durations.

    effect             : log(measured / model) of each process, centred, shape (blocks, processes of a block); a process
                         is a core in one of the probes; NaN where not seen
    common_relative_sd : between blocks, for all processes alike
    cpu_relative_sd    : between the processes inside a block
    degrees_of_freedom : blocks - 1, at least 1: these deviations are themselves known only from so few blocks
    """

    blocks: tuple[int, ...]
    cpus: tuple[int, ...]
    effect: Floats
    common_relative_sd: float
    cpu_relative_sd: float
    degrees_of_freedom: int

    def of_block(self, block: int) -> float:
        """Factor on durations in a block, over all processes; 1 for a block that is not known."""
        if block not in self.blocks:
            return 1.0
        row = self.effect[self.blocks.index(block)]
        seen = row[np.isfinite(row)]
        return float(np.exp(seen.mean())) if len(seen) else 1.0


def block_effects(pairs: Sequence[tuple[Calls, FittedKernel]]) -> BlockEffects | None:
    """Compares blocks by the time of all kernels as HPL calls them; None with fewer than two blocks.

    The ratio of a process is sum(measured) / sum(model) over its calls inside steps of HPL, first steps left out, so
    that kernels weigh as in the application. Each core and probe is first set to ratio 1 over all blocks: what differs
    between them lastingly is no effect of a block. The processes of a block are not averaged: a run of the application
    is one fresh process a core, with the pages and the state of the machine that it happens to get. With one process a
    block, all variance is common.
    """
    measured, predicted, cpus, blocks = _sums(pairs)
    if len(blocks) < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        lasting = measured.sum(axis=0) / predicted.sum(axis=0)  # of each (cpu, probe)
        effect = np.log(measured / (predicted * lasting[None])).reshape(len(blocks), -1)
    effect = np.where(np.isfinite(effect), effect, np.nan)
    effect = effect[:, np.isfinite(effect).any(axis=0)]
    effect = effect - np.nanmean(effect, axis=0, keepdims=True)
    common, between_processes = _two_layers(effect)
    return BlockEffects(blocks, cpus, effect, common, between_processes, max(len(blocks) - 1, 1))


def _sums(pairs: Sequence[tuple[Calls, FittedKernel]]) -> tuple[Floats, Floats, tuple[int, ...], tuple[int, ...]]:
    """Measured and predicted seconds by block, cpu and probe."""
    chosen = [(calls.where(calls.in_context & ~calls.cold), kernel) for calls, kernel in pairs]
    chosen = [(calls, kernel) for calls, kernel in chosen if len(calls)]
    cpus = tuple(int(cpu) for cpu in np.unique(_joined([calls.cpu for calls, _ in chosen])))
    blocks = tuple(int(block) for block in np.unique(_joined([calls.block for calls, _ in chosen])))
    probes = max((len(calls.probes) for calls, _ in chosen), default=0)
    shape = (len(blocks), len(cpus), probes)
    measured, predicted = np.zeros(shape), np.zeros(shape)
    for calls, kernel in chosen:
        at = (np.searchsorted(blocks, calls.block), np.searchsorted(cpus, calls.cpu), calls.probe)
        flat = np.ravel_multi_index(at, shape)
        measured += np.bincount(flat, weights=calls.duration_s, minlength=measured.size).reshape(shape)
        predicted += np.bincount(flat, weights=kernel.predict(calls), minlength=predicted.size).reshape(shape)
    return measured, predicted, cpus, blocks


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _two_layers(effect: Floats) -> tuple[float, float]:
    """Standard deviations of the block effect and of the effect of a process in it, by analysis of variance."""
    processes = effect.shape[1]
    complete = effect[np.all(np.isfinite(effect), axis=1)]
    if processes < 2 or len(complete) < 2:
        means = np.nanmean(effect, axis=1)
        return float(np.std(means[np.isfinite(means)], ddof=1)), 0.0
    means = complete.mean(axis=1)
    residual = complete - means[:, None]  # processes are centred already
    degrees = (len(complete) - 1) * (processes - 1)
    within = float(np.sum(residual**2)) / degrees
    between = processes * float(np.sum((means - means.mean()) ** 2)) / (len(complete) - 1)
    return float(np.sqrt(max(0.0, (between - within) / processes))), float(np.sqrt(within))

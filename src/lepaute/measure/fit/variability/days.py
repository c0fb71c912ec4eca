"""What differs between the blocks of a campaign, which stand for days, and between the processes in them.

Fresh processes have other pages and other clocks. The ranks of one mpirun have much of that in common: they run at the
same time, on the same machine. So a process has three effects: that of its block, of its launch, and its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.errors import FitError, LepauteError
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import class_boundaries, judged, relative_error, size_classes
from lepaute.measure.fit.kernels.polynomial import ProcessEffects
from lepaute.measure.fit.numeric import Floats, Integers
from lepaute.measure.fit.observations.calls import Calls, numbered
from lepaute.simulate.platform.schema import Days, Drift, Wandering
from lepaute.stats.covariances import NestedEffects, nested_effects
from lepaute.stats.time_scale import LastingEffect, TimeScale

#: Steps whose options of HPL are others in each block: what they take there tells of the options, not of the block.
OTHER_OPTIONS = "hpl_steps_options"


@dataclass(frozen=True, slots=True)
class BlockEffects:
    """Relative effects of blocks, launches and processes on kernel durations.

    effect : log(measured / model) of each process, centred, shape (processes,): a core in a launch of a probe
    block  : of each process, shape (processes,)
    sd     : standard deviations of the three effects, with the degrees of freedom that each rests on
    """

    effect: Floats
    block: Integers
    sd: NestedEffects

    @property
    def blocks(self) -> int:
        return len(np.unique(self.block))

    def of_block(self, block: int) -> float:
        """Factor on durations in a block, over all processes; 1 for a block that is not known."""
        mine = self.block == block
        return float(np.exp(np.mean(self.effect[mine]))) if mine.any() else 1.0


def block_effects(pairs: Sequence[tuple[Calls, FittedKernel]]) -> BlockEffects | None:
    """Compares processes by the time of all kernels as HPL calls them; None with fewer than two blocks.

    The ratio of a process is sum(measured) / sum(model) over its calls inside steps of HPL, first steps left out, so
    that kernels weigh as in the application. Each core and probe is first set to ratio 1 over all blocks: what differs
    between them lastingly is no effect of a block, nor is what other options of HPL cost. The processes of a block are
    not averaged: a run of the application is one fresh process a core, with the pages and the state of the machine that
    it happens to get, all of one launch. A process counts by its time, as the model has it: an interruption of a tenth
    of a second moves a short process more than a long one, and most time of HPL is in long ones. What the scatter of
    single calls about the level of their process adds to a sum is no effect of the process: a simulation draws it call
    by call, and that of interrupted calls as the wandering of a core.
    """
    chosen = []
    for calls, kernel in pairs:
        other_options = np.array([name == OTHER_OPTIONS for name in calls.probes], dtype=np.bool_)[calls.probe]
        counted = calls.where(calls.in_context & ~calls.cold & ~other_options)
        if len(counted):
            chosen.append((counted, kernel))
    if not chosen:
        return None
    every = [calls for calls, _ in chosen]
    block, cpu, probe = (np.concatenate([getattr(of, name) for of in every]) for name in ("block", "cpu", "probe"))
    # -1 if launches are not known: each process is then one.
    launch = np.concatenate([np.full(len(one), -1) if one.launch is None else one.launch for one in every])
    measured = np.concatenate([calls.duration_s for calls, _ in chosen])
    predicted = np.concatenate([kernel.predict(calls) for calls, kernel in chosen])
    kind = numbered([cpu, probe])
    process = numbered([block, launch, kind])
    _, first = np.unique(process, return_index=True)
    block, launch, kind = block[first], numbered([block, launch, np.where(launch < 0, kind, 0)])[first], kind[first]
    single, of_model = measured, predicted
    measured, predicted = np.bincount(process, single), np.bincount(process, of_model)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.log(measured / (predicted * (np.bincount(kind, measured) / np.bincount(kind, predicted))[kind]))
    seen = np.isfinite(effect)
    block, launch, kind, effect = block[seen], launch[seen], kind[seen], effect[seen]
    if len(np.unique(block)) < 2:
        return None
    time_s: Floats = predicted[seen].astype(np.float64)
    effect = effect - (np.bincount(kind, time_s * effect) / np.maximum(np.bincount(kind, time_s), 1e-300))[kind]
    # As measured: interrupted calls scatter more than the model's noise, which holds the effects of processes as well.
    level = np.divide(measured, predicted, out=np.ones_like(measured), where=predicted > 0)[process]
    scatter = np.bincount(process, (single - level * of_model) ** 2)[seen] / measured[seen] ** 2
    try:
        return BlockEffects(effect, block, nested_effects(effect, block, launch, kind, scatter, time_s))
    except LepauteError:
        raise
    except ValueError:  # each core and probe was seen in one block only
        return None


def days_of(effects: BlockEffects, scale: TimeScale | None, drift: Drift | None) -> Days:
    """Effects that last for a run. If too few steps tell that from wandering, the effects of processes stand for it."""
    if scale is None:
        sd = effects.sd
        block, launch, process = (
            LastingEffect(relative_sd, degrees_of_freedom)
            for relative_sd, degrees_of_freedom in (
                (sd.block_sd, sd.block_degrees_of_freedom),
                (sd.launch_sd, sd.launch_degrees_of_freedom),
                (sd.process_sd, sd.process_degrees_of_freedom),
            )
        )
    else:
        block, launch, process = scale.block, scale.launch, scale.process
    return Days(
        common_relative_sd=block.relative_sd,
        run_relative_sd=launch.relative_sd,
        cpu_relative_sd=process.relative_sd,
        degrees_of_freedom=block.degrees_of_freedom,
        run_degrees_of_freedom=launch.degrees_of_freedom,
        cpu_degrees_of_freedom=process.degrees_of_freedom,
        source=f"spread between {effects.blocks} blocks of fresh processes",
        drift=drift,
    )


def wandering_of(scale: TimeScale) -> Wandering:
    """Effects that do not last for a run."""
    return Wandering(
        relative_sd=scale.relative_sd,
        relative_sd_error=scale.relative_sd_error,
        correlation_s=scale.correlation_s,
        correlation_error=scale.correlation_error,
    )


def process_effects(effects: BlockEffects) -> ProcessEffects:
    sd = effects.sd
    return ProcessEffects(sd.block_sd, float(np.hypot(sd.launch_sd, sd.process_sd)), sd.block_degrees_of_freedom)


def variance_of_processes(calls: Calls, predicted: Floats, effects: BlockEffects | None) -> float:
    """Variance that the effects of processes and launches give to sum(measured) / sum(predicted) of these calls."""
    total = float(np.sum(predicted))
    if effects is None or total <= 0.0:
        return 0.0
    process = numbered([calls.cpu] if calls.launch is None else [calls.cpu, calls.launch])
    launch = process if calls.launch is None else numbered([calls.launch, np.where(calls.launch < 0, calls.cpu, 0)])
    of_process, of_launch = (float(np.sum(np.bincount(code, predicted) ** 2)) for code in (process, launch))
    return (effects.sd.process_sd**2 * of_process + effects.sd.launch_sd**2 * of_launch) / total**2


def discrepancies(
    kernels: Sequence[tuple[Calls, FittedKernel]], effects: BlockEffects | None, machine_excess: float = 0.0
) -> list[float]:
    """That of each kernel; one that was called in a single block, of which none can be left out, has the median of the
    others: options of HPL that few runs of a calibration have are no better known than the rest."""
    known = [
        discrepancy_relative_sd(calls, kernel, effects, machine_excess) if len(np.unique(calls.block)) > 1 else None
        for calls, kernel in kernels
    ]
    median = float(np.median([value for value in known if value is not None] or [0.0]))
    return [median if value is None else value for value in known]


def discrepancy_relative_sd(
    calls: Calls, kernel: FittedKernel, effects: BlockEffects | None, machine_excess: float = 0.0
) -> float:
    """Relative standard deviation of the model's error, from fits that leave one block out.

    The held-out calls inside steps of HPL (all calls, where there are none) are put into classes by probe, that is by
    what the neighbouring cores do meanwhile, and by size, quartiles of the product of the parameters; the error of a
    class in a block is sum(measured) / sum(predicted) - 1, after the effect that the block has on all kernels, which is
    another layer, is divided out. The result is the root mean square of the errors weighted by time, less what the
    scatter of calls and the effects of processes and launches of the class explain, or layers. 0 with one block.

    machine_excess : time lost to interruptions over time not lost, of all kernels; see `polynomial.machine_excess`
    """
    regions = tuple(piece.region for piece in kernel.pieces)
    boundaries = class_boundaries(calls)
    errors, variances, weights = [], [], []
    for block in np.unique(calls.block):
        held = judged(calls.where(calls.block == block))
        others = calls.where(calls.block != block)
        if len(held) == 0 or len(others) == 0:
            continue
        try:
            fitted = fit_kernel(others, regions, kernel.form).settled(machine_excess)
        except FitError:
            continue
        predicted, deviation = fitted.predict(held), fitted.deviation(held)
        factor = effects.of_block(int(block)) if effects is not None else 1.0
        masks = [m & (held.probe == p) for m in size_classes(held, boundaries) for p in np.unique(held.probe)]
        for mask in (each for each in masks if each.any()):
            error, variance, time_s = relative_error(held.duration_s[mask] / factor, predicted[mask])
            if time_s > 0:
                errors.append(error)
                # Of one or two calls in a class, residuals about its own mean know next to nothing.
                variance = max(variance, float(np.sum(deviation[mask] ** 2)) / time_s**2)
                variances.append(variance + variance_of_processes(held.where(mask), predicted[mask], effects))
                weights.append(time_s)
    if not weights:
        return 0.0
    return float(np.sqrt(max(0.0, float(np.average(np.array(errors) ** 2 - np.array(variances), weights=weights)))))

"""From the simulated runs of an application to its prediction: rates, energy, slow state, trust, warnings."""

import resource
from collections import Counter
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.engine import SimulatedRun, Simulator
from lepaute.simulate.machine.population import on_its_day
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.hosting_nodes import energy_j
from lepaute.simulate.prediction.parts import parts_of, sampling_sd, sampling_warnings
from lepaute.simulate.prediction.prediction import Prediction, Run, SimulationFigures
from lepaute.simulate.prediction.request import PredictionRequest
from lepaute.simulate.prediction.trust import OutsideRanges, outside_ranges, trust_of
from lepaute.simulate.prediction.warnings import warnings_of_run
from lepaute.stats.control_variates import Controls
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.simulate.slow_state import SlowNodes

USUAL_MAPPING = {"mapping": "sequential"}


def prediction_of(
    application: Application,
    conditions: Conditions,
    simulator: Simulator,
    runs: Sequence[SimulatedRun],
    runs_of_parts: MappingOf[str, Sequence[SimulatedRun]] | None = None,
    extrapolation_sd: float | None = None,
    further_warnings: Sequence[str] = (),
    controls: Controls | None = None,
    request: PredictionRequest | None = None,
) -> Prediction:
    """The prediction that the runs of one application make together; runs_of_parts : that draw one layer alone each.

    extrapolation_sd : relative standard deviation of the time by errors of extrapolated kernels; None: not known
    """
    platform, first = conditions.platform, runs[0]
    if first.time_s <= 0.0:
        raise InputError(f"{application.title}: a run takes no time: its ranks compute nothing and move no message")
    place = (platform, application.ranks, application.threads_per_rank)
    cores = conditions.mapping.cores(*place)
    ranks_on_node = Counter(core // platform.nodes.cores for core in cores)
    outside = outside_of(application, first, conditions)
    trust = trust_of(outside, extrapolation_sd)
    mapping = conditions.mapping.to_dict(*place)
    slow = slow_nodes(platform, ranks_on_node, application.threads_per_rank)

    def run_of(run: SimulatedRun) -> Run:
        factor = 1.0 if conditions.transfer is None else conditions.transfer.factor(run.seed, application)
        undisturbed = scaled(run, factor)
        if slow is None or conditions.state != "any":
            return undisturbed
        slowed_s = slow.slowed_s(undisturbed.time_s, run.seed, conditions.run_seed(run.seed))
        return replace(scaled(run, factor * (slowed_s / undisturbed.time_s)), undisturbed=undisturbed)

    def scaled(run: SimulatedRun, factor: float) -> Run:
        time_s, energy = run.time_s * factor, None
        if simulator.tells_energy:
            energy = energy_j(platform, run, cores, application.threads_per_rank, factor=factor)
        rate = None if application.rate is None else application.rate.of(application, time_s)
        details = {name: getattr(run.emulated, name) for name in application.about.run_details}
        return Run(run.seed, time_s, rate, energy, details)

    return Prediction(
        application=application,
        platform_name=platform.name,
        platform_sha256=conditions.platform_sha256,
        seed=first.seed,
        run_list=tuple(map(run_of, runs)),
        fidelity=simulator.fidelity(first),
        warnings=(
            *warnings_of_run(application, platform, first, max(ranks_on_node.values())),
            *(conditions.lag.warnings if conditions.lag is not None and application.on().kernels.modelled else []),
            *simulator.warnings(first),
            *sampling_warnings(runs),
            *trust.warnings,
            *further_warnings,
            *(
                ["the platform has no slow state: any run is an undisturbed one"]
                * (conditions.state == "any" and not slow)
            ),
        ),
        simulation=figures_of(runs),
        settings=dict(conditions.settings),
        version=__version__,
        mapping={} if mapping == USUAL_MAPPING and not application.about.names_mapping else mapping,
        nodes=len(ranks_on_node),
        sampling_sd=sampling_sd(runs),
        outside=outside,
        trust=trust,
        parts=None
        if runs_of_parts is None
        else parts_of(application, conditions, simulator, runs_of_parts, sampling_sd(runs)),
        controls=controls,
        first=first,
        conditions=conditions,
        slow=slow,
        request=request,
    )


def slow_nodes(platform: Platform, ranks_on_node: MappingOf[int, int], threads: int) -> "SlowNodes | None":
    """The nodes on which enough cores compute for the slow state; None if the platform has none."""
    if (state := platform.slow_state) is None:
        return None
    from lepaute.simulate.slow_state import SlowNodes

    count = sum(ranks * threads >= (state.least_busy_cores or 1) for ranks in ranks_on_node.values())
    errors = (state.share_error / (1.0 - state.share), state.length_error, state.factor_error)
    return SlowNodes(count, state.share, state.length_s, state.factor, state.factor_relative_sd, errors)


def outside_of(application: Application, run: SimulatedRun, conditions: Conditions) -> OutsideRanges:
    """Use of a run outside of the fitted ranges; models that were drawn anew for it have none."""
    platform = conditions.platform
    return outside_ranges(
        run.kernels,
        on_its_day(platform, run.seed, days=conditions.layers.days) if application.on().kernels.modelled else platform,
        run.computing_s,
        messages=run.message_use,
        messages_s=run.messages_s,
        moving_s=run.moving * application.ranks * run.whole_s,
    )


def figures_of(runs: Sequence[SimulatedRun]) -> SimulationFigures:
    emulated = [run.emulated for run in runs if run.emulated is not None]
    own_peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return SimulationFigures(
        wall_s=max(run.ended_s for run in runs) - min(run.began_s for run in runs),
        peak_rss_bytes=max((run.peak_rss_bytes for run in emulated), default=own_peak_bytes),
        engine_bytes=max(run.engine_bytes for run in runs),
        messages=runs[0].messages,
        cpu_s=sum(run.cpu_s for run in emulated) if emulated else None,
        folded_bytes=emulated[0].folded_bytes if emulated else None,
    )

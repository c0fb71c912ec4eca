"""What a reader of a prediction must know: what was not modelled, extrapolated or clipped."""

from math import fsum
from typing import TYPE_CHECKING

from lepaute.kit.text import Alike, counted, one_for_all, quantity, significant
from lepaute.simulate.conditions import layers_of
from lepaute.simulate.platform.kernel_model import LIKENED, ROW_KERNELS, mean_s
from lepaute.simulate.platform.plausibility import assumed_values, implausible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from lepaute.simulate.application import Application
    from lepaute.simulate.engine import KernelUse, SimulatedRun
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.prediction.prediction import Prediction

CLIPPED_SHARE = 0.1  # of a kernel's calls; above it, the kernel as a whole costs too little
#: Kernels modelled by us and no part of the application: a platform without them lacks nothing.
GLUE = frozenset({"pdfact_glue", "pdupdate_glue", "first_touch"})
SMALL_SHARE = 0.005  # of a kernel's time that is extrapolated, or of a run without a model; less is worth no sentence
#: Beginnings of fields that segments of messages may overrule, and what to turn in their place.
_OVERRULED = ("network.node_link.", "network.switch", "topology.")
_KNOBS = {"bandwidth_Bps": "scale.bandwidth", "latency_s": "scale.latency"}


#: Where block sizes are compared, and a prediction guesses_block_size().
BLOCK_SIZES_GUESSED = (
    "block sizes are compared by a model of dgemm without fitted ranges: how it depends on NB on this machine is "
    "not known, so that their order may be another one; a calibration at these sizes tells"
)


def caveats(predictions: "Sequence[Prediction]") -> list[str]:
    """Caveats of several predictions: all warnings, alike ones once with a count, and that of comparing."""
    sizes = {getattr(prediction.application, "nb", None) for prediction in predictions}
    guessed = [BLOCK_SIZES_GUESSED] if len(sizes) > 1 and any(map(guesses_block_size, predictions)) else []
    return [joint.line(len(predictions)) for joint in alike_warnings(predictions)] + guessed


def joined(warnings: "Sequence[Sequence[str]]", names: "Collection[str]" = ()) -> list[str]:
    """The warnings of several predictions, those that differ in numbers or kernels alone as one with its count."""
    return [joint.line(len(warnings)) for joint in _alike([text for texts in warnings for text in texts], names)]


def alike_warnings(predictions: "Sequence[Prediction]") -> list[Alike]:
    """The warnings of all, those that differ in numbers or kernels alone as one."""
    texts = [warning for prediction in predictions for warning in prediction.warnings]
    return _alike(texts, {name for prediction in predictions for name in prediction.kernel_time_s})


def _alike(texts: "Sequence[str]", names: "Collection[str]") -> list[Alike]:
    from lepaute import _core

    return one_for_all(texts, [*_core.kernel_names(), *names])


def guesses_block_size(prediction: "Prediction") -> bool:
    """Whether its dgemm is one of which nobody says at which sizes it was measured: more of computing has no fitted
    ranges than all other kernels take."""
    if prediction.outside is None or prediction.first is None:
        return False
    others_s = fsum(time_s for name, time_s in prediction.kernel_time_s.items() if name not in ("dgemm", "dgemm_nn"))
    return prediction.outside.unknown_share > others_s / max(prediction.first.computing_s, 1e-300) + 0.01


def warnings_of_run(
    application: "Application", platform: "Platform", run: "SimulatedRun", most_ranks_on_a_node: int
) -> list[str]:
    """Sentences about the application, and the layers, kernels and links of the platform that one of its runs used."""
    behaviour = application.on(platform)
    warnings = []
    if exact := ", ".join(behaviour.kernels.exact):
        warnings.append(
            f"the cost of {exact} is the one that was given, exactly: the interval does not cover an error in it"
        )
    warnings += behaviour.warnings(run)
    if not application.about.core:  # its routines are told of already
        return warnings
    if not set(layers_of(platform, application)) & {"days", "discrepancy"}:
        warnings.append("the interval covers call noise only: the platform has neither a day nor a discrepancy layer")
    warnings += assumed_values(platform)  # where the width of the interval comes from
    warnings += [f"the platform has a value that no machine has: {sentence}" for sentence in implausible(platform)]
    free = {name for name, use in run.kernels.items() if _is_small(name, use, application, platform, run.time_s)}
    free |= GLUE | {*behaviour.kernels.extrapolated}  # of these the application has said it
    warnings += kernel_warnings({name: use for name, use in run.kernels.items() if name not in free}, platform)
    if application.ranks > most_ranks_on_a_node:
        warnings += _link_warnings(platform)
    network = platform.network
    full = most_ranks_on_a_node * application.threads_per_rank >= platform.nodes.cores and most_ranks_on_a_node > 1
    if full and behaviour.kernels.probing and not (network.loopback_busy or network.remote.busy):
        warnings.append(
            f"{most_ranks_on_a_node} ranks fill a node and compute between probes for messages, which may slow these: "
            f"{platform.name} has no network.*.busy; `lepaute fit` adds it from a calibration's ring"
        )
    return warnings


def _is_small(name: str, use: "KernelUse", application: "Application", platform: "Platform", run_s: float) -> bool:
    """Whether calls without a model, of rows as long as a block, take less than SMALL_SHARE of the run if each is as
    long as one of a kernel that touches memory as it does, and all of them, over all ranks, are one after the other."""
    like, size = platform.kernel(LIKENED.get(name, "")), getattr(application, "nb", None)
    if not use.unmodelled_calls or like is None or size is None or name not in ROW_KERNELS:
        return False
    return use.unmodelled_calls * mean_s(like, 1.0, size, 1.0) < SMALL_SHARE * run_s


def kernel_warnings(kernels: "Mapping[str, KernelUse]", platform: "Platform") -> list[str]:
    """Kernels without a model, outside the ranges of theirs, or with durations below zero."""
    warnings = []
    unknown = sorted((name, use.unmodelled_calls) for name, use in kernels.items() if use.unmodelled_calls)
    if unknown:
        of = f"{unknown[0][0]} is" if len(unknown) == 1 else f"{counted(len(unknown), 'kernel')} are"
        calls = ", ".join(f"{name} ({number} calls)" for name, number in unknown)
        warnings.append(f"{of} not modelled by the platform, so taken to cost nothing: {calls}")
    total_s = fsum(use.time_s for use in kernels.values())
    for name, use in kernels.items():
        if use.extrapolated_time_s > max(SMALL_SHARE * use.time_s, SMALL_SHARE * 0.1 * total_s):
            warnings.append(use.extrapolated(name, platform))
        share = use.clipped_means / use.calls if use.calls else 0.0
        if use.clipped_means > 0.01 * use.calls:
            counts = f"{use.clipped_means} of {use.calls} durations of {name} were below zero and taken as zero"
            if share > CLIPPED_SHARE:
                costs = "next to nothing" if share > 0.5 else "too little"
                counts = (
                    f"{name} costs {costs} in this prediction, which is that much too short: {counts}, "
                    f"{significant(100.0 * share)} % of its calls; the model does not fit them. "
                    "Calibrate again, without --quick, or with these sizes"
                )
            warnings.append(counts)
    return warnings


def _link_warnings(platform: "Platform") -> list[str]:
    """A link of the nodes that is slower than the messages that were fitted: alone, they keep their fitted time."""
    link_Bps = platform.network.node_link.bandwidth_Bps
    fitted_Bps = platform.network.remote.segments[-1].bandwidth_Bps
    if fitted_Bps <= 1.01 * link_Bps:
        return []
    return [
        f"node_link has {quantity(link_Bps / 1e9, 'GB/s')}, long messages were fitted at "
        f"{quantity(fitted_Bps / 1e9, 'GB/s')} and keep that: the link "
        "limits nothing; for a slower network change network.remote.segments as well"
    ]


def idle_settings(
    settings: "Mapping[str, str]", times_s: "Sequence[float]", time_without: "Callable[[int, Mapping[str, str]], float]"
) -> tuple[str, ...]:
    """A sentence for each of the settings without which every application takes as long, to the last digit.

    times_s     : of the first run of each application, with all settings
    time_without: of the same run of an application, by its place, with these settings alone
    """
    lines = []
    for field in settings:
        if field.startswith("slow_state"):  # of any run
            continue
        others = {name: value for name, value in settings.items() if name != field}
        if all(time_without(at, others) == time_s for at, time_s in enumerate(times_s)):
            lines.append(f"the setting {field}={settings[field]} changes no time of this run{_instead(field)}")
    return tuple(lines)


def _instead(field: str) -> str:
    knob = _KNOBS.get(field.rpartition(".")[2])
    if knob is None or not field.startswith(_OVERRULED):
        return ""
    return f"; where the segments of messages decide, {knob}=FACTOR turns them and the links"

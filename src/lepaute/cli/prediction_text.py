"""All there is to say of predictions and emulations: what `--details` prints below the answer (`prediction_answer`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.kit.text import counted, quantity, ranks_text, significant
from lepaute.simulate import Prediction, Spread
from lepaute.simulate.application import GFLOPS
from lepaute.simulate.prediction.hosting_nodes import total_of_ranks
from lepaute.simulate.prediction.sweep import Effect, Parameter, ScalingPoint, Sweep, effects
from lepaute.simulate.prediction.warnings import caveats

if TYPE_CHECKING:
    from lepaute.simulate.smpi.emulated_run import EmulatedRun

#: What the parts of an interval are called; others have their own names.
PART_LABELS = {"discrepancy": "kernel models", "own_code": "own code", "transfer": "other studies"}
MIN_PART = 0.05  # per cent of the mean: what is named
COMMUNICATION = (
    ("late", "waiting for the other side"),
    ("transfer", "transfers"),
    ("contention", "contention"),
    ("overhead", "overhead of calls"),
    ("probe", "probes"),
    ("other", "the end"),
)
MIN_SHARE = 0.0005  # of what is named
#: The kernel that is the code of a recorded program (simulate.trace.table, which loads NumPy).
OWN_CODE = "computing"
#: Predictions that are not comparable, routines and values of a parameter that are listed.
_MAX_LISTED, MAX_ROUTINES, _MAX_VALUES, MAX_KERNELS = 8, 6, 8, 4


def readable(prediction: "Prediction") -> str:
    """One prediction: interval, share of peak, memory, where the time goes, warnings."""
    application, time_s, rate = prediction.application, prediction.time_s, prediction.rate
    lines = [
        f"{application.title}  {application.label} ranks on {prediction.platform_name}",
        f"  time    {_interval(time_s, 's')}",
    ]
    if rate is not None and application.rate is not None:
        lines.append(f"  rate    {_interval(rate, application.rate.unit)}")
    lines += _parts_line(prediction)
    if rate is not None and (peak := peak_gflops(prediction)) is not None:
        lines.append(f"  peak    {rate.text('%', 100.0 / peak)} of {quantity(peak, 'Gflop/s')}")
    lines += _memory_line(prediction)
    if (energy_j := prediction.energy_j) is not None:
        lines.append(f"  energy  {_interval(energy_j, 'J')}; {quantity(energy_j.mean / time_s.mean, 'W')} on average")
    shares = shares_of_time(prediction, MAX_KERNELS)
    lines += [f"{begin}   {text}" for begin, text in zip(("  where", "       "), shares, strict=False)]
    if prediction.outside is not None:
        lines.append(f"  ranges  {prediction.outside.text()}")
    runs, figures = len(prediction.run_list), prediction.simulation
    simulated = f"{counted(runs, 'simulated run')}, {counted(figures.messages, 'message')} each"
    lines.append(f"  from    {simulated}, in {figures.wall_s:.2f} s{_basis(prediction)}")
    return "\n".join([*lines, *_conditions_and_warnings(prediction)])


def _basis(prediction: "Prediction") -> str:
    return "" if prediction.interval_basis is None else f"; the interval: {prediction.interval_basis}"


def readable_emulation(prediction: "Prediction") -> str:
    """Simulated time of a program, where it went, what had no model, what the simulation took."""
    from lepaute.simulate import Program
    from lepaute.simulate.smpi.emulated_run import MIN_SHARE as LEAST_SHARE

    program, run, figures = prediction.application, prediction.first, prediction.simulation
    assert isinstance(program, Program)
    assert run is not None
    assert run.emulated is not None
    first = run.emulated
    lines = [
        f"{program.name}  {ranks_text(program.ranks)} on {prediction.platform_name}",
        f"  time       {_interval(prediction.time_s, 's')}",
    ]
    if first.program_s != first.time_s:
        lines.append(f"  program    {significant(first.program_s, 4)} s in all")
    lines.append(f"  computing  {computing_of(first)}")
    if first.slowdowns is not None and first.slowdowns.memory_share is not None and first.own_share > LEAST_SHARE:
        lines.append(f"  memory     {100.0 * first.slowdowns.memory_share:.0f} % of the program's own waits for memory")
    uses = sorted((first.fallback | first.kernels).items(), key=lambda item: -item[1].time_s)[:MAX_ROUTINES]
    lines += [f"    {name:<12} {use.calls:>10} calls {significant(use.time_s, 4):>12} s" for name, use in uses]
    if prediction.outside is not None:
        lines.append(f"  ranges     {prediction.outside.text()}")
    folded = f", {significant(first.folded_bytes / 1e9)} GB folded" if first.folded else ""
    runs = f"{counted(len(prediction.run_list), 'simulated run')}, {first.messages} point-to-point messages each"
    took = f"in {figures.wall_s:.2f} s and {figures.peak_rss_bytes / 1e6:.0f} MB{folded}"
    lines.append(f"  from       {runs}, {took}{_basis(prediction)}")
    return "\n".join([*lines, *_conditions_and_warnings(prediction)])


def computing_of(emulated: "EmulatedRun") -> str:
    computing = f"{significant(emulated.computing_s, 4)} s over all ranks"
    if emulated.own.charged_s > 0.0:
        computing += f", {100.0 * emulated.own_share:.0f} % of it the program's own, timed here"
    return f"{computing}; {significant(100.0 * emulated.unmodelled_share, 2)} % of it without a model"


def _parts_line(prediction: "Prediction") -> list[str]:
    """What the half-width is made of, the largest part first; or how to learn it."""
    half_width, parts = prediction.undisturbed_time_s.half_width_percent, prediction.parts
    if half_width is None or (parts is None and prediction.fidelity == "smpi"):  # emulate has no such option
        return []
    if parts is None:
        return [f"  ±       --parts tells what the {significant(half_width, 2)} % are made of"]
    widths = parts.half_widths(half_width)
    named = [f"{PART_LABELS.get(name, name)} {width:.1f}" for name, width in widths.items() if width >= MIN_PART]
    return [f"  ±       {significant(half_width, 2)} %: {', '.join(named)}"] if named else []


def peak_gflops(prediction: "Prediction") -> float | None:
    """Of the cores that the ranks compute on; None where it is not known, or the application counts no operations."""
    peak = None if prediction.application.rate != GFLOPS else total_of_ranks(prediction, "peak_flops_per_core")
    return peak and peak * prediction.application.threads_per_rank / 1e9


def _memory_line(prediction: "Prediction") -> list[str]:
    """Memory needed, where that is known, and that of the nodes which hold ranks."""
    nodes, needed_bytes = prediction.nodes, prediction.application.memory_bytes
    if needed_bytes is None:
        return []
    needed = f"{quantity(needed_bytes / 1e9, 'GB')} needed"
    there_bytes = total_of_ranks(prediction, "memory_bytes", once=True)
    if not there_bytes:
        return [f"  memory  {needed} on {counted(nodes, 'node')}"]
    share = f"{significant(100.0 * needed_bytes / there_bytes, 2)} %" if needed_bytes < there_bytes else "too much"
    return [f"  memory  {needed} of {quantity(there_bytes / 1e9, 'GB')} on {counted(nodes, 'node')}, {share}"]


def shares_of_time(prediction: "Prediction", kernels: int, largest: int | None = None) -> list[str]:
    """Of all ranks: computing with its longest kernels, communication with its parts, or with the largest ones alone:
    computing 91.8 % (dgemm 90.2 %, dtrsm 0.9 %); empty where that is not known."""
    breakdown = prediction.breakdown
    if breakdown is None:
        return []
    whole_s, shares = breakdown.time_s * breakdown.ranks, breakdown.shares
    longest = sorted(prediction.kernel_time_s.items(), key=lambda item: -item[1])[:kernels]
    parts = [(label, shares[name]) for name, label in COMMUNICATION]
    if largest is None:
        parts = [(label, share) for label, share in parts if share >= MIN_SHARE]
    else:
        parts = sorted(parts, key=lambda part: -part[1])[:largest]
    return [
        _share(
            "computing",
            shares["compute"],
            [("the program's own code" if name == OWN_CODE else name, time_s / whole_s) for name, time_s in longest],
        ),
        _share("communication", 1.0 - shares["compute"], parts),
    ]


def _share(what: str, share: float, parts: Sequence[tuple[str, float]]) -> str:
    if len(parts) == 1 and abs(parts[0][1] - share) < MIN_SHARE:
        return f"{what} {100.0 * share:.1f} %, all {parts[0][0]}"
    inside = ", ".join(f"{name} {100.0 * part:.1f} %" for name, part in parts)
    return f"{what} {100.0 * share:.1f} %" + (f" ({inside})" if inside else "")


def _conditions_and_warnings(prediction: "Prediction") -> list[str]:
    lines, conditions = [], prediction.conditions
    if conditions is not None and (off := conditions.layers.off):
        lines.append(f"  without {', '.join(off)}: the interval does not hold these layers")
    if conditions is not None and (transfer := conditions.transfer) is not None:
        studies = ", ".join(transfer.studies)
        lines.append(f"  layer   {significant(100.0 * transfer.total_sd, 2)} % learnt from other studies: {studies}")
    return lines + [f"  warning: {warning}" for warning in prediction.warnings]


def _interval(spread: "Spread", unit: str) -> str:
    text, half_width = spread.text(unit), spread.half_width_percent
    return f"{text} (one run: no interval)" if half_width is None else f"{text}, ± {significant(half_width, 2)} %"


def summary(sweep: Sweep) -> str:
    """What the table of several predictions lacks: what parameters change, what is not comparable, all warnings."""
    predictions = sweep.predictions
    unknown = [100.0 * run.outside.unknown_share for run in predictions if run.outside is not None]
    lines = [f"{len(predictions)} combinations on {predictions[0].platform_name}"]
    for problem in sweep.problems:
        if len(sweep.problems) > 1:
            lines.append(f"  {problem.problem}, {counted(len(problem.predictions), 'combination')}")
        if problem.rivals:
            lines.append(f"  rivals  {len(problem.rivals)} not comparable, which may be as fast")
        lines += _parts_line(problem.best) if problem.best is not None and problem.best.parts else []
        lines += effect_lines(problem.predictions)
    lines += _not_comparable(sweep)
    if max(unknown, default=0.0) >= 0.1:  # what is known to be outside, warnings tell
        low, high = (significant(end, 2) for end in (min(unknown), max(unknown)))
        span = low if low == high else f"{low} to {high}"
        lines.append(f"  ranges  {span} % of computing has no fitted ranges in the platform")
    lines.append(f"  from    {sum(len(prediction.run_list) for prediction in predictions)} simulated runs")
    return "\n".join([*lines, *(f"  warning: {caveat}" for caveat in caveats(predictions))])


def _not_comparable(sweep: Sweep) -> list[str]:
    if not sweep.apart:
        return []
    count, why = len(sweep.apart), "too much depends on what is outside the fitted ranges"
    lines = [f"    {other.application.label}: {'; '.join(other.trust.reasons)}" for other in sweep.apart[:_MAX_LISTED]]
    lines += [f"    and {count - _MAX_LISTED} more"] if count > _MAX_LISTED else []
    remedy = [] if sweep.remedy is None else [f"    to compare them: {sweep.remedy}"]
    return [f"  not comparable  {count} of {len(sweep.predictions)}: {why}", *lines, *remedy]


def effect_lines(predictions: "Sequence[Prediction]") -> list[str]:
    """A line for each parameter that varies among predictions of one problem."""
    parameters = effects(predictions)
    if not parameters:
        return []
    what = "one run of each: no intervals" if len(predictions[0].run_list) == 1 else "95 % interval"
    width = max(len(parameter.name) for parameter in parameters)
    head = f"  each parameter, all else equal: the fastest value, and the time of the others ({what})"
    return [head, *(_parameter_line(parameter, width) for parameter in parameters)]


def _parameter_line(parameter: "Parameter", width: int) -> str:
    """NB  128; 192: 1.6 % slower (95 %: 0.4 to 2.8 % slower); ..."""
    texts = [_effect_text(effect) for effect in parameter.others[:_MAX_VALUES]]
    if len(parameter.others) > _MAX_VALUES:
        texts.append(f"and {len(parameter.others) - _MAX_VALUES} more")
    averaged = " on average" if any(effect.pairs > 1 for effect in parameter.others) else ""
    return "; ".join([f"    {parameter.name:<{width}}  {parameter.reference}{averaged}", *texts])


def _effect_text(effect: "Effect") -> str:
    if effect.change is None:
        return f"{effect.value} not comparable"
    text = f"{effect.value}: {effect.change.text}"
    if effect.faster_in and effect.change.ratio >= 1.0:
        text += f", faster in {effect.faster_in} of {effect.pairs}"
    if effect.pairs < effect.all_pairs:
        text += f", {effect.all_pairs - effect.pairs} of {effect.all_pairs} pairs not comparable"
    return text


def scaling_details(points: "Sequence[ScalingPoint]") -> str:
    """What is not comparable among several numbers of ranks, and the warnings with their counts."""
    first, *_ = predictions = tuple(point.prediction for point in points)
    runs = f"{counted(len(first.run_list), 'simulated run')} of each"
    head = f"{first.application.title} on {first.platform_name}: {runs}; speed-up and efficiency relative to"
    warnings = [f"  warning: {caveat}" for caveat in caveats(predictions)]
    return "\n".join([f"{head} {ranks_text(points[0].ranks)}", *_not_comparable(Sweep(predictions)), *warnings])

"""Predictions as a person wants to read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.cli.effects_text import effect_lines
from lepaute.kit.text import four_digits, quantity, scaled_unit, time_unit, two_digits
from lepaute.simulate.application import GFLOPS
from lepaute.simulate.prediction.sweep import Sweep
from lepaute.simulate.prediction.warnings import caveats

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Prediction, Spread


def readable(prediction: "Prediction", machine: "Platform") -> str:
    """One prediction: interval, share of peak, memory, where the time goes, warnings."""
    application, time_s, rate = prediction.application, prediction.time_s, prediction.rate
    lines = [
        f"{application.title}  {application.label} ranks on {prediction.platform_name}",
        f"  time    {interval(time_s, 's')}",
    ]
    if rate is not None and application.rate is not None:
        lines.append(f"  rate    {interval(rate, application.rate.unit)}")
    lines += parts_line(prediction)
    lines += peak_line(prediction, machine)
    lines += memory_line(prediction, machine)
    if (energy_j := prediction.energy_j) is not None:
        lines.append(f"  energy  {interval(energy_j, 'J')}; {quantity(energy_j.mean / time_s.mean, 'W')} on average")
    lines += where_the_time_goes(prediction)
    if prediction.outside is not None:
        lines.append(f"  ranges  {prediction.outside.text()}")
    runs = len(prediction.run_list)
    figures = prediction.simulation
    lines.append(f"  from    {runs} simulated run(s), {figures.messages} messages each, in {figures.wall_s:.2f} s")
    lines += condition_lines(prediction)
    lines += [f"  warning: {warning}" for warning in prediction.warnings]
    return "\n".join(lines)


#: What the parts of an interval are called; others have their own names.
PART_LABELS = {"discrepancy": "kernel models", "transfer": "other studies"}
LEAST_PART = 0.05  # per cent of the mean: what is named


def parts_line(prediction: "Prediction") -> list[str]:
    """What the half-width is made of, the largest part first; or how to learn it."""
    half_width, parts = prediction.time_s.half_width_percent, prediction.parts
    if half_width is None or (parts is None and prediction.fidelity == "smpi"):  # emulate has no such option
        return []
    if parts is None:
        return [f"  +-      --parts tells what the {half_width:.1f} % are made of"]
    widths = parts.half_widths(half_width)
    named = [f"{PART_LABELS.get(name, name)} {width:.1f}" for name, width in widths.items() if width >= LEAST_PART]
    return [f"  +-      {half_width:.1f} %: {', '.join(named)}"] if named else []


def condition_lines(prediction: "Prediction") -> list[str]:
    """Layers that are switched off, and one that other studies taught."""
    conditions = prediction.conditions
    if conditions is None:
        return []
    off, transfer = conditions.layers.off, conditions.transfer
    lines = [f"  without {', '.join(off)}: the interval does not hold these layers"] if off else []
    if transfer is not None:
        studies = ", ".join(transfer.studies)
        lines.append(f"  layer   {100.0 * transfer.total_sd:.2g} % learnt from other studies: {studies}")
    return lines


def summary(predictions: Sequence["Prediction"]) -> str:
    """Several predictions: for each problem the best, those that cannot be told from it, the worst, and what each
    parameter changes; those that are not comparable, warnings with their counts."""
    sweep = Sweep(tuple(predictions))
    outside = [one.outside for one in predictions if one.outside is not None]
    lines = [f"{len(predictions)} combinations on {predictions[0].platform_name}"]
    problems = sweep.problems
    for each in problems:
        lines += [f"  {each.problem}, {len(each.predictions)} combination(s)"] if len(problems) > 1 else []
        lines += [*ranking(each), *effect_lines(each.predictions)]
    lines += apart(sweep)
    if outside:
        unknown = [100.0 * one.unknown_share for one in outside]
        text = f"{_span([100.0 * one.share for one in outside])} of computing was outside the fitted ranges"
        if max(one.messages_share for one in outside) >= 0.001:
            text += f", and {_span([100.0 * one.messages_share for one in outside])} of moving messages"
        if max(unknown) >= 0.1:
            text += f"; another {_span(unknown)} of computing has no fitted ranges in the platform"
        lines.append(f"  ranges  {text}")
    lines.append(f"  from    {sum(len(one.run_list) for one in predictions)} simulated runs")
    return "\n".join([*lines, *(f"  warning: {caveat}" for caveat in caveats(predictions))])


def _span(percents: Sequence[float]) -> str:
    """The least and the most of some shares: 84 to 88 %, 3 %, none."""
    low, high = (two_digits(end) for end in (min(percents), max(percents)))
    if max(percents) < 0.05:
        return "none"
    return f"{low} %" if low == high else f"{low} to {high} %"


MOST_LISTED = 8


def ranking(sweep: Sweep) -> list[str]:
    """What is ahead of all that are comparable; the best of these, with all that cannot be told from it, and the worst
    that is none of them; of a sweep of one problem. A single prediction is not ranked."""
    best, worst = sweep.best, sweep.worst
    if len(sweep.predictions) == 1:
        (only,) = sweep.predictions
        return [f"  run     {in_short(only)}, {four_digits(only.time_s.mean)} s"]
    lines = [f"  first   {in_short(one)}, {four_digits(one.time_s.mean)} s" for one in sweep.ahead[:MOST_LISTED]]
    if lines:
        lines.append(
            f"          certainly faster than all that are comparable{'' if best else ', which none is'}; how much "
            "faster is not known:"
        )
        lines.append(f"          {'; '.join(sweep.ahead[0].trust.reasons)}")
    if best is None or worst is None:
        return [*lines, "  best    none: none is comparable"]
    bests = sweep.bests
    if len(bests) == 1:
        lines.append(f"  best    {in_short(best)}, {four_digits(best.time_s.mean)} s")
        if sweep.ahead:
            lines[-1] += ", of those that are comparable"
    else:
        runs = len(best.run_list)
        why = "one run of each tells nothing apart; give --runs 10" if runs == 1 else "which cannot be told apart"
        lines.append(f"  best    one of these {len(bests)}, {why}:")
        lines += [f"    {in_short(one)}, {four_digits(one.time_s.mean)} s" for one in bests[:MOST_LISTED]]
        lines += [f"    and {len(bests) - MOST_LISTED} more"] if len(bests) > MOST_LISTED else []
    if sweep.rivals:
        lines.append(f"          {len(sweep.rivals)} that {_are(sweep.rivals)} not comparable may be as fast")
    lines += parts_line(best) if best.parts else []
    if any(one is worst for one in bests):
        return lines
    return [*lines, f"  worst   {in_short(worst)}, {four_digits(worst.time_s.mean)} s"]


def apart(sweep: Sweep) -> list[str]:
    """Those that are not comparable, and what to calibrate."""
    if not sweep.apart:
        return []
    lines = [
        f"  not comparable  {len(sweep.apart)} of {len(sweep.predictions)}: "
        "too much depends on what is outside the fitted ranges"
    ]
    lines += [
        f"    {one.application.label}: {interval(one.time_s, 's')}; {'; '.join(one.trust.reasons)}"
        for one in sweep.apart[:MOST_LISTED]
    ]
    if len(sweep.apart) > MOST_LISTED:
        lines.append(f"    and {len(sweep.apart) - MOST_LISTED} more")
    if sweep.remedy is not None:
        lines.append(f"    to compare them: {sweep.remedy}")
    return lines


def _are(some: Sequence["Prediction"]) -> str:
    return "is" if len(some) == 1 else "are"


def in_short(prediction: "Prediction") -> str:
    """Parameters and rate."""
    application = prediction.application
    if prediction.rate is None or application.rate is None:
        return application.label
    return f"{application.label}: {interval(prediction.rate, application.rate.unit)}"


COMMUNICATION = (
    ("late", "waiting for the other side"),
    ("transfer", "transfers"),
    ("contention", "contention"),
    ("overhead", "overhead of calls"),
    ("probe", "probes"),
    ("other", "the end"),
)
LEAST_SHARE = 0.0005  # of what is named


def where_the_time_goes(prediction: "Prediction") -> list[str]:
    """Shares of the time of all ranks: computing with its longest kernels, communication with its parts."""
    breakdown = prediction.breakdown
    if breakdown is None:
        return []
    whole = breakdown.time_s * breakdown.ranks
    kernels = sorted(prediction.kernel_time_s.items(), key=lambda item: -item[1])[:4]
    shares = breakdown.shares
    parts = [(label, shares[name]) for name, label in COMMUNICATION if shares[name] >= LEAST_SHARE]
    return [
        "  where   " + shared("computing", shares["compute"], [(name, time_s / whole) for name, time_s in kernels]),
        "          " + shared("communication", 1.0 - shares["compute"], parts),
    ]


def shared(what: str, share: float, parts: Sequence[tuple[str, float]]) -> str:
    """In words: computing 91.8 % (dgemm 90.2 %, dtrsm 0.9 %)."""
    inside = ", ".join(f"{name} {100.0 * part:.1f} %" for name, part in parts)
    return f"{what} {100.0 * share:.1f} %" + (f" ({inside})" if inside else "")


def peak_line(prediction: "Prediction", machine: "Platform") -> list[str]:
    """The share of the peak rate, where the platform says what that is and the application counts operations."""
    application, rate = prediction.application, prediction.rate
    if not machine.nodes.peak_flops_per_core or rate is None or application.rate != GFLOPS:
        return []
    peak = machine.nodes.peak_flops_per_core * application.ranks * application.threads_per_rank / 1e9
    ends = (
        ""
        if rate.low is None or rate.high is None
        else f" ({100 * rate.low / peak:.0f} to {100 * rate.high / peak:.0f} %)"
    )
    return [f"  peak    {100.0 * rate.mean / peak:.1f} % of {quantity(peak, 'Gflop/s')}{ends}"]


def memory_line(prediction: "Prediction", machine: "Platform") -> list[str]:
    """Memory needed, where that is known, and that of the nodes which hold ranks."""
    nodes, node_bytes, needed_bytes = prediction.nodes, machine.nodes.memory_bytes, prediction.application.memory_bytes
    if needed_bytes is None:
        return []
    needed = f"{quantity(needed_bytes / 1e9, 'GB')} needed"
    if not node_bytes:
        return [f"  memory  {needed} on {nodes} node(s)"]
    there_bytes = nodes * node_bytes
    share = f"{100.0 * needed_bytes / there_bytes:.2g} %" if needed_bytes < there_bytes else "too much"
    return [f"  memory  {needed} of {quantity(there_bytes / 1e9, 'GB')} on {nodes} node(s), {share}"]


def interval(spread: "Spread", unit: str) -> str:
    """Mean and interval in words."""
    shown, factor = time_unit(spread.mean, 1e-3) if unit == "s" else scaled_unit(unit, spread.mean)
    mean = four_digits(spread.mean * factor)
    if spread.low is None or spread.high is None:
        return f"{mean} {shown}  (one run: no interval)"
    return (
        f"{mean} {shown}, 95 % prediction interval {four_digits(spread.low * factor)} .. "
        f"{four_digits(spread.high * factor)} (+- {spread.half_width_percent:.1f} %)"
    )

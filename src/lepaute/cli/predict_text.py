"""Predictions as a person wants to read them."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.simulate.hpl_out import variant

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Prediction, Spread


def readable(prediction: "Prediction", machine: "Platform") -> str:
    """One prediction: interval, share of peak, memory, where the time goes, warnings."""
    time_s, rate = prediction.time_s, prediction.rate_gflops
    lines = [
        f"HPL  {named(prediction)} ranks on {prediction.platform_name}",
        f"  time    {interval(time_s, 's')}",
        f"  rate    {interval(rate, 'Gflop/s')}",
    ]
    lines += peak_line(prediction, machine)
    lines.append(memory_line(prediction, machine))
    if (energy_j := prediction.energy_j) is not None:
        lines.append(f"  energy  {interval(energy_j, 'J')}; {energy_j.mean / time_s.mean:.4g} W on average")
    lines += where_the_time_goes(prediction)
    if prediction.outside is not None:
        lines.append(f"  ranges  {prediction.outside.text()}")
    runs = len(prediction.run_list)
    figures = prediction.simulation
    lines.append(f"  from    {runs} simulated run(s), {figures.messages} messages each, in {figures.wall_s:.2f} s")
    lines += [f"  warning: {warning}" for warning in prediction.warnings]
    return "\n".join(lines)


def summary(predictions: Sequence["Prediction"]) -> str:
    """Several predictions: the best one, those that cannot be told from it, the worst, warnings with their counts."""
    best = max(predictions, key=lambda one: one.rate_gflops.mean)
    worst = min(predictions, key=lambda one: one.rate_gflops.mean)
    platform = best.platform_name
    lines = [
        f"{len(predictions)} combinations on {platform}",
        f"  best    {named(best)}: {interval(best.rate_gflops, 'Gflop/s')}, {best.time_s.mean:.4g} s",
    ]
    low = best.rate_gflops.low
    if low is not None:
        near = sum(one is not best and one.rate_gflops.mean >= low for one in predictions)
        lines.append(
            f"  near    {near} other(s) with a mean inside that interval: more runs, or real ones, tell them apart"
        )
    lines.append(f"  worst   {named(worst)}: {interval(worst.rate_gflops, 'Gflop/s')}, {worst.time_s.mean:.4g} s")
    outside = [100.0 * one.outside.share for one in predictions if one.outside is not None]
    if outside:
        lines.append(
            f"  ranges  {min(outside):.2g} to {max(outside):.2g} % of the simulated time was outside the fitted ranges"
        )
    runs = sum(len(one.run_list) for one in predictions)
    lines.append(f"  from    {runs} simulated runs")
    told = Counter(warning for one in predictions for warning in one.warnings)
    for warning, times in told.items():
        lines.append(f"  warning: {warning}" + ("" if times == len(predictions) else f" ({times} combination(s))"))
    return "\n".join(lines)


def named(prediction: "Prediction") -> str:
    """The parameters in short, with HPL's code of the algorithms: N = 20000  NB = 128  8 x 8  WR12R2C2."""
    hpl = prediction.hpl
    return f"N = {hpl.n}  NB = {hpl.nb}  {variant(hpl)}  {hpl.p} x {hpl.q}"


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
    found = prediction.breakdown
    if found is None:
        return []
    whole = found.time_s * found.ranks
    kernels = sorted(prediction.kernel_time_s.items(), key=lambda item: -item[1])[:4]
    shares = found.shares
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
    """The share of the peak rate, where the platform says what that is."""
    if not machine.nodes.peak_flops_per_core:
        return []
    peak = machine.nodes.peak_flops_per_core * prediction.hpl.ranks * prediction.hpl.threads_per_rank / 1e9
    return [f"  peak    {100.0 * prediction.rate_gflops.mean / peak:.1f} % of {peak:.0f} Gflop/s"]


def memory_line(prediction: "Prediction", machine: "Platform") -> str:
    """Memory needed, and that of the nodes which hold ranks."""
    nodes, there = prediction.nodes, machine.nodes.memory_bytes
    beside = f" of {nodes * there / 1e9:.1f} GB on {nodes} node(s)" if there else f" on {nodes} node(s)"
    return f"  memory  {prediction.hpl.memory_bytes / 1e9:.2f} GB for the matrix{beside}"


def interval(spread: "Spread", unit: str) -> str:
    """Mean and interval in words."""
    if spread.low is None:
        return f"{spread.mean:.4g} {unit}  (one run: no interval)"
    return (
        f"{spread.mean:.4g} {unit}, 95 % prediction interval {spread.low:.4g} .. {spread.high:.4g} "
        f"(+- {spread.half_width_percent:.1f} %)"
    )

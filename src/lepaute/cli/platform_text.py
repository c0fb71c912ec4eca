"""What commands of `lepaute platform` say of a platform that they wrote or looked at, as text and as JSON."""

from collections.abc import Sequence
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.cli.terminal import tell, warn
from lepaute.kit.text import counted, significant, with_interval
from lepaute.simulate.platform.plausibility import assumed_values, implausible, unmodelled

if TYPE_CHECKING:
    from lepaute.measure.fit.population.generative import Generative, GroupMoments
    from lepaute.simulate.platform import Platform

#: What an answer rests on, in this many lines at most.
MAX_FACTS = 5


def doubts(platform: "Platform") -> list[str]:
    """Values that no machine has, what is assumed, and what HPL calls without a model."""
    from lepaute.measure.fit.observations.calls import MODELLED

    return [*implausible(platform), *assumed_values(platform), *unmodelled(platform, sorted(MODELLED))]


def tell_written(
    platform: "Platform",
    output: Path,
    *,
    details: bool,
    as_json: bool,
    more: Sequence[tuple[str, str]] = (),
    caveats: Sequence[str] = (),
    headline: str = "",
    **further: Any,
) -> None:
    """A platform that was written: a headline, or a line as `show` has it; what else is to be said, and its doubts."""
    from lepaute.simulate.platform.data_sheet import dgemm_rate
    from lepaute.simulate.platform.overview import facts, in_one_line

    of_platform = dict(facts(platform))
    wanted = ("assumed", "between nodes", "inside a node", "network", "nodes")
    given = {name for name, _ in more}
    known = [*more, *((name, of_platform[name]) for name in wanted if name in of_platform and name not in given)]
    odd = list(implausible(platform))
    unsure = [*(doubt for doubt in doubts(platform) if as_json or doubt not in odd), *caveats]
    assumed = platform.assumed or ()
    document = {"output": str(output), "name": platform.name, **platform.facts_in_short()} | {
        "dgemm_flops": dgemm_rate(platform),
        "assumed": [each.model_dump(mode="json") for each in assumed],
        **further,
    }
    if details:
        unsure += [f"{each.text}: {each.source}" for each in assumed]
    answer = headline or f"platform {in_one_line(platform)}"
    tell(f"{output}: {answer}", known[:MAX_FACTS], unsure, details=details, document=document if as_json else None)
    warn(odd)  # a slip of a unit, which is no caveat


def group_facts(fitted: "Generative") -> list[tuple[str, str]]:
    """Of each group how many, and its first coefficient."""
    facts = []
    for number, group in enumerate(fitted.groups[:MAX_FACTS]):
        low, high = group.interval()
        mean = with_interval(group.theta[0], low[0], high[0], "s")
        facts.append((f"group {number}", f"{_size_of(group)}; {fitted.terms[0]} {mean}"))
    return facts


def _size_of(group: "GroupMoments") -> str:
    return f"{counted(group.nodes, 'node')}, {counted(group.units, 'CPU')}"


def groups_as_json(fitted: "Generative") -> list[dict[str, Any]]:
    """Of each group how many it has, and of each coefficient, in seconds, what `population_lines` says."""
    documents = []
    for group in fitted.groups:
        low, high = group.interval()
        temporal = group.covariance_temporal  # of each CPU by itself
        if temporal is None:
            temporal = fitted.days.individual if fitted.scales is None else fitted.scales.pooled_typical
        coefficients = {
            term: {
                "mean_s": float(group.theta[at]),
                "interval_s": [float(low[at]), float(high[at])],
                "sd_between_cpus_s": float(group.covariance_spatial[at, at]) ** 0.5,
                "sd_between_days_s": float(temporal[at, at]) ** 0.5,
                "sd_of_common_days_s": 0.0 if fitted.days.common is None else float(fitted.days.common[at, at]) ** 0.5,
            }
            for at, term in enumerate(fitted.terms)
        }
        documents.append({"nodes": group.nodes, "cpus": group.units, "weight": group.weight, "terms": coefficients})
    return documents


def population_lines(fitted: "Generative") -> list[str]:
    """Of each group the coefficients, how they differ between CPUs and days, and how much CPUs differ in their days."""
    lines = []
    for number, (group, known) in enumerate(zip(fitted.groups, groups_as_json(fitted), strict=True)):
        lines.append(f"group {number}: {_size_of(group)}")
        for at, (term, of) in enumerate(known["terms"].items()):
            sd_log = 0.0 if fitted.scales is None else float(fitted.scales.covariance_log[number, at, at]) ** 0.5
            names = ("between_cpus", "between_days", "of_common_days")
            cpus, days, common = (significant(of[f"sd_{name}_s"], 2) for name in names)
            line = f"  {term:<7} {with_interval(of['mean_s'], *of['interval_s'])}; sd between CPUs {cpus}, "
            line += f"between days {days} own, {common} common"
            if sd_log > 0.0:
                least, most = (significant(exp(log), 2) for log in (-sd_log, sd_log))
                line += f"; own times {least} to {most} for two thirds of the CPUs"
            lines.append(line)
    return lines

"""`lepaute platform synthesize` and `population`: hypothetical clusters, and what they are drawn from."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import Force
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.fit.population.coefficients import Coefficients
    from lepaute.fit.population.generative import Generative


def synthesize(
    nodes: Annotated[int, typer.Option("--nodes", help="nodes of the cluster")],
    like: Annotated[
        str, typer.Option("--like", help="platform; without a population, its CPUs differ by a factor on dgemm")
    ] = "dahu",
    spatial: Annotated[
        str, typer.Option("--spatial", help="factor of standard deviations between CPUs, such as 2x or 0.5")
    ] = "1",
    temporal: Annotated[
        str, typer.Option("--temporal", help="factor of standard deviations between days, such as 2x or 0")
    ] = "1",
    seed: Annotated[int, typer.Option("--seed", help="the same seed, the same cluster")] = 1,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "synthetic.yaml"
    ),
    force: Force = False,
) -> None:
    """Make a hypothetical cluster: nodes drawn from a population, network and all else as on a platform."""
    from lepaute.kit.quantities import factor_of
    from lepaute.platform import dump_platform, load_platform
    from lepaute.platform.populations import known_population
    from lepaute.simulate import synthesis

    check_outputs({"--output": output}, inputs=[like], force=force)
    platform = load_platform(like)
    cluster = synthesis.synthesize(
        platform,
        known_population(platform),
        nodes=nodes,
        spatial=factor_of(spatial, "--spatial"),
        temporal=factor_of(temporal, "--temporal"),
        seed=seed,
    )
    dump_platform(cluster, output)
    for sentence in synthesis.odd_cpus(cluster):
        print(f"warning: {sentence}", file=sys.stderr)
    print(f"{output}: platform {cluster.name}, {nodes} nodes of {cluster.nodes.cores} cores, like {platform.name}")


def population(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE|ARCHIVE...", help="a table of coefficients, or calibrations of several days"),
    ],
    of: Annotated[str, typer.Option("--of", help="platform that gets the population")],
    kernel: Annotated[str, typer.Option("--kernel", help="kernel that the coefficients are of")] = "dgemm",
    groups: Annotated[int, typer.Option("--groups", min=1, max=8, help="groups of nodes, at most")] = 4,
    draw: Annotated[str, typer.Option("--draw", help="what a run draws: none, days or nodes-and-days")] = "days",
    mcmc: Annotated[bool, typer.Option("--mcmc", help="also sample the posterior (needs the extra mcmc)")] = False,
    seed: Annotated[int, typer.Option("--seed", help="of the sampling")] = 1,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "with-population.yaml"
    ),
    force: Force = False,
) -> None:
    """Fit how CPUs differ, and a cpu from day to day, and write a platform whose runs draw it."""
    import re

    from lepaute.errors import InputError
    from lepaute.fit.population.generative import generative
    from lepaute.platform import dump_platform, load_platform
    from lepaute.platform.io import with_population

    check_outputs({"--output": output}, inputs=[*sources, of], force=force)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", kernel):
        raise InputError(f"--kernel is {kernel[:80]!r}; it is the name of a kernel, such as dgemm")
    platform = load_platform(of)
    data = _coefficients(sources, kernel)
    fitted = generative(data, most_groups=groups)
    drawing = with_population(platform, fitted.population(kernel).model_dump() | {"draw": draw})
    for line in population_lines(fitted):
        print(line)
    if mcmc:
        from lepaute.fit.population.posterior import posterior

        for line in posterior(data, fitted, seed=seed).lines():
            print(line)
    dump_platform(drawing, output)
    print(f"wrote {output}", file=sys.stderr)


def population_lines(fitted: "Generative") -> list[str]:
    """The fitted model for a person."""
    individual = fitted.days.individual if fitted.scales is None else fitted.scales.pooled_typical
    lines = [f"{len(fitted.group_of_node)} nodes, {len(fitted.groups)} group(s)"]
    for number, group in enumerate(fitted.groups):
        lines.append(f"group {number}: {group.nodes} nodes, {group.units} CPUs")
        low, high = group.interval()
        for at, term in enumerate(fitted.terms):
            temporal = individual if group.covariance_temporal is None else group.covariance_temporal
            common = 0.0 if fitted.days.common is None else fitted.days.common[at, at]
            lines.append(
                f"  {term:<7} {group.theta[at]:.5g}  95 % interval {low[at]:.5g} to {high[at]:.5g}; sd between CPUs "
                f"{group.covariance_spatial[at, at] ** 0.5:.2g}, between days {temporal[at, at] ** 0.5:.2g} own, "
                f"{common**0.5:.2g} common" + _factors(fitted, number, at)
            )
    return lines + [f"note: {note}" for note in fitted.notes]


def _factors(fitted: "Generative", number: int, at: int) -> str:
    """How much the CPUs of a group differ in the standard deviation of their days, where they do."""
    from math import exp

    sd = 0.0 if fitted.scales is None else float(fitted.scales.covariance_log[number, at, at]) ** 0.5
    return f"; own times {exp(-sd):.2g} to {exp(sd):.2g} for two thirds of the CPUs" if sd > 0.0 else ""


def _coefficients(sources: list[Path], kernel: str) -> "Coefficients":
    from lepaute.errors import InputError
    from lepaute.fit.population.coefficients import coefficients_of_archives, read_coefficients

    tables = [path for path in sources if path.suffix != ".zip"]
    if not tables:
        from lepaute.archive import Archive

        return coefficients_of_archives([Archive.open(path) for path in sources], kernel)
    if len(sources) > 1:
        raise InputError(f"{tables[0]}: give one table, or archives (.zip) alone; join tables into one")
    return read_coefficients(tables[0])

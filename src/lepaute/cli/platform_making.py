"""`lepaute platform new`, `messages`, `synthesize`, `population`: of data sheets, ping-pongs and populations; what is
said of a platform that was written or looked at, as text and as JSON."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lepaute.cli.options import AsJson, Details, Force, argument, option, with_options_of
from lepaute.cli.segment import as_object
from lepaute.cli.terminal import note, say, tell, warn
from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of, picture_files
from lepaute.kit.quantities import factor_of, parse_size
from lepaute.kit.text import counted, significant, with_interval
from lepaute.measure.archive import Archive
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.data_sheet import DataSheet, dgemm_rate, platform_from, what_is_given
from lepaute.simulate.platform.io import parse_platform, with_population
from lepaute.simulate.platform.plausibility import assumed_values, implausible, unmodelled
from lepaute.simulate.platform.population import known_population
from lepaute.simulate.platform.schema import platform_text
from lepaute.simulate.platform.summary import facts, in_one_line

if TYPE_CHECKING:
    from lepaute.measure.fit.population.coefficients import Coefficients
    from lepaute.measure.fit.population.generative import Generative, GroupMoments
    from lepaute.simulate.platform import Platform

Output = Annotated[Path, option("platform to write", "-o", "--output", metavar="FILE")]


@with_options_of(DataSheet, "values", make=dict)
def new(
    values: dict[str, Any],
    like: Annotated[str, option("measured platform whose small kernels are scaled by dgemm")] = "dahu",
    output: Output = Path("data-sheet.yaml"),
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Write a platform from a data sheet: what is not given is guessed, marked, and widens the interval."""
    check_outputs({"--output": output}, inputs=[like], force=force)
    cores, threads = values["sockets"] * values["cores_per_socket"], values["threads"]
    if threads > cores:
        raise InputError(f"--threads-per-rank is {threads}; a node has {cores} cores")
    if values["leaf"] is not None and values["fat_tree"] is None:
        raise InputError("--leaf is of a fat tree; give --fat-tree too, such as 2:1")
    data = DataSheet(**values | {"name": values["name"] or output.stem})
    platform = platform_from(data, load_platform(like))
    write_atomic(output, platform_text(platform))
    given = {name: value for name, value in asdict(data).items() if value is not None and name != "name"}
    more = [("given", ", ".join(what_is_given(data)))]
    tell_written(platform, output, details=details, as_json=as_json, more=more, given=given)


def messages(
    name: Annotated[str, argument("PLATFORM", "a platform file, or the name of a shipped one")],
    between: Annotated[Path | None, option("ping-pong of two nodes: OSU, Intel, CSV", metavar="FILE")] = None,
    within: Annotated[Path | None, option("ping-pong of two ranks of one node", metavar="FILE")] = None,
    eager: Annotated[str | None, option("largest eager message; default: at the largest jump", metavar="SIZE")] = None,
    unit: Annotated[str, option("of durations where a file tells none: s, ms, us, ns", metavar="UNIT")] = "",
    x: Annotated[str, option("of CSV: the column of sizes", metavar="COLUMN")] = "",
    y: Annotated[str, option("the column of half round trips", metavar="COLUMN")] = "",
    output: Output = Path("with-messages.yaml"),
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Put ping-pongs of the OSU or Intel benchmarks, or of CSV, into a platform: its messages between or in nodes.

    `lepaute segment FILE` shows the lines that are taken.
    """
    from lepaute.measure.fit import segment
    from lepaute.measure.fit.duration_tables import read_durations
    from lepaute.measure.fit.ping_pongs import ping_pong_of, with_ping_pong
    from lepaute.measure.fit.segment_report import sentence

    files = [(file, inside) for file, inside in ((between, False), (within, True)) if file is not None]
    if not files:
        raise InputError("give a ping-pong: --between two nodes, --within one, or both")
    check_outputs({"--output": output}, inputs=[name, *(file for file, _ in files)], force=force)
    platform = load_platform(name)
    eager_bytes = None if eager is None else parse_size(eager, "--eager")
    lines: list[tuple[str, str]] = []
    ping_pongs, remarks = [], list[str]()
    for file, inside in files:
        table = ping_pong_of(read_durations(file, x=x or None, y=y or None, unit=unit or None), file)
        line = segment(table.x, table.duration_s)
        platform = with_ping_pong(platform, line, source=file.name, within=inside, eager_bytes=eager_bytes)
        where = "inside a node" if inside else "between nodes"
        lines.append((where, f"{file.name}: {sentence(table, line).rstrip('.')}"))
        ping_pongs.append({"file": str(file), "within": inside, **as_object(table, line)})
        remarks += [f"{file}: {remark}" for remark in (*table.notes, *line.notes)]
    text = platform_text(platform.model_copy(update={"name": output.stem}))
    platform = parse_platform(text, str(output))
    write_atomic(output, text)
    measured = dict(facts(platform))[lines[0][0]].partition(";")[0]
    headline = f"{name} with the messages of {' and '.join(each.name for each, _ in files)}: {measured}"
    how: dict[str, Any] = {"details": details, "as_json": as_json, "headline": headline}
    tell_written(platform, output, **how, more=lines, caveats=remarks, ping_pongs=ping_pongs)


def synthesize(
    nodes: Annotated[int, option("nodes of the cluster")],
    like: Annotated[str, option("platform; without a population, CPUs differ by a factor on dgemm")] = "dahu",
    spatial: Annotated[str, option("factor of standard deviations between CPUs, such as 2x or 0.5")] = "1",
    temporal: Annotated[str, option("factor of standard deviations between days, such as 2x or 0")] = "1",
    seed: Annotated[int, option("the same seed, the same cluster")] = 1,
    threads: Annotated[
        int,
        option("for ranks of T threads; guessed where --like has no models", "--threads-per-rank", min=1, metavar="T"),
    ] = 1,
    output: Output = Path("synthetic.yaml"),
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Make a hypothetical cluster: nodes drawn from a population, network and all else as on a platform."""
    from lepaute.simulate.machine import synthesis

    check_outputs({"--output": output}, inputs=[like], force=force)
    platform = load_platform(like)
    factors = {"spatial": factor_of(spatial, "--spatial"), "temporal": factor_of(temporal, "--temporal")}
    cluster = synthesis.synthesize(
        platform, known_population(platform), nodes=nodes, **factors, seed=seed, threads=threads
    )
    cluster.to_yaml(output)
    drawn = f"of the population of {platform.name}, spatial {spatial}, temporal {temporal}, seed {seed}"
    of = {"population_of": platform.name, **factors, "seed": seed}
    rests: dict[str, Any] = {"more": [("drawn", drawn)], "caveats": list(synthesis.odd_cpus(cluster)), "drawn": of}
    tell_written(cluster, output, details=details, as_json=as_json, **rests)


def population(
    sources: Annotated[
        list[Path], argument("TABLE|ARCHIVE...", "a table of coefficients, or calibrations of several days")
    ],
    of: Annotated[str, option("platform that gets the population")],
    kernel: Annotated[str, option("kernel that the coefficients are of")] = "dgemm",
    threads: Annotated[int, option("threads of a call of the table", "--threads-per-rank", min=1, metavar="T")] = 1,
    groups: Annotated[int, option("groups of nodes, at most", min=1, max=8)] = 4,
    draw: Annotated[str, option("what a run draws: none, days or nodes-and-days")] = "days",
    mcmc: Annotated[bool, option("also sample the posterior (needs the extra mcmc)", "--mcmc")] = False,
    seed: Annotated[int | None, option("of the sampling by --mcmc; default: 1")] = None,
    output: Output = Path("with-population.yaml"),
    plot: Annotated[Path | None, option("picture of coefficients and the groups, .png or .svg", metavar="FILE")] = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Fit how CPUs differ, and a cpu from day to day, and write a platform whose runs draw it."""
    from lepaute.measure.fit.population.generative import generative
    from lepaute.measure.fit.population.plot import finding, plot_population

    check_outputs({"--output": output, "--plot": files_of(plot)}, inputs=[*sources, of], force=force)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", kernel):
        raise InputError(f"--kernel is {kernel[:80]!r}; it is the name of a kernel, such as dgemm")
    if seed is not None and not mcmc:
        raise InputError("--seed is of the sampling by --mcmc, which is not asked for; leave it out")
    platform = load_platform(of)
    data = _coefficients(sources, kernel)
    fitted = generative(data, most_groups=groups)
    drawing = with_population(platform, fitted.population(kernel).model_dump() | {"draw": draw, "threads": threads})
    rest = _population_lines(fitted) if details else []
    document: dict[str, Any] = {"output": str(output), "kernel": kernel, "groups": _groups_as_json(fitted)}
    if mcmc:
        from lepaute.measure.fit.population.posterior import posterior

        sampled = posterior(data, fitted, seed=1 if seed is None else seed)
        rest += sampled.lines()
        document["posterior"] = sampled.to_dict()
    drawing.to_yaml(output)
    answer = "; ".join(finding(fitted, kernel).split("\n"))  # as the picture has it
    shown = document if as_json else None
    # of each group how many, and its first coefficient
    facts = []
    for number, group in enumerate(fitted.groups[:MAX_FACTS]):
        low, high = group.interval()
        mean = with_interval(group.theta[0], low[0], high[0], "s")
        facts.append((f"group {number}", f"{_size_of(group)}; {fitted.terms[0]} {mean}"))
    tell(f"{output}: {answer}", facts, fitted.notes, details=details, document=shown)
    for line in [] if as_json else rest:
        say(line, 4)
    if plot is not None:
        names = ", ".join(path.name for path in sources)
        plot_population(data, fitted, kernel, plot, source=names if len(sources) < 4 else f"{len(sources)} archives")
        note(f"wrote {' and '.join(map(str, picture_files(plot)))}")


def _coefficients(sources: list[Path], kernel: str) -> "Coefficients":
    from lepaute.measure.fit.population.coefficients import coefficients_of_archives, read_coefficients

    tables = [path for path in sources if path.suffix != ".zip"]
    if not tables:
        return coefficients_of_archives([Archive.open(path) for path in sources], kernel)
    if len(sources) > 1:
        raise InputError(f"{tables[0]}: give one table, or archives (.zip) alone; join tables into one")
    return read_coefficients(tables[0])


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


def _size_of(group: "GroupMoments") -> str:
    return f"{counted(group.nodes, 'node')}, {counted(group.units, 'CPU')}"


def _groups_as_json(fitted: "Generative") -> list[dict[str, Any]]:
    """Of each group how many it has, and of each coefficient, in seconds, what `_population_lines` says."""
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


def _population_lines(fitted: "Generative") -> list[str]:
    """Of each group the coefficients, how they differ between CPUs and days, and how much CPUs differ in their days."""
    lines = []
    for number, (group, known) in enumerate(zip(fitted.groups, _groups_as_json(fitted), strict=True)):
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

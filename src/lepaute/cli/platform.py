"""`lepaute platform ...`: shipped platforms, files, and new platforms of data sheets, ping-pongs and populations."""

import re
import sys
from dataclasses import MISSING, dataclass
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.entry import BAD_INPUT, complain
from lepaute.cli.options import App, AsJson, Details, Force
from lepaute.cli.simulation import platform_names
from lepaute.cli.terminal import answer_text, details_text, json_text, note, warn
from lepaute.errors import InputError, PlatformError
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import (
    bandwidth_of,
    factor_of,
    flops_of,
    memory_of,
    product_of,
    ratio_of,
    seconds_of,
    size_of,
)
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute.fit.population.coefficients import Coefficients
    from lepaute.fit.population.generative import Generative
    from lepaute.platform import Platform

app = App(help="List, show, check, import and export platforms; make new and hypothetical ones.", no_args_is_help=True)

Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")]


@app.command("list")
def list_platforms(as_json: AsJson = False) -> None:
    """List the platforms shipped with Lepaute."""
    from lepaute.platform import load_platform, shipped_names
    from lepaute.platform.io import ALIASES
    from lepaute.platform.summary import one_line

    names = shipped_names()
    if as_json:
        listed = [
            {"name": name, "alias_of": ALIASES.get(name), **load_platform(name).facts_in_short()} for name in names
        ]
        print(json_text({"platforms": listed}))
        return
    width = max(map(len, names))
    for name in names:
        meaning = f"alias of {ALIASES[name]}" if name in ALIASES else one_line(load_platform(name))
        print(f"{name:<{width}}  {meaning}")


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A shipped platform, or a platform file.", autocompletion=platform_names),
    ],
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print the platform file itself.")] = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Show a platform: nodes, kernel models, network, sources."""
    from lepaute.platform import load_platform
    from lepaute.platform.io import platform_text
    from lepaute.platform.overview import facts, in_one_line
    from lepaute.platform.summary import summary

    if as_json and as_yaml:
        raise InputError("give either --json or --yaml")
    platform = load_platform(name)
    if as_json:  # the fields of the file, and what identifies it
        print(json_text({"sha256": platform.sha256, **platform.model_dump(mode="json", exclude_none=True)}))
        return
    if as_yaml:
        print(platform_text(platform).rstrip("\n"))
        return
    width = terminal_columns(sys.stdout)
    if details:
        print(details_text(in_one_line(platform), summary(platform), width))
    else:
        print(answer_text(in_one_line(platform), facts(platform), _doubts(platform), width))


def _doubts(platform: "Platform") -> list[str]:
    """What is assumed, values that no machine has, and what HPL calls without a model."""
    from lepaute.fit.observations.calls import MODELLED
    from lepaute.platform.plausibility import implausible, unmodelled

    assumed = [f"assumed, not measured, {each.text}: {each.source}" for each in platform.assumed or ()]
    return [*assumed, *implausible(platform), *unmodelled(platform, sorted(MODELLED))]


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A platform file (or a shipped name).")],
    as_json: AsJson = False,
) -> None:
    """Check a platform file: all faults (exit status 2), values that no machine has, kernels that cost nothing."""
    from lepaute.fit.observations.calls import MODELLED
    from lepaute.platform import load_platform
    from lepaute.platform.plausibility import implausible, unmodelled
    from lepaute.simulate.machine.core import core_topology

    try:
        platform = load_platform(file)
    except PlatformError as error:
        for line in error.faults:
            complain(line)
        if as_json:
            print(json_text({"valid": False, "faults": list(error.faults)}))
        raise typer.Exit(BAD_INPUT) from None
    core_topology(platform)  # refuses names of parts that are not there, and nodes that nothing joins
    warnings = [*implausible(platform), *unmodelled(platform, sorted(MODELLED))]
    if as_json:
        print(json_text({"valid": True, "name": platform.name, "sha256": platform.sha256, "warnings": warnings}))
        return
    warn(warnings)
    count = f"; {counted(len(warnings), 'warning')}" if warnings else ""
    print(f"{file}: platform {platform.name} is valid, sha256 {platform.sha256}{count}")


@app.command("export")
def export_platform(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A platform file, or a shipped platform.")],
    simgrid: Annotated[Path, typer.Option(metavar="OUT.xml", help="The file to write.")],
    every_route: Annotated[
        bool, typer.Option("--every-route", help="Write each route, for latencies and shares of links as modelled.")
    ] = False,
    force: Force = False,
) -> None:
    """Write a platform as SimGrid's XML, for SMPI; says on standard error what the file does not hold."""
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.simgrid import export_xml, host_name
    from lepaute.simulate.machine.core import wiring

    check_outputs({"--simgrid": simgrid}, inputs=[name], force=force)
    platform = load_platform(name)
    exported = export_xml(platform, wiring(platform), every_route=every_route)
    write_whole(simgrid, exported.text)
    for sentence in exported.lost:
        note(f"not exported: {sentence}")
    last = platform.nodes.count - 1
    print(f"{simgrid}: hosts {host_name(platform, 0)} to {host_name(platform, last)}")


@app.command("import")
def import_platform(
    file: Annotated[Path, typer.Argument(metavar="SIMGRID.xml", help="A platform of SimGrid, calibrated for SMPI.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT.yaml", help="The file to write; default: print it.")
    ] = None,
    force: Force = False,
) -> None:
    """Make a platform of SimGrid's XML; says on standard error what of it was ignored."""
    from lepaute.kit.documents import read_bytes
    from lepaute.platform import dump_platform
    from lepaute.platform.io import platform_text
    from lepaute.platform.simgrid import import_xml
    from lepaute.platform.simgrid.machines import LARGEST_TEXT_BYTES

    check_outputs({"--output": output}, inputs=[file], force=force)
    imported = import_xml(read_bytes(file, "a platform file of SimGrid", LARGEST_TEXT_BYTES), str(file))
    for sentence in imported.notes:
        note(f"{file}: {sentence}")
    if output is None:
        print(platform_text(imported.platform).rstrip("\n"))
        return
    dump_platform(imported.platform, output)
    print(f"{output}: platform {imported.platform.name}, {imported.platform.nodes.count} nodes")


def _cores_of(text: str, option: str) -> tuple[int, int]:
    """Sockets, and cores of each."""
    if re.fullmatch("[0-9]+(?:[xX][0-9]+)?", text, re.ASCII) is None:
        raise InputError(f"{option} is {text[:80]!r}; it must be sockets x cores such as 2x24, or cores such as 24")
    sockets, cores = product_of(text if "x" in text.lower() else f"1x{text}", option, "S x C such as 2x24")
    if min(sockets, cores) < 1:
        raise InputError(f"{option} is {text!r}; a node has at least one core")
    return sockets, cores


@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """A data sheet, as the command line has it."""

    nodes: int = option_field(MISSING, "nodes of the cluster", minimum=1)
    cores: tuple[int, int] = option_field(
        MISSING, "sockets x cores of each, such as 2x24, or 24", metavar="SxC", quantity=_cores_of
    )
    dgemm: float | None = option_field(
        None, "flop/s of a core in dgemm while all cores compute, such as 45G", metavar="RATE", quantity=flops_of
    )
    peak: float | None = option_field(
        None,
        "nominal flop/s of a core; without --dgemm, a share of it is assumed (75 %; by --blas, --simd, --clock)",
        metavar="RATE",
        quantity=flops_of,
    )
    link: float | None = option_field(
        None, "link of a node, such as 100Gb (bits) or 12.5GB (bytes)", metavar="RATE", quantity=bandwidth_of
    )
    latency: float | None = option_field(
        None, "small message between nodes, half a round trip: 1.5us", metavar="TIME", quantity=seconds_of
    )
    fat_tree: tuple[int, int] | None = option_field(
        None, "nodes per uplink of a leaf switch: 2:1; without: one switch", metavar="DOWN:UP", quantity=ratio_of
    )
    leaf: int | None = option_field(None, "nodes of a leaf switch of the fat tree", minimum=1)
    memory: int | None = option_field(None, "of a node, such as 192G", metavar="SIZE", quantity=memory_of)
    threads: int = option_field(1, "also for ranks of T threads, such as 32: guessed as well", minimum=1, metavar="T")
    memory_bandwidth: float | None = option_field(
        None, "of a node, all cores at once: 200GB; for emulations", metavar="RATE", quantity=bandwidth_of
    )
    blas: str | None = option_field(
        None, "library of dgemm; none: not tuned for the processor", choices=("mkl", "openblas", "blis", "aocl", "none")
    )
    simd: str | None = option_field(
        None, "instructions that --peak counts", choices=("avx512", "avx2", "avx", "sse2", "neon", "sve", "other")
    )
    clock: str | None = option_field(
        None, "clock that --peak counts; turbo: the one that all cores hold", choices=("base", "turbo")
    )
    fabric: str | None = option_field(
        None, "between nodes, TCP over Ethernet or not; default: by latency and link", choices=("rdma", "ethernet")
    )
    name: str | None = option_field(None, "of the platform; default: that of the file")


@app.command()
def new(
    sheet: SheetOptions,
    like: Annotated[
        str, typer.Option(help="platform of the measured core whose small kernels are scaled by dgemm")
    ] = "dahu",
    output: Output = Path("data-sheet.yaml"),
    force: Force = False,
) -> None:
    """Write a platform from a data sheet: what is not given is guessed, marked, and widens the interval."""
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.data_sheet import DataSheet, platform_from, what_is_given
    from lepaute.platform.io import platform_text

    check_outputs({"--output": output}, inputs=[like], force=force)
    sockets, per_socket = sheet.cores
    if sheet.threads > sockets * per_socket:
        raise InputError(f"--threads is {sheet.threads}; a node has {sockets * per_socket} cores")
    if sheet.leaf is not None and sheet.fat_tree is None:
        raise InputError("--leaf is of a fat tree; give --fat-tree too, such as 2:1")
    data = DataSheet(
        nodes=sheet.nodes,
        sockets=sockets,
        cores_per_socket=per_socket,
        dgemm_flops=sheet.dgemm,
        peak_flops=sheet.peak,
        link_Bps=sheet.link,
        latency_s=sheet.latency,
        fat_tree=sheet.fat_tree,
        leaf=sheet.leaf,
        memory_bytes=sheet.memory,
        threads=sheet.threads,
        memory_Bps=sheet.memory_bandwidth,
        blas=sheet.blas,
        simd=sheet.simd,
        clock=sheet.clock,
        fabric=sheet.fabric,
        name=sheet.name or output.stem or "data-sheet",
    )
    platform = platform_from(data, load_platform(like))
    write_whole(output, platform_text(platform))
    print(f"{output}: platform {platform.name}: {', '.join(what_is_given(data))}")
    _tell_doubts(platform)


def _tell_doubts(platform: "Platform") -> None:
    from lepaute.platform.plausibility import implausible

    for assumption in platform.assumed or ():
        note(f"assumed: {assumption.text}: {assumption.source}")
    warn(implausible(platform))


@app.command()
def messages(
    name: Annotated[str, typer.Argument(metavar="PLATFORM", help="a platform file, or the name of a shipped one")],
    between: Annotated[
        Path | None, typer.Option(metavar="FILE", help="ping-pong of two nodes: OSU, Intel, or CSV")
    ] = None,
    within: Annotated[Path | None, typer.Option(metavar="FILE", help="ping-pong of two ranks of one node")] = None,
    eager: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="largest eager message of the MPI library; default: the largest jump"),
    ] = None,
    unit: Annotated[
        str, typer.Option(metavar="UNIT", help="of the durations where a file tells none: s, ms, us, ns")
    ] = "",
    x: Annotated[str, typer.Option(metavar="COLUMN", help="of CSV: the column of sizes")] = "",
    y: Annotated[str, typer.Option(metavar="COLUMN", help="the column of half round trips")] = "",
    output: Output = Path("with-messages.yaml"),
    force: Force = False,
) -> None:
    """Put ping-pongs of the OSU or Intel benchmarks, or of CSV, into a platform: its messages between or in nodes.

    `lepaute segment FILE` shows the lines that are taken.
    """
    from lepaute.cli.segment import sentence
    from lepaute.fit import segment
    from lepaute.fit.duration_tables import read_durations
    from lepaute.fit.ping_pongs import ping_pong_of, with_ping_pong
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.io import parse_platform, platform_text

    files = [(file, inside) for file, inside in ((between, False), (within, True)) if file is not None]
    if not files:
        raise InputError("give a ping-pong: --between two nodes, --within one, or both")
    check_outputs({"--output": output}, inputs=[name, *(file for file, _ in files)], force=force)
    platform = load_platform(name)
    eager_bytes = None if eager is None else size_of(eager, "--eager")
    for file, inside in files:
        table = ping_pong_of(read_durations(file, x=x or None, y=y or None, unit=unit or None), file)
        line = segment(table.x, table.duration_s)
        platform = with_ping_pong(platform, line, source=file.name, within=inside, eager_bytes=eager_bytes)
        print(f"{file}: {sentence(table, line)}")
        for remark in (*table.notes, *line.notes):
            note(f"{file}: {remark}")
    text = platform_text(platform.model_copy(update={"name": output.stem}))
    platform = parse_platform(text, str(output))
    write_whole(output, text)
    print(f"{output}: platform {platform.name}")
    _tell_doubts(platform)


@app.command()
def synthesize(
    nodes: Annotated[int, typer.Option(help="nodes of the cluster")],
    like: Annotated[
        str, typer.Option(help="platform; without a population, its CPUs differ by a factor on dgemm")
    ] = "dahu",
    spatial: Annotated[str, typer.Option(help="factor of standard deviations between CPUs, such as 2x or 0.5")] = "1",
    temporal: Annotated[str, typer.Option(help="factor of standard deviations between days, such as 2x or 0")] = "1",
    seed: Annotated[int, typer.Option(help="the same seed, the same cluster")] = 1,
    output: Output = Path("synthetic.yaml"),
    force: Force = False,
) -> None:
    """Make a hypothetical cluster: nodes drawn from a population, network and all else as on a platform."""
    from lepaute.platform import dump_platform, load_platform
    from lepaute.platform.population import known_population
    from lepaute.simulate.machine import synthesis

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
    warn(synthesis.odd_cpus(cluster))
    print(f"{output}: platform {cluster.name}, {nodes} nodes of {cluster.nodes.cores} cores, like {platform.name}")


@app.command()
def population(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE|ARCHIVE...", help="a table of coefficients, or calibrations of several days"),
    ],
    of: Annotated[str, typer.Option(help="platform that gets the population")],
    kernel: Annotated[str, typer.Option(help="kernel that the coefficients are of")] = "dgemm",
    groups: Annotated[int, typer.Option(min=1, max=8, help="groups of nodes, at most")] = 4,
    draw: Annotated[str, typer.Option(help="what a run draws: none, days or nodes-and-days")] = "days",
    mcmc: Annotated[bool, typer.Option("--mcmc", help="also sample the posterior (needs the extra mcmc)")] = False,
    seed: Annotated[int, typer.Option(help="of the sampling")] = 1,
    output: Output = Path("with-population.yaml"),
    force: Force = False,
) -> None:
    """Fit how CPUs differ, and a cpu from day to day, and write a platform whose runs draw it."""
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
    print("\n".join(_population_lines(fitted)))
    if mcmc:
        from lepaute.fit.population.posterior import posterior

        print("\n".join(posterior(data, fitted, seed=seed).lines()))
    dump_platform(drawing, output)
    note(f"wrote {output}")


def _coefficients(sources: list[Path], kernel: str) -> "Coefficients":
    from lepaute.archive import Archive
    from lepaute.fit.population.coefficients import coefficients_of_archives, read_coefficients

    tables = [path for path in sources if path.suffix != ".zip"]
    if not tables:
        return coefficients_of_archives([Archive.open(path) for path in sources], kernel)
    if len(sources) > 1:
        raise InputError(f"{tables[0]}: give one table, or archives (.zip) alone; join tables into one")
    return read_coefficients(tables[0])


def _population_lines(fitted: "Generative") -> list[str]:
    """Of each group the coefficients, how they differ between CPUs and days, and how much CPUs differ in their days."""
    individual = fitted.days.individual if fitted.scales is None else fitted.scales.pooled_typical
    lines = [f"{counted(len(fitted.group_of_node), 'node')}, {counted(len(fitted.groups), 'group')}"]
    for number, group in enumerate(fitted.groups):
        lines.append(f"group {number}: {group.nodes} nodes, {group.units} CPUs")
        low, high = group.interval()
        temporal = individual if group.covariance_temporal is None else group.covariance_temporal
        for at, term in enumerate(fitted.terms):
            common = 0.0 if fitted.days.common is None else fitted.days.common[at, at]
            sd_log = 0.0 if fitted.scales is None else float(fitted.scales.covariance_log[number, at, at]) ** 0.5
            line = (
                f"  {term:<7} {group.theta[at]:.5g}  95 % interval {low[at]:.5g} to {high[at]:.5g}; sd between CPUs "
                f"{group.covariance_spatial[at, at] ** 0.5:.2g}, between days {temporal[at, at] ** 0.5:.2g} own, "
                f"{common**0.5:.2g} common"
            )
            if sd_log > 0.0:
                line += f"; own times {exp(-sd_log):.2g} to {exp(sd_log):.2g} for two thirds of the CPUs"
            lines.append(line)
    return lines + [f"note: {remark}" for remark in fitted.notes]

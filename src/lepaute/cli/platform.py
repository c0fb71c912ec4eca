"""`lepaute platform ...`: shipped platforms, files, and new platforms of data sheets, ping-pongs and populations."""

import re
import sys
from collections.abc import Sequence
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
from lepaute.kit.picture import files_of, picture_files
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
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, folded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lepaute.fit.population.coefficients import Coefficients
    from lepaute.fit.population.generative import Generative, GroupMoments
    from lepaute.platform import Platform

app = App(help="List, show, check, import and export platforms; make new and hypothetical ones.", no_args_is_help=True)

#: What an answer rests on, in so many lines at most.
MOST_FACTS = 5
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
    own = [name for name in names if name not in ALIASES]
    sizes = {name: load_platform(name) for name in own}
    rows = [
        (name, *one_line(sizes[name])) if name in sizes else (name, "", "", f"another name of {ALIASES[name]}")
        for name in names
    ]
    width = terminal_columns(sys.stdout)
    print(folded(f"{counted(len(own), 'platform')}, for -p NAME; or a file of your own machine", width, 2))
    print(shown_table(("name", "nodes", "cores", "what"), rows, width, left=(0, 3)))


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
    """Values that no machine has, what is assumed, and what HPL calls without a model."""
    from lepaute.fit.observations.calls import MODELLED
    from lepaute.platform.plausibility import assumed_values, implausible, unmodelled

    return [*implausible(platform), *assumed_values(platform), *unmodelled(platform, sorted(MODELLED))]


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A platform file (or a shipped name).")],
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Check a platform file: all faults (exit status 2), values that no machine has, kernels that cost nothing."""
    from lepaute.fit.observations.calls import MODELLED
    from lepaute.platform import load_platform
    from lepaute.platform.overview import in_one_line
    from lepaute.platform.plausibility import implausible, unmodelled, without_model
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
    odd = list(implausible(platform))
    free = list(unmodelled(platform, sorted(MODELLED)))
    if as_json:
        print(json_text({"valid": True, "name": platform.name, "sha256": platform.sha256, "warnings": [*odd, *free]}))
        return
    threads = {model.threads for model in platform.kernels} or {1}
    missing = max(len(without_model(platform, MODELLED, each)) for each in threads)
    described = f"platform {in_one_line(platform)}"
    told = [("file", f"sha256 {platform.sha256[:16]}")]
    if 2 * missing > len(MODELLED):  # of the measured platforms a few are missing that take no time
        told.insert(0, ("what", described))
        described = f"but HPL would be predicted too fast: {missing} of the {len(MODELLED)} kernels that it calls have "
        described += "no model and count as 0 s"
    _tell(f"{file}: valid, {described}", told, free, details=details)
    warn(odd)


@app.command("export")
def export_platform(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A platform file, or a shipped platform.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT.xml", help="The file to write.")],
    every_route: Annotated[
        bool, typer.Option("--every-route", help="Write each route, for latencies and shares of links as modelled.")
    ] = False,
    details: Details = False,
    force: Force = False,
) -> None:
    """Write a platform as SimGrid's XML, for SMPI; says what the file does not hold."""
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.simgrid import export_xml, host_name
    from lepaute.simulate.machine.core import wiring

    check_outputs({"--output": output}, inputs=[name], force=force)
    platform = load_platform(name)
    exported = export_xml(platform, wiring(platform), every_route=every_route)
    write_whole(output, exported.text)
    count = platform.nodes.count
    hosts = f"{host_name(platform, 0)}{f' to {host_name(platform, count - 1)}' if count > 1 else ''}"
    lost = [f"{what} not exported: {why}" for what, _, why in (each.partition(": ") for each in exported.lost)]
    _tell(
        f"{output}: {counted(count, 'host')} of platform {platform.name}, {hosts}, each at one speed",
        [],
        lost,
        details=details,
    )


@app.command("import")
def import_platform(
    file: Annotated[Path, typer.Argument(metavar="SIMGRID.xml", help="A platform of SimGrid, calibrated for SMPI.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT.yaml", help="The file to write; default: print it.")
    ] = None,
    details: Details = False,
    force: Force = False,
) -> None:
    """Make a platform of SimGrid's XML; says what of it was ignored."""
    from lepaute.kit.documents import read_bytes
    from lepaute.platform import dump_platform
    from lepaute.platform.io import platform_text
    from lepaute.platform.simgrid import import_xml
    from lepaute.platform.simgrid.machines import LARGEST_TEXT_BYTES

    check_outputs({"--output": output}, inputs=[file], force=force)
    imported = import_xml(read_bytes(file, "a platform file of SimGrid", LARGEST_TEXT_BYTES), str(file))
    if output is None:
        print(platform_text(imported.platform).rstrip("\n"))
        for sentence in imported.notes:
            note(f"{file}: {sentence}")
        return
    dump_platform(imported.platform, output)
    _tell_written(imported.platform, output, details=details, caveats=imported.notes)


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
    threads_per_rank: int = option_field(
        1, "also for ranks of T threads, such as 32: guessed as well", minimum=1, metavar="T"
    )
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
    details: Details = False,
    force: Force = False,
) -> None:
    """Write a platform from a data sheet: what is not given is guessed, marked, and widens the interval."""
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.data_sheet import DataSheet, platform_from, what_is_given
    from lepaute.platform.io import platform_text

    check_outputs({"--output": output}, inputs=[like], force=force)
    sockets, per_socket = sheet.cores
    if sheet.threads_per_rank > sockets * per_socket:
        raise InputError(f"--threads-per-rank is {sheet.threads_per_rank}; a node has {sockets * per_socket} cores")
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
        threads=sheet.threads_per_rank,
        memory_Bps=sheet.memory_bandwidth,
        blas=sheet.blas,
        simd=sheet.simd,
        clock=sheet.clock,
        fabric=sheet.fabric,
        name=sheet.name or output.stem or "data-sheet",
    )
    platform = platform_from(data, load_platform(like))
    write_whole(output, platform_text(platform))
    _tell_written(platform, output, details=details, more=[("given", ", ".join(what_is_given(data)))])


def _tell_written(
    platform: "Platform",
    output: Path,
    *,
    details: bool,
    more: Sequence[tuple[str, str]] = (),
    caveats: Sequence[str] = (),
    headline: str = "",
) -> None:
    """A platform that was written: a headline, or a line as `show` has it; what else is to be said, and its doubts."""
    from lepaute.platform.overview import facts, in_one_line
    from lepaute.platform.plausibility import implausible

    of_platform = dict(facts(platform))
    wanted = ("assumed", "between", "inside", "network", "nodes")
    given = {name for name, _ in more}
    told = [*more, *((name, of_platform[name]) for name in wanted if name in of_platform and name not in given)]
    odd = list(implausible(platform))
    doubts = [*(each for each in _doubts(platform) if each not in odd), *caveats]
    if details:
        doubts += [f"{each.text}: {each.source}" for each in platform.assumed or ()]
    answer = headline or f"platform {in_one_line(platform)}"
    _tell(f"{output}: {answer}", told[:MOST_FACTS], doubts, details=details)
    warn(odd)  # a slip of a unit, which is no caveat


def _tell(answer: str, facts: Sequence[tuple[str, str]], caveats: Sequence[str], *, details: bool) -> None:
    """The answer, what it rests on, and its caveats: in one line, or with details a line each."""
    width = terminal_columns(sys.stdout)
    if details:
        rest = [*(f"  {name}: {text}" for name, text in facts), *(f"warning: {caveat}" for caveat in caveats)]
        print(details_text(answer, "\n".join(rest), width))
    else:
        print(answer_text(answer, facts, caveats, width))


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
    details: Details = False,
    force: Force = False,
) -> None:
    """Put ping-pongs of the OSU or Intel benchmarks, or of CSV, into a platform: its messages between or in nodes.

    `lepaute segment FILE` shows the lines that are taken.
    """
    from lepaute.fit import segment
    from lepaute.fit.duration_tables import read_durations
    from lepaute.fit.ping_pongs import ping_pong_of, with_ping_pong
    from lepaute.fit.segment_report import sentence
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.io import parse_platform, platform_text
    from lepaute.platform.overview import facts

    files = [(file, inside) for file, inside in ((between, False), (within, True)) if file is not None]
    if not files:
        raise InputError("give a ping-pong: --between two nodes, --within one, or both")
    check_outputs({"--output": output}, inputs=[name, *(file for file, _ in files)], force=force)
    platform = load_platform(name)
    eager_bytes = None if eager is None else size_of(eager, "--eager")
    told: list[tuple[str, str]] = []
    remarks: list[str] = []
    for file, inside in files:
        table = ping_pong_of(read_durations(file, x=x or None, y=y or None, unit=unit or None), file)
        line = segment(table.x, table.duration_s)
        platform = with_ping_pong(platform, line, source=file.name, within=inside, eager_bytes=eager_bytes)
        told.append(("within" if inside else "between", f"{file.name}: {sentence(table, line).rstrip('.')}"))
        remarks += [f"{file}: {remark}" for remark in (*table.notes, *line.notes)]
    text = platform_text(platform.model_copy(update={"name": output.stem}))
    platform = parse_platform(text, str(output))
    write_whole(output, text)
    known, (file, inside) = dict(facts(platform)), files[0]
    measured = known["inside" if inside else "between"].partition(";")[0]
    headline = f"{name} with the messages of {' and '.join(each.name for each, _ in files)}: {measured}"
    _tell_written(platform, output, details=details, more=told, caveats=remarks, headline=headline)


@app.command()
def synthesize(
    nodes: Annotated[int, typer.Option(help="nodes of the cluster")],
    like: Annotated[
        str, typer.Option(help="platform; without a population, its CPUs differ by a factor on dgemm")
    ] = "dahu",
    spatial: Annotated[str, typer.Option(help="factor of standard deviations between CPUs, such as 2x or 0.5")] = "1",
    temporal: Annotated[str, typer.Option(help="factor of standard deviations between days, such as 2x or 0")] = "1",
    seed: Annotated[int, typer.Option(help="the same seed, the same cluster")] = 1,
    threads: Annotated[
        int,
        typer.Option(
            "--threads-per-rank", min=1, metavar="T", help="for ranks of T threads; guessed where --like has no models"
        ),
    ] = 1,
    output: Output = Path("synthetic.yaml"),
    details: Details = False,
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
        threads=threads,
    )
    dump_platform(cluster, output)
    drawn = f"of the population of {platform.name}, spatial {spatial}, temporal {temporal}, seed {seed}"
    odd = list(synthesis.odd_cpus(cluster))
    _tell_written(cluster, output, details=details, more=[("drawn", drawn)], caveats=odd)


@app.command()
def population(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE|ARCHIVE...", help="a table of coefficients, or calibrations of several days"),
    ],
    of: Annotated[str, typer.Option(help="platform that gets the population")],
    kernel: Annotated[str, typer.Option(help="kernel that the coefficients are of")] = "dgemm",
    threads: Annotated[
        int, typer.Option("--threads-per-rank", min=1, metavar="T", help="threads that ran a call of the table")
    ] = 1,
    groups: Annotated[int, typer.Option(min=1, max=8, help="groups of nodes, at most")] = 4,
    draw: Annotated[str, typer.Option(help="what a run draws: none, days or nodes-and-days")] = "days",
    mcmc: Annotated[bool, typer.Option("--mcmc", help="also sample the posterior (needs the extra mcmc)")] = False,
    seed: Annotated[int, typer.Option(help="of the sampling")] = 1,
    output: Output = Path("with-population.yaml"),
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="picture of pairs of coefficients and the groups, .png or .svg")
    ] = None,
    details: Details = False,
    force: Force = False,
) -> None:
    """Fit how CPUs differ, and a cpu from day to day, and write a platform whose runs draw it."""
    from lepaute.fit.population.generative import generative
    from lepaute.fit.population.plot import finding, plot_population
    from lepaute.platform import dump_platform, load_platform
    from lepaute.platform.io import with_population

    check_outputs({"--output": output, "--plot": files_of(plot)}, inputs=[*sources, of], force=force)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", kernel):
        raise InputError(f"--kernel is {kernel[:80]!r}; it is the name of a kernel, such as dgemm")
    platform = load_platform(of)
    data = _coefficients(sources, kernel)
    fitted = generative(data, most_groups=groups)
    drawing = with_population(platform, fitted.population(kernel).model_dump() | {"draw": draw, "threads": threads})
    rest = _population_lines(fitted) if details else []
    if mcmc:
        from lepaute.fit.population.posterior import posterior

        rest += posterior(data, fitted, seed=seed).lines()
    dump_platform(drawing, output)
    answer = "; ".join(finding(fitted, kernel).split("\n"))  # as the picture has it
    _tell(f"{output}: {answer}", _group_facts(fitted), fitted.notes, details=details)
    for line in rest:
        print(folded(line, terminal_columns(sys.stdout), 4))
    if plot is not None:
        names = ", ".join(path.name for path in sources)
        plot_population(data, fitted, kernel, plot, source=names if len(sources) < 4 else f"{len(sources)} archives")
        note(f"wrote {' and '.join(map(str, picture_files(plot)))}")


def _coefficients(sources: list[Path], kernel: str) -> "Coefficients":
    from lepaute.archive import Archive
    from lepaute.fit.population.coefficients import coefficients_of_archives, read_coefficients

    tables = [path for path in sources if path.suffix != ".zip"]
    if not tables:
        return coefficients_of_archives([Archive.open(path) for path in sources], kernel)
    if len(sources) > 1:
        raise InputError(f"{tables[0]}: give one table, or archives (.zip) alone; join tables into one")
    return read_coefficients(tables[0])


def _group_facts(fitted: "Generative") -> list[tuple[str, str]]:
    """Of each group how many, and its first coefficient."""
    told = []
    for number, group in enumerate(fitted.groups):
        low, high = group.interval()
        size = f"{counted(group.nodes, 'node')}, {counted(group.units, 'CPU')}"
        mean = f"{fitted.terms[0]} {group.theta[0]:.4g} s (95 %: {low[0]:.4g} to {high[0]:.4g} s)"
        told.append((f"group {number}", f"{size}; {mean}"))
    return told[:MOST_FACTS]


def _temporal(fitted: "Generative", group: "GroupMoments") -> "npt.NDArray[np.float64]":
    """How the CPUs of a group differ from day to day, each on its own."""
    if group.covariance_temporal is not None:
        return group.covariance_temporal
    return fitted.days.individual if fitted.scales is None else fitted.scales.pooled_typical


def _population_lines(fitted: "Generative") -> list[str]:
    """Of each group the coefficients, how they differ between CPUs and days, and how much CPUs differ in their days."""
    lines = []
    for number, group in enumerate(fitted.groups):
        lines.append(f"group {number}: {counted(group.nodes, 'node')}, {counted(group.units, 'CPU')}")
        low, high = group.interval()
        temporal = _temporal(fitted, group)
        for at, term in enumerate(fitted.terms):
            common = 0.0 if fitted.days.common is None else fitted.days.common[at, at]
            sd_log = 0.0 if fitted.scales is None else float(fitted.scales.covariance_log[number, at, at]) ** 0.5
            line = (
                f"  {term:<7} {group.theta[at]:.5g} (95 %: {low[at]:.5g} to {high[at]:.5g}); sd between CPUs "
                f"{group.covariance_spatial[at, at] ** 0.5:.2g}, between days {temporal[at, at] ** 0.5:.2g} own, "
                f"{common**0.5:.2g} common"
            )
            if sd_log > 0.0:
                line += f"; own times {exp(-sd_log):.2g} to {exp(sd_log):.2g} for two thirds of the CPUs"
            lines.append(line)
    return lines

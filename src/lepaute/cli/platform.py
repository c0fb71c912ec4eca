"""`lepaute platform list | show | check | new | messages | import | export | synthesize | population`."""

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import Force
from lepaute.cli.platform_population import population, synthesize
from lepaute.cli.simulation import platform_names
from lepaute.kit.outputs import check_outputs


def new(
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="nodes of the cluster")],
    cores: Annotated[str, typer.Option("--cores", metavar="SxC", help="sockets x cores of each, such as 2x24, or 24")],
    dgemm: Annotated[
        str | None,
        typer.Option("--dgemm", metavar="RATE", help="flop/s of a core in dgemm while all cores compute, such as 45G"),
    ] = None,
    peak: Annotated[
        str | None,
        typer.Option(
            "--peak", metavar="RATE", help="nominal flop/s of a core; without --dgemm, 75 % of it are assumed"
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option("--link", metavar="RATE", help="link of a node, such as 100Gb (bits) or 12.5GB (bytes)"),
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option("--latency", metavar="TIME", help="small message between nodes, half a round trip: 1.5us"),
    ] = None,
    fat_tree: Annotated[
        str | None,
        typer.Option(
            "--fat-tree", metavar="DOWN:UP", help="nodes per uplink of a leaf switch: 2:1; without: one switch"
        ),
    ] = None,
    leaf: Annotated[int | None, typer.Option("--leaf", min=1, help="nodes of a leaf switch of the fat tree")] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="of a node, such as 192G")] = None,
    threads: Annotated[
        int,
        typer.Option("--threads", metavar="T", min=1, help="also for ranks of T threads, such as 32: guessed as well"),
    ] = 1,
    memory_bandwidth: Annotated[
        str | None,
        typer.Option("--memory-bandwidth", metavar="RATE", help="of a node, all cores at once: 200GB; for emulations"),
    ] = None,
    like: Annotated[
        str, typer.Option("--like", help="platform of the measured core whose small kernels are scaled by dgemm")
    ] = "dahu",
    name: Annotated[str | None, typer.Option("--name", help="of the platform; default: that of the file")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "data-sheet.yaml"
    ),
    force: Force = False,
) -> None:
    """Write a platform from a data sheet: what is not given is guessed, marked, and widens the interval."""
    from lepaute.errors import InputError
    from lepaute.kit.files import write_whole
    from lepaute.kit.quantities import product_of
    from lepaute.kit.rates import bandwidth_of, flops_of, memory_of, ratio_of, seconds_of
    from lepaute.platform import load_platform
    from lepaute.platform.data_sheet import DataSheet, platform_from, what_is_given
    from lepaute.platform.io import platform_text
    from lepaute.platform.plausibility import implausible

    check_outputs({"--output": output}, inputs=[like], force=force)
    if re.fullmatch("[0-9]+(?:[xX][0-9]+)?", cores, re.ASCII) is None:
        raise InputError(f"--cores is {cores[:80]!r}; it must be sockets x cores such as 2x24, or cores such as 24")
    sockets, per_socket = product_of(cores if "x" in cores.lower() else f"1x{cores}", "--cores", "S x C such as 2x24")
    if min(sockets, per_socket) < 1:
        raise InputError(f"--cores is {cores!r}; a node has at least one core")
    if threads > sockets * per_socket:
        raise InputError(f"--threads is {threads}; a node has {sockets * per_socket} cores")
    if leaf is not None and fat_tree is None:
        raise InputError("--leaf is of a fat tree; give --fat-tree too, such as 2:1")
    sheet = DataSheet(
        nodes=nodes,
        sockets=sockets,
        cores_per_socket=per_socket,
        dgemm_flops=None if dgemm is None else flops_of(dgemm, "--dgemm"),
        peak_flops=None if peak is None else flops_of(peak, "--peak"),
        link_Bps=None if link is None else bandwidth_of(link, "--link"),
        latency_s=None if latency is None else seconds_of(latency, "--latency"),
        fat_tree=None if fat_tree is None else ratio_of(fat_tree, "--fat-tree"),
        leaf=leaf,
        memory_bytes=None if memory is None else memory_of(memory, "--memory"),
        threads=threads,
        memory_Bps=None if memory_bandwidth is None else bandwidth_of(memory_bandwidth, "--memory-bandwidth"),
        name=name or output.stem or "data-sheet",
    )
    platform = platform_from(sheet, load_platform(like))
    write_whole(output, platform_text(platform))
    print(f"{output}: platform {platform.name}: {', '.join(what_is_given(sheet))}")
    for assumption in platform.assumed or ():
        print(f"assumed: {assumption.text}: {assumption.source}", file=sys.stderr)
    for sentence in implausible(platform):
        print(f"warning: {sentence}", file=sys.stderr)


def messages(
    name: Annotated[str, typer.Argument(metavar="PLATFORM", help="a platform file, or the name of a shipped one")],
    between: Annotated[
        Path | None, typer.Option("--between", metavar="FILE", help="ping-pong of two nodes: OSU, Intel, or CSV")
    ] = None,
    within: Annotated[
        Path | None, typer.Option("--within", metavar="FILE", help="ping-pong of two ranks of one node")
    ] = None,
    eager: Annotated[
        str | None,
        typer.Option(
            "--eager", metavar="SIZE", help="largest eager message of the MPI library; default: the largest jump"
        ),
    ] = None,
    unit: Annotated[
        str, typer.Option("--unit", metavar="UNIT", help="of the durations where a file tells none: s, ms, us, ns")
    ] = "",
    x: Annotated[str, typer.Option("--x", metavar="COLUMN", help="of CSV: the column of sizes")] = "",
    y: Annotated[str, typer.Option("--y", metavar="COLUMN", help="the column of half round trips")] = "",
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "with-messages.yaml"
    ),
    force: Force = False,
) -> None:
    """Put ping-pongs of the OSU or Intel benchmarks, or of CSV, into a platform: its messages between or in nodes.

    `lepaute segment FILE` shows the lines that are taken.
    """
    from lepaute.cli.segment_text import sentence
    from lepaute.errors import InputError
    from lepaute.fit import segment
    from lepaute.fit.duration_tables import read_durations
    from lepaute.fit.ping_pongs import ping_pong_of, with_ping_pong
    from lepaute.kit.files import write_whole
    from lepaute.kit.quantities import size_of
    from lepaute.platform import load_platform
    from lepaute.platform.io import parse_platform, platform_text
    from lepaute.platform.plausibility import implausible

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
        for note in (*table.notes, *line.notes):
            print(f"{file}: {note}", file=sys.stderr)
    platform = platform.model_copy(update={"name": output.stem})
    text = platform_text(platform)
    platform = parse_platform(text, str(output))
    write_whole(output, text)
    print(f"{output}: platform {platform.name}")
    for assumption in platform.assumed or ():
        print(f"assumed: {assumption.text}: {assumption.source}", file=sys.stderr)
    for warning in implausible(platform):
        print(f"warning: {warning}", file=sys.stderr)


app = typer.Typer(
    help="List, show, check, import and export platforms; make new and hypothetical ones.", no_args_is_help=True
)


Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.command("list")
def list_platforms(as_json: Json = False) -> None:
    """List the platforms shipped with Lepaute."""
    from lepaute.platform import load_platform, shipped_names
    from lepaute.platform.io import ALIASES
    from lepaute.platform.summary import facts_in_short, one_line

    if as_json:
        listed = [
            {"name": name, "alias_of": ALIASES.get(name), **facts_in_short(load_platform(name))}
            for name in shipped_names()
        ]
        print(json.dumps({"platforms": listed}, indent=1))
        return
    width = max(len(name) for name in shipped_names())
    for name in shipped_names():
        meaning = f"alias of {ALIASES[name]}" if name in ALIASES else one_line(load_platform(name))
        print(f"{name:<{width}}  {meaning}")


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A shipped platform, or a platform file.", autocompletion=platform_names),
    ],
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print the platform file itself.")] = False,
    as_json: Json = False,
) -> None:
    """Show a platform: nodes, kernel models, network, sources."""
    from lepaute.errors import InputError
    from lepaute.platform import load_platform
    from lepaute.platform.io import platform_text
    from lepaute.platform.summary import summary

    if as_json and as_yaml:
        raise InputError("give either --json or --yaml")
    platform = load_platform(name)
    if as_json:  # the fields of the file, and what identifies it
        print(json.dumps({"sha256": platform.sha256, **platform.model_dump(mode="json", exclude_none=True)}, indent=1))
        return
    print(platform_text(platform).rstrip("\n") if as_yaml else summary(platform))


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A platform file (or a shipped name).")],
    as_json: Json = False,
) -> None:
    """Check a platform file: all faults (exit status 2), values that no machine has, kernels that cost nothing."""
    from lepaute.cli.entry import BAD_INPUT, complain
    from lepaute.errors import PlatformError
    from lepaute.fit.observations.calls import MODELLED
    from lepaute.platform import load_platform
    from lepaute.platform.plausibility import implausible, unmodelled
    from lepaute.simulate.topology import core_topology

    try:
        platform = load_platform(file)
    except PlatformError as error:
        for line in error.faults:
            complain(line)
        if as_json:
            print(json.dumps({"valid": False, "faults": list(error.faults)}, indent=1))
        raise typer.Exit(BAD_INPUT) from None
    core_topology(platform)  # refuses names of parts that are not there, and nodes that nothing joins
    warnings = [*implausible(platform), *unmodelled(platform, sorted(MODELLED))]
    if as_json:
        facts = {"valid": True, "name": platform.name, "sha256": platform.sha256, "warnings": warnings}
        print(json.dumps(facts, indent=1))
        return
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    found = f"; {len(warnings)} warning{'s' * (len(warnings) > 1)}" if warnings else ""
    print(f"{file}: platform {platform.name} is valid, sha256 {platform.sha256}{found}")


@app.command("export")
def export_platform(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A platform file, or a shipped platform.")],
    simgrid: Annotated[Path, typer.Option("--simgrid", metavar="OUT.xml", help="The file to write.")],
    every_route: Annotated[
        bool, typer.Option("--every-route", help="Write each route, for latencies and shares of links as modelled.")
    ] = False,
    force: Force = False,
) -> None:
    """Write a platform as SimGrid's XML, for SMPI; says on standard error what the file does not hold."""
    from lepaute.kit.files import write_whole
    from lepaute.platform import load_platform
    from lepaute.platform.simgrid import export_xml, host_name
    from lepaute.simulate.topology import wiring

    check_outputs({"--simgrid": simgrid}, inputs=[name], force=force)
    platform = load_platform(name)
    exported = export_xml(platform, wiring(platform), every_route=every_route)
    write_whole(simgrid, exported.text)
    for sentence in exported.lost:
        print(f"not exported: {sentence}", file=sys.stderr)
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
    from lepaute.platform.simgrid.reading import LARGEST_TEXT_BYTES

    check_outputs({"--output": output}, inputs=[file], force=force)
    imported = import_xml(read_bytes(file, "a platform file of SimGrid", LARGEST_TEXT_BYTES), str(file))
    for sentence in imported.notes:
        print(f"{file}: {sentence}", file=sys.stderr)
    if output is None:
        print(platform_text(imported.platform).rstrip("\n"))
        return
    dump_platform(imported.platform, output)
    print(f"{output}: platform {imported.platform.name}, {imported.platform.nodes.count} nodes")


app.command()(new)
app.command()(messages)
app.command()(synthesize)
app.command()(population)

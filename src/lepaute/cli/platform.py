"""`lepaute platform list | show | check | new | messages | import | export | synthesize | population`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.output_options import Force
from lepaute.cli.platform_messages import messages
from lepaute.cli.platform_new import new
from lepaute.cli.platform_population import population, synthesize
from lepaute.cli.simulation_options import platform_names
from lepaute.kit.outputs import check_outputs

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

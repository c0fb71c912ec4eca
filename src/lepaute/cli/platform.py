"""`lepaute platform ...`: shipped platforms, files, and SimGrid's; `platform_making` has those that make new ones."""

from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli import platform_combine, platform_making
from lepaute.cli.entry import BAD_INPUT, complain
from lepaute.cli.options import TELLS_OF_A_FILE, App, AsJson, Details, Force, argument, option
from lepaute.cli.platform_making import doubts, tell_written
from lepaute.cli.simulation import platform_names
from lepaute.cli.terminal import answer_text, details_text, json_text, note, say, tell, warn
from lepaute.errors import InputError, PlatformError
from lepaute.kit.documents import read_bytes
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of, picture_files
from lepaute.kit.printable import terminal_columns
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted
from lepaute.simulate.machine.core import core_topology, wiring
from lepaute.simulate.platform import load_platform, shipped_names
from lepaute.simulate.platform.group_picture import draw_platform
from lepaute.simulate.platform.io import ALIASES
from lepaute.simulate.platform.plausibility import implausible, unmodelled, without_model
from lepaute.simulate.platform.schema import platform_text
from lepaute.simulate.platform.summary import facts, in_one_line, one_line, summary

app = App(help="List, show, check, import and export platforms; make new and hypothetical ones.", no_args_is_help=True)


@app.command("list")
def list_platforms(as_json: AsJson = False) -> None:
    """List the platforms shipped with Lepaute."""
    names = shipped_names()
    if as_json:
        listed = [
            {"name": name, "alias_of": ALIASES.get(name), **load_platform(name).facts_in_short()} for name in names
        ]
        print(json_text({"platforms": listed}))
        return
    platforms = [name for name in names if name not in ALIASES]
    rows = []
    for name in platforms:
        aliases = ", ".join(alias for alias in names if ALIASES.get(alias) == name)
        rows.append((f"{name} ({aliases})" if aliases else name, *one_line(load_platform(name))))
    width = terminal_columns()
    say(f"{counted(len(platforms), 'platform')}, for -p NAME; or a file of your own machine")
    print(shown_table(("name", "nodes", "cores a node", "what"), rows, width, left=(0, 3)))


@app.command()
def show(
    name: Annotated[str, argument("NAME", "A shipped platform, or a platform file.", autocompletion=platform_names)],
    as_yaml: Annotated[bool, option("Print the platform file itself.", "--yaml")] = False,
    plot: Annotated[Path | None, option("picture of nodes and links, .png, .svg", metavar="FILE")] = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Show a platform: nodes, kernel models, network, sources."""
    if as_json and as_yaml:
        raise InputError("give either --json or --yaml")
    check_outputs({"--plot": files_of(plot)}, inputs=[name], force=force)
    platform = load_platform(name)
    if plot is not None:
        draw_platform(platform, plot)
        note(f"wrote {' and '.join(map(str, picture_files(plot)))}")
    if as_json:  # the fields of the file, and what identifies it
        print(json_text({"sha256": platform.sha256, **platform.model_dump(mode="json", exclude_none=True)}))
        return
    if as_yaml:
        print(platform_text(platform).rstrip("\n"))
        return
    width = terminal_columns()
    if details:
        print(details_text(in_one_line(platform), summary(platform), width))
    else:
        print(answer_text(in_one_line(platform), facts(platform), doubts(platform), width))


@app.command()
def check(
    file: Annotated[str, argument("FILE", "A platform file (or a shipped name).")],
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Check a platform file: all faults (exit status 2), values that no machine has, kernels that cost nothing."""
    from lepaute.measure.fit.observations.calls import MODELLED

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
    missing = max(len(without_model(platform, MODELLED, count)) for count in threads)
    described = f"platform {in_one_line(platform)}"
    about = [("file", f"sha256 {platform.sha256[:16]}")]
    if 2 * missing > len(MODELLED):  # of the measured platforms a few are missing that take no time
        about.insert(0, ("what", described))
        described = f"but HPL would be predicted too fast: {missing} of the {len(MODELLED)} kernels that it calls have "
        described += "no model and count as 0 s"
    tell(f"{file}: valid, {described}", about, free, details=details)
    warn(odd)


@app.command("export")
def export_platform(
    name: Annotated[str, argument("FILE", "A platform file, or a shipped platform.")],
    output: Annotated[Path, option("The file to write.", "-o", "--output", metavar="OUT.xml")],
    every_route: Annotated[bool, option("Write each route: latencies and links as modelled.", "--every-route")] = False,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Write a platform as SimGrid's XML, for SMPI; says what the file does not hold."""
    from lepaute.simulate.platform.simgrid import export_xml, host_name

    check_outputs({"--output": output}, inputs=[name], force=force)
    platform = load_platform(name)
    exported = export_xml(platform, wiring(platform), every_route=every_route)
    write_atomic(output, exported.text)
    count = platform.nodes.count
    hosts = f"{host_name(platform, 0)}{f' to {host_name(platform, count - 1)}' if count > 1 else ''}"
    lost = [f"{what} not exported: {why}" for what, _, why in (each.partition(": ") for each in exported.lost)]
    ends = {"first_host": host_name(platform, 0), "last_host": host_name(platform, count - 1)}
    document = {"output": str(output), "hosts": count, **ends, "name": platform.name, "sha256": platform.sha256}
    tell(
        f"{output}: {counted(count, 'host')} of platform {platform.name}, {hosts}, each at one speed",
        [],
        lost,
        details=details,
        document=document if as_json else None,
    )


@app.command("import")
def import_platform(
    file: Annotated[Path, argument("SIMGRID.xml", "A platform of SimGrid, calibrated for SMPI.")],
    output: Annotated[
        Path | None, option("File to write; else it is printed.", "-o", "--output", metavar="OUT.yaml")
    ] = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Make a platform of SimGrid's XML; says what of it was ignored."""
    from lepaute.simulate.platform.simgrid import import_xml
    from lepaute.simulate.platform.simgrid.machines import LARGEST_TEXT_BYTES

    if as_json and output is None:
        raise InputError(f"--json {TELLS_OF_A_FILE}")
    check_outputs({"--output": output}, inputs=[file], force=force)
    imported = import_xml(read_bytes(file, "a platform file of SimGrid", LARGEST_TEXT_BYTES), str(file))
    if output is None:
        print(platform_text(imported.platform).rstrip("\n"))
        for sentence in imported.notes:
            note(f"{file}: {sentence}")
        return
    imported.platform.to_yaml(output)
    tell_written(imported.platform, output, details=details, as_json=as_json, caveats=imported.notes)


_MAKING = (platform_making.new, platform_making.messages, platform_making.synthesize, platform_making.population)
for _make in (*_MAKING, platform_combine.combine):
    app.command()(_make)

"""`lepaute platform messages`: a platform with the messages of ping-pongs that another benchmark has measured."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.output_options import Force
from lepaute.kit.outputs import check_outputs


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

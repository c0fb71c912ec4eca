"""`lepaute platform new`: a platform from a data sheet."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.output_options import Force
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

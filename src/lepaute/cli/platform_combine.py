"""`lepaute platform combine`: one platform of several, with a group of nodes for each."""

from pathlib import Path
from typing import Annotated

from lepaute.cli.options import AsJson, Details, Force, argument, option
from lepaute.cli.platform_making import tell_written
from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs
from lepaute.kit.quantities import count_of
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.combining import combined


def combine(
    platforms: Annotated[list[str], argument("PLATFORM...", "platforms of like nodes, two or more")],
    nodes: Annotated[str | None, option("nodes of each; default: as many as each has", metavar="N,N,...")] = None,
    output: Annotated[Path, option("platform to write", "-o", "--output", metavar="FILE")] = Path("combined.yaml"),
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Make one platform of several: a group of nodes for each, with its kernels, cores, memory, links and power.

    Network, days and states are those of the platform with the widest links; what differs is named.
    """
    check_outputs({"--output": output}, inputs=platforms, force=force)
    counts = None if nodes is None else [count_of(text.strip(), "--nodes") for text in nodes.split(",")]
    if counts is not None and 0 in counts:
        raise InputError(f"--nodes is {nodes}; each platform gives 1 node or more: leave out those that give none")
    platform, notes = combined([load_platform(name) for name in platforms], output.stem, counts)
    platform.to_yaml(output)
    tell_written(platform, output, details=details, as_json=as_json, caveats=notes)

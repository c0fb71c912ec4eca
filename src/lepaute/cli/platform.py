"""`lepaute platform list | show NAME | check FILE`."""

from typing import Annotated

import typer

app = typer.Typer(help="List, show and check platforms.", no_args_is_help=True)


@app.command("list")
def list_platforms() -> None:
    """List the platforms shipped with Lepaute."""
    from lepaute.platform import load_platform, shipped_names
    from lepaute.platform.io import ALIASES
    from lepaute.platform.summary import one_line

    width = max(len(name) for name in shipped_names())
    for name in shipped_names():
        meaning = f"means {ALIASES[name]}" if name in ALIASES else one_line(load_platform(name))
        typer.echo(f"{name:<{width}}  {meaning}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A shipped platform, or a platform file.")],
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print the platform file itself.")] = False,
) -> None:
    """Show a platform: nodes, kernel models, network, sources."""
    from lepaute.platform import load_platform
    from lepaute.platform.io import platform_text
    from lepaute.platform.summary import summary

    platform = load_platform(name)
    typer.echo(platform_text(platform).rstrip("\n") if as_yaml else summary(platform))


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A platform file (or a shipped name).")],
) -> None:
    """Check a platform file; exit status 2 and one line on what is wrong where it is not one."""
    from lepaute.platform import load_platform
    from lepaute.simulate.topology import core_topology

    platform = load_platform(file)
    core_topology(platform)  # refuses names of parts that are not there, and nodes that nothing joins
    typer.echo(f"{file}: platform {platform.name} is complete, sha256 {platform.sha256}")

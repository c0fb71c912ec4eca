"""`lepaute archive`: what an archive holds, and whether it is whole."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Show and verify archives of measurements.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The .zip that a campaign wrote.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.command()
def show(file: File, as_json: Json = False) -> None:
    """Prints the archive's id, its metadata and its members; the archive is verified first."""
    import json

    from lepaute.archive import Archive

    archive = Archive.open(file)
    members = archive.members()
    if as_json:
        sizes = {name: {"sha256": member.sha256, "size_bytes": member.size_bytes} for name, member in members.items()}
        print(json.dumps({"id": archive.id, "metadata": archive.metadata, "members": sizes}, indent=1))
        return
    print(f"id  {archive.id}")
    for key, value in sorted(archive.metadata.items()):
        print(f"{key}: {value if isinstance(value, str) else json.dumps(value)}")
    print(f"{len(members)} members:")
    for name, member in members.items():
        print(f"  {member.size_bytes:>10}  {name}")


@app.command()
def verify(file: File) -> None:
    """Checks every byte of the archive against its seal and its manifest; exit status 2 where they differ."""
    from lepaute.archive import Archive

    archive = Archive.open(file)
    partial = " (partial: its campaign was interrupted)" if archive.metadata.get("partial") else ""
    print(f"{file}: whole, {len(archive.members())} members, id {archive.id}{partial}")

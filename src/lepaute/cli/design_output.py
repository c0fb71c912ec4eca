"""Options that all commands of `lepaute design` share, and where their table goes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.design import Design

Seed = Annotated[int, typer.Option(help="The same seed gives the same table, byte for byte.", min=0)]


def _checked(out: Path | None) -> Path | None:
    check_outputs({"--output": out})
    return out


Out = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        "--out",
        help="File to write; standard output unless given.",
        show_default=False,
        callback=_checked,
    ),
]


def write(design: "Design", out: Path | None) -> None:
    """Writes the table to a file, or prints it."""
    if out is None:
        import sys

        # Names and texts are in UTF-8 in a file, so also here, whatever the terminal's encoding.
        sys.stdout.flush()
        getattr(sys.stdout, "reconfigure", lambda **_: None)(encoding="utf-8")
        print(design.to_csv(), end="")
    else:
        from lepaute.design import write_design

        write_design(design, out)

"""Options that all commands of `lepaute design` share, and where their table goes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import FORCE_HELP
from lepaute.kit.options import option
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.design import Design

Seed = Annotated[int, typer.Option(help="The same seed gives the same table, byte for byte.", min=0)]


@dataclass(frozen=True)
class Table:
    """Where the table goes; raises InputError where that cannot be, before it is made."""

    output: Path | None = field(
        default=None, metadata=option("file to write; standard output unless given", also=("-o", "--out"))
    )
    force: bool = field(default=False, metadata=option(FORCE_HELP))

    def __post_init__(self) -> None:
        check_outputs({"--output": self.output}, force=self.force)

    def write(self, design: "Design") -> None:
        """Writes the file, or prints it."""
        if self.output is None:
            import sys

            # Names and texts are in UTF-8 in a file, so also here, whatever the terminal's encoding.
            sys.stdout.flush()
            getattr(sys.stdout, "reconfigure", lambda **_: None)(encoding="utf-8")
            print(design.to_csv(), end="")
        else:
            from lepaute.design import write_design

            write_design(design, self.output)

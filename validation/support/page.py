"""Generated sections of a page of documentation, and files that are written whole or not at all."""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.kit import files
from lepaute.kit.picture import entitle, measured_origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file whole, and the folder that it is in where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, data)


def replace_section(page: Path, name: str, text: str) -> None:
    """Puts `text` between the markers of section `name` of a Markdown page; appends the section where it is new.

    The markers are comments: <!-- begin NAME ... --> and <!-- end NAME -->; what stands outside is left as it is.
    """
    old = page.read_text(encoding="utf-8") if page.is_file() else ""
    begin, end = f"<!-- begin {name}: generated, do not edit -->", f"<!-- end {name} -->"
    section = f"{begin}\n{text.strip()}\n{end}"
    pattern = re.compile(rf"<!-- begin {re.escape(name)}\b.*?<!-- end {re.escape(name)} -->", re.DOTALL)
    if pattern.search(old):
        new = pattern.sub(lambda _: section, old, count=1)
    else:
        new = f"{old.rstrip()}\n\n{section}\n" if old.strip() else f"{section}\n"
    write_whole(page, new.encode())


def save_figure(figure: "Figure", path: Path, finding: str, source: str) -> None:
    """A figure with a constrained layout as a PNG: the finding on top, at the foot what it was drawn from.

    Legends of the figure itself are "outside lower". Without a date, so that the same figure gives the same file.
    """
    entitle(figure, finding, measured_origin(source))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120, metadata={"Software": None, "Title": finding.replace("\n", " ")})
    write_whole(path, buffer.getvalue())

"""A comparison on disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.files import check_output, write_whole
from lepaute.report import files

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison

#: What a report can be, by the end of its name.
KINDS = {
    ".html": "a page",
    ".json": "all data",
    ".csv": "the rows",
    ".tex": "a table",
    ".png": "a figure",
    ".svg": "a figure",
    ".pdf": "a figure",
}


def check_name(path: Path) -> None:
    """Raises InputError where the name of a report does not say which kind it is."""
    if path.suffix.lower() not in KINDS:
        kinds = ", ".join(f"{suffix} ({what})" for suffix, what in KINDS.items())
        raise InputError(f"{path}: the name of a report must end in one of {kinds}")


def write_report(found: "Comparison", path: str | Path) -> None:
    """Writes a comparison as what the end of the name says, see KINDS.

    Raises InputError for another suffix or a folder that is not there.
    """
    path = Path(path)
    check_name(path)
    suffix = path.suffix.lower()
    if suffix in files.SUFFIXES:
        files.write_report(path, lambda: _page(found), lambda: _content(found))
        return
    from lepaute.compare.report import paper

    check_output(path)
    if suffix in paper.PICTURES:
        paper.write_picture(found, path)
    else:
        write_whole(path, paper.csv_text(found) if suffix == ".csv" else paper.latex_table(found))


def _page(found: "Comparison") -> str:
    from lepaute.compare.report.page import page

    return page(found)


def _content(found: "Comparison") -> dict[str, Any]:
    from lepaute.compare.report.ways import changed_rows, other_ways

    return {**found.to_dict(), "rows_that_depend_on_the_summary": changed_rows(found, other_ways(found))}

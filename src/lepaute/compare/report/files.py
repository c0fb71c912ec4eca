"""A comparison on disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.report import files

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison


def write_report(found: "Comparison", path: str | Path) -> None:
    """Writes a comparison: a page where the name ends in .html, an object of the same content where it ends in .json.

    Raises InputError for another suffix or a folder that is not there.
    """

    def as_page() -> str:
        from lepaute.compare.report.page import page

        return page(found)

    def content() -> dict[str, Any]:
        from lepaute.compare.report.ways import changed_rows, other_ways

        ways = other_ways(found)
        return {**found.to_dict(), "rows_that_depend_on_the_summary": changed_rows(found, ways)}

    files.write_report(Path(path), as_page, content)

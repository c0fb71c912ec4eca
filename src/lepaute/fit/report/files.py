"""A diagnosis on disk."""

from pathlib import Path

from lepaute.fit.diagnostics.diagnosis import Diagnosis
from lepaute.report import files


def write_report(diagnosis: Diagnosis, path: str | Path) -> None:
    """Writes a diagnosis: a page where the name ends in .html, an object of the same content where it ends in .json.

    Raises InputError for another suffix or a folder that is not there.
    """

    def as_page() -> str:
        from lepaute.fit.report.page import page

        return page(diagnosis, f"Fit of {', '.join(archive['file'] for archive in diagnosis.archives)}")

    files.write_report(Path(path), as_page, diagnosis.to_dict)
